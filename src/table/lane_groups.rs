//! Groups of short keys, whose lanes are all that is known of them.
//!
//! Each worker has its own, in slots. In the end they are merged into one of these tables, where they stay until they are
//! printed. What lanes can't hold goes to a [`Table`], where a group has states: a group is in one of the two.

use rayon::prelude::*;

use crate::aggregate::lanes::{Kept, Layout, Part, ROWS_MAX, Traits};
use crate::aggregate::state::{Kind, Outcome, Rounding};
use crate::level::Level;
use crate::partial::column::Gathered;
use crate::report::grid::Digits;
use crate::table::isa::Seeds;
use crate::table::slots::{KEY_MAX, Slots, Unit, lanes_of};
use crate::table::states::{Group, ORDER_BYTES, Table, parts, push_part};

/// How a key is made of its parts in a slot. Behind it stands one byte more, which isn't zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyForm {
    /// There are no parts.
    None,
    /// One part.
    One,
    /// Parts with this byte between them.
    Between(u8),
    /// Parts that each begin with a byte of their length. A 1 stands behind the last.
    Prefixed,
}

impl KeyForm {
    /// The parts of a key with the byte behind it.
    pub(crate) fn parts(self, key: &[u8]) -> KeyParts<'_> {
        let key = &key[..key.len().saturating_sub(1)];
        KeyParts {
            form: self,
            rest: match self {
                KeyForm::None => None,
                KeyForm::Prefixed if key.is_empty() => None,
                _ => Some(key),
            },
        }
    }

    /// A key of these parts with the byte behind it, if it fits a slot.
    fn key<'a>(self, parts: impl Iterator<Item = &'a [u8]>, behind: u8) -> Option<Unit> {
        let mut key = Vec::with_capacity(KEY_MAX);
        for (at, part) in parts.enumerate() {
            match self {
                KeyForm::Between(byte) if at > 0 => key.push(byte),
                KeyForm::Prefixed => key.push(u8::try_from(part.len()).ok()?),
                _ => {}
            }
            key.extend_from_slice(part);
        }
        key.push(behind);
        Unit::of_key(&key)
    }
}

/// The parts of a key.
#[derive(Debug, Clone)]
pub(crate) struct KeyParts<'a> {
    form: KeyForm,
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for KeyParts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.take()?;
        match self.form {
            KeyForm::None => None,
            KeyForm::One => Some(rest),
            KeyForm::Between(byte) => {
                let at = rest.iter().position(|&found| found == byte);
                let Some(at) = at else {
                    return Some(rest);
                };
                self.rest = Some(&rest[at + 1..]);
                Some(&rest[..at])
            }
            KeyForm::Prefixed => {
                let (length, rest) = rest.split_first()?;
                let (part, rest) = rest.split_at(usize::from(*length));
                self.rest = (!rest.is_empty()).then_some(rest);
                Some(part)
            }
        }
    }
}

/// What all workers know of lanes: it is the same for all of a run.
#[derive(Clone)]
pub(crate) struct LanePlan {
    pub(crate) level: Level,
    pub(crate) seeds: Seeds,
    pub(crate) form: KeyForm,
    /// Parts of keys that are taken for empty ones.
    pub(crate) nulls: Vec<Vec<u8>>,
    /// Which parts of which columns are wanted. Columns count among those that lanes are about.
    pub(crate) wanted: Vec<(usize, Part)>,
    pub(crate) aggregates: Vec<LaneAggregate>,
}

/// An aggregate, and how it gets its values.
#[derive(Clone, Copy)]
pub(crate) struct LaneAggregate {
    pub(crate) kind: &'static Kind,
    pub(crate) served: Served,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Served {
    /// From lanes, of a column if it has one.
    Lanes(Option<usize>),
    /// Value by value: the column among the passes', and the number of its numbers.
    Values(usize, Option<usize>),
    /// Not at all: it has the states of another.
    Shared,
}

impl LanePlan {
    /// Whether an aggregate sees each value: then each group is in the table, too.
    pub(crate) fn has_values(&self) -> bool {
        let sees_values = |of: &LaneAggregate| matches!(of.served, Served::Values(..));
        self.aggregates.iter().any(sees_values)
    }

