//! Entries in the order of their keys: runs of entries of one size are sorted where they lie, and then merged to a list of
//! places.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use rayon::iter::Either;
use rayon::prelude::*;
use zerocopy::IntoBytes;

use crate::table::entries::{EntryRef, EntryTable, Lanes, Refused, UNIT, Unit};
use crate::table::key::KeyForm;
use crate::table::pages::Pages;

/// Where an entry is: a run or table, and an entry of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) table: usize,
    pub(crate) entry: EntryRef,
}

/// Entries of one size in the order of their keys, without the byte after each and with a zero between their parts.
pub(crate) struct EntryOrder {
    runs: Vec<Run>,
    size: Size,
    orders: Orders,
    /// The run and the number of each, if there are several runs.
    merged: Option<Vec<(u32, u32)>>,
}

/// Entries that lie side by side in their order.
struct Run {
    units: Pages<Unit>,
    used: usize,
}

/// Units of entries.
#[derive(Clone, Copy)]
struct Size {
    lanes: usize,
    key: usize,
}

/// Orders that entries are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orders {
    /// That of their keys' bytes.
    pub(crate) bytes: bool,
    /// That of their keys' numbers: each is whole and without a sign or zeros that it doesn't need.
    pub(crate) numbers: bool,
}

impl Orders {
    /// Whether that of bytes, or else that of numbers, is among them.
    pub(crate) fn have(self, of_bytes: bool) -> bool {
        if of_bytes { self.bytes } else { self.numbers }
    }

    /// What a key in these units is compared by. Of whole numbers the longer is the greater; the length is the last byte.
    #[inline(always)]
    fn rank(self, key: &[Unit]) -> Rank {
        let number = |at: usize| {
            let unit = key.get(at);
            unit.map_or(0, |unit| u128::from_be_bytes(unit.bytes()))
        };
        match self.bytes {
            true => [number(0), number(1)],
            false => [number(0).rotate_right(8), 0],
        }
    }
}

type Rank = [u128; 2];
/// The most units of a key in an order.
const KEY_UNITS: usize = size_of::<Rank>() / UNIT;

/// Adds the lanes of a key to others of it, or refuses to.
pub(crate) type Add<'a> = &'a dyn Fn(&mut [i64], &[i64]) -> bool;

impl EntryOrder {
    /// The entries of these tables, each key of which is in one of them. The keys of all must take as many units, these must be
    /// few, and no part of several may have a zero; otherwise the tables are as before. They are in the order of numbers if all
    /// keys are numbers and `may_be_numbers`, else in that of bytes.
    pub(crate) fn new(
        tables: &mut Vec<EntryTable>,
        form: KeyForm,
        may_be_numbers: bool,
    ) -> Option<EntryOrder> {
        let size = Size::of(tables, form)?;
        let mut runs = Run::all(tables);
        let rest = runs.split_off(1);
        let Run { units, used } = runs.first_mut()?;
        for Run {
            units: from,
            used: count,
        } in rest
        {
            if *used + count > units.len() {
                units.grow((*used + count).next_power_of_two());
            }
            units[*used..*used + count].copy_from_slice(&from[..count]);
            *used += count;
        }
        Some(EntryOrder::of(runs, size, form, may_be_numbers))
    }

    /// The same where some keys are in several tables: the first entry of each gets the lanes of the others. Those that `add`
    /// refuses are returned besides, with keys without the byte after them.
    pub(crate) fn merge(
        tables: &mut Vec<EntryTable>,
        form: KeyForm,
        may_be_numbers: bool,
        add: Add<'_>,
    ) -> Option<(EntryOrder, Vec<Refused>)> {
        let size = Size::of(tables, form)?;
        let mut order = EntryOrder::of(Run::all(tables), size, form, may_be_numbers);
        let mut refused = Vec::new();
        if order.runs.len() > 1 {
            let (merged, same) = order.merge_runs();
            for (first, other) in same {
                let [first, other] = [first, other].map(|(run, at)| order.place(run, at));
                let lanes = order.lanes(other).to_vec();
                if !add(order.lanes_mut(first), &lanes) {
                    refused.push((order.key(other).to_vec(), lanes));
                }
            }
            order.merged = Some(merged);
        }
        Some((order, refused))
    }

