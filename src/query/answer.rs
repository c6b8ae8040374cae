//! The answer of a query: column names and rows in an order.

mod having;
pub(crate) mod order;
pub(crate) mod outgrown;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;

use crate::error::Result;
use crate::error::refusal::Refusal;
use crate::group::spill::budget::Budget;
use crate::group::summary::Skipped;
use crate::query::accumulator::state::{Outcome, Printed, Rounding};
use crate::query::answer::having::Tested;
use crate::query::answer::order::Sort;
use crate::query::answer::outgrown::{GROWTH, Page, SORTED_AT_ONCE, StoredRows};
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
        let mut answer = Answer {
            names,
            keys,
            scales,
            roundings,
            order: Vec::new(),
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
        };
        let mut groups = answer.all.all();
        answer.groups = groups.len() as u64;
        if let Some(having) = having {
            let is_true = |group: &Group| answer.is_true(having, *group);
            groups = groups.into_par_iter().filter(is_true).collect();
        }
        answer.order = answer.all.sorted(groups);
        answer
    }

    pub(crate) fn scales(&self) -> &[u32] {
        &self.scales
    }

    /// All groups, whatever rows there are.
    pub(crate) fn all(&self) -> &Groups {
        &self.all
    }

    /// All groups, if they have outgrown the memory: then [`Answer::all`] doesn't have them.
    pub(crate) fn outgrown(&self) -> Option<&Stored> {
        self.outgrown.as_deref()
    }

    /// The same in the order of their keys.
    pub(crate) fn all_by_key(&self) -> Vec<Group> {
        self.all.sorted(self.all.all())
    }

    /// The names of the columns.
    pub fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Puts the rows into another order, of which only the first so many are of interest, if `first` says so.
    ///
    /// # Errors
    /// The groups have outgrown the memory: then all of them can't be sorted by columns, or can't be read back.
    ///
    /// # Panics
    /// If there is no column of that name: see [`Plan::check_sort`](crate::query::Plan::check_sort).
    pub fn sort(&mut self, sort: &Sort, first: Option<usize>) -> Result<()> {
        if matches!(sort, Sort::Columns(_))
            && let Some(stored) = self.stored.take()
        {
            self.load_first(sort, first, &stored)?;
        }
        self.sort_in_memory(sort);
        Ok(())
    }

    fn sort_in_memory(&mut self, sort: &Sort) {
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

    fn by_key(&self, one: Group, two: Group) -> Ordering {
        self.all.by_key(one, two)
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

impl Answer {
    /// An answer without rows, but with the same columns.
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

    /// Takes its rows from a file, as far as a condition is true of them.
    ///
    /// # Errors
    /// A file can't be written, or not be read back.
    pub(crate) fn store(
        &mut self,
        stored: Stored,
        form: &StoredForm,
        budget: &Budget,
        having: Option<&Condition>,
    ) -> std::result::Result<(), Lost> {
        self.groups = stored.len() as u64;
        let mut stored = Arc::new(stored);
        self.outgrown = Some(Arc::clone(&stored));
        if having.is_some() {
            let reader = form.filter(&stored, &self.scales, |_, groups| {
                let answer = self.of_groups(groups, having);
                (answer.order, answer.all)
            })?;
            stored = Arc::new(Stored::new(reader, form.keys, stored.table().like()));
        }
        self.stored = Some(StoredRows::new(stored, form.clone(), budget.bytes()));
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
        let mut page = self.of_groups(groups, None);
        page.order = order;
        Page {
            first,
            columns: self.names.len(),
            rows: Box::new(page),
        }
    }

    /// Takes the first rows in an order into memory, or all of them if these fit.
    fn load_first(&mut self, sort: &Sort, first: Option<usize>, stored: &StoredRows) -> Result<()> {
        let fits = stored.stored.bytes().saturating_mul(GROWTH) <= stored.memory;
        if !fits && first.is_none() {
            let memory = stored.memory;
            return Err(Refusal::NotSorted { memory }.into());
        }
        let table = stored.stored.table();
        let mut groups = Groups::new(table.like(), None);
        let mut count = 0;
        for rows in stored.stored.in_parts(0..stored.stored.len()) {
            count += rows.len();
            let (_, more) = stored.stored.load(rows).map_err(|_| stored.lost())?;
            groups.merge(more);
            if let Some(first) = first.filter(|first| count > SORTED_AT_ONCE.max(2 * first)) {
                let mut answer = self.of_groups(groups, None);
                answer.sort_in_memory(sort);
                answer.truncate(first);
                let left = (stored.form).only(&answer.all, &answer.order, &self.scales, table);
                groups = left.map_err(|_| stored.lost())?;
                count = first;
            }
        }
        let answer = self.of_groups(groups, None);
        (self.all, self.order) = (answer.all, answer.order);
        Ok(())
    }
}

/// How many rows after all else of them the bytes of keys are prefetched.
const PREFETCHED_KEYS: usize = 8;

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
        self.all.prefetch(self.order[at]);
        // Where a key's bytes are is known once its end has come.
        if let Some(before) = at.checked_sub(PREFETCHED_KEYS) {
            self.all.prefetch_key(self.order[before]);
        }
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
                    Some(Printed::Decimal(text)) => Cell::Number(Cow::Owned(text)),
                    // No format has a number for it.
                    Some(Printed::Special(special)) => Cell::Text(special.text().as_bytes()),
                    None => Cell::Null,
                },
            });
        }
    }
}
