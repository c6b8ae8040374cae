//! The answer of a query: column names and rows in an order.

pub(crate) mod columns;
pub(crate) mod fill;
pub(crate) mod having;
pub(crate) mod layout;
pub(crate) mod order;
pub(crate) mod outgrown;
mod pivot;
pub(crate) mod scope;
mod sorted;
mod steps;

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use memchr::memchr;
use rayon::prelude::*;
use ringfold_read::internals::cancellable;
use ringfold_read::{CancellationToken, Error, Kind as ErrorKind, Result};

use crate::aggregate::definition::Kind;
use crate::aggregate::state::{Outcome, Rounding};
use crate::answer::columns::{AnswerColumns, Column};
use crate::answer::fill::Fill;
use crate::answer::having::DoubtedRows;
use crate::answer::layout::Total;
use crate::answer::order::{By, Place, Sort};
use crate::answer::outgrown::{Page, StoredRows};
use crate::answer::pivot::Pivot;
use crate::answer::sorted::{Columns, Sorting, memory_of};
use crate::expression::Condition;
use crate::format::repeats::Occurrences;
use crate::partial::chain::Extremes;
use crate::reject::rejects::Rejects;
use crate::reject::skipped::Skipped;
use crate::report::Format;
use crate::report::grid::{Cell, Rows};
use crate::spill::stored::{Lost, Stored, StoredForm};
use crate::table::groups::{FETCHED, Groups};
use crate::table::key_order::KeyOrder;
use crate::table::states::Group;

/// The aggregates of an answer in a style of [`report`](crate::report).
pub(crate) const LINES: [&str; 3] = ["min", "mean", "max"];

/// Why an answer can't be printed so.
pub(crate) fn no_lines() -> Error {
    let why = "this format is for one key and the min, mean and max of a column, in this order";
    Error::new(ErrorKind::Usage, why)
}

/// The answer of a query.
///
/// Its rows are in the order of [`Sort::Key`]. If there were more groups than memory, they are so after [`Answer::sort`].
pub struct Answer {
    names: Vec<Vec<u8>>,
    columns: AnswerColumns,
    all: Groups,
    /// In place of these, what is saved: all groups with their values.
    with_values: Option<Groups>,
    /// The groups of the rows in no order, until that is known: they needn't all be sorted by key.
    found: Vec<Group>,
    /// The same in the order of the rows.
    order: OnceLock<Vec<Group>>,
    /// How their keys are compared.
    key_order: KeyOrder,
    /// Rows in memory are in this order.
    is_by_key: bool,
    /// In place of these, the groups that outgrew the memory.
    stored: Option<StoredRows>,
    /// All of them, whatever rows there are.
    outgrown: Option<Arc<Stored>>,
    /// How groups lie in files, those that are saved.
    form: Option<Box<StoredForm>>,
    /// The last row, over all records.
    total: Option<Total>,
    /// The rows of which a key became columns.
    pivot: Option<Pivot>,
    /// Where the records are that were added.
    pub(crate) extremes: Extremes,
    /// Groups that were found, those that a condition leaves out included.
    pub groups: u64,
    /// Bytes of groups that were written to temporary files, because they outgrew the memory.
    pub spilled_bytes: u64,
    /// Workers that shared their tables, because the groups exceeded the memory budget.
    pub key_sharers: u64,
    /// Records that were added.
    pub rows: u64,
    /// Records of which the condition isn't true.
    pub filtered: u64,
    /// Lines without a byte.
    pub empty_lines: u64,
    /// Values that weren't numbers and were taken for none.
    pub nulled: u64,
    /// The first of them.
    pub first_nulled: Option<Skipped>,
    /// For each [`lookup`](crate::query::Query::lookup) the records with a key that its table doesn't have, and the first of
    /// them.
    pub unmatched: Vec<(u64, Option<Skipped>)>,
    /// Records that were left out because they are the header again.
    pub repeated_headers: Occurrences,
    /// Records that were left out because a value isn't a number or time as the condition compares it with one.
    pub unread: u64,
    /// The first of them.
    pub first_unread: Option<Skipped>,
    /// Records of which the condition would say something else if it compared texts of digits as numbers.
    pub bytewise: u64,
    /// The first of them.
    pub first_bytewise: Option<Skipped>,
    /// The same of rows, and of the condition on them.
    pub(crate) doubted: DoubtedRows,
    /// Lines that go on after a log's pattern.
    pub longer: Occurrences,
    /// Records with a time without an offset that is looked at in a time zone: the first one. They aren't all counted.
    pub local_times: Occurrences,
    /// Malformed records that were left out.
    pub skipped: u64,
    /// The first of them.
    pub first_skipped: Option<Skipped>,
    /// All of them, if they were to be kept.
    pub rejects: Option<Rejects>,
}

