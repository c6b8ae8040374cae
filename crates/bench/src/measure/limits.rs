//! What limits a result: the device's, the page cache's, memory's and the processors' rates, and a result's shares.

use serde::{Deserialize, Serialize};

use crate::measure::statistics::Spread;

/// The rates that no result can exceed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Ceilings {
    /// The device's rate: our ring with O_DIRECT, and nobody looks at the bytes. Of runs of the cold cases.
    pub device_gib_per_s: Option<Spread>,
    /// The rate at which all threads copy out of the page cache. Of runs of the cached cases.
    pub page_cache_copy_gib_per_s: Option<Spread>,
    /// The rate at which threads read memory, by their number.
    #[serde(default)]
    pub memory: Vec<MemoryRate>,
    /// What couldn't be measured, and why.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// How fast a number of threads reads memory.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct MemoryRate {
    /// Threads.
    pub threads: usize,
    /// All of them together, the best of several passes.
    pub gib_per_s: f64,
}

/// What a result is limited by.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bound {
    /// The resource of which it uses the largest share.
    pub by: Resource,
    /// All shares that are known, the largest first; 1 is all there is.
    pub shares: Vec<Share>,
}

/// How much of a resource a result uses.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Share {
    /// Which.
    pub of: Resource,
    /// How much; 1 is all there is.
    pub share: f64,
}

/// What may limit a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// The rate of raw reads.
    Device,
    /// The rate of copies out of the page cache.
    PageCacheCopy,
    /// The rate at which all threads read memory.
    Memory,
    /// All processors.
    Processors,
    /// As much time as one processor has: of a program with one thread that is the limit.
    OneProcessor,
}

impl Resource {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Device => "device",
            Resource::PageCacheCopy => "copying",
            Resource::Memory => "memory",
            Resource::Processors => "all CPUs",
            Resource::OneProcessor => "one CPU",
        }
    }
}
