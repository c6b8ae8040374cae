//! The groups of all workers, each key once: in the largest of their tables, and those that it lacks in a table for each
//! range of hashes; or all of them in such tables.

use rayon::iter::Either;
use rayon::prelude::*;

use crate::table::entries::{EntryTable, Key, Refused};
use crate::table::entry_order::{Add, EntryOrder, Orders, Place};
use crate::table::hash_range::HashRange;
use crate::table::key::KeyForm;

/// Tables have so many ranges for each thread.
const RANGES: usize = 8;
/// Bits of the most ranges.
const BITS_MAX: u32 = 9;
/// Entries for each range at least.
const RANGE_LEN: usize = 1 << 12;

/// The tables.
pub(crate) struct Merged {
    tables: Vec<EntryTable>,
    bits: u32,
    /// Whether the first one has keys of all ranges.
    has_base: bool,
    /// For each range which table has its other keys.
    of_range: Vec<Option<usize>>,
    /// All of them in their order, in place of the tables.
    sorted: Option<EntryOrder>,
}

/// So few groups are not sorted in place.
const FEW: usize = if cfg!(test) { 64 } else { 1 << 14 };

impl Merged {
    /// Merges tables of the same seeds, one at least. Lanes that `add` refuses to add to those of the same key are returned
    /// besides.
    pub(crate) fn new(
        mut all: Vec<EntryTable>,
        add: impl Fn(&mut [i64], &[i64]) -> bool + Sync,
    ) -> (Merged, Vec<Refused>) {
        let mut base = take_largest(&mut all);
        let most = all.iter().map(EntryTable::len).max().unwrap_or_default();
        let ranges = (RANGES * rayon::current_num_threads()).min(1 + most / RANGE_LEN);
        let bits = ranges.next_power_of_two().ilog2().min(BITS_MAX);
        let mut refused = Vec::new();
        let parts = base.merge(&all, bits, &add, &mut refused);
        drop(all);
        (Merged::of(vec![base], parts), refused)
    }

    /// Adds tables of the same seeds, if there are some, to those of each range of hashes.
    pub(crate) fn with_parts(
        parts: Vec<Option<EntryTable>>,
        all: &[EntryTable],
        lanes: usize,
        add: impl Fn(&mut [i64], &[i64]) -> bool + Sync,
    ) -> (Merged, Vec<Refused>) {
        let bits = parts.len().ilog2();
        let parts = parts
            .into_par_iter()
            .zip(HashRange::ranges(bits).collect::<Vec<_>>());
        let added = parts.map(|(part, hashes)| {
            let mut refused = Vec::new();
            let mut part = part.unwrap_or_else(|| EntryTable::part(lanes));
            for table in all {
                part.absorb(table, hashes, &add, &mut refused);
            }
            ((part.len() > 0).then_some(part), refused)
        });
        let (parts, refused): (Vec<_>, Vec<Vec<Refused>>) = added.unzip();
        (
            Merged::of(Vec::new(), parts),
            refused.into_iter().flatten().collect(),
        )
    }

    fn of(mut tables: Vec<EntryTable>, parts: Vec<Option<EntryTable>>) -> Merged {
        let has_base = !tables.is_empty();
        let bits = parts.len().ilog2();
        let of_range = parts.into_iter().map(|part| {
            tables.push(part?);
            Some(tables.len() - 1)
        });
        Merged {
            of_range: of_range.collect(),
            has_base,
            bits,
            tables,
            sorted: None,
        }
    }

    /// The same in the order of keys of this form, if the keys are many, most of them are in one table only, and
    /// [`EntryOrder::merge`] can do it. Otherwise the tables are returned. Refused keys come without the byte after them. There is
    /// one table at least.
    pub(crate) fn sorted(
        mut all: Vec<EntryTable>,
        form: KeyForm,
        may_be_numbers: bool,
        add: Add<'_>,
    ) -> Result<(Merged, Vec<Refused>), Vec<EntryTable>> {
        let base = take_largest(&mut all);
        let differ = base.len() > FEW
            && !all.is_empty()
            && all.iter().all(|other| base.lacks_most_of(other));
        all.insert(0, base);
        let sorted = match differ {
            true => EntryOrder::merge(&mut all, form, may_be_numbers, add),
            false => None,
        };
        let Some((sorted, refused)) = sorted else {
            return Err(all);
        };
        let mut merged = Merged::of(all, vec![None]);
        merged.sorted = Some(sorted);
        Ok((merged, refused))
    }

    /// Puts the groups in the order of their keys, which have this form, if they aren't yet, where they are many and that takes
    /// no memory. It is the order of numbers if all keys are numbers and `may_be_numbers`.
    pub(crate) fn sort(&mut self, form: KeyForm, may_be_numbers: bool) {
        let is_sorted = self.sorted.is_some();
        if !is_sorted && self.tables.iter().map(EntryTable::len).sum::<usize>() > FEW {
            self.sorted = EntryOrder::new(&mut self.tables, form, may_be_numbers);
        }
    }

