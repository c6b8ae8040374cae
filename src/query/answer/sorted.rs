//! The rows of an answer in a file, put into the order of columns: sorted runs, and their merge.
//!
//! A run has as many groups as fit the memory. Of each run that is merged one block is in memory. In a round, all rows go
//! out that are no greater than the last row of any block behind which more follow: no later one can be less.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::partial::block::BLOCK_BYTES;
use crate::query::accumulator::state::Outcome;
use crate::query::answer::order::By;
use crate::query::groups::Groups;
use crate::query::stored::{Lost, Stored, StoredForm};
use crate::query::table::{Group, Table};

/// Sorting takes so much memory, though the budget is smaller.
const MEMORY_MIN: u64 = if cfg!(test) { 1 } else { 8 << 20 };
/// Groups in memory, and the outcomes that they are sorted by, take no more than so many times their bytes in a file.
pub(super) const SORT_GROWTH: u64 = 12;
/// Runs have at least so many groups.
const RUN_MIN: usize = 64;
/// The most runs that are merged at once.
const FAN_IN: u64 = 64;

/// An order of rows by some of an answer's columns, in the end by key.
pub(super) struct Columns<'a> {
    first: (&'a By, usize),
    others: Vec<(&'a By, usize)>,
    /// How many of the columns are keys.
    keys: usize,
    /// The scale of the column of each aggregate.
    scales: &'a [u32],
}

impl<'a> Columns<'a> {
    /// Of an answer with these names, so many keys, and these scales. Nothing if no columns are listed.
    ///
    /// # Panics
    /// If there is no column of that name.
    pub(super) fn new(
        list: &'a [By],
        names: &[Vec<u8>],
        keys: usize,
        scales: &'a [u32],
    ) -> Option<Columns<'a>> {
        let place = |by: &By| names.iter().position(|name| *name == by.name);
        let mut columns = list
            .iter()
            .map(|by| (by, place(by).expect("a column of the answer")));
        Some(Columns {
            first: columns.next()?,
            others: columns.collect(),
            keys,
            scales,
        })
    }

    /// Puts groups into the order.
    pub(super) fn sort(&self, groups: &Groups, order: &mut Vec<Group>) {
        let mut rows: Vec<_> = order
            .par_drain(..)
            .map(|group| self.row(groups, group))
            .collect();
        rows.par_sort_unstable_by(|one, two| self.compare(one, two));
        order.extend(rows.into_iter().map(|row| row.group));
    }

    fn row<'g>(&self, groups: &'g Groups, group: Group) -> Row<'g> {
        Row {
            groups,
            group,
            outcome: outcome(groups, group, self.first.1, (self.keys, self.scales)),
        }
    }

    fn outcome<'g>(&self, row: &Row<'g>, column: usize) -> Outcome<'g> {
        outcome(row.groups, row.group, column, (self.keys, self.scales))
    }

    fn compare(&self, one: &Row<'_>, two: &Row<'_>) -> Ordering {
        let by_others = || {
            let mut orders = self.others.iter().map(|(by, column)| {
                by.compare(&self.outcome(one, *column), &self.outcome(two, *column))
            });
            orders.find(|order| order.is_ne())
        };
        let by_key = || {
            let parts = one.groups.parts(one.group);
            parts.cmp(two.groups.parts(two.group))
        };
        (self.first.0.compare(&one.outcome, &two.outcome))
            .then_with(|| by_others().unwrap_or_else(by_key))
    }
}

/// The outcome of a group in a column of an answer with so many keys and these scales.
pub(super) fn outcome<'g>(
    groups: &'g Groups,
    group: Group,
    column: usize,
    (keys, scales): (usize, &[u32]),
) -> Outcome<'g> {
    match column.checked_sub(keys) {
        None => {
            let part = groups.parts(group).nth(column);
            Outcome::Text(part.expect("a part for each key column"))
        }
        Some(at) => groups.finish(group, at, scales[at]),
    }
}

/// A row with its outcome in the first column of an order. Those of the other columns are made for rows that are the same
/// there.
struct Row<'g> {
    groups: &'g Groups,
    group: Group,
    outcome: Outcome<'g>,
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
    /// What groups may take in memory.
    pub(super) memory: u64,
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
        let at_once = self.memory.max(MEMORY_MIN) / (BLOCK_BYTES as u64 * SORT_GROWTH);
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

    /// The rows of each run.
    fn rows_at_once(&self, stored: &Stored) -> impl Iterator<Item = Range<usize>> + use<> {
        let len = stored.len();
        let each = (stored.bytes() / len.max(1) as u64).max(1);
        let at_once = self.memory.max(MEMORY_MIN) / (SORT_GROWTH * each);
        let at_once = (at_once as usize).max(RUN_MIN);
        // An answer without rows has a run, too.
        let firsts = (0..len.max(1)).step_by(at_once);
        firsts.map(move |from| from..len.min(from + at_once))
    }

    /// Some rows, sorted.
    fn run(&self, stored: &Stored, rows: Range<usize>) -> Result<Stored, Lost> {
        let (mut order, groups) = stored.load(rows).map_err(|_| Lost::Read)?;
        self.columns.sort(&groups, &mut order);
        order.truncate(self.first);
        let rows = order.iter().map(|&group| (&groups, group));
        self.written(rows, stored.table())
    }

    fn written<'g>(
        &self,
        rows: impl Iterator<Item = (&'g Groups, Group)>,
        table: &Table,
    ) -> Result<Stored, Lost> {
        let mut writer = self.form.writer(self.columns.scales)?;
        self.form.gather(rows, &mut writer)?;
        self.form.stored(writer, table)
    }

    fn merge(&self, runs: &[Stored], table: &Table) -> Result<Stored, Lost> {
        let mut writer = self.form.writer(self.columns.scales)?;
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
