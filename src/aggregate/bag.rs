//! The values of groups, each as often as it is there: what exact percentiles, `distinct` and `mode` are found in.
//!
//! A value is its [digest](crate::aggregate::digest). A bag has the values of many groups, as *entries*: the group's number
//! in the upper bits, and the digest in the lower ones. If a digest doesn't fit these, there are more bags of fewer groups.
//! Few entries that repeat are counted in a small hash table. Others are appended, and looked at again from time to time:
//! where they repeat after all, they are counted. In the end those of a group are put side by side.

use std::any::Any;

use rayon::iter::Either;
use ringfold_read::internals::prefetch;

use crate::aggregate::digest::ZERO;
use crate::aggregate::lanes::Kept;
use crate::aggregate::share::Share;
use crate::aggregate::state::{Outcome, Ratio, States, Value};
use crate::decimal::number::Exact;
use crate::partial::column::{ColumnView, Gathered as Column};
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

/// How entries are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    /// Bits of a digest; the others are of a group among those of a bag.
    bits: u32,
}

impl Form {
    /// 1,024 groups a bag: numbers of 15 digits, and all texts.
    const WIDE: Form = Form { bits: 54 };
    /// Bits more where a digest doesn't fit. From the first form they lead to a group a bag, which any digest fits.
    const MORE: u32 = 5;

    /// What is taken from a digest to have as many below the middle as above.
    fn bias(self) -> u64 {
        ZERO - (1 << (self.bits - 1))
    }

    /// The bag of a group.
    #[inline(always)]
    fn bag(self, group: u32) -> usize {
        (group >> (u64::BITS - self.bits)) as usize
    }

    /// The part of a group in its entries.
    #[inline(always)]
    fn part(self, group: u32) -> u64 {
        // All bits may be the digest's.
        u64::from(group) << (self.bits - 1) << 1
    }

    /// The digest's part, if it fits. Zero is no entry.
    #[inline(always)]
    fn value(self, digest: u64) -> Option<u64> {
        let value = digest.wrapping_sub(self.bias());
        let most = u64::MAX >> (u64::BITS - self.bits);
        (value.wrapping_sub(1) < most).then_some(value)
    }

    /// The same of an entry.
    #[inline(always)]
    fn value_of(self, entry: u64) -> u64 {
        entry & u64::MAX >> (u64::BITS - self.bits)
    }

    fn digest(self, entry: u64) -> u64 {
        self.value_of(entry).wrapping_add(self.bias())
    }

    /// The group of an entry of a bag.
    #[inline(always)]
    fn group(self, bag: usize, entry: u64) -> usize {
        bag << (u64::BITS - self.bits) | (entry >> (self.bits - 1) >> 1) as usize
    }
}

/// The values of all groups.
pub(crate) struct Bags {
    form: Form,
    /// Of each group, how many values are groups of their own; of such a group, how often its value is there.
    own: Vec<u64>,
    bags: Vec<Bag>,
    /// What bags become in the end.
    gathered: Vec<Gathered>,
}

impl Default for Bags {
    fn default() -> Bags {
        Bags {
            form: Form::WIDE,
            own: Vec::new(),
            bags: Vec::new(),
            gathered: Vec::new(),
        }
    }
}

impl Bags {
    /// Puts the entries of each group side by side. No more are added.
    pub(crate) fn gather(&mut self) {
        let form = self.form;
        let bags = std::mem::take(&mut self.bags).into_iter().enumerate();
        let gathered = bags.map(|(number, bag)| {
            let groups = self.own.len() - form.group(number, 0);
            bag.gathered(form, groups.min(1 << (u64::BITS - form.bits)))
        });
        self.gathered.extend(gathered);
    }

    /// Those of a group, once they are side by side.
    fn entries(&self, group: u32) -> Entries<&[u64], &[(u64, u64)]> {
        let among = group as usize % (1 << (u64::BITS - self.form.bits));
        let Some(Gathered { all, starts }) = self.gathered.get(self.form.bag(group)) else {
            return Entries::Each(&[]);
        };
        let own = starts[among]..starts[among + 1];
        match all {
            Entries::Each(all) => Entries::Each(&all[own]),
            Entries::Counted(all) => Entries::Counted(&all[own]),
        }
    }

