//! The answer: an entry for each key, in byte order of the keys.
//!
//! It is a merge of sorted runs: the tables, sorted in place in memory or in spilled files, and the fallback
//! tables. So millions of keys need no second copy.
//!
//! Spilled keys are read back by the merge alone, so that a failed read is only known at its end:
//! [`Summary::check`] reports it.

use crate::group::accumulate::decimal::{Exact, Fixed, Totals};
use crate::group::accumulate::stats::Stats;
use crate::group::table::fallback::{FallbackTable, SortedFallback};
use crate::group::table::sorted::SortedKeys;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::engine::sink::Malformed;
use crate::error::refusal::Refusal;
use crate::error::{Cause, Error, Result};
use crate::record::block::Block;

/// Sorted keys of one or several partials: each key once.
pub(crate) struct SortedRun {
    tables: Vec<Box<dyn SortedKeys>>,
    fallback: SortedFallback,
}

impl SortedRun {
    pub(crate) fn new(mut tables: Vec<Box<dyn SortedKeys>>, mut fallback: FallbackTable) -> Self {
        for (key, stats) in tables.iter_mut().flat_map(|table| table.take_overflow()) {
            fallback.add_totals(key, &tenths_totals(&stats));
        }
        SortedRun {
            tables,
            fallback: fallback.into_sorted(),
        }
    }

    /// Moves the keys to files in `directory`; returns their bytes.
    pub(crate) fn spill(&mut self, directory: &Path) -> io::Result<u64> {
        let mut bytes = self.fallback.spill(directory)?;
        for table in &mut self.tables {
            bytes += table.spill(directory)?;
        }
        Ok(bytes)
    }

    /// Whether a spilled key couldn't be read back.
    fn read_failed(&self) -> bool {
        self.fallback.read_failed() || self.tables.iter().any(|table| table.read_failed())
    }

    /// The entries of these keys, one iterator for each table.
    fn sources<'a>(&'a self, keys: KeyRange<'a>) -> impl Iterator<Item = Entries<'a>> {
        // A page that is lost after it was checked is all zeros.
        let has_rows = |entry: &Entry<'_>| entry.count() > 0;
        let tables = self.tables.iter().map(move |table| {
            let numbers = |(key, stats)| Entry {
                key,
                numbers: Numbers::Tenths(stats),
            };
            let range = keys.range(table.len(), |at| table.key(at));
            Box::new(table.iter(range).map(numbers).filter(has_rows)) as Entries<'_>
        });
        let numbers = |(key, totals)| Entry {
            key,
            numbers: Numbers::Totals(totals),
        };
        let range = keys.range(self.fallback.len(), |at| self.fallback.key(at));
        let fallback = self.fallback.iter(range).map(numbers).filter(has_rows);
        tables.chain(std::iter::once(Box::new(fallback) as Entries<'_>))
    }

    /// Keys that cut the run into parts of about [`PART`] entries, in order.
    fn cuts(&self) -> Vec<&[u8]> {
        let tables = self.tables.iter().flat_map(|table| {
            let places = (PART..table.len()).step_by(PART);
            places.map(|at| table.key(at))
        });
        // Fewer entries, because these keys may be as long as a record.
        let fallback = (PART_FALLBACK..self.fallback.len()).step_by(PART_FALLBACK);
        let fallback = fallback.map(|at| self.fallback.key(at));
        let mut cuts: Vec<&[u8]> = tables.chain(fallback).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }
}

type Entries<'a> = Box<dyn Iterator<Item = Entry<'a>> + 'a>;

/// Entries from one cut to the next, in a table and in a fallback table.
const PART: usize = 2048;
const PART_FALLBACK: usize = 64;

/// The keys from `from` on, below `to`, where these are given.
#[derive(Clone, Copy)]
struct KeyRange<'a> {
    from: Option<&'a [u8]>,
    to: Option<&'a [u8]>,
}

impl KeyRange<'_> {
    const ALL: KeyRange<'static> = KeyRange {
        from: None,
        to: None,
    };

    /// The positions of these keys among `len` sorted ones.
    fn range<'k>(&self, len: usize, key: impl Fn(usize) -> &'k [u8]) -> Range<usize> {
        let first_from = |bound: &[u8]| {
            let (mut low, mut high) = (0, len);
            while low < high {
                let middle = low.midpoint(high);
                if key(middle) < bound {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            low
        };
        self.from.map_or(0, first_from)..self.to.map_or(len, first_from)
    }
}

/// The answer's entries from one key to another.
pub(crate) struct SummaryPart<'a> {
    summary: &'a Summary,
    keys: KeyRange<'a>,
}

