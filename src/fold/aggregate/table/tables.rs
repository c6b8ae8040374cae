//! The tables of a partial together: which keys go where, and when they move.
//!
//! | keys, with their delimiter | while few | by the thousand |
//! |---|---|---|
//! | up to 32 bytes | direct | dense, those up to 16 bytes apart |
//! | up to 96 bytes | direct | dense, those up to 64 bytes apart |
//! | up to 128 bytes | direct | dense |

use std::io;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::dense::{BATCH, DenseTable};
use super::direct::DirectTable;
use super::isa::{InlineKey, LongKey, MiddleKey, Seeds, WideKey};
use super::key::{Key, ShortKey};
use super::merge;
use super::stats::Stats;
use crate::fold::aggregate::decode::{List, Rows};
use crate::fold::aggregate::level::Level;
use crate::fold::aggregate::window::Window;

/// Every table of a partial.
pub(crate) struct Tables {
    inline: Class<InlineKey, Apart<ShortKey, InlineKey>>,
    long: Class<LongKey, Apart<MiddleKey, LongKey>>,
    wide: Class<WideKey, DenseTable<WideKey>>,
}

impl Tables {
    pub(crate) fn new(level: Level, seeds: Seeds, delimiter: u8) -> Self {
        let job = Job {
            level,
            seeds,
            delimiter,
        };
        Tables {
            inline: Class::new(&job),
            long: Class::new(&job),
            wide: Class::new(&job),
        }
    }

    /// Takes the rows of `window` that are not listed as its rest; returns how many.
    pub(crate) fn fold(&mut self, window: Window<'_>, rows: &Rows) -> usize {
        self.inline.fold(window, &rows.inline);
        self.long.fold(window, &rows.long);
        self.wide.fold(window, &rows.wide);
        rows.lists().map(|list| list.keys().len()).sum()
    }

    /// What all of them hold together, each key once; they must have the same seeds.
    pub(crate) fn sorted(all: Vec<Tables>) -> Vec<Box<dyn Sorted>> {
        let (mut inline, mut long, mut wide) = (Vec::new(), Vec::new(), Vec::new());
        for tables in all {
            inline.push(tables.inline);
            long.push(tables.long);
            wide.push(tables.wide);
        }
        let mut sorted = Vec::new();
        Class::sorted(inline, &mut sorted);
        Class::sorted(long, &mut sorted);
        Class::sorted(wide, &mut sorted);
        sorted
    }

    /// What they hold; they stay as they were new.
    pub(crate) fn take(&mut self) -> Tables {
        let fresh = Tables {
            inline: Class::new(&self.inline.job),
            long: Class::new(&self.long.job),
            wide: Class::new(&self.wide.job),
        };
        std::mem::replace(self, fresh)
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.inline.bytes() + self.long.bytes() + self.wide.bytes();
        bytes as u64
    }
}

/// What the tables of a job have in common.
#[derive(Clone)]
pub(crate) struct Job {
    level: Level,
    seeds: Seeds,
    delimiter: u8,
}

/// The keys of a size class.
struct Class<K: Key, M> {
    job: Job,
    keys: Keys<K, M>,
}

enum Keys<K: Key, M> {
    None,
    Few(Box<DirectTable<K>>),
    Many(Box<M>),
}

/// Where the keys of a class go once they are many.
trait Many<K>: Send + Sized {
    fn new(job: &Job) -> Self;
    fn fold(&mut self, window: Window<'_>, keys: &[u32], values: &[u32]);
    fn add(&mut self, key: &K, stats: &Stats);
    fn bytes(&self) -> usize;
    /// What all of them hold together.
    fn sorted(all: Vec<Self>, delimiter: u8, to: &mut Vec<Box<dyn Sorted>>);
}

impl<K: Key, M: Many<K>> Class<K, M> {
    fn new(job: &Job) -> Self {
        Class {
            job: job.clone(),
            keys: Keys::None,
        }
    }

    #[inline]
    fn fold(&mut self, window: Window<'_>, list: &List) {
        let (mut keys, mut values) = (list.keys(), list.values());
        if keys.is_empty() {
            return;
        }
        if let Keys::None = self.keys {
            let table = DirectTable::new(self.job.level, self.job.seeds.clone());
            self.keys = Keys::Few(Box::new(table));
        }
        if let Keys::Few(table) = &mut self.keys {
            let taken = table.fold(window, keys, values);
            (keys, values) = (&keys[taken..], &values[taken..]);
        }
        if !keys.is_empty() {
            self.many().fold(window, keys, values);
        }
    }

    /// The tables for many keys; the few move there.
    fn many(&mut self) -> &mut M {
        if !matches!(self.keys, Keys::Many(_)) {
            let many = match std::mem::replace(&mut self.keys, Keys::None) {
                Keys::Few(few) => Self::moved(&self.job, *few),
                _ => M::new(&self.job),
            };
            self.keys = Keys::Many(Box::new(many));
        }
        match &mut self.keys {
            Keys::Many(many) => many,
            _ => unreachable!("made many above"),
        }
    }

    fn bytes(&self) -> usize {
        match &self.keys {
            Keys::None => 0,
            Keys::Few(few) => few.bytes(),
            Keys::Many(many) => many.bytes(),
        }
    }

    /// The keys of a direct table in one for many.
    fn moved(job: &Job, few: DirectTable<K>) -> M {
        let mut many = M::new(job);
        for (key, stats) in few.drain() {
            many.add(&key, &stats);
        }
        many
    }

