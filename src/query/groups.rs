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
    pub(crate) fn prefetch(&self, group: Group) {
        match (group.lanes(), &self.lanes) {
            (Some(place), Some(lanes)) => lanes.prefetch(place),
            _ => self.table.prefetch(group),
        }
    }

    /// Fetches a group's key into the cache.
    pub(crate) fn prefetch_key(&self, group: Group) {
        if group.lanes().is_none() {
            self.table.prefetch_key(group);
        }
    }

    /// In the order of their keys.
    pub(crate) fn sorted(&self, groups: Vec<Group>) -> Vec<Group> {
        let beginnings = groups.par_iter().map(|&group| beginning(self.parts(group)));
        let beginnings: Option<Vec<u128>> = beginnings.collect();
        let beginnings = beginnings.unwrap_or_else(|| vec![0; groups.len()]);
        let mut keyed: Vec<_> = beginnings.into_iter().zip(groups).collect();
        keyed.par_sort_unstable_by(|(one, first), (two, second)| {
            one.cmp(two).then_with(|| self.by_key(*first, *second))
        });
        keyed.into_iter().map(|(_, group)| group).collect()
    }

    /// The order of two groups' keys.
    pub(crate) fn by_key(&self, one: Group, two: Group) -> Ordering {
        self.parts(one).cmp(self.parts(two))
    }
}

/// The first bytes of a key's parts, a zero behind each: their order is that of keys unless they are the same. `None` if
/// there are zeros in the parts.
fn beginning<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Option<u128> {
    let mut bytes = [0; 16];
    let mut at = 0;
    for part in parts {
        let length = part.len().min(bytes.len() - at);
        if part[..length].contains(&0) {
            return None;
        }
        bytes[at..at + length].copy_from_slice(&part[..length]);
        at = (at + length + 1).min(bytes.len());
    }
    Some(u128::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::table::{parts, push_part};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn beginnings_have_the_order_of_keys(
            one in prop::collection::vec("[ab\u{1}\u{0}]{0,9}", 1..4),
            two in prop::collection::vec("[ab\u{1}\u{0}]{0,9}", 1..4),
        ) {
            let key = |of: &[String]| {
                let mut key = Vec::new();
                of.iter().for_each(|part| push_part(&mut key, part.as_bytes()));
                key
            };
            // All keys of an answer have as many parts.
            let count = one.len().min(two.len());
            let (one, two) = (key(&one[..count]), key(&two[..count]));
            if let (Some(first), Some(second)) = (beginning(parts(&one)), beginning(parts(&two))) {
                let order = first.cmp(&second);
                prop_assert!(order.is_eq() || order == parts(&one).cmp(parts(&two)));
            }
        }
    }
}
