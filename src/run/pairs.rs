//! Windows whose records are a key and a number with one decimal, where a query asks for no more than count, sum, least
//! and greatest value: they are added by the loop of [`key_number`](crate::scan::key_number) to its own
//! [tables](crate::table).
//!
//! That loop reads one form of number, finds both fields at once and keeps all four results beside the key. What it
//! doesn't read in a window is listed for others. A window with much of that, or with records of another number of
//! fields, or with quotes, is left to the passes as a whole.

use std::sync::Arc;

use crate::aggregate::lanes::Part;
use crate::budget::Budget;
use crate::format::dialect::Marks;
use crate::level::Level;
use crate::plan::Plan;
use crate::record::block::Block;
use crate::scan::key_number::index::{Ends, index};
use crate::scan::key_number::rows::Rows;
use crate::scan::key_number::tenths;
use crate::scan::key_number::window::{ScanWindow, WINDOW};
use crate::table::config::TableConfig;
use crate::table::isa::Seeds;
use crate::table::lane_groups::LaneGroups;
use crate::table::pair_rows::{PairRows, kept, rows_to_table};
use crate::table::shared::SharedTables;
use crate::table::slots::Unit;
use crate::table::states::Table;
use crate::table::tables::Tables;

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
    shared: Arc<SharedTables>,
    tables: Tables,
    /// Windows that aren't tried, and how many these were the last time.
    pause: u32,
    last_pause: u32,
}

impl Pairs {
    /// The tables of all workers of a run, for a plan that asks for no more than is kept here.
    pub(crate) fn shared(plan: &Plan, budget: &Arc<Budget>) -> Option<Arc<SharedTables>> {
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
        (has_form && is_plain && is_served).then(|| {
            let config = TableConfig::new(level, Seeds::drawn(&plan.hasher), marks.delimiter);
            Arc::new(SharedTables::new(config, budget))
        })
    }

    /// Of one worker.
    pub(crate) fn new(level: Level, marks: Marks, shared: &Arc<SharedTables>) -> Pairs {
        Pairs {
            level,
            marks,
            ends: Ends::new(),
            rows: Rows::new(),
            others: Vec::new(),
            tables: shared.tables(),
            shared: Arc::clone(shared),
            pause: 0,
            last_pause: 0,
        }
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
    pub(crate) fn fold(&mut self, window: ScanWindow<'_>) -> usize {
        self.tables.fold(window, &self.rows)
    }

    /// How many keys there are, those of the shared tables aside.
    pub(crate) fn len(&self) -> usize {
        self.tables.len()
    }

    /// Memory that is taken by groups, those of the shared tables aside.
    pub(crate) fn bytes(&self) -> u64 {
        self.tables.bytes()
    }

    /// What this worker shares with others.
    pub(crate) fn shared_tables(&self) -> &Arc<SharedTables> {
        &self.shared
    }

    /// Shares the keys, so that each is in memory once, if all workers were asked to.
    pub(crate) fn share_if_requested(&mut self) {
        if !self.tables.shares() && self.shared.sharing_requested() {
            self.tables.share();
            self.shared.add_sharer();
        }
    }

    /// Takes the keys, those of the shared tables aside; none are left then.
    pub(crate) fn take(&mut self) -> Tables {
        self.tables.take()
    }

    /// Moves all groups to lanes, and to the table what these can't hold.
    pub(crate) fn drain(&mut self, lanes: &mut LaneGroups, table: &mut Table) {
        let (own, none) = (vec![self.take()], self.shared.drain_none());
        let rows = PairRows::merge(own, none, table, &lanes.plan().nulls);
        let (mut key, mut whole) = (Vec::new(), Vec::new());
        rows.each(|part, stats| {
            key.clear();
            key.extend_from_slice(part);
            key.push(self.marks.delimiter);
            let unit = Unit::of_key(&key);
            if !unit.is_some_and(|unit| lanes.hold(&unit, &kept(stats), table)) {
                rows_to_table(table, part, &kept(stats), &mut whole);
            }
        });
    }
}
