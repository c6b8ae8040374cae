//! Count, sum, least and greatest of the numbers under each key: `key;value` records, exactly.
//!
//! A block is processed window by window (8 KiB), in stages without a branch on the data:
//!
//! 1. `index`: where the fields end, and whether every record has two;
//! 2. `tenths` and `millionths`: read and check the numbers;
//! 3. `tables` and `small`: hash, compare and update in batches.
//!
//! The `scalar` parser reads the records that are left over (a very long number or key, an empty line, a
//! malformed record); their rows go to the `fallback` table.
//!
//! When the tables exceed the memory `budget`, all workers share theirs (`shared`). If that is too much too,
//! sorted keys are spilled to temporary files (`region`). `summary` merges everything.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use crate::engine::sink::{BlockError, Malformed};
use crate::error::refusal::Refusal;
use crate::error::{Cause, Error};
use crate::group::accumulate::decimal;
use crate::group::accumulate::stats::MillionthStats;
use crate::group::hint;
use crate::group::scan::index::{self, Ends};
use crate::group::scan::rows::Rows;
use crate::group::scan::scalar::{self, Record};
use crate::group::scan::window::{ScanWindow, WINDOW, WINDOW_MIN};
use crate::group::scan::{millionths, tenths};
use crate::group::spill::budget::{self, Budget, Share};
use crate::group::summary::{Skipped, SortedRun, Summary};
use crate::group::table::config::TableConfig;
use crate::group::table::fallback::FallbackTable;
use crate::group::table::isa::Seeds;
use crate::group::table::shared::{LOCAL_KEYS_MAX, SharedTables, shard_bits};
use crate::group::table::small::SmallTables;
use crate::group::table::tables::{DrainedClasses, Tables};
use crate::input::foreign::BYTE_ORDER_MARK;
use crate::job::fold::Fold;
use crate::level::Level;
use crate::record::block::{Block, Cut};
use crate::record::framing::{Delimited, Framing};
use crate::record::lines::{Lines, Mark};
use crate::record::nuls;

