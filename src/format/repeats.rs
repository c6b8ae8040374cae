//! Headers that come again, as in files that were joined: how they are found, and what was found.

use std::ops::Range;

use memchr::memmem::Finder;
use ringfold_read::internals::lines::{Counted, Mark};

use crate::format::dialect::BYTE_ORDER_MARK;
use crate::reject::rejects::{Met, Rejected};

/// Records that are the header again, byte for byte.
#[derive(Debug)]
pub(crate) struct Repeats {
    line: Finder<'static>,
    /// Passes over windows can't take one for a row, because a name isn't a number where one is needed.
    is_noticed: bool,
}

/// Records of one kind, such as those that were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// How many.
    pub count: u64,
    /// File and byte of the first.
    pub first: Option<(u32, u64)>,
    /// Its line, from 1, where lines were counted.
    pub line: Option<u64>,
    mark: Option<Mark>,
}

impl Occurrences {
    pub(crate) fn add(&mut self, count: u64, met: Met<'_>, rejected: &mut Rejected) {
        self.merge(Occurrences {
            count,
            first: Some(met.place()),
            line: None,
            mark: rejected.mark(met),
        });
    }

    pub(crate) fn merge(&mut self, from: Occurrences) {
        self.count += from.count;
        let is_earlier = match (from.first, self.first) {
            (Some(from), Some(own)) => from < own,
            (from, _) => from.is_some(),
        };
        if is_earlier {
            (self.first, self.mark) = (from.first, from.mark);
        }
    }

    /// The same with the line of the first.
    pub(crate) fn finish(self, lines: &Counted) -> Occurrences {
        let marked = self.first.zip(self.mark);
        Occurrences {
            line: marked.and_then(|((file, _), mark)| lines.line(file, mark)),
            ..self
        }
    }
}

impl Repeats {
    pub(crate) fn new(line: &[u8], is_noticed: bool) -> Repeats {
        Repeats {
            line: Finder::new(line).into_owned(),
            is_noticed,
        }
    }

    /// Whether a record is the header again.
    pub(crate) fn is_header(&self, record: &[u8]) -> bool {
        let line = self.line.needle();
        record == line || record.strip_prefix(BYTE_ORDER_MARK) == Some(line)
    }

    /// Where lines of a text begin that may be the header again, though passes take them for rows.
    pub(crate) fn places(&self, bytes: &[u8], text: Range<usize>) -> Vec<usize> {
        if self.is_noticed {
            return Vec::new();
        }
        let begins_line = |at: usize| at == 0 || bytes[at - 1] == b'\n';
        let place = |found: usize| {
            let at = text.start + found;
            let marked = bytes[..at].ends_with(BYTE_ORDER_MARK);
            let at = if marked {
                at - BYTE_ORDER_MARK.len()
            } else {
                at
            };
            let end = text.start + found + self.line.needle().len();
            let ends = matches!(bytes.get(end), None | Some(b'\n' | b'\r'));
            (begins_line(at) && ends).then_some(at)
        };
        let found = self.line.find_iter(&bytes[text.clone()]);
        found.filter_map(place).collect()
    }
}
