//! The groups that all workers of a run share when memory is short, so that each key is in memory once and not once for each
//! worker.
//!
//! A shard has the keys of one range of hashes, behind a lock. A worker gathers keys in a table of its own that stays in the
//! cache, and moves all of them to the shards when they are many: it takes each lock once for many keys, and rows of frequent
//! keys meet before that.
//!
//! Sharing begins when the first worker would have to spill. Every other one moves its keys to the shards when it looks at the
//! budget next. If the shared keys exceed the budget too, each worker that notices spills some of the shards, so that several
//! write at once.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::budget::{Budget, Share};
use crate::table::entries::EntryTable;
use crate::table::hash_range::HashRange;
use crate::table::lane_plan::{Columns, LanePlan};

/// Keys that a worker gathers before it moves them to the shards.
pub(crate) const LOCAL_MAX: usize = 3 << 13;

/// Bits of the number of shards. There are many more of them than workers, so that two workers rarely want the same lock.
fn shard_bits() -> u32 {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    (16 * workers).next_power_of_two().ilog2().clamp(6, 10)
}

/// Groups of one range of hashes.
pub(crate) struct Shard {
    pub(crate) columns: Columns,
    pub(crate) entries: EntryTable,
}

impl Shard {
    pub(crate) fn new(columns: &Columns) -> Shard {
        Shard {
            entries: EntryTable::part(columns.layout.lanes().len()),
            columns: columns.clone(),
        }
    }
}

/// Aligned, so that no two locks share a cache line.
#[repr(align(128))]
struct Lock(Mutex<Option<Shard>>);

impl Lock {
    fn shard(&self) -> MutexGuard<'_, Option<Shard>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// The shared groups, and the workers that share them.
pub(crate) struct SharedGroups {
    shards: Box<[Lock]>,
    bits: u32,
    bytes: AtomicU64,
    /// The plan of all workers, and what can hold what any of them holds.
    columns: Mutex<Option<(LanePlan, Columns)>>,
    spills: Mutex<Spills>,
    requested: AtomicBool,
    partials: AtomicUsize,
    sharers: AtomicUsize,
}

/// What is spilled of the shards.
struct Spills {
    share: Share,
    /// The shard that is spilled next.
    next: usize,
}

/// Groups that were taken out, one shard for each range of hashes, and their plan.
#[derive(Default)]
pub(crate) struct Drained {
    pub(crate) plan: Option<LanePlan>,
    pub(crate) shards: Vec<Option<Shard>>,
}

impl Drained {
    pub(crate) fn is_empty(&self) -> bool {
        self.shards.iter().all(Option::is_none)
    }
}

impl SharedGroups {
    pub(crate) fn new(budget: &Arc<Budget>) -> SharedGroups {
        let bits = shard_bits();
        SharedGroups {
            shards: (0..1 << bits).map(|_| Lock(Mutex::new(None))).collect(),
            bits,
            bytes: AtomicU64::new(0),
            columns: Mutex::new(None),
            spills: Mutex::new(Spills {
                share: Share::new(budget),
                next: 0,
            }),
            requested: AtomicBool::new(false),
            partials: AtomicUsize::new(0),
            sharers: AtomicUsize::new(0),
        }
    }

    /// Counts one more worker.
    pub(crate) fn add_partial(&self) {
        self.partials.fetch_add(1, Relaxed);
    }

    /// Asks all workers to share their keys, if there are several.
    pub(crate) fn request(&self) {
        if self.partials.load(Relaxed) > 1 {
            self.requested.store(true, Relaxed);
        }
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Relaxed)
    }

    /// Counts one more worker that shares.
    pub(crate) fn add_sharer(&self) {
        self.sharers.fetch_add(1, Relaxed);
    }

    /// Workers that share.
    pub(crate) fn sharers(&self) -> u64 {
        self.sharers.load(Relaxed) as u64
    }

    /// What can hold what these lanes hold, and those of all workers so far.
    pub(crate) fn widest(&self, plan: &LanePlan, columns: &Columns) -> Columns {
        let mut known = self.columns.lock().unwrap_or_else(|e| e.into_inner());
        let widest = match &*known {
            Some((_, known)) => known.union(plan, columns),
            None => columns.clone(),
        };
        *known = Some((plan.clone(), widest.clone()));
        widest
    }

    /// Ranges of hashes, a shard each.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = HashRange> {
        HashRange::ranges(self.bits)
    }

    /// Calls `change` with the shard of a range, which it may make.
    pub(crate) fn with(&self, hashes: HashRange, change: impl FnOnce(&mut Option<Shard>)) {
        let bytes = |shard: &Option<Shard>| shard.as_ref().map_or(0, |shard| shard.entries.bytes());
        let mut guard = self.shards[hashes.number as usize].shard();
        let before = bytes(&guard);
        change(&mut guard);
        let more = (bytes(&guard) as u64).wrapping_sub(before as u64);
        self.bytes.fetch_add(more, Relaxed);
    }

    /// Whether there are shared groups.
    pub(crate) fn holds_keys(&self) -> bool {
        self.bytes.load(Relaxed) > 0
    }

    /// Takes the shards that `which` chooses by number.
    fn drain_if(&self, which: impl Fn(usize) -> bool) -> Drained {
        if !self.holds_keys() {
            return Drained::default();
        }
        let shards = self.shards.iter().enumerate();
        let drained = shards.map(|(number, lock)| {
            let shard = which(number).then(|| lock.shard().take())??;
            let bytes = shard.entries.bytes() as u64;
            self.bytes.fetch_sub(bytes, Relaxed);
            Some(shard)
        });
        let shards = drained.collect();
        let known = self.columns.lock().unwrap_or_else(|e| e.into_inner());
        Drained {
            plan: known.as_ref().map(|(plan, _)| plan.clone()),
            shards,
        }
    }

    /// Takes all shards.
    pub(crate) fn drain(&self) -> Drained {
        self.drain_if(|_| true)
    }

    /// If all groups together exceed the budget: takes an average share of it out of the shards, to be spilled. The returned
    /// share accounts for these groups until they are written.
    pub(crate) fn drain_excess(&self, budget: &Arc<Budget>) -> Option<(Drained, Share)> {
        if !self.holds_keys() {
            return None;
        }
        let mut spills = self.spills.lock().unwrap_or_else(|e| e.into_inner());
        // Another worker may have taken them by now.
        let bytes = self.bytes.load(Relaxed);
        if !spills.share.set(bytes) || bytes == 0 {
            return None;
        }
        // Workers that don't share yet soon will, and free memory. Wait while that may be most of it.
        let all_share = self.sharers.load(Relaxed) == self.partials.load(Relaxed);
        if !all_share && bytes < budget.used() / 16 * 9 {
            return None;
        }
        let (shards, first) = (self.shards.len(), spills.next);
        let part = u128::from(budget.average().min(bytes)) * shards as u128;
        let count = part.div_ceil(bytes.into()) as usize;
        let drained = self.drain_if(|number| (number + shards - first) % shards < count);
        spills.next = (first + count) % shards;
        let left = self.bytes.load(Relaxed);
        spills.share.set(left);
        let mut spilling = Share::new(budget);
        spilling.set(bytes.saturating_sub(left));
        Some((drained, spilling))
    }
}