    /// A key as the table has it.
    fn whole_key(&self, key: &Unit, to: &mut Vec<u8>) {
        to.clear();
        for part in self.form.parts(key.key()) {
            push_part(to, if self.is_null(part) { b"" } else { part });
        }
    }

    pub(crate) fn is_null(&self, part: &[u8]) -> bool {
        self.nulls.iter().any(|null| null == part)
    }
}

/// What lanes hold of each column.
#[derive(Clone, PartialEq, Eq)]
struct Held {
    layout: Layout,
    scales: Vec<u32>,
    traits: Vec<Traits>,
}

impl Held {
    fn new(plan: &LanePlan, scales: Vec<u32>, traits: Vec<Traits>) -> Held {
        let wanted = plan.wanted.iter().copied();
        Held {
            layout: Layout::new(wanted, &traits, plan.has_values()),
            scales,
            traits,
        }
    }

    /// What an aggregate takes from lanes; `None` if it sees each value.
    fn kept(&self, served: Served, lanes: &[i64]) -> Option<Kept> {
        match served {
            Served::Values(..) | Served::Shared => None,
            Served::Lanes(None) => Some(Kept {
                known: lanes[0] as u64,
                ..Kept::default()
            }),
            Served::Lanes(Some(source)) => {
                Some(self.layout.kept(lanes, source, self.scales[source]))
            }
        }
    }

    /// Adds a group's lanes to a table.
    fn absorb(&self, plan: &LanePlan, table: &mut Table, slot: (&Unit, &[i64]), key: &mut Vec<u8>) {
        let (unit, lanes) = slot;
        let numbered = self.layout.group_lane();
        let numbered = numbered.map(|at| Group::numbered(lanes[at]));
        let group = numbered.unwrap_or_else(|| {
            plan.whole_key(unit, key);
            table.group(key)
        });
        for (at, aggregate) in plan.aggregates.iter().enumerate() {
            if let Some(kept) = self.kept(aggregate.served, lanes) {
                table.absorb(group, at, &kept);
            }
        }
    }
}

/// A worker's groups.
pub(crate) struct LaneGroups {
    plan: LanePlan,
    held: Held,
    pub(crate) slots: Slots,
    /// No group has more rows in its lanes.
    rows: u64,
}

impl LaneGroups {
    /// None yet, of so many columns.
    pub(crate) fn new(plan: LanePlan, columns: usize) -> LaneGroups {
        let held = Held::new(&plan, vec![0; columns], vec![Traits::default(); columns]);
        let slots = Slots::new(plan.level, &plan.seeds, held.layout.lanes().len());
        LaneGroups {
            plan,
            held,
            slots,
            rows: 0,
        }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.held.layout
    }

    /// Whether there are lanes for a column of this scale and traits.
    pub(crate) fn is_about(&self, column: usize, scale: u32, traits: Traits) -> bool {
        self.held.scales[column] == scale && self.held.traits[column] == traits
    }

    pub(crate) fn plan(&self) -> &LanePlan {
        &self.plan
    }

    /// Makes room for so many rows.
    pub(crate) fn reserve(&mut self, rows: usize, table: &mut Table) {
        self.rows += rows as u64;
        if self.rows > ROWS_MAX {
            self.relieve(table);
            self.rows += rows as u64;
        }
    }

    /// Adds the lanes of groups with many rows to the table, and empties them.
    #[cold]
    fn relieve(&mut self, table: &mut Table) {
        let (plan, held) = (&self.plan, &self.held);
        let group = held.layout.group_lane();
        let (mut key, mut most) = (Vec::new(), 0);
        for (unit, lanes) in self.slots.iter_mut() {
            if lanes[0] as u64 > ROWS_MAX / 2 {
                held.absorb(plan, table, (unit, lanes), &mut key);
                empty(lanes, group);
            }
            most = most.max(lanes[0] as u64);
        }
        self.rows = most;
    }

