//! Groups whose lanes are all that is known of them.
//!
//! Each worker has its own. In the end they are merged into one of these tables, where they stay until they are
//! printed. What lanes can't hold goes to a [`Table`], where a group has states: a group is in one of the two.

use std::sync::Arc;

use crate::aggregate::lanes::{Kept, Layout, ROWS_MAX, Traits, rows_of};
use crate::table::entries::EntryTable;
use crate::table::isa::READABLE;
use crate::table::lane_plan::{Columns, LanePlan};
use crate::table::lane_table::{GROUP_LANES, LaneTable};
use crate::table::shared::{LOCAL_MAX, Shard, SharedGroups};
use crate::table::states::Table;

/// Keys, and what is known of some rows of each, that are added to groups at once.
#[derive(Default)]
pub(crate) struct KeptBatch {
    text: Vec<u8>,
    /// The keys, each with the byte after it: where it begins and, in the high half, ends.
    spans: Vec<u32>,
    kept: Vec<Kept>,
    /// Lanes of one of them.
    held: Vec<i64>,
    /// Each lane of those that fit.
    lanes: Vec<Vec<i64>>,
}

impl KeptBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Adds a key with the byte after it. Says whether there is room for another one.
    pub(crate) fn push(&mut self, key: &[u8], kept: Kept) -> bool {
        let start = self.text.len();
        self.text.extend_from_slice(key);
        self.spans.push((start | self.text.len() << 16) as u32);
        self.kept.push(kept);
        self.kept.len() < KEPT_ROWS
    }
}

/// Keys of a batch: the longest take less than 64 KiB.
const KEPT_ROWS: usize = 128;

/// A worker's groups.
pub(crate) struct LaneGroups {
    plan: LanePlan,
    columns: Columns,
    pub(crate) slots: LaneTable,
    /// Memory is short.
    is_short: bool,
    /// Groups move to those that all workers share when they are many.
    is_sharing: bool,
    /// No group has more rows in its lanes.
    rows: u64,
    shared: Option<Arc<SharedGroups>>,
}

impl LaneGroups {
    /// None yet, of so many columns; with what all workers share.
    pub(crate) fn new(plan: LanePlan, count: usize, shared: &Arc<SharedGroups>) -> LaneGroups {
        let shared = (!plan.has_values()).then(|| Arc::clone(shared));
        let columns = Columns::new(&plan, vec![0; count], vec![Traits::default(); count]);
        LaneGroups {
            slots: columns.table(&plan, false),
            plan,
            columns,
            is_short: false,
            is_sharing: false,
            rows: 0,
            shared,
        }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.columns.layout
    }

    /// Whether there are lanes for a column of this scale and traits.
    pub(crate) fn is_about(&self, column: usize, scale: u32, traits: Traits) -> bool {
        self.columns.scales[column] == scale && self.columns.traits[column] == traits
    }

    pub(crate) fn plan(&self) -> &LanePlan {
        &self.plan
    }

    /// Makes room for so many rows.
    pub(crate) fn reserve(&mut self, rows: usize, table: &mut Table) {
        if self.slots.len() > LOCAL_MAX && self.shares() {
            self.share(table);
        }
        self.rows += rows as u64;
        if self.rows > ROWS_MAX {
            self.relieve(table);
            self.rows += rows as u64;
        }
    }

    /// Adds the lanes of groups with many rows to the table, and empties them.
    #[cold]
    fn relieve(&mut self, table: &mut Table) {
        let (plan, columns) = (&self.plan, &self.columns);
        let group = columns.layout.group_lane();
        let (mut key, mut most) = (Vec::new(), 0);
        self.slots.each_mut(|short, lanes| {
            if rows_of(lanes[0]) > ROWS_MAX / 2 {
                columns.absorb(plan, table, (short, lanes), &mut key);
                empty(lanes, group);
            }
            most = most.max(rows_of(lanes[0]));
        });
        self.rows = most;
    }

    /// Has lanes for columns of these scales, which aren't lower than before, and traits. What they can't hold goes to the
    /// table.
    pub(crate) fn set_columns(&mut self, scales: Vec<u32>, traits: Vec<Traits>, table: &mut Table) {
        let columns = Columns::new(&self.plan, scales, traits);
        self.convert(columns, table);
    }

    /// Has lanes for other columns, which can hold more.
    pub(crate) fn convert(&mut self, columns: Columns, table: &mut Table) {
        if columns == self.columns {
            return;
        }
        let mut slots = columns.table(&self.plan, self.is_short);
        if self.slots.expects_many() {
            slots.expect_many();
        }
        let (plan, from) = (&self.plan, &self.columns);
        columns.convert(plan, from, self.slots.iter(), table, |key, lanes| {
            slots.insert(key, lanes);
        });
        self.slots = slots;
        self.columns = columns;
    }

