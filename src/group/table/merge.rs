//! The dense tables of all partials, brought into one: each key once, in byte order.
//!
//! Ranges of [`hashes`](crate::group::table::hash_range) are merged side by side. Where shards have come to be, each takes
//! what the partials still have of its range. Else what the largest table has of a key is added up there;
//! keys that it lacks go to a table of the range's own, and from there behind its entries.
//!
//! Invariant of this module: a task touches entries of the largest table by slots whose hashes are of its
//! own range, and no others. An entry has one slot, and a hash is of one range, so no two tasks meet.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use rayon::prelude::*;

use crate::group::accumulate::stats::Stats;
use crate::group::table::accumulator::EntryStats;
use crate::group::table::dense::{DenseEntry, DenseTable, EntryRef, SortedEntries, ask_entry};
use crate::group::table::hash_range::{HashRange, scattered};
use crate::group::table::isa::Portable;
use crate::group::table::key::Key;
use crate::group::table::local::SLOTS_MIN;
use crate::group::table::shards::{self, Taken};

/// Ranges for each thread, so that all are done at about the same time.
const RANGES: usize = 8;
/// At most so many bits of a hash tell its range: fewer than tell its place.
const BITS_MAX: u32 = SLOTS_MIN.trailing_zeros() - 1;

/// The keys of `tables` and of `shards`, all of the same seeds.
pub(crate) fn sorted<K: Key>(
    tables: Vec<DenseTable<K>>,
    shards: Taken<K>,
    delimiter: u8,
) -> SortedEntries<K> {
    let whole = if shards.is_empty() && !tables.is_empty() {
        largest(tables)
    } else {
        sharded(tables, shards)
    };
    SortedEntries::new(whole.entries, whole.used, whole.full, delimiter)
}

/// The keys of `tables`, one at least, in the largest of them.
fn largest<K: Key>(mut tables: Vec<DenseTable<K>>) -> DenseTable<K> {
    let by_used = |&at: &usize| tables[at].used;
    let largest = (0..tables.len()).max_by_key(by_used);
    let mut into = tables.swap_remove(largest.expect("a table at least"));
    if !tables.is_empty() {
        let news = merge(&mut into, &tables, rayon::current_num_threads());
        for mut table in tables {
            into.full.append(&mut table.full);
        }
        append(&mut into, news);
    }
    into
}

/// The keys of `tables` and of `shards`.
fn sharded<K: Key>(mut tables: Vec<DenseTable<K>>, shards: Taken<K>) -> DenseTable<K> {
    let shards = shards.into_ranges().into_par_iter();
    let shards = shards.filter_map(|(hashes, shard)| {
        let mut shard = match shard {
            None if tables.is_empty() => return None,
            None => shards::table(),
            Some(shard) => shard,
        };
        tables
            .iter()
            .for_each(|table| shards::absorb(&mut shard, table, hashes));
        Some(shard)
    });
    let mut shards: Vec<DenseTable<K>> = shards.collect();
    let mut into = shards.pop().unwrap_or_else(shards::table);
    for table in &mut tables {
        into.full.append(&mut table.full);
    }
    drop(tables);
    append(&mut into, shards);
    into
}

/// Accumulator up in `into` what `tables` have of its keys; returns their other keys.
fn merge<K: Key>(
    into: &mut DenseTable<K>,
    tables: &[DenseTable<K>],
    threads: usize,
) -> Vec<DenseTable<K>> {
    let ranges = (RANGES * threads).next_power_of_two();
    let bits = ranges.trailing_zeros().min(BITS_MAX);
    let largest = Largest {
        slots: &into.slots,
        shift: into.shift,
        entries: into.entries.pointer(),
        borrowed: PhantomData,
    };
    let ranges: Vec<HashRange> = HashRange::ranges(bits).collect();
    let parts = ranges.into_par_iter().map(|hashes| {
        let mut part = Part {
            new: None,
            full: Vec::new(),
        };
        for table in tables {
            part.merge(&largest, table, hashes);
        }
        part
    });
    let parts: Vec<Part<K>> = parts.collect();
    let news = parts.into_iter().filter_map(|mut part| {
        into.full.append(&mut part.full);
        part.new
    });
    news.collect()
}

/// Puts the entries of `news` behind those of `into`, of which none are the same; its slots don't know
/// of them.
fn append<K: Key>(into: &mut DenseTable<K>, news: Vec<DenseTable<K>>) {
    let from = into.used;
    into.used += news.iter().map(|new| new.used).sum::<usize>();
    if into.used > into.entries.len() {
        into.entries.grow(into.used);
    }
    let mut room = &mut into.entries[from..into.used];
    let mut copies = Vec::with_capacity(news.len());
    for mut new in news {
        into.full.append(&mut new.full);
        let (own, behind) = room.split_at_mut(new.used);
        copies.push((own, new));
        room = behind;
    }
    copies
        .into_par_iter()
        .for_each(|(own, new)| own.copy_from_slice(&new.entries[..new.used]));
}

/// What the merge of a range leaves beside the largest table.
struct Part<K: Key> {
    new: Option<DenseTable<K>>,
    full: Vec<(K, Stats)>,
}

