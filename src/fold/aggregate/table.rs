//! Pass 3, *fold*: rows into tables of statistics.
//!
//! - [`inline`]: keys up to 31 bytes, in the slot itself; one 64-byte line a row.
//! - [`wide`]: keys up to 127 bytes; a small slot points to a 192-byte entry.
//!
//! Both work in batches: hash a batch and prefetch, then compare and update. What differs by
//! instruction set is behind [`isa::Isa`].

pub(crate) mod inline;
pub(crate) mod isa;
pub(crate) mod wide;

/// Rows hashed and prefetched ahead.
const BATCH: usize = 64;

/// Statistics of a key. All zeros are those of no row: the bias makes every value, and its
/// complement, positive.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
pub(crate) struct Stats {
    /// Biased values.
    sum: u64,
    count: u64,
    max: u32,
    /// The greatest [`FLIP`]-complement, that is, the least value's.
    flipped_min: u32,
    spare: u64,
}

/// Exclusive-or with this turns the order of biased values around and leaves them positive.
const FLIP: u32 = 2047;

impl Stats {
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// In tenths.
    pub(crate) fn sum(&self) -> i64 {
        self.sum
            .wrapping_sub(self.count.wrapping_mul(super::decode::BIAS.into())) as i64
    }

    /// In tenths.
    pub(crate) fn min(&self) -> i64 {
        i64::from(self.flipped_min ^ FLIP) - i64::from(super::decode::BIAS)
    }

    /// In tenths.
    pub(crate) fn max(&self) -> i64 {
        i64::from(self.max) - i64::from(super::decode::BIAS)
    }

    pub(crate) fn merge(&mut self, from: &Stats) {
        self.sum += from.sum;
        self.count += from.count;
        self.max = self.max.max(from.max);
        self.flipped_min = self.flipped_min.max(from.flipped_min);
    }
}