impl Answer {
    /// An answer whose rows are [chosen](Answer::choose) from groups in memory, or in a [file](Answer::store).
    pub(crate) fn new(names: Vec<Vec<u8>>, columns: AnswerColumns, all: Groups) -> Answer {
        let (keys, decimal_point) = (columns.keys, columns.grammar.decimal_point);
        let mut answer = Answer::empty(names, columns, all);
        answer.key_order = KeyOrder::numbers(keys, decimal_point);
        let groups = answer.all.all();
        answer.groups = groups.len() as u64;
        if answer.columns.has_totals() && !groups.is_empty() {
            let mut totals = Vec::new();
            answer.columns.add_totals(&answer.all, &groups, &mut totals);
            answer.columns.set_totals(totals);
        }
        answer.found = groups;
        answer
    }

    /// Adds rows for values that a key lacks, and leaves only those of which a condition is true, in the order of keys.
    ///
    /// # Errors
    /// There would be too many rows, or a file can't be written or read back.
    pub(crate) fn choose(&mut self, fill: Option<&Fill>, having: Option<&Condition>) -> Result<()> {
        if let Some(fill) = fill {
            self.fill(fill)?;
        }
        if let Some(rows) = self.stored.take() {
            self.stored = Some(match having {
                Some(having) => self.having_stored(having, rows)?,
                None => rows,
            });
            return Ok(());
        }
        let mut groups = self.take_order();
        if let Some(having) = having {
            groups = self.having(having, groups);
        }
        self.all.narrow(&mut self.key_order, &groups);
        (self.found, self.is_by_key) = (groups, true);
        Ok(())
    }

    /// The rows of a file of which a condition is true.
    fn having_stored(&mut self, having: &Condition, rows: StoredRows) -> Result<StoredRows> {
        let StoredRows {
            stored,
            form,
            is_by_bytes,
            ..
        } = rows;
        let mut doubted = DoubtedRows::default();
        let reader = form.filter(&stored, &self.columns.scales, |order, groups| {
            let mut answer = self.of_rows(groups, order);
            let order = answer.take_order();
            let order = answer.having(having, order);
            doubted.add(answer.doubted);
            (order, answer.all)
        });
        let reader = reader.map_err(|lost| lost.error(&form.budget))?;
        self.doubted = doubted;
        let stored = Stored::new(reader, form.keys, stored.table().like());
        Ok(StoredRows::new(Arc::new(stored), form, is_by_bytes))
    }

    /// Shows all groups, in their order if that is known.
    fn each_group(&self, see: &mut dyn FnMut(&Groups, Group) -> Result<()>) -> Result<()> {
        let Some(rows) = &self.stored else {
            let order = self.order.get().unwrap_or(&self.found);
            return order.iter().try_for_each(|&group| see(&self.all, group));
        };
        for part in rows.stored.in_parts(0..rows.len()) {
            let loaded = rows.stored.load(part);
            let (order, groups) = loaded.map_err(|_| Lost::Read.error(&rows.form.budget))?;
            order.iter().try_for_each(|&group| see(&groups, group))?;
        }
        Ok(())
    }

