//! The defaults of a run: buffers and their size, threads, read-ahead, and what may be loaded.
//!
//! In a control group they follow its memory limit, because beyond it the kernel kills the process; tables,
//! threads and pages that are being read count too. The probe reports the same figures.

mod buffers;

use crate::error::Result;
use crate::error::refusal::{Refusal, Refuser};
use crate::error::setting::Setting;
use crate::input::spans::Input;
use crate::linux::cgroups::memory_limit;

/// Bytes of a read: large enough that the ring's thread is mostly idle, and small enough that most devices
/// take it as one request. Larger ones are slower where a virtual machine's host copies.
pub const RING_BLOCK: usize = 512 << 10;
/// Reads in flight: with [`RING_BLOCK`] 16 MiB, enough for several drives.
pub const DEPTH: usize = 32;
/// The most threads that can be asked for; more must be a mistake.
pub(crate) const MAX_THREADS: usize = 1024;
/// Bytes of a block that a worker reads itself. Smaller ones would stay in the core's own cache, but copying
/// them is slower.
const PREAD_BLOCK: usize = 2 << 20;
/// The most bytes that a worker maps at once. Unmapping a window interrupts all processors of the run, so
/// that smaller windows are slower.
const MMAP_BLOCK: usize = 16 << 20;
/// Bytes of a block that a worker fetches itself with a stateful framing. All of it is gone over twice, for its effect and
/// by the job, so it should stay in the core's own cache in between.
const STATEFUL_BLOCK: usize = 512 << 10;
/// Bytes that a worker's tables may grow by for each byte of a block. Their size is checked only between blocks. Each row of a
/// block may be a new key, and a table that grows takes its memory twice for a while.
const GROWTH: usize = 16;
/// The smallest block under a memory limit.
const LEAST_BLOCK: usize = 32 << 10;
/// Spare buffers of less than [`LARGE_BLOCK`], beside those in flight and with workers: without them the
/// device waits as soon as a worker lags behind.
const SPARE: usize = 12;
/// From this size on spare buffers cost memory and gain nothing.
const LARGE_BLOCK: usize = 1 << 20;
/// The fewest buffers, where there are as many reads.
const BUFFERS_MIN: usize = 8;
/// Bytes of a worker with buffers, stack and the tables of some hundred keys. Tables that need more are
/// spilled.
const WORKER: u64 = 4 << 20;
/// The read-ahead assumed of a file system that doesn't report it, as an overlay: a large one.
const UNKNOWN_READ_AHEAD: u64 = 8 << 20;

/// The memory that a run may use.
#[derive(Debug, Clone, Copy)]
pub struct MemoryLimit {
    /// The control groups' limit, if there is one.
    limit: Option<u64>,
}

impl MemoryLimit {
    /// No limit.
    #[cfg(test)]
    pub(crate) const UNLIMITED: MemoryLimit = MemoryLimit { limit: None };

    /// The limit of this process.
    pub fn of_this_process() -> MemoryLimit {
        MemoryLimit {
            limit: memory_limit(),
        }
    }

    /// Whether there is a limit at all.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Workers: one for each processor, of those in `pin` if any are named, but no more than fit into half of
    /// the memory.
    pub fn threads(&self, pin: &[u32]) -> usize {
        let processors = match pin.len() {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            named => named,
        };
        self.threads_of(processors)
    }

    fn threads_of(&self, processors: usize) -> usize {
        let fit = self.limit.map_or(u64::MAX, |limit| limit / 2 / WORKER);
        let fit = usize::try_from(fit).unwrap_or(usize::MAX);
        processors.min(fit).clamp(1, MAX_THREADS)
    }

    /// Bytes of a read, these if they fit, for rings with as many buffers as `buffers` gives for a size.
    pub(crate) fn ring_block(&self, wanted: usize, buffers: impl Fn(usize) -> usize) -> usize {
        let block = self.within(wanted, buffers(wanted));
        self.within(block, buffers(block))
    }

    /// The bytes that each worker reads at once, and maps at once.
    pub(crate) fn local_blocks(&self, threads: usize, stateful: bool) -> (usize, usize) {
        let (read, map) = match stateful {
            true => (STATEFUL_BLOCK, STATEFUL_BLOCK),
            false => (PREAD_BLOCK, MMAP_BLOCK),
        };
        let grown = threads * GROWTH;
        (self.within(read, grown), self.within(map, grown))
    }

    /// The size of a block of which `count` take at most an eighth of the memory.
    fn within(&self, block: usize, count: usize) -> usize {
        let Some(limit) = self.limit else {
            return block;
        };
        let each = usize::try_from(limit / 8).unwrap_or(usize::MAX) / count.max(1);
        let fits = 1 << each.checked_ilog2().unwrap_or(0);
        block.min(fits).max(LEAST_BLOCK)
    }

