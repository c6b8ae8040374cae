//! The rows of an answer in a file, put into the order of columns or of numbers in keys: sorted runs, and their merge.
//!
//! A run has as many groups as fit the memory. Of each run that is merged one block is in memory. In a round, all rows go
//! out that are no greater than the last row of any block behind which more follow: no later one can be less.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::aggregate::state::Outcome;
use crate::answer::columns::AnswerColumns;
use crate::answer::order::Place;
use crate::decimal::rational::Rational;
use crate::expression::value::{Value, ValueError};
use crate::partial::block::BLOCK_BYTES;
use crate::spill::stored::{Lost, Stored, StoredForm};
use crate::table::groups::{FETCHED, Groups};
use crate::table::key_order::KeyOrder;
use crate::table::states::{Group, Table};

/// Sorting takes so much memory, though the budget is smaller.
const MEMORY_MIN: u64 = if cfg!(test) { 1 } else { 8 << 20 };
/// Parts of a block that are runs have at least so many groups.
const RUN_MIN: usize = 64;
/// Groups in memory, and the outcomes that they are sorted by, take no more than so many times their bytes in a file, and no
/// more than this for each and twice their bytes.
const SORT_GROWTH: u64 = 12;
const EACH_BYTES: u64 = 1024;
/// The most runs that are merged at once.
const FAN_IN: u64 = 64;
/// The first rows are looked for in so many parts for each thread.
const PARTS: usize = 4;

/// What groups of so many bytes in a file take in memory.
pub(super) fn memory_of(bytes: u64, groups: u64) -> u64 {
    let each = EACH_BYTES.saturating_mul(groups).saturating_add(2 * bytes);
    bytes.saturating_mul(SORT_GROWTH).min(each)
}

/// An order of rows by some of an answer's columns, in the end by key.
pub(super) struct Columns<'a> {
    pub(super) columns: Vec<Place>,
    /// All columns of the answer, and the order of the keys.
    pub(super) all: &'a AnswerColumns,
    pub(super) key_order: &'a KeyOrder,
}

impl Columns<'_> {
    /// Puts the first groups of the order into it, and leaves out the others.
    pub(super) fn sort(&self, groups: &Groups, order: &mut Vec<Group>, first: usize) {
        let mut rows: Vec<_> = if first < order.len() / 2 {
            let part = order.len().div_ceil(PARTS * rayon::current_num_threads());
            let parts = order.par_chunks(part);
            let parts = parts.flat_map_iter(|part| self.first_of(groups, part, first));
            parts.collect()
        } else {
            let rows = order.par_iter().map(|group| self.row(groups, *group));
            rows.collect()
        };
        rows.par_sort_unstable_by(|one, two| self.compare(one, two));
        order.clear();
        order.extend(rows.into_iter().take(first).map(|row| row.group));
    }

    /// The first rows of the order among some groups, in no order, and perhaps a few more.
    fn first_of<'g>(&self, groups: &'g Groups, part: &[Group], first: usize) -> Vec<Row<'g>> {
        let mut rows: Vec<Row<'g>> = Vec::new();
        let Some(last) = first.checked_sub(1) else {
            return rows;
        };
        let mut is_full = false;
        for (at, &group) in part.iter().enumerate() {
            groups.fetch(at + FETCHED, |at| part.get(at).copied());
            let row = self.row(groups, group);
            // The last of the first rows so far: none after it is wanted.
            if is_full && self.compare(&row, &rows[last]).is_gt() {
                continue;
            }
            rows.push(row);
            if rows.len() == 2 * first {
                rows.select_nth_unstable_by(last, |one, two| self.compare(one, two));
                rows.truncate(first);
                is_full = true;
            }
        }
        rows
    }

    fn row<'g>(&self, groups: &'g Groups, group: Group) -> Row<'g> {
        groups.table().unwind();
        let first = self.columns.first();
        Row {
            groups,
            group,
            rank: first.map_or(Rank::NULL, |by| self.rank(groups, group, *by)),
        }
    }

    /// What a group is sorted by in a place; a number of a key is one.
    pub(super) fn rank<'g>(&self, groups: &'g Groups, group: Group, by: Place) -> Rank<'g> {
        let Place { place, is_text, .. } = by;
        let aggregate = self.all.aggregate(place);
        if let Some(units) = aggregate.and_then(|at| groups.units(group, at)) {
            return Rank::Units(units);
        }
        if let Some(computed) = self.all.hidden(place) {
            return Rank::of(self.all.computed(groups, group, computed));
        }
        if place < self.all.keys && !is_text && self.key_order.is_number(place) {
            let part = part(groups, group, place);
            let number = self.key_order.number(part);
            return Rank::Outcome(number.map_or(Outcome::Text(part), |number| {
                Outcome::Number(number.exact())
            }));
        }
        Rank::Outcome(self.all.outcome(groups, group, place))
    }

    fn compare(&self, one: &Row<'_>, two: &Row<'_>) -> Ordering {
        one.groups.table().unwind();
        let Some((first, others)) = self.columns.split_first() else {
            return self.by_key(one, two);
        };
        let by_others = || {
            let mut orders = others.iter().map(|by| {
                let [one, two] = [one, two].map(|row| self.rank(row.groups, row.group, *by));
                one.compare(&two, by.descending)
            });
            orders.find(|order| order.is_ne())
        };
        (one.rank.compare(&two.rank, first.descending))
            .then_with(|| by_others().unwrap_or_else(|| self.by_key(one, two)))
    }

    fn by_key(&self, one: &Row<'_>, two: &Row<'_>) -> Ordering {
        let (one, two) = (one.groups.parts(one.group), two.groups.parts(two.group));
        self.key_order.compare(one, two)
    }
}

