//! Direct tables of each size class. They hold few keys; rows of more go where the caller says.

use crate::group::scan::rows::{List, Rows};
use crate::group::scan::window::ScanWindow;
use crate::group::table::accumulator::BucketStats;
use crate::group::table::direct::DirectTable;
use crate::group::table::isa::{InlineKey, LongKey, Seeds, WideKey};
use crate::group::table::key::Key;
use crate::level::Level;

type Table<K, T> = Option<Box<DirectTable<K, T>>>;

/// A direct table of each size class, made when its first row comes.
pub(crate) struct SmallTables<T: BucketStats> {
    level: Level,
    seeds: Seeds,
    delimiter: u8,
    inline: Table<InlineKey, T>,
    long: Table<LongKey, T>,
    wide: Table<WideKey, T>,
}

impl<T: BucketStats> SmallTables<T> {
    pub(crate) fn new(level: Level, seeds: &Seeds, delimiter: u8) -> Self {
        SmallTables {
            level,
            seeds: seeds.clone(),
            delimiter,
            inline: None,
            long: None,
            wide: None,
        }
    }

    /// Adds the rows of `window` that have a size class, and calls `other` for those whose table is full; returns how
    /// many rows these are together.
    ///
    /// # Panics
    /// If a row isn't in the window.
    pub(crate) fn fold(
        &mut self,
        window: ScanWindow<'_>,
        rows: &Rows<T::Value>,
        mut other: impl FnMut(&[u8], T::Value),
    ) -> usize {
        let (level, seeds) = (self.level, &self.seeds);
        let Rows {
            inline, long, wide, ..
        } = rows;
        take_rows(&mut self.inline, level, seeds, window, inline, &mut other)
            + take_rows(&mut self.long, level, seeds, window, long, &mut other)
            + take_rows(&mut self.wide, level, seeds, window, wide, &mut other)
    }

    /// Takes out every key and its statistics.
    pub(crate) fn drain(&mut self, mut to: impl FnMut(&[u8], &T)) {
        drain(self.inline.take(), self.delimiter, &mut to);
        drain(self.long.take(), self.delimiter, &mut to);
        drain(self.wide.take(), self.delimiter, &mut to);
    }

    /// Whether a table is full.
    pub(crate) fn is_full(&self) -> bool {
        is_full(&self.inline) || is_full(&self.long) || is_full(&self.wide)
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> u64 {
        bytes(&self.inline) + bytes(&self.long) + bytes(&self.wide)
    }
}

#[inline]
fn take_rows<K: Key, T: BucketStats>(
    table: &mut Table<K, T>,
    level: Level,
    seeds: &Seeds,
    window: ScanWindow<'_>,
    list: &List<T::Value>,
    other: &mut impl FnMut(&[u8], T::Value),
) -> usize {
    let (keys, values) = (list.keys(), list.values());
    let rows = keys.len();
    if rows > 0 {
        let inside = |key: &u32| (key & 0xffff) + (key >> 16) <= window.bytes().len() as u32;
        assert!(keys.iter().all(inside), "rows of another window");
        let new = || Box::new(DirectTable::new(level, seeds.clone()));
        let table = table.get_or_insert_with(new);
        let taken = table.fold(window, keys, values);
        for (&key, &value) in keys.iter().zip(values).skip(taken) {
            other(window.key(key), value);
        }
    }
    rows
}

fn drain<K: Key, T: BucketStats>(
    table: Table<K, T>,
    delimiter: u8,
    to: &mut impl FnMut(&[u8], &T),
) {
    for (key, stats) in table.into_iter().flat_map(|table| table.drain()) {
        to(&key.bytes()[..key.length(delimiter)], &stats);
    }
}

fn is_full<K: Key, T: BucketStats>(table: &Table<K, T>) -> bool {
    table.as_ref().is_some_and(|table| table.is_full())
}

fn bytes<K: Key, T: BucketStats>(table: &Table<K, T>) -> u64 {
    table.as_ref().map_or(0, |table| table.bytes()) as u64
}
