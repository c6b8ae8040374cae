//! How many values there are of each size: of each value while they are few, and then of each range of values.
//!
//! A value is a double. Its bits as an integer have the order of values. A range is all doubles whose integers are the
//! same but for the lowest bits. When there are more than [`RANGES`], one more bit is dropped, so that neighbours become
//! one. So there are always as many bits as the values allow, whatever their order: a part of them can't need fewer.

use std::borrow::Cow;

use ringfold_read::internals::prefetch;

use crate::sketch::bytes::take_u64;
use crate::sketch::few::Few;

/// The most ranges, unless they would be wider than [`SHIFT_MAX`] lets them be.
pub(crate) const RANGES: usize = 512;
/// The most bits that are dropped: a range is then as wide as a 128th of its least value.
const SHIFT_MAX: u32 = 52 - 7;
/// The fewest values that are put among the ranges together.
const FRESH_MIN: usize = 64;
/// Beside fewer ranges there are no counts, which would take more memory than they.
const COUNTED_MIN: usize = 256;
/// The most counts.
const PLACES: usize = 2048;

#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    /// How many bits are dropped.
    shift: u32,
    /// In order: the integers of a range without the dropped bits, and how many values lie in it.
    ranges: Vec<(i64, u64)>,
    /// How often each value came that isn't among the ranges, as long as there are no ranges.
    few: Few<u32>,
    /// The integers of the least and the greatest value, if there is any.
    extremes: Option<(i64, i64)>,
    /// Integers of values that aren't among the ranges yet.
    fresh: Vec<i64>,
    /// How many values of some neighbouring ranges aren't among the ranges yet, and the integer of the first one.
    counts: Vec<u32>,
    first: i64,
}

/// The integer of a value: integers have the order of values, nan is the greatest, and both zeros are one.
pub(crate) fn integer(value: f64) -> i64 {
    let value = if value.is_nan() {
        f64::NAN
    } else {
        value + 0.0
    };
    turned(
        value.abs().to_bits() as i64 | i64::from(value.is_sign_negative() && !value.is_nan()) << 63,
    )
}

/// The key of an integer among few ones. The least integer is that of no value, so no key is zero.
fn key(integer: i64) -> u64 {
    (integer ^ i64::MIN).cast_unsigned()
}

fn value(integer: i64) -> f64 {
    f64::from_bits(turned(integer) as u64)
}

