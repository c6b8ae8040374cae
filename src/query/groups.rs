//! All groups of an answer: those of short keys, of which lanes are known, and those of a table.

use std::cmp::Ordering;

use rayon::iter::Either;
use rayon::prelude::*;

use crate::partial::column::Gathered;
use crate::query::accumulator::state::Outcome;
use crate::query::lane_groups::LaneRows;
use crate::query::table::{Group, Table, parts};

/// The groups of an answer, each once.
pub(crate) struct Groups {
    table: Table,
    lanes: Option<LaneRows>,
}

impl Groups {
    pub(crate) fn new(table: Table, lanes: Option<LaneRows>) -> Groups {
        Groups { table, lanes }
    }

    /// All of them, in no order.
    pub(crate) fn all(&self) -> Vec<Group> {
        let mut all: Vec<Group> = self.table.groups().collect();
        if let Some(lanes) = &self.lanes {
            all.par_extend(lanes.groups());
        }
        all
    }

    /// The parts of a group's key.
    pub(crate) fn parts(&self, group: Group) -> impl Iterator<Item = &[u8]> {
        match (group.lanes(), &self.lanes) {
            (Some(place), Some(lanes)) => Either::Left(lanes.parts(place)),
            _ => Either::Right(parts(self.table.key(group))),
        }
    }

    /// The outcome of one of the aggregates in a group.
    pub(crate) fn finish(&self, group: Group, aggregate: usize, scale: u32) -> Outcome<'_> {
        match (group.lanes(), &self.lanes) {
            (Some(place), Some(lanes)) => lanes.finish(place, aggregate, scale),
            _ => self.table.finish(group, aggregate, scale),
        }
    }

    /// How many columns the states of one of the aggregates have in a partial.
    pub(crate) fn columns(&self, aggregate: usize) -> usize {
        self.table.columns(aggregate)
    }

    /// Adds a group's state of one of the aggregates to its columns in a partial.
    pub(crate) fn encode(&self, group: Group, aggregate: usize, to: &mut [Gathered]) {
        match (group.lanes(), &self.lanes) {
            (Some(place), Some(lanes)) => lanes.encode(place, aggregate, to),
            _ => self.table.encode(group, aggregate, to),
        }
    }

    /// Fetches what is known of a group, and where its key is, into the cache.
    fn prefetch(&self, group: Group) {
        match (group.lanes(), &self.lanes) {
            (Some(place), Some(lanes)) => lanes.prefetch(place),
            _ => self.table.prefetch(group),
        }
    }

    /// Fetches a group's key into the cache.
    fn prefetch_key(&self, group: Group) {
        if group.lanes().is_none() {
            self.table.prefetch_key(group);
        }
    }

    /// Fetches the group at a place of many into the cache, and the key of one before it.
    pub(crate) fn fetch(&self, at: usize, group: impl Fn(usize) -> Option<Group>) {
        if let Some(group) = group(at) {
            self.prefetch(group);
        }
        // Where a key's bytes are is known once its end has come.
        if let Some(group) = at.checked_sub(AHEAD).and_then(&group) {
            self.prefetch_key(group);
        }
    }

    /// In the order of their keys.
    pub(crate) fn sorted(&self, groups: Vec<Group>) -> Vec<Group> {
        let keyed = groups
            .par_iter()
            .map(|&group| Some((bytes_of(self.parts(group), 0)?, group)));
        let keyed: Option<Vec<_>> = keyed.collect();
        let Some(mut keyed) = keyed else {
            let mut groups = groups;
            groups.par_sort_unstable_by(|one, two| self.by_key(*one, *two));
            return groups;
        };
        self.sort_from(&mut keyed, 0);
        keyed.into_iter().map(|(_, group)| group).collect()
    }

    /// Sorts groups whose keys are the same up to `at`, by their bytes from there on, which stand beside them.
    fn sort_from(&self, keyed: &mut [(u128, Group)], at: usize) {
        keyed.par_sort_unstable_by_key(|(bytes, _)| *bytes);
        let same = keyed.par_chunk_by_mut(|one, two| one.0 == two.0);
        same.filter(|same| same.len() > 1).for_each(|same| {
            let next = at + size_of::<u128>();
            if same.len() <= COMPARED || next > SORTED_BYTES {
                same.sort_unstable_by(|one, two| self.by_key(one.1, two.1));
                return;
            }
            for at in 0..same.len() {
                self.fetch(at + FETCHED, |at| same.get(at).map(|(_, group)| *group));
                let Some(bytes) = bytes_of(self.parts(same[at].1), next) else {
                    same.sort_unstable_by(|one, two| self.by_key(one.1, two.1));
                    return;
                };
                same[at].0 = bytes;
            }
            self.sort_from(same, next);
        });
    }

    /// The order of two groups' keys.
    pub(crate) fn by_key(&self, one: Group, two: Group) -> Ordering {
        self.parts(one).cmp(self.parts(two))
    }
}

/// How many groups ahead of their turn keys are fetched, and groups.
const AHEAD: usize = 8;
pub(crate) const FETCHED: usize = 2 * AHEAD;
/// So few groups are sorted by comparing their whole keys.
const COMPARED: usize = 8;
/// The bytes of keys that are sorted by as numbers.
const SORTED_BYTES: usize = 256;

/// The bytes from `at` on of a key's parts, a zero behind each, and zeros behind all; `None` if there is a zero in the parts
/// among these. The order of keys is that of the first such bytes in which they differ.
fn bytes_of<'a>(parts: impl Iterator<Item = &'a [u8]>, at: usize) -> Option<u128> {
    let mut bytes = [0; 16];
    let (mut before, mut taken) = (at, 0);
    for part in parts {
        let Some(rest) = part.get(before..) else {
            before -= part.len() + 1;
            continue;
        };
        before = 0;
        let length = rest.len().min(bytes.len() - taken);
        if rest[..length].contains(&0) {
            return None;
        }
        bytes[taken..taken + length].copy_from_slice(&rest[..length]);
        taken += length + 1;
        if taken >= bytes.len() {
            break;
        }
    }
    Some(u128::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ahash::RandomState;
    use proptest::prelude::*;

    use super::*;
    use crate::query::table::push_part;

    fn part() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[ab\u{1}]{0,9}",
            2 => "(common prefix ){0,5}[ab]{0,3}",
            1 => "(a long one, longer than all that are compared as numbers ){4,6}[ab]{0,3}",
            1 => "[ab]{0,20}[a\u{0}]{0,3}",
        ]
    }

    proptest! {
        #[test]
        fn groups_are_sorted_by_their_keys(keys in prop::collection::vec([part(), part()], 0..200)) {
            let mut table = Table::new(&RandomState::new(), &[]);
            for key in &keys {
                let mut bytes = Vec::new();
                key.iter().for_each(|part| push_part(&mut bytes, part.as_bytes()));
                table.group(&bytes);
            }
            let groups = Groups::new(table, None);
            let sorted = groups.sorted(groups.all());
            let got: Vec<Vec<Vec<u8>>> = sorted
                .iter()
                .map(|group| groups.parts(*group).map(<[u8]>::to_vec).collect())
                .collect();
            let want: BTreeSet<Vec<Vec<u8>>> =
                keys.iter().map(|key| key.iter().map(|part| part.clone().into()).collect()).collect();
            prop_assert_eq!(got, want.into_iter().collect::<Vec<_>>());
        }
    }
}
