//! The values of a group, each as often as it is there: what exact percentiles, `distinct` and `mode` are found in.
//!
//! A value is 64 bits, its *digest*, from which it comes back: a number at the scale that all numbers of the column have in
//! this table, a text of up to 7 bytes, or the number of a longer one among the table's texts. Few that repeat are counted
//! in a small hash table. Others are appended, and looked at again from time to time: where they repeat after all, they are
//! counted. Numbers that have no digest are groups of their own (`spill::exact`).

use ringfold_read::internals::prefetch;

use crate::aggregate::lanes::Kept;
use crate::aggregate::state::{Argument, Digest, Outcome, State, StateColumn, Value};
use crate::decimal::number::{Exact, Number};
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;
use crate::sketch::few::Few;

/// Values that are counted at first, however seldom they repeat.
const FEW_MIN: usize = 32;
/// Values are counted if there are so many of each on average: a count takes more memory than a value.
const REPEATED: u64 = 4;
/// From so many appended values on it is asked how often they repeat.
const ASKED_MIN: usize = if cfg!(test) { 64 } else { 4096 };
/// Values that are asked.
const SAMPLE: usize = if cfg!(test) { 32 } else { 1024 };
/// The most values of a chunk, beyond which no chunk is copied to a larger one, and the most of any.
const GROWN: usize = 1024;
const CHUNK_MAX: usize = 1 << 16;

/// The digest of a number in units of the table's scale; digests have the order of numbers.
pub(crate) fn of_number(number: i64) -> Option<u64> {
    (number != i64::MIN).then_some((number ^ i64::MIN).cast_unsigned())
}

/// The number of a digest.
pub(crate) fn number(digest: u64) -> i64 {
    digest.cast_signed() ^ i64::MIN
}

/// The most bytes of a text that is its own digest.
const SHORT_MAX: usize = 7;
/// Where shorter texts have their length, others have this.
const LONG: u64 = 0xff;

/// The digest of a short text; digests have the order of texts.
pub(crate) fn of_text(text: &[u8]) -> Option<u64> {
    let len = text.len();
    let bytes = match len {
        0 => 0,
        // Bytes that are read twice are the same at the same place.
        1..=3 => {
            let byte = |at: usize| u64::from(text[at]) << (56 - 8 * at);
            byte(0) | byte(len / 2) | byte(len - 1)
        }
        4..=SHORT_MAX => {
            let four = |at: usize| {
                text[at..]
                    .first_chunk()
                    .map_or(0, |four| u32::from_be_bytes(*four))
            };
            u64::from(four(0)) << 32 | u64::from(four(len - 4)) << (64 - 8 * len)
        }
        _ => return None,
    };
    Some(bytes | len as u64)
}

/// The digest of a text by its number among the table's.
pub(crate) fn of_long(text: u32) -> u64 {
    u64::from(text) << 8 | LONG
}

/// What a text's digest says.
pub(crate) enum Text {
    Short([u8; 8], usize),
    /// The number of a text.
    Long(u32),
}

pub(crate) fn text(digest: u64) -> Text {
    match digest & LONG {
        LONG => Text::Long((digest >> 8) as u32),
        len => Text::Short(digest.to_be_bytes(), len as usize),
    }
}

/// Bytes that name an aggregate in the part of a value. None of them is zero.
pub(crate) const NAME: usize = 2;
const BASE: usize = 255;

pub(crate) fn name(aggregate: usize) -> [u8; NAME] {
    [1 + aggregate / BASE % BASE, 1 + aggregate % BASE].map(|byte| byte as u8)
}

