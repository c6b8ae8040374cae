//! Where a record and its fields stand.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;

use crate::format::escape::Escape;
use crate::refusal::Hint;

/// The quote of most files that have quoted fields.
pub(crate) const QUOTE: u8 = b'"';

/// A field's bytes, without the quotes around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// What escapes stand in it, if some do.
    pub(crate) escape: Option<Escape>,
}

/// A record that can't be split into fields.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// From what is wrong, such as the quote that opens a field, to the end of that line.
    pub(crate) bytes: Range<usize>,
    pub(crate) cause: Cow<'static, str>,
    pub(crate) hint: Option<Hint>,
    /// After that line.
    pub(crate) next: usize,
    /// The bytes end before the quote is closed.
    pub(crate) is_open: bool,
}

/// Where a record stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// After its last byte, the line's end not counted.
    pub(crate) end: usize,
    /// After its line's end.
    pub(crate) next: usize,
}

impl Unreadable {
    /// What is wrong with some bytes of a record, whatever comes behind it.
    pub(crate) fn new(
        bytes: Range<usize>,
        cause: impl Into<Cow<'static, str>>,
        next: usize,
    ) -> Unreadable {
        Unreadable {
            bytes,
            cause: cause.into(),
            hint: None,
            next,
            is_open: false,
        }
    }
}

impl Field {
    /// A field without bytes.
    pub(crate) const EMPTY: Field = Field {
        start: 0,
        end: 0,
        escape: None,
    };

    /// Whether it is a quoted field of a record that begins at `at`.
    pub(crate) fn is_quoted(&self, at: usize, bytes: &[u8], quote: Option<u8>) -> bool {
        self.start > at && quote.is_some_and(|quote| bytes[self.start - 1] == quote)
    }

    pub(crate) fn plain(start: usize, end: usize) -> Field {
        Field {
            start,
            end,
            escape: None,
        }
    }

    /// Its bytes; `scratch` takes them where they don't stand there as they are.
    pub(crate) fn value<'a>(&self, bytes: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let raw = &bytes[self.start..self.end];
        let Some(escape) = self.escape else {
            return raw;
        };
        scratch.clear();
        escape.undo(raw, scratch);
        scratch
    }
}

impl Record {
    /// The line at `at`: where it ends, without a carriage return, and what follows it.
    pub(crate) fn line(bytes: &[u8], at: usize) -> Record {
        let newline = memchr(b'\n', &bytes[at..]).map(|end| at + end);
        let end = newline.unwrap_or(bytes.len());
        Record {
            end: end - usize::from(bytes[at..end].ends_with(b"\r")),
            next: newline.map_or(end, |end| end + 1),
        }
    }
}

/// The names in a record.
pub(crate) fn names_of(fields: &[Field], bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut scratch = Vec::new();
    let name = |field: &Field| field.value(bytes, &mut scratch).to_vec();
    fields.iter().map(name).collect()
}
