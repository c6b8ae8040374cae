//! The groups of all workers whose lanes are all that is known of them: each key once, until it is printed.

use rayon::iter::Either;
use rayon::prelude::*;

use crate::aggregate::lanes::{Kept, rows_of};
use crate::aggregate::state::{Outcome, Ratio};
use crate::partial::column::Gathered;
use crate::table::entries::{EntryTable, Refused};
use crate::table::entry_order::{Orders, Place};
use crate::table::key::KeyForm;
use crate::table::lane_groups::{LaneGroups, empty};
use crate::table::lane_plan::{Columns, KeyParts, LanePlan, Served};
use crate::table::merged::Merged;
use crate::table::shared::{Drained, Shard};
use crate::table::states::{Group, ORDER_BYTES, Table, parts};

/// Of so many groups in lanes one at least must be in the table, so that all go there.
const TABLE_SHARE: usize = 4;

/// Merged groups: each key once, and none that a table has.
pub(crate) struct LaneRows {
    plan: LanePlan,
    columns: Columns,
    groups: Merged,
    /// The byte after each key.
    after: u8,
    /// Whether groups without rows, which are in the table, may be here too.
    has_empty: bool,
}

impl LaneRows {
    /// Merges the groups of all workers of a run, and those that they shared. What lanes can't hold is added to the table, and
    /// so are all if that makes `None`. Where it takes no memory, they are in the order of their keys: that of numbers if all
    /// keys are numbers and `may_be_numbers`, else that of bytes.
    pub(crate) fn merge(
        all: Vec<LaneGroups>,
        drained: Drained,
        may_be_numbers: bool,
        table: &mut Table,
    ) -> Option<LaneRows> {
        let plan = all.first().map(LaneGroups::plan);
        let mut plan = plan.or(drained.plan.as_ref())?.clone();
        let is_shared = !drained.is_empty();
        let own = all.into_par_iter().map(LaneGroups::into_shard);
        let (mut own, mut shared): (Vec<Shard>, _) = (own.collect(), drained.shards);
        let most = own.iter().map(|groups| groups.entries.len()).max();
        let in_shards = shared.iter().flatten().map(|shard| shard.entries.len());
        let most = most.unwrap_or_default().max(in_shards.sum());
        let are_few = |table: &Table| most <= TABLE_SHARE * table.len();
        if plan.has_values() || are_few(table) {
            flush_all(own, &shared, &plan, table);
            return None;
        }
        let known = own.iter().chain(shared.iter().flatten());
        let columns = known
            .map(|shard| shard.columns.clone())
            .reduce(|one, other| one.union(&plan, &other))?;
        each(&mut own, &mut shared, table, |groups, table| {
            groups.convert(&plan, &columns, table);
        });
        let known = own.iter().chain(shared.iter().flatten());
        let counts: Vec<_> = known.map(|shard| shard.entries.after()).collect();
        let after = usual_after(&counts);
        let has_others = counts.iter().any(|counts| {
            let mut counts = counts.iter().enumerate();
            counts.any(|(byte, &count)| count > 0 && byte != usize::from(after))
        });
        if plan.form != KeyForm::None && (has_others || !plan.nulls.is_empty()) {
            each(&mut own, &mut shared, table, |groups, table| {
                groups.move_twins(&plan, after, table);
            });
        }
        if are_few(table) {
            flush_all(own, &shared, &plan, table);
            return None;
        }
        let tables: Vec<EntryTable> = own.into_iter().map(|groups| groups.entries).collect();
        let token = table.cancellation.clone();
        let add = |to: &mut [i64], from: &[i64]| {
            token.as_ref().inspect(|token| token.unwind());
            columns.layout.add_up_to_max(to, from)
        };
        let form = plan.form;
        let (groups, mut refused) = if !is_shared {
            let sorted = Merged::sorted(tables, form, may_be_numbers, &add);
            let with_after = |(merged, mut refused): (Merged, Vec<Refused>)| {
                refused.iter_mut().for_each(|(key, _)| key.push(after));
                (merged, refused)
            };
            sorted.map_or_else(|tables| Merged::new(tables, add), with_after)
        } else {
            let parts = shared.into_iter().map(|shard| Some(shard?.entries));
            Merged::with_parts(parts.collect(), &tables, columns.layout.lanes().len(), add)
        };
        if groups.orders().is_some() {
            plan.form = form.in_order();
        }
        columns.absorb_all(&plan, table, &mut refused);
        let mut rows = LaneRows {
            plan,
            columns,
            groups,
            after,
            has_empty: false,
        };
        rows.move_to_table(table);
        rows.has_empty = table.len() > 0;
        table.unwind();
        rows.groups.sort(form, may_be_numbers);
        if rows.groups.orders().is_some() {
            rows.plan.form = form.in_order();
        }
        Some(rows)
    }

    /// Adds the lanes of all groups that the table has to it.
    fn move_to_table(&mut self, table: &mut Table) {
        let of_table = table.groups().filter_map(|group| {
            let key = (self.plan.form).key(parts(table.key(group)), self.after)?;
            self.groups
                .find(key.tag(self.plan.level, &self.plan.seeds), &key)
        });
        let mut key = Vec::new();
        for place in of_table.collect::<Vec<_>>() {
            self.move_group(place, table, &mut key);
        }
    }