    fn empty(names: Vec<Vec<u8>>, columns: AnswerColumns, all: Groups) -> Answer {
        Answer {
            names,
            columns,
            found: Vec::new(),
            order: OnceLock::new(),
            key_order: KeyOrder::BYTES,
            is_by_key: false,
            with_values: None,
            stored: None,
            outgrown: None,
            form: None,
            total: None,
            pivot: None,
            extremes: Extremes::default(),
            spilled_bytes: 0,
            key_sharers: 0,
            groups: 0,
            all,
            rows: 0,
            filtered: 0,
            empty_lines: 0,
            nulled: 0,
            repeated_headers: Occurrences::default(),
            first_nulled: None,
            unmatched: Vec::new(),
            unread: 0,
            first_unread: None,
            bytewise: 0,
            first_bytewise: None,
            doubted: DoubtedRows::default(),
            longer: Occurrences::default(),
            local_times: Occurrences::default(),
            skipped: 0,
            first_skipped: None,
            rejects: None,
        }
    }

    pub(crate) fn scales(&self) -> &[u32] {
        &self.columns.scales
    }

    /// With groups to be saved in place of the answer's own.
    pub(crate) fn with_all(self, with_values: Groups) -> Answer {
        Answer {
            with_values: Some(with_values),
            ..self
        }
    }

    /// Whose groups lie so in files.
    pub(crate) fn of_form(self, form: StoredForm) -> Answer {
        Answer {
            form: Some(form.into()),
            ..self
        }
    }

    fn form(&self) -> &StoredForm {
        self.form.as_deref().expect("an answer of all groups")
    }

    /// All groups as they are saved, whatever rows there are.
    pub(crate) fn all(&self) -> &Groups {
        self.with_values.as_ref().unwrap_or(&self.all)
    }

    /// All groups, if they have outgrown the memory: then [`Answer::all`] doesn't have them.
    pub(crate) fn outgrown(&self) -> Option<&Stored> {
        self.outgrown.as_deref()
    }

    /// The same in the order of their keys' bytes.
    pub(crate) fn all_by_key(&self) -> Vec<Group> {
        let all = self.all();
        all.sorted(all.all(), &KeyOrder::BYTES)
    }

    /// The names of the columns.
    pub fn names(&self) -> &[Vec<u8>] {
        match &self.pivot {
            Some(pivot) => &pivot.names,
            None => &self.names,
        }
    }

    /// The names of columns that are estimates where groups are large, and whether they are percentiles: the others are
    /// distinct counts. docs/estimates.md says how good they are.
    pub fn estimates(&self) -> impl Iterator<Item = (&[u8], bool)> {
        let kinds: Vec<Kind> = self.all.kinds().collect();
        let names = self.names[self.columns.keys..].iter();
        let columns = names.zip(&self.columns.shown);
        columns.filter_map(move |(name, column)| {
            let mut estimate = None;
            let mut see = |at: usize| {
                let kind = kinds[at];
                estimate = estimate.or(kind.is_estimate().then_some(kind.share.is_some()));
            };
            match column {
                Column::Aggregate(at) => see(*at),
                Column::Computed(computed) => computed.formula.each_column(&mut |column| {
                    if let Some(at) = column
                        .checked_sub(self.columns.keys)
                        .filter(|at| *at < kinds.len())
                    {
                        see(at);
                    }
                }),
            }
            Some((&name[..], estimate?))
        })
    }

    /// Puts the rows into another order, and leaves only the first so many, if `first` says so.
    ///
    /// # Errors
    /// There is no such column, which [`Plan::check_layout`](crate::query::Plan::check_layout) says before; or the groups have
    /// outgrown the memory, and files of them can't be written or read back.
    pub fn sort(&mut self, sort: &Sort, first: Option<usize>) -> Result<()> {
        cancellable(|| self.sort_rows(sort, first)).flatten()
    }

