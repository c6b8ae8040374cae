//! Merges the dense tables of all workers into one: each key once, in byte order.
//!
//! Ranges of hashes ([`hash_range`](crate::table::hash_range)) are merged in parallel. Where keys were
//! shared, each shard takes the local entries of its range. Otherwise entries are merged into the largest
//! table; keys that it lacks go to a new table of the range, which is appended at the end.
//!
//! Invariant of this module: a task accesses entries of the largest table only through slots whose hashes
//! are in its own range. An entry has one slot, and a hash is in one range, so no two tasks share an entry.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use rayon::prelude::*;

use crate::table::accumulator::EntryStats;
use crate::table::dense::{DenseEntry, DenseTable, EntryRef, SortedEntries, prefetch_entry};
use crate::table::hash_range::{HashRange, scattered};
use crate::table::isa::Portable;
use crate::table::key::Key;
use crate::table::local::SLOTS_MIN;
use crate::table::shards::{self, DrainedShards};
use crate::table::stats::Stats;

/// Ranges for each thread, so that all threads end at about the same time.
const RANGES: usize = 8;
/// The most bits of a hash that choose its range: fewer than choose its slot.
const BITS_MAX: u32 = SLOTS_MIN.trailing_zeros() - 1;

/// The keys of `tables` and of `shards`, all of the same seeds.
pub(crate) fn sorted<K: Key>(
    tables: Vec<DenseTable<K>>,
    shards: DrainedShards<K>,
    delimiter: u8,
) -> SortedEntries<K> {
    let whole = if shards.is_empty() && !tables.is_empty() {
        largest(tables)
    } else {
        sharded(tables, shards)
    };
    SortedEntries::new(whole.entries, whole.used, whole.overflow, delimiter)
}

/// The keys of `tables`, one at least, in the largest of them.
fn largest<K: Key>(mut tables: Vec<DenseTable<K>>) -> DenseTable<K> {
    let by_used = |&at: &usize| tables[at].used;
    let largest = (0..tables.len()).max_by_key(by_used);
    let mut into = tables.swap_remove(largest.expect("a table at least"));
    if !tables.is_empty() {
        let new_tables = merge(&mut into, &tables, rayon::current_num_threads());
        for mut table in tables {
            into.overflow.append(&mut table.overflow);
        }
        append(&mut into, new_tables);
    }
    into
}

/// The keys of `tables` and of `shards`.
fn sharded<K: Key>(mut tables: Vec<DenseTable<K>>, shards: DrainedShards<K>) -> DenseTable<K> {
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
        into.overflow.append(&mut table.overflow);
    }
    drop(tables);
    append(&mut into, shards);
    into
}

/// Merges the entries of `tables` whose keys `into` has; returns new tables of the other keys.
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
        let mut part = RangeMerge {
            new: None,
            overflow: Vec::new(),
        };
        for table in tables {
            part.merge(&largest, table, hashes);
        }
        part
    });
    let parts: Vec<RangeMerge<K>> = parts.collect();
    let new_tables = parts.into_iter().filter_map(|mut part| {
        into.overflow.append(&mut part.overflow);
        part.new
    });
    new_tables.collect()
}

/// Appends the entries of `new_tables` to those of `into`, which has none of these keys. No slots point to
/// the appended entries.
fn append<K: Key>(into: &mut DenseTable<K>, new_tables: Vec<DenseTable<K>>) {
    let from = into.used;
    into.used += new_tables.iter().map(|new| new.used).sum::<usize>();
    if into.used > into.entries.len() {
        into.entries.grow(into.used);
    }
    let mut target = &mut into.entries[from..into.used];
    let mut copies = Vec::with_capacity(new_tables.len());
    for mut new in new_tables {
        into.overflow.append(&mut new.overflow);
        let (part, behind) = target.split_at_mut(new.used);
        copies.push((part, new));
        target = behind;
    }
    copies
        .into_par_iter()
        .for_each(|(part, new)| part.copy_from_slice(&new.entries[..new.used]));
}

/// What the merge of one range adds to the largest table.
struct RangeMerge<K: Key> {
    new: Option<DenseTable<K>>,
    overflow: Vec<(K, Stats)>,
}

