//! Windows whose records are a key and a number with one decimal, where a query asks for no more than count, sum, least
//! and greatest value: the loop of [`key_number`](crate::scan::key_number) reads them, and while keys are few adds them to
//! [direct tables](crate::table::direct).
//!
//! That loop reads one form of number, finds both fields at once and keeps all four results beside the key. What it
//! doesn't read in a window is listed for others. A window with much of that, or with records of another number of
//! fields, or with quotes, is left to the passes as a whole. Rows of more keys than direct tables have are added to lanes.

use ringfold_read::Block;
use ringfold_read::internals::Level;

use crate::aggregate::lanes::{Kept, Part};
use crate::format::dialect::Marks;
use crate::plan::Plan;
use crate::scan::key_number::index::{Ends, index};
use crate::scan::key_number::rows::{List, Rows};
use crate::scan::key_number::tenths;
use crate::scan::key_number::window::{ScanWindow, WINDOW};
use crate::table::direct::DirectTable;
use crate::table::isa::{InlineKey, LongKey, Seeds, WideKey};
use crate::table::key::Key;
use crate::table::stats::Stats;

/// Digits after the point of the numbers.
pub(crate) const SCALE: u32 = 1;

/// A window is left to the passes if more than one row of so many is for others.
const ROWS_PER_OTHER: usize = 32;
/// The most windows that are left to the passes before the next one is tried.
const PAUSE_MAX: u32 = 64;

/// The direct tables, and what is known of the current window.
pub(crate) struct Pairs {
    level: Level,
    marks: Marks,
    ends: Ends,
    rows: Rows,
    /// Where records begin that are for others.
    others: Vec<u32>,
    inline: SizeClass<InlineKey>,
    long: SizeClass<LongKey>,
    wide: SizeClass<WideKey>,
    /// Windows that aren't tried, and how many these were the last time.
    pause: u32,
    last_pause: u32,
}

/// The keys of some sizes.
struct SizeClass<K: Key> {
    table: Option<Box<DirectTable<K>>>,
    seeds: Seeds,
    /// Rows are for lanes: there are many keys, or little memory.
    is_full: bool,
    /// Rows of the window that were added.
    added: usize,
}

impl<K: Key> SizeClass<K> {
    fn new(seeds: &Seeds) -> SizeClass<K> {
        SizeClass {
            table: None,
            seeds: seeds.clone(),
            is_full: false,
            added: 0,
        }
    }

    /// Adds the rows that are listed, up to the first one of too many keys.
    #[inline]
    fn fold(&mut self, level: Level, window: ScanWindow<'_>, list: &List) {
        self.added = 0;
        if self.is_full || list.keys().is_empty() {
            return;
        }
        let new = || Box::new(DirectTable::new(level, self.seeds.clone()));
        let table = self.table.get_or_insert_with(new);
        self.added = table.fold(window, list.keys(), list.values());
        self.is_full = self.added < list.keys().len();
    }

    fn bytes(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.bytes())
    }

    fn len(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.len())
    }

    /// Gives all keys, with their delimiters, and their statistics away; without `all` only if they are too many.
    fn drain(&mut self, all: bool, to: &mut dyn FnMut(&[u8], &Stats)) {
        let table = self.table.take_if(|_| all || self.is_full);
        let keys = table.into_iter().flat_map(|table| table.drain());
        keys.for_each(|(key, stats)| to(key.text(), &stats));
    }
}

impl Pairs {
    /// Of one worker, for a plan that asks for no more than is kept here.
    pub(crate) fn new(plan: &Plan) -> Option<Pairs> {
        let (level, marks) = (plan.level?, plan.dialect.marks()?);
        let is_known = |part: &Part| *part != Part::Squares;
        let is_served = plan.aggregates.iter().all(|of| match of.column {
            None => true,
            Some(column) => {
                let parts = of.kind.parts;
                column == 1 && parts.is_some_and(|parts| parts.iter().all(is_known))
            }
        });
        let has_form = plan.keys == [0] && plan.numbers == [1] && plan.shape.as_ref()?.width == 2;
        let is_plain = plan.filter.is_none() && !plan.has_numeric_nulls;
        let is_plain = is_plain && !plan.dialect.has_comments();
        let is_plain = is_plain && plan.grammar.decimal_point == b'.';
        let seeds = Seeds::drawn(&plan.hasher);
        (has_form && is_plain && is_served).then(|| Pairs {
            level,
            marks,
            ends: Ends::new(),
            rows: Rows::new(),
            others: Vec::new(),
            inline: SizeClass::new(&seeds),
            long: SizeClass::new(&seeds),
            wide: SizeClass::new(&seeds),
            pause: 0,
            last_pause: 0,
        })
    }

