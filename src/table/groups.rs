//! All groups of an answer: those of which lanes are known, and those of a table.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rayon::iter::Either;
use rayon::prelude::*;

use crate::aggregate::definition::Kind;
use crate::aggregate::state::{Outcome, Ratio};
use crate::partial::column::Gathered;
use crate::table::entries::KEY_MAX;
use crate::table::entry_order::Orders;
use crate::table::key_order::KeyOrder;
use crate::table::lane_rows::LaneRows;
use crate::table::states::{Group, Table, parts};

/// The groups of an answer, each once.
pub(crate) struct Groups {
    table: Table,
    lanes: Option<LaneRows>,
    /// Those of records, once others were added.
    found: Option<Vec<Group>>,
}

impl Groups {
    pub(crate) fn new(mut table: Table, lanes: Option<LaneRows>) -> Groups {
        table.gather_values();
        Groups {
            table,
            lanes,
            found: None,
        }
    }

    /// Adds a group of no record. It isn't one of [`Groups::all`].
    pub(crate) fn add(&mut self, key: &[u8]) -> Group {
        if self.found.is_none() {
            self.found = Some(self.all());
        }
        self.table.group(key)
    }

    /// All of them, in no order.
    pub(crate) fn all(&self) -> Vec<Group> {
        if let Some(found) = &self.found {
            return found.clone();
        }
        let mut all: Vec<Group> = self.table.groups().collect();
        if let Some(lanes) = &self.lanes {
            all.par_extend(lanes.groups());
        }
        all
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// The parts of a group's key.
    pub(crate) fn parts(&self, group: Group) -> impl Iterator<Item = &[u8]> {
        match (group.lanes(), &self.lanes) {
            (Some(place), Some(lanes)) => Either::Left(lanes.parts(place)),
            _ => Either::Right(parts(self.table.key(group))),
        }
    }

    /// Bytes of a group's key, and those that its states have elsewhere.
    pub(crate) fn bytes_of(&self, group: Group) -> usize {
        match group.lanes() {
            Some(_) => KEY_MAX,
            None => self.table.bytes_of(group),
        }
    }

    /// The outcome of one of the aggregates in a group.
    pub(crate) fn finish(&self, group: Group, aggregate: usize, scale: u32) -> Outcome<'_> {
        match (group.lanes(), &self.lanes) {
            (Some(place), Some(lanes)) => lanes.finish(place, aggregate, scale),
            _ => self.table.finish(group, aggregate, scale),
        }
    }

    /// The outcome where it is no more than a ratio and isn't null.
    pub(crate) fn ratio(&self, group: Group, aggregate: usize) -> Option<Ratio> {
        match (group.lanes(), &self.lanes) {
            (Some(place), Some(lanes)) => lanes.ratio(place, aggregate),
            _ => self.table.ratio(group, aggregate),
        }
    }

    /// The same in units of its column, where all groups are in lanes.
    pub(crate) fn units(&self, group: Group, aggregate: usize) -> Option<i128> {
        if self.table.len() > 0 {
            return None;
        }
        let ratio = self.ratio(group, aggregate)?;
        (ratio.more == 0).then_some(ratio.dividend)
    }

