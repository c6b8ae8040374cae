//! Count, sum, least and greatest of the numbers under each key: `key;value` records, exactly.
//!
//! A block is taken window by window (8 KiB), each in passes without a branch on the data:
//!
//! 1. `index`: where the fields end, and whether every record has two;
//! 2. `decode`: the numbers, proven to be of the common shape; the rest is listed;
//! 3. `table`: hash, compare, update, in batches.
//!
//! Whatever a pass sets aside (another shape of number, a very long key, an empty line, a malformed
//! record) is read by `careful`, record by record, and summed as `decimal` says. The parts meet in
//! `summary`.

mod careful;
mod decimal;
mod decode;
mod index;
mod level;
mod pages;
#[doc(hidden)]
pub mod passes;
mod summary;
mod table;
#[cfg(test)]
mod tests;
mod window;

pub use decimal::{DIGITS_MAX, Exact, Fixed};
pub use level::Level;
pub use summary::{Entry, Summary};

use super::{Fold, Malformed};
use crate::block::Block;
use careful::Record;
use decimal::Totals;
use decode::Rows;
use hashbrown::HashMap;
use index::Ends;
use table::isa::Seeds;
use table::tables::Tables;
use window::{WINDOW, WINDOW_MIN, Window};

/// Totals by key, for what the tables of the hot loop don't take.
type CarefulMap = HashMap<Vec<u8>, Totals, ahash::RandomState>;

/// What to do about a malformed record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// Report it and end the job.
    #[default]
    Fail,
    /// Count it and go on.
    Skip,
}

/// The job: group `key;value` records by key.
#[derive(Clone)]
pub struct Aggregate {
    delimiter: u8,
    terminator: u8,
    on_error: OnError,
    level: Level,
    seeds: Seeds,
}

impl Default for Aggregate {
    fn default() -> Self {
        Aggregate::new()
    }
}

impl Aggregate {
    /// Records of `key;value` ended by newlines; the first malformed one ends the job.
    pub fn new() -> Self {
        Aggregate {
            delimiter: b';',
            terminator: b'\n',
            on_error: OnError::Fail,
            level: Level::detect(),
            seeds: Seeds::random(),
        }
    }

    /// The byte between key and value.
    pub fn delimiter(self, delimiter: u8) -> Self {
        Aggregate { delimiter, ..self }
    }

    /// The byte that ends a record. Carriage returns are special only before a newline.
    pub fn terminator(self, terminator: u8) -> Self {
        Aggregate { terminator, ..self }
    }

    /// What to do about a malformed record.
    pub fn on_error(self, on_error: OnError) -> Self {
        Aggregate { on_error, ..self }
    }

    /// Runs at a lower level than the processor's best.
    ///
    /// # Panics
    /// If the processor lacks the level.
    pub fn level(self, level: Level) -> Self {
        assert!(
            Level::available().contains(&level),
            "the processor lacks {level:?}"
        );
        Aggregate { level, ..self }
    }

    /// Takes the records of a balanced window that begins at `at`, and returns where the next begins.
    fn window(
        &self,
        partial: &mut Partial,
        bytes: &[u8],
        at: usize,
        window: Window<'_>,
    ) -> Result<usize, Malformed> {
        let trims = self.terminator == b'\n';
        decode::decode(
            self.level,
            window,
            &partial.scratch.ends,
            trims,
            &mut partial.scratch.rows,
        );
        for position in 0..partial.scratch.rows.rest().len() {
            let row = partial.scratch.rows.rest()[position] as usize;
            let ends = &partial.scratch.ends.ends()[2 * row..][..3];
            let [start, key_end, end] = [ends[0], ends[1], ends[2]].map(usize::from);
            let (key, value) = (at + start..at + key_end - 1, at + key_end..at + end - 1);
            match decimal::number(careful::trim(&bytes[value], self.terminator)) {
                Ok(number) => partial.careful_row(&bytes[key], &number),
                // Once more, for the cause or the count of it.
                Err(_) => self.careful_record(partial, bytes, at + start, at + end - 1)?,
            }
        }
        partial.rows += partial.tables.fold(window, &partial.scratch.rows) as u64;
        Ok(at + partial.scratch.ends.end())
    }