    /// How far the run reads ahead itself, where the memory is too small for the kernel's read-ahead: `usual`
    /// bytes (`None`: unknown) of a file of `len`, at each of `places`.
    ///
    /// Pages that are being read can't be reclaimed. Each place has two windows of them; when they fill the
    /// group, the next page that anybody needs gets the process killed.
    pub(crate) fn own_read_ahead(
        &self,
        usual: Option<u64>,
        len: u64,
        places: usize,
    ) -> Option<u64> {
        let limit = self.limit?;
        let window = usual.unwrap_or(UNKNOWN_READ_AHEAD).min(len);
        let under_way = window.saturating_mul(2).saturating_mul(places as u64);
        (under_way > limit / 4).then_some(limit / 16)
    }

    /// How many bytes of files may stay in the page cache where `available` bytes of the machine's memory are: a quarter, so
    /// that they take it from nobody, and live until the next run.
    pub(crate) fn page_cache(&self, available: u64) -> u64 {
        self.limit.unwrap_or(u64::MAX).min(available) / 4
    }

    /// Refuses to load an input that doesn't fit twice, because loading copies it into one piece.
    pub(crate) fn check_loadable(&self, input: &Input) -> Result<()> {
        let (Some(len), Some(limit)) = (input.len(), self.limit) else {
            return Ok(());
        };
        if len.saturating_mul(2) <= limit / 8 * 7 {
            return Ok(());
        }
        let why = format!(
            "loading {len} bytes takes twice as much, and the control group allows {limit}"
        );
        let choice = Setting::Engine.of("memory");
        Err(Refusal::not_granted(choice, Refuser::ControlGroup, why).into())
    }
}

/// Buffers of `block` bytes for each of the `rings`: one for each read in flight, and two for each worker.
/// Small blocks get spare ones, and at least a mebibyte in all (up to 256 buffers), so that workers and
/// dispatcher needn't wake each other for every block.
pub(crate) fn buffers(block: usize, depth: usize, threads: usize, rings: usize) -> usize {
    let spare = if block < LARGE_BLOCK { SPARE } else { 0 };
    let needed = depth + (2 * threads + spare).div_ceil(rings);
    needed.max((LARGE_BLOCK / block).min(256))
}

/// The most buffers for a number of reads: touching fresh memory takes about as long as a read into it, and a
/// file that is mostly cached leaves few reads.
pub(crate) fn buffers_at_most(reads: u64) -> usize {
    usize::try_from(reads / 4).map_or(usize::MAX, |quarter| quarter.max(BUFFERS_MIN))
}

#[cfg(test)]
mod tests {
    use crate::engine::plan::sizing::*;

    fn of_mib(mib: u64) -> MemoryLimit {
        MemoryLimit {
            limit: Some(mib << 20),
        }
    }

    const FREE: MemoryLimit = MemoryLimit { limit: None };

    /// Whatever the machine has, half of the memory is left to everything else.
    #[test]
    fn small_groups_have_few_threads() {
        for (mib, processors, threads) in [
            (1, 64, 1),
            (12, 64, 1),
            (16, 64, 2),
            (16, 1, 1),
            (64, 64, 8),
            (64, 2, 2),
            (1 << 20, 5000, MAX_THREADS),
        ] {
            assert_eq!(of_mib(mib).threads_of(processors), threads, "{mib} MiB");
        }
        assert_eq!(FREE.threads_of(64), 64);
        assert_eq!(FREE.threads(&[3, 5, 7]), 3);
        assert_eq!(of_mib(16).threads(&[3, 5, 7]), 2);
    }

    #[test]
    fn blocks_of_workers_fit() {
        assert_eq!(FREE.local_blocks(64, false), (PREAD_BLOCK, MMAP_BLOCK));
        let small = 64 << 10;
        assert_eq!(of_mib(16).local_blocks(2, false), (small, small));
        let stateful = (STATEFUL_BLOCK, STATEFUL_BLOCK);
        assert_eq!(FREE.local_blocks(64, true), stateful);
        assert_eq!(of_mib(64).local_blocks(2, true), (256 << 10, 256 << 10));
        for (mib, threads) in [(64, 2), (200, 3), (1 << 14, 64)] {
            let (read, map) = of_mib(mib).local_blocks(threads, false);
            let grown = (threads * GROWTH) as u64;
            assert!(read.max(map) as u64 * grown <= (mib << 20) / 8, "{mib} MiB");
        }
    }

    #[test]
    fn what_is_read_ahead_takes_a_quarter() {
        let file = 1 << 30;
        let usual = Some(128 << 10);
        assert_eq!(FREE.own_read_ahead(Some(8 << 20), file, 64), None);
        assert_eq!(of_mib(16).own_read_ahead(usual, file, 1), None);
        assert_eq!(of_mib(16).own_read_ahead(usual, file, 17), Some(1 << 20));
        let far = Some(8 << 20);
        assert_eq!(of_mib(16).own_read_ahead(far, file, 1), Some(1 << 20));
        assert_eq!(of_mib(64).own_read_ahead(far, file, 1), None);
        assert_eq!(of_mib(64).own_read_ahead(far, file, 2), Some(4 << 20));
        assert_eq!(of_mib(16).own_read_ahead(None, file, 1), Some(1 << 20));
        assert_eq!(
            of_mib(16).own_read_ahead(far, 1 << 20, 2),
            None,
            "a small file"
        );
    }
}