    fn of(mut runs: Vec<Run>, size: Size, form: KeyForm, may_be_numbers: bool) -> EntryOrder {
        let (prepare, sort) = size.functions().expect("a size that has them");
        let each = runs.par_iter_mut();
        let lengths = each.filter_map(|run| prepare(&mut run.units[..run.used], form));
        let lengths = lengths.reduce_with(Lengths::with);
        let are_numbers =
            form == KeyForm::One && lengths.is_some_and(|lengths| lengths.are_numbers);
        let are_alike = lengths.is_none_or(|lengths| lengths.least == lengths.most);
        let by_number = may_be_numbers && are_numbers && !are_alike && size.key == 1;
        let each = runs.par_iter_mut();
        each.for_each(|run| sort(&mut run.units[..run.used], by_number));
        EntryOrder {
            runs,
            size,
            orders: Orders {
                bytes: !by_number,
                numbers: by_number || are_numbers && are_alike,
            },
            merged: None,
        }
    }

    /// The entries of all runs in their order, each key once, and pairs of those with the same key.
    fn merge_runs(&self) -> (Vec<(u32, u32)>, Vec<Same>) {
        // Parts of the longest run begin with the keys that part the others, too.
        let counts = self.runs.iter().map(|run| self.size.count(run));
        let counts: Vec<usize> = counts.collect();
        let longest = (0..counts.len())
            .max_by_key(|run| counts[*run])
            .unwrap_or(0);
        let parts = (PARTS * rayon::current_num_threads())
            .min(counts[longest])
            .max(1);
        let starts = |part: usize| -> Vec<usize> {
            if part == parts {
                return counts.clone();
            }
            let at = counts[longest] * part / parts;
            let first = (part > 0).then(|| self.rank(longest as u32, at as u32));
            let start = |run: usize| first.map_or(0, |first| self.search(run, first));
            (0..counts.len()).map(start).collect()
        };
        let all: usize = counts.iter().sum();
        let mut merged = vec![(0, 0); all];
        let (mut rest, mut tasks) = (&mut merged[..], Vec::new());
        for part in 0..parts {
            let ranges = starts(part).into_iter().zip(starts(part + 1));
            let ranges: Vec<Range<usize>> = ranges.map(|(from, to)| from..to).collect();
            let count = ranges.iter().map(Range::len).sum();
            let (to, others) = rest.split_at_mut(count);
            rest = others;
            tasks.push((ranges, to));
        }
        let tasks = tasks.into_par_iter();
        let done = tasks.map(|(ranges, to)| (to.len(), self.merge_ranges(ranges, to)));
        let done: Vec<(usize, Vec<Same>)> = done.collect();
        // Where a key was met again, places are left at the end of a part.
        let (mut from, mut used, mut same) = (0, 0, Vec::new());
        for (count, met) in done {
            let taken = count - met.len();
            merged.copy_within(from..from + taken, used);
            (from, used) = (from + count, used + taken);
            same.extend(met);
        }
        merged.truncate(used);
        (merged, same)
    }

    /// Merges a range of each run. Places of each key once go to `to`.
    fn merge_ranges(&self, ranges: Vec<Range<usize>>, to: &mut [(u32, u32)]) -> Vec<Same> {
        let mut heads = BinaryHeap::with_capacity(ranges.len());
        for (run, range) in (0..).zip(&ranges) {
            if !range.is_empty() {
                let at = range.start as u32;
                heads.push(Reverse((self.rank(run, at), run, at)));
            }
        }
        let (mut used, mut same) = (0, Vec::new());
        let mut last = None;
        while let Some(mut head) = heads.peek_mut() {
            let Reverse((rank, run, at)) = *head;
            if last == Some(rank) {
                same.push((to[used - 1], (run, at)));
            } else {
                to[used] = (run, at);
                used += 1;
                last = Some(rank);
            }
            match (at as usize + 1) < ranges[run as usize].end {
                true => *head = Reverse((self.rank(run, at + 1), run, at + 1)),
                false => drop(PeekMut::pop(head)),
            }
        }
        same
    }

