//! Groups by key, and the states of each.
//!
//! Groups are spread over shards by the hashes of their keys, so that tables are merged by all threads.

use std::any::Any;

use ahash::RandomState;
use hashbrown::HashTable;
use rayon::prelude::*;
use ringfold_read::internals::prefetch;

use crate::aggregate::bag::{self, Bag, Text};
use crate::aggregate::lanes::Kept;
use crate::aggregate::state::{Argument, DigestRow, Kind, Outcome, Slot, States, Value};
use crate::decimal::number::Number;
use crate::partial::column::{ColumnView, Gathered};
use crate::table::entries::EntryRef;
use crate::table::entry_order::Place;

/// A power of two, of which a hash tells one by bits that hash tables don't look at.
const SHARDS: usize = 64;

/// Groups of lanes are in shards from this number on, a table of them in as many as keys have units.
const LANES_FROM: usize = SHARDS;
const KEY_UNIT_BITS: u32 = 3;

/// The most digits after the point by which a single number raises the scale of a bag. Those of a pass may raise it more.
const BAG_SCALE_MAX: u32 = 7;

/// What a group takes where it is put in order, beside others.
pub(crate) const ORDER_BYTES: usize = 48;
/// The values of a bag that are counted take so many times its memory.
const BAG_GROWTH: usize = 3;

/// The groups that have been seen.
pub(crate) struct Table {
    hasher: RandomState,
    slots: Vec<Slot>,
    /// For each aggregate which states are its own.
    places: Vec<usize>,
    shards: Vec<Shard>,
    /// For each aggregate whose numbers are in bags their scale, once there is one.
    scales: Vec<Option<u32>>,
    /// Long texts of bags.
    texts: Keys,
    /// Bytes that states have elsewhere.
    heap: usize,
}

/// A group of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    shard: u32,
    at: u32,
}

impl Group {
    /// A group that no table has, by its place among those of lanes.
    pub(crate) fn in_lanes(place: Place) -> Group {
        let of_lanes = place.table << KEY_UNIT_BITS | (place.entry.key_units() - 1);
        Group {
            shard: (LANES_FROM + of_lanes) as u32,
            at: place.entry.place(),
        }
    }

    /// Its place among the groups of lanes, if it is one of these.
    pub(crate) fn lanes(self) -> Option<Place> {
        let of_lanes = (self.shard as usize).checked_sub(LANES_FROM)?;
        let key_units = (of_lanes & ((1 << KEY_UNIT_BITS) - 1)) + 1;
        Some(Place {
            table: of_lanes >> KEY_UNIT_BITS,
            entry: EntryRef::new(self.at, key_units),
        })
    }

    /// The digest of a value of its own.
    pub(crate) fn digested(self, digest: u64) -> DigestRow {
        DigestRow {
            states: self.shard,
            group: self.at,
            digest,
        }
    }

    /// A number that isn't negative.
    pub(crate) fn number(self) -> i64 {
        i64::from(self.shard) << 32 | i64::from(self.at)
    }

    /// The group with this number.
    pub(crate) fn numbered(number: i64) -> Group {
        Group {
            shard: (number >> 32) as u32,
            at: number as u32,
        }
    }
}

/// Keys numbered from 0.
#[derive(Default)]
struct Keys {
    numbers: HashTable<u32>,
    hashes: Vec<u64>,
    /// All keys, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn key(&self, number: u32) -> &[u8] {
        key(&self.bytes, &self.ends, number)
    }

    fn find(&self, hash: u64, wanted: &[u8]) -> Option<u32> {
        let same = |&number: &u32| self.key(number) == wanted;
        self.numbers.find(hash, same).copied()
    }

    /// Adds a key that isn't there yet.
    fn push(&mut self, hash: u64, key: &[u8]) -> u32 {
        let number = u32::try_from(self.ends.len()).expect("less than 4 billion keys");
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        self.hashes.push(hash);
        let hashes = &self.hashes;
        self.numbers
            .insert_unique(hash, number, |&number| hashes[number as usize]);
        number
    }

    fn number(&mut self, hash: u64, wanted: &[u8]) -> u32 {
        (self.find(hash, wanted)).unwrap_or_else(|| self.push(hash, wanted))
    }

    /// Memory that is taken.
    fn memory(&self) -> usize {
        let index = self.numbers.capacity() * (size_of::<u32>() + 1);
        let lists = size_of::<u64>() * (self.hashes.capacity() + self.ends.capacity());
        index + lists + self.bytes.capacity()
    }
}

