//! Values that a run couldn't read as numbers, and didn't fail for: how many, and which is the first of the input.

use ringfold_read::Cause;
use ringfold_read::internals::lines::{Counted, Mark};

use crate::reject::rejects::{Met, Rejected};
use crate::reject::skipped::Skipped;

/// What a partial knows of them.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    pub(crate) count: u64,
    first: Option<(Skipped, Option<Mark>)>,
}

impl Unread {
    /// Adds so many, of which the first is met there.
    pub(crate) fn add(
        &mut self,
        count: u64,
        met: Met<'_>,
        rejected: &mut Rejected,
        describe: impl FnOnce() -> Cause,
    ) {
        self.count += count;
        let (file, start) = met.place();
        let known = self.first.as_ref();
        if known.is_none_or(|(known, _)| (file, start) < (known.file, known.bytes.start)) {
            let first = Skipped {
                file,
                bytes: start..start,
                line: None,
                cause: describe(),
            };
            self.first = Some((first, rejected.mark(met)));
        }
    }

    pub(crate) fn merge(&mut self, from: Unread) {
        self.count += from.count;
        let both = self.first.take().into_iter().chain(from.first);
        self.first = both.min_by_key(|(first, _)| (first.file, first.bytes.start));
    }

    /// How many, and the first one, with its line where lines were counted.
    pub(crate) fn finish(self, lines: &Counted) -> (u64, Option<Skipped>) {
        let first = self.first.map(|(mut first, mark)| {
            first.line = mark.and_then(|mark| lines.line(first.file, mark));
            first
        });
        (self.count, first)
    }
}
