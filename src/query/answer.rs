//! The answer of a query: column names and rows in an order.

mod having;
pub(crate) mod order;

use std::borrow::Cow;
use std::cmp::Ordering;

use rayon::prelude::*;

use crate::group::summary::Skipped;
use crate::query::accumulator::state::{Outcome, Printed, Rounding};
use crate::query::answer::having::Tested;
use crate::query::answer::order::Sort;
use crate::query::condition::Condition;
use crate::query::groups::Groups;
use crate::query::rejects::Rejects;
use crate::query::table::Group;
use crate::report::grid::{Cell, Rows};

/// The answer of a query.
pub struct Answer {
    names: Vec<Vec<u8>>,
    /// How many of the columns are keys.
    keys: usize,
    /// The scale of the column of each aggregate.
    scales: Vec<u32>,
    /// How the numbers of each aggregate are printed.
    roundings: Vec<Rounding>,
    all: Groups,
    /// The groups in the order of the rows.
    order: Vec<Group>,
    /// Groups that were found, those that a condition leaves out included.
    pub groups: u64,
    /// Records that were added.
    pub rows: u64,
    /// Records of which the condition isn't true.
    pub filtered: u64,
    /// Lines without a byte.
    pub empty_lines: u64,
    /// Values that weren't numbers and were taken for none.
    pub nulled: u64,
    /// Malformed records that were left out.
    pub skipped: u64,
    /// The first of them.
    pub first_skipped: Option<Skipped>,
    /// All of them, if they were to be kept.
    pub rejects: Option<Rejects>,
}

impl Answer {
    /// The groups of which a condition is true, sorted by key.
    pub(crate) fn new(
        names: Vec<Vec<u8>>,
        keys: usize,
        scales: Vec<u32>,
        roundings: Vec<Rounding>,
        all: Groups,
        having: Option<&Condition>,
    ) -> Answer {
        let mut answer = Answer {
            names,
            keys,
            scales,
            roundings,
            order: Vec::new(),
            groups: 0,
            all,
            rows: 0,
            filtered: 0,
            empty_lines: 0,
            nulled: 0,
            skipped: 0,
            first_skipped: None,
            rejects: None,
        };
        let mut groups = answer.all.all();
        answer.groups = groups.len() as u64;
        if let Some(having) = having {
            let is_true = |group: &Group| answer.is_true(having, *group);
            groups = groups.into_par_iter().filter(is_true).collect();
        }
        answer.order = answer.sorted_by_key(groups);
        answer
    }

    pub(crate) fn scales(&self) -> &[u32] {
        &self.scales
    }

    /// All groups, whatever rows there are.
    pub(crate) fn all(&self) -> &Groups {
        &self.all
    }

    /// The same in the order of their keys.
    pub(crate) fn all_by_key(&self) -> Vec<Group> {
        self.sorted_by_key(self.all.all())
    }

    /// The names of the columns.
    pub fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Puts the rows into another order.
    ///
    /// # Panics
    /// If there is no column of that name: see [`Plan::check_sort`](crate::query::Plan::check_sort).
    pub fn sort(&mut self, sort: &Sort) {
        let Sort::Columns(columns) = sort else {
            return;
        };
        let place = |name: &Vec<u8>| self.names.iter().position(|known| known == name);
        let columns = columns.iter().map(|by| {
            let column = place(&by.name);
            (by, column.expect("a column of the answer"))
        });
        let columns: Vec<_> = columns.collect();
        let Some(((by, column), others)) = columns.split_first() else {
            return;
        };
        let mut order = std::mem::take(&mut self.order);
        let mut keyed: Vec<_> = order
            .par_drain(..)
            .map(|group| (self.outcome(group, *column), group))
            .collect();
        // Outcomes of the other columns are made for rows that are the same in those before.
        let by_others = |one: Group, two: Group| {
            let mut orders = others.iter().map(|(by, column)| {
                by.compare(&self.outcome(one, *column), &self.outcome(two, *column))
            });
            orders
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        };
        keyed.par_sort_unstable_by(|(one, first), (two, second)| {
            by.compare(one, two)
                .then_with(|| by_others(*first, *second))
                .then_with(|| self.by_key(*first, *second))
        });
        order.extend(keyed.into_iter().map(|(_, group)| group));
        self.order = order;
    }

    /// Leaves only the first rows.
    pub fn truncate(&mut self, rows: usize) {
        self.order.truncate(rows);
    }

    fn is_true(&self, condition: &Condition, group: Group) -> bool {
        condition.decide(&mut |test| {
            let aggregate = test.column.checked_sub(self.keys);
            test.check.holds(&Tested {
                outcome: self.outcome(group, test.column),
                rounding: aggregate.map_or(Rounding::Own, |at| self.roundings[at]),
            })
        })
    }

    fn sorted_by_key(&self, groups: Vec<Group>) -> Vec<Group> {
        let beginnings = groups
            .par_iter()
            .map(|&group| beginning(self.all.parts(group)));
        let beginnings: Option<Vec<u128>> = beginnings.collect();
        let beginnings = beginnings.unwrap_or_else(|| vec![0; groups.len()]);
        let mut keyed: Vec<_> = beginnings.into_iter().zip(groups).collect();
        keyed.par_sort_unstable_by(|(one, first), (two, second)| {
            one.cmp(two).then_with(|| self.by_key(*first, *second))
        });
        keyed.into_iter().map(|(_, group)| group).collect()
    }

    fn by_key(&self, one: Group, two: Group) -> Ordering {
        self.all.parts(one).cmp(self.all.parts(two))
    }

    fn outcome(&self, group: Group, column: usize) -> Outcome<'_> {
        match column.checked_sub(self.keys) {
            None => {
                let part = self.all.parts(group).nth(column);
                Outcome::Text(part.expect("a part for each key column"))
            }
            Some(at) => self.all.finish(group, at, self.scales[at]),
        }
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

/// How many rows after all else of them the bytes of keys are prefetched.
const PREFETCHED_KEYS: usize = 8;

impl Rows for Answer {
    fn len(&self) -> usize {
        self.order.len()
    }

    fn prefetch(&self, at: usize) {
        self.all.prefetch(self.order[at]);
        // Where a key's bytes are is known once its end has come.
        if let Some(before) = at.checked_sub(PREFETCHED_KEYS) {
            self.all.prefetch_key(self.order[before]);
        }
    }

    fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>) {
        let group = self.order[at];
        cells.clear();
        cells.extend(self.all.parts(group).map(Cell::Text));
        let columns = self.scales.iter().zip(&self.roundings);
        for (at, (scale, rounding)) in columns.enumerate() {
            cells.push(match self.all.finish(group, at, *scale) {
                Outcome::Null => Cell::Null,
                Outcome::Text(text) => Cell::Text(text),
                number => match number.printed(*rounding) {
                    Some(Printed::Decimal(text)) => Cell::Number(Cow::Owned(text)),
                    // No format has a number for it.
                    Some(Printed::Special(special)) => Cell::Text(special.text().as_bytes()),
                    None => Cell::Null,
                },
            });
        }
    }
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
