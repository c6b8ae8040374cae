//! The buffers that a run with defaults takes, as the probe reports them.

use crate::engine::arena::Layout;
use crate::engine::knobs::HugePages;
use crate::engine::plan::sizing::{DEPTH, MemoryLimit, buffers};
use crate::linux::pages::{HUGE_PAGE, PAGE};
use crate::units::size;

/// Bytes that the ring itself locks, at most, at a usual depth.
const RING_LOCKED: u64 = 64 << 10;

impl MemoryLimit {
    /// The buffers that a run of a large file with this many workers takes.
    pub fn ring(&self, threads: usize) -> Buffers {
        let of = |block| buffers(block, DEPTH, threads, 1);
        let block = self.ring_block(super::RING_BLOCK, of);
        let slots = of(block);
        Buffers(Layout { block, slots })
    }
}

/// A ring's buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers(Layout);

impl Buffers {
    /// How many.
    pub fn count(&self) -> u64 {
        self.0.slots as u64
    }

    /// Bytes a read into one of them.
    pub fn block(&self) -> u64 {
        self.0.block as u64
    }

    /// The memory that a run locks by registering them.
    pub fn locks(&self) -> u64 {
        self.0.bytes(HugePages::Auto) as u64 + RING_LOCKED
    }

    /// How many of them fit a limit on locked memory. Huge pages are charged whole.
    pub fn within(&self, limit: u64) -> u64 {
        let huge = HUGE_PAGE as u64;
        let bytes = match limit.saturating_sub(RING_LOCKED) {
            bytes if bytes >= huge => bytes / huge * huge,
            bytes => bytes,
        };
        bytes.saturating_sub(PAGE as u64) / self.0.stride() as u64
    }

    /// In words.
    pub fn words(&self) -> String {
        format!("{} of {}", self.count(), size(self.block()))
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::plan::sizing::MemoryLimit;

    fn of_mib(mib: u64) -> MemoryLimit {
        MemoryLimit {
            limit: Some(mib << 20),
        }
    }

    #[test]
    fn buffers_take_an_eighth() {
        assert_eq!(MemoryLimit { limit: None }.ring(2).words(), "48 of 512 KiB");
        assert_eq!(of_mib(256).ring(2).words(), "48 of 512 KiB");
        assert_eq!(of_mib(64).ring(2).words(), "48 of 128 KiB");
        assert_eq!(of_mib(1).ring(2).words(), "48 of 32 KiB");
        for mib in [16, 40, 64, 1000] {
            for threads in 1..=of_mib(mib).threads_of(64) {
                let taken = of_mib(mib).ring(threads);
                assert!(
                    taken.count() * taken.block() <= (mib << 20) / 8,
                    "{mib} MiB"
                );
            }
        }
    }
}
