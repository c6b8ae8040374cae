//! Count, sum, least and greatest value of a key in tenths, as the tables keep them: [`Stats`] and
//! [`PackedStats`].
//!
//! All zeros always mean no row, so that zeroed memory is a table of empty statistics. The least value
//! is kept as the greatest *complement*, for which zero is the neutral value too.

/// Added to the tenths of a value, so that it is positive: 1..=1999.
pub(crate) const BIAS: u32 = 1000;

/// Exclusive-or with this reverses the order of biased values and leaves them positive.
pub(crate) const FLIP: u32 = 2047;
const FLIP_BITS: u32 = FLIP.trailing_ones();

/// Statistics of a key's numbers in tenths.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
pub(crate) struct Stats {
    /// Of biased values.
    pub(crate) sum: u64,
    pub(crate) count: u64,
    /// Of biased values.
    pub(crate) max: u32,
    /// The greatest biased value after [`FLIP`], which belongs to the least value.
    pub(crate) max_flipped: u32,
    /// Unused while rows are added; then the key's length.
    pub(crate) length: u64,
}

impl Stats {
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

/// [`Stats`] of up to 2^32 - 1 rows in half the space.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct PackedStats {
    sum: u64,
    count: u32,
    max: u16,
    /// Above its [`FLIP`] bits stands the key's length, once no more rows are added.
    max_flipped: u16,
}

impl PackedStats {
    #[inline(always)]
    pub(crate) fn add(&mut self, value: u32) {
        self.sum += u64::from(value);
        self.count += 1;
        self.max = self.max.max(value as u16);
        self.max_flipped = self.max_flipped.max((value ^ FLIP) as u16);
    }

    /// Whether the count has reached its greatest value.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.count == u32::MAX
    }

    pub(crate) fn unpacked(&self) -> Stats {
        Stats {
            sum: self.sum,
            count: self.count.into(),
            max: self.max.into(),
            max_flipped: u32::from(self.max_flipped) & FLIP,
            length: 0,
        }
    }

    /// Adds `from`, or returns false if the count would overflow.
    pub(crate) fn try_merge(&mut self, from: &Stats) -> bool {
        let Ok(count) = u32::try_from(u64::from(self.count).saturating_add(from.count)) else {
            return false;
        };
        self.count = count;
        self.sum += from.sum;
        self.max = self.max.max(from.max as u16);
        self.max_flipped = self.max_flipped.max(from.max_flipped as u16);
        true
    }

    /// Stores the key's length. No row may be added after that.
    pub(crate) fn set_length(&mut self, length: usize) {
        self.max_flipped = self.max_flipped & FLIP as u16 | (length as u16) << FLIP_BITS;
    }

    pub(crate) fn length(&self) -> usize {
        usize::from(self.max_flipped >> FLIP_BITS)
    }

    pub(crate) fn empty(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use crate::table::stats::*;

    #[test]
    fn a_full_count_is_refused() {
        let many = Stats {
            sum: 1 << 32,
            count: u32::MAX.into(),
            max: 1,
            max_flipped: 1,
            length: 0,
        };
        let mut packed = PackedStats::default();
        assert!(packed.try_merge(&many) && packed.is_full());
        let before = packed.unpacked().count();
        assert!(!packed.try_merge(&many));
        assert_eq!(packed.unpacked().count(), before);
        packed.set_length(15);
        assert_eq!((packed.length(), packed.unpacked().max_flipped), (15, 1));
    }
}
