//! The tables that all workers of a run share when memory is short, so that each key is in memory once
//! and not once for each worker.
//!
//! Sharing begins when the first partial would have to spill. Every other partial moves its keys to the
//! shards when it gets its next block. If the shared keys exceed the budget too, each worker that notices
//! spills some of the shards, so that several workers write at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::budget::{Budget, Share};
use crate::table::config::TableConfig;
use crate::table::tables::{ClassShards, DrainedClasses, Tables};

/// The shared keys, and the partials that share them.
pub(crate) struct SharedTables {
    shards: ClassShards,
    spills: Mutex<Spills>,
    requested: AtomicBool,
    partials: AtomicUsize,
    /// Partials whose keys are in the shards.
    sharers: AtomicUsize,
}

struct Spills {
    /// What the shards take of the budget.
    share: Share,
    /// The shard that is spilled next.
    next: usize,
}

impl SharedTables {
    pub(crate) fn new(config: TableConfig, budget: &Arc<Budget>) -> Self {
        let share = Share::new(budget);
        SharedTables {
            shards: ClassShards::new(config),
            spills: Mutex::new(Spills { share, next: 0 }),
            requested: AtomicBool::new(false),
            partials: AtomicUsize::new(0),
            sharers: AtomicUsize::new(0),
        }
    }

    /// Tables for one more partial.
    pub(crate) fn tables(&self) -> Tables {
        self.partials.fetch_add(1, Relaxed);
        Tables::new(&self.shards)
    }

    /// Asks all partials to share their keys, if there are several.
    pub(crate) fn request_sharing(&self) {
        if self.partials.load(Relaxed) > 1 {
            self.requested.store(true, Relaxed);
        }
    }

    pub(crate) fn sharing_requested(&self) -> bool {
        self.requested.load(Relaxed)
    }

    /// Counts one more partial that shares.
    pub(crate) fn add_sharer(&self) {
        self.sharers.fetch_add(1, Relaxed);
    }

    /// Partials that share.
    pub(crate) fn sharers(&self) -> u64 {
        self.sharers.load(Relaxed) as u64
    }

    /// If all tables together exceed the budget: takes an average share of it out of the shards, to be
    /// spilled. The returned share accounts for these keys until they are written.
    pub(crate) fn drain_excess(&self, budget: &Arc<Budget>) -> Option<(DrainedClasses, Share)> {
        if !self.holds_keys() {
            return None;
        }
        let mut spills = self.spills.lock().unwrap_or_else(|e| e.into_inner());
        // Another worker may have taken them by now.
        let bytes = self.shards.bytes();
        if !spills.share.set(bytes) || bytes == 0 {
            return None;
        }
        // Partials that don't share yet soon will, and free memory. Wait while that may be most of it.
        let all_share = self.sharers.load(Relaxed) == self.partials.load(Relaxed);
        if !all_share && bytes < budget.used() / 16 * 9 {
            return None;
        }
        let (shards, first) = (self.shards.shard_count(), spills.next);
        let part = u128::from(budget.average().min(bytes)) * shards as u128;
        let count = part.div_ceil(bytes.into()) as usize;
        let taken = self
            .shards
            .drain_if(|number| (number + shards - first) % shards < count);
        spills.next = (first + count) % shards;
        let left = self.shards.bytes();
        spills.share.set(left);
        let mut spilling = Share::new(budget);
        spilling.set(bytes.saturating_sub(left));
        Some((taken, spilling))
    }

    /// Takes all shared keys.
    pub(crate) fn drain_all(&self) -> DrainedClasses {
        self.shards.drain_if(|_| true)
    }

    /// An empty set of shared keys.
    pub(crate) fn drain_none(&self) -> DrainedClasses {
        self.shards.drain_if(|_| false)
    }

    pub(crate) fn holds_keys(&self) -> bool {
        self.shards.bytes() > 0
    }
}
