//! Malformed records: whether they end the run, and what is said of those that were left out.

use clap::ValueEnum;

use crate::cli::console::say;
use crate::cli::{spell, stats};
use crate::group::aggregate::OnError;
use crate::group::summary::Skipped;
use crate::{Error, Input, Kind};

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Policy {
    Fail,
    Skip,
}

impl From<Policy> for OnError {
    fn from(policy: Policy) -> OnError {
        match policy {
            Policy::Fail => OnError::Fail,
            Policy::Skip => OnError::Skip,
        }
    }
}

/// Says how many records were left out, if any were.
pub(super) fn tell_skipped(skipped: u64) {
    if skipped > 0 {
        let plural = if skipped == 1 { "" } else { "s" };
        let skipped = stats::grouped(skipped);
        say(&format!("skipped {skipped} malformed record{plural}"));
    }
}

/// What a run ends with that skipped every record: an empty answer would look like one.
pub(super) fn nothing_but_skipped(input: &Input, first: &Skipped, skipped: u64) -> Error {
    let of = match skipped {
        1 => "the only record, skipped".to_string(),
        many => format!("the first of {} records, all skipped", stats::grouped(many)),
    };
    let name = input.sources()[first.file as usize].name();
    let error = Error::new(Kind::Data, format!("{} ({of})", spell::cause(&first.cause)))
        .in_file(first.file, name)
        .at_bytes(first.bytes.clone());
    match first.bytes.start {
        0 => error.at_line(1),
        _ => error,
    }
}