    /// A copy of the values of a group but for those that are groups of their own.
    pub(crate) fn values(&self, group: u32) -> Values {
        Values {
            form: self.form,
            is_sorted: false,
            all: match self.entries(group) {
                Entries::Each(all) => Entries::Each(all.to_vec()),
                Entries::Counted(all) => Entries::Counted(all.to_vec()),
            },
        }
    }

    /// How many of its values are groups of their own; of such a group, how often its value is there.
    pub(crate) fn own(&self, group: u32) -> u64 {
        self.own[group as usize]
    }

    /// Puts another digest in place of each, or takes those away of which there is none, with their group and how often
    /// they are there.
    pub(crate) fn replace(
        &mut self,
        other: impl Fn(u64) -> Option<u64>,
        mut without: impl FnMut(u32, u64, u64),
    ) {
        let (form, mut rest) = (self.form, Vec::new());
        for (number, bag) in self.bags.iter_mut().enumerate() {
            let mut replaced = |entry: u64, times| {
                let (group, digest) = (form.group(number, entry) as u32, form.digest(entry));
                let Some(other) = other(digest) else {
                    without(group, digest, times);
                    return None;
                };
                let value = form.value(other);
                if value.is_none() {
                    rest.push((group, other, times));
                }
                Some(entry - form.value_of(entry) + value?)
            };
            for chunk in bag.chunks.iter_mut().chain([&mut bag.last]) {
                chunk.retain_mut(|entry| {
                    let new = replaced(*entry, 1);
                    *entry = new.unwrap_or_default();
                    new.is_some()
                });
            }
            for (entry, times) in std::mem::take(&mut bag.few).iter() {
                bag.counted -= times;
                if let Some(new) = replaced(entry, times) {
                    bag.count(new, times);
                }
            }
        }
        for (group, digest, times) in rest {
            self.add_times(group, digest, times);
        }
    }

    fn count(&self, group: usize) -> u64 {
        self.own[group] + self.entries(group as u32).count()
    }

    fn add_times(&mut self, group: u32, digest: u64, times: u64) {
        let entry = self.entry(group, digest);
        let bag = &mut self.bags[self.form.bag(group)];
        match times {
            1 => bag.add(entry),
            _ => bag.count(entry, times),
        }
    }

    /// The entry of a digest, which fits then.
    fn entry(&mut self, group: u32, digest: u64) -> u64 {
        loop {
            if let Some(value) = self.form.value(digest) {
                return self.form.part(group) | value;
            }
            let bits = (self.form.bits + Form::MORE).min(u64::BITS);
            assert!(bits > self.form.bits, "zero is no digest");
            self.divide(Form { bits });
        }
    }

    /// Divides bags into such of fewer groups.
    #[cold]
    fn divide(&mut self, form: Form) {
        if form == self.form {
            return;
        }
        let before = std::mem::replace(&mut self.form, form);
        let bags = std::mem::take(&mut self.bags);
        let groups = self.own.len();
        self.bags
            .resize_with(groups.div_ceil(1 << (u64::BITS - form.bits)), Bag::default);
        for (number, bag) in bags.into_iter().enumerate() {
            bag.each(|entry, times| {
                let (group, digest) = (before.group(number, entry), before.digest(entry));
                self.add_times(group as u32, digest, times);
            });
        }
    }
}

impl States for Bags {
    fn push(&mut self) {
        let group = self.own.len() as u32;
        self.own.push(0);
        if self.form.bag(group) == self.bags.len() {
            self.bags.push(Bag::default());
        }
    }

    fn update(&mut self, _: usize, value: &Value<'_>) -> isize {
        unreachable!("{value:?} without its digest");
    }

    fn add(&mut self, group: usize, digest: u64) -> isize {
        // Only the group's bag grows, or all are divided.
        let some = (self.form.value(digest)).map(|_| self.form.bag(group as u32));
        let heap = |bags: &Bags| match some {
            Some(bag) => bags.bags[bag].heap(),
            None => bags.bags.iter().map(Bag::heap).sum(),
        };
        let before = heap(self);
        self.add_times(group as u32, digest, 1);
        heap(self).cast_signed() - before.cast_signed()
    }

    #[inline]
    fn note(&mut self, group: usize, digest: u64) -> bool {
        let group = group as u32;
        let Some(value) = self.form.value(digest) else {
            return false;
        };
        let bag = &mut self.bags[self.form.bag(group)];
        bag.note(self.form.part(group) | value)
    }