    fn sort_rows(&mut self, sort: &Sort, first: Option<usize>) -> Result<()> {
        let first = first.unwrap_or(usize::MAX);
        let columns = match sort {
            Sort::Unsorted => {
                self.truncate(first);
                return Ok(());
            }
            Sort::Bytes => {
                self.is_by_key &= self.key_order.is_of_bytes();
                self.key_order = KeyOrder::BYTES;
                Vec::new()
            }
            Sort::Key => Vec::new(),
            Sort::Columns(list) => {
                let place = |by: &By| by.place(&self.names, &mut self.columns);
                list.iter().map(place).collect::<Result<_>>()?
            }
        };
        self.sort_by(&columns, first)
    }

    fn sort_by(&mut self, columns: &[Place], first: usize) -> Result<()> {
        if let Some(stored) = self.stored.take() {
            let budget = Arc::clone(&stored.form.budget);
            let done = self.sort_stored(columns, first, stored);
            done.map_err(|lost| lost.error(&budget))?;
        } else {
            self.sort_groups(columns, first);
        }
        self.truncate(first);
        Ok(())
    }

    /// Rounds the numbers as a style of report has them.
    ///
    /// # Errors
    /// The columns aren't a key and the least, mean and greatest of its numbers.
    pub fn set_lines(&mut self, format: Format) -> Result<()> {
        let kinds = self.all.kinds().map(|kind| kind.name());
        let is_plain = self.columns.shown.len() == self.columns.scales.len();
        if self.columns.keys != 1 || !kinds.eq(LINES) || !is_plain {
            return Err(no_lines());
        }
        let digits = format.decimals();
        self.columns.roundings = match format {
            Format::OneBrc | Format::Lines => vec![Rounding::Up(digits); 3],
            Format::Hovinen => vec![Rounding::OfDoubles(digits); 3],
        };
        Ok(())
    }

    fn columns(&self, list: &[Place]) -> Columns<'_> {
        Columns {
            columns: list.to_vec(),
            all: &self.columns,
            key_order: &self.key_order,
        }
    }

    /// Sorts the rows that are in memory; perhaps only the first ones are left.
    fn sort_groups(&mut self, columns: &[Place], first: usize) {
        if columns.is_empty() && self.is_by_key && self.order.get().is_some() {
            return;
        }
        let mut order = self.take_order();
        if columns.is_empty() && first >= order.len() / 2 {
            order = self.all.sorted(order, &self.key_order);
        } else if !columns.is_empty() || !self.all.are_sorted(&order, &self.key_order) {
            self.columns(columns).sort(&self.all, &mut order, first);
        }
        self.order = order.into();
        self.is_by_key = columns.is_empty();
    }

    /// The groups in the order of the rows: that of keys where no other was asked for.
    fn order(&self) -> &[Group] {
        self.order.get().unwrap_or_else(|| {
            // Not where others wait for it: they may be threads that take part.
            // The rows of an answer that was cancelled aren't there, which [`Answer::check`] says.
            let sorted = cancellable(|| self.all.sorted(self.found.clone(), &self.key_order));
            self.order.get_or_init(|| sorted.unwrap_or_default())
        })
    }

    /// The groups, which needn't be sorted, to be put into another order.
    fn take_order(&mut self) -> Vec<Group> {
        let found = std::mem::take(&mut self.found);
        self.order.take().unwrap_or(found)
    }

    /// Takes over what another answer, of the run alone, says of records.
    #[cfg(feature = "cli")]
    pub(crate) fn take_records_of(&mut self, own: Answer) {
        self.repeated_headers = own.repeated_headers;
        self.local_times = own.local_times;
        self.skipped = own.skipped;
        self.first_skipped = own.first_skipped;
        (self.nulled, self.first_nulled) = (own.nulled, own.first_nulled);
        self.unmatched = own.unmatched;
        (self.unread, self.first_unread) = (own.unread, own.first_unread);
        (self.bytewise, self.first_bytewise) = (own.bytewise, own.first_bytewise);
    }

    /// A part of a key that holds a NUL byte, or ends with a carriage return, of the first row that has one.
    ///
    /// # Errors
    /// Rows were written to a file, and can't be read back.
    pub fn odd_key(&self) -> Result<Option<Vec<u8>>> {
        let is_odd = |text: &[u8]| memchr(0, text).is_some() || text.last() == Some(&b'\r');
        if let Some(rows) = &self.stored {
            let found = rows.stored.find_part(0..rows.len(), is_odd);
            return found.map_err(|_| rows.lost());
        }
        if self.all.are_whole_numbers() {
            return Ok(None);
        }
        let order = self.order();
        let odd = |at: usize| {
            self.all.fetch(at + FETCHED, |at| order.get(at).copied());
            self.all.parts(order[at]).find(|part| is_odd(part))
        };
        let found = (0..order.len()).into_par_iter().find_map_first(odd);
        Ok(found.map(<[u8]>::to_vec))
    }

    /// Leaves only the first rows.
    fn truncate(&mut self, rows: usize) {
        if self.order.get().is_none() {
            self.sort_groups(&[], rows);
        }
        if let Some(order) = self.order.get_mut() {
            order.truncate(rows);
        }
        if let Some(stored) = &mut self.stored {
            stored.truncate(rows);
        }
    }

    /// What `see` makes of the groups of an answer without keys, and of the only one of them, if there is one.
    ///
    /// # Errors
    /// The group was written to a file, and can't be read back.
    pub(crate) fn only_group<T>(&self, see: impl FnOnce(&Groups, Group) -> T) -> Result<Option<T>> {
        let Some(stored) = &self.stored else {
            return Ok(self.order().first().map(|group| see(&self.all, *group)));
        };
        let loaded = stored.stored.load(0..stored.len());
        let (order, groups) = loaded.map_err(|_| stored.lost())?;
        Ok(order.first().map(|group| see(&groups, *group)))
    }

    /// The rows without the total.
    fn groups_shown(&self) -> usize {
        match (&self.pivot, &self.stored) {
            (Some(pivot), _) => pivot.len(),
            (None, Some(stored)) => stored.len(),
            (None, None) => self.order().len(),
        }
    }

    /// What a group has in a [place](AnswerColumns::place) that isn't hidden.
    fn outcome(&self, group: Group, place: usize) -> Outcome<'_> {
        self.columns.outcome(&self.all, group, place)
    }
}

