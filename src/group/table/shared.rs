//! What the partials of a run have in common: the keys that they share when memory is short, so that each
//! is in it once and not once a worker.
//!
//! Sharing begins with the first partial that would have to spill. Each other hands its tables over when it
//! is worked on next. If all that is still too much, whoever sees it spills some of the shards, so that as
//! many workers write as come by.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::group::spill::budget::{Budget, Share};
use crate::group::table::config::TableConfig;
use crate::group::table::tables::{Shared, Tables, Taken};

/// Keys of a size that a worker keeps to itself when it shares the others: as many as a cache holds.
pub(crate) const LOCAL_KEYS_MAX: usize = 3 << 14;

/// Many more shards than workers, so that few ever wait for one.
pub(crate) fn shard_bits() -> u32 {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    (16 * workers).next_power_of_two().ilog2().clamp(6, 10)
}

/// The keys that are shared, and who shares.
pub(crate) struct SharedTables {
    shared: Shared,
    spills: Mutex<Spills>,
    wanted: AtomicBool,
    partials: AtomicUsize,
    /// Partials that do share.
    sharing: AtomicUsize,
}

struct Spills {
    /// What is taken of the budget.
    share: Share,
    /// The shard that is next to be spilled.
    next: usize,
}

impl SharedTables {
    pub(crate) fn new(job: TableConfig, budget: &Arc<Budget>) -> Self {
        let share = Share::new(budget);
        SharedTables {
            shared: Shared::new(job),
            spills: Mutex::new(Spills { share, next: 0 }),
            wanted: AtomicBool::new(false),
            partials: AtomicUsize::new(0),
            sharing: AtomicUsize::new(0),
        }
    }

    /// The tables of one partial more.
    pub(crate) fn tables(&self) -> Tables {
        self.partials.fetch_add(1, Relaxed);
        Tables::new(&self.shared)
    }

    /// Has all partials share their keys, if there are several.
    pub(crate) fn want(&self) {
        if self.partials.load(Relaxed) > 1 {
            self.wanted.store(true, Relaxed);
        }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Relaxed)
    }

    /// Tells that one partial more does share.
    pub(crate) fn joined(&self) {
        self.sharing.fetch_add(1, Relaxed);
    }

    /// Partials that do share.
    pub(crate) fn sharing(&self) -> u64 {
        self.sharing.load(Relaxed) as u64
    }

    /// What is to be spilled because all together have outgrown their budget: an average part of it, if
    /// that much is shared, and what it takes of the budget until it is written.
    pub(crate) fn outgrown(&self, budget: &Arc<Budget>) -> Option<(Taken, Share)> {
        if !self.holds_keys() {
            return None;
        }
        let mut spills = self.spills.lock().unwrap_or_else(|e| e.into_inner());
        // Another may have taken them by now.
        let bytes = self.shared.bytes();
        if !spills.share.set(bytes) || bytes == 0 {
            return None;
        }
        // Who doesn't share yet soon does, and gives memory back: as long as that may be most of it, wait.
        let all_share = self.sharing.load(Relaxed) == self.partials.load(Relaxed);
        if !all_share && bytes < budget.used() / 16 * 9 {
            return None;
        }
        let (shards, first) = (self.shared.shards(), spills.next);
        let part = u128::from(budget.average().min(bytes)) * shards as u128;
        let count = part.div_ceil(bytes.into()) as usize;
        let taken = self
            .shared
            .take(|number| (number + shards - first) % shards < count);
        spills.next = (first + count) % shards;
        let left = self.shared.bytes();
        spills.share.set(left);
        let mut spilling = Share::new(budget);
        spilling.set(bytes.saturating_sub(left));
        Some((taken, spilling))
    }

    /// All that is shared; nothing is from then on.
    pub(crate) fn take(&self) -> Taken {
        self.shared.take(|_| true)
    }

    /// What is shared as long as nothing is.
    pub(crate) fn nothing(&self) -> Taken {
        self.shared.take(|_| false)
    }

    pub(crate) fn holds_keys(&self) -> bool {
        self.shared.bytes() > 0
    }
}