    /// Has lanes for columns of these scales, which aren't lower than before, and traits. What they can't hold goes to the
    /// table.
    pub(crate) fn adopt(&mut self, scales: Vec<u32>, traits: Vec<Traits>, table: &mut Table) {
        let held = Held::new(&self.plan, scales, traits);
        if held == self.held {
            return;
        }
        let mut slots = Slots::new(self.plan.level, &self.plan.seeds, held.layout.lanes().len());
        if self.slots.is_packed() {
            slots.pack();
        }
        let mut to = vec![0; held.layout.lanes().len()];
        let mut key = Vec::new();
        for (unit, lanes) in self.slots.iter() {
            let from = (&self.held.layout, &*self.held.scales, lanes);
            let fits = (held.layout).convert(from, &held.traits, &held.scales, &mut to);
            if !fits {
                self.held.absorb(&self.plan, table, (unit, lanes), &mut key);
                // The group stays, because rows of the batch may belong to it.
                let group = held.layout.group_lane();
                let number = self.held.layout.group_lane().map(|at| lanes[at]);
                to.fill(0);
                if let (Some(at), Some(number)) = (group, number) {
                    to[at] = number;
                }
            }
            slots.insert(unit, &to);
        }
        self.slots = slots;
        self.held = held;
    }

    /// Adds what is known of rows of a group, where lanes are about one column and can hold it. Says whether they can.
    pub(crate) fn hold(&mut self, key: &Unit, kept: &Kept, table: &mut Table) -> bool {
        if kept.known > ROWS_MAX / 2 {
            return false;
        }
        self.reserve(kept.known as usize, table);
        let Held {
            layout,
            scales,
            traits,
        } = &self.held;
        let Some(from) = layout.hold(kept, traits[0], scales[0]) else {
            return false;
        };
        let Some(place) = self.slots.place_of(key) else {
            self.slots.insert(key, &from);
            return true;
        };
        let (_, to) = self.slots.at_mut(place);
        for ((lane, to), from) in layout.lanes().iter().zip(to).zip(from) {
            *to = match lane.is_extreme() {
                true => from.max(*to),
                false => *to + from,
            };
        }
        true
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.bytes()
    }

    /// The most memory that the groups of all workers take while they are merged, and then put in order.
    pub(crate) fn bytes_merged(all: &[LaneGroups]) -> usize {
        let bytes: usize = all.iter().map(LaneGroups::bytes).sum();
        let (keys, wanted) = Slots::union(all.iter().map(|groups| &groups.slots));
        let merged = wanted.map_or(0, |slots| slots * all[0].slots.slot_bytes());
        (bytes + merged).max(bytes.max(merged) + ORDER_BYTES * keys)
    }

    /// Gives the groups away and begins anew in little memory.
    pub(crate) fn take(&mut self) -> LaneGroups {
        let mut slots = Slots::new(
            self.plan.level,
            &self.plan.seeds,
            self.held.layout.lanes().len(),
        );
        slots.pack();
        LaneGroups {
            plan: self.plan.clone(),
            held: self.held.clone(),
            slots: std::mem::replace(&mut self.slots, slots),
            rows: std::mem::take(&mut self.rows),
        }
    }

    /// Adds all lanes to a table, and forgets the groups.
    pub(crate) fn flush(&mut self, table: &mut Table) {
        let mut key = Vec::new();
        for slot in self.slots.iter() {
            self.held.absorb(&self.plan, table, slot, &mut key);
        }
        self.slots.clear();
        self.rows = 0;
    }