impl<K: Key> RangeMerge<K> {
    fn merge(&mut self, largest: &Largest<'_, K>, table: &DenseTable<K>, hashes: HashRange) {
        for (key, hash, stats) in hashes.entries(table, |slot| largest.prefetch(table, slot)) {
            // SAFETY: the hash is of this task's range.
            match unsafe { largest.add(key, hash, &stats) } {
                Added::Yes => {}
                Added::Overflow => self.overflow.push((*key, stats)),
                Added::Missing => {
                    let new = self.new.get_or_insert_with(shards::table);
                    new.add(key, scattered(hash), &stats);
                }
            }
        }
    }
}

/// The largest table, to which all tasks add.
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
    /// The entry's count would overflow.
    Overflow,
    /// The table lacks the key.
    Missing,
}

impl<K: Key> Largest<'_, K> {
    /// Adds statistics to those of `key`.
    ///
    /// # Safety
    /// - `hash` is the key's, and of the task's range.
    unsafe fn add(&self, key: &K, hash: u32, stats: &Stats) -> Added {
        let mask = self.slots.len() - 1;
        let mut place = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[place];
            if slot.0 == 0 {
                return Added::Missing;
            }
            if slot.hash() == hash {
                // SAFETY: the entry is in use, and as its hash is in the task's range, no other task
                // accesses it; the comparison needs no feature.
                unsafe {
                    let entry = &mut *self.entries.add(slot.entry());
                    if key.equals::<Portable>(&entry.key) {
                        return match entry.stats.try_merge(stats) {
                            true => Added::Yes,
                            false => Added::Overflow,
                        };
                    }
                }
            }
            place = (place + 1) & mask;
        }
    }

    /// Prefetches the entries that merging `slot` of `table` will access.
    #[inline(always)]
    fn prefetch(&self, table: &DenseTable<K>, slot: EntryRef) {
        let home = self.slots[(slot.hash() >> self.shift) as usize];
        table.prefetch_entry(slot);
        prefetch_entry(self.entries, home);
    }
}

#[cfg(test)]
mod tests {
    use crate::level::Level;
    use crate::table::key::ShortKey;
    use crate::table::local::UNSHARED;
    use crate::table::merge::*;
    use crate::table::shards::Shards;
    use crate::table::sorted::SortedKeys;
    use crate::table::stats::BIAS;
    use crate::table::stats::FLIP;
    use std::collections::BTreeMap;

    type Hash = fn(u32) -> u32;

    fn table(numbers: impl Iterator<Item = u32>, hash: Hash) -> DenseTable<ShortKey> {
        let mut table = DenseTable::new(UNSHARED);
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

    /// Hashes that are well spread; that all begin at the last home slot and wrap around; on both sides of
    /// the border of two ranges; all equal.
    const HASHES: [Hash; 4] = [
        |number| number.wrapping_mul(0x9e37_79b9),
        |number| u32::MAX - number % 3,
        |number| 0x7fff_ffff + number % 2,
        |_| 0,
    ];

    #[test]
    fn every_key_once() {
        let (threads, hashes): (&[usize], _) = match cfg!(miri) {
            true => (&[1], &HASHES[..2]),
            false => (&[1, 3, 64, 100_000], &HASHES[..]),
        };
        for &hash in hashes {
            for &threads in threads {
                let parts = [10..25, 0..30, 29..31, 0..0, 30..31_u32];
                let mut expected: BTreeMap<String, u64> = BTreeMap::new();
                for number in parts.iter().cloned().flatten() {
                    *expected.entry(format!("{number:08}")).or_default() += 1;
                }
                let mut tables = parts.map(|part| table(part, hash)).into_iter();
                let mut into = tables.next().unwrap();
                let rest: Vec<_> = tables.collect();
                let new_tables = merge(&mut into, &rest, threads);
                append(&mut into, new_tables);
                let sorted = SortedEntries::new(into.entries, into.used, into.overflow, b';');
                let got =
                    (0..sorted.len()).map(|at| (sorted.key(at).to_vec(), sorted.stats(at).count()));
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
        let nothing = Shards::new(Level::Portable, 6).drain_if(|_| true);
        let sorted = sorted(tables.into(), nothing, b';');
        let got = (0..sorted.len()).map(|at| (sorted.key(at), sorted.stats(at)));
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
