//! What several sections need to know about the machine.

use ringfold_read::Result;
use ringfold_read::internals::sizing::MemoryLimit;

/// What the summary and other sections need to know about the machine.
pub(crate) struct Machine {
    /// Why there is no ring, where there is none.
    pub(crate) ring: Result<()>,
    /// Whether `auto` uses the ring on this kernel.
    pub(crate) trusted: Result<()>,
}

impl Machine {
    /// Whether `auto` uses the ring.
    pub(crate) fn auto_rings(&self) -> bool {
        self.ring.is_ok() && self.trusted.is_ok()
    }
}

/// Bytes of a read by default.
pub(crate) fn default_block() -> u64 {
    let memory = MemoryLimit::of_this_process();
    memory.ring(memory.threads(&[])).block()
}
