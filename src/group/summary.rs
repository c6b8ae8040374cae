//! The answer: an entry for each key, in byte order of the keys.
//!
//! It is a merge of *runs*, each sorted where it lies, so that ten million keys need no second copy:
//! the tables' regions, in memory or spilled to a file, and the keys that took the careful way.
//!
//! What was spilled is read back by the merge alone, so nobody knows before its end that all of it could
//! be: [`Summary::check`] says so then.

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
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::io::Errno;

use crate::error::{Error, Kind, Result};

/// SortedKeys keys of a partial.
pub(crate) struct SortedRun {
    tables: Vec<Box<dyn SortedKeys>>,
    fallback: SortedFallback,
    /// Whether an entry without rows was met. None is written, so its file brought zeros.
    saw_empty: AtomicBool,
}

impl SortedRun {
    pub(crate) fn new(mut tables: Vec<Box<dyn SortedKeys>>, mut fallback: FallbackTable) -> Self {
        for (key, stats) in tables.iter_mut().flat_map(|table| table.take_overflow()) {
            fallback.add_totals(key, &tenths_totals(&stats));
        }
        SortedRun {
            tables,
            fallback: fallback.into_sorted(),
            saw_empty: AtomicBool::new(false),
        }
    }

    /// Moves it to files in `directory`; returns their bytes.
    pub(crate) fn spill(&mut self, directory: &Path) -> io::Result<u64> {
        let mut bytes = self.fallback.spill(directory)?;
        for table in &mut self.tables {
            bytes += table.spill(directory)?;
        }
        Ok(bytes)
    }

    /// Whether some of what was spilled couldn't be read back.
    fn read_failed(&self) -> bool {
        let failed =
            self.fallback.read_failed() || self.tables.iter().any(|table| table.read_failed());
        failed || self.saw_empty.load(Relaxed)
    }

    /// An entry that has rows; the first that has none ends its source.
    fn non_empty<'a>(&self, entry: Entry<'a>) -> Option<Entry<'a>> {
        if entry.count() == 0 {
            self.saw_empty.store(true, Relaxed);
            return None;
        }
        Some(entry)
    }

    /// The entries keys two keys, those of each table a source.
    fn sources<'a>(&'a self, keys: KeyRange<'a>) -> impl Iterator<Item = Entries<'a>> {
        let tables = self.tables.iter().map(move |table| {
            let numbers = |(key, stats)| {
                self.non_empty(Entry {
                    key,
                    numbers: Numbers::Tenths(stats),
                })
            };
            let range = keys.range(table.len(), |at| table.key(at));
            Box::new(table.iter(range).map_while(numbers)) as Entries<'_>
        });
        let numbers = |(key, totals)| {
            self.non_empty(Entry {
                key,
                numbers: Numbers::Totals(totals),
            })
        };
        let range = keys.range(self.fallback.len(), |at| self.fallback.key(at));
        let fallback = Box::new(self.fallback.iter(range).map_while(numbers)) as Entries<'_>;
        tables.chain(std::iter::once(fallback))
    }

    /// Keys that cut it into parts of some [`PART`] entries, in order.
    fn cuts(&self) -> Vec<&[u8]> {
        let tables = self.tables.iter().flat_map(|table| {
            let places = (PART..table.len()).step_by(PART);
            places.map(|at| table.key(at))
        });
        // These may be as long as a record.
        let fallback = (PART_FALLBACK..self.fallback.len()).step_by(PART_FALLBACK);
        let fallback = fallback.map(|at| self.fallback.key(at));
        let mut cuts: Vec<&[u8]> = tables.chain(fallback).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }
}

type Entries<'a> = Box<dyn Iterator<Item = Entry<'a>> + 'a>;

/// Entries of a table from one cut to the next, and of the keys that took the careful way.
const PART: usize = 2048;
const PART_FALLBACK: usize = 64;

/// From a key on, up to another, where they are named.
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

    /// Where such keys stand among `len` sorted ones.
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

/// The answer of an aggregation.
pub struct Summary {
    runs: Vec<SortedRun>,
    /// Records that were aggregated.
    pub rows: u64,
    /// Empty lines, which are no records.
    pub empty_lines: u64,
    /// Malformed records left out.
    pub skipped: u64,
    /// Bytes of keys that were written to temporary files, because they outgrew the memory.
    pub spilled_bytes: u64,
    /// Workers that shared their keys with fallback, because they outgrew the memory.
    pub key_sharers: u64,
    /// Where those files are.
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
            spilled_bytes,
            key_sharers,
            directory: directory.into(),
        }
    }

    /// Whether [`Summary::entries`] has read back what it needed of the temporary files. Where it
    /// hasn't, what it gave is wrong: keys and numbers may be missing. To be asked after the walk.
    ///
    /// # Errors
    /// A file can't be read, or was cut.
    pub fn check(&self) -> Result<()> {
        if !self.runs.iter().any(SortedRun::read_failed) {
            return Ok(());
        }
        let cause = format!(
            "keys that were written to {} can't be read back: the disk failed, or a temporary file was \
             cut: name another directory by --spill-dir, or give more --memory",
            self.directory.display(),
        );
        Err(Error::new(Kind::Io, cause).with_errno(&Errno::IO.into()))
    }

    /// Where the temporary files are.
    pub fn spill_directory(&self) -> &Path {
        &self.directory
    }

    /// Keys. If there are several runs, or keys of both kinds, it takes a walk over all.
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

    /// The same in parts, in order, which may be walked at the same time. What was spilled is one: its
    /// runs are read from front to back, each a little ahead.
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

/// Merges sources that are in order, and entries of the same key.
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

/// Takes the entry of the least key, and puts the one behind it in its source in its place.
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
    /// The key, as it stood in the input.
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
        let (entry, failed) = (None, false);
        assert_eq!(walked(Table { entry, failed }), Ok(()));
        // Its file can't be read, or brought zeros.
        let zeros = Some(Stats::default());
        for (entry, failed) in [(None, true), (zeros, false)] {
            let message = walked(Table { entry, failed }).unwrap_err();
            assert!(message.contains("written to spilled can't"), "{message}");
        }
    }
}
