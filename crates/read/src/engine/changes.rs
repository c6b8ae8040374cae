//! What became of the files while they were read.

use std::sync::Arc;

use rayon::prelude::*;

use crate::engine::config::Config;
use crate::engine::notice::Notice;
use crate::error::Error;
use crate::input::source::Change;
use crate::input::spans::Input;

/// What became of each source since it was opened.
pub(crate) fn changes(input: &Input) -> Vec<Option<Change>> {
    let sources = input.sources().par_iter();
    sources.map(|source| source.change()).collect()
}

/// A file that has become shorter than what was wanted of it: reads that meet the cut may bring zeros
/// where bytes are missing, and nobody can tell.
pub(crate) fn cut_off(input: &Input, changes: &[Option<Change>]) -> Option<Error> {
    input.spans().iter().find_map(|span| {
        let source = input.source(span);
        let len = source.len()?;
        let now = match changes[span.source as usize] {
            Some(Change::Cut(now)) if now < span.to.min(len) => now,
            _ => return None,
        };
        let lost = now.max(span.from)..span.to.min(len);
        Some(source.ended(now).at_bytes(lost))
    })
}

/// Tells of compressed files of which the last bytes were left out.
#[cfg(feature = "decompress")]
pub(crate) fn report_left_out(input: &Input, config: &Config) {
    for source in input.sources() {
        let left_out = source.decoder().map(|decoder| decoder.left_out.bytes());
        if let Some(bytes) = left_out.filter(|&bytes| bytes > 0) {
            let file = Arc::clone(source.name());
            (config.notice)(&Notice::LeftOut { file, bytes });
        }
    }
}

/// Tells of files that have grown, for what was added isn't in the answer, and of those that were
/// written to, for what was rewritten may be.
pub(crate) fn report_changes(input: &Input, changes: &[Option<Change>], config: &Config) {
    for (source, change) in input.sources().iter().zip(changes) {
        let file = Arc::clone(source.name());
        match change {
            Some(Change::Grown(now)) => (config.notice)(&Notice::Grown {
                file,
                from: source.len().unwrap_or(0),
                to: *now,
            }),
            // What was cut off isn't wanted.
            Some(Change::Written | Change::Cut(_)) => (config.notice)(&Notice::Written { file }),
            None => {}
        }
    }
}