    /// What all of them hold together: in a direct table where one has room for all, even if each had
    /// keys of its own.
    fn sorted(all: Vec<Self>, to: &mut Vec<Box<dyn Sorted>>) {
        let Some(job) = all.first().map(|class| class.job.clone()) else {
            return;
        };
        let (mut few, mut many) = (Vec::new(), Vec::new());
        for class in all {
            match class.keys {
                Keys::None => {}
                Keys::Few(table) => few.push(*table),
                Keys::Many(tables) => many.push(*tables),
            }
        }
        let keys = few.iter().map(DirectTable::len).sum();
        if many.is_empty() && DirectTable::<K>::holds(keys) {
            let merged = few.into_par_iter().reduce_with(|mut into, from| {
                for (key, stats) in from.drain() {
                    into.add(&key, &stats);
                }
                into
            });
            if let Some(table) = merged {
                to.push(Box::new(table.into_sorted(job.delimiter)));
            }
            return;
        }
        many.par_extend(few.into_par_iter().map(|few| Self::moved(&job, few)));
        M::sorted(many, job.delimiter, to);
    }
}

impl<K: Key> Many<K> for DenseTable<K> {
    fn new(job: &Job) -> Self {
        DenseTable::new(job.level, job.seeds.clone())
    }

    fn fold(&mut self, window: Window<'_>, keys: &[u32], values: &[u32]) {
        DenseTable::fold(self, window, keys, values);
    }

    fn add(&mut self, key: &K, stats: &Stats) {
        DenseTable::add(self, key, self.hash(key), stats);
    }

    fn bytes(&self) -> usize {
        DenseTable::bytes(self)
    }

    fn sorted(all: Vec<Self>, delimiter: u8, to: &mut Vec<Box<dyn Sorted>>) {
        to.push(Box::new(merge::sorted(all, delimiter)));
    }
}

/// Keys by the thousand, of which those that fit `S` take less memory.
struct Apart<S: Key, L: Key> {
    delimiter: u8,
    short: DenseTable<S>,
    long: DenseTable<L>,
    lists: Lists,
}

/// Keys and values, twice: short and long rows.
type Lists = [[Vec<u32>; 2]; 2];

/// Rows told apart at once.
const APART: usize = 8 * BATCH;

impl<S: Key, L: Key> Many<L> for Apart<S, L> {
    fn new(job: &Job) -> Self {
        let list = || vec![0; APART];
        Apart {
            delimiter: job.delimiter,
            short: Many::new(job),
            long: Many::new(job),
            lists: [[list(), list()], [list(), list()]],
        }
    }

    fn fold(&mut self, window: Window<'_>, keys: &[u32], values: &[u32]) {
        let [[short_keys, short_values], [long_keys, long_values]] = &mut self.lists;
        for (keys, values) in keys.chunks(APART).zip(values.chunks(APART)) {
            // Each row is written to both lists, and kept in one: no branch on its length.
            let (mut shorts, mut longs) = (0, 0);
            for (&key, &value) in keys.iter().zip(values) {
                (short_keys[shorts], short_values[shorts]) = (key, value);
                (long_keys[longs], long_values[longs]) = (key, value);
                let is_short = (key >> 16) as usize <= size_of::<S>();
                shorts += usize::from(is_short);
                longs += usize::from(!is_short);
            }
            self.short
                .fold(window, &short_keys[..shorts], &short_values[..shorts]);
            self.long
                .fold(window, &long_keys[..longs], &long_values[..longs]);
        }
    }

    fn add(&mut self, key: &L, stats: &Stats) {
        let bytes = &key.bytes()[..size_of::<S>()];
        if bytes.contains(&self.delimiter) {
            let mut short = S::EMPTY;
            short.bytes_mut().copy_from_slice(bytes);
            Many::add(&mut self.short, &short, stats);
        } else {
            Many::add(&mut self.long, key, stats);
        }
    }

    fn bytes(&self) -> usize {
        self.short.bytes() + self.long.bytes()
    }

    fn sorted(all: Vec<Self>, delimiter: u8, to: &mut Vec<Box<dyn Sorted>>) {
        let apart = all.into_iter().map(|tables| (tables.short, tables.long));
        let (short, long) = apart.unzip();
        to.push(Box::new(merge::sorted::<S>(short, delimiter)));
        to.push(Box::new(merge::sorted::<L>(long, delimiter)));
    }
}

/// The keys of a table in byte order, with their statistics.
pub(crate) trait Sorted: Send + Sync {
    fn len(&self) -> usize;
    fn key(&self, at: usize) -> &[u8];
    fn iter(&self, range: Range<usize>) -> Box<dyn Iterator<Item = (&[u8], Stats)> + '_>;

    /// Takes out what did not fit its entry; such keys have an entry as well.
    fn take_full(&mut self) -> Vec<(Vec<u8>, Stats)> {
        Vec::new()
    }

    /// Moves the keys to a file in `directory`; returns its bytes.
    ///
    /// # Errors
    /// See [`Region::spill`](crate::fold::aggregate::region::Region::spill).
    fn spill(&mut self, directory: &Path) -> io::Result<u64>;

    /// See [`Region::is_lost`](crate::fold::aggregate::region::Region::is_lost).
    fn is_lost(&self) -> bool;
}