impl<'a> SummaryPart<'a> {
    /// Every key of the part with its totals, in byte order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'a>> {
        merge(self.summary.sources(self.keys))
    }
}

/// A malformed record that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The number of its file among the input's sources.
    pub file: u32,
    /// Its bytes in the file, the line's end not counted.
    pub bytes: Range<u64>,
    /// The number of the line that it begins in, from 1, where it is known.
    pub line: Option<u64>,
    /// What is wrong with it.
    pub cause: Cause,
}

impl Skipped {
    pub(crate) fn new(malformed: Malformed, block: &Block<'_>) -> Self {
        let at = |position: usize| block.offset() + position as u64;
        Skipped {
            file: block.file(),
            bytes: at(malformed.start)..at(malformed.end),
            line: None,
            cause: malformed.cause,
        }
    }
}

/// The answer of an aggregation.
pub struct Summary {
    runs: Vec<SortedRun>,
    /// Records that were aggregated.
    pub rows: u64,
    /// Empty lines, which are no records.
    pub empty_lines: u64,
    /// Malformed records left out.
    pub skipped: u64,
    /// The first of those.
    pub first_skipped: Option<Skipped>,
    /// Bytes of keys that were spilled to temporary files, because they exceeded the memory budget.
    pub spilled_bytes: u64,
    /// Workers that shared their tables, because the keys exceeded the memory budget.
    pub key_sharers: u64,
    /// The directory of the temporary files.
    directory: PathBuf,
}

impl Summary {
    pub(crate) fn new(
        runs: Vec<SortedRun>,
        [rows, empty_lines, skipped, spilled_bytes, key_sharers]: [u64; 5],
        directory: &Path,
    ) -> Self {
        Summary {
            runs,
            rows,
            empty_lines,
            skipped,
            first_skipped: None,
            spilled_bytes,
            key_sharers,
            directory: directory.into(),
        }
    }

    /// Whether [`Summary::entries`] could read back all spilled keys. If not, its entries are wrong: keys and
    /// numbers may be missing. To be called when all entries have been read.
    ///
    /// # Errors
    /// A file can't be read, or was cut.
    pub fn check(&self) -> Result<()> {
        if !self.runs.iter().any(SortedRun::read_failed) {
            return Ok(());
        }
        let directory = self.directory.clone();
        Err(Error::from(Refusal::SpillLost { directory }).with_errno(&Errno::IO.into()))
    }

    /// The directory of the temporary files.
    pub fn spill_directory(&self) -> &Path {
        &self.directory
    }

    /// The number of keys. With several runs, or with keys in a fallback table, it reads all entries.
    pub fn len(&self) -> usize {
        match &self.runs[..] {
            // No key is in two tables.
            [run] if run.fallback.len() == 0 => run.tables.iter().map(|table| table.len()).sum(),
            _ => self.entries().count(),
        }
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.entries().next().is_none()
    }

    /// Every key with its totals, in byte order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        merge(self.sources(KeyRange::ALL))
    }

    /// The same in parts, in order, which may be read in parallel. Spilled keys are one part, because their
    /// runs are read front to back with read-ahead.
    pub(crate) fn parts(&self) -> Vec<SummaryPart<'_>> {
        let cuts = match &self.runs[..] {
            [run] if self.spilled_bytes == 0 => run.cuts(),
            _ => Vec::new(),
        };
        let from = std::iter::once(None).chain(cuts.iter().copied().map(Some));
        let to = cuts.iter().copied().map(Some).chain([None]);
        from.zip(to)
            .map(|(from, to)| SummaryPart {
                summary: self,
                keys: KeyRange { from, to },
            })
            .collect()
    }

    fn sources<'a>(&'a self, keys: KeyRange<'a>) -> Vec<Entries<'a>> {
        self.runs.iter().flat_map(|run| run.sources(keys)).collect()
    }
}

/// Merges sorted sources; entries of the same key become one.
fn merge<'a>(mut sources: Vec<Entries<'a>>) -> impl Iterator<Item = Entry<'a>> {
    let heads = sources.iter_mut().enumerate();
    let mut heads: BinaryHeap<Head<'_>> = heads
        .filter_map(|(source, entries)| entries.next().map(|entry| Head { entry, source }))
        .collect();
    std::iter::from_fn(move || {
        let mut entry = take_least(&mut heads, &mut sources)?;
        while heads.peek().is_some_and(|head| head.entry.key == entry.key) {
            let same = take_least(&mut heads, &mut sources)?;
            entry.numbers.merge(same.numbers);
        }
        Some(entry)
    })
}

/// The next entry of a source.
struct Head<'a> {
    entry: Entry<'a>,
    source: usize,
}

