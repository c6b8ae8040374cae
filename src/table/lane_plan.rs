//! What lanes are about: the parts of a key, the columns and the scales of their numbers, and how an aggregate gets its
//! values. From it a group goes to the lanes of other columns, or to the states of a [`Table`].

use ringfold_read::internals::Level;

use crate::aggregate::definition::Kind;
use crate::aggregate::lanes::{Kept, Layout, Part, Traits, rows_of};
use crate::table::entries::{EntryTable, KEY_MAX, Key, Refused};
use crate::table::isa::Seeds;
use crate::table::key::KeyForm;
use crate::table::lane_table::LaneTable;
use crate::table::states::{Group, Table, push_part};

impl KeyForm {
    /// That of keys in their order.
    pub(crate) fn in_order(self) -> KeyForm {
        match self {
            KeyForm::Between(_) | KeyForm::Prefixed => KeyForm::Between(0),
            KeyForm::None | KeyForm::One => self,
        }
    }

    /// The parts of a key with the byte after it.
    pub(crate) fn parts(self, key: &[u8]) -> KeyParts<'_> {
        self.parts_of(&key[..key.len().saturating_sub(1)])
    }

    /// The parts of a key without the byte after it.
    pub(crate) fn parts_of(self, key: &[u8]) -> KeyParts<'_> {
        KeyParts {
            form: self,
            rest: match self {
                KeyForm::None => None,
                KeyForm::Prefixed if key.is_empty() => None,
                _ => Some(key),
            },
        }
    }

    /// A key of these parts with the byte after it, if it fits an entry.
    pub(crate) fn key<'a>(self, parts: impl Iterator<Item = &'a [u8]>, after: u8) -> Option<Key> {
        let mut key = Vec::with_capacity(KEY_MAX);
        for (at, part) in parts.enumerate() {
            match self {
                KeyForm::Between(byte) if at > 0 => key.push(byte),
                KeyForm::Prefixed => key.push(u8::try_from(part.len()).ok()?),
                _ => {}
            }
            key.extend_from_slice(part);
        }
        key.push(after);
        Key::of(&key)
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
    pub(crate) kind: Kind,
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
    pub(crate) fn whole_key(&self, key: &[u8], to: &mut Vec<u8>) {
        to.clear();
        for part in self.form.parts(key) {
            push_part(to, if self.is_null(part) { b"" } else { part });
        }
    }

    pub(crate) fn is_null(&self, part: &[u8]) -> bool {
        self.nulls.iter().any(|null| null == part)
    }
}

/// Which columns lanes are about, and what they can hold.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) layout: Layout,
    pub(crate) scales: Vec<u32>,
    pub(crate) traits: Vec<Traits>,
}

impl Columns {
    pub(crate) fn new(plan: &LanePlan, scales: Vec<u32>, traits: Vec<Traits>) -> Columns {
        let wanted = plan.wanted.iter().copied();
        Columns {
            layout: Layout::new(wanted, &traits, plan.has_values()),
            scales,
            traits,
        }
    }

    /// An empty table for these lanes.
    pub(crate) fn table(&self, plan: &LanePlan, is_short: bool) -> LaneTable {
        LaneTable::new(plan.level, &plan.seeds, self.layout.lanes().len(), is_short)
    }

    /// What can hold what both hold.
    pub(crate) fn union(&self, plan: &LanePlan, other: &Columns) -> Columns {
        let scales = self.scales.iter().zip(&other.scales);
        let scales = scales.map(|(one, other)| *one.max(other)).collect();
        let traits = self.traits.iter().zip(&other.traits);
        let traits = traits.map(|(one, other)| one.union(*other)).collect();
        Columns::new(plan, scales, traits)
    }

    /// Calls `to` with each of some groups, as lanes of these columns hold it. What they can't hold is added to the table, and
    /// lanes are zeros then.
    pub(crate) fn convert<'a>(
        &self,
        plan: &LanePlan,
        from: &Columns,
        groups: impl Iterator<Item = (&'a [u8], &'a [i64])>,
        table: &mut Table,
        mut to: impl FnMut(&Key, &[i64]),
    ) {
        let mut converted = vec![0; self.layout.lanes().len()];
        let mut whole = Vec::new();
        for (key, lanes) in groups {
            let known = (&from.layout, &*from.scales, lanes);
            let fits = (self.layout).convert(known, &self.traits, &self.scales, &mut converted);
            if !fits {
                from.absorb(plan, table, (key, lanes), &mut whole);
                // The group stays, because rows of the batch may belong to it.
                converted.fill(0);
                let number = from.layout.group_lane().map(|at| lanes[at]);
                if let (Some(at), Some(number)) = (self.layout.group_lane(), number) {
                    converted[at] = number;
                }
            }
            let key = Key::of(key).expect("a key of a table");
            to(&key, &converted);
        }
    }

    /// A table of the groups in another one, whose lanes are of other columns.
    pub(crate) fn entries(
        &self,
        plan: &LanePlan,
        (from, entries): (&Columns, &EntryTable),
        table: &mut Table,
    ) -> EntryTable {
        let mut to = entries.like(self.layout.lanes().len());
        self.convert(plan, from, entries.iter(), table, |key, lanes| {
            let tag = key.tag(plan.level, &plan.seeds);
            to.add(tag, key, lanes, |_, _| unreachable!("each key once"));
        });
        to
    }

    /// Adds the lanes of some keys to a table.
    pub(crate) fn absorb_all(&self, plan: &LanePlan, table: &mut Table, all: &mut Vec<Refused>) {
        let mut whole = Vec::new();
        for (key, lanes) in all.drain(..) {
            self.absorb(plan, table, (&key, &lanes), &mut whole);
        }
    }

    /// What an aggregate takes from lanes, of a column if it has one.
    #[inline]
    pub(crate) fn kept(&self, source: Option<usize>, lanes: &[i64]) -> Kept {
        match source {
            None => Kept {
                known: rows_of(lanes[0]),
                ..Kept::default()
            },
            Some(source) => self.layout.kept(lanes, source, self.scales[source]),
        }
    }

    /// Adds a group's lanes to a table.
    pub(crate) fn absorb(
        &self,
        plan: &LanePlan,
        table: &mut Table,
        slot: (&[u8], &[i64]),
        key: &mut Vec<u8>,
    ) {
        let (short, lanes) = slot;
        let numbered = self.layout.group_lane();
        let numbered = numbered.map(|at| Group::numbered(lanes[at]));
        let group = numbered.unwrap_or_else(|| {
            plan.whole_key(short, key);
            table.group(key)
        });
        for (at, aggregate) in plan.aggregates.iter().enumerate() {
            if let Served::Lanes(source) = aggregate.served {
                table.absorb(group, at, &self.kept(source, lanes));
            }
        }
    }
}