    /// The orders of keys that [places](Merged::places) are in.
    pub(crate) fn orders(&self) -> Option<Orders> {
        self.sorted.as_ref().map(EntryOrder::orders)
    }

    /// Whether one of two groups isn't after the other in [these](Merged::orders) orders.
    pub(crate) fn are_ordered(&self, one: Place, other: Place) -> bool {
        (self.sorted.as_ref()).is_some_and(|sorted| sorted.are_ordered(one, other))
    }

    /// Where a key with this tag is.
    pub(crate) fn find(&self, tag: u32, key: &Key) -> Option<Place> {
        if let Some(sorted) = &self.sorted {
            return sorted.find(key.text());
        }
        if self.has_base
            && let Some(entry) = self.tables[0].find(tag, key)
        {
            return Some(Place { table: 0, entry });
        }
        let range = HashRange::of(tag, self.bits).number as usize;
        let table = self.of_range[range]?;
        let entry = self.tables[table].find(tag, key)?;
        Some(Place { table, entry })
    }

    /// The places of all groups, in no order.
    pub(crate) fn places(&self) -> impl ParallelIterator<Item = Place> {
        if let Some(sorted) = &self.sorted {
            return Either::Left(sorted.places());
        }
        let tables = self.tables.par_iter().enumerate();
        let places = tables.flat_map(|(table, entries)| {
            let found = entries.in_order();
            found.map(move |entry| Place { table, entry })
        });
        Either::Right(places)
    }

    /// A group's key, without the byte after it.
    pub(crate) fn text(&self, place: Place) -> &[u8] {
        match &self.sorted {
            Some(sorted) => sorted.key(place),
            None => {
                let key = self.tables[place.table].key(place.entry);
                &key[..key.len().saturating_sub(1)]
            }
        }
    }

    pub(crate) fn lanes(&self, place: Place) -> &[i64] {
        match &self.sorted {
            Some(sorted) => sorted.lanes(place),
            None => self.tables[place.table].lanes(place.entry.place()),
        }
    }

    pub(crate) fn lanes_mut(&mut self, place: Place) -> &mut [i64] {
        match &mut self.sorted {
            Some(sorted) => sorted.lanes_mut(place),
            None => self.tables[place.table].lanes_mut(place.entry.place()),
        }
    }

    /// Fetches a group into the cache.
    pub(crate) fn prefetch(&self, place: Place) {
        if let Some(table) = self.tables.get(place.table) {
            table.prefetch(place.entry);
        }
    }
}

fn take_largest(all: &mut Vec<EntryTable>) -> EntryTable {
    let largest = (0..all.len()).max_by_key(|&at| all[at].len());
    all.swap_remove(largest.expect("a table"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::table::isa::Seeds;
    use ringfold_read::internals::Level;

    /// Tables with common keys and without, some larger than others, against a map.
    #[test]
    fn merged_tables_have_all_groups() {
        let each = if cfg!(miri) { 40_u64 } else { 6000 };
        for level in Level::available() {
            let seeds = Seeds::random();
            let cases = [
                (1, 0, each),
                (2, 0, each),
                (5, 0, each),
                (2, each / 3, each),
                (3, each, each),
                (7, each / 2, each),
                (2, each / 2, 5 * each),
            ];
            for (tables, step, each) in cases {
                let mut want: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
                let all = (0..tables).map(|table| {
                    let mut entries = EntryTable::new(5, false);
                    for number in table * step..table * step + each {
                        let text = "key ".repeat(1 + (number % 29) as usize);
                        let text = format!("{text}{number};").into_bytes();
                        let key = Key::of(&text).unwrap();
                        let lanes = [1, 0, 0, 0, number as i64];
                        let tag = key.tag(level, &seeds);
                        assert!(entries.add(tag, &key, &lanes, |_, _| unreachable!("once")));
                        *want.entry(text).or_default() += 1;
                    }
                    entries
                });
                let (mut merged, refused) = Merged::new(all.collect(), |to, from| {
                    assert_eq!(to[4], from[4]);
                    let is_added = to[0] + from[0] <= 2;
                    to[0] += i64::from(is_added) * from[0];
                    is_added
                });
                assert_eq!(merged.places().count(), want.len());
                let mut got: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
                for place in merged.places().collect::<Vec<_>>() {
                    let text = [merged.text(place), b";"].concat();
                    let key = Key::of(&text).unwrap();
                    let found = merged.find(key.tag(level, &seeds), &key).unwrap();
                    let at = |place: Place| (place.table, place.entry.place());
                    assert_eq!(at(found), at(place));
                    let rows = merged.lanes_mut(place)[0];
                    assert!(rows <= 2);
                    assert_eq!(got.insert(text, rows), None);
                }
                for (key, lanes) in refused {
                    *got.get_mut(&key).unwrap() += lanes[0];
                }
                assert!(got == want);
                let other = Key::of(b"another;").unwrap();
                assert_eq!(merged.find(other.tag(level, &seeds), &other), None);
            }
        }
    }
}