    fn place(&self, run: u32, at: u32) -> Place {
        let entry = at * (self.size.lanes + self.size.key) as u32;
        Place {
            table: run as usize,
            entry: EntryRef::new(entry, self.size.key),
        }
    }

    fn rank(&self, run: u32, at: u32) -> Rank {
        self.rank_of(self.place(run, at))
    }

    fn rank_of(&self, place: Place) -> Rank {
        self.orders.rank(&self.units(place)[self.size.lanes..])
    }

    /// The first entry of a run that isn't before a key.
    fn search(&self, run: usize, key: Rank) -> usize {
        let (mut from, mut to) = (0, self.size.count(&self.runs[run]));
        while from < to {
            let middle = from.midpoint(to);
            match self.rank(run as u32, middle as u32) < key {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        from
    }

    /// Where the lanes of a key are, without the byte after it, if there is one.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Place> {
        let mut units = [Unit([0; 2]); KEY_UNITS];
        let units = &mut units[..self.size.key];
        let (last, bytes) = units.as_mut_bytes().split_last_mut()?;
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        *last = key.len() as u8;
        let rank = self.orders.rank(units);
        (0..self.runs.len()).find_map(|run| {
            let at = self.search(run, rank);
            let place = self.place(run as u32, at as u32);
            let is_there = at < self.size.count(&self.runs[run]);
            (is_there && self.rank_of(place) == rank).then_some(place)
        })
    }

    /// The orders that the entries are in.
    pub(crate) fn orders(&self) -> Orders {
        self.orders
    }

    /// The entries.
    pub(crate) fn places(&self) -> impl ParallelIterator<Item = Place> {
        match &self.merged {
            Some(merged) => {
                Either::Left((merged.par_iter()).map(|(run, at)| self.place(*run, *at)))
            }
            None => {
                let all = 0..self.size.count(&self.runs[0]) as u32;
                Either::Right(all.into_par_iter().map(|at| self.place(0, at)))
            }
        }
    }

    /// Whether one isn't after the other in the order.
    pub(crate) fn are_ordered(&self, one: Place, other: Place) -> bool {
        match self.merged {
            Some(_) => self.rank_of(one) <= self.rank_of(other),
            // They lie in it.
            None => one.entry.place() <= other.entry.place(),
        }
    }

    fn units(&self, place: Place) -> &[Unit] {
        let from = place.entry.place() as usize;
        &self.runs[place.table].units[from..][..self.size.lanes + self.size.key]
    }

    /// The lanes of an entry, and perhaps one more.
    pub(crate) fn lanes(&self, place: Place) -> &[i64] {
        self.units(place)[..self.size.lanes].as_flattened_lanes()
    }

    /// The same, to be changed.
    pub(crate) fn lanes_mut(&mut self, place: Place) -> &mut [i64] {
        let from = place.entry.place() as usize;
        self.runs[place.table].units[from..][..self.size.lanes].as_flattened_lanes_mut()
    }

    /// An entry's key, without the byte after it.
    pub(crate) fn key(&self, place: Place) -> &[u8] {
        let bytes = self.units(place)[self.size.lanes..].as_bytes();
        &bytes[..usize::from(bytes[bytes.len() - 1])]
    }
}

/// Runs are merged in so many parts for each thread.
const PARTS: usize = 4;

/// Two entries with the same key, the first of which is in the order.
type Same = ((u32, u32), (u32, u32));

impl Run {
    fn all(tables: &mut Vec<EntryTable>) -> Vec<Run> {
        let tables = std::mem::take(tables).into_iter();
        let units = tables.map(EntryTable::into_units);
        units.map(|(units, used)| Run { units, used }).collect()
    }
}

type Prepare = fn(&mut [Unit], KeyForm) -> Option<Lengths>;
type Sort = fn(&mut [Unit], bool);

impl Size {
    /// That of the entries of all these tables, if they can be sorted.
    fn of(tables: &[EntryTable], form: KeyForm) -> Option<Size> {
        let (lanes, key) = tables.first()?.entry_size();
        let is_like = |table: &EntryTable| table.entry_size() == (lanes, key);
        let size = Size {
            lanes,
            key: key.filter(|_| tables.iter().all(is_like))?,
        };
        size.functions()?;
        let is_separable = |table: &EntryTable, entry: EntryRef| {
            let mut bytes = [0; KEY_UNITS * UNIT];
            let (_, key) = table.key(entry).split_last().expect("the byte after it");
            bytes[..key.len()].copy_from_slice(key);
            separate(form, &mut bytes[..key.len()]).is_some()
        };
        let are_separable = |table: &EntryTable| {
            let all = table.in_order();
            all.all(|entry| is_separable(table, entry))
        };
        let can_be_sorted = form == KeyForm::One || tables.iter().all(are_separable);
        can_be_sorted.then_some(size)
    }

