//! Windows whose records are a key and a number with one decimal, where a query asks for no more than count, sum, least
//! and greatest value: they are added by the loop of [`group`](crate::group::aggregate).
//!
//! That loop reads one form of number, finds both fields at once and keeps all four results beside the key. What it
//! doesn't read in a window is listed for others. A window with much of that, or with records of another number of
//! fields, or with quotes, is left to the passes as a whole.

use crate::group::accumulate::stats::Stats;
use crate::group::scan::index::{Ends, index};
use crate::group::scan::rows::Rows;
use crate::group::scan::tenths;
use crate::group::scan::window::{ScanWindow, WINDOW};
use crate::group::table::isa::Seeds;
use crate::group::table::small::SmallTables;
use crate::level::Level;
use crate::query::dialect::Marks;
use crate::query::lane_groups::LaneGroups;
use crate::query::lanes::{Kept, Part};
use crate::query::plan::Plan;
use crate::query::slots::Unit;
use crate::query::table::Table;
use crate::record::block::Block;

/// A window is left to the passes if more than one row of so many is for others.
const ROWS_PER_OTHER: usize = 32;
/// The most windows that are left to the passes before the next one is tried.
const PAUSE_MAX: u32 = 64;

/// The groups of such windows, and what is known of the current one.
pub(crate) struct Pairs {
    level: Level,
    marks: Marks,
    ends: Ends,
    rows: Rows,
    /// Where records begin that are for others.
    others: Vec<u32>,
    groups: SmallTables<Stats>,
    /// Windows that aren't tried, and how many these were the last time.
    pause: u32,
    last_pause: u32,
}

impl Pairs {
    /// Digits behind the point of the numbers in the groups.
    pub(crate) const SCALE: u32 = 1;

    /// For a plan that asks for no more than is kept here.
    pub(crate) fn new(plan: &Plan, level: Level, marks: Marks) -> Option<Pairs> {
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
        (has_form && is_plain && is_served).then(|| Pairs {
            level,
            marks,
            ends: Ends::new(),
            rows: Rows::new(),
            others: Vec::new(),
            groups: SmallTables::new(level, &Seeds::drawn(&plan.hasher), marks.delimiter),
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

    /// Adds the rows of the window but for the others; returns how many they are.
    pub(crate) fn fold(&mut self, plan: &Plan, window: ScanWindow<'_>, table: &mut Table) -> usize {
        let mut key = Vec::new();
        self.groups.fold(window, &self.rows, |part, value| {
            absorb(plan, table, part, &Stats::of(value), &mut key);
        })
    }

    /// Whether there are more keys than the loop is fast for.
    pub(crate) fn is_full(&self) -> bool {
        self.groups.is_full()
    }

    /// Moves all groups to lanes, and to the table what these can't hold.
    pub(crate) fn drain(&mut self, plan: &Plan, lanes: &mut LaneGroups, table: &mut Table) {
        let delimiter = self.marks.delimiter;
        let mut key = Vec::new();
        self.groups.drain(|part, stats| {
            key.clear();
            key.extend_from_slice(part);
            key.push(delimiter);
            let unit = Unit::of_key(&key);
            if !unit.is_some_and(|unit| lanes.hold(&unit, &kept(stats), table)) {
                absorb(plan, table, part, stats, &mut key);
            }
        });
    }

    /// Memory that is taken by groups.
    pub(crate) fn bytes(&self) -> usize {
        self.groups.bytes() as usize
    }
}

/// What is known of a group's rows.
fn kept(stats: &Stats) -> Kept {
    Kept {
        known: stats.count(),
        scale: Pairs::SCALE,
        sum: stats.sum().into(),
        least: stats.min(),
        greatest: stats.max(),
        squares: 0,
    }
}

/// Adds it to a table.
fn absorb(plan: &Plan, table: &mut Table, part: &[u8], stats: &Stats, key: &mut Vec<u8>) {
    key.clear();
    plan.push_key(key, part);
    let group = table.group(key);
    for aggregate in 0..plan.aggregates.len() {
        table.absorb(group, aggregate, &kept(stats));
    }
}