#[cfg(test)]
mod tests;

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
    framing: Delimited,
    on_error: OnError,
    level: Level,
    seeds: Seeds,
    local_keys_max: usize,
    shard_bits: u32,
    memory: Option<u64>,
    spill_directory: Option<PathBuf>,
    budget: OnceLock<Arc<Budget>>,
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
            framing: Delimited::NEWLINE,
            on_error: OnError::Fail,
            level: Level::detect(),
            seeds: Seeds::random(),
            local_keys_max: LOCAL_KEYS_MAX,
            shard_bits: shard_bits(),
            memory: None,
            spill_directory: None,
            budget: OnceLock::new(),
        }
    }

    /// The byte between key and value.
    pub fn delimiter(self, delimiter: u8) -> Self {
        Aggregate { delimiter, ..self }
    }

    /// The byte that ends a record. Carriage returns are special only before a newline.
    pub fn terminator(self, terminator: u8) -> Self {
        Aggregate {
            terminator,
            framing: Delimited::by(terminator),
            ..self
        }
    }

    /// What to do about a malformed record.
    pub fn on_error(self, on_error: OnError) -> Self {
        Aggregate { on_error, ..self }
    }

    /// How many bytes the tables of all workers may take together, growth aside. Beyond that, workers share
    /// their tables, and what still exceeds it goes to temporary files. The default is two fifths of the
    /// memory that is available when the tables have grown to some MiB, or of the control group's limit.
    pub fn memory(self, bytes: u64) -> Self {
        Aggregate {
            memory: Some(bytes),
            budget: OnceLock::new(),
            ..self
        }
    }

    /// The directory of the temporary files, which have no names. The default is `TMPDIR`, else /var/tmp.
    pub fn spill_directory(self, directory: impl Into<PathBuf>) -> Self {
        Aggregate {
            spill_directory: Some(directory.into()),
            budget: OnceLock::new(),
            ..self
        }
    }

    /// How many keys of a size a worker keeps in its local table when it shares, and how many bits of a hash
    /// choose the shard of the others.
    #[cfg(test)]
    fn sharing(self, local_keys_max: usize, shard_bits: u32) -> Self {
        Aggregate {
            local_keys_max,
            shard_bits,
            ..self
        }
    }

    fn budget(&self) -> &Arc<Budget> {
        self.budget.get_or_init(|| {
            let directory = self.spill_directory.clone();
            Budget::new(
                self.memory,
                &directory.unwrap_or_else(budget::default_directory),
            )
        })
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

    fn partial_of(&self, shared: &Arc<SharedTables>) -> Partial {
        Partial {
            tables: shared.tables(),
            shared: Arc::clone(shared),
            millionths: SmallTables::new(self.level, &self.seeds, self.delimiter),
            fallback: FallbackTable::default(),
            merged: Vec::new(),
            runs: Vec::new(),
            share: Share::new(self.budget()),
            rows: 0,
            empty_lines: 0,
            skipped: 0,
            skipped_here: None,
            first_skipped: None,
            lines: Lines::ended_by(self.terminator),
            spilled_bytes: 0,
            scratch: Scratch {
                ends: Ends::new(),
                rows: Rows::new(),
                millionths: Rows::new(),
            },
        }
    }

    /// Adds the records of a balanced window that begins at `at`; returns where the next window begins.
    fn window(
        &self,
        partial: &mut Partial,
        bytes: &[u8],
        at: usize,
        window: ScanWindow<'_>,
    ) -> Result<usize, BlockError> {
        let trims_cr = self.terminator == b'\n';
        tenths::decode(
            self.level,
            window,
            &partial.scratch.ends,
            trims_cr,
            &mut partial.scratch.rows,
        );
        millionths::decode(
            self.level,
            window,
            &partial.scratch.rows.rest,
            trims_cr,
            &mut partial.scratch.millionths,
        );
        for position in 0..partial.scratch.millionths.rest.keys().len() {
            let rest = &partial.scratch.millionths.rest;
            let (key, span) = (rest.keys()[position], rest.values()[position]);
            let start = at + (key & 0xffff) as usize;
            let value = at + (span & 0xffff) as usize..at + (span >> 16) as usize - 1;
            let (end, value) = (value.end, scalar::trim(&bytes[value], self.terminator));
            match decimal::number(value) {
                Ok(number) if nuls::run(window.key(key)).is_none() => {
                    partial.add_fallback_row(window.key(key), &number)
                }
                // Read once more, for the cause or to count it.
                _ => self.scalar_record(partial, bytes, start, end)?,
            }
        }
        let lists = &partial.scratch.millionths;
        let fallback = &mut partial.fallback;
        let rows = partial.millionths.fold(window, lists, |key, value| {
            fallback.add(key, &decimal::Number::Millionths(value));
        });
        partial.rows += (rows + partial.tables.fold(window, &partial.scratch.rows)) as u64;
        Ok(at + partial.scratch.ends.end())
    }

    /// Adds all records of `block`.
    fn records(&self, partial: &mut Partial, block: &Block<'_>) -> Result<(), BlockError> {
        let bytes = block.bytes();
        if let Some(cut) = block.cut() {
            let record = &bytes[..bytes.len() - 1];
            let is_hinted = self.on_error == OnError::Fail;
            return self.reject(partial, Malformed::too_long(record, 0, cut, is_hinted));
        }
        let mut at = first_record(block);
        let mut length = WINDOW;
        let mut checked = 0;
        while at < bytes.len() {
            if at - checked >= BUDGET_CHECK_BYTES {
                checked = at;
                partial.enforce_budget()?;
            }
            let ends = &mut partial.scratch.ends;
            let window = ScanWindow::at(block, at, length).of_long_rows(ends.rows_are_long());
            index::index(self.level, window, self.delimiter, self.terminator, ends);
            let balanced = ends.balanced();
            if !balanced {
                ends.keep_balanced(window, self.delimiter, self.terminator);
            }
            let needs_scalar = !balanced || ends.rows() == 0;
            at = self.window(partial, bytes, at, window)?;
            if needs_scalar {
                // The next record hasn't two fields, is longer than the window, or is the last.
                at = self.next_scalar_record(partial, bytes, at)?;
            }
            length = if balanced {
                (2 * length).min(WINDOW)
            } else {
                WINDOW_MIN
            };
        }
        partial.enforce_budget()
    }

    /// Reads the record that starts at `start`, and returns where the next one does.
    fn next_scalar_record(
        &self,
        partial: &mut Partial,
        block: &[u8],
        start: usize,
    ) -> Result<usize, BlockError> {
        let length = memchr::memchr(self.terminator, &block[start..]);
        let end = length.map_or(block.len(), |length| start + length);
        self.scalar_record(partial, block, start, end)?;
        Ok(end + 1)
    }

    /// Reads the record `start..end`, its terminator excluded.
    fn scalar_record(
        &self,
        partial: &mut Partial,
        block: &[u8],
        start: usize,
        end: usize,
    ) -> Result<(), BlockError> {
        let record = scalar::trim(&block[start..end], self.terminator);
        if let Some(run) = nuls::run(record) {
            let is_hinted = self.on_error == OnError::Fail;
            return self.reject(partial, Malformed::hole(run, start, is_hinted));
        }
        match scalar::read(record, self.delimiter) {
            Ok(Record::Empty) => partial.empty_lines += 1,
            Ok(Record::Row(key, number)) => partial.add_fallback_row(key, &number),
            Err(cause) => {
                let malformed = Malformed {
                    start,
                    end: start + record.len(),
                    cause: cause.into(),
                };
                return self.reject(partial, malformed);
            }
        }
        Ok(())
    }

    /// Ends the job with a malformed record, or leaves it out.
    fn reject(&self, partial: &mut Partial, malformed: Malformed) -> Result<(), BlockError> {
        if self.on_error == OnError::Fail {
            return Err(malformed.into());
        }
        partial.skipped += 1;
        partial.skipped_here.get_or_insert(malformed);
        Ok(())
    }

    /// The same, with a hint if it is the first record of its file.
    fn hinted(&self, mut malformed: Malformed, block: &Block<'_>) -> Malformed {
        let bytes = block.bytes();
        let record = &bytes[malformed.start..malformed.end.min(bytes.len())];
        if let Cause::Words(why) = &malformed.cause
            && let Some(hint) = hint::number(record, self.delimiter)
        {
            let why = why.clone();
            malformed.cause = Refusal::Malformed { why, hint }.into();
            return malformed;
        }
        let place = (block.offset(), malformed.start);
        if place != (0, first_record(block)) {
            return malformed;
        }
        let mut records = bytes[malformed.start..]
            .split(|&byte| byte == self.terminator)
            .map(|record| scalar::trim(record, self.terminator));
        let record = records.next().unwrap_or_default();
        if let Some(hint) = hint::hint(record, records, self.delimiter) {
            let why = malformed.cause.to_string();
            malformed.cause = Refusal::Malformed { why, hint }.into();
        }
        malformed
    }
}