impl Answer {
    /// An answer with the same columns, and these groups in this order.
    fn of_rows(&self, groups: Groups, order: Vec<Group>) -> Answer {
        Answer {
            order: order.into(),
            ..Answer::empty(self.names.clone(), self.columns.clone(), groups)
        }
    }

    /// Takes its rows from a file.
    ///
    /// # Errors
    /// A file can't be written, or not be read back.
    pub(crate) fn store(
        &mut self,
        stored: Stored,
        form: &StoredForm,
    ) -> std::result::Result<(), Lost> {
        let mut stored = Arc::new(stored);
        self.outgrown = Some(Arc::clone(&stored));
        let mut form = form.clone();
        if form.has_values() {
            let settled = form.settle_stored(stored.reader(), &self.columns.scales)?;
            form = form.settled();
            stored = Arc::new(Stored::new(settled, form.keys, form.no_groups()));
        }
        self.groups = stored.len() as u64;
        if self.columns.has_totals() {
            let mut totals = Vec::new();
            for part in stored.in_parts(0..stored.len()) {
                let (order, groups) = stored.load(part).map_err(|_| Lost::Read)?;
                self.columns.add_totals(&groups, &order, &mut totals);
            }
            self.columns.set_totals(totals);
        }
        self.stored = Some(StoredRows::new(stored, form, true));
        Ok(())
    }

    /// Whether rows could be read back that were written to a file. If not, what was read of them is wrong. To be called
    /// when all rows have been read.
    ///
    /// # Errors
    /// Some could not, or [`Config::cancellation`](crate::Config::cancellation) has ended the run meanwhile.
    pub fn check(&self) -> Result<()> {
        let token = self.all.table().cancellation.as_ref();
        token.map_or(Ok(()), CancellationToken::check)?;
        match &self.stored {
            Some(stored) if stored.has_failed.load(Relaxed) => Err(stored.lost()),
            _ => Ok(()),
        }
    }