/// Appends the part of a number that is a group of its own to the parts of its group's key.
pub(crate) fn push_own(key: &mut Vec<u8>, aggregate: usize, number: &Number) {
    let start = key.len();
    key.extend_from_slice(&[0; 4]);
    key.extend_from_slice(&name(aggregate));
    number.push_ordered(key);
    let length = (key.len() - start - 4) as u32;
    key[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

#[derive(Debug, Default)]
pub(crate) struct Bag {
    /// How many values there are, with those that are groups of their own; of such a group, how often its value is there.
    count: u64,
    few: Few<u64>,
    /// Whether values are appended.
    is_appended: bool,
    /// Those that were appended last, and all before.
    last: Vec<u64>,
    chunks: Vec<Vec<u64>>,
}

/// All digests of a bag.
pub(crate) enum Digests {
    /// Each as often as it is there, in no order.
    Each(Vec<u64>),
    /// In order, and how often each is there.
    Counted(Vec<(u64, u64)>),
}

impl Bag {
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether all values are here: none is a group of its own.
    pub(crate) fn is_whole(&self) -> bool {
        let counted = self.few.iter().map(|(_, times)| times).sum::<u64>();
        counted + self.appended() as u64 == self.count
    }

    pub(crate) fn digests(&self) -> Digests {
        let counted: u64 = self.few.iter().map(|(_, times)| times).sum();
        let appended = self.appended();
        if counted > (appended.max(ASKED_MIN) as u64) {
            return Digests::Counted(self.counted());
        }
        let mut all = Vec::with_capacity(appended + counted as usize);
        self.chunks
            .iter()
            .chain([&self.last])
            .for_each(|chunk| all.extend_from_slice(chunk));
        for (digest, times) in self.few.iter() {
            all.extend((0..times).map(|_| digest));
        }
        Digests::Each(all)
    }

    /// In order, and how often each is there.
    pub(crate) fn counted(&self) -> Vec<(u64, u64)> {
        let mut all: Vec<u64> = Vec::with_capacity(self.appended());
        self.chunks
            .iter()
            .chain([&self.last])
            .for_each(|chunk| all.extend_from_slice(chunk));
        all.sort_unstable();
        let mut counted: Vec<(u64, u64)> = all
            .chunk_by(|one, two| one == two)
            .map(|same| (same[0], same.len() as u64))
            .collect();
        if self.few.len() > 0 {
            counted.extend(self.few.iter());
            counted.sort_unstable();
            counted.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                if is_same {
                    kept.1 += next.1;
                }
                is_same
            });
        }
        counted
    }

    /// Puts another digest in place of each, or takes those away of which there is none, with how often they are there.
    pub(crate) fn replace(
        &mut self,
        other: impl Fn(u64) -> Option<u64>,
        mut without: impl FnMut(u64, u64),
    ) {
        for chunk in self.chunks.iter_mut().chain([&mut self.last]) {
            chunk.retain_mut(|digest| match other(*digest) {
                Some(other) => {
                    *digest = other;
                    true
                }
                None => {
                    without(*digest, 1);
                    false
                }
            });
        }
        for (digest, times) in std::mem::take(&mut self.few).iter() {
            match other(digest) {
                Some(other) => self.few.insert(other, times),
                None => without(digest, times),
            }
        }
    }

    fn appended(&self) -> usize {
        self.last.len() + self.chunks.iter().map(Vec::len).sum::<usize>()
    }

    fn count_times(&mut self, digest: u64, times: u64) {
        match self.few.get_mut(digest) {
            Some(count) => *count += times,
            None => self.few.insert(digest, times),
        }
    }

    /// Makes room for more appended values, or counts all if they repeat.
    #[cold]
    fn grow(&mut self) {
        let len = self.appended();
        if len >= ASKED_MIN && self.repeats(len) {
            for chunk in std::mem::take(&mut self.chunks)
                .into_iter()
                .chain([std::mem::take(&mut self.last)])
            {
                chunk
                    .into_iter()
                    .for_each(|digest| self.count_times(digest, 1));
            }
            self.is_appended = false;
            return;
        }
        if self.last.capacity() < GROWN {
            self.last.reserve_exact(self.last.len().max(FEW_MIN));
            return;
        }
        let chunk = Vec::with_capacity(len.min(CHUNK_MAX));
        self.chunks.push(std::mem::replace(&mut self.last, chunk));
    }

    /// Whether there are enough of each different one of so many appended values, as far as a sample tells.
    fn repeats(&self, len: usize) -> bool {
        // Neighbours may be alike, so the sample comes from everywhere.
        let all = self.chunks.iter().chain([&self.last]).flatten();
        let mut sample: Vec<u64> = all.step_by(len / SAMPLE).copied().collect();
        let taken = sample.len();
        sample.sort_unstable();
        sample.dedup();
        let same = taken - sample.len();
        // A pair of the sample is the same as often as there are different ones.
        let different = match same {
            0 => return false,
            same if 2 * same > taken => sample.len(),
            same => taken * taken / (2 * same),
        };
        len as u64 >= REPEATED * different as u64
    }
}