/// Takes the entry of the least key; the next one of its source takes its place.
fn take_least<'a>(
    heads: &mut BinaryHeap<Head<'a>>,
    sources: &mut [Entries<'a>],
) -> Option<Entry<'a>> {
    let mut least = heads.peek_mut()?;
    match sources[least.source].next() {
        Some(next) => Some(std::mem::replace(&mut least.entry, next)),
        None => Some(PeekMut::pop(least).entry),
    }
}

/// The greatest head has the least key.
impl Ord for Head<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.entry.key.cmp(self.entry.key)
    }
}

impl PartialOrd for Head<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head<'_> {}

fn tenths_totals(stats: &Stats) -> Totals {
    Totals::of_tenths(stats.count(), stats.sum(), stats.min(), stats.max())
}

/// A key and its totals.
pub struct Entry<'a> {
    key: &'a [u8],
    numbers: Numbers<'a>,
}

enum Numbers<'a> {
    Tenths(Stats),
    Totals(Cow<'a, Totals>),
}

impl Numbers<'_> {
    fn merge(&mut self, from: Self) {
        match (&mut *self, from) {
            (Numbers::Tenths(stats), Numbers::Tenths(from)) => stats.merge(&from),
            (Numbers::Totals(totals), from) => totals.to_mut().merge(&from.into_totals()),
            (Numbers::Tenths(stats), from) => {
                let mut totals = tenths_totals(stats);
                totals.merge(&from.into_totals());
                *self = Numbers::Totals(Cow::Owned(totals));
            }
        }
    }

    fn into_totals(self) -> Totals {
        match self {
            Numbers::Tenths(stats) => tenths_totals(&stats),
            Numbers::Totals(totals) => totals.into_owned(),
        }
    }
}
impl<'a> Entry<'a> {
    /// The key, byte for byte as in the input.
    pub fn key(&self) -> &'a [u8] {
        self.key
    }

    /// Records under the key; never 0.
    pub fn count(&self) -> u64 {
        match &self.numbers {
            Numbers::Tenths(stats) => stats.count(),
            Numbers::Totals(totals) => totals.count(),
        }
    }

    /// The exact sum.
    pub fn sum(&self) -> Exact {
        match &self.numbers {
            Numbers::Tenths(stats) => Exact::new(stats.sum().into(), 1),
            Numbers::Totals(totals) => totals.sum(),
        }
    }

    /// The exact least value.
    pub fn min(&self) -> Exact {
        match &self.numbers {
            Numbers::Tenths(stats) => Exact::new(stats.min().into(), 1),
            Numbers::Totals(totals) => totals.min(),
        }
    }

    /// The exact greatest value.
    pub fn max(&self) -> Exact {
        match &self.numbers {
            Numbers::Tenths(stats) => Exact::new(stats.max().into(), 1),
            Numbers::Totals(totals) => totals.max(),
        }
    }

    /// The mean rounded to `decimals`, ties toward +infinity.
    pub fn mean(&self, decimals: u32) -> Fixed {
        self.sum().over(self.count(), decimals)
    }
}

#[cfg(test)]
mod tests {
    use crate::group::summary::*;

    /// A table of one entry, if any.
    #[derive(Clone)]
    struct Table {
        entry: Option<Stats>,
        failed: bool,
    }

    impl SortedKeys for Table {
        fn len(&self) -> usize {
            self.iter(0..1).count()
        }

        fn key(&self, _: usize) -> &[u8] {
            b"key"
        }

        fn iter(&self, _: Range<usize>) -> Box<dyn Iterator<Item = (&[u8], Stats)> + '_> {
            Box::new(self.entry.iter().map(|stats| (&b"key"[..], *stats)))
        }

        fn spill(&mut self, _: &Path) -> io::Result<u64> {
            unreachable!("nobody asks")
        }

        fn read_failed(&self) -> bool {
            self.failed
        }
    }

    #[test]
    fn failed_reads_are_reported() {
        let walked = |table: Table| {
            let whole = Table {
                entry: None,
                failed: false,
            };
            let run = |table| SortedRun::new(vec![Box::new(table)], FallbackTable::default());
            let runs = vec![run(whole.clone()), run(table), run(whole)];
            let summary = Summary::new(runs, [0; 5], Path::new("spilled"));
            assert_eq!(summary.entries().count(), 0);
            summary.check().map_err(|error| error.to_string())
        };
        let entry = None;
        let failed = false;
        assert_eq!(walked(Table { entry, failed }), Ok(()));
        // A page that became zeros gives no entry.
        let entry = Some(Stats::default());
        let failed = true;
        let message = walked(Table { entry, failed }).unwrap_err();
        assert!(message.contains("written to spilled can't"), "{message}");
    }
}
