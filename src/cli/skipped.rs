//! Malformed records: whether they end the run, and what is said of those that were left out.

use clap::ValueEnum;

use crate::cli::console::say;
use crate::cli::spell;
use crate::group::summary::Skipped;
use crate::{Error, Input, Kind, units};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Policy {
    Fail,
    Skip,
    Null,
}

/// Says how many records were left out, if any were, and which is the first.
pub(super) fn tell_skipped(input: &Input, first: Option<&Skipped>, skipped: u64) {
    let Some(first) = first else {
        return;
    };
    let plural = if skipped == 1 { "" } else { "s" };
    let skipped = units::grouped(skipped);
    let name = input.sources()[first.file as usize].name();
    let byte = first.bytes.start;
    let line = first
        .line
        .map_or(String::new(), |line| format!(" line {line}"));
    let cause = first.cause.to_string();
    say(&format!(
        "{skipped} record{plural} skipped, the first at {name} byte {byte}{line}: {cause}"
    ));
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
