//! Entries in the order of their keys: those of one size are sorted where they lie.

use rayon::prelude::*;

use crate::table::entries::{EntryRef, EntryTable, Lanes, UNIT, Unit, bytes_of};
use crate::table::pages::Pages;

/// Entries of one size in the order of their keys, without the byte after each.
pub(crate) struct EntryOrder {
    units: Pages<Unit>,
    used: usize,
    lane_units: usize,
    key_units: usize,
}

impl EntryOrder {
    /// The entries of these tables, where the keys of all take as many units and these are few. Otherwise the tables are as
    /// before.
    pub(crate) fn new(tables: &mut Vec<EntryTable>) -> Option<EntryOrder> {
        let (lane_units, key_units) = tables.first()?.entry_size();
        let is_like = |table: &EntryTable| table.entry_size() == (lane_units, key_units);
        let key_units = key_units.filter(|_| tables.iter().all(is_like))?;
        let sort: fn(&mut [Unit]) = match (lane_units, key_units) {
            (1, 1) => sort::<2, 1>,
            (2, 1) => sort::<3, 1>,
            (3, 1) => sort::<4, 1>,
            (4, 1) => sort::<5, 1>,
            (1, 2) => sort::<3, 2>,
            (2, 2) => sort::<4, 2>,
            (3, 2) => sort::<5, 2>,
            _ => return None,
        };
        let mut all = std::mem::take(tables)
            .into_iter()
            .map(EntryTable::into_units);
        let (mut units, mut used) = all.next()?;
        for (from, count) in all {
            if used + count > units.len() {
                units.grow((used + count).next_power_of_two());
            }
            units[used..used + count].copy_from_slice(&from[..count]);
            used += count;
        }
        sort(&mut units[..used]);
        Some(EntryOrder {
            units,
            used,
            lane_units,
            key_units,
        })
    }

    /// The entries.
    pub(crate) fn entries(&self) -> impl IndexedParallelIterator<Item = EntryRef> {
        let size = self.lane_units + self.key_units;
        let entries = (0..self.used / size).into_par_iter();
        entries.map(move |at| EntryRef::new((at * size) as u32, self.key_units))
    }

    /// The lanes of the entry at a place, and perhaps one more.
    pub(crate) fn lanes(&self, place: u32) -> &[i64] {
        self.units[place as usize..][..self.lane_units].as_flattened_lanes()
    }

    /// An entry's key, without the byte after it.
    pub(crate) fn key(&self, entry: EntryRef) -> &[u8] {
        let from = entry.place() as usize + self.lane_units;
        let units = &self.units[from..from + entry.key_units()];
        let last = units[units.len() - 1].bytes();
        &bytes_of(units)[..(units.len() - 1) * UNIT + usize::from(last[UNIT - 1])]
    }
}

/// Sorts entries of `SIZE` units by their keys of `KEY` units.
fn sort<const SIZE: usize, const KEY: usize>(units: &mut [Unit]) {
    let (entries, _) = units.as_chunks_mut::<SIZE>();
    // The byte after a key isn't a part of it. In its place stands, in the last byte of the key's units, how many bytes the
    // key has in the last of these: of two with the same bytes, because keys may end with zeros, the shorter comes first.
    entries.par_iter_mut().for_each(|entry| {
        let last = &mut entry[SIZE - 1];
        let mut bytes = last.bytes();
        let length = last.length() - 1;
        bytes[length] = 0;
        bytes[UNIT - 1] = length as u8;
        *last = Unit::of(bytes);
    });
    let key = |entry: &[Unit; SIZE]| -> [u128; KEY] {
        std::array::from_fn(|at| u128::from_be_bytes(entry[SIZE - KEY + at].bytes()))
    };
    entries.par_sort_unstable_by(|one, other| key(one).cmp(&key(other)));
}