/// One worker's tables and counts.
pub struct Partial {
    shared: Arc<SharedTables>,
    tables: Tables,
    millionths: SmallTables<MillionthStats>,
    fallback: FallbackTable,
    /// Tables of partials that were merged into this one; their keys are merged at the end.
    merged: Vec<(Tables, FallbackTable)>,
    /// Spilled keys.
    runs: Vec<SortedRun>,
    share: Share,
    rows: u64,
    empty_lines: u64,
    skipped: u64,
    /// The first malformed record of the block that is being added.
    skipped_here: Option<Malformed>,
    /// The first one of all blocks.
    first_skipped: Option<(Skipped, Mark)>,
    /// The lines of all blocks, where records may be left out.
    lines: Lines,
    spilled_bytes: u64,
    scratch: Scratch,
}

impl Partial {
    fn add_fallback_row(&mut self, key: &[u8], number: &decimal::Number) {
        self.rows += 1;
        self.fallback.add(key, number);
    }

    /// If all partials together exceed the budget, shares the keys, so that each is in memory once; if that is too
    /// much too, spills them.
    fn enforce_budget(&mut self) -> Result<(), BlockError> {
        if self.share.set(self.bytes()) {
            self.shared.request_sharing();
        }
        if !self.tables.shares() && self.shared.sharing_requested() {
            self.tables.share();
            self.shared.add_sharer();
        }
        if self.share.set(self.bytes()) {
            let own = self.take();
            self.spill(sorted_run(vec![own], self.shared.drain_none()))?;
            self.share.set(self.bytes());
        }
        if let Some((drained, share)) = self.shared.drain_excess(self.share.budget()) {
            self.spill(sorted_run(Vec::new(), drained))?;
            drop(share);
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.tables.bytes() + self.millionths.bytes() + self.fallback.bytes()
    }

    fn spill(&mut self, mut run: SortedRun) -> Result<(), BlockError> {
        let budget = self.share.budget();
        let spilled = run.spill(budget.directory());
        self.spilled_bytes += spilled.map_err(|error| Error::from(budget.spill_error(&error)))?;
        self.runs.push(run);
        Ok(())
    }

    /// Takes the keys that are in memory; the tables are empty then.
    fn take(&mut self) -> (Tables, FallbackTable) {
        self.millionths.drain(|key, sums| {
            self.fallback.add_totals(key.to_vec(), &sums.totals());
        });
        (self.tables.take(), std::mem::take(&mut self.fallback))
    }
}

/// Merges the keys of partials and of shards, each key once.
fn sorted_run(parts: Vec<(Tables, FallbackTable)>, drained: DrainedClasses) -> SortedRun {
    let (tables, fallback): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let fallback = fallback.into_par_iter().reduce_with(|mut into, from| {
        into.merge(from);
        into
    });
    SortedRun::new(
        Tables::sorted(tables, drained),
        fallback.unwrap_or_default(),
    )
}

struct Scratch {
    ends: Ends,
    rows: Rows,
    millionths: Rows<i64>,
}

/// Where the records of a block begin.
fn first_record(block: &Block<'_>) -> usize {
    let marked = block.offset() == 0 && block.bytes().starts_with(BYTE_ORDER_MARK);
    if marked { BYTE_ORDER_MARK.len() } else { 0 }
}

impl Fold for Aggregate {
    type Partial = Partial;
    type Output = Summary;

