//! Tables of the few keys whose numbers are in millionths; keys that have become too many go to `others`.

use crate::group::decimal::Number;
use crate::group::level::Level;
use crate::group::scan::decode::{List, Rows};
use crate::group::scan::window::Window;
use crate::group::table::direct::DirectTable;
use crate::group::table::fallback::Others;
use crate::group::table::isa::{InlineKey, LongKey, Seeds, WideKey};
use crate::group::table::key::Key;
use crate::group::table::stats::Millionths;

type Table<K> = Option<Box<DirectTable<K, Millionths>>>;

/// Few keys and what their rows come to; a table is made when its first row comes.
pub(crate) struct Few {
    level: Level,
    seeds: Seeds,
    delimiter: u8,
    inline: Table<InlineKey>,
    long: Table<LongKey>,
    wide: Table<WideKey>,
}

impl Few {
    pub(crate) fn new(level: Level, seeds: &Seeds, delimiter: u8) -> Self {
        Few {
            level,
            seeds: seeds.clone(),
            delimiter,
            inline: None,
            long: None,
            wide: None,
        }
    }

    /// Takes those of `rows` that have a class, in `window`, those of keys that have become too many into `others`;
    /// returns how many they are.
    ///
    /// # Panics
    /// If one isn't in the window.
    pub(crate) fn fold(
        &mut self,
        window: Window<'_>,
        rows: &Rows<i64>,
        others: &mut Others,
    ) -> usize {
        let (level, seeds) = (self.level, &self.seeds);
        let Rows {
            inline, long, wide, ..
        } = rows;
        take_rows(&mut self.inline, level, seeds, window, inline, others)
            + take_rows(&mut self.long, level, seeds, window, long, others)
            + take_rows(&mut self.wide, level, seeds, window, wide, others)
    }

    /// Moves all to `others`.
    pub(crate) fn drain(&mut self, others: &mut Others) {
        drain(self.inline.take(), self.delimiter, others);
        drain(self.long.take(), self.delimiter, others);
        drain(self.wide.take(), self.delimiter, others);
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> u64 {
        bytes(&self.inline) + bytes(&self.long) + bytes(&self.wide)
    }
}

#[inline]
fn take_rows<K: Key>(
    table: &mut Table<K>,
    level: Level,
    seeds: &Seeds,
    window: Window<'_>,
    list: &List<i64>,
    others: &mut Others,
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
            others.add(window.key(key), &Number::Millionths(value));
        }
    }
    rows
}

fn drain<K: Key>(table: Table<K>, delimiter: u8, others: &mut Others) {
    for (key, sums) in table.into_iter().flat_map(|table| table.drain()) {
        let key = &key.bytes()[..key.length(delimiter)];
        others.add_totals(key.to_vec(), &sums.totals());
    }
}

fn bytes<K: Key>(table: &Table<K>) -> u64 {
    table.as_ref().map_or(0, |table| table.bytes()) as u64
}