    /// Moves groups that another slot may have, too, to the table: those whose key has another byte than `behind` behind
    /// it, or a null among its parts.
    fn move_twins(&mut self, behind: u8, table: &mut Table) {
        let (plan, held) = (&self.plan, &self.held);
        let is_twin = |key: &[u8]| {
            let last = key.last().copied();
            last != Some(behind) || plan.form.parts(key).any(|part| plan.is_null(part))
        };
        let mut key = Vec::new();
        for (unit, lanes) in self.slots.iter_mut() {
            if lanes[0] > 0 && is_twin(unit.key()) {
                held.absorb(plan, table, (unit, lanes), &mut key);
                empty(lanes, None);
            }
        }
    }
}

/// Sets all lanes to zero, but for that of the group's number.
fn empty(lanes: &mut [i64], group: Option<usize>) {
    for (at, lane) in lanes.iter_mut().enumerate() {
        if Some(at) != group {
            *lane = 0;
        }
    }
}

/// Of so many groups in lanes one at least must be in the table, so that all go there.
const TABLE_SHARE: usize = 4;

/// Merged groups: each key once, and none that a table has.
pub(crate) struct LaneRows {
    plan: LanePlan,
    held: Held,
    slots: Slots,
    /// The byte after each key.
    behind: u8,
}

impl LaneRows {
    /// Merges the groups of all workers of a run. What lanes can't hold is added to the table, and so are all if that makes
    /// `None`.
    pub(crate) fn merge(mut all: Vec<LaneGroups>, table: &mut Table) -> Option<LaneRows> {
        let first = all.first()?;
        let most = all.iter().map(|groups| groups.slots.len()).max();
        if first.plan.has_values() || most.unwrap_or_default() <= TABLE_SHARE * table.len() {
            flush_all(all, table);
            return None;
        }
        let (plan, held) = (first.plan.clone(), Held::of_all(&all));
        let mut tables: Vec<Table> = all
            .par_iter_mut()
            .map(|groups| {
                let mut table = table.like();
                groups.adopt(held.scales.clone(), held.traits.clone(), &mut table);
                table
            })
            .collect();
        let behind = usual_behind(&all);
        let has_twins = |groups: &LaneGroups| {
            let mut counts = groups.slots.behind().iter().enumerate();
            let others = counts.any(|(byte, &count)| count > 0 && byte != usize::from(behind));
            others || !plan.nulls.is_empty()
        };
        if plan.form != KeyForm::None && all.iter().any(has_twins) {
            let each = all.par_iter_mut().zip(&mut tables);
            each.for_each(|(groups, table)| groups.move_twins(behind, table));
        }
        tables.into_iter().for_each(|from| table.merge(from));
        if most.unwrap_or_default() <= TABLE_SHARE * table.len() {
            flush_all(all, table);
            return None;
        }
        let extremes: Vec<bool> = (held.layout.lanes().iter())
            .map(|lane| lane.is_extreme())
            .collect();
        let slots = all.into_iter().map(|groups| groups.slots).collect();
        let (slots, refused) = Slots::merged(slots, |to, from| {
            if to[0] + from[0] > ROWS_MAX as i64 {
                return false;
            }
            let lanes = to.iter_mut().zip(from).zip(&extremes);
            for ((to, &from), is_extreme) in lanes {
                *to = match is_extreme {
                    true => from.max(*to),
                    false => *to + from,
                };
            }
            true
        });
        let mut rows = LaneRows {
            plan,
            held,
            slots,
            behind,
        };
        rows.move_to_table(&refused, table);
        Some(rows)
    }

    /// Adds these slots to the table, and the lanes of all groups that the table has then.
    fn move_to_table(&mut self, refused: &[Unit], table: &mut Table) {
        let LaneRows {
            plan,
            held,
            slots,
            behind,
        } = self;
        let mut key = Vec::new();
        for slot in refused.chunks(slots.stride()) {
            let slot = (&slot[0], lanes_of(&slot[1..]));
            held.absorb(plan, table, slot, &mut key);
        }
        let of_table = table.groups().filter_map(|group| {
            let key = plan.form.key(parts(table.key(group)), *behind)?;
            slots.place_of(&key)
        });
        for place in of_table.collect::<Vec<_>>() {
            let (unit, lanes) = slots.at_mut(place);
            if lanes[0] > 0 {
                held.absorb(plan, table, (unit, lanes), &mut key);
                empty(lanes, None);
            }
        }
    }