    #[inline]
    fn prefetch_for(&self, group: usize, digest: u64) {
        let group = group as u32;
        let value = self.form.value(digest).unwrap_or_default();
        self.bags[self.form.bag(group)].prefetch(self.form.part(group) | value);
    }

    fn absorb(&mut self, group: usize, kept: &Kept) {
        self.own[group] += kept.known;
    }

    fn prefetch(&self, group: usize) {
        prefetch::into_l1(self.own.as_ptr().wrapping_add(group).cast());
    }

    fn merge(&mut self, from: Box<dyn States>, into: &[usize]) {
        let from: Box<dyn Any> = from;
        let mut from = from.downcast::<Bags>().expect("of the same aggregate");
        let bits = self.form.bits.max(from.form.bits);
        self.divide(Form { bits });
        from.divide(Form { bits });
        for (own, &group) in from.own.iter().zip(into) {
            self.own[group] += own;
        }
        let form = self.form;
        for (number, bag) in from.bags.into_iter().enumerate() {
            bag.each(|entry, times| {
                let group = into[form.group(number, entry)] as u32;
                let entry = form.part(group) | form.value_of(entry);
                let bag = &mut self.bags[form.bag(group)];
                match times {
                    1 => bag.append(entry),
                    _ => bag.count(entry, times),
                }
            });
        }
    }

