//! Groups by key, and the states of each.
//!
//! Groups are spread over shards by the hashes of their keys, so that tables are merged by all threads.

use ahash::RandomState;
use hashbrown::HashTable;
use rayon::prelude::*;

use crate::partial::column::{ColumnView, Gathered};
use crate::prefetch;
use crate::query::accumulator::state::{Digested, Kind, Outcome, Slot, States, Value};
use crate::query::lanes::Kept;

/// A power of two, of which a hash tells one by bits that hash tables don't look at.
const SHARDS: usize = 64;

/// The groups that have been seen.
pub(crate) struct Table {
    hasher: RandomState,
    slots: Vec<Slot>,
    /// For each aggregate which states are its own.
    places: Vec<usize>,
    shards: Vec<Shard>,
    /// Bytes that states have elsewhere.
    heap: usize,
}

/// A group of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group {
    shard: u32,
    at: u32,
}

impl Group {
    /// A group that no table has, by its place among those of lanes.
    pub(crate) fn in_lanes(place: usize) -> Group {
        Group {
            shard: SHARDS as u32,
            at: u32::try_from(place).expect("a table of less than 128 GiB"),
        }
    }

    /// Its place among the groups of lanes, if it isn't a table's.
    pub(crate) fn lanes(self) -> Option<usize> {
        (self.shard as usize == SHARDS).then_some(self.at as usize)
    }

    /// The digest of a value of its own.
    pub(crate) fn digested(self, digest: u64) -> Digested {
        Digested {
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

/// Groups numbered from 0.
struct Shard {
    groups: HashTable<u32>,
    hashes: Vec<u64>,
    /// All keys, one behind the other, and where each ends.
    keys: Vec<u8>,
    ends: Vec<usize>,
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
            groups: HashTable::new(),
            hashes: Vec::new(),
            keys: Vec::new(),
            ends: Vec::new(),
            states: owners.map(|(_, slot)| (slot.kind.states)()).collect(),
        }
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn key(&self, group: u32) -> &[u8] {
        key(&self.keys, &self.ends, group)
    }

    fn group(&mut self, hash: u64, wanted: &[u8]) -> u32 {
        let (keys, ends) = (&self.keys, &self.ends);
        let same = |&group: &u32| key(keys, ends, group) == wanted;
        if let Some(&group) = self.groups.find(hash, same) {
            return group;
        }
        let group = self.push_key(hash, wanted);
        for states in &mut self.states {
            states.push();
        }
        group
    }

    /// Adds a key that isn't there yet, without states.
    fn push_key(&mut self, hash: u64, key: &[u8]) -> u32 {
        let group = u32::try_from(self.ends.len()).expect("a shard of less than 4 billion groups");
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
        self.hashes.push(hash);
        let hashes = &self.hashes;
        self.groups
            .insert_unique(hash, group, |&group| hashes[group as usize]);
        group
    }

    fn bytes(&self) -> usize {
        let index = self.groups.capacity() * (size_of::<u32>() + 1);
        let lists = size_of::<u64>() * (self.hashes.capacity() + self.ends.capacity());
        let states: usize = self.states.iter().map(|states| states.bytes()).sum();
        index + lists + self.keys.capacity() + states
    }

    fn merge(&mut self, mut from: Shard) {
        if from.len() > self.len() {
            std::mem::swap(self, &mut from);
        }
        let groups = 0..from.len() as u32;
        let into: Vec<usize> = groups
            .map(|group| self.group(from.hashes[group as usize], from.key(group)) as usize)
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
            slots: slots.to_vec(),
            heap: 0,
        }
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> usize {
        self.heap + self.shards.iter().map(Shard::bytes).sum::<usize>()
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
        let states = &mut self.shards[group.shard as usize].states;
        let growth = states[self.places[aggregate]].update(group.at as usize, value);
        self.heap = self.heap.saturating_add_signed(growth);
    }

    /// Adds values to the states of their groups, by their digests.
    pub(crate) fn add(&mut self, aggregate: usize, digests: &[Digested]) {
        let place = self.places[aggregate];
        let states = self
            .shards
            .iter_mut()
            .map(|shard| &mut *shard.states[place]);
        let mut states: Vec<&mut dyn States> = states.collect();
        let growth = (self.slots[aggregate].kind.add_all)(&mut states, digests);
        self.heap = self.heap.saturating_add_signed(growth);
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

    /// The aggregates.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &'static Kind> {
        self.slots.iter().map(|slot| slot.kind)
    }

    /// How many columns one of the aggregates has in a partial.
    pub(crate) fn columns(&self, aggregate: usize) -> usize {
        self.slots[aggregate].kind.columns.len()
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
        let at = shard.push_key(hash, key);
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
        let Shard { ends, states, .. } = &self.shards[group.shard as usize];
        let at = group.at as usize;
        prefetch::into_l1(ends.as_ptr().wrapping_add(at).cast());
        states.iter().for_each(|states| states.prefetch(at));
    }

    /// Fetches a group's key into the cache.
    pub(crate) fn prefetch_key(&self, group: Group) {
        prefetch::into_l1(self.key(group).as_ptr());
    }

    /// Adds the groups of a table of the same plan.
    pub(crate) fn merge(&mut self, from: Table) {
        self.heap += from.heap;
        let shards = self.shards.par_iter_mut().zip(from.shards);
        shards.for_each(|(shard, from)| shard.merge(from));
    }
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