/// Exchanges the order of what is below zero.
fn turned(bits: i64) -> i64 {
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

impl Histogram {
    /// Adds the value of an integer.
    pub(crate) fn add(&mut self, integer: i64) {
        if self.note(integer) {
            return;
        }
        if self.ranges.is_empty() && self.few.get_mut(key(integer)).is_none() {
            self.few.insert(key(integer), 1);
            self.extend((integer, integer));
            if self.few.len() <= RANGES {
                return;
            }
        } else {
            self.fresh.push(integer);
            if self.fresh.len() < FRESH_MIN.max(self.ranges.len() / 2) {
                return;
            }
        }
        self.settle();
        self.lay_out_counts();
    }

    /// Adds the value of an integer if there is a count for it; `false` if it isn't added.
    #[inline]
    pub(crate) fn note(&mut self, integer: i64) -> bool {
        let count = match self.counts.is_empty() {
            true => self.few.get_mut(key(integer)),
            false => {
                // Integers of values are less than 2^64 - PLACES apart.
                let place = (integer >> self.shift).wrapping_sub(self.first);
                let place = usize::try_from(place.cast_unsigned()).ok();
                place.and_then(|place| self.counts.get_mut(place))
            }
        };
        let Some(count) = count.filter(|count| **count < u32::MAX) else {
            return false;
        };
        *count += 1;
        self.extend((integer, integer));
        true
    }

    /// Fetches what [`Histogram::note`] looks at into the cache.
    #[inline]
    pub(crate) fn prefetch(&self, integer: i64) {
        if self.counts.is_empty() {
            self.few.prefetch(key(integer));
            return;
        }
        let place = (integer >> self.shift).wrapping_sub(self.first);
        let count = self.counts.as_ptr().wrapping_offset(place as isize);
        prefetch::into_l1(count.cast());
    }

    /// Has counts for neighbouring ranges: for those that have the most values together.
    fn lay_out_counts(&mut self) {
        if self.ranges.len() < COUNTED_MIN {
            return;
        }
        let span = |from: usize, to: usize| {
            let span = self.ranges[to].0.checked_sub(self.ranges[from].0);
            span.and_then(|span| usize::try_from(span).ok())
        };
        let (mut values, mut most) = (0_u64, 0);
        let (mut from, mut best) = (0, (0, 0));
        for (to, (_, count)) in self.ranges.iter().enumerate() {
            values = values.saturating_add(*count);
            while span(from, to).is_none_or(|span| span >= PLACES) {
                values = values.saturating_sub(self.ranges[from].1);
                from += 1;
            }
            if values > most {
                (most, best) = (values, (from, to));
            }
        }
        let (from, to) = best;
        self.first = self.ranges[from].0;
        self.counts = vec![0; span(from, to).map_or(0, |span| span + 1)];
    }

    /// Takes the counts away, as ranges.
    fn take_counts(&mut self) -> Vec<(i64, u64)> {
        let few = std::mem::take(&mut self.few);
        if few.len() > 0 {
            // There are no ranges yet, so no bits are dropped.
            let few = few.iter();
            let few = few.map(|(key, count)| (key.cast_signed() ^ i64::MIN, count.into()));
            let mut few: Vec<_> = few.collect();
            few.sort_unstable();
            return few;
        }
        let counts = std::mem::take(&mut self.counts);
        let counts = (self.first..).zip(counts).filter(|(_, count)| *count > 0);
        counts.map(|(range, count)| (range, count.into())).collect()
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.few.bytes()
            + size_of::<u32>() * self.counts.capacity()
            + size_of::<(i64, u64)>() * self.ranges.capacity()
            + size_of::<i64>() * self.fresh.capacity()
    }

    /// Puts all values among the ranges.
    fn settle(&mut self) {
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.sort_unstable();
        if let (Some(&least), Some(&greatest)) = (fresh.first(), fresh.last()) {
            self.extend((least, greatest));
        }
        let shifted = fresh.iter().map(|integer| (integer >> self.shift, 1));
        let shifted = joined(shifted);
        let counted = self.take_counts();
        self.take_ranges(merged(counted, shifted));
        fresh.clear();
        self.fresh = fresh;
    }

    fn extend(&mut self, (least, greatest): (i64, i64)) {
        self.extremes = Some(match self.extremes {
            Some((low, high)) => (low.min(least), high.max(greatest)),
            None => (least, greatest),
        });
    }

    /// Adds ranges with as many bits, in order.
    fn take_ranges(&mut self, more: Vec<(i64, u64)>) {
        self.ranges = merged(std::mem::take(&mut self.ranges), more);
        while self.ranges.len() > RANGES && self.shift < SHIFT_MAX {
            self.coarsen(self.shift + 1);
        }
    }

    fn coarsen(&mut self, shift: u32) {
        let more = shift - self.shift;
        let ranges = std::mem::take(&mut self.ranges).into_iter();
        self.ranges = joined(ranges.map(|(integer, count)| (integer >> more, count)));
        self.shift = shift;
    }

    pub(crate) fn merge(&mut self, mut from: Histogram) {
        self.settle();
        from.settle();
        let Some(extremes) = from.extremes else {
            return;
        };
        self.extend(extremes);
        let shift = self.shift.max(from.shift);
        self.coarsen(shift);
        from.coarsen(shift);
        self.take_ranges(from.ranges);
    }

    fn settled(&self) -> Cow<'_, Histogram> {
        match self.fresh.is_empty() && self.counts.is_empty() && self.few.len() == 0 {
            true => Cow::Borrowed(self),
            false => {
                let mut settled = self.clone();
                settled.settle();
                Cow::Owned(settled)
            }
        }
    }

    /// How many values there are.
    pub(crate) fn count(&self) -> u64 {
        let counts = self.ranges.iter().map(|(_, count)| *count);
        let counts = counts.chain(self.counts.iter().map(|count| u64::from(*count)));
        let counts = counts.chain(self.few.iter().map(|(_, count)| u64::from(count)));
        counts.fold(self.fresh.len() as u64, u64::saturating_add)
    }

    /// The value at a place in the order, and the next one, the last one at most: exactly, or as far as ranges tell.
    ///
    /// # Panics
    /// If there are no values.
    pub(crate) fn at(&self, place: u64) -> [f64; 2] {
        let settled = self.settled();
        let last = settled.count().saturating_sub(1);
        [place.min(last), place.saturating_add(1).min(last)].map(|place| settled.nth(place))
    }

    fn nth(&self, place: u64) -> f64 {
        let (least, greatest) = self.extremes.expect("there are values");
        let mut before = 0_u64;
        for &(integer, count) in &self.ranges {
            if place < before.saturating_add(count) {
                let share = ((place - before) as f64 + 0.5) / count as f64;
                return self
                    .within(integer, share)
                    .clamp_to(value(least), value(greatest));
            }
            before = before.saturating_add(count);
        }
        value(greatest)
    }

    /// Between which two values the one at a place lies: twice the same if each value is known.
    ///
    /// # Panics
    /// If there are no values.
    pub(crate) fn bounds(&self, place: u64) -> [f64; 2] {
        let settled = self.settled();
        let mut before = 0_u64;
        let found = settled.ranges.iter().find(|(_, count)| {
            before = before.saturating_add(*count);
            place < before
        });
        let (integer, _) = found.or(settled.ranges.last()).expect("there are values");
        let (least, greatest) = settled.extremes.expect("there are values");
        let first = integer << settled.shift;
        let last = first + ((1_i64 << settled.shift) - 1);
        [first.max(least), last.min(greatest)].map(value)
    }

    /// The value at a share of a range.
    fn within(&self, integer: i64, share: f64) -> f64 {
        let first = integer << self.shift;
        let last = first + ((1_i64 << self.shift) - 1);
        let (low, high) = (value(first), value(last));
        match () {
            () if self.shift == 0 || !low.is_finite() && high != f64::NEG_INFINITY => low,
            () if !high.is_finite() => high,
            () => low + (high - low) * share,
        }
    }

    /// Its bytes; none if it has no values.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let settled = self.settled();
        let Some((least, greatest)) = settled.extremes else {
            return Vec::new();
        };
        let mut bytes = Vec::with_capacity(24 + 16 * settled.ranges.len());
        for number in [i64::from(settled.shift), least, greatest] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for (integer, count) in &settled.ranges {
            bytes.extend_from_slice(&integer.to_le_bytes());
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        bytes
    }

    /// # Errors
    /// What is wrong with the bytes.
    pub(crate) fn decode(mut bytes: &[u8]) -> Result<Histogram, &'static str> {
        const WRONG: &str = "a histogram's ranges aren't in order";
        if bytes.is_empty() {
            return Ok(Histogram::default());
        }
        let mut number = || take_u64(&mut bytes).map(u64::cast_signed);
        let (shift, least, greatest) = (number()?, number()?, number()?);
        let shift = u32::try_from(shift)
            .ok()
            .filter(|shift| *shift <= SHIFT_MAX);
        let shift = shift.ok_or("a histogram's ranges are too wide")?;
        if !bytes.len().is_multiple_of(16) {
            return Err("a sketch is cut short");
        }
        let pairs = bytes.as_chunks::<8>().0.chunks_exact(2);
        let ranges: Vec<_> = pairs
            .map(|pair| (i64::from_le_bytes(pair[0]), u64::from_le_bytes(pair[1])))
            .collect();
        let are_in_order = ranges.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let are_counted = ranges.iter().all(|(_, count)| *count > 0);
        let ends = ranges.first().zip(ranges.last());
        let has_ends = ends.is_some_and(|((first, _), (last, _))| {
            (*first, *last) == (least >> shift, greatest >> shift) && least <= greatest
        });
        let is_small = ranges.len() <= RANGES || shift == SHIFT_MAX;
        match are_in_order && are_counted && has_ends && is_small {
            true => Ok(Histogram {
                shift,
                ranges,
                extremes: Some((least, greatest)),
                ..Histogram::default()
            }),
            false => Err(WRONG),
        }
    }

    /// How many values lie in each of `N` parts of the same width between the least and the greatest one, as far as ranges
    /// tell; `None` if these are one value or not finite.
    pub(crate) fn parts<const N: usize>(&self) -> Option<[u64; N]> {
        let settled = self.settled();
        let (least, greatest) = settled.extremes?;
        let (low, high) = (value(least), value(greatest));
        let width = high - low;
        if width == 0.0 || !width.is_finite() {
            return None;
        }
        let mut parts = [0_u64; N];
        for &(integer, count) in &settled.ranges {
            let middle = settled.within(integer, 0.5).clamp_to(low, high);
            let part = ((middle - low) / width * N as f64) as usize;
            let part = &mut parts[part.min(N - 1)];
            *part = part.saturating_add(count);
        }
        Some(parts)
    }

    /// Whether each value is known, not only its range.
    pub(crate) fn is_exact(&self) -> bool {
        self.settled().shift == 0
    }
}

