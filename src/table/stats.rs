//! Count, sum, least and greatest value of a key in tenths, as direct tables keep them.
//!
//! All zeros always mean no row, so that zeroed memory is a table of empty statistics. The least value
//! is kept as the greatest *complement*, for which zero is the neutral value too.

use zerocopy::FromZeros;

/// Added to the tenths of a value, so that it is positive: 1..=1999.
pub(crate) const BIAS: u32 = 1000;

/// Exclusive-or with this reverses the order of biased values and leaves them positive.
pub(crate) const FLIP: u32 = 2047;

/// Statistics of a key's numbers in tenths.
#[derive(Clone, Copy, Debug, Default, FromZeros)]
#[repr(C, align(32))]
pub(crate) struct Stats {
    /// Of biased values.
    pub(crate) sum: u64,
    pub(crate) count: u64,
    /// Of biased values.
    pub(crate) max: u32,
    /// The greatest biased value after [`FLIP`], which belongs to the least value.
    pub(crate) max_flipped: u32,
    /// Unused.
    pub(crate) spare: u64,
}

impl Stats {
    /// Adds a row, whose value is biased.
    #[inline(always)]
    pub(crate) fn add(&mut self, value: u32) {
        self.sum += u64::from(value);
        self.count += 1;
        self.max = self.max.max(value);
        self.max_flipped = self.max_flipped.max(value ^ FLIP);
    }

    pub(crate) fn merge(&mut self, from: &Stats) {
        self.sum += from.sum;
        self.count += from.count;
        self.max = self.max.max(from.max);
        self.max_flipped = self.max_flipped.max(from.max_flipped);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// In tenths.
    pub(crate) fn sum(&self) -> i64 {
        self.sum.wrapping_sub(self.count.wrapping_mul(BIAS.into())) as i64
    }

    /// In tenths.
    pub(crate) fn min(&self) -> i64 {
        i64::from(self.max_flipped ^ FLIP) - i64::from(BIAS)
    }

    /// In tenths.
    pub(crate) fn max(&self) -> i64 {
        i64::from(self.max) - i64::from(BIAS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_no_row() {
        for value in [1, BIAS, 1999] {
            let mut stats = Stats::default();
            stats.add(value);
            let tenths = i64::from(value) - i64::from(BIAS);
            assert_eq!(stats.count(), 1);
            assert_eq!([stats.sum(), stats.min(), stats.max()], [tenths; 3]);
        }
    }
}
