//! Count, sum, least and greatest of a key's values, as the tables keep them: [`Stats`] of tenths, packed
//! or not, and [`Millionths`].
//!
//! Invariant of this room: an instruction set is only used by a caller that has its features.
#![allow(unsafe_code)]

use crate::group::decimal::Totals;
use crate::group::memory::pages::Zeroed;
use crate::group::scan::decode::BIAS;
use crate::group::table::isa::Isa;

/// What rows are added to.
pub(crate) trait Adds: Copy + Default + Send + Sync {
    /// A row's number.
    type Value: Copy;
    /// # Safety
    /// - The features of `I` are enabled.
    unsafe fn add<I: Isa>(&mut self, value: Self::Value);

    /// Adds a value to each, one after the other: both may be the same.
    ///
    /// # Safety
    /// - Both are valid, and nobody else looks at them.
    /// - The features of `I` are enabled.
    #[inline(always)]
    unsafe fn add_two<I: Isa>(to: [*mut Self; 2], values: &[Self::Value; 2]) {
        // SAFETY: as the caller's.
        unsafe {
            (*to[0]).add::<I>(values[0]);
            (*to[1]).add::<I>(values[1]);
        }
    }
}

/// What the rows of a key come to in a direct table. All zeros are those of no row.
pub(crate) trait Sums: Adds + Zeroed {
    fn is_empty(&self) -> bool;
    fn merge_with(&mut self, from: &Self);
}

/// Statistics of a key. All zeros are those of no row: the bias makes every value, and its
/// complement, positive.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
pub(crate) struct Stats {
    /// Biased values.
    pub(crate) sum: u64,
    pub(crate) count: u64,
    pub(crate) max: u32,
    /// The greatest [`FLIP`]-complement, that is, the least value's.
    pub(crate) flipped_min: u32,
    /// Unused while rows are added; then the key's length.
    pub(crate) length: u64,
}

/// Exclusive-or with this turns the order of biased values around and leaves them positive.
pub(crate) const FLIP: u32 = 2047;

// SAFETY: integers.
unsafe impl Zeroed for Stats {}

impl Adds for Stats {
    type Value = u32;

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

impl Sums for Stats {
    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn merge_with(&mut self, from: &Stats) {
        self.sum += from.sum;
        self.count += from.count;
        self.max = self.max.max(from.max);
        self.flipped_min = self.flipped_min.max(from.flipped_min);
    }
}

impl Stats {
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// In tenths.
    pub(crate) fn sum(&self) -> i64 {
        self.sum.wrapping_sub(self.count.wrapping_mul(BIAS.into())) as i64
    }

    /// In tenths.
    pub(crate) fn min(&self) -> i64 {
        i64::from(self.flipped_min ^ FLIP) - i64::from(BIAS)
    }

    /// In tenths.
    pub(crate) fn max(&self) -> i64 {
        i64::from(self.max) - i64::from(BIAS)
    }
}

/// Statistics as an entry keeps them. The default is those of no row, and all zeros.
pub(crate) trait Tally: Adds<Value = u32> {
    /// Whether one more row would be too many.
    fn is_full(&self) -> bool;
    fn stats(&self) -> Stats;
    /// Takes `from`, or returns false if there is no room for it.
    fn merge(&mut self, from: &Stats) -> bool;
    /// Keeps the key's length, once no row will be added any more.
    fn set_length(&mut self, length: usize);
    fn length(&self) -> usize;
}

impl Tally for Stats {
    #[inline(always)]
    fn is_full(&self) -> bool {
        false
    }

    fn stats(&self) -> Stats {
        *self
    }

    fn merge(&mut self, from: &Stats) -> bool {
        self.merge_with(from);
        true
    }

    fn set_length(&mut self, length: usize) {
        self.length = length as u64;
    }

    fn length(&self) -> usize {
        self.length as usize
    }
}

/// Statistics of up to 2^32 - 1 rows in half the space.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct PackedStats {
    sum: u64,
    count: u32,
    max: u16,
    /// And above its [`FLIP`] bits, once no row will be added any more, the key's length.
    flipped_min: u16,
}