    /// Whether groups are shared with other workers.
    pub(crate) fn shares(&self) -> bool {
        self.is_sharing
    }

    /// Whether they may be.
    pub(crate) fn may_share(&self) -> bool {
        self.shared.is_some()
    }

    /// Moves all groups to the shards; from now on only some are gathered here.
    pub(crate) fn share(&mut self, table: &mut Table) {
        let Some(shared) = self.shared.clone() else {
            return;
        };
        self.is_short = true;
        let is_first = !std::mem::replace(&mut self.is_sharing, true);
        self.rows = 0;
        let widest = shared.widest(&self.plan, &self.columns);
        self.convert(widest, table);
        let mut refused = Vec::new();
        for hashes in shared.ranges() {
            shared.with(hashes, |shard| {
                let shard = shard.get_or_insert_with(|| Shard::new(&self.columns));
                // Another worker may have had other columns meanwhile.
                let union = (shard.columns != self.columns)
                    .then(|| shard.columns.union(&self.plan, &self.columns));
                let columns = union.as_ref().unwrap_or(&self.columns);
                shard.convert(&self.plan, columns, table);
                let entries = self.slots.entries();
                // Only these entries are converted: others are in shards already.
                let own = (*columns != self.columns).then(|| {
                    let lanes = self.columns.layout.lanes().len();
                    let mut own = EntryTable::new(lanes, true);
                    let once = |_: &mut [i64], _: &[i64]| -> bool { unreachable!("each key once") };
                    own.absorb(entries, hashes, &once, &mut Vec::new());
                    columns.entries(&self.plan, (&self.columns, &own), table)
                });
                let add = |to: &mut [i64], from: &[i64]| columns.layout.add_up_to_max(to, from);
                let entries = own.as_ref().unwrap_or(entries);
                (shard.entries).absorb(entries, hashes, &add, &mut refused);
                columns.absorb_all(&self.plan, table, &mut refused);
            });
        }
        match is_first {
            true => self.slots = self.columns.table(&self.plan, true),
            false => self.slots.clear(),
        }
    }

    /// Adds what is known of rows of some groups, where lanes are about one column: what they can't hold to the table. Keys
    /// differ.
    pub(crate) fn add_kept(&mut self, batch: &mut KeptBatch, table: &mut Table) {
        let may_fit = |kept: &Kept| kept.known <= ROWS_MAX / 2;
        let most = batch.kept.iter().filter(|kept| may_fit(kept));
        let most = most.map(|kept| kept.known).max().unwrap_or_default();
        self.reserve(most as usize, table);
        let Columns {
            layout,
            scales,
            traits,
        } = &self.columns;
        let KeptBatch {
            text,
            spans,
            kept,
            held,
            lanes,
        } = batch;
        held.resize(layout.lanes().len(), 0);
        lanes.resize(held.len().next_multiple_of(GROUP_LANES), Vec::new());
        let (mut all, mut whole) = (kept.drain(..), Vec::new());
        spans.retain(|span| {
            let kept = &all.next().expect("as many as keys");
            let fits = may_fit(kept) && layout.hold(kept, traits[0], scales[0], held);
            if fits {
                let held = held.iter().chain(std::iter::repeat(&0));
                let to = lanes.iter_mut().zip(held);
                to.for_each(|(lane, value)| lane.push(*value));
            } else {
                let key = &text[(span & 0xffff) as usize..(span >> 16) as usize];
                self.plan.whole_key(key, &mut whole);
                let group = table.group(&whole);
                for aggregate in 0..table.kinds().count() {
                    table.absorb(group, aggregate, kept);
                }
            }
            fits
        });
        drop(all);
        text.extend_from_slice(&[0; READABLE]);
        self.slots.find(text, spans);
        for (four, first) in lanes.chunks(GROUP_LANES).zip((0..).step_by(GROUP_LANES)) {
            let values = std::array::from_fn(|at| &*four[at]);
            self.slots.add(first, values, layout.additions(first));
        }
        text.clear();
        spans.clear();
        lanes.iter_mut().for_each(Vec::clear);
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.bytes()
    }

    /// Gives the groups away and begins anew in little memory.
    pub(crate) fn take(&mut self) -> LaneGroups {
        self.is_short = true;
        LaneGroups {
            plan: self.plan.clone(),
            columns: self.columns.clone(),
            slots: std::mem::replace(&mut self.slots, self.columns.table(&self.plan, true)),
            is_short: true,
            is_sharing: false,
            rows: std::mem::take(&mut self.rows),
            shared: None,
        }
    }