    fn partial(&self) -> Partial {
        self.partials()()
    }

    fn partials(&self) -> impl Fn() -> Partial + Sync {
        let config = TableConfig {
            level: self.level,
            seeds: self.seeds.clone(),
            delimiter: self.delimiter,
            local_keys_max: self.local_keys_max,
            shard_bits: self.shard_bits,
        };
        let shared = Arc::new(SharedTables::new(config, self.budget()));
        move || self.partial_of(&shared)
    }

    fn framing(&self) -> &dyn Framing {
        &self.framing
    }

    fn cut_reach(&self) -> Option<u64> {
        Some(Cut::reach(self.on_error == OnError::Fail))
    }

    fn block(&self, partial: &mut Partial, block: &Block<'_>) -> Result<(), BlockError> {
        let done = self.records(partial, block);
        let (bytes, mut counted) = (block.bytes(), 0);
        if let Some(malformed) = partial.skipped_here.take() {
            counted = malformed.start;
            (partial.lines).add(block.file(), block.offset(), &bytes[..counted]);
            let first = Skipped::new(self.hinted(malformed, block), block);
            let first = Some((first, partial.lines.mark()));
            partial.first_skipped = lower(partial.first_skipped.take(), first);
        }
        if self.on_error == OnError::Skip {
            let offset = block.offset() + counted as u64;
            partial.lines.add(block.file(), offset, &bytes[counted..]);
        }
        done.map_err(|error| match error {
            BlockError::Malformed(malformed) => self.hinted(malformed, block).into(),
            sink => sink,
        })
    }

    fn merge(&self, into: &mut Partial, mut from: Partial) {
        into.rows += from.rows;
        into.empty_lines += from.empty_lines;
        into.skipped += from.skipped;
        into.first_skipped = lower(into.first_skipped.take(), from.first_skipped.take());
        into.lines.append(std::mem::take(&mut from.lines));
        into.spilled_bytes += from.spilled_bytes;
        into.runs.append(&mut from.runs);
        into.merged.append(&mut from.merged);
        into.merged.push(from.take());
        if !Arc::ptr_eq(&into.shared, &from.shared) && from.shared.holds_keys() {
            // The two don't share their tables: keys in the shards of `from` become a run of their own.
            into.runs
                .push(sorted_run(Vec::new(), from.shared.drain_all()));
        }
    }

    fn finish(&self, mut total: Partial) -> Summary {
        let lines = std::mem::take(&mut total.lines).sorted();
        let first_skipped = total.first_skipped.take().map(|(mut first, mark)| {
            first.line = lines.line(first.file, mark);
            first
        });
        let mut parts = std::mem::take(&mut total.merged);
        parts.push(total.take());
        let drained = total.shared.drain_all();
        if total.runs.is_empty() {
            total.runs.push(sorted_run(parts, drained));
        } else {
            // After a spill there is no memory to merge the rest into one table.
            let nothing = || total.shared.drain_none();
            let rest = parts
                .into_par_iter()
                .map(|part| sorted_run(vec![part], nothing()));
            total.runs.par_extend(rest);
            total.runs.push(sorted_run(Vec::new(), drained));
        }
        let mut summary = Summary::new(
            total.runs,
            [
                total.rows,
                total.empty_lines,
                total.skipped,
                total.spilled_bytes,
                total.shared.sharers(),
            ],
            self.budget().directory(),
        );
        summary.first_skipped = first_skipped;
        summary
    }
}

/// The one that stands first in the input.
fn lower(one: Option<(Skipped, Mark)>, other: Option<(Skipped, Mark)>) -> Option<(Skipped, Mark)> {
    let both = one.into_iter().chain(other);
    both.min_by_key(|(skipped, _)| (skipped.file, skipped.bytes.start))
}

/// The budget is checked each time so many bytes of a block are done.
const BUDGET_CHECK_BYTES: usize = 1 << 20;
