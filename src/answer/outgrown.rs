//! Answers of more groups than memory: their rows are read from a file.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use ringfold_read::Error;

use crate::answer::Answer;
use crate::report::grid::{Cell, Rows};
use crate::spill::stored::{Lost, Stored, StoredForm};

/// Groups in memory take no more than so many times their bytes in a file.
pub(crate) const GROWTH: u64 = 6;

/// The rows of an answer in a file.
pub(crate) struct StoredRows {
    pub(super) stored: Arc<Stored>,
    pub(super) form: StoredForm,
    /// They are in the order of their keys' bytes.
    pub(super) is_by_bytes: bool,
    /// How many of them are rows of the answer.
    len: usize,
    /// Those that were asked for one by one, by block.
    pages: Vec<OnceLock<Page>>,
    /// Some couldn't be read back.
    pub(super) has_failed: AtomicBool,
}

impl StoredRows {
    pub(crate) fn new(stored: Arc<Stored>, form: StoredForm, is_by_bytes: bool) -> StoredRows {
        let blocks = stored.in_parts(0..stored.len()).count();
        StoredRows {
            is_by_bytes,
            len: stored.len(),
            stored,
            form,
            pages: (0..blocks).map(|_| OnceLock::new()).collect(),
            has_failed: AtomicBool::new(false),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn truncate(&mut self, rows: usize) {
        self.len = self.len.min(rows);
    }

    /// The rows of the block that one of them is in; when `load` has loaded them they stay in memory.
    pub(super) fn page_of(&self, at: usize, load: impl Fn(Range<usize>) -> Page) -> &Page {
        let parts = self.stored.in_parts(0..self.stored.len());
        let found = parts.enumerate().find(|(_, rows)| rows.contains(&at));
        let (block, rows) = found.expect("a row of the answer");
        self.pages[block].get_or_init(|| load(rows))
    }
}

/// Some rows in memory.
pub(super) struct Page {
    pub(super) asked: Range<usize>,
    pub(super) columns: usize,
    pub(super) rows: Box<Answer>,
}

impl Rows for Page {
    fn len(&self) -> usize {
        self.asked.end
    }

    fn prefetch(&self, at: usize) {
        if at - self.asked.start < self.rows.len() {
            self.rows.prefetch(at - self.asked.start);
        }
    }

    fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>) {
        if at - self.asked.start < self.rows.len() {
            return self.rows.row(at - self.asked.start, cells);
        }
        // It couldn't be read, which the answer's check tells.
        cells.clear();
        cells.resize(self.columns, Cell::Null);
    }
}

impl StoredRows {
    pub(super) fn lost(&self) -> Error {
        Lost::Read.error(&self.form.budget)
    }
}