trait ClampTo {
    /// As `clamp`, which knows no order of nan.
    fn clamp_to(self, low: f64, high: f64) -> f64;
}

impl ClampTo for f64 {
    fn clamp_to(self, low: f64, high: f64) -> f64 {
        if self < low {
            return low;
        }
        if self > high { high } else { self }
    }
}

/// Ranges in order, with those of the same integers as one.
fn joined(ranges: impl Iterator<Item = (i64, u64)>) -> Vec<(i64, u64)> {
    let mut joined: Vec<(i64, u64)> = Vec::new();
    for (integer, count) in ranges {
        match joined.last_mut() {
            Some((last, sum)) if *last == integer => *sum = sum.saturating_add(count),
            _ => joined.push((integer, count)),
        }
    }
    joined
}

/// All ranges of two lists in order.
fn merged(one: Vec<(i64, u64)>, two: Vec<(i64, u64)>) -> Vec<(i64, u64)> {
    let mut one = one.into_iter().peekable();
    let mut two = two.into_iter().peekable();
    joined(std::iter::from_fn(|| match (one.peek(), two.peek()) {
        (Some((first, _)), Some((second, _))) if first <= second => one.next(),
        (Some(_), None) => one.next(),
        _ => two.next(),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[f64]) -> Histogram {
        let mut histogram = Histogram::default();
        let integers = values.iter().map(|value| integer(*value));
        integers.for_each(|integer| histogram.add(integer));
        histogram
    }

    #[test]
    fn integers_have_the_order_of_values() {
        let ordered = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -1.0,
            -f64::MIN_POSITIVE,
            -5e-324,
            0.0,
            5e-324,
            1.0,
            1.5,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        for (one, two) in ordered.iter().zip(&ordered[1..]) {
            assert!(integer(*one) < integer(*two), "{one} {two}");
        }
        assert_eq!(integer(-0.0), integer(0.0));
        assert_eq!(integer(-f64::NAN), integer(f64::NAN));
        for one in &ordered[..12] {
            assert_eq!(value(integer(*one)), *one);
        }
    }

    /// Values that aren't finite stay what they are, whatever the ranges.
    #[test]
    fn infinities_are_ranges_of_their_own() {
        let mut values: Vec<f64> = (0..5000).map(|n| f64::from(n).powi(7) - 1e20).collect();
        values.extend([
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            f64::MAX,
            f64::MIN,
        ]);
        let histogram = of(&values);
        assert!(!histogram.is_exact());
        let last = histogram.count() - 1;
        assert_eq!(histogram.at(0)[0], f64::NEG_INFINITY);
        assert!(histogram.at(last)[0].is_nan());
        assert_eq!(histogram.at(last - 1)[0], f64::INFINITY);
        assert!(histogram.at(last - 2)[0].is_finite() && histogram.at(1)[0].is_finite());
    }

    fn values() -> impl Strategy<Value = Vec<f64>> {
        let value = prop_oneof![
            6 => (-2000..2000_i32).prop_map(|n| f64::from(n) / 4.0),
            3 => -1e9..1e9_f64,
            1 => any::<f64>(),
        ];
        prop::collection::vec(value, 1..3000)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

        /// The same bytes come of any order and any parts, and they are read back.
        #[test]
        fn it_hangs_on_the_values_alone(values in values(), cut in any::<prop::sample::Index>(), seed: u64) {
            let want = of(&values).encode();
            let mut mixed = values.clone();
            // A shuffle that the seed decides.
            let mut state = seed | 1;
            for at in (1..mixed.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                mixed.swap(at, (state >> 33) as usize % (at + 1));
            }
            let (one, two) = mixed.split_at(cut.index(mixed.len()));
            let mut merged = of(two);
            merged.merge(of(one));
            prop_assert_eq!(&merged.encode(), &want);
            prop_assert_eq!(&Histogram::decode(&want).unwrap().encode(), &want);
            prop_assert_eq!(merged.count(), values.len() as u64);
        }

        /// Values that have counts are counted as if all came at once, also when sketches are merged.
        #[test]
        fn counts_change_nothing(
            dense in prop::collection::vec(10_000..90_000_i32, 2_000..8_000),
            late in values(),
            cut in any::<prop::sample::Index>(),
        ) {
            let dense = dense.into_iter().map(|n| f64::from(n) / 100.0);
            let far = late.iter().map(|value| value * 1e-9);
            let dense: Vec<f64> = far.chain(dense).collect();
            prop_assert!(!of(&dense).counts.is_empty());
            let late = &late[..cut.index(late.len())];
            let values = [&dense[..], late, &dense[..500]].concat();
            let mut want = Histogram {
                fresh: values.iter().map(|value| integer(*value)).collect(),
                ..Histogram::default()
            };
            want.settle();
            prop_assert_eq!(of(&values).encode(), want.encode());
            let mut merged = of(&dense);
            merged.merge(of(late));
            dense[..500].iter().for_each(|value| merged.add(integer(*value)));
            prop_assert_eq!(merged.encode(), want.encode());
        }

        /// Each value is found within a 128th, and exactly where there are few.
        #[test]
        fn values_are_found(mut values in values(), place in any::<prop::sample::Index>()) {
            let histogram = of(&values);
            values.sort_by_key(|value| integer(*value));
            let place = place.index(values.len());
            let want = values[place];
            let [got, _] = histogram.at(place as u64);
            let mut distinct: Vec<i64> = values.iter().map(|value| integer(*value)).collect();
            distinct.dedup();
            if distinct.len() <= RANGES {
                prop_assert!(integer(got) == integer(want));
            } else {
                prop_assert!((got - want).abs() <= want.abs() / 128.0 + f64::MIN_POSITIVE, "{} {}", got, want);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(histogram) = Histogram::decode(&bytes) {
                prop_assert_eq!(histogram.encode(), bytes);
            }
        }
    }

    /// What docs/query.md says: within a 128th of the value, and half a hundredth of the rank.
    #[test]
    fn ranks_are_close() {
        let mut state = 1_u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        let mut normal =
            || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        let shapes: [(&str, Vec<f64>); 4] = [
            (
                "normal around 100",
                (0..200_000).map(|_| 100.0 + normal()).collect(),
            ),
            ("normal around 0", (0..200_000).map(|_| normal()).collect()),
            (
                "lognormal",
                (0..200_000).map(|_| (2.0 * normal()).exp()).collect(),
            ),
            (
                "cubes",
                (0..200_000).map(|n| f64::from(n).powi(3)).collect(),
            ),
        ];
        for (name, mut values) in shapes {
            let histogram = of(&values);
            values.sort_by(f64::total_cmp);
            for percent in [1, 5, 25, 50, 75, 95, 99] {
                let place = (values.len() - 1) * percent / 100;
                let [got, _] = histogram.at(place as u64);
                let rank = values.partition_point(|value| *value < got);
                let off = rank.abs_diff(place) as f64 / values.len() as f64;
                assert!(off < 0.005, "{name} p{percent}: {got}, rank off by {off}");
                let far = (got - values[place]).abs() / values[place].abs();
                assert!(far <= 1.0 / 128.0, "{name} p{percent}: {got}, off by {far}");
            }
        }
    }
}
