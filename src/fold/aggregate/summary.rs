//! The answer: an entry for each key, in byte order of the keys.
//!
//! It is a merge of *runs*, each sorted where it lies, so that ten million keys need no second copy:
//! the tables' regions, in memory or spilled to a file, and the keys that took the careful way.
//!
//! What was spilled is read back by the merge alone, so nobody knows before its end that all of it could
//! be: [`Summary::check`] says so then.

use super::decimal::{Exact, Fixed, Totals};
use super::others::{Others, SortedOthers};
use super::table::stats::Stats;
use super::table::tables::Sorted;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::io::Errno;

use crate::error::{Error, Kind, Result};

/// Sorted keys of a partial.
pub(super) struct Run {
    tables: Vec<Box<dyn Sorted>>,
    others: SortedOthers,
    /// Whether an entry without rows was met. None is written, so its file brought zeros.
    hollow: AtomicBool,
}

impl Run {
    pub(super) fn new(mut tables: Vec<Box<dyn Sorted>>, mut others: Others) -> Self {
        for (key, stats) in tables.iter_mut().flat_map(|table| table.take_full()) {
            others.add_totals(key, &tenths_totals(&stats));
        }
        Run {
            tables,
            others: others.into_sorted(),
            hollow: AtomicBool::new(false),
        }
    }

    /// Moves it to files in `directory`; returns their bytes.
    pub(super) fn spill(&mut self, directory: &Path) -> io::Result<u64> {
        let mut bytes = self.others.spill(directory)?;
        for table in &mut self.tables {
            bytes += table.spill(directory)?;
        }
        Ok(bytes)
    }

    /// Whether some of what was spilled couldn't be read back.
    fn is_lost(&self) -> bool {
        let lost = self.others.is_lost() || self.tables.iter().any(|table| table.is_lost());
        lost || self.hollow.load(Relaxed)
    }

    /// An entry that has rows; the first that has none ends its source.
    fn sound<'a>(&self, entry: Entry<'a>) -> Option<Entry<'a>> {
        if entry.count() == 0 {
            self.hollow.store(true, Relaxed);
            return None;
        }
        Some(entry)
    }

    fn sources(&self) -> impl Iterator<Item = Source<'_>> {
        let tables = self.tables.iter().map(|table| {
            let numbers = |(key, stats)| {
                self.sound(Entry {
                    key,
                    numbers: Numbers::Tenths(stats),
                })
            };
            Box::new(table.iter().map_while(numbers)) as Source<'_>
        });
        let numbers = |(key, totals)| {
            self.sound(Entry {
                key,
                numbers: Numbers::Totals(totals),
            })
        };
        let others = Box::new(self.others.iter().map_while(numbers)) as Source<'_>;
        tables.chain(std::iter::once(others))
    }
}

type Source<'a> = Box<dyn Iterator<Item = Entry<'a>> + 'a>;

/// The answer of an aggregation.
pub struct Summary {
    runs: Vec<Run>,
    /// Records that were aggregated.
    pub rows: u64,
    /// Empty lines, which are no records.
    pub empty_lines: u64,
    /// Malformed records left out.
    pub skipped: u64,
    /// Bytes of keys that were written to temporary files, because they outgrew the memory.
    pub spilled_bytes: u64,
    /// Where those are.
    directory: PathBuf,
}

impl Summary {
    pub(super) fn new(
        runs: Vec<Run>,
        [rows, empty_lines, skipped, spilled_bytes]: [u64; 4],
        directory: &Path,
    ) -> Self {
        Summary {
            runs,
            rows,
            empty_lines,
            skipped,
            spilled_bytes,
            directory: directory.into(),
        }
    }

    /// Whether [`Summary::entries`] has read back what it needed of the temporary files. Where it
    /// hasn't, what it gave is wrong: keys and numbers may be missing. To be asked after the walk.
    ///
    /// # Errors
    /// A file can't be read, or was cut.
    pub fn check(&self) -> Result<()> {
        if !self.runs.iter().any(Run::is_lost) {
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
            [run] if run.others.len() == 0 => run.tables.iter().map(|table| table.len()).sum(),
            _ => self.entries().count(),
        }
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.entries().next().is_none()
    }

    /// Every key with its totals, in byte order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut sources: Vec<_> = self.runs.iter().flat_map(Run::sources).collect();
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
}

/// The next entry of a source.
struct Head<'a> {
    entry: Entry<'a>,
    source: usize,
}

/// Takes the entry of the least key, and puts the one behind it in its source in its place.
fn take_least<'a>(
    heads: &mut BinaryHeap<Head<'a>>,
    sources: &mut [Source<'a>],
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
            (Numbers::Tenths(stats), Numbers::Tenths(from)) => stats.merge_with(&from),
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
    use super::*;

    /// A table of one entry, if any.
    #[derive(Clone)]
    struct Table {
        entry: Option<Stats>,
        lost: bool,
    }

    impl Sorted for Table {
        fn len(&self) -> usize {
            self.iter().count()
        }

        fn iter(&self) -> Box<dyn Iterator<Item = (&[u8], Stats)> + '_> {
            Box::new(self.entry.iter().map(|stats| (&b"key"[..], *stats)))
        }

        fn spill(&mut self, _: &Path) -> io::Result<u64> {
            unreachable!("nobody asks")
        }

        fn is_lost(&self) -> bool {
            self.lost
        }
    }

    #[test]
    fn what_was_lost_is_told() {
        let walked = |table: Table| {
            let whole = Table {
                entry: None,
                lost: false,
            };
            let run = |table| Run::new(vec![Box::new(table)], Others::default());
            let runs = vec![run(whole.clone()), run(table), run(whole)];
            let summary = Summary::new(runs, [0; 4], Path::new("spilled"));
            assert_eq!(summary.entries().count(), 0);
            summary.check().map_err(|error| error.to_string())
        };
        let (entry, lost) = (None, false);
        assert_eq!(walked(Table { entry, lost }), Ok(()));
        // Its file can't be read, or brought zeros.
        let zeros = Some(Stats::default());
        for (entry, lost) in [(None, true), (zeros, false)] {
            let told = walked(Table { entry, lost }).unwrap_err();
            assert!(told.contains("written to spilled can't"), "{told}");
        }
    }
}
