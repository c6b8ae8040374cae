//! A worker's own dense table of a size class. It takes all keys until memory is short.
//!
//! Then its keys move to the [`shards`](crate::table::shards), and a small new table keeps the keys
//! that come first after that; the rows of all others are sent to the shards. Frequent keys are among the
//! first, so that most of their rows need no lock.
//!
//! Invariant of this module: an instruction set is only used by a caller that has its features.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::level::Level;
use crate::scan::key_number::lookahead::RowLookahead;
use crate::scan::key_number::window::ScanWindow;
use crate::table::config::TableConfig;
use crate::table::dense::{BATCH, DenseTable, Growth, LoadedRows};
#[cfg(target_arch = "x86_64")]
use crate::table::isa::{Avx2, Avx512};
use crate::table::isa::{Isa, Portable, Seeds};
use crate::table::key::{Key, hash};
use crate::table::shards::{Outbox, Shards};
use crate::table::stats::Stats;

/// Slots of a new table.
pub(crate) const SLOTS_MIN: usize = 1 << 13;

/// Growth while no keys are shared.
pub(crate) const UNSHARED: Growth = Growth {
    slots_min: SLOTS_MIN,
    sparse_max: 1 << 18,
    keys_max: usize::MAX,
};

/// Growth once keys are shared. The slots stay in the cache, because most rows find nothing there.
fn shared_growth(keys_max: usize) -> Growth {
    Growth {
        slots_min: SLOTS_MIN,
        sparse_max: 1 << 16,
        keys_max,
    }
}

/// One worker's table of one size class.
pub(crate) struct LocalTable<K: Key> {
    level: Level,
    seeds: Seeds,
    table: DenseTable<K>,
    batch: Box<Batch<K>>,
    shards: Arc<Shards<K>>,
    keys_max: usize,
    /// Rows buffered for the shards; made for the first of them.
    outbox: Option<Outbox<K>>,
}

/// The keys and hashes of the current batch. It is kept, so that no batch begins by clearing memory.
struct Batch<K> {
    keys: [K; BATCH],
    hashes: [u32; BATCH],
}

impl<K: Key> LocalTable<K> {
    pub(crate) fn new(config: &TableConfig, shards: &Arc<Shards<K>>) -> Self {
        let batch = Batch {
            keys: [K::EMPTY; BATCH],
            hashes: [0; BATCH],
        };
        LocalTable {
            level: config.level,
            seeds: config.seeds.clone(),
            table: DenseTable::new(UNSHARED),
            batch: Box::new(batch),
            shards: Arc::clone(shards),
            keys_max: config.local_keys_max,
            outbox: None,
        }
    }

    /// Adds rows whose keys are in `window`: the low half of each word of `keys` is where the key starts, the
    /// high half its length.
    pub(crate) fn fold(&mut self, window: ScanWindow<'_>, keys: &[u32], values: &[u32]) {
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks(BATCH)) {
            self.table.reserve(BATCH);
            match self.level {
                // SAFETY: the keys are in the window.
                Level::Portable => unsafe {
                    self.batch::<Portable>(window, keys, values);
                },
                // SAFETY: as above; the level is only made where the processor has its features.
                #[cfg(target_arch = "x86_64")]
                Level::Avx2(_) => unsafe { self.batch_avx2(window, keys, values) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Level::Avx512(_) => unsafe { self.batch_avx512(window, keys, values) },
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,aes,bmi1,bmi2,popcnt")]
    unsafe fn batch_avx2(&mut self, window: ScanWindow<'_>, keys: &[u32], values: &[u32]) {
        // SAFETY: as the caller's.
        unsafe { self.batch::<Avx2>(window, keys, values) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vaes,aes,bmi1,bmi2,popcnt")]
    unsafe fn batch_avx512(&mut self, window: ScanWindow<'_>, keys: &[u32], values: &[u32]) {
        // SAFETY: as the caller's.
        unsafe { self.batch::<Avx512>(window, keys, values) }
    }

    /// # Safety
    /// - `keys` are of `window`, of this size class, and no more than [`BATCH`], as are `values`.
    /// - Space for as many new keys was reserved.
    /// - The features of `I` are enabled.
    #[inline(always)]
    unsafe fn batch<I: Isa>(&mut self, window: ScanWindow<'_>, keys: &[u32], values: &[u32]) {
        let count = keys.len().min(values.len()).min(BATCH);
        let Batch {
            keys: loaded,
            hashes,
        } = &mut *self.batch;
        let lookahead = RowLookahead::new(window, keys);
        for row in 0..count {
            // SAFETY: the key is in the window.
            unsafe {
                if row % 4 == 0
                    && let Some(four) = keys[row..].first_chunk()
                {
                    lookahead.prefetch::<K>(four);
                }
                let start = window.pointer().add((keys[row] & 0xffff) as usize);
                let hash = K::load::<I>(&self.seeds, start, keys[row] >> 16, &mut loaded[row]);
                hashes[row] = hash as u32;
                self.table.prefetch_home(hash as u32);
            }
        }
        let rows = LoadedRows {
            keys: &loaded[..count],
            hashes: &hashes[..count],
            values: &values[..count],
        };
        let (shards, outbox) = (&self.shards, &mut self.outbox);
        // SAFETY: as the caller's.
        unsafe {
            self.table.add_batch::<I>(rows, |key, hash, value| {
                let outbox = outbox.get_or_insert_with(|| Outbox::new(shards));
                outbox.push(key, hash, value);
            });
        }
    }

    /// Adds statistics of `key`. Not for a table that shares its keys.
    pub(crate) fn add(&mut self, key: &K, stats: &Stats) {
        let hash = hash(self.level, &self.seeds, key);
        self.table.add(key, hash, stats);
    }

    /// Moves all keys to the shards; from now on only the keys that come first are kept here.
    pub(crate) fn share(&mut self) {
        let kept = DenseTable::new(shared_growth(self.keys_max));
        let table = std::mem::replace(&mut self.table, kept);
        self.shards.absorb(table);
    }

    /// The number of local keys.
    pub(crate) fn len(&self) -> usize {
        self.table.used
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Sends the rows that are buffered for the shards.
    pub(crate) fn flush(&mut self) {
        self.outbox.iter_mut().for_each(Outbox::flush);
    }

    /// The local keys. Buffered rows must have been [sent](Self::flush).
    pub(crate) fn into_table(self) -> DenseTable<K> {
        self.table
    }
}
