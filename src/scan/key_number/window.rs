//! A window: a part of a block small enough for 16-bit positions and the first-level cache.

use std::ops::Deref;

use ringfold_read::Block;
use ringfold_read::internals::Padded;

/// The most bytes of a window. Positions, one past the last included, fit 15 bits, so that what is packed
/// above 16 bits stays positive.
pub(crate) const WINDOW: usize = 8192;

const _: () = assert!(WINDOW < 1 << 15 && WINDOW.is_multiple_of(64));

/// A part of a block, with readable bytes around it.
#[derive(Clone, Copy)]
pub(crate) struct ScanWindow<'a> {
    text: Padded<'a>,
    long_rows: bool,
}

impl<'a> ScanWindow<'a> {
    /// The window of `block` that begins at `start`, up to `length` (at most [`WINDOW`]) bytes.
    pub(crate) fn at(block: &Block<'a>, start: usize, length: usize) -> Self {
        ScanWindow {
            text: block.part(start, length.min(WINDOW)),
            long_rows: false,
        }
    }

    /// The same, with rows that are expected to be long: [`lookahead`](crate::scan::key_number::lookahead)
    /// prefetches accordingly.
    pub(crate) fn of_long_rows(self, long_rows: bool) -> Self {
        ScanWindow { long_rows, ..self }
    }

    pub(crate) fn has_long_rows(self) -> bool {
        self.long_rows
    }

    /// The 8 bytes that end at `end`, little-endian.
    pub(crate) fn word_before(self, end: usize) -> u64 {
        (self.words_before(end) >> 64) as u64
    }

    /// The 16 bytes that end at `end`, little-endian.
    #[inline]
    pub(crate) fn words_before(self, end: usize) -> u128 {
        u128::from_le_bytes(*self.before(end))
    }
}

impl<'a> Deref for ScanWindow<'a> {
    type Target = Padded<'a>;

    #[inline(always)]
    fn deref(&self) -> &Padded<'a> {
        &self.text
    }
}