    /// Adds the lanes of a group to the table, if it has some.
    fn move_group(&mut self, place: Place, table: &mut Table, key: &mut Vec<u8>) {
        let lanes = self.groups.lanes(place);
        if rows_of(lanes[0]) > 0 {
            let short = [self.groups.text(place), &[self.after]].concat();
            self.columns.absorb(&self.plan, table, (&short, lanes), key);
            empty(self.groups.lanes_mut(place), None);
        }
    }

    /// The orders of keys that [groups](LaneRows::groups) are in.
    pub(crate) fn orders(&self) -> Option<Orders> {
        self.groups.orders()
    }

    /// Whether some groups are in these orders.
    pub(crate) fn are_sorted(&self, groups: &[Group]) -> bool {
        groups.par_windows(2).all(|pair| {
            let [one, other] = [pair[0], pair[1]].map(Group::lanes);
            let pair = one.zip(other);
            pair.is_some_and(|(one, other)| self.groups.are_ordered(one, other))
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups().find_any(|_| true).is_none()
    }

    /// All groups, in no order unless they are sorted.
    pub(crate) fn groups(&self) -> impl ParallelIterator<Item = Group> {
        let has_rows = |place: &Place| rows_of(self.groups.lanes(*place)[0]) > 0;
        let places = self.groups.places();
        let places = match self.has_empty {
            true => Either::Left(places.filter(has_rows)),
            // The number of groups is known, so they are collected in place.
            false => Either::Right(places),
        };
        places.map(Group::in_lanes)
    }

    /// The parts of a group's key.
    pub(crate) fn parts(&self, place: Place) -> KeyParts<'_> {
        self.plan.form.parts_of(self.groups.text(place))
    }

    /// The outcome of one of the aggregates in a group.
    pub(crate) fn finish(&self, place: Place, aggregate: usize, scale: u32) -> Outcome<'static> {
        let kept = self.kept(place, aggregate);
        self.plan.aggregates[aggregate].kind.outcome(&kept, scale)
    }

    /// The same where it is no more than a ratio, unless it is null.
    pub(crate) fn ratio(&self, place: Place, aggregate: usize) -> Option<Ratio> {
        let kept = self.kept(place, aggregate);
        self.plan.aggregates[aggregate].kind.ratio(&kept)
    }

    /// Adds a group's state of one of the aggregates to its columns.
    pub(crate) fn encode(&self, place: Place, aggregate: usize, to: &mut [Gathered]) {
        let kept = self.kept(place, aggregate);
        self.plan.aggregates[aggregate].kind.encode(&kept, to);
    }

    #[inline]
    fn kept(&self, place: Place, aggregate: usize) -> Kept {
        let Served::Lanes(source) = self.plan.aggregates[aggregate].served else {
            unreachable!("all aggregates have lanes");
        };
        self.columns.kept(source, self.groups.lanes(place))
    }

    /// Fetches a group into the cache.
    pub(crate) fn prefetch(&self, place: Place) {
        self.groups.prefetch(place);
    }
}

/// Calls `change` for the groups of each worker and for shared ones, in parallel; what that adds to a table is added to
/// `table`.
fn each(
    own: &mut [Shard],
    shared: &mut [Option<Shard>],
    table: &mut Table,
    change: impl Fn(&mut Shard, &mut Table) + Sync,
) {
    let all = own.par_iter_mut().chain(shared.par_iter_mut().flatten());
    let like = &*table;
    let tables = all.fold(
        || like.like(),
        |mut table, groups| {
            change(groups, &mut table);
            table
        },
    );
    let tables: Vec<Table> = tables.collect();
    tables.into_iter().for_each(|from| table.merge(from));
}

/// The byte that stands after most keys.
fn usual_after(counts: &[&[u32; 256]]) -> u8 {
    let count = |byte: &u8| -> u64 {
        let counts = counts.iter().map(|counts| counts[usize::from(*byte)]);
        counts.map(u64::from).sum()
    };
    (0..=u8::MAX).max_by_key(count).unwrap_or_default()
}

/// The most memory that the groups of all workers take while they are merged, and then put in order.
pub(crate) fn bytes_merged(all: &[LaneGroups]) -> usize {
    let sum: usize = all.iter().map(LaneGroups::bytes).sum();
    let keys: usize = all.iter().map(|groups| groups.slots.len()).sum();
    let most = all.iter().map(LaneGroups::bytes).max().unwrap_or_default();
    // At most all keys of the others are new to the largest.
    (sum + (sum - most)).max(sum + ORDER_BYTES * keys)
}

/// Adds the lanes of all groups to a table.
fn flush_all(mut own: Vec<Shard>, shared: &[Option<Shard>], plan: &LanePlan, table: &mut Table) {
    each(&mut own, &mut [], table, |groups, table| {
        groups.flush(plan, table);
    });
    for shard in shared.iter().flatten() {
        shard.flush(plan, table);
    }
}