/// A part of a group's key.
pub(super) fn part(groups: &Groups, group: Group, column: usize) -> &[u8] {
    let part = groups.parts(group).nth(column);
    part.expect("a part for each key column")
}

/// What a row is sorted by in a column.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank<'g> {
    /// What is computed, or a text of its own.
    Text(Vec<u8>),
    Outcome(Outcome<'g>),
    /// What is computed.
    Number(Rational),
    /// Numbers of one scale.
    Units(i128),
}

impl Rank<'_> {
    pub(super) const NULL: Rank<'static> = Rank::Outcome(Outcome::Null);

    /// That of what is computed, if it can be.
    pub(super) fn of(value: Result<Value<'_>, ValueError>) -> Rank<'static> {
        match value {
            Ok(Value::Number(number)) => Rank::Number(number),
            Ok(Value::Text(text)) => Rank::Text(text.into_owned()),
            Ok(Value::Truth(truth)) => Rank::Text(truth.to_string().into()),
            Ok(Value::Null) | Err(_) => Rank::NULL,
        }
    }

    /// The same, of no group.
    pub(super) fn into_owned(self) -> Rank<'static> {
        match self {
            Rank::Text(text) => Rank::Text(text),
            Rank::Number(number) => Rank::Number(number),
            Rank::Units(units) => Rank::Units(units),
            Rank::Outcome(outcome) => match outcome {
                Outcome::Null => Rank::NULL,
                Outcome::Text(text) | Outcome::Time(text) => Rank::Text(text.to_vec()),
                Outcome::Number(exact) => Rank::Outcome(Outcome::Number(exact)),
                Outcome::Quotient { value, digits } => {
                    Rank::Outcome(Outcome::Quotient { value, digits })
                }
            },
        }
    }

    /// The order of two ranks, nulls last.
    pub(super) fn compare(&self, other: &Rank<'_>, is_descending: bool) -> Ordering {
        let is_null = |rank: &Rank<'_>| matches!(rank, Rank::Outcome(Outcome::Null));
        let nulls = is_null(self).cmp(&is_null(other));
        nulls.then_with(|| match is_descending {
            true => other.cmp(self),
            false => self.cmp(other),
        })
    }
}

/// A row with its rank in the first column of an order. Those of the other columns are made for rows that are the same there.
struct Row<'g> {
    groups: &'g Groups,
    group: Group,
    rank: Rank<'g>,
}

/// A run that is being merged.
struct Head<'a> {
    run: &'a Stored,
    /// What wasn't loaded of it.
    left: Range<usize>,
    /// The block in memory, and how many of its rows have gone out.
    page: Groups,
    order: Vec<Group>,
    taken: usize,
}

impl Head<'_> {
    fn rows(&self) -> &[Group] {
        &self.order[self.taken..]
    }

    /// Loads the next block if all rows of this one have gone out.
    fn fill(&mut self) -> Result<(), Lost> {
        while self.rows().is_empty() && !self.left.is_empty() {
            let next = self.run.in_parts(self.left.clone()).next();
            let rows = next.expect("a block of rows that are left");
            self.left.start = rows.end;
            (self.order, self.page) = self.run.load(rows).map_err(|_| Lost::Read)?;
            self.taken = 0;
        }
        Ok(())
    }
}

/// Sorts the rows of an answer in a file.
pub(super) struct Sorting<'a> {
    pub(super) form: &'a StoredForm,
    pub(super) columns: Columns<'a>,
    /// Only so many first rows are wanted.
    pub(super) first: usize,
}

