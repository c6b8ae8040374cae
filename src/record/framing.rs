//! Where records end: a strategy, pure code without I/O or threads.
//!
//! An engine asks a [`Framing`] two things of a piece of a file: where its first record end is
//! and where its last. For a strategy with a state (a newline within quotes ends no record) the
//! answer depends on everything before the piece; such a strategy says so, and the stitcher then
//! scans pieces in file order, carrying the state from one to the next.

use std::ops::Range;

/// Where records end.
pub trait Framing: Clone + Send + Sync + 'static {
    /// What must be known of all bytes before a piece to find the record ends in it.
    type State: Copy + Default + Send;

    /// Whether [`Framing::State`] matters; when it doesn't, pieces are looked at in any order.
    const STATEFUL: bool;

    /// The state behind `bytes`, which begin in `state`.
    fn advance(&self, state: Self::State, bytes: &[u8]) -> Self::State;

    /// One past the first record end in `bytes`.
    fn first_end(&self, state: Self::State, bytes: &[u8]) -> Option<usize>;

    /// One past the last record end in `bytes`.
    fn last_end(&self, state: Self::State, bytes: &[u8]) -> Option<usize>;
}

/// Records that end at a byte: newline, NUL, or any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delimited {
    /// `None`: at every byte.
    by: Option<u8>,
}

impl Delimited {
    /// Lines.
    pub const NEWLINE: Delimited = Delimited::by(b'\n');
    /// NUL-terminated records, as `find -print0` writes them.
    pub const NUL: Delimited = Delimited::by(0);
    /// Every byte is a record: for jobs that look at bytes, to which no limit on records applies.
    pub const EVERY_BYTE: Delimited = Delimited { by: None };

    /// Records that end with this byte.
    pub const fn by(delimiter: u8) -> Self {
        Delimited {
            by: Some(delimiter),
        }
    }

    /// How many records end in `bytes`.
    pub fn count(&self, bytes: &[u8]) -> u64 {
        match self.by {
            Some(delimiter) => memchr::memchr_iter(delimiter, bytes).count() as u64,
            None => bytes.len() as u64,
        }
    }

    /// How many records end in so many zeros, as in a file's hole.
    pub(crate) fn count_zeros(&self, zeros: u64) -> u64 {
        match self.by {
            None | Some(0) => zeros,
            Some(_) => 0,
        }
    }

    /// The first record in `bytes` (whole records) that is longer than `max` bytes, its delimiter
    /// not counted.
    ///
    /// It looks at a few bytes in every `max`: behind a record's start a delimiter must stand
    /// within `max` bytes, and the last one there is the next start.
    pub fn oversized(&self, bytes: &[u8], max: usize) -> Option<Range<usize>> {
        let delimiter = self.by?;
        let mut start = 0;
        while bytes.len() - start > max {
            match memchr::memrchr(delimiter, &bytes[start..=start + max]) {
                Some(at) => start += at + 1,
                None => return Some(start..start + max),
            }
        }
        None
    }
}

impl Framing for Delimited {
    type State = ();
    const STATEFUL: bool = false;

    fn advance(&self, (): (), _: &[u8]) {}

    fn first_end(&self, (): (), bytes: &[u8]) -> Option<usize> {
        match self.by {
            Some(delimiter) => memchr::memchr(delimiter, bytes).map(|at| at + 1),
            None => (!bytes.is_empty()).then_some(1),
        }
    }

    fn last_end(&self, (): (), bytes: &[u8]) -> Option<usize> {
        match self.by {
            Some(delimiter) => memchr::memrchr(delimiter, bytes).map(|at| at + 1),
            None => (!bytes.is_empty()).then_some(bytes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::record::framing::*;

    #[test]
    fn ends() {
        let lines = Delimited::NEWLINE;
        assert_eq!(lines.first_end((), b"a\nb\nc"), Some(2));
        assert_eq!(lines.last_end((), b"a\nb\nc"), Some(4));
        assert_eq!(lines.first_end((), b"abc"), None);
        assert_eq!(Delimited::NUL.first_end((), b"a\n\0c"), Some(3));
    }

    #[test]
    fn oversized_is_found_wherever_it_stands() {
        for max in 1..6 {
            for before in 0..5 {
                for len in 0..9 {
                    for newline in [true, false] {
                        let mut text = b"x\n".repeat(before);
                        text.extend(vec![b'y'; len]);
                        if newline {
                            text.extend(b"\nz\n");
                        }
                        let start = before * 2;
                        let want = (len > max).then_some(start..start + max);
                        let got = Delimited::NEWLINE.oversized(&text, max);
                        assert_eq!(got, want, "max {max}, before {before}, len {len}");
                    }
                }
            }
        }
    }
}