/// Groups by their keys.
struct Shard {
    keys: Keys,
    /// For each aggregate that has states of its own, those of all groups.
    states: Vec<Box<dyn States>>,
}

impl Shard {
    fn new(slots: &[Slot]) -> Shard {
        let owners = slots
            .iter()
            .enumerate()
            .filter(|(at, slot)| slot.owner == *at);
        Shard {
            keys: Keys::default(),
            states: owners.map(|(_, slot)| (slot.kind.states)()).collect(),
        }
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn key(&self, group: u32) -> &[u8] {
        self.keys.key(group)
    }

    fn group(&mut self, hash: u64, wanted: &[u8]) -> u32 {
        if let Some(group) = self.keys.find(hash, wanted) {
            return group;
        }
        let group = self.keys.push(hash, wanted);
        for states in &mut self.states {
            states.push();
        }
        group
    }

    fn bytes(&self) -> usize {
        let states: usize = self.states.iter().map(|states| states.bytes()).sum();
        self.keys.memory() + states
    }

    fn merge(&mut self, mut from: Shard) {
        if from.len() > self.len() {
            std::mem::swap(self, &mut from);
        }
        let groups = 0..from.len() as u32;
        let into: Vec<usize> = groups
            .map(|group| self.group(from.keys.hashes[group as usize], from.key(group)) as usize)
            .collect();
        for (states, from) in self.states.iter_mut().zip(from.states) {
            states.merge(from, &into);
        }
    }
}

impl Table {
    pub(crate) fn new(hasher: &RandomState, slots: &[Slot]) -> Table {
        let place = |slot: &Slot| (0..slot.owner).filter(|&at| slots[at].owner == at).count();
        Table {
            hasher: hasher.clone(),
            shards: (0..SHARDS).map(|_| Shard::new(slots)).collect(),
            places: slots.iter().map(place).collect(),
            scales: vec![None; slots.len()],
            texts: Keys::default(),
            slots: slots.to_vec(),
            heap: 0,
        }
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> usize {
        self.heap + self.texts.memory() + self.shards.iter().map(Shard::bytes).sum::<usize>()
    }

    /// What it takes beside to put the groups in order, and to look at the values of one.
    pub(crate) fn bytes_in_order(&self) -> usize {
        let is_of_values = |slot: &Slot| slot.kind.of_values.is_some();
        let values = match self.slots.iter().any(is_of_values) {
            true => BAG_GROWTH * self.heap + size_of::<(u64, u64)>() * self.texts.len(),
            false => 0,
        };
        ORDER_BYTES * self.len() + values
    }

    /// Whether bags have long texts.
    pub(crate) fn has_texts(&self) -> bool {
        self.texts.len() > 0
    }

    /// A table of the same plan, without groups.
    pub(crate) fn like(&self) -> Table {
        Table::new(&self.hasher, &self.slots)
    }

    /// How many groups there are.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(Shard::len).sum()
    }

    /// All groups.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Group> {
        (0..).zip(&self.shards).flat_map(|(shard, groups)| {
            let all = 0..groups.len() as u32;
            all.map(move |at| Group { shard, at })
        })
    }

    pub(crate) fn key(&self, group: Group) -> &[u8] {
        self.shards[group.shard as usize].key(group.at)
    }

    /// Bytes of a group's key, and those that its states have elsewhere.
    pub(crate) fn bytes_of(&self, group: Group) -> usize {
        let states = self.shards[group.shard as usize].states.iter();
        let heap = states.map(|states| states.heap_of(group.at as usize));
        self.key(group).len() + heap.sum::<usize>()
    }

