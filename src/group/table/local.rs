//! The keys of a size class that a worker has to itself: all that it meets, until memory is short. Then
//! they go to the [`shards`](crate::group::table::shards), where each is once, and so do rows from then on, but for those
//! of the keys that come first after that: a key that comes often is among them, and nobody waits for it.
//!
//! Invariant of this module: an instruction set is only used by a caller that has its features.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::group::accumulate::stats::Stats;
use crate::group::level::Level;
use crate::group::scan::lookahead::RowLookahead;
use crate::group::scan::window::ScanWindow;
use crate::group::table::config::TableConfig;
use crate::group::table::dense::{BATCH, DenseTable, Growth, Loaded};
#[cfg(target_arch = "x86_64")]
use crate::group::table::isa::{Avx2, Avx512};
use crate::group::table::isa::{Isa, Portable, Seeds};
use crate::group::table::key::{Key, hash};
use crate::group::table::shards::{Outbox, Shards};

/// Slots at first.
pub(crate) const SLOTS_MIN: usize = 1 << 13;

/// Of a worker that has all its keys to itself.
pub(crate) const ALL: Growth = Growth {
    slots_min: SLOTS_MIN,
    sparse_max: 1 << 18,
    keys_max: usize::MAX,
};

/// Of a worker that shares keys, and keeps so many: the slots stay in the cache, for most rows find
/// nothing there.
fn kept(keys_max: usize) -> Growth {
    Growth {
        slots_min: SLOTS_MIN,
        sparse_max: 1 << 16,
        keys_max,
    }
}

/// The own table of a worker and a size class.
pub(crate) struct LocalTable<K: Key> {
    level: Level,
    seeds: Seeds,
    table: DenseTable<K>,
    batch: Box<Batch<K>>,
    shards: Arc<Shards<K>>,
    kept_max: usize,
    /// Rows on their way to the shards; from the first one on.
    outbox: Option<Outbox<K>>,
}

/// A batch under way; kept, so that none begins by clearing it.
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
            table: DenseTable::new(ALL),
            batch: Box::new(batch),
            shards: Arc::clone(shards),
            kept_max: config.local_keys_max,
            outbox: None,
        }
    }

    /// Takes rows whose keys are in `window`: where each starts in the low half, its length in the
    /// high.
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
                Level::Avx2 => unsafe { self.batch_avx2(window, keys, values) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 => unsafe { self.batch_avx512(window, keys, values) },
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
    /// - `keys` are of `window`, of this size class, and no more than [`BATCH`], as are `values`;
    ///   there is room for as many new ones.
    /// - The features of `I` are enabled.
    #[inline(always)]
    unsafe fn batch<I: Isa>(&mut self, window: ScanWindow<'_>, keys: &[u32], values: &[u32]) {
        let count = keys.len().min(values.len()).min(BATCH);
        let Batch {
            keys: loaded,
            hashes,
        } = &mut *self.batch;
        let ahead = RowLookahead::new(window, keys);
        for row in 0..count {
            // SAFETY: the key is in the window.
            unsafe {
                if row % 4 == 0
                    && let Some(four) = keys[row..].first_chunk()
                {
                    ahead.ask::<K>(four);
                }
                let start = window.pointer().add((keys[row] & 0xffff) as usize);
                let hash = K::load::<I>(&self.seeds, start, keys[row] >> 16, &mut loaded[row]);
                hashes[row] = hash as u32;
                self.table.ask(hash as u32);
            }
        }
        let rows = Loaded {
            keys: &loaded[..count],
            hashes: &hashes[..count],
            values: &values[..count],
        };
        let (shards, outbox) = (&self.shards, &mut self.outbox);
        // SAFETY: as the caller's.
        unsafe {
            self.table.batch::<I>(rows, |key, hash, value| {
                let outbox = outbox.get_or_insert_with(|| Outbox::new(shards));
                outbox.push(key, hash, value);
            });
        }
    }

    /// Takes statistics of `key`; not for one that shares.
    pub(crate) fn add(&mut self, key: &K, stats: &Stats) {
        let hash = hash(self.level, &self.seeds, key);
        self.table.add(key, hash, stats);
    }

    /// Hands its keys over, and from now on the rows of others than those that come first.
    pub(crate) fn share(&mut self) {
        let kept = DenseTable::new(kept(self.kept_max));
        let table = std::mem::replace(&mut self.table, kept);
        self.shards.absorb(table);
    }

    /// Memory that the keys take.
    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Hands over the rows that are others'.
    pub(crate) fn flush(&mut self) {
        self.outbox.iter_mut().for_each(Outbox::flush);
    }

    /// The keys that it has; its rows were [handed over](Self::flush).
    pub(crate) fn into_table(self) -> DenseTable<K> {
        self.table
    }
}
