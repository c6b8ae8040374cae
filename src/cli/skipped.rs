//! Malformed records and values: whether they end the run, and what is said of those that didn't.

use std::sync::Arc;

use clap::ValueEnum;
use rayon::ThreadPool;
use ringfold_read::internals::units::{self, counted};

use crate::cli::console::{notice, say, write_output};
use crate::cli::reading::{ReadFlags, place_of};
use crate::cli::spell;
use crate::output::file::Output;
use crate::query::{Answer, Occurrences};
use crate::reject::skipped::Skipped;
use crate::{Error, Input, Kind, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Policy {
    Fail,
    Skip,
    Null,
}

/// Writes the records that were left out, and finds the line of the first one.
///
/// # Errors
/// No other record was there.
pub(super) fn settle(
    answer: &mut Answer,
    rejects: Option<Output>,
    input: &Input,
    reading: &ReadFlags,
    pool: &Arc<ThreadPool>,
) -> Result<()> {
    if let (Some(output), Some(rejects)) = (rejects, &answer.rejects) {
        pool.install(|| write_output(output, |out| rejects.write(input, out)))?;
    }
    if let Some(first) = answer.first_skipped.as_mut() {
        let place = (first.file, first.bytes.start);
        first.line = first.line.or_else(|| reading.line(input, pool, place));
    }
    let is_nothing = answer.rows == 0 && answer.filtered == 0;
    match answer.first_skipped.as_ref().filter(|_| is_nothing) {
        Some(first) => Err(nothing_but_skipped(input, first, answer.skipped)),
        None => Ok(()),
    }
}

/// Says what became of records that aren't in an answer, or not as they stand in the input.
pub(super) fn tell_records(
    answer: &Answer,
    input: &Input,
    reading: &ReadFlags,
    pool: &Arc<ThreadPool>,
) {
    tell_skipped(input, answer.first_skipped.as_ref(), answer.skipped);
    if reading.quiet {
        return;
    }
    let place = |place, line| reading.place(input, pool, place, line);
    tell_longer(&answer.longer, place);
    tell_local_times(&answer.local_times, place);
    let repeated = answer.repeated_headers;
    if let Some(first) = repeated.first.map(|first| place(first, repeated.line)) {
        notice(spell::repeated(repeated.count, &first));
    }
}

/// Says that lines of a log go on after its pattern.
fn tell_longer(longer: &Occurrences, place: impl Fn((u32, u64), Option<u64>) -> String) {
    let Some(first) = longer.first.map(|first| place(first, longer.line)) else {
        return;
    };
    let lines = units::counted(longer.count, "line");
    let go = if longer.count == 1 { "goes" } else { "go" };
    notice(format!(
        "{lines} {go} on after the log's pattern, the first at {first}: what follows isn't read"
    ));
}

/// Says how times without an offset were read.
fn tell_local_times(times: &Occurrences, place: impl Fn((u32, u64), Option<u64>) -> String) {
    if let Some(first) = times.first.map(|first| place(first, times.line)) {
        notice(format!(
            "times without an offset are taken for those of the zone that they are looked at in, the first at {first}: \
             --input-time-zone names another, as UTC"
        ));
    }
}

/// Says how many records were left out, if any were, and which is the first.
fn tell_skipped(input: &Input, first: Option<&Skipped>, skipped: u64) {
    if let Some(first) = first {
        let what = format!("{} skipped", counted(skipped, "record"));
        tell_first(input, &what, first, &first.cause.to_string(), first.line);
    }
}

/// Says what became of values that a query couldn't read as numbers, if there are some.
pub(super) fn tell_unread(
    answer: &Answer,
    input: &Input,
    reading: &ReadFlags,
    pool: &Arc<ThreadPool>,
) {
    let tell = |count: u64, first: &Option<Skipped>, noun: &str, what: &str| {
        if let Some(first) = first {
            let (what, cause) = (
                format!("{} {what}", counted(count, noun)),
                spell::cause(&first.cause),
            );
            let place = (first.file, first.bytes.start);
            let line = (first.line).or_else(|| reading.line(input, pool, place));
            tell_first(input, &what, first, &cause, line);
        }
    };
    tell(
        answer.nulled,
        &answer.first_nulled,
        "value",
        "taken for no value",
    );
    for (count, first) in &answer.unmatched {
        tell(*count, first, "record", "without a match");
    }
    tell(answer.unread, &answer.first_unread, "record", UNREAD);
    tell(answer.bytewise, &answer.first_bytewise, "record", BYTEWISE);
}

const UNREAD: &str = "left out, because --where can't compare a value";
const BYTEWISE: &str = "decided by the bytes of a number, because --where has it in quotes; without them numbers are compared";

/// The same of rows of the answer.
pub(super) fn tell_unread_rows(answer: &Answer) {
    let doubted = &answer.doubted;
    let tell = |count: u64, first: &Option<crate::Cause>, what: &str| {
        if let Some(first) = first {
            let (rows, cause) = (counted(count, "row"), spell::cause(first));
            say(&format!(
                "{rows} of the answer {}, the first by {cause}",
                what.replace("--where", "--having")
            ));
        }
    };
    tell(doubted.unread, &doubted.first_unread, UNREAD);
    tell(doubted.bytewise, &doubted.first_bytewise, BYTEWISE);
}

fn tell_first(input: &Input, what: &str, first: &Skipped, cause: &str, line: Option<u64>) {
    let place = place_of(input, (first.file, first.bytes.start), line);
    say(&format!("{what}, the first at {place}: {cause}"));
}

/// What a run ends with that skipped every record: an empty answer would look like one.
fn nothing_but_skipped(input: &Input, first: &Skipped, skipped: u64) -> Error {
    let of = match skipped {
        1 => "the only record, skipped".to_string(),
        many => format!("the first of {} records, all skipped", units::grouped(many)),
    };
    let name = input.sources()[first.file as usize].name();
    let error = Error::new(Kind::Data, format!("{} ({of})", spell::cause(&first.cause)))
        .in_file(first.file, name)
        .at_bytes(first.bytes.clone());
    match first.line {
        Some(line) => error.at_line(line),
        None => error,
    }
}
