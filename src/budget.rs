//! The memory budget of all tables of a run, and the directory of the temporary files beyond it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use ringfold_read::CancellationToken;
use ringfold_read::internals::{cgroups, describe, errno_name, proc};

use crate::refusal::Refusal;

/// Bytes of the available memory that are left to buffers and everything else.
const RESERVE: u64 = 64 << 20;
/// The part of the rest that tables may take: while they grow or merge they need up to twice as much.
const FRACTION: f64 = 0.4;
/// A budget that was named is exceeded by no more than this while groups are put in order, merged or looked at; another one
/// by as much as it is itself.
const SLACK: u64 = 32 << 20;
/// One thread at a time writes groups of more bytes.
const LARGE: usize = 64 << 10;
/// Unless the budget was named, a partial of fewer bytes is never spilled: it is too small for a file.
const SHARE_MIN: u64 = 4 << 20;

/// The least memory of a control group that aggregation is promised to hold in, whatever the number of keys: below
/// it the merge of what was spilled may take too much, and the kernel kills.
#[cfg(feature = "cli")]
pub(crate) const GROUP_MIN: u64 = 64 << 20;

/// The limit on all partials of a run.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Unless named, it is looked up when a partial is first large enough to be spilled, because reading
    /// /proc is slow compared with a small run.
    bytes: OnceLock<u64>,
    /// Bytes that a partial may take in any case.
    share_min: u64,
    directory: PathBuf,
    used: AtomicU64,
    shares: AtomicU64,
    /// Held by who writes long groups.
    writing: Mutex<()>,
    /// Ends the run, and what is done with its groups.
    pub(crate) cancellation: Option<CancellationToken>,
}

impl Budget {
    /// A budget of so many bytes. `None` is a part of the available memory, or of the control group's limit.
    pub(crate) fn new(
        bytes: Option<u64>,
        directory: &Path,
        cancellation: Option<CancellationToken>,
    ) -> Arc<Self> {
        Arc::new(Budget {
            bytes: bytes.map_or_else(OnceLock::new, OnceLock::from),
            share_min: if bytes.is_some() { 0 } else { SHARE_MIN },
            directory: directory.into(),
            used: AtomicU64::new(0),
            shares: AtomicU64::new(0),
            writing: Mutex::new(()),
            cancellation,
        })
    }

    /// The limit.
    pub(crate) fn bytes(&self) -> u64 {
        *self.bytes.get_or_init(default_bytes)
    }

    /// Whether so many bytes may be taken for a while.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let slack = match self.share_min {
            0 => SLACK,
            least => self.bytes().max(least),
        };
        bytes <= self.bytes().saturating_add(slack)
    }

    /// Lets one after the other write groups, if these are so large that what is written would take much memory.
    pub(crate) fn turn(&self, largest: usize) -> Option<MutexGuard<'_, ()>> {
        let guard = || self.writing.lock().unwrap_or_else(|e| e.into_inner());
        (largest > LARGE).then(guard)
    }

    /// Leaves the work if the run was cancelled, see [`CancellationToken::unwind`].
    pub(crate) fn unwind(&self) {
        self.cancellation.as_ref().inspect(|token| token.unwind());
    }

    /// Bytes of all shares together.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The average bytes of a share.
    pub(crate) fn average(&self) -> u64 {
        self.used() / self.shares.load(Ordering::Relaxed).max(1)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Why a failed spill ends the run.
    pub(crate) fn spill_error(&self, error: &io::Error) -> Refusal {
        let name = error.raw_os_error().and_then(errno_name);
        let name = name.map_or(String::new(), |name| format!(" [{name}]"));
        Refusal::NotSpilled {
            memory: self.bytes(),
            directory: self.directory.clone(),
            why: format!("{}{name}", describe(error)),
        }
    }
}

/// The bytes that a partial, or the shared tables, take of the budget; given back on drop.
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Share {
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        budget.shares.fetch_add(1, Ordering::Relaxed);
        Share {
            budget: Arc::clone(budget),
            bytes: 0,
        }
    }

    /// Sets the bytes in use, of which reducing them takes `more`. Returns whether all shares together exceed the budget, and
    /// this one is large enough to be reduced: at least half of the average.
    pub(crate) fn set_with(&mut self, bytes: u64, more: u64) -> bool {
        let exceeds = self.set(bytes);
        let more = more.saturating_mul(self.budget.shares.load(Ordering::Relaxed));
        let is_large = bytes >= self.budget.share_min.max(self.budget.average() / 2);
        exceeds
            || is_large
                && !self
                    .budget
                    .has_room(self.budget.used().saturating_add(more))
    }

    /// The same, where that takes little.
    pub(crate) fn set(&mut self, bytes: u64) -> bool {
        let change = bytes.wrapping_sub(self.bytes);
        self.budget.used.fetch_add(change, Ordering::Relaxed);
        self.bytes = bytes;
        bytes >= self.budget.share_min.max(self.budget.average() / 2)
            && self.budget.used() > self.budget.bytes()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
        self.budget.shares.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The budget where none is named.
pub(crate) fn default_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let available = proc::text("/proc/meminfo")
            .ok()
            .and_then(|text| proc::kib_field(&text, "MemAvailable"));
        let least = available.into_iter().chain(cgroups::memory_limit()).min();
        least.map_or(u64::MAX, |bytes| {
            (bytes.saturating_sub(RESERVE) as f64 * FRACTION) as u64
        })
    })
}

/// The default directory of large temporary files: `TMPDIR`, else /var/tmp, because /tmp is often in memory.
pub(crate) fn default_directory() -> PathBuf {
    let named = std::env::var_os("TMPDIR").filter(|name| !name.is_empty());
    named.map_or_else(|| "/var/tmp".into(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use crate::budget::*;

    #[test]
    fn large_shares_are_reduced() {
        let budget = Budget::new(Some(100), Path::new("/"), None);
        let mut shares = [(); 3].map(|()| Share::new(&budget));
        assert!(!shares[0].set(60));
        assert!(!shares[1].set(40));
        assert!(!shares[2].set(10), "a small one stays");
        assert!(shares[0].set(60));
        assert!(!shares[0].set(0));
        drop(shares);
        let mut alone = Share::new(&budget);
        assert!(!alone.set(100));
        assert!(alone.set(101));
    }

    #[test]
    fn the_default_is_looked_up_for_large_partials_only() {
        let budget = Budget::new(None, Path::new("/"), None);
        let mut share = Share::new(&budget);
        assert!(!share.set(SHARE_MIN - 1));
        assert_eq!(budget.bytes.get(), None);
        share.set(SHARE_MIN);
        assert_eq!(budget.bytes.get(), Some(&default_bytes()));
    }
}
