//! Direct tables for numbers in millionths. They hold few keys; rows of more go to the fallback table.

use crate::group::accumulate::decimal::Number;
use crate::group::accumulate::stats::MillionthStats;
use crate::group::scan::rows::{List, Rows};
use crate::group::scan::window::ScanWindow;
use crate::group::table::direct::DirectTable;
use crate::group::table::fallback::FallbackTable;
use crate::group::table::isa::{InlineKey, LongKey, Seeds, WideKey};
use crate::group::table::key::Key;
use crate::level::Level;

type Table<K> = Option<Box<DirectTable<K, MillionthStats>>>;

/// A direct table of each size class, made when its first row comes.
pub(crate) struct SmallTables {
    level: Level,
    seeds: Seeds,
    delimiter: u8,
    inline: Table<InlineKey>,
    long: Table<LongKey>,
    wide: Table<WideKey>,
}

impl SmallTables {
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

    /// Adds the rows of `window` that have a size class, to `fallback` where a table is full; returns how
    /// many they are.
    ///
    /// # Panics
    /// If a row isn't in the window.
    pub(crate) fn fold(
        &mut self,
        window: ScanWindow<'_>,
        rows: &Rows<i64>,
        fallback: &mut FallbackTable,
    ) -> usize {
        let (level, seeds) = (self.level, &self.seeds);
        let Rows {
            inline, long, wide, ..
        } = rows;
        take_rows(&mut self.inline, level, seeds, window, inline, fallback)
            + take_rows(&mut self.long, level, seeds, window, long, fallback)
            + take_rows(&mut self.wide, level, seeds, window, wide, fallback)
    }

    /// Moves all keys to `fallback`.
    pub(crate) fn drain(&mut self, fallback: &mut FallbackTable) {
        drain(self.inline.take(), self.delimiter, fallback);
        drain(self.long.take(), self.delimiter, fallback);
        drain(self.wide.take(), self.delimiter, fallback);
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> u64 {
        bytes(&self.inline) + bytes(&self.long) + bytes(&self.wide)
    }
}

#[inline]
fn take_rows<K: Key>(
    table: &mut Table<K>,
    level: Level,
    seeds: &Seeds,
    window: ScanWindow<'_>,
    list: &List<i64>,
    fallback: &mut FallbackTable,
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
            fallback.add(window.key(key), &Number::Millionths(value));
        }
    }
    rows
}

fn drain<K: Key>(table: Table<K>, delimiter: u8, fallback: &mut FallbackTable) {
    for (key, sums) in table.into_iter().flat_map(|table| table.drain()) {
        let key = &key.bytes()[..key.length(delimiter)];
        fallback.add_totals(key.to_vec(), &sums.totals());
    }
}

fn bytes<K: Key>(table: &Table<K>) -> u64 {
    table.as_ref().map_or(0, |table| table.bytes()) as u64
}