    /// Bytes of the largest group, or of a bag's longest text.
    pub(crate) fn largest(&self) -> usize {
        let groups = self.groups().map(|group| self.bytes_of(group));
        let texts = (0..self.texts.len() as u32).map(|text| self.texts.key(text).len());
        groups.chain(texts).max().unwrap_or(0)
    }

    /// The group of a key, a new one if need be.
    pub(crate) fn group(&mut self, key: &[u8]) -> Group {
        let hash = self.hasher.hash_one(key);
        let shard = (hash >> 48) as usize % SHARDS;
        Group {
            shard: shard as u32,
            at: self.shards[shard].group(hash, key),
        }
    }

    /// Adds a value to a group's state of one of the aggregates.
    pub(crate) fn update(&mut self, group: Group, aggregate: usize, value: &Value<'_>) {
        if self.slots[aggregate].kind.of_values.is_some() {
            return self.keep(group, aggregate, value);
        }
        let states = &mut self.shards[group.shard as usize].states;
        let growth = states[self.places[aggregate]].update(group.at as usize, value);
        self.heap = self.heap.saturating_add_signed(growth);
    }

    /// Adds values to the states of their groups, by their digests.
    pub(crate) fn add(&mut self, aggregate: usize, digests: &[DigestRow]) {
        let place = self.places[aggregate];
        let states = self
            .shards
            .iter_mut()
            .map(|shard| &mut *shard.states[place]);
        let mut states: Vec<&mut dyn States> = states.collect();
        let growth = (self.slots[aggregate].kind.add_all)(&mut states, digests);
        self.heap = self.heap.saturating_add_signed(growth);
    }

    /// Adds a value to a group's bag.
    fn keep(&mut self, group: Group, aggregate: usize, value: &Value<'_>) {
        let is_number = self.slots[aggregate].kind.argument == Argument::Numbers;
        let digest = match is_number {
            true => self.number_digest(aggregate, &value.number),
            false => Some(self.text_digest(value.bytes)),
        };
        match digest {
            Some(digest) => {
                let states = &mut self.shards[group.shard as usize].states;
                let growth = states[self.places[aggregate]].add(group.at as usize, digest);
                self.heap = self.heap.saturating_add_signed(growth);
            }
            None => {
                self.count_own(group, aggregate, &value.number, 1);
                self.absorb(group, aggregate, &Kept::of(Some(0), 0));
            }
        }
    }

    /// Counts a number of a group as a group of its own.
    fn count_own(&mut self, group: Group, aggregate: usize, number: &Number, times: u64) {
        let mut key = self.key(group).to_vec();
        // The part of the value is empty in the group itself.
        key.truncate(key.len() - size_of::<u32>());
        bag::push_own(&mut key, aggregate, number);
        let own = self.group(&key);
        let known = Kept {
            known: times,
            ..Kept::default()
        };
        self.absorb(own, aggregate, &known);
    }

    /// The digest of a number, if it has one at the scale that all numbers in bags have, or may have.
    fn number_digest(&mut self, aggregate: usize, number: &Number) -> Option<u64> {
        let decimals = number.decimals();
        let scale = match self.scales[aggregate] {
            Some(scale) if scale >= decimals => scale,
            _ if decimals <= BAG_SCALE_MAX => self.raise(aggregate, decimals),
            _ => return None,
        };
        let number = number.at(scale)?;
        bag::of_number(i64::try_from(number).ok()?)
    }

    /// The scale of numbers in an aggregate's bags, from now on at least this one.
    pub(crate) fn raise(&mut self, aggregate: usize, scale: u32) -> u32 {
        match self.scales[aggregate] {
            Some(known) if known >= scale => return known,
            Some(known) => self.rescale(aggregate, known, scale),
            None => {}
        }
        self.scales[aggregate] = Some(scale);
        scale
    }

    #[cold]
    fn rescale(&mut self, aggregate: usize, from: u32, to: u32) {
        let factor = 10_i64.pow(to - from);
        let other = |digest| {
            let number = bag::number(digest).checked_mul(factor);
            number.and_then(bag::of_number)
        };
        let mut without = Vec::new();
        for (shard, groups) in (0..).zip(&mut self.shards) {
            let bags = bags_mut(&mut groups.states[self.places[aggregate]]);
            for (at, bag) in (0..).zip(bags) {
                let group = Group { shard, at };
                bag.replace(other, |digest, times| without.push((group, digest, times)));
            }
        }
        for (group, digest, times) in without {
            let number = Number::new(bag::number(digest).into(), from);
            self.count_own(group, aggregate, &number, times);
        }
    }

