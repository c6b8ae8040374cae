//! Shared tables of one size class: a key lies in one shard, whichever worker meets it, so that it takes
//! memory once and not once for each worker.
//!
//! A shard holds the hashes that begin with the same bits, behind a lock. Workers send rows in bundles and
//! take the lock once for each bundle.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::level::Level;
use crate::table::dense::{BATCH, DenseTable, Growth, LoadedRows};
use crate::table::hash_range::{HashRange, scattered};
use crate::table::key::Key;
use crate::table::pages::{Pages, Zeroed};

const GROWTH: Growth = Growth {
    slots_min: 1 << 10,
    sparse_max: 0,
    keys_max: usize::MAX,
};

/// The shards of a size class.
pub(crate) struct Shards<K: Key> {
    level: Level,
    /// How many of a hash's first bits choose the shard.
    bits: u32,
    tables: Box<[Shard<K>]>,
    bytes: AtomicU64,
}

/// `None` until its first key. Aligned, so that no two locks share a cache line.
#[repr(align(128))]
struct Shard<K: Key>(Mutex<Option<DenseTable<K>>>);

impl<K: Key> Shard<K> {
    fn table(&self) -> MutexGuard<'_, Option<DenseTable<K>>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// A table without keys for a range of hashes.
pub(crate) fn table<K: Key>() -> DenseTable<K> {
    DenseTable::new(GROWTH)
}

/// Adds the entries of `table` whose hashes are in the range `hashes` to `into`. The overflow of `table` is
/// not moved.
pub(crate) fn absorb<K: Key>(into: &mut DenseTable<K>, table: &DenseTable<K>, hashes: HashRange) {
    for (key, hash, stats) in hashes.entries(table, |slot| table.prefetch_entry(slot)) {
        into.add(key, scattered(hash), &stats);
    }
}

impl<K: Key> Shards<K> {
    /// 2^`bits` shards.
    pub(crate) fn new(level: Level, bits: u32) -> Self {
        let tables = (0..1 << bits).map(|_| Shard(Mutex::new(None)));
        Shards {
            level,
            bits,
            tables: tables.collect(),
            bytes: AtomicU64::new(0),
        }
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Moves all keys of `table` into the shards.
    pub(crate) fn absorb(&self, mut table: DenseTable<K>) {
        if table.used == 0 {
            return;
        }
        for hashes in HashRange::ranges(self.bits) {
            self.with(hashes.number as usize, |shard| {
                shard.overflow.append(&mut table.overflow);
                absorb(shard, &table, hashes);
            });
        }
    }

    fn with(&self, number: usize, add: impl FnOnce(&mut DenseTable<K>)) {
        let mut guard = self.tables[number].table();
        let before = guard.as_ref().map_or(0, DenseTable::bytes);
        let table = guard.get_or_insert_with(table);
        add(table);
        let more = table.bytes() - before;
        if more > 0 {
            self.bytes.fetch_add(more as u64, Ordering::Relaxed);
        }
    }

    /// Takes the tables of the shards that `which` chooses by number.
    pub(crate) fn drain_if(&self, which: impl Fn(usize) -> bool) -> DrainedShards<K> {
        let taken = self.tables.iter().enumerate().map(|(number, shard)| {
            let table = which(number).then(|| shard.table().take())??;
            self.bytes
                .fetch_sub(table.bytes() as u64, Ordering::Relaxed);
            Some(table)
        });
        DrainedShards {
            bits: self.bits,
            tables: taken.collect(),
        }
    }
}

/// Tables taken out of shards.
pub(crate) struct DrainedShards<K: Key> {
    bits: u32,
    tables: Vec<Option<DenseTable<K>>>,
}

impl<K: Key> DrainedShards<K> {
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.iter().all(Option::is_none)
    }