const FLIP_BITS: u32 = FLIP.trailing_ones();

impl Adds for PackedStats {
    type Value = u32;

    #[inline(always)]
    unsafe fn add<I: Isa>(&mut self, value: u32) {
        self.sum += u64::from(value);
        self.count += 1;
        self.max = self.max.max(value as u16);
        self.flipped_min = self.flipped_min.max((value ^ FLIP) as u16);
    }
}

impl Tally for PackedStats {
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.count == u32::MAX
    }

    fn stats(&self) -> Stats {
        Stats {
            sum: self.sum,
            count: self.count.into(),
            max: self.max.into(),
            flipped_min: u32::from(self.flipped_min) & FLIP,
            length: 0,
        }
    }

    fn merge(&mut self, from: &Stats) -> bool {
        let Ok(count) = u32::try_from(u64::from(self.count).saturating_add(from.count)) else {
            return false;
        };
        self.count = count;
        self.sum += from.sum;
        self.max = self.max.max(from.max as u16);
        self.flipped_min = self.flipped_min.max(from.flipped_min as u16);
        true
    }

    fn set_length(&mut self, length: usize) {
        self.flipped_min = self.flipped_min & FLIP as u16 | (length as u16) << FLIP_BITS;
    }

    fn length(&self) -> usize {
        usize::from(self.flipped_min >> FLIP_BITS)
    }
}

/// Statistics of a key's numbers in millionths.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Millionths {
    sum: i128,
    count: u64,
    /// In the order of [`SIGN`]ed values, as is the complement of the least.
    max: u64,
    flipped_min: u64,
}

/// Exclusive-or with this makes the order of signed numbers that of unsigned ones. Zero and its
/// complement are no number of a row: those are below 10^18.
const SIGN: u64 = 1 << 63;

// SAFETY: integers.
unsafe impl Zeroed for Millionths {}

impl Adds for Millionths {
    type Value = i64;

    #[inline(always)]
    unsafe fn add<I: Isa>(&mut self, value: i64) {
        let unsigned = value as u64 ^ SIGN;
        self.sum += i128::from(value);
        self.count += 1;
        self.max = self.max.max(unsigned);
        self.flipped_min = self.flipped_min.max(!unsigned);
    }
}

impl Sums for Millionths {
    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn merge_with(&mut self, from: &Millionths) {
        self.sum += from.sum;
        self.count += from.count;
        self.max = self.max.max(from.max);
        self.flipped_min = self.flipped_min.max(from.flipped_min);
    }
}

impl Millionths {
    pub(crate) fn totals(&self) -> Totals {
        let signed = |unsigned: u64| (unsigned ^ SIGN) as i64;
        let (min, max) = (signed(!self.flipped_min), signed(self.max));
        Totals::of_millionths(self.count, self.sum, min, max)
    }
}

#[cfg(test)]
mod tests {
    use crate::group::table::isa::Portable;
    use crate::group::table::stats::*;

    #[test]
    fn zeros_are_no_row() {
        for value in [1, BIAS, 1999] {
            let (mut stats, mut packed) = (Stats::default(), PackedStats::default());
            // SAFETY: needs no feature.
            unsafe {
                stats.add::<Portable>(value);
                packed.add::<Portable>(value);
            }
            let tenths = i64::from(value) - i64::from(BIAS);
            for stats in [stats, packed.stats()] {
                assert_eq!(stats.count(), 1);
                assert_eq!([stats.sum(), stats.min(), stats.max()], [tenths; 3]);
            }
        }
    }

    #[test]
    fn a_full_tally_says_so() {
        let many = Stats {
            sum: 1 << 32,
            count: u32::MAX.into(),
            max: 1,
            flipped_min: 1,
            length: 0,
        };
        let mut packed = PackedStats::default();
        assert!(packed.merge(&many) && packed.is_full());
        let before = packed.stats().count();
        assert!(!packed.merge(&many));
        assert_eq!(packed.stats().count(), before);
        packed.set_length(15);
        assert_eq!((packed.length(), packed.stats().flipped_min), (15, 1));
    }
}