    fn count(self, run: &Run) -> usize {
        run.used / (self.lanes + self.key)
    }

    fn functions(self) -> Option<(Prepare, Sort)> {
        Some(match (self.lanes, self.key) {
            (1, 1) => (prepare::<2, 1>, sort::<2, 1>),
            (2, 1) => (prepare::<3, 1>, sort::<3, 1>),
            (3, 1) => (prepare::<4, 1>, sort::<4, 1>),
            (4, 1) => (prepare::<5, 1>, sort::<5, 1>),
            (1, 2) => (prepare::<3, 2>, sort::<3, 2>),
            (2, 2) => (prepare::<4, 2>, sort::<4, 2>),
            (3, 2) => (prepare::<5, 2>, sort::<5, 2>),
            _ => return None,
        })
    }
}

/// Makes entries of `SIZE` units ready to be sorted by their keys of `KEY` units. The byte after a key isn't a part of it. In
/// the last byte of the key's units stands its length: of two with the same bytes, because keys may end with zeros, the
/// shorter comes first.
fn prepare<const SIZE: usize, const KEY: usize>(
    units: &mut [Unit],
    form: KeyForm,
) -> Option<Lengths> {
    let (entries, _) = units.as_chunks_mut::<SIZE>();
    let lengths = entries.par_iter_mut().map(|entry| {
        let last = (KEY - 1) * UNIT + entry[SIZE - 1].length() - 1;
        let bytes = entry[SIZE - KEY..].as_mut_bytes();
        let length = separate(form, &mut bytes[..last]).expect("looked at before");
        bytes[length..=last].fill(0);
        bytes[KEY * UNIT - 1] = length as u8;
        Lengths::of_key(&bytes[..length])
    });
    lengths.reduce_with(Lengths::with)
}

/// Puts a zero between the parts of a key, so that its bytes have the order of its parts, and returns its length then; `None`
/// if a part has a zero itself.
#[inline(always)]
fn separate(form: KeyForm, key: &mut [u8]) -> Option<usize> {
    match form {
        KeyForm::None | KeyForm::One => Some(key.len()),
        KeyForm::Between(between) => {
            let has_zero = key.contains(&0);
            let between = key.iter_mut().filter(|byte| **byte == between);
            between.for_each(|byte| *byte = 0);
            (!has_zero).then_some(key.len())
        }
        KeyForm::Prefixed => {
            let mut length = usize::from(*key.first()?);
            key.copy_within(1.., 0);
            let mut rest = &mut key[..];
            while length + 1 < rest.len() {
                let (part, others) = rest.split_at_mut(length);
                let next = usize::from(std::mem::take(&mut others[0]));
                if part.contains(&0) {
                    return None;
                }
                (length, rest) = (next, &mut others[1..]);
            }
            (!rest[..length].contains(&0)).then_some(key.len() - 1)
        }
    }
}

/// Sorts such entries, by number if all keys are whole numbers of one unit.
fn sort<const SIZE: usize, const KEY: usize>(units: &mut [Unit], by_number: bool) {
    let (entries, _) = units.as_chunks_mut::<SIZE>();
    let key = |entry: &[Unit; SIZE]| -> [u128; KEY] {
        std::array::from_fn(|at| u128::from_be_bytes(entry[SIZE - KEY + at].bytes()))
    };
    match by_number {
        // Of whole numbers the longer is the greater. The length is the last byte.
        true => entries.par_sort_unstable_by_key(|entry| key(entry)[0].rotate_right(8)),
        false => entries.par_sort_unstable_by(|one, other| key(one).cmp(&key(other))),
    }
}

/// The lengths of keys, and whether all are whole numbers without a sign or zeros that they don't need.
#[derive(Clone, Copy)]
struct Lengths {
    least: usize,
    most: usize,
    are_numbers: bool,
}

impl Lengths {
    fn of_key(key: &[u8]) -> Lengths {
        let is_short = key.len() == 1 || key.first() != Some(&b'0');
        Lengths {
            least: key.len(),
            most: key.len(),
            are_numbers: is_short && key.iter().all(u8::is_ascii_digit),
        }
    }

