//! The tables of a partial together: which keys go where, and when the short ones move.

use super::dense::{BATCH, DenseTable, ShortKey, SortedEntries};
use super::inline::{InlineTable, SortedSlots};
use super::isa::{InlineKey, Seeds, WideKey};
use super::stats::Stats;
use crate::fold::aggregate::decode::Rows;
use crate::fold::aggregate::level::Level;
use crate::fold::aggregate::window::Window;

/// Every table of a partial.
pub(crate) struct Tables {
    level: Level,
    seeds: Seeds,
    delimiter: u8,
    short: Short,
    wide: DenseTable<WideKey>,
}

/// The tables of keys that fit 32 bytes with their delimiter.
enum Short {
    Few(Box<InlineTable>),
    Many(Box<Many>),
}

struct Many {
    delimiter: u8,
    short: DenseTable<ShortKey>,
    middle: DenseTable<InlineKey>,
    lists: Lists,
}

/// Keys and values, twice: short and middle rows.
type Lists = [[Vec<u32>; 2]; 2];

/// Rows split at once.
const SPLIT: usize = 8 * BATCH;

impl Tables {
    pub(crate) fn new(level: Level, seeds: Seeds, delimiter: u8) -> Self {
        let short = Short::Few(Box::new(InlineTable::new(level, seeds.clone())));
        let wide = DenseTable::new(level, seeds.clone());
        Tables {
            level,
            seeds,
            delimiter,
            short,
            wide,
        }
    }

    /// Takes the rows of `window` that are not listed as its rest; returns how many.
    pub(crate) fn fold(&mut self, window: Window<'_>, rows: &Rows) -> usize {
        self.wide.fold(window, rows.wide.keys(), rows.wide.values());
        let (mut keys, mut values) = (rows.inline.keys(), rows.inline.values());
        if let Short::Few(table) = &mut self.short {
            let taken = table.fold(window, keys, values);
            (keys, values) = (&keys[taken..], &values[taken..]);
            if !keys.is_empty() {
                self.make_many();
            }
        }
        if let Short::Many(many) = &mut self.short {
            many.fold(window, keys, values);
        }
        rows.inline.keys().len() + rows.wide.keys().len()
    }

    /// Moves the short keys to the tables for many.
    fn make_many(&mut self) -> &mut Many {
        if let Short::Few(_) = self.short {
            let list = || vec![0; SPLIT];
            let many = Many {
                delimiter: self.delimiter,
                short: DenseTable::new(self.level, self.seeds.clone()),
                middle: DenseTable::new(self.level, self.seeds.clone()),
                lists: [[list(), list()], [list(), list()]],
            };
            let few = std::mem::replace(&mut self.short, Short::Many(Box::new(many)));
            if let (Short::Few(few), Short::Many(many)) = (few, &mut self.short) {
                few.drain()
                    .for_each(|(key, hash, stats)| many.add(key, hash, &stats));
            }
        }
        match &mut self.short {
            Short::Many(many) => many,
            Short::Few(_) => unreachable!("made many above"),
        }
    }

    /// Takes what `from` holds; both must have the same seeds.
    pub(crate) fn merge(&mut self, mut from: Tables) {
        self.wide.merge(from.wide);
        if let (Short::Few(_), Short::Many(_)) = (&self.short, &from.short) {
            std::mem::swap(&mut self.short, &mut from.short);
        }
        match from.short {
            Short::Few(few) => {
                let mut rest = few.drain();
                if let Short::Few(into) = &mut self.short {
                    while !into.is_full()
                        && let Some((key, _, stats)) = rest.next()
                    {
                        into.add(&key, &stats);
                    }
                }
                for (key, hash, stats) in rest {
                    self.make_many().add(key, hash, &stats);
                }
            }
            Short::Many(from) => {
                let into = self.make_many();
                into.short.merge(from.short);
                into.middle.merge(from.middle);
            }
        }
    }

