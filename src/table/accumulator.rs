//! What a table asks of the statistics that it keeps: to add a row with the vectors of an instruction
//! set, and to merge.
//!
//! Invariant of this module: an instruction set is only used by a caller that has its features.
#![allow(unsafe_code)]

use crate::table::isa::Isa;
use crate::table::pages::Zeroed;
use crate::table::stats::{PackedStats, Stats};

/// Statistics to which rows are added.
pub(crate) trait Accumulator: Copy + Default + Send + Sync {
    /// # Safety
    /// - The features of `I` are enabled.
    unsafe fn add<I: Isa>(&mut self, value: u32);

    /// Adds a value to each, one after the other: both may be the same.
    ///
    /// # Safety
    /// - Both are valid, and nobody else accesses them.
    /// - The features of `I` are enabled.
    #[inline(always)]
    unsafe fn add_two<I: Isa>(to: [*mut Self; 2], values: &[u32; 2]) {
        // SAFETY: as the caller's.
        unsafe {
            (*to[0]).add::<I>(values[0]);
            (*to[1]).add::<I>(values[1]);
        }
    }
}

/// Statistics that lie in an entry of a dense table. All zeros mean no row.
pub(crate) trait EntryStats: Accumulator {
    /// Whether the count has reached its greatest value.
    fn is_full(&self) -> bool;
    fn unpacked(&self) -> Stats;
    /// Adds `from`, or returns false if the count would overflow.
    fn try_merge(&mut self, from: &Stats) -> bool;
    /// Stores the key's length. No row may be added after that.
    fn set_length(&mut self, length: usize);
    fn length(&self) -> usize;
    /// Sets the count to zero.
    fn empty(&mut self);
}

// SAFETY: integers.
unsafe impl Zeroed for Stats {}

impl Accumulator for Stats {
    #[inline(always)]
    unsafe fn add<I: Isa>(&mut self, value: u32) {
        // SAFETY: as the caller's.
        unsafe { I::update(self, value) }
    }

    #[inline(always)]
    unsafe fn add_two<I: Isa>(to: [*mut Self; 2], values: &[u32; 2]) {
        // SAFETY: as the caller's.
        unsafe { I::update_two(to, values) }
    }
}

impl EntryStats for Stats {
    #[inline(always)]
    fn is_full(&self) -> bool {
        false
    }

    fn unpacked(&self) -> Stats {
        *self
    }

    fn try_merge(&mut self, from: &Stats) -> bool {
        self.merge(from);
        true
    }

    fn set_length(&mut self, length: usize) {
        self.length = length as u64;
    }

    fn length(&self) -> usize {
        self.length as usize
    }

    fn empty(&mut self) {
        self.count = 0;
    }
}

impl Accumulator for PackedStats {
    #[inline(always)]
    unsafe fn add<I: Isa>(&mut self, value: u32) {
        PackedStats::add(self, value);
    }
}

impl EntryStats for PackedStats {
    #[inline(always)]
    fn is_full(&self) -> bool {
        PackedStats::is_full(self)
    }

    fn unpacked(&self) -> Stats {
        PackedStats::unpacked(self)
    }

    fn try_merge(&mut self, from: &Stats) -> bool {
        PackedStats::try_merge(self, from)
    }

    fn set_length(&mut self, length: usize) {
        PackedStats::set_length(self, length);
    }

    fn length(&self) -> usize {
        PackedStats::length(self)
    }

    fn empty(&mut self) {
        PackedStats::empty(self);
    }
}

#[cfg(test)]
mod tests {
    use crate::table::accumulator::*;
    use crate::table::isa::Portable;
    use crate::table::stats::BIAS;

    #[test]
    fn zeros_are_no_row() {
        for value in [1, BIAS, 1999] {
            let (mut stats, mut packed) = (Stats::default(), PackedStats::default());
            // SAFETY: needs no feature.
            unsafe {
                Accumulator::add::<Portable>(&mut stats, value);
                Accumulator::add::<Portable>(&mut packed, value);
            }
            let tenths = i64::from(value) - i64::from(BIAS);
            for stats in [stats, packed.unpacked()] {
                assert_eq!(stats.count(), 1);
                assert_eq!([stats.sum(), stats.min(), stats.max()], [tenths; 3]);
            }
        }
    }
}
