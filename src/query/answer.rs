//! The answer of a query: column names and rows in an order.

mod having;
pub(crate) mod order;
pub(crate) mod outgrown;
mod sorted;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;

use crate::error::Result;
use crate::group::spill::budget::Budget;
use crate::group::summary::Skipped;
use crate::query::accumulator::state::{Outcome, Printed, Rounding};
use crate::query::answer::having::Tested;
use crate::query::answer::order::Sort;
use crate::query::answer::outgrown::{Page, StoredRows};
use crate::query::answer::sorted::{Columns, SORT_GROWTH, Sorting, outcome};
use crate::query::condition::Condition;
use crate::query::groups::Groups;
use crate::query::rejects::Rejects;
use crate::query::stored::{Lost, Stored, StoredForm};
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
    /// In place of these, what is saved: all groups with their values.
    with_values: Option<Groups>,
    /// The groups in the order of the rows.
    order: Vec<Group>,
    /// In place of these, the groups that outgrew the memory.
    stored: Option<StoredRows>,
    /// All of them, whatever rows there are.
    outgrown: Option<Arc<Stored>>,
    /// Groups that were found, those that a condition leaves out included.
    pub groups: u64,
    /// Bytes of groups that were written to temporary files, because they outgrew the memory.
    pub spilled_bytes: u64,
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
        let mut answer = Answer::empty(names, keys, scales, roundings, all);
        let mut groups = answer.all.all();
        answer.groups = groups.len() as u64;
        if let Some(having) = having {
            let is_true = |group: &Group| answer.is_true(having, *group);
            groups = groups.into_par_iter().filter(is_true).collect();
        }
        answer.order = answer.all.sorted(groups);
        answer
    }

    fn empty(
        names: Vec<Vec<u8>>,
        keys: usize,
        scales: Vec<u32>,
        roundings: Vec<Rounding>,
        all: Groups,
    ) -> Answer {
        Answer {
            names,
            keys,
            scales,
            roundings,
            order: Vec::new(),
            with_values: None,
            stored: None,
            outgrown: None,
            spilled_bytes: 0,
            groups: 0,
            all,
            rows: 0,
            filtered: 0,
            empty_lines: 0,
            nulled: 0,
            skipped: 0,
            first_skipped: None,
            rejects: None,
        }
    }

    pub(crate) fn scales(&self) -> &[u32] {
        &self.scales
    }

    /// With groups to be saved in place of the answer's own.
    pub(crate) fn with_all(self, with_values: Groups) -> Answer {
        Answer {
            with_values: Some(with_values),
            ..self
        }
    }

    /// All groups as they are saved, whatever rows there are.
    pub(crate) fn all(&self) -> &Groups {
        self.with_values.as_ref().unwrap_or(&self.all)
    }

    /// All groups, if they have outgrown the memory: then [`Answer::all`] doesn't have them.
    pub(crate) fn outgrown(&self) -> Option<&Stored> {
        self.outgrown.as_deref()
    }

    /// The same in the order of their keys.
    pub(crate) fn all_by_key(&self) -> Vec<Group> {
        let all = self.all();
        all.sorted(all.all())
    }

    /// The names of the columns.
    pub fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Puts the rows into another order, of which only the first so many are of interest, if `first` says so.
    ///
    /// # Errors
    /// The groups have outgrown the memory, and files of them can't be written or read back.
    ///
    /// # Panics
    /// If there is no column of that name: see [`Plan::check_sort`](crate::query::Plan::check_sort).
    pub fn sort(&mut self, sort: &Sort, first: Option<usize>) -> Result<()> {
        let Sort::Columns(list) = sort else {
            return Ok(());
        };
        let scales = self.scales.clone();
        let Some(columns) = Columns::new(list, &self.names, self.keys, &scales) else {
            return Ok(());
        };
        let Some(stored) = self.stored.take() else {
            columns.sort(&self.all, &mut self.order);
            return Ok(());
        };
        let budget = Arc::clone(&stored.budget);
        let done = self.sort_stored(columns, first.unwrap_or(usize::MAX), stored);
        done.map_err(|lost| lost.error(&budget))
    }

    /// Leaves only the first rows.
    pub fn truncate(&mut self, rows: usize) {
        self.order.truncate(rows);
        if let Some(stored) = &mut self.stored {
            stored.truncate(rows);
        }
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

    fn outcome(&self, group: Group, column: usize) -> Outcome<'_> {
        outcome(&self.all, group, column, (self.keys, &self.scales))
    }
}

impl Answer {
    /// An answer with the same columns, of groups of which a condition is true.
    fn of_groups(&self, groups: Groups, having: Option<&Condition>) -> Answer {
        Answer::new(
            self.names.clone(),
            self.keys,
            self.scales.clone(),
            self.roundings.clone(),
            groups,
            having,
        )
    }