    /// The digest of a text.
    #[inline]
    pub(crate) fn text_digest(&mut self, text: &[u8]) -> u64 {
        bag::of_text(text).unwrap_or_else(|| {
            let hash = self.hasher.hash_one(text);
            bag::of_long(self.texts.number(hash, text))
        })
    }

    /// A group's bag.
    pub(crate) fn bag(&self, group: Group, aggregate: usize) -> &Bag {
        let states = &self.shards[group.shard as usize].states[self.places[aggregate]];
        let states: &dyn Any = &**states;
        let bags = states.downcast_ref::<Vec<Bag>>();
        &bags.expect("an aggregate of all values")[group.at as usize]
    }

    /// A number in a bag.
    pub(crate) fn number_of(&self, aggregate: usize, digest: u64) -> Number {
        let scale = self.scales[aggregate].unwrap_or_default();
        Number::new(bag::number(digest).into(), scale)
    }

    /// Calls `with` with a text in a bag.
    pub(crate) fn with_text<T>(&self, digest: u64, with: impl FnOnce(&[u8]) -> T) -> T {
        match bag::text(digest) {
            Text::Short(bytes, len) => with(&bytes[..len]),
            Text::Long(number) => with(self.texts.key(number)),
        }
    }

    /// Adds what lanes have kept.
    pub(crate) fn absorb(&mut self, group: Group, aggregate: usize, kept: &Kept) {
        let states = &mut self.shards[group.shard as usize].states;
        states[self.places[aggregate]].absorb(group.at as usize, kept);
    }

    /// The outcome of one of the aggregates in a group.
    pub(crate) fn finish(&self, group: Group, aggregate: usize, scale: u32) -> Outcome<'_> {
        let states = &self.shards[group.shard as usize].states;
        let share = self.slots[aggregate].kind.share;
        states[self.places[aggregate]].finish(group.at as usize, share, scale)
    }

    /// How many aggregates there are.
    pub(crate) fn aggregates(&self) -> usize {
        self.slots.len()
    }

    /// The aggregates.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &'static Kind> {
        self.slots.iter().map(|slot| slot.kind)
    }

    /// Adds a group's states of one of the aggregates to their columns.
    pub(crate) fn encode(&self, group: Group, aggregate: usize, to: &mut [Gathered]) {
        let states = &self.shards[group.shard as usize].states;
        states[self.places[aggregate]].encode(group.at as usize, to);
    }

    /// Adds a group that isn't there yet, with the states in a row of the aggregates' columns.
    ///
    /// # Errors
    /// What is wrong with the states.
    pub(crate) fn insert(
        &mut self,
        key: &[u8],
        mut columns: &[ColumnView<'_>],
        row: usize,
    ) -> Result<Group, &'static str> {
        let hash = self.hasher.hash_one(key);
        let number = (hash >> 48) as usize % SHARDS;
        let shard = &mut self.shards[number];
        let at = shard.keys.push(hash, key);
        for (at, slot) in self.slots.iter().enumerate() {
            let (own, rest) = columns.split_at(slot.kind.columns.len());
            columns = rest;
            if slot.owner == at {
                shard.states[self.places[at]].push_decoded(own, row)?;
            }
        }
        Ok(Group {
            shard: number as u32,
            at,
        })
    }

    /// Fetches the states of a group, and where its key is, into the cache.
    pub(crate) fn prefetch(&self, group: Group) {
        let Shard { keys, states } = &self.shards[group.shard as usize];
        let at = group.at as usize;
        prefetch::into_l1(keys.ends.as_ptr().wrapping_add(at).cast());
        states.iter().for_each(|states| states.prefetch(at));
    }

    /// Fetches a group's key into the cache.
    pub(crate) fn prefetch_key(&self, group: Group) {
        prefetch::into_l1(self.key(group).as_ptr());
    }

    /// Adds the groups of a table of the same plan.
    pub(crate) fn merge(&mut self, mut from: Table) {
        for aggregate in 0..self.slots.len() {
            if let Some(scale) = self.scales[aggregate].max(from.scales[aggregate]) {
                self.raise(aggregate, scale);
                from.raise(aggregate, scale);
            }
        }
        self.take_texts(&mut from);
        self.heap += from.heap;
        let shards = self.shards.par_iter_mut().zip(from.shards);
        shards.for_each(|(shard, from)| shard.merge(from));
    }
}

