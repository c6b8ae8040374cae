//! Malformed records and values: whether they end the run, and what is said of those that didn't.

use std::sync::Arc;

use clap::ValueEnum;
use rayon::ThreadPool;
use ringfold_read::internals::units::{self, counted};

use crate::cli::console::say;
use crate::cli::reading::{ReadFlags, place_of};
use crate::cli::spell;
use crate::query::Answer;
use crate::reject::skipped::Skipped;
use crate::{Error, Input, Kind};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Policy {
    Fail,
    Skip,
    Null,
}

/// Says how many records were left out, if any were, and which is the first.
pub(super) fn tell_skipped(input: &Input, first: Option<&Skipped>, skipped: u64) {
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
pub(super) fn nothing_but_skipped(input: &Input, first: &Skipped, skipped: u64) -> Error {
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