    /// An answer with the same columns, and these groups in this order.
    fn of_rows(&self, groups: Groups, order: Vec<Group>) -> Answer {
        let (names, scales) = (self.names.clone(), self.scales.clone());
        let roundings = self.roundings.clone();
        Answer {
            order,
            ..Answer::empty(names, self.keys, scales, roundings, groups)
        }
    }

    /// Takes its rows from a file, as far as a condition is true of them.
    ///
    /// # Errors
    /// A file can't be written, or not be read back.
    pub(crate) fn store(
        &mut self,
        stored: Stored,
        form: &StoredForm,
        budget: &Arc<Budget>,
        having: Option<&Condition>,
    ) -> std::result::Result<(), Lost> {
        let mut stored = Arc::new(stored);
        self.outgrown = Some(Arc::clone(&stored));
        let mut form = form.clone();
        if form.has_values() {
            let settled = form.settle_stored(stored.reader(), &self.scales)?;
            form = form.settled();
            stored = Arc::new(Stored::new(settled, form.keys, form.no_groups()));
        }
        self.groups = stored.len() as u64;
        if having.is_some() {
            let reader = form.filter(&stored, &self.scales, |_, groups| {
                let answer = self.of_groups(groups, having);
                (answer.order, answer.all)
            })?;
            stored = Arc::new(Stored::new(reader, form.keys, stored.table().like()));
        }
        self.stored = Some(StoredRows::new(stored, form, budget));
        Ok(())
    }

    /// Whether rows could be read back that were written to a file. If not, what was read of them is wrong. To be called
    /// when all rows have been read.
    ///
    /// # Errors
    /// Some could not.
    pub fn check(&self) -> Result<()> {
        match &self.stored {
            Some(stored) if stored.has_failed.load(Relaxed) => Err(stored.lost()),
            _ => Ok(()),
        }
    }

    /// Some rows of a file.
    fn page(&self, stored: &StoredRows, rows: Range<usize>) -> Page {
        let first = rows.start;
        let loaded = stored.stored.load(rows);
        let (order, groups) = loaded.unwrap_or_else(|_| {
            stored.has_failed.store(true, Relaxed);
            (Vec::new(), Groups::new(stored.stored.table().like(), None))
        });
        Page {
            first,
            columns: self.names.len(),
            rows: Box::new(self.of_rows(groups, order)),
        }
    }

    /// Sorts the rows of a file. They come into memory if they fit there.
    fn sort_stored(
        &mut self,
        columns: Columns<'_>,
        first: usize,
        rows: StoredRows,
    ) -> std::result::Result<(), Lost> {
        let StoredRows {
            stored,
            form,
            budget,
            ..
        } = rows;
        let memory = budget.bytes();
        if stored.bytes().saturating_mul(SORT_GROWTH) <= memory {
            let loaded = stored.load(0..stored.len());
            (self.order, self.all) = loaded.map_err(|_| Lost::Read)?;
            columns.sort(&self.all, &mut self.order);
            return Ok(());
        }
        let sorting = Sorting {
            form: &form,
            columns,
            memory,
            first,
        };
        let sorted = sorting.sort(stored)?;
        self.stored = Some(StoredRows::new(Arc::new(sorted), form, &budget));
        Ok(())
    }
}

impl Rows for Answer {
    fn len(&self) -> usize {
        match &self.stored {
            Some(stored) => stored.len(),
            None => self.order.len(),
        }
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Rows + '_>> {
        let stored = self.stored.as_ref()?;
        Some(Box::new(self.page(stored, rows)))
    }

    fn prefetch(&self, at: usize) {
        if self.stored.is_some() {
            return;
        }
        self.all.fetch(at, |at| self.order.get(at).copied());
    }

    fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>) {
        if let Some(stored) = &self.stored {
            let page = stored.page_of(at, |rows| self.page(stored, rows));
            return page.row(at, cells);
        }
        let group = self.order[at];
        cells.clear();
        cells.extend(self.all.parts(group).map(Cell::Text));
        let columns = self.scales.iter().zip(&self.roundings);
        for (at, (scale, rounding)) in columns.enumerate() {
            cells.push(match self.all.finish(group, at, *scale) {
                Outcome::Null => Cell::Null,
                Outcome::Text(text) => Cell::Text(text),
                number => match number.printed(*rounding) {
                    Some(Printed::Decimal(digits)) => Cell::Number(digits),
                    // No format has a number for it.
                    Some(Printed::Special(special)) => Cell::Text(special.text().as_bytes()),
                    None => Cell::Null,
                },
            });
        }
    }
}