    /// Reads the record that starts at `start`, and returns where the next one does.
    fn careful_next(
        &self,
        partial: &mut Partial,
        block: &[u8],
        start: usize,
    ) -> Result<usize, Malformed> {
        let length = memchr::memchr(self.terminator, &block[start..]);
        let end = length.map_or(block.len(), |length| start + length);
        self.careful_record(partial, block, start, end)?;
        Ok(end + 1)
    }

    /// Reads the record `start..end`, its terminator excluded.
    fn careful_record(
        &self,
        partial: &mut Partial,
        block: &[u8],
        start: usize,
        end: usize,
    ) -> Result<(), Malformed> {
        let record = careful::trim(&block[start..end], self.terminator);
        match careful::read(record, self.delimiter) {
            Ok(Record::Empty) => partial.empty_lines += 1,
            Ok(Record::Row(key, number)) => partial.careful_row(key, &number),
            Err(_) if self.on_error == OnError::Skip => partial.skipped += 1,
            Err(cause) => {
                return Err(Malformed {
                    start,
                    end: start + record.len(),
                    cause,
                });
            }
        }
        Ok(())
    }
}

/// What one worker gathers.
pub struct Partial {
    tables: Tables,
    careful: CarefulMap,
    rows: u64,
    empty_lines: u64,
    skipped: u64,
    scratch: Scratch,
}

impl Partial {
    fn careful_row(&mut self, key: &[u8], number: &decimal::Number) {
        self.rows += 1;
        self.careful.entry_ref(key).or_default().add(number);
    }
}

struct Scratch {
    ends: Ends,
    rows: Rows,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Fold for Aggregate {
    type Partial = Partial;
    type Output = Summary;

    fn partial(&self) -> Partial {
        Partial {
            tables: Tables::new(self.level, self.seeds.clone(), self.delimiter),
            careful: CarefulMap::default(),
            rows: 0,
            empty_lines: 0,
            skipped: 0,
            scratch: Scratch {
                ends: Ends::new(),
                rows: Rows::new(),
            },
        }
    }

    fn block(&self, partial: &mut Partial, block: &Block<'_>) -> Result<(), Malformed> {
        let bytes = block.bytes();
        let marked = block.offset() == 0 && bytes.starts_with(BYTE_ORDER_MARK);
        let mut at = if marked { BYTE_ORDER_MARK.len() } else { 0 };
        let mut length = WINDOW;
        while at < bytes.len() {
            let window = Window::at(block, at, length);
            let ends = &mut partial.scratch.ends;
            index::index(self.level, window, self.delimiter, self.terminator, ends);
            let balanced = ends.balanced();
            if !balanced {
                ends.keep_balanced(window, self.delimiter, self.terminator);
            }
            let careful = !balanced || ends.rows() == 0;
            at = self.window(partial, bytes, at, window)?;
            if careful {
                // The next record broke the balance, or is longer than the window, or the last.
                at = self.careful_next(partial, bytes, at)?;
            }
            length = if balanced {
                (2 * length).min(WINDOW)
            } else {
                WINDOW_MIN
            };
        }
        Ok(())
    }

    fn merge(&self, into: &mut Partial, from: Partial) {
        into.tables.merge(from.tables);
        for (key, totals) in from.careful {
            into.careful.entry(key).or_default().merge(&totals);
        }
        into.rows += from.rows;
        into.empty_lines += from.empty_lines;
        into.skipped += from.skipped;
    }

    fn finish(&self, total: Partial) -> Summary {
        let mut others = total.careful;
        let mut tables = total.tables.into_sorted();
        for (key, stats) in tables.take_full() {
            others
                .entry(key)
                .or_default()
                .merge(&summary::tenths_totals(&stats));
        }
        Summary::new(
            tables,
            others.into_iter().collect(),
            [total.rows, total.empty_lines, total.skipped],
        )
    }
}
