//! Groups by key, and the states of each.

use ahash::RandomState;
use hashbrown::HashTable;

use crate::query::accumulator::state::{Kind, States};

/// The groups that have been seen, numbered from 0.
pub(crate) struct Table {
    hasher: RandomState,
    groups: HashTable<usize>,
    hashes: Vec<u64>,
    /// All keys, one behind the other, and where each ends.
    keys: Vec<u8>,
    ends: Vec<usize>,
    /// For each aggregate the states of all groups.
    pub(crate) states: Vec<Box<dyn States>>,
}

impl Table {
    pub(crate) fn new(
        hasher: &RandomState,
        aggregates: impl IntoIterator<Item = &'static Kind>,
    ) -> Table {
        Table {
            hasher: hasher.clone(),
            groups: HashTable::new(),
            hashes: Vec::new(),
            keys: Vec::new(),
            ends: Vec::new(),
            states: aggregates.into_iter().map(Kind::states).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn key(&self, group: usize) -> &[u8] {
        key(&self.keys, &self.ends, group)
    }

    /// The number of a key's group, a new one if need be.
    pub(crate) fn group(&mut self, key: &[u8]) -> usize {
        self.hashed_group(self.hasher.hash_one(key), key)
    }

    fn hashed_group(&mut self, hash: u64, wanted: &[u8]) -> usize {
        let (keys, ends) = (&self.keys, &self.ends);
        let same = |&group: &usize| key(keys, ends, group) == wanted;
        if let Some(&group) = self.groups.find(hash, same) {
            return group;
        }
        let group = self.ends.len();
        self.keys.extend_from_slice(wanted);
        self.ends.push(self.keys.len());
        self.hashes.push(hash);
        let hashes = &self.hashes;
        self.groups
            .insert_unique(hash, group, |&group| hashes[group]);
        for states in &mut self.states {
            states.push();
        }
        group
    }

    /// Adds the groups of a table of the same plan.
    pub(crate) fn merge(&mut self, mut from: Table) {
        if from.len() > self.len() {
            std::mem::swap(self, &mut from);
        }
        let into: Vec<usize> = (0..from.len())
            .map(|group| self.hashed_group(from.hashes[group], from.key(group)))
            .collect();
        for (states, from) in self.states.iter_mut().zip(from.states) {
            states.merge(from, &into);
        }
    }
}

fn key<'a>(keys: &'a [u8], ends: &[usize], group: usize) -> &'a [u8] {
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
        let mut tables = [Table::new(&hasher, []), Table::new(&hasher, [])];
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
                all.insert(key);
            }
        }
        let [mut one, two] = tables;
        one.group(all.first().unwrap());
        one.merge(two);
        let got: std::collections::BTreeSet<_> = (0..one.len())
            .map(|group| one.key(group).to_vec())
            .collect();
        assert_eq!((one.len(), got), (49, all));
    }
}
