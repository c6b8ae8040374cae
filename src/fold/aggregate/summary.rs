//! The answer: an entry for each key, in byte order of the keys.
//!
//! The hot loop's slots are sorted where they lie, so that ten million keys need no second copy; the
//! few other keys stand beside them, and the two are merged as they are read.

use super::decimal::{Exact, Fixed, Totals};
use super::table::stats::Stats;
use super::table::tables::SortedTables;
use rayon::slice::ParallelSliceMut;
use std::borrow::Cow;
use std::cmp::Ordering;

/// The answer of an aggregation.
pub struct Summary {
    tables: SortedTables,
    others: Vec<(Vec<u8>, Totals)>,
    /// Keys that are in both.
    shared: usize,
    /// Records that were aggregated.
    pub rows: u64,
    /// Empty lines, which are no records.
    pub empty_lines: u64,
    /// Malformed records left out.
    pub skipped: u64,
}

impl Summary {
    pub(super) fn new(
        tables: SortedTables,
        mut others: Vec<(Vec<u8>, Totals)>,
        [rows, empty_lines, skipped]: [u64; 3],
    ) -> Self {
        others.par_sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let mut summary = Summary {
            tables,
            others,
            shared: 0,
            rows,
            empty_lines,
            skipped,
        };
        if !summary.others.is_empty() {
            let separate = summary.tables.len() + summary.others.len();
            summary.shared = separate - summary.entries().count();
        }
        summary
    }

    /// Keys.
    pub fn len(&self) -> usize {
        self.tables.len() + self.others.len() - self.shared
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every key with its totals, in byte order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut tables = self.tables.iter().peekable();
        let mut others = self.others.iter().peekable();
        std::iter::from_fn(move || {
            let order = match (tables.peek(), others.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((key, _)), Some((other, _))) => (*key).cmp(other),
            };
            let tenths = if order.is_le() { tables.next() } else { None };
            let totals = if order.is_ge() { others.next() } else { None };
            Some(match (tenths, totals) {
                (Some((key, stats)), Some((_, totals))) => {
                    let mut both = tenths_totals(&stats);
                    both.merge(totals);
                    Entry {
                        key,
                        numbers: Numbers::Totals(Cow::Owned(both)),
                    }
                }
                (Some((key, stats)), None) => Entry {
                    key,
                    numbers: Numbers::Tenths(stats),
                },
                (None, Some((key, totals))) => Entry {
                    key,
                    numbers: Numbers::Totals(Cow::Borrowed(totals)),
                },
                (None, None) => unreachable!("one of them was peeked at"),
            })
        })
    }
}

pub(super) fn tenths_totals(stats: &Stats) -> Totals {
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