    /// The answer of each table, sorted.
    pub(crate) fn into_sorted(self, delimiter: u8) -> Sorted {
        let mut sorted = Sorted {
            few: None,
            short: None,
            middle: None,
            wide: None,
        };
        match self.short {
            Short::Few(few) => sorted.few = Some(few.into_sorted(delimiter)),
            Short::Many(many) => {
                sorted.short = Some(many.short.into_sorted(delimiter));
                sorted.middle = Some(many.middle.into_sorted(delimiter));
            }
        }
        sorted.wide = Some(self.wide.into_sorted(delimiter));
        sorted
    }
}

impl Many {
    fn fold(&mut self, window: Window<'_>, keys: &[u32], values: &[u32]) {
        let [[short_keys, short_values], [middle_keys, middle_values]] = &mut self.lists;
        for (keys, values) in keys.chunks(SPLIT).zip(values.chunks(SPLIT)) {
            // Each row is written to both lists, and kept in one: no branch on its length.
            let (mut shorts, mut middles) = (0, 0);
            for (&key, &value) in keys.iter().zip(values) {
                (short_keys[shorts], short_values[shorts]) = (key, value);
                (middle_keys[middles], middle_values[middles]) = (key, value);
                let is_short = (key >> 16) as usize <= size_of::<ShortKey>();
                shorts += usize::from(is_short);
                middles += usize::from(!is_short);
            }
            self.short
                .fold(window, &short_keys[..shorts], &short_values[..shorts]);
            self.middle
                .fold(window, &middle_keys[..middles], &middle_values[..middles]);
        }
    }

    fn add(&mut self, key: InlineKey, hash: u32, stats: &Stats) {
        match key.0.first_chunk() {
            Some(short) if short.contains(&self.delimiter) => {
                self.short.add(&ShortKey(*short), hash, stats);
            }
            _ => self.middle.add(&key, hash, stats),
        }
    }
}

/// Sorted keys and statistics of every table.
pub(crate) struct Sorted {
    few: Option<SortedSlots>,
    short: Option<SortedEntries<ShortKey>>,
    middle: Option<SortedEntries<InlineKey>>,
    wide: Option<SortedEntries<WideKey>>,
}

impl Sorted {
    /// Keys in all.
    pub(crate) fn len(&self) -> usize {
        self.few.as_ref().map_or(0, SortedSlots::len)
            + self.short.as_ref().map_or(0, SortedEntries::len)
            + self.middle.as_ref().map_or(0, SortedEntries::len)
            + self.wide.as_ref().map_or(0, SortedEntries::len)
    }

    /// Takes out what did not fit its entry; such keys have an entry as well.
    pub(crate) fn take_full(&mut self) -> Vec<(Vec<u8>, Stats)> {
        let mut full = Vec::new();
        full.extend(
            self.short
                .iter_mut()
                .flat_map(|sorted| std::mem::take(&mut sorted.full)),
        );
        full.extend(
            self.middle
                .iter_mut()
                .flat_map(|sorted| std::mem::take(&mut sorted.full)),
        );
        full.extend(
            self.wide
                .iter_mut()
                .flat_map(|sorted| std::mem::take(&mut sorted.full)),
        );
        full
    }

    /// Each key and its statistics, in byte order of the keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Stats)> {
        type Source<'a> = Box<dyn Iterator<Item = (&'a [u8], Stats)> + 'a>;
        let mut sources: Vec<Source<'_>> = Vec::new();
        sources.extend(
            self.few
                .iter()
                .map(|sorted| Box::new(sorted.iter()) as Source<'_>),
        );
        sources.extend(
            self.short
                .iter()
                .map(|sorted| Box::new(sorted.iter()) as Source<'_>),
        );
        sources.extend(
            self.middle
                .iter()
                .map(|sorted| Box::new(sorted.iter()) as Source<'_>),
        );
        sources.extend(
            self.wide
                .iter()
                .map(|sorted| Box::new(sorted.iter()) as Source<'_>),
        );
        let mut heads: Vec<_> = sources.iter_mut().map(Iterator::next).collect();
        std::iter::from_fn(move || {
            // No key is in two tables.
            let with_heads = heads
                .iter()
                .enumerate()
                .filter_map(|(at, head)| Some((head.as_ref()?.0, at)));
            let (_, least) = with_heads.min()?;
            std::mem::replace(&mut heads[least], sources[least].next())
        })
    }
}