    fn with(self, other: Lengths) -> Lengths {
        Lengths {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            are_numbers: self.are_numbers && other.are_numbers,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::table::entries::Key;
    use crate::table::isa::Seeds;
    use crate::table::key_order::KeyOrder;
    use ringfold_read::internals::Level;

    /// Keys in the order of entries, which lie in two tables, and those that were refused.
    fn sorted(
        [keys, common]: [&[String]; 2],
        may_be_numbers: bool,
        are_merged: bool,
    ) -> (Vec<String>, Orders, Vec<String>) {
        let seeds = Seeds::random();
        let mut tables = vec![EntryTable::new(3, false), EntryTable::part(3)];
        let mut add = |table: usize, key: &str| {
            let key = Key::of(format!("{key};").as_bytes()).unwrap();
            let tag = key.tag(Level::Portable, &seeds);
            let lanes = [1, 0, key.text().len() as i64];
            tables[table].add(tag, &key, &lanes, |_, _| unreachable!("once"));
        };
        (0..).zip(keys).for_each(|(at, key)| add(at % 2, key));
        for key in common {
            (0..2).for_each(|table| add(table, key));
        }
        // Every second key of both is refused.
        let merge = |to: &mut [i64], from: &[i64]| {
            to[0] += from[0];
            to[2] % 2 == 0
        };
        let (mut order, refused) = match are_merged {
            true => (
                EntryOrder::new(&mut tables, KeyForm::One, may_be_numbers).unwrap(),
                vec![],
            ),
            false => EntryOrder::merge(&mut tables, KeyForm::One, may_be_numbers, &merge).unwrap(),
        };
        let text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
        let places: Vec<Place> = order.places().collect();
        assert!(
            places
                .windows(2)
                .all(|pair| order.are_ordered(pair[0], pair[1]))
        );
        let keys = places.into_iter().map(|place| {
            let key = text(order.key(place));
            let times = 1 + i64::from(common.contains(&key));
            assert_eq!(order.lanes_mut(place)[..3], [times, 0, key.len() as i64]);
            assert_eq!(order.find(key.as_bytes()), Some(place));
            key
        });
        let keys = keys.collect();
        assert_eq!(order.find(b"no key"), None);
        (
            keys,
            order.orders(),
            refused.iter().map(|(key, _)| text(key)).collect(),
        )
    }

    /// Keys of two parts are in the order of these, unless one has a zero.
    #[test]
    fn keys_of_parts_are_in_order() {
        for (form, zero) in [
            (KeyForm::Between(b','), None),
            (KeyForm::Prefixed, None),
            (KeyForm::Between(b','), Some(77)),
            (KeyForm::Prefixed, Some(78)),
        ] {
            let seeds = Seeds::random();
            let mut tables = vec![EntryTable::new(3, false), EntryTable::part(3)];
            let mut want = BTreeSet::new();
            for at in 0..if cfg!(miri) { 90 } else { 500_u32 } {
                let first = match at % 6 {
                    _ if zero == Some(at) => "a\0b",
                    kind => ["", "a", "a b", "a!", "ab", "z"][kind as usize],
                };
                let second = format!("{:016}", at * 37 % 997);
                let parts = [first.as_bytes(), second.as_bytes()];
                let key = form.key(parts.into_iter(), b';').unwrap();
                let tag = key.tag(Level::Portable, &seeds);
                let table = &mut tables[at as usize % 2];
                table.add(tag, &key, &[1, 0, 0], |_, _| unreachable!("once"));
                want.insert(parts.map(<[u8]>::to_vec));
            }
            let order = EntryOrder::new(&mut tables, form, true);
            let Some(order) = order.filter(|_| zero.is_none()) else {
                assert!(zero.is_some() && tables.len() == 2);
                continue;
            };
            assert!(order.orders().bytes && !order.orders().numbers);
            let places: Vec<Place> = order.places().collect();
            let want: Vec<Vec<u8>> = want.into_iter().map(|parts| parts.join(&0)).collect();
            let got: Vec<&[u8]> = places.iter().map(|place| order.key(*place)).collect();
            assert_eq!(got, want);
            let found: Vec<_> = want.iter().map(|key| order.find(key)).collect();
            assert_eq!(found, places.into_iter().map(Some).collect::<Vec<_>>());
            assert_eq!(order.find(b"z"), None);
        }
    }

    #[test]
    fn keys_are_in_order() {
        let numbers = |from: u64, step: u64| -> Vec<String> {
            let numbers = (0..if cfg!(miri) { 20 } else { 500 }).map(|at| from + at * step % 997);
            numbers.map(|number| number.to_string()).collect()
        };
        let with = |mut keys: Vec<String>, key: &str| {
            keys.push(key.into());
            keys
        };
        let cases = [
            // Keys, and whether they are whole numbers, of one length, and of at most 15 digits.
            (numbers(0, 7), true, false, true),
            (with(numbers(0, 7), "999999999999999"), true, false, true),
            (with(numbers(1, 7), ""), true, false, true),
            (numbers(5000, 3), true, true, true),
            (numbers(1_234_567_890_123_456_789, 3), true, true, false),
            (numbers(9_999_999_999_999_999_500, 3), true, false, false),
            (with(numbers(1, 7), "x"), false, false, true),
            (with(numbers(1, 7), "-5"), false, false, true),
            (with(numbers(1, 7), "007"), false, false, true),
            (with(numbers(1, 7), "7\0"), false, false, true),
        ];
        for (keys, are_numbers, are_alike, are_short) in cases {
            for (may_be_numbers, are_merged) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                let (own, common) = match are_merged {
                    true => (&keys[..], &[][..]),
                    false => keys.split_at(keys.len() / 3),
                };
                let (got, orders, mut refused) = sorted([own, common], may_be_numbers, are_merged);
                let by_number = may_be_numbers && are_numbers && !are_alike && are_short;
                let order = match by_number {
                    true => KeyOrder::numbers(1, b'.'),
                    false => KeyOrder::BYTES,
                };
                let mut want = keys.clone();
                want.sort_by(|one, other| {
                    let [one, other] = [one, other].map(|key| std::iter::once(key.as_bytes()));
                    order.compare(one, other)
                });
                assert_eq!(got, want);
                assert_eq!(orders.bytes, !by_number);
                assert_eq!(orders.numbers, by_number || are_numbers && are_alike);
                let mut want: Vec<String> = common.to_vec();
                want.retain(|key| key.len() % 2 == 1);
                want.sort();
                refused.sort();
                assert_eq!(refused, want);
            }
        }
    }
}
