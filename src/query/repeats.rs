//! Headers that come again, as in files that were joined: how they are found, and what was found.

use std::ops::Range;

use memchr::memmem::Finder;

use crate::query::dialect::BYTE_ORDER_MARK;

/// Records that are the header again, byte for byte.
#[derive(Debug)]
pub(crate) struct Repeats {
    line: Finder<'static>,
    /// Passes over windows can't take one for a row, because a name isn't a number where one is needed.
    is_noticed: bool,
}

/// Those that were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repeated {
    /// How many.
    pub count: u64,
    /// File and byte of the first.
    pub first: Option<(u32, u64)>,
}

impl Repeated {
    pub(crate) fn add(&mut self, place: (u32, u64)) {
        self.merge(Repeated {
            count: 1,
            first: Some(place),
        });
    }

    pub(crate) fn merge(&mut self, from: Repeated) {
        self.count += from.count;
        let both = self.first.into_iter().chain(from.first);
        self.first = both.min();
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