    fn finish(&self, group: usize, _: Option<Share>, _: u32) -> Outcome<'_> {
        Outcome::Number(Exact::small(self.count(group).into(), 0))
    }

    fn ratio(&self, group: usize) -> Option<Ratio> {
        Some(Ratio::number(self.count(group), 0))
    }

    fn encode(&self, group: usize, to: &mut [Column]) {
        to[0].push_count(self.count(group));
    }

    fn push_decoded(&mut self, from: &[ColumnView<'_>], row: usize) -> Result<(), &'static str> {
        self.push();
        self.own.pop();
        self.own.push(from[0].count(row));
        Ok(())
    }

    fn bytes(&self) -> usize {
        size_of::<u64>() * self.own.capacity() + size_of::<Bag>() * self.bags.capacity()
    }

    /// What it takes to look at its values.
    fn heap_of(&self, group: usize) -> usize {
        size_of::<(u64, u64)>() * self.entries(group as u32).len()
    }
}

/// The values of some groups.
#[derive(Debug, Default)]
struct Bag {
    /// How many are counted, and the counts.
    counted: u64,
    few: Few<u64>,
    /// Whether values are appended.
    is_appended: bool,
    /// Those that were appended last, and all before.
    last: Vec<u64>,
    chunks: Vec<Vec<u64>>,
}

/// Entries, those of a group side by side.
struct Gathered {
    all: Entries<Vec<u64>, Vec<(u64, u64)>>,
    /// Where those of each group begin, and where the last ones end.
    starts: Vec<usize>,
}

enum Entries<E, C> {
    /// Each as often as it is there, in no order.
    Each(E),
    /// How often each is there, in order.
    Counted(C),
}

impl<E: AsRef<[u64]>, C: AsRef<[(u64, u64)]>> Entries<E, C> {
    /// How many values they are.
    fn count(&self) -> u64 {
        match self {
            Entries::Each(all) => all.as_ref().len() as u64,
            Entries::Counted(all) => all.as_ref().iter().map(|(_, times)| times).sum(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Entries::Each(all) => all.as_ref().len(),
            Entries::Counted(all) => all.as_ref().len(),
        }
    }
}

impl Bag {
    /// All entries of so many groups.
    fn gathered(mut self, form: Form, groups: usize) -> Gathered {
        let mut starts = vec![0; groups + 1];
        let group = |entry: u64| form.group(0, entry);
        if self.counted > self.appended().max(ASKED_MIN) as u64 {
            let chunks = self
                .chunks
                .drain(..)
                .chain([std::mem::take(&mut self.last)]);
            let chunks: Vec<Vec<u64>> = chunks.collect();
            chunks
                .iter()
                .flatten()
                .for_each(|entry| self.count(*entry, 1));
            drop(chunks);
            let mut all: Vec<(u64, u64)> = self.few.iter().collect();
            all.sort_unstable();
            (all.iter()).for_each(|(entry, _)| starts[group(*entry) + 1] += 1);
            sums(&mut starts);
            let all = Entries::Counted(all);
            return Gathered { all, starts };
        }
        for chunk in self.chunks.iter().chain([&self.last]) {
            (chunk.iter()).for_each(|entry| starts[group(*entry) + 1] += 1);
        }
        for (entry, times) in self.few.iter() {
            starts[group(entry) + 1] += times as usize;
        }
        sums(&mut starts);
        let (mut all, mut next) = (vec![0; starts[groups]], starts.clone());
        self.each(|entry, times| {
            for _ in 0..times {
                let next = &mut next[group(entry)];
                all[*next] = entry;
                *next += 1;
            }
        });
        let all = Entries::Each(all);
        Gathered { all, starts }
    }

    fn appended(&self) -> usize {
        self.last.len() + self.chunks.iter().map(Vec::len).sum::<usize>()
    }

    /// Calls `each` with all entries: with those that are counted once.
    fn each(self, mut each: impl FnMut(u64, u64)) {
        for chunk in self.chunks.into_iter().chain([self.last]) {
            chunk.into_iter().for_each(|entry| each(entry, 1));
        }
        let few = self.few.iter();
        few.for_each(|(entry, times)| each(entry, times));
    }

    fn count(&mut self, entry: u64, times: u64) {
        self.counted += times;
        match self.few.get_mut(entry) {
            Some(count) => *count += times,
            None => self.few.insert(entry, times),
        }
    }

    fn append(&mut self, entry: u64) {
        if self.last.len() == self.last.capacity() {
            self.make_room(self.appended());
        }
        self.is_appended = true;
        self.last.push(entry);
    }

    fn add(&mut self, entry: u64) {
        while !self.note(entry) {
            if self.is_appended {
                self.grow();
                continue;
            }
            let different = self.few.len();
            if different < FEW_MIN || self.counted >= REPEATED * different as u64 {
                self.few.insert(entry, 0);
            } else {
                self.is_appended = true;
            }
        }
    }

    #[inline]
    fn note(&mut self, entry: u64) -> bool {
        if self.is_appended {
            if self.last.len() == self.last.capacity() {
                return false;
            }
            self.last.push(entry);
        } else {
            let Some(times) = self.few.get_mut(entry) else {
                return false;
            };
            *times += 1;
            self.counted += 1;
        }
        true
    }

    #[inline]
    fn prefetch(&self, entry: u64) {
        match self.is_appended {
            true => prefetch::into_l1(self.last.as_ptr().wrapping_add(self.last.len()).cast()),
            false => self.few.prefetch(entry),
        }
    }

    /// Makes room for more appended values, or counts all if they repeat.
    #[cold]
    fn grow(&mut self) {
        let len = self.appended();
        if len < ASKED_MIN || !self.repeats(len) {
            return self.make_room(len);
        }
        let chunks = std::mem::take(&mut self.chunks);
        for chunk in chunks.into_iter().chain([std::mem::take(&mut self.last)]) {
            chunk.into_iter().for_each(|entry| self.count(entry, 1));
        }
        self.is_appended = false;
    }

    /// Makes room for more appended values than these.
    #[cold]
    fn make_room(&mut self, len: usize) {
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

    fn heap(&self) -> usize {
        let chunks = self.chunks.iter().map(Vec::capacity).sum::<usize>();
        let lists = size_of::<Vec<u64>>() * self.chunks.capacity();
        lists + self.few.bytes() + size_of::<u64>() * (chunks + self.last.capacity())
    }
}

/// Each different one, and how often it is there.
fn runs(sorted: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    let same = sorted.chunk_by(|one, two| one == two);
    same.map(|same| (same[0], same.len() as u64))
}

/// Makes numbers of each sums of all before and that.
fn sums(numbers: &mut [usize]) {
    for at in 1..numbers.len() {
        numbers[at] += numbers[at - 1];
    }
}

/// The values of a group.
pub(crate) struct Values {
    form: Form,
    all: Entries<Vec<u64>, Vec<(u64, u64)>>,
    is_sorted: bool,
}

impl Values {
    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.all.count()
    }

    /// Each different digest in their order, and how often it is there.
    pub(crate) fn counted(&mut self) -> impl Iterator<Item = (u64, u64)> {
        if let Entries::Each(all) = &mut self.all
            && !std::mem::replace(&mut self.is_sorted, true)
        {
            all.sort_unstable();
        }
        let form = self.form;
        let counted = match &self.all {
            Entries::Each(all) => Either::Left(runs(all)),
            Entries::Counted(all) => Either::Right(all.iter().copied()),
        };
        counted.map(move |(entry, times)| (form.digest(entry), times))
    }

    /// The digest at a place of their order, and the next one if it is wanted, else the same.
    pub(crate) fn at(&mut self, place: u64, wants_next: bool) -> [u64; 2] {
        let pair = match &mut self.all {
            Entries::Each(all) => {
                let (_, low, above) = all.select_nth_unstable(place as usize);
                let next = above.iter().min().filter(|_| wants_next);
                [*low, *next.unwrap_or(low)]
            }
            Entries::Counted(all) => [place, place + u64::from(wants_next)].map(|place| {
                let mut before = 0;
                let found = all.iter().find(|(_, times)| {
                    before += times;
                    before > place
                });
                found.map_or(0, |(entry, _)| *entry)
            }),
        };
        pair.map(|entry| self.form.digest(entry))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::aggregate::digest::{number, of_number};

    const GROUPS: usize = 3000;

    proptest! {
        /// Whatever is counted or appended, however bags are divided, and where groups are merged to.
        #[test]
        fn bags_are_multisets(
            values in prop::collection::vec(
                (
                    prop_oneof![5 => 0..4_u32, 1 => 0..GROUPS as u32],
                    prop_oneof![6 => 1..4_i64, 6 => -60..60_i64, 1 => any::<i64>(), 1 => -(1_i64 << 58)..1 << 58],
                ),
                0..900,
            ),
            narrow: bool,
            cut in 0..900_usize,
            factor in 1..3_i64,
        ) {
            let kept = |(group, number): &(u32, i64)| Some((*group, of_number(number % if narrow { 60 } else { i64::MAX })?));
            let values: Vec<(u32, u64)> = values.iter().filter_map(kept).collect();
            let of = |values: &[(u32, u64)]| {
                let mut bags = Bags::default();
                (0..GROUPS).for_each(|_| bags.push());
                let mut heap = 0;
                for &(group, digest) in values {
                    bags.prefetch_for(group as usize, digest);
                    if !bags.note(group as usize, digest) {
                        heap += bags.add(group as usize, digest);
                    }
                }
                assert_eq!(heap, bags.bags.iter().map(Bag::heap).sum::<usize>().cast_signed());
                bags
            };
            let (one, two) = values.split_at(cut.min(values.len()));
            let mut bags = of(one);
            let into: Vec<usize> = (0..GROUPS).rev().collect();
            bags.merge(Box::new(of(two)), &into);
            let other = |digest| number(digest).checked_mul(factor).and_then(of_number);
            let (mut want, mut without) = (BTreeMap::new(), Vec::new());
            let moved = two.iter().map(|(group, digest)| (into[*group as usize] as u32, *digest));
            for (group, digest) in one.iter().copied().chain(moved) {
                match other(digest) {
                    Some(other) => *want.entry((group, other)).or_insert(0) += 1,
                    None => without.push((group, digest)),
                }
            }
            let mut taken = Vec::new();
            bags.replace(other, |group, digest, times| taken.extend((0..times).map(|_| (group, digest))));
            taken.sort_unstable();
            without.sort_unstable();
            prop_assert_eq!(taken, without);
            bags.gather();
            let mut got = BTreeMap::new();
            for group in 0..GROUPS as u32 {
                let mut values = bags.values(group);
                let places: Vec<[u64; 2]> = (0..values.count()).rev().map(|place| values.at(place, place + 1 < values.count())).collect();
                let counted: Vec<(u64, u64)> = values.counted().collect();
                prop_assert!(counted.is_sorted());
                let all = counted.iter().flat_map(|(digest, times)| (0..*times).map(|_| *digest));
                let all: Vec<u64> = all.collect();
                prop_assert_eq!(bags.count(group as usize), all.len() as u64);
                for (place, pair) in places.into_iter().rev().enumerate() {
                    prop_assert_eq!(pair, [all[place], *all.get(place + 1).unwrap_or(&all[place])]);
                }
                got.extend(counted.into_iter().map(|(digest, times)| ((group, digest), times)));
            }
            prop_assert_eq!(got, want);
        }
    }
}
