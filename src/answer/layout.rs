//! Which rows of an answer are shown, in which order, and the row over all records.

use std::collections::HashMap;
use std::sync::Arc;

use ringfold_read::internals::cancellable;
use ringfold_read::{Error, Kind, Result};

use crate::answer::Answer;
use crate::answer::columns::AnswerColumns;
use crate::answer::order::Sort;
use crate::answer::outgrown::StoredRows;
use crate::decimal::number::shown;
use crate::plan::columns::unknown;
use crate::spill::regroup::Source;
use crate::spill::stored::{Lost, Stored};
use crate::table::groups::Groups;
use crate::table::states::{Group, push_part};

/// Which rows of an answer are shown, and in which order.
///
/// ```
/// use ringfold::query::{Layout, Query, Sort};
/// use ringfold::report::grid::{GridFormat, write_grid};
/// use ringfold::{Config, Input, fold};
///
/// let text = &b"region,city,price\na,Bern,1.50\nb,Oslo,20\na,Rome,7\na,Bern,2.25\n"[..];
/// let (input, config) = (Input::memory([text]), Config::default());
/// let query = Query::new(b',').key("region").key("city").aggregate("sum", Some("price".into()))?;
/// let plan = query.plan(&input, &config)?;
/// let layout = Layout::default().sort(Sort::read("region,-sum_price")?).first(1).per("region").total(true);
/// plan.check_layout(&layout)?;
/// let (mut answer, _) = fold(&input, &config, &plan)?;
/// answer.lay_out(&layout)?;
/// let mut csv = Vec::new();
/// write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
/// assert_eq!(csv, b"region,city,sum_price\na,Rome,7.00\nb,Oslo,20.00\ntotal,,30.75\n");
/// # Ok::<(), ringfold::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Layout {
    sort: Sort,
    first: Option<usize>,
    per: Vec<Vec<u8>>,
    has_total: bool,
    pivot: Option<Vec<u8>>,
}

impl Default for Layout {
    /// All rows in the order of their keys.
    fn default() -> Layout {
        Layout {
            sort: Sort::Key,
            first: None,
            per: Vec::new(),
            has_total: false,
            pivot: None,
        }
    }
}

impl Layout {
    /// What it has that is of all keys, if it has something.
    pub(crate) fn of_all(&self) -> Option<&'static str> {
        let all = [
            (self.has_total, "a total is"),
            (self.first.is_some(), "the first rows are"),
            (self.pivot.is_some(), "the columns of a pivot are"),
        ];
        all.into_iter()
            .find_map(|(is_there, what)| is_there.then_some(what))
    }

    /// The order of the rows.
    #[must_use]
    pub fn sort(mut self, sort: Sort) -> Layout {
        self.sort = sort;
        self
    }

    /// Only the first so many rows.
    #[must_use]
    pub fn first(mut self, rows: usize) -> Layout {
        self.first = Some(rows);
        self
    }

    /// So many of each value of this column of the key; of several such columns, of each combination.
    #[must_use]
    pub fn per(mut self, key: impl Into<Vec<u8>>) -> Layout {
        self.per.push(key.into());
        self
    }

    /// Whether a last row is over all records, those of rows that aren't shown included. In formats with types its keys are
    /// null; others say `total` in the first one.
    #[must_use]
    pub fn total(mut self, has_total: bool) -> Layout {
        self.has_total = has_total;
        self
    }

    /// Makes columns of the values of this column of the key, at most 1,000. They are called by the values, or where several
    /// columns are shown, `value_count` and so on; the empty value is called `null`. A row then is all groups that have the same other
    /// keys, and the order and the choice of rows are about these.
    #[must_use]
    pub fn pivot(mut self, key: impl Into<Vec<u8>>) -> Layout {
        self.pivot = Some(key.into());
        self
    }

    pub(super) fn order(&self) -> &Sort {
        &self.sort
    }

    /// How many rows there are at most, or of each combination.
    pub(super) fn rows(&self) -> Option<usize> {
        self.first
    }

    /// Where the columns of the key are of each combination of whose values there are first rows.
    pub(super) fn per_keys(&self, keys: &[Vec<u8>]) -> Result<Vec<usize>> {
        if !self.per.is_empty() && self.first.is_none() {
            return Err(refused(
                "the first rows of each value of a key are asked for, but not how many: name a number of rows",
            ));
        }
        self.per.iter().map(|name| place(name, keys)).collect()
    }

    fn pivot_key(&self, keys: &[Vec<u8>]) -> Result<Option<usize>> {
        let pivot = self.pivot.as_ref();
        pivot.map(|name| place(name, keys)).transpose()
    }

    /// Whether an answer with these columns can be shown so.
    pub(crate) fn check(&self, names: &[Vec<u8>], columns: &mut AnswerColumns) -> Result<()> {
        let keys = &names[..columns.keys];
        let (per, pivot) = (self.per_keys(keys)?, self.pivot_key(keys)?);
        if self.has_total && keys.len() == usize::from(pivot.is_some()) {
            let why = match pivot {
                None => {
                    "a total is over the rows of a key, and there is none: name a key, or leave the total out"
                }
                Some(_) => {
                    "a total is over the rows of a key, and the only one becomes columns: name another, or leave the total out"
                }
            };
            return Err(refused(why));
        }
        if let Some(pivot) = pivot.filter(|pivot| per.contains(pivot)) {
            let name = shown(&names[pivot]);
            return Err(refused(&format!(
                "`{name}` becomes columns, so there are no rows of each of its values: take the first rows of each value of \
                 another column of the key"
            )));
        }
        // What values become columns isn't known yet.
        match pivot {
            None => self.sort.check(names, columns),
            Some(_) => Ok(()),
        }
    }
}

