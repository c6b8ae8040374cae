//! A window: a part of a block small enough for 16-bit positions and the first-level cache.
//!
//! Invariant of this module, on which the vector kernels rely: [`PADDING`] bytes before and after the
//! window are readable, because those of its block are.
#![allow(unsafe_code)]

use crate::record::block::{Block, PADDING};

/// The most bytes of a window. Positions, one past the last included, fit 15 bits, so that what is packed
/// above 16 bits stays positive.
pub(crate) const WINDOW: usize = 8192;

const _: () = assert!(WINDOW < 1 << 15 && WINDOW.is_multiple_of(64) && PADDING >= 64);

/// A part of a block, with readable bytes around it.
#[derive(Clone, Copy)]
pub(crate) struct ScanWindow<'a> {
    bytes: &'a [u8],
    long_rows: bool,
}

impl<'a> ScanWindow<'a> {
    /// The window of `block` that begins at `start`, up to `length` (at most [`WINDOW`]) bytes.
    pub(crate) fn at(block: &Block<'a>, start: usize, length: usize) -> Self {
        let bytes = &block.bytes()[start..];
        ScanWindow {
            bytes: &bytes[..bytes.len().min(length).min(WINDOW)],
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

    pub(crate) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The window's first byte; [`PADDING`] bytes before it and after the window are readable.
    pub(crate) fn pointer(self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// The 8 bytes that end at `end`, little-endian.
    pub(crate) fn word_before(self, end: usize) -> u64 {
        (self.words_before(end) >> 64) as u64
    }

    /// The 16 bytes that end at `end`, little-endian.
    #[inline]
    pub(crate) fn words_before(self, end: usize) -> u128 {
        assert!(end <= self.bytes.len());
        // SAFETY: `end` is within the window and PADDING >= 16 bytes before it are readable.
        let words = unsafe {
            self.pointer()
                .add(end)
                .sub(16)
                .cast::<u128>()
                .read_unaligned()
        };
        u128::from_le(words)
    }
}