    /// Reads the window of `block` that begins at `at` with a record; `None` if it is for the passes.
    pub(crate) fn read<'a>(&mut self, block: &Block<'a>, at: usize) -> Option<ScanWindow<'a>> {
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        let window = ScanWindow::at(block, at, WINDOW).of_long_rows(self.ends.rows_are_long());
        if self.is_regular(window) {
            self.last_pause = 0;
            return Some(window);
        }
        self.last_pause = (2 * self.last_pause + 1).min(PAUSE_MAX);
        self.pause = self.last_pause;
        None
    }

    fn is_regular(&mut self, window: ScanWindow<'_>) -> bool {
        let quote = self.marks.quote;
        if quote.is_some_and(|quote| memchr::memchr(quote, window.bytes()).is_some()) {
            return false;
        }
        let ends = &mut self.ends;
        index(self.level, window, self.marks.delimiter, b'\n', ends);
        if !ends.balanced() || ends.rows() == 0 {
            return false;
        }
        tenths::decode(self.level, window, ends, true, &mut self.rows);
        let others = self.rows.rest.keys();
        self.others.clear();
        self.others.extend(others.iter().map(|key| key & 0xffff));
        self.others.len() * ROWS_PER_OTHER <= ends.rows()
    }

    /// Where records begin in the window that are for others, in their order.
    pub(crate) fn others(&self) -> &[u32] {
        &self.others
    }

    /// Where the last record of the window ends.
    pub(crate) fn end(&self) -> usize {
        self.ends.end()
    }

    /// Adds rows of the window to the direct tables; returns how many rows there are, and whether some are
    /// [for lanes](Pairs::for_lanes).
    #[inline]
    pub(crate) fn fold(&mut self, window: ScanWindow<'_>) -> (usize, bool) {
        let (level, rows) = (self.level, &self.rows);
        self.inline.fold(level, window, &rows.inline);
        self.long.fold(level, window, &rows.long);
        self.wide.fold(level, window, &rows.wide);
        let all = rows.lists().map(|list| list.keys().len()).sum();
        let added = self.inline.added + self.long.added + self.wide.added;
        (all, added < all)
    }

    /// Rows of the window that were not added, as lists of keys and values.
    pub(crate) fn for_lanes(&self) -> [(&[u32], &[u32]); 3] {
        let added = [self.inline.added, self.long.added, self.wide.added];
        let lists = [&self.rows.inline, &self.rows.long, &self.rows.wide];
        std::array::from_fn(|at| {
            let (keys, values) = (lists[at].keys(), lists[at].values());
            (&keys[added[at]..], &values[added[at]..])
        })
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.inline.len() + self.long.len() + self.wide.len()
    }

    /// Memory that is taken by groups.
    pub(crate) fn bytes(&self) -> usize {
        self.inline.bytes() + self.long.bytes() + self.wide.bytes()
    }

    /// Gives keys, with their delimiters, and what is known of their rows away: all, or those of sizes that have too many.
    pub(crate) fn drain(&mut self, all: bool, mut to: impl FnMut(&[u8], Kept)) {
        let mut to = |key: &[u8], stats: &Stats| to(key, kept(stats));
        self.inline.drain(all, &mut to);
        self.long.drain(all, &mut to);
        self.wide.drain(all, &mut to);
    }

    /// From now on all rows are for lanes.
    pub(crate) fn stop(&mut self) {
        (self.inline.is_full, self.long.is_full, self.wide.is_full) = (true, true, true);
    }
}

/// What is known of a group's rows.
fn kept(stats: &Stats) -> Kept {
    Kept {
        known: stats.count(),
        scale: SCALE,
        sum: stats.sum().into(),
        least: stats.min(),
        greatest: stats.max(),
        squares: 0,
    }
}