    /// The groups, in the end.
    pub(crate) fn into_shard(self) -> Shard {
        Shard {
            columns: self.columns,
            entries: self.slots.into_entries(),
        }
    }

    /// Adds all lanes to a table, and forgets the groups.
    pub(crate) fn flush(&mut self, table: &mut Table) {
        let mut key = Vec::new();
        for slot in self.slots.iter() {
            self.columns.absorb(&self.plan, table, slot, &mut key);
        }
        self.slots = self.columns.table(&self.plan, self.is_short);
        self.rows = 0;
    }
}

impl Shard {
    /// Has lanes for other columns, which can hold more.
    pub(crate) fn convert(&mut self, plan: &LanePlan, columns: &Columns, table: &mut Table) {
        if *columns != self.columns {
            let from = (&self.columns, &self.entries);
            self.entries = columns.entries(plan, from, table);
            self.columns = columns.clone();
        }
    }

    /// Moves groups to the table whose key has another byte than most after it, or a null among its parts: another key may be
    /// the same.
    pub(crate) fn move_twins(&mut self, plan: &LanePlan, after: u8, table: &mut Table) {
        let mut whole = Vec::new();
        self.entries.each_mut(|key, lanes| {
            let is_null = |part| plan.is_null(part);
            let is_twin = key.last() != Some(&after) || plan.form.parts(key).any(is_null);
            if rows_of(lanes[0]) > 0 && is_twin {
                (self.columns).absorb(plan, table, (key, lanes), &mut whole);
                empty(lanes, None);
            }
        });
    }

    /// Adds all lanes to a table.
    pub(crate) fn flush(&self, plan: &LanePlan, table: &mut Table) {
        let mut whole = Vec::new();
        for group in self.entries.iter() {
            self.columns.absorb(plan, table, group, &mut whole);
        }
    }
}

/// Sets all lanes to zero, but for that of the group's number.
pub(crate) fn empty(lanes: &mut [i64], group: Option<usize>) {
    for (at, lane) in lanes.iter_mut().enumerate() {
        if Some(at) != group {
            *lane = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ahash::RandomState;
    use ringfold_read::internals::Level;

    use super::*;
    use crate::aggregate::definition::Slot;
    use crate::aggregate::lanes::Part;
    use crate::aggregate::named;
    use crate::budget::Budget;
    use crate::table::isa::Seeds;
    use crate::table::key::KeyForm;
    use crate::table::lane_plan::{LaneAggregate, Served};

    /// Where some shards have columns that a value doesn't fit, its group goes to the table, and no group goes to both.
    #[test]
    fn shared_groups_are_in_one_place() {
        const KEYS: usize = 100;
        let kind = named("sum").unwrap();
        let of = LaneAggregate {
            kind,
            served: Served::Lanes(Some(0)),
        };
        let plan = LanePlan {
            level: Level::Portable,
            seeds: Seeds::random(),
            form: KeyForm::One,
            nulls: Vec::new(),
            wanted: vec![(0, Part::Sum)],
            aggregates: vec![of],
        };
        let traits = Traits {
            exceeds_short: true,
            is_wide: true,
            ..Traits::default()
        };
        let shared = Arc::new(SharedGroups::new(&Budget::new(None, Path::new("."), None)));
        let mut table = Table::new(&RandomState::new(), &[Slot { kind, owner: 0 }], None);
        let mut groups = LaneGroups::new(plan.clone(), 1, &shared);
        groups.set_columns(vec![0], vec![traits], &mut table);
        let mut batch = KeptBatch::default();
        for key in 0..KEYS {
            let value = Kept::of(Some(4_000_000_000_000_000_000), 0);
            batch.push(format!("key {key};").as_bytes(), value);
        }
        groups.add_kept(&mut batch, &mut table);
        let wide = Columns::new(&plan, vec![3], vec![traits]);
        for hashes in shared.ranges().filter(|hashes| hashes.number % 2 == 1) {
            shared.with(hashes, |shard| *shard = Some(Shard::new(&wide)));
        }
        groups.share(&mut table);
        let mut in_lanes = 0;
        for hashes in shared.ranges() {
            shared.with(hashes, |shard| {
                let entries = shard.iter().flat_map(|shard| shard.entries.iter());
                in_lanes += entries.filter(|(_, lanes)| rows_of(lanes[0]) > 0).count();
            });
        }
        assert!(in_lanes > 0 && table.len() > 0);
        assert_eq!(in_lanes + table.len(), KEYS);
    }
}
