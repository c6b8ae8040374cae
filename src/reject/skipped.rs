//! A malformed record that was left out.

use std::ops::Range;

use ringfold_read::{Block, Cause, Malformed};

/// A malformed record that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The number of its file among the input's sources.
    pub file: u32,
    /// Its bytes in the file, the line's end not counted.
    pub bytes: Range<u64>,
    /// The number of the line that it begins in, from 1, where it is known.
    pub line: Option<u64>,
    /// What is wrong with it.
    pub cause: Cause,
}

impl Skipped {
    pub(crate) fn new(malformed: Malformed, block: &Block<'_>) -> Self {
        let at = |position: usize| block.offset() + position as u64;
        Skipped {
            file: block.file(),
            bytes: at(malformed.start)..at(malformed.end),
            line: None,
            cause: malformed.cause,
        }
    }
}
