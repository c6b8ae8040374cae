//! The answer of a query: column names and rows in an order.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};

use rayon::prelude::*;

use crate::group::summary::Skipped;
use crate::query::accumulator::state::Outcome;
use crate::query::table::{Table, parts};
use crate::report::grid::{Cell, Rows};

/// The answer of a query.
pub struct Answer {
    names: Vec<Vec<u8>>,
    /// How many of the columns are keys.
    keys: usize,
    /// The scale of the column of each aggregate.
    scales: Vec<u32>,
    table: Table,
    /// The groups in the order of the rows.
    order: Vec<usize>,
    /// Records that were added.
    pub rows: u64,
    /// Lines without a byte.
    pub empty_lines: u64,
    /// Malformed records that were left out.
    pub skipped: u64,
    /// The first of them.
    pub first_skipped: Option<Skipped>,
}

/// The order of an answer's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sort {
    /// By the bytes of the keys, column by column.
    Key,
    /// In no order.
    Unsorted,
    /// By a column of the answer, nulls last; rows that are the same there by key.
    Column {
        /// Its name.
        name: Vec<u8>,
        /// From the greatest down.
        descending: bool,
    },
}

impl Answer {
    /// Sorted by key.
    pub(crate) fn new(names: Vec<Vec<u8>>, keys: usize, scales: Vec<u32>, table: Table) -> Answer {
        let mut answer = Answer {
            names,
            keys,
            scales,
            order: (0..table.len()).collect(),
            table,
            rows: 0,
            empty_lines: 0,
            skipped: 0,
            first_skipped: None,
        };
        let mut order = std::mem::take(&mut answer.order);
        order.par_sort_unstable_by(|&one, &two| answer.by_key(one, two));
        answer.order = order;
        answer
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
        let Sort::Column { name, descending } = sort else {
            return;
        };
        let column = self.names.iter().position(|known| known == name);
        let column = column.expect("a column of the answer");
        let mut order = std::mem::take(&mut self.order);
        let compare = |one: &Outcome<'_>, two: &Outcome<'_>| match (one, two) {
            (Outcome::Null, Outcome::Null) => Ordering::Equal,
            (Outcome::Null, _) => Ordering::Greater,
            (_, Outcome::Null) => Ordering::Less,
            _ if *descending => Reverse(one).cmp(&Reverse(two)),
            _ => one.cmp(two),
        };
        let mut keyed: Vec<_> = order
            .par_drain(..)
            .map(|group| (self.outcome(group, column), group))
            .collect();
        keyed.par_sort_unstable_by(|(one, first), (two, second)| {
            compare(one, two).then_with(|| self.by_key(*first, *second))
        });
        order.extend(keyed.into_iter().map(|(_, group)| group));
        self.order = order;
    }

    /// Leaves only the first rows.
    pub fn truncate(&mut self, rows: usize) {
        self.order.truncate(rows);
    }

    fn by_key(&self, one: usize, two: usize) -> Ordering {
        parts(self.table.key(one)).cmp(parts(self.table.key(two)))
    }

    fn outcome(&self, group: usize, column: usize) -> Outcome<'_> {
        match column.checked_sub(self.keys) {
            None => {
                let part = parts(self.table.key(group)).nth(column);
                Outcome::Text(part.expect("a part for each key column"))
            }
            Some(at) => self.table.states[at].finish(group, self.scales[at]),
        }
    }
}

impl Rows for Answer {
    fn len(&self) -> usize {
        self.order.len()
    }

    fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>) {
        let group = self.order[at];
        cells.clear();
        cells.extend(parts(self.table.key(group)).map(Cell::Text));
        for (states, scale) in self.table.states.iter().zip(&self.scales) {
            cells.push(match states.finish(group, *scale) {
                Outcome::Null => Cell::Null,
                Outcome::Text(text) => Cell::Text(text),
                Outcome::Number(number) => Cell::Number(Cow::Owned(number.text())),
            });
        }
    }
}
