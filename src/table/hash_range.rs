//! Ranges of hashes. Slots lie in the order of their hashes, so a range is a contiguous part of every table of entries, and
//! ranges can be merged in parallel.

use std::ops::Range;

/// The hashes that begin with the same bits.
#[derive(Clone, Copy)]
pub(crate) struct HashRange {
    pub(crate) bits: u32,
    pub(crate) number: u32,
}

impl HashRange {
    /// All of them, in 2^`bits` ranges.
    pub(crate) fn ranges(bits: u32) -> impl Iterator<Item = HashRange> {
        (0..1 << bits).map(move |number| HashRange { bits, number })
    }

    /// The range of `hash` among 2^`bits`.
    #[inline(always)]
    pub(crate) fn of(hash: u32, bits: u32) -> Self {
        let number = (u64::from(hash) << bits >> 32) as u32;
        HashRange { bits, number }
    }

    pub(crate) fn contain(self, hash: u32) -> bool {
        HashRange::of(hash, self.bits).number == self.number
    }

    /// The home slots of these hashes in a table.
    pub(crate) fn homes(self, shift: u32) -> Range<usize> {
        let home = |number: u64| ((number << (32 - self.bits)) >> shift) as usize;
        home(self.number.into())..home(u64::from(self.number) + 1)
    }
}