    /// Each range of hashes and its table.
    pub(crate) fn into_ranges(self) -> Vec<(HashRange, Option<DenseTable<K>>)> {
        HashRange::ranges(self.bits).zip(self.tables).collect()
    }
}

/// Rows that a worker has buffered for the shards.
pub(crate) struct Outbox<K: Key> {
    shards: Arc<Shards<K>>,
    bundles: Pages<Bundle<K>>,
}

/// Rows in a bundle: fewer take the lock too often.
const ROWS: usize = BATCH;

/// Rows for a shard.
#[derive(Clone, Copy)]
#[repr(C)]
struct Bundle<K> {
    keys: [K; ROWS],
    hashes: [u32; ROWS],
    values: [u32; ROWS],
    rows: usize,
}

// SAFETY: bytes and integers.
unsafe impl<K: Key> Zeroed for Bundle<K> {}

impl<K: Key> Outbox<K> {
    pub(crate) fn new(shards: &Arc<Shards<K>>) -> Self {
        Outbox {
            shards: Arc::clone(shards),
            bundles: Pages::new(shards.tables.len()),
        }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, key: &K, hash: u32, value: u32) {
        let hashes = HashRange::of(hash, self.shards.bits);
        let number = hashes.number as usize;
        let bundle = &mut self.bundles[number];
        let row = bundle.rows;
        bundle.keys[row] = *key;
        bundle.hashes[row] = scattered(hash);
        bundle.values[row] = value;
        bundle.rows += 1;
        if bundle.rows == ROWS {
            self.send(number);
        }
    }

    /// Sends the rows for a shard.
    #[inline(never)]
    fn send(&mut self, number: usize) {
        let bundle = &mut self.bundles[number];
        let rows = std::mem::take(&mut bundle.rows);
        let loaded = LoadedRows {
            keys: &bundle.keys[..rows],
            hashes: &bundle.hashes[..rows],
            values: &bundle.values[..rows],
        };
        let level = self.shards.level;
        self.shards
            .with(number, |table| table.add_rows(level, loaded));
    }

    /// Sends all buffered rows.
    pub(crate) fn flush(&mut self) {
        for number in 0..self.bundles.len() {
            if self.bundles[number].rows > 0 {
                self.send(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::table::key::ShortKey;
    use crate::table::local::UNSHARED;
    use crate::table::shards::*;
    use crate::table::stats::BIAS;
    use crate::table::stats::{FLIP, Stats};
    use std::collections::BTreeMap;

    fn key(number: u32) -> ShortKey {
        let mut key = ShortKey::EMPTY;
        key.0[..9].copy_from_slice(format!("{number:08};").as_bytes());
        key
    }

    fn hash(number: u32) -> u32 {
        number.wrapping_mul(0x85eb_ca6b)
    }

    /// Two workers send rows while a third moves its table; in the end each key is there once.
    #[test]
    fn rows_and_tables_meet() {
        let shards = Arc::new(Shards::<ShortKey>::new(Level::Portable, 2));
        assert!(shards.bytes() == 0 && shards.drain_if(|_| true).is_empty());
        let rows = |from: u32, to: u32| {
            let mut outbox = Outbox::new(&shards);
            for number in from..to {
                outbox.push(&key(number), hash(number), BIAS);
            }
            outbox.flush();
            // Nothing is sent twice.
            outbox.flush();
        };
        std::thread::scope(|scope| {
            scope.spawn(|| rows(0, 1000));
            scope.spawn(|| rows(500, 1001));
            scope.spawn(|| {
                let mut table = DenseTable::new(UNSHARED);
                for number in 900..1300 {
                    let stats = Stats {
                        sum: u64::from(BIAS),
                        count: 1,
                        max: BIAS,
                        max_flipped: BIAS ^ FLIP,
                        length: 0,
                    };
                    table.add(&key(number), hash(number), &stats);
                }
                shards.absorb(table);
            });
        });
        // One of them first.
        let taken = [
            shards.drain_if(|number| number == 2),
            shards.drain_if(|_| true),
        ];
        assert_eq!(shards.bytes(), 0);
        let mut counts: BTreeMap<[u8; 16], u64> = BTreeMap::new();
        let ranges = taken.into_iter().flat_map(DrainedShards::into_ranges);
        for (hashes, table) in ranges {
            let Some(table) = table else {
                continue;
            };
            for entry in &table.entries[..table.used] {
                let number = std::str::from_utf8(&entry.key.0[..8]).unwrap();
                assert!(hashes.contain(hash(number.parse().unwrap())));
                let before = counts.insert(entry.key.0, entry.stats.unpacked().count());
                assert_eq!(before, None, "{number} is in two places");
            }
        }
        let expected = (0..1300).map(|number| {
            let times = [0..1000, 500..1001, 900..1300].map(|range| range.contains(&number));
            (key(number).0, times.into_iter().map(u64::from).sum())
        });
        assert!(counts.into_iter().eq(expected));
    }
}