fn refused(why: &str) -> Error {
    Error::new(Kind::Usage, why)
}

/// Where a column of the key is.
fn place(name: &[u8], keys: &[Vec<u8>]) -> Result<usize> {
    let found = keys.iter().position(|key| key == name);
    found.ok_or_else(|| refused(&unknown("the key", name, keys)))
}

/// The row over all records.
pub(super) struct Total {
    pub(super) groups: Groups,
    /// Its only group, or that of each column of a pivot.
    pub(super) cells: Vec<Option<Group>>,
}

impl Answer {
    /// Puts the rows into the order of a layout, and leaves only those that it has.
    ///
    /// # Errors
    /// The answer has no such column, which [`Plan::check_layout`](crate::query::Plan::check_layout) says before; or files of
    /// groups can't be written or read back.
    pub fn lay_out(&mut self, layout: &Layout) -> Result<()> {
        cancellable(|| self.lay_out_rows(layout)).flatten()
    }

    fn lay_out_rows(&mut self, layout: &Layout) -> Result<()> {
        let keys = &self.names[..self.columns.keys];
        let (per, pivot) = (layout.per_keys(keys)?, layout.pivot_key(keys)?);
        if layout.has_total {
            let total = self.total_by(pivot.as_slice());
            self.total = Some(total.map_err(|lost| lost.error(&self.form().budget))?);
        }
        let needs_groups = pivot.is_some() || !per.is_empty();
        let in_memory = |rows: &StoredRows| rows.stored.reader().is_in_memory();
        if needs_groups && let Some(rows) = self.stored.take_if(|rows| in_memory(rows)) {
            rows.stored
                .narrow(&mut self.key_order)
                .map_err(|lost| lost.error(&rows.form.budget))?;
            self.load(&rows.stored)?;
        }
        if let Some(key) = pivot {
            return self.pivot(key, layout);
        }
        if per.is_empty() {
            return self.sort(&layout.sort, layout.first);
        }
        self.sort(&layout.sort, None)?;
        let budget = Arc::clone(&self.form().budget);
        let kept = self.keep_first(layout.first.unwrap_or_default(), &per);
        kept.map_err(|lost| lost.error(&budget))
    }

    /// Leaves the first rows of each combination of some parts of their keys.
    fn keep_first(&mut self, first: usize, per: &[usize]) -> Result<(), Lost> {
        let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut key = Vec::new();
        let mut is_kept = |groups: &Groups, group: Group| {
            let parts: Vec<&[u8]> = groups.parts(group).collect();
            key.clear();
            per.iter().for_each(|&at| push_part(&mut key, parts[at]));
            match counts.get_mut(&key) {
                Some(count) => {
                    *count += 1;
                    *count <= first
                }
                None => {
                    counts.insert(key.clone(), 1);
                    first > 0
                }
            }
        };
        let Some(rows) = self.stored.take() else {
            let mut order = self.take_order();
            order.retain(|&group| is_kept(&self.all, group));
            self.order = order.into();
            return Ok(());
        };
        let (form, stored) = (rows.form, rows.stored);
        let kept = form.filter(&stored, &self.columns.scales, |mut order, groups| {
            order.retain(|&group| is_kept(&groups, group));
            (order, groups)
        })?;
        let kept = Stored::new(kept, form.keys, stored.table().like());
        self.stored = Some(StoredRows::new(Arc::new(kept), form, rows.is_by_bytes));
        Ok(())
    }

    /// The row over all records, whose groups have these parts of keys.
    fn total_by(&self, kept: &[usize]) -> Result<Total, Lost> {
        let source = match &self.outgrown {
            Some(stored) => Source::Stored(stored),
            None => Source::Memory(self.all()),
        };
        let (form, scales) = (self.form(), &self.columns.scales);
        let stored = form.regrouped(&source, kept, scales)?;
        let (order, groups) = stored.load(0..stored.len()).map_err(|_| Lost::Read)?;
        if !order.is_empty() {
            let cells = order.into_iter().map(Some).collect();
            return Ok(Total { groups, cells });
        }
        // Of nothing.
        let mut table = stored.table().like();
        let mut key = Vec::new();
        (0..self.columns.keys).for_each(|_| push_part(&mut key, b""));
        let cells = vec![Some(table.group(&key))];
        let groups = Groups::new(table, None);
        Ok(Total { groups, cells })
    }
}