    /// The aggregates.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.table.kinds()
    }

    pub(crate) fn kind(&self, aggregate: usize) -> Kind {
        self.table.kinds().nth(aggregate).expect("one of them")
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

    /// Fetches the group at a place of many into the cache, and the key of one before it.
    pub(crate) fn fetch(&self, at: usize, group: impl Fn(usize) -> Option<Group>) {
        if let Some(group) = group(at) {
            self.prefetch(group);
        }
        // Where a key's bytes are is known once its end has come.
        let before = at.checked_sub(AHEAD).and_then(&group);
        if let Some(group) = before.filter(|group| group.lanes().is_none()) {
            self.table.prefetch_key(group);
        }
    }

    /// The orders of their keys that all of them are in.
    fn orders(&self) -> Option<(&LaneRows, Orders)> {
        let lanes = self.lanes.as_ref().filter(|_| self.table.len() == 0)?;
        Some((lanes, lanes.orders()?))
    }

    /// Whether all keys are known to be whole numbers, or empty.
    pub(crate) fn are_whole_numbers(&self) -> bool {
        self.orders().is_some_and(|(_, orders)| orders.numbers)
    }

    /// Leaves only those parts of keys to be compared as numbers that are numbers, or empty, in all of these groups.
    pub(crate) fn narrow(&self, order: &mut KeyOrder, groups: &[Group]) {
        if self.are_whole_numbers() {
            return;
        }
        order.narrow(|order, at| {
            groups.par_iter().enumerate().all(|(next, &group)| {
                self.fetch(next + FETCHED, |at| groups.get(at).copied());
                let part = self.parts(group).nth(at);
                part.is_none_or(|part| part.is_empty() || order.number(part).is_some())
            })
        });
    }

    /// Whether they lie in the order of their keys.
    pub(crate) fn are_sorted(&self, groups: &[Group], order: &KeyOrder) -> bool {
        let lanes = self.orders();
        let lanes = lanes.filter(|(_, orders)| orders.have(order.is_of_bytes()));
        lanes.is_some_and(|(lanes, _)| lanes.are_sorted(groups))
    }

    /// In the order of their keys.
    pub(crate) fn sorted(&self, groups: Vec<Group>, order: &KeyOrder) -> Vec<Group> {
        if self.are_sorted(&groups, order) {
            return groups;
        }
        let by_key = ByKey {
            groups: self,
            order,
        };
        // Keys with a zero are compared whole. A flag says so, because then all are collected in place.
        let has_zero = AtomicBool::new(false);
        let numbered = groups.par_iter().enumerate();
        let keyed = numbered.map_init(Vec::new, |scratch, (at, &group)| {
            self.table.unwind();
            self.fetch(at + FETCHED, |at| groups.get(at).copied());
            let bytes = by_key.bytes_of(group, 0, scratch);
            if bytes.is_none() {
                has_zero.store(true, Relaxed);
            }
            (bytes.unwrap_or(0), group)
        });
        let mut keyed: Vec<_> = keyed.collect();
        if has_zero.into_inner() {
            let mut groups = groups;
            groups.par_sort_unstable_by(|one, two| by_key.compare(*one, *two));
            return groups;
        }
        by_key.sort_from(&mut keyed, 0);
        keyed.into_iter().map(|(_, group)| group).collect()
    }
}

/// Groups in an order of their keys.
struct ByKey<'a> {
    groups: &'a Groups,
    order: &'a KeyOrder,
}

impl ByKey<'_> {
    /// Sorts groups whose keys are the same up to `at`, by their bytes from there on, which stand beside them.
    fn sort_from(&self, keyed: &mut [(u128, Group)], at: usize) {
        match &self.groups.table.cancellation {
            None => keyed.par_sort_unstable_by_key(|(bytes, _)| *bytes),
            Some(token) => keyed.par_sort_unstable_by_key(|(bytes, _)| {
                token.unwind();
                *bytes
            }),
        }
        let same = keyed.par_chunk_by_mut(|one, two| one.0 == two.0);
        same.filter(|same| same.len() > 1).for_each(|same| {
            let next = at + size_of::<u128>();
            if same.len() <= COMPARED || next > SORTED_BYTES {
                same.sort_unstable_by(|one, two| self.compare(one.1, two.1));
                return;
            }
            let mut scratch = Vec::new();
            for at in 0..same.len() {
                (self.groups).fetch(at + FETCHED, |at| same.get(at).map(|(_, group)| *group));
                let Some(bytes) = self.bytes_of(same[at].1, next, &mut scratch) else {
                    same.sort_unstable_by(|one, two| self.compare(one.1, two.1));
                    return;
                };
                same[at].0 = bytes;
            }
            self.sort_from(same, next);
        });
    }

    /// The order of two groups' keys.
    fn compare(&self, one: Group, two: Group) -> Ordering {
        self.groups.table.unwind();
        let (one, two) = (self.groups.parts(one), self.groups.parts(two));
        self.order.compare(one, two)
    }

    /// The bytes from `at` on of a key in which numbers stand before their parts, in bytes that have their order.
    fn bytes_of(&self, group: Group, at: usize, scratch: &mut Vec<u8>) -> Option<u128> {
        let parts = self.groups.parts(group);
        let mut window = Window::from(at);
        if self.order.is_of_bytes() {
            window.add_all(parts)?;
            return Some(window.number());
        }
        for (at, part) in parts.enumerate() {
            if self.order.is_number(at) {
                scratch.clear();
                if let Some(number) = self.order.number(part) {
                    number.push_ordered(scratch);
                }
                window.add(scratch)?;
            }
            window.add(part)?;
            if window.is_full() {
                break;
            }
        }
        Some(window.number())
    }
}

/// How many groups ahead of their turn keys are fetched, and groups.
const AHEAD: usize = 16;
pub(crate) const FETCHED: usize = 2 * AHEAD;
/// So few groups are sorted by comparing their whole keys.
const COMPARED: usize = 8;
/// The bytes of keys that are sorted by as numbers.
const SORTED_BYTES: usize = 256;