    /// Some rows of a file, which are these groups.
    fn page(
        &self,
        stored: &StoredRows,
        asked: Range<usize>,
        groups: impl Iterator<Item = Range<usize>>,
    ) -> Page {
        let loaded = stored.stored.load_each(groups);
        let (order, groups) = loaded.unwrap_or_else(|_| {
            stored.has_failed.store(true, Relaxed);
            (Vec::new(), Groups::new(stored.stored.table().like(), None))
        });
        Page {
            asked,
            columns: self.names().len(),
            rows: Box::new(self.of_rows(groups, order)),
        }
    }

    fn block(&self, stored: &StoredRows, rows: Range<usize>) -> Page {
        self.page(stored, rows.clone(), [rows].into_iter())
    }

    /// Takes the groups of a run into memory.
    fn load(&mut self, stored: &Stored) -> Result<()> {
        self.all = stored.load_all()?;
        if stored.reader().is_in_memory() {
            // No condition has left any of them out.
            self.outgrown = None;
        }
        (self.found, self.order) = (self.all.all(), OnceLock::new());
        self.is_by_key = true;
        Ok(())
    }

    /// Sorts the rows of a file, if they don't lie in that order. They come into memory if they fit there.
    fn sort_stored(
        &mut self,
        columns: &[Place],
        first: usize,
        rows: StoredRows,
    ) -> std::result::Result<(), Lost> {
        let StoredRows {
            stored,
            form,
            is_by_bytes,
            ..
        } = rows;
        stored.narrow(&mut self.key_order)?;
        // As they lie there.
        let is_by_key = |order: &KeyOrder| match order.is_of_bytes() {
            true => Ok(is_by_bytes),
            false => stored.is_sorted(order),
        };
        if columns.is_empty() && is_by_key(&self.key_order)? {
            self.stored = Some(StoredRows::new(stored, form, is_by_bytes));
            return Ok(());
        }
        let bytes = memory_of(stored.bytes(), stored.len() as u64);
        if stored.reader().is_in_memory() || bytes <= form.budget.bytes() {
            self.load(&stored).map_err(|_| Lost::Read)?;
            self.sort_groups(columns, first);
            return Ok(());
        }
        let sorting = Sorting {
            form: &form,
            columns: self.columns(columns),
            first,
        };
        let sorted = sorting.sort(stored)?;
        let sorted = Arc::new(sorted);
        self.stored = Some(StoredRows::new(sorted, form, false));
        Ok(())
    }
}

impl Rows for Answer {
    fn len(&self) -> usize {
        self.groups_shown() + usize::from(self.total.is_some())
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Rows + '_>> {
        let shown = self.groups_shown();
        let stored = (self.stored.as_ref()).filter(|_| rows.start < shown)?;
        let rows = rows.start..rows.end.min(shown);
        if let Some(pivot) = &self.pivot {
            return Some(Box::new(self.pivot_page(pivot, rows)?));
        }
        // A block, because rows may be long.
        let rows = stored.stored.in_parts(rows).next()?;
        Some(Box::new(self.block(stored, rows)))
    }

    fn prefetch(&self, at: usize) {
        if self.stored.is_some() || self.pivot.is_some() {
            return;
        }
        self.all.fetch(at, |at| self.order().get(at).copied());
    }

    fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>) {
        cells.clear();
        if let Some(total) = self.total.as_ref().filter(|_| at == self.groups_shown()) {
            let keys = self.columns.keys - usize::from(self.pivot.is_some());
            return total.push(self, keys, cells);
        }
        if let Some(pivot) = &self.pivot {
            return match self.pivot_page_of(pivot, at) {
                Some(page) => page.row(at, cells),
                None => self.push_pivot(pivot, at, cells),
            };
        }
        if let Some(stored) = &self.stored {
            let page = stored.page_of(at, |rows| self.block(stored, rows));
            return page.row(at, cells);
        }
        let group = self.order()[at];
        cells.extend(self.all.parts(group).map(Cell::Text));
        self.columns.push_cells(&self.all, group, cells);
    }
}