impl Table {
    /// Takes the long texts of another table, whose bags then have this one's numbers of them.
    fn take_texts(&mut self, from: &mut Table) {
        if from.texts.len() == 0 {
            return;
        }
        if from.texts.len() > self.texts.len() {
            std::mem::swap(self, from);
        }
        let texts = std::mem::take(&mut from.texts);
        let numbers = (0..texts.len() as u32).map(|number| {
            let hash = texts.hashes[number as usize];
            self.texts.number(hash, texts.key(number))
        });
        let numbers: Vec<u32> = numbers.collect();
        let other = |digest| match bag::text(digest) {
            Text::Short(..) => Some(digest),
            Text::Long(number) => Some(bag::of_long(numbers[number as usize])),
        };
        let slots = self.slots.iter().enumerate();
        let of_texts = slots.filter(|(at, slot)| {
            let takes = slot.kind.argument;
            slot.owner == *at && slot.kind.of_values.is_some() && takes != Argument::Numbers
        });
        let places: Vec<usize> = of_texts.map(|(at, _)| self.places[at]).collect();
        from.shards.par_iter_mut().for_each(|shard| {
            for &place in &places {
                let bags = bags_mut(&mut shard.states[place]);
                bags.iter_mut()
                    .for_each(|bag| bag.replace(other, |_, _| {}));
            }
        });
    }
}

fn bags_mut(states: &mut Box<dyn States>) -> &mut [Bag] {
    let states: &mut dyn Any = &mut **states;
    let bags = states.downcast_mut::<Vec<Bag>>();
    bags.expect("an aggregate of all values")
}

fn key<'a>(keys: &'a [u8], ends: &[usize], group: u32) -> &'a [u8] {
    let group = group as usize;
    let start = group.checked_sub(1).map_or(0, |before| ends[before]);
    &keys[start..ends[group]]
}

/// Appends a part of a key: its length, and its bytes.
pub(crate) fn push_part(key: &mut Vec<u8>, part: &[u8]) {
    // A record is shorter than 4 GiB.
    let len = u32::try_from(part.len()).expect("a field of less than 4 GiB");
    key.extend_from_slice(&len.to_le_bytes());
    key.extend_from_slice(part);
}

/// The parts of a key.
pub(crate) fn parts(mut key: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (len, rest) = key.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
        key = rest;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart_by_their_parts() {
        let hasher = RandomState::new();
        let mut tables = [Table::new(&hasher, &[]), Table::new(&hasher, &[])];
        let mut all = std::collections::BTreeSet::new();
        let texts = ["", "a", "b", "ab", "a,b", ",", "\0"];
        for (at, one) in texts.iter().enumerate() {
            for (more, two) in texts.iter().enumerate() {
                let mut key = Vec::new();
                push_part(&mut key, one.as_bytes());
                push_part(&mut key, two.as_bytes());
                assert!(parts(&key).eq([one.as_bytes(), two.as_bytes()]));
                let table = &mut tables[(at + more) % 2];
                let group = table.group(&key);
                assert_eq!(table.group(&key), group);
                assert_eq!(table.key(group), key);
                assert_eq!(Group::numbered(group.number()), group);
                all.insert(key);
            }
        }
        let [mut one, two] = tables;
        one.group(all.first().unwrap());
        one.merge(two);
        let got: Vec<_> = one.groups().map(|group| one.key(group).to_vec()).collect();
        assert_eq!(got.len(), 49);
        assert_eq!(
            got.into_iter().collect::<std::collections::BTreeSet<_>>(),
            all
        );
    }
}
