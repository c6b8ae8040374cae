//! All groups of an answer: those of short keys, of which lanes are known, and those of a table.

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
            for range in 0..lanes.ranges() {
                all.extend((0..lanes.len(range)).map(|at| Group::in_lanes(range, at)));
            }
        }
        all
    }

    /// The parts of a group's key.
    pub(crate) fn parts(&self, group: Group) -> impl Iterator<Item = &[u8]> {
        let (table, lanes) = match (group.lanes(), &self.lanes) {
            (Some((range, at)), Some(lanes)) => (None, Some(lanes.parts(range, at))),
            _ => (Some(parts(self.table.key(group))), None),
        };
        let lanes = lanes.into_iter().flatten();
        table.into_iter().flatten().chain(lanes)
    }

    /// The outcome of one of the aggregates in a group.
    pub(crate) fn finish(&self, group: Group, aggregate: usize, scale: u32) -> Outcome<'_> {
        match (group.lanes(), &self.lanes) {
            (Some((range, at)), Some(lanes)) => lanes.finish(range, at, aggregate, scale),
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
            (Some((range, at)), Some(lanes)) => lanes.encode(range, at, aggregate, to),
            _ => self.table.encode(group, aggregate, to),
        }
    }

    /// Fetches what is known of a group, and where its key is, into the cache.
    pub(crate) fn prefetch(&self, group: Group) {
        match (group.lanes(), &self.lanes) {
            (Some((range, at)), Some(lanes)) => lanes.prefetch(range, at),
            _ => self.table.prefetch(group),
        }
    }

    /// Fetches a group's key into the cache.
    pub(crate) fn prefetch_key(&self, group: Group) {
        if group.lanes().is_none() {
            self.table.prefetch_key(group);
        }
    }
}