impl<K: Key> Part<K> {
    fn merge(&mut self, largest: &Largest<'_, K>, table: &DenseTable<K>, hashes: HashRange) {
        for (key, hash, stats) in hashes.entries(table, |slot| largest.ask_ahead(table, slot)) {
            // SAFETY: the hash is of this task's range.
            match unsafe { largest.add(key, hash, &stats) } {
                Added::Yes => {}
                Added::Full => self.full.push((*key, stats)),
                Added::Lacks => {
                    let new = self.new.get_or_insert_with(shards::table);
                    new.add(key, scattered(hash), &stats);
                }
            }
        }
    }
}

/// The table that all tasks add to.
struct Largest<'a, K: Key> {
    slots: &'a [EntryRef],
    shift: u32,
    entries: *mut DenseEntry<K>,
    borrowed: PhantomData<&'a mut [DenseEntry<K>]>,
}

// SAFETY: by the module's invariant no entry is touched by two tasks.
unsafe impl<K: Key> Sync for Largest<'_, K> {}

enum Added {
    Yes,
    /// The stats has no room for it.
    Full,
    /// The table hasn't the key.
    Lacks,
}

impl<K: Key> Largest<'_, K> {
    /// Accumulator statistics to those of `key`.
    ///
    /// # Safety
    /// - `hash` is the key's, and of the task's range.
    unsafe fn add(&self, key: &K, hash: u32, stats: &Stats) -> Added {
        let mask = self.slots.len() - 1;
        let mut place = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[place];
            if slot.0 == 0 {
                return Added::Lacks;
            }
            if slot.hash() == hash {
                // SAFETY: the entry is in use, and as its hash is the task's, nobody else touches it;
                // the comparison needs no feature.
                unsafe {
                    let entry = &mut *self.entries.add(slot.entry());
                    if key.equals::<Portable>(&entry.key) {
                        return match entry.stats.try_merge(stats) {
                            true => Added::Yes,
                            false => Added::Full,
                        };
                    }
                }
            }
            place = (place + 1) & mask;
        }
    }

    /// Asks for the entries that merging `slot` of `table` will touch.
    #[inline(always)]
    fn ask_ahead(&self, table: &DenseTable<K>, slot: EntryRef) {
        let home = self.slots[(slot.hash() >> self.shift) as usize];
        table.ask_entry(slot);
        ask_entry(self.entries, home);
    }
}

#[cfg(test)]
mod tests {
    use crate::group::accumulate::stats::BIAS;
    use crate::group::accumulate::stats::FLIP;
    use crate::group::level::Level;
    use crate::group::table::key::ShortKey;
    use crate::group::table::local::ALL;
    use crate::group::table::merge::*;
    use crate::group::table::shards::Shards;
    use crate::group::table::sorted::SortedKeys;
    use std::collections::BTreeMap;

    type Hash = fn(u32) -> u32;

    fn table(numbers: impl Iterator<Item = u32>, hash: Hash) -> DenseTable<ShortKey> {
        let mut table = DenseTable::new(ALL);
        for number in numbers {
            let mut key = ShortKey::EMPTY;
            key.0[..9].copy_from_slice(format!("{number:08};").as_bytes());
            let row = Stats {
                sum: u64::from(BIAS),
                count: 1,
                max: BIAS,
                max_flipped: BIAS ^ FLIP,
                length: 0,
            };
            table.add(&key, hash(number), &row);
        }
        table
    }

    /// Whatever the hashes are like: well spread; all from the last home on, so that they go on at the
    /// first; on both sides of the border of two ranges; the same.
    const HASHES: [Hash; 4] = [
        |number| number.wrapping_mul(0x9e37_79b9),
        |number| u32::MAX - number % 3,
        |number| 0x7fff_ffff + number % 2,
        |_| 0,
    ];

    #[test]
    fn every_key_once() {
        let threads: &[usize] = match cfg!(miri) {
            true => &[1],
            false => &[1, 3, 64, 100_000],
        };
        for hash in HASHES {
            for &threads in threads {
                let parts = [10..25, 0..30, 29..31, 0..0, 30..31_u32];
                let mut expected: BTreeMap<String, u64> = BTreeMap::new();
                for number in parts.iter().cloned().flatten() {
                    *expected.entry(format!("{number:08}")).or_default() += 1;
                }
                let mut tables = parts.map(|part| table(part, hash)).into_iter();
                let mut into = tables.next().unwrap();
                let rest: Vec<_> = tables.collect();
                let news = merge(&mut into, &rest, threads);
                append(&mut into, news);
                let sorted = SortedEntries::new(into.entries, into.used, into.full, b';');
                let got = sorted.iter(0..sorted.len());
                let got = got.map(|(key, stats)| (key.to_vec(), stats.count()));
                let expected = expected.into_iter();
                assert!(got.eq(expected.map(|(key, count)| (key.into_bytes(), count))));
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too much for an interpreter")]
    fn the_largest_grows() {
        let tables = [0..1, 0..3000, 2000..70_000, 60_000..80_000];
        let tables = tables.map(|numbers| table(numbers, HASHES[0]));
        let nothing = Shards::new(Level::Portable, 6).take(|_| true);
        let sorted = sorted(tables.into(), nothing, b';');
        let got = sorted.iter(0..sorted.len());
        let expected = (0..80_000_u32).map(|number| {
            let twice = number == 0 || (2000..3000).contains(&number);
            let count = 1 + u64::from(twice || (60_000..70_000).contains(&number));
            (format!("{number:08}"), count)
        });
        assert!(
            got.map(|(key, stats)| (String::from_utf8_lossy(key).into_owned(), stats.count()))
                .eq(expected)
        );
    }
}