/// Some bytes of a key's parts, a zero after each, and zeros after all. The order of keys is that of the first such bytes
/// in which they differ.
struct Window {
    bytes: [u8; 16],
    /// Bytes of the key before it that are still to come.
    before: usize,
    taken: usize,
}

impl Window {
    fn from(at: usize) -> Window {
        Window {
            bytes: [0; 16],
            before: at,
            taken: 0,
        }
    }

    /// Adds a part; `None` if there is a zero among its bytes in the window.
    fn add(&mut self, part: &[u8]) -> Option<()> {
        if self.is_full() {
            return Some(());
        }
        let Some(rest) = part.get(self.before..) else {
            self.before -= part.len() + 1;
            return Some(());
        };
        self.before = 0;
        let length = rest.len().min(self.bytes.len() - self.taken);
        if rest[..length].contains(&0) {
            return None;
        }
        self.bytes[self.taken..self.taken + length].copy_from_slice(&rest[..length]);
        self.taken += length + 1;
        Some(())
    }

    fn add_all<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>) -> Option<()> {
        for part in parts {
            self.add(part)?;
            if self.is_full() {
                break;
            }
        }
        Some(())
    }

    fn is_full(&self) -> bool {
        self.taken >= self.bytes.len()
    }

    fn number(&self) -> u128 {
        u128::from_be_bytes(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ahash::RandomState;
    use proptest::prelude::*;

    use super::*;
    use crate::decimal::number::Number;
    use crate::table::states::push_part;

    fn part() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[ab\u{1}]{0,9}",
            2 => "(common prefix ){0,5}[ab]{0,3}",
            1 => "(a long one, longer than all that are compared as numbers ){4,6}[ab]{0,3}",
            1 => "[ab]{0,20}[a\u{0}]{0,3}",
        ]
    }

    fn number() -> impl Strategy<Value = String> {
        prop_oneof![
            6 => "[0-9]{1,3}",
            2 => "[-+]?0{0,2}[0-9]{1,20}(\\.[0-9]{0,4})?",
            1 => Just(String::new()),
            1 => "1234567890123456789012345678[0-9]{1,10}",
        ]
    }

    fn keys() -> impl Strategy<Value = Vec<[String; 2]>> {
        let of = |part: BoxedStrategy<String>, other: BoxedStrategy<String>| {
            prop::collection::vec([part, other], 0..200)
        };
        prop_oneof![
            of(part().boxed(), part().boxed()),
            of(number().boxed(), part().boxed()),
            of(number().boxed(), number().boxed()),
            of(part().boxed(), number().boxed()),
        ]
    }

    proptest! {
        #[test]
        fn groups_are_sorted_by_their_keys(keys in keys()) {
            let mut table = Table::new(&RandomState::new(), &[], None);
            for key in &keys {
                let mut bytes = Vec::new();
                key.iter().for_each(|part| push_part(&mut bytes, part.as_bytes()));
                table.group(&bytes);
            }
            let groups = Groups::new(table, None);
            let sorted = |order: &KeyOrder| -> Vec<Vec<Vec<u8>>> {
                let parts = |group| groups.parts(group).map(<[u8]>::to_vec).collect();
                groups.sorted(groups.all(), order).into_iter().map(parts).collect()
            };
            let want: BTreeSet<Vec<Vec<u8>>> =
                keys.iter().map(|key| key.iter().map(|part| part.clone().into()).collect()).collect();
            let mut want: Vec<Vec<Vec<u8>>> = want.into_iter().collect();
            prop_assert_eq!(&sorted(&KeyOrder::BYTES), &want);
            let mut order = KeyOrder::numbers(2, b'.');
            groups.narrow(&mut order, &groups.all());
            let are_numbers = [0, 1].map(|at| keys.iter().all(|key| {
                key[at].is_empty() || Number::read(key[at].as_bytes()).is_ok()
            }));
            prop_assert_eq!([0, 1].map(|at| order.is_number(at)), are_numbers);
            let read = |at: usize, part: &[u8]| Number::read(part).ok().filter(|_| are_numbers[at]);
            want.sort_by(|one, two| {
                let by_part = |at: usize| {
                    let numbers = read(at, &one[at]).cmp(&read(at, &two[at]));
                    numbers.then_with(|| one[at].cmp(&two[at]))
                };
                by_part(0).then_with(|| by_part(1))
            });
            prop_assert_eq!(sorted(&order), want);
        }
    }
}