    /// How many slots there are, some of them perhaps without rows.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Where the group of a key of one part is.
    pub(crate) fn place_of(&self, part: &[u8]) -> Option<usize> {
        let key = (self.plan.form).key(std::iter::once(part), self.behind)?;
        self.slots.place_of(&key)
    }

    /// Adds the lanes of a key of one part to the table, if it has some.
    pub(crate) fn move_key(&mut self, part: &[u8], table: &mut Table) {
        let Some(place) = self.place_of(part) else {
            return;
        };
        let (unit, lanes) = self.slots.at_mut(place);
        if lanes[0] > 0 {
            (self.held).absorb(&self.plan, table, (unit, lanes), &mut Vec::new());
            empty(lanes, None);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups().find_any(|_| true).is_none()
    }

    /// All groups, in no order.
    pub(crate) fn groups(&self) -> impl ParallelIterator<Item = Group> {
        // Groups without rows are in the table.
        let places = self.slots.places(|lanes| lanes[0] > 0);
        places.map(Group::in_lanes)
    }

    /// The parts of a group's key.
    pub(crate) fn parts(&self, place: usize) -> KeyParts<'_> {
        self.plan.form.parts(self.slots.at(place).0.key())
    }

    /// The outcome of one of the aggregates in a group.
    pub(crate) fn finish(&self, place: usize, aggregate: usize, scale: u32) -> Outcome<'static> {
        let kept = self.kept(place, aggregate);
        self.plan.aggregates[aggregate].kind.outcome(&kept, scale)
    }

    /// What is printed of it.
    pub(crate) fn digits(
        &self,
        place: usize,
        aggregate: usize,
        scale: u32,
        rounding: Rounding,
    ) -> Option<Digits<'static>> {
        let kept = self.kept(place, aggregate);
        (self.plan.aggregates[aggregate].kind).digits(&kept, scale, rounding)
    }

    /// Adds a group's state of one of the aggregates to its columns.
    pub(crate) fn encode(&self, place: usize, aggregate: usize, to: &mut [Gathered]) {
        let kept = self.kept(place, aggregate);
        self.plan.aggregates[aggregate].kind.encode(&kept, to);
    }

    fn kept(&self, place: usize, aggregate: usize) -> Kept {
        let (_, lanes) = self.slots.at(place);
        let kept = self
            .held
            .kept(self.plan.aggregates[aggregate].served, lanes);
        kept.expect("all aggregates have lanes")
    }

    /// Fetches a group into the cache.
    pub(crate) fn prefetch(&self, place: usize) {
        self.slots.prefetch(place);
    }
}

impl Held {
    /// What can hold what all hold.
    fn of_all(all: &[LaneGroups]) -> Held {
        let mut scales = all[0].held.scales.clone();
        let mut traits = all[0].held.traits.clone();
        for groups in all {
            for (most, &scale) in scales.iter_mut().zip(&groups.held.scales) {
                *most = scale.max(*most);
            }
            for (most, other) in traits.iter_mut().zip(&groups.held.traits) {
                most.has_nulls |= other.has_nulls;
                most.is_wide |= other.is_wide;
            }
        }
        Held::new(&all[0].plan, scales, traits)
    }
}

/// The byte that stands behind most keys.
fn usual_behind(all: &[LaneGroups]) -> u8 {
    let count = |byte: &u8| -> u64 {
        let counts = all
            .iter()
            .map(|groups| groups.slots.behind()[usize::from(*byte)]);
        counts.map(u64::from).sum()
    };
    (0..=u8::MAX).max_by_key(count).unwrap_or_default()
}

/// Adds the lanes of all groups to a table.
fn flush_all(all: Vec<LaneGroups>, table: &mut Table) {
    let tables = all.into_par_iter().map(|mut groups| {
        let mut table = table.like();
        groups.flush(&mut table);
        table
    });
    let tables: Vec<Table> = tables.collect();
    tables.into_iter().for_each(|from| table.merge(from));
}