impl State for Bag {
    const ARGUMENT: Argument = Argument::Bytes;
    const DIGEST: Option<Digest> = Some(Digest::Values);
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(Rule::Values)];

    fn update(&mut self, value: &Value<'_>) {
        unreachable!("{value:?} without its digest");
    }

    fn add(&mut self, digest: u64) {
        while !self.note(digest) {
            if self.is_appended {
                self.grow();
                continue;
            }
            let different = self.few.len();
            if different < FEW_MIN || self.count >= REPEATED * different as u64 {
                self.few.insert(digest, 0);
            } else {
                self.is_appended = true;
            }
        }
    }

    #[inline]
    fn note(&mut self, digest: u64) -> bool {
        if self.is_appended {
            if self.last.len() == self.last.capacity() {
                return false;
            }
            self.last.push(digest);
        } else {
            let Some(times) = self.few.get_mut(digest) else {
                return false;
            };
            *times += 1;
        }
        self.count += 1;
        true
    }

    #[inline]
    fn prefetch(&self, digest: u64) {
        match self.is_appended {
            true => prefetch::into_l1(self.last.as_ptr().wrapping_add(self.last.len()).cast()),
            false => self.few.prefetch(digest),
        }
    }

    fn absorb(&mut self, kept: &Kept) {
        self.count += kept.known;
    }

    fn merge(&mut self, mut from: Bag) {
        self.count += from.count;
        if from.few.len() > self.few.len() {
            std::mem::swap(&mut self.few, &mut from.few);
        }
        from.few
            .iter()
            .for_each(|(digest, times)| self.count_times(digest, times));
        if from.last.len() > self.last.len() {
            std::mem::swap(&mut self.last, &mut from.last);
        }
        self.chunks.append(&mut from.chunks);
        if !from.last.is_empty() {
            from.last.shrink_to_fit();
            self.chunks.push(from.last);
        }
        self.is_appended |= from.is_appended;
    }

    fn heap(&self) -> usize {
        let chunks = self.chunks.iter().map(Vec::capacity).sum::<usize>();
        let lists = size_of::<Vec<u64>>() * self.chunks.capacity();
        lists + self.few.bytes() + size_of::<u64>() * (chunks + self.last.capacity())
    }

    fn finish(&self, _: u32) -> Outcome<'_> {
        Outcome::Number(Exact::small(self.count.into(), 0))
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_count(self.count);
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        Ok(Bag {
            count: from[0].count(row),
            ..Bag::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_are_their_digests(one in prop::collection::vec(0..3_u8, 0..8), two in prop::collection::vec(any::<u8>(), 0..8)) {
            let digests = [&one, &two].map(|bytes| of_text(bytes).unwrap());
            prop_assert_eq!(digests[0].cmp(&digests[1]), one.cmp(&two));
            for (bytes, digest) in [(&one, digests[0]), (&two, digests[1])] {
                let Text::Short(found, len) = text(digest) else {
                    panic!("a long text");
                };
                prop_assert_eq!(&found[..len], &bytes[..]);
            }
        }

        /// Whatever is counted or appended, and however it is divided.
        #[test]
        fn a_bag_is_a_multiset(
            values in prop::collection::vec(prop_oneof![3 => 1..4_u64, 3 => 1..60_u64, 1 => 1..u64::MAX], 0..600),
            cut in 0..600_usize,
        ) {
            let of = |values: &[u64]| {
                let mut bag = Bag::default();
                for &value in values {
                    bag.prefetch(value);
                    bag.add(value);
                }
                bag
            };
            let (one, two) = values.split_at(cut.min(values.len()));
            let mut bag = of(one);
            bag.merge(of(two));
            let mut want = BTreeMap::new();
            values.iter().for_each(|value| *want.entry(*value).or_insert(0) += 1);
            let want: Vec<(u64, u64)> = want.into_iter().collect();
            prop_assert_eq!(bag.count(), values.len() as u64);
            prop_assert_eq!(&bag.counted(), &want);
            match bag.digests() {
                Digests::Counted(got) => prop_assert_eq!(got, want),
                Digests::Each(mut got) => {
                    let mut values = values.clone();
                    values.sort_unstable();
                    got.sort_unstable();
                    prop_assert_eq!(got, values);
                }
            }
        }
    }
}
