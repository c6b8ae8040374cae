//! Which rows of an answer are shown, in which order, and the row over all records.

use std::collections::HashMap;
use std::sync::Arc;

use ringfold_read::{Error, Kind, Result};

use crate::answer::Answer;
use crate::answer::columns::AnswerColumns;
use crate::answer::order::Sort;
use crate::answer::outgrown::StoredRows;
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
}

impl Default for Layout {
    /// All rows in the order of their keys.
    fn default() -> Layout {
        Layout {
            sort: Sort::Key,
            first: None,
            per: Vec::new(),
            has_total: false,
        }
    }
}

impl Layout {
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

    /// Where the columns of the key are of each combination of whose values there are first rows.
    fn per_keys(&self, keys: &[Vec<u8>]) -> Result<Vec<usize>> {
        let refused = |why: String| Error::new(Kind::Usage, why);
        if !self.per.is_empty() && self.first.is_none() {
            return Err(refused("how many rows of each isn't said".into()));
        }
        let place = |name: &Vec<u8>| match keys.iter().position(|key| key == name) {
            Some(at) => Ok(at),
            None => Err(refused(unknown("the key", name, keys))),
        };
        self.per.iter().map(place).collect()
    }

    /// Whether an answer with these columns can be shown so.
    pub(crate) fn check(&self, names: &[Vec<u8>], columns: &mut AnswerColumns) -> Result<()> {
        let keys = &names[..columns.keys];
        self.per_keys(keys)?;
        if self.has_total && keys.is_empty() {
            let why = "a total is over the rows of a key, and there is none: name a key, or leave the total out";
            return Err(Error::new(Kind::Usage, why));
        }
        self.sort.check(names, columns)
    }
}

/// The row over all records.
pub(super) struct Total {
    pub(super) groups: Groups,
    pub(super) group: Group,
}

impl Answer {
    /// Puts the rows into the order of a layout, and leaves only those that it has.
    ///
    /// # Errors
    /// The answer has no such column, which [`Plan::check_layout`](crate::query::Plan::check_layout) says before; or files of
    /// groups can't be written or read back.
    pub fn lay_out(&mut self, layout: &Layout) -> Result<()> {
        let per = layout.per_keys(&self.names[..self.columns.keys])?;
        if layout.has_total {
            let budget = Arc::clone(&self.form().budget);
            let total = self.total_of_all().map_err(|lost| lost.error(&budget))?;
            self.total = Some(total);
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

    fn total_of_all(&self) -> Result<Total, Lost> {
        let source = match &self.outgrown {
            Some(stored) => Source::Stored(stored),
            None => Source::Memory(self.all()),
        };
        let (form, scales) = (self.form(), &self.columns.scales);
        let stored = form.regrouped(&source, &[], scales)?;
        let (order, groups) = stored.load(0..stored.len()).map_err(|_| Lost::Read)?;
        if let Some(&group) = order.first() {
            return Ok(Total { groups, group });
        }
        // Of nothing.
        let mut table = stored.table().like();
        let mut key = Vec::new();
        (0..self.columns.keys).for_each(|_| push_part(&mut key, b""));
        let group = table.group(&key);
        let groups = Groups::new(table, None);
        Ok(Total { groups, group })
    }
}