impl Sorting<'_> {
    /// The rows in their order.
    ///
    /// # Errors
    /// A file can't be written, or not be read back.
    pub(super) fn sort(&self, stored: Arc<Stored>) -> Result<Stored, Lost> {
        let table = stored.table().like();
        // One group more makes a block larger.
        let block = memory_of(2 * BLOCK_BYTES as u64, u64::MAX)
            .max(memory_of(stored.reader().largest_block(), 1));
        let at_once = self.memory() / block;
        let at_once = at_once.clamp(2, FAN_IN) as usize;
        // Runs of each size: so few files are open, and each group is merged about equally often.
        let mut sizes: Vec<Vec<Stored>> = Vec::new();
        for rows in self.rows_at_once(&stored) {
            let mut run = self.run(&stored, rows)?;
            for size in 0.. {
                if size == sizes.len() {
                    sizes.push(Vec::new());
                }
                sizes[size].push(run);
                if sizes[size].len() < at_once {
                    break;
                }
                let full = std::mem::take(&mut sizes[size]);
                run = self.merge(&full, &table)?;
            }
        }
        drop(stored);
        let mut runs: Vec<Stored> = sizes.into_iter().flatten().collect();
        while runs.len() > 1 {
            // The smallest first.
            let rest = runs.split_off(runs.len().min(at_once));
            let merged = self.merge(&runs, &table)?;
            runs = rest;
            runs.push(merged);
        }
        runs.pop().ok_or(Lost::Read)
    }

    fn memory(&self) -> u64 {
        self.form.budget.bytes().max(MEMORY_MIN)
    }

    /// The rows of each run.
    fn rows_at_once(&self, stored: &Stored) -> Vec<Range<usize>> {
        // An answer without rows has a run, too.
        let mut runs = vec![Range::default()];
        let mut bytes = 0;
        for (block, rows) in stored.in_parts(0..stored.len()).enumerate() {
            let whole = memory_of(stored.reader().bytes_of_block(block), rows.len() as u64);
            let parts = (whole / self.memory()) as usize;
            let parts = parts.clamp(1, (rows.len() / RUN_MIN).max(1));
            let own = whole / parts as u64;
            for first in rows.clone().step_by(rows.len().div_ceil(parts)) {
                let end = rows.end.min(first + rows.len().div_ceil(parts));
                bytes += own;
                match runs.last_mut() {
                    Some(run) if run.end == 0 || bytes <= self.memory() => run.end = end,
                    _ => {
                        bytes = own;
                        runs.push(first..end);
                    }
                }
            }
        }
        runs
    }

    /// Some rows, sorted.
    fn run(&self, stored: &Stored, rows: Range<usize>) -> Result<Stored, Lost> {
        let (mut order, groups) = stored.load(rows).map_err(|_| Lost::Read)?;
        self.columns.sort(&groups, &mut order, self.first);
        let rows = order.iter().map(|&group| (&groups, group));
        self.written(rows, stored.table())
    }

    fn written<'g>(
        &self,
        rows: impl Iterator<Item = (&'g Groups, Group)>,
        table: &Table,
    ) -> Result<Stored, Lost> {
        let mut writer = self.form.writer(&self.columns.all.scales)?;
        self.form.gather(rows, &mut writer)?;
        self.form.stored(writer, table)
    }

    fn merge(&self, runs: &[Stored], table: &Table) -> Result<Stored, Lost> {
        let mut writer = self.form.writer(&self.columns.all.scales)?;
        let mut heads: Vec<Head<'_>> = runs
            .iter()
            .map(|run| Head {
                run,
                left: 0..run.len(),
                page: Groups::new(table.like(), None),
                order: Vec::new(),
                taken: 0,
            })
            .collect();
        let mut left = self.first;
        while left > 0 {
            heads.par_iter_mut().try_for_each(Head::fill)?;
            heads.retain(|head| !head.rows().is_empty());
            if heads.is_empty() {
                break;
            }
            let (mut rows, taken) = self.round(&heads);
            rows.truncate(left);
            left -= rows.len();
            let rows = rows.iter().map(|row| (row.groups, row.group));
            self.form.gather(rows, &mut writer)?;
            for (head, taken) in heads.iter_mut().zip(taken) {
                head.taken += taken;
            }
        }
        self.form.stored(writer, table)
    }

    /// The rows that go out next, and how many of each block they are.
    fn round<'h>(&self, heads: &'h [Head<'_>]) -> (Vec<Row<'h>>, Vec<usize>) {
        let row = |head: &'h Head<'_>, group: Group| self.columns.row(&head.page, group);
        let lasts = heads.iter().filter(|head| !head.left.is_empty());
        let lasts = lasts.filter_map(|head| Some(row(head, *head.rows().last()?)));
        let limit = lasts.min_by(|one, two| self.columns.compare(one, two));
        let is_within = |head: &'h Head<'_>, group: Group| match &limit {
            None => true,
            Some(limit) => self.columns.compare(&row(head, group), limit).is_le(),
        };
        let taken: Vec<usize> = heads
            .par_iter()
            .map(|head| head.rows().partition_point(|&group| is_within(head, group)))
            .collect();
        let among = heads.par_iter().zip(&taken);
        let rows = among.flat_map(|(head, &taken)| {
            let rows = head.rows()[..taken].par_iter();
            rows.map(move |&group| row(head, group))
        });
        let mut rows: Vec<_> = rows.collect();
        rows.par_sort_unstable_by(|one, two| self.columns.compare(one, two));
        (rows, taken)
    }
}
