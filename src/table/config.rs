//! What all tables of one run are made with.

use crate::level::Level;
use crate::table::isa::Seeds;

/// Keys of a size that a worker keeps in its local table when it shares the others: as many as a cache
/// holds.
const LOCAL_KEYS_MAX: usize = 3 << 14;

/// Bits of the number of shards. There are many more shards than workers, so that two workers rarely want
/// the same lock.
fn shard_bits() -> u32 {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    (16 * workers).next_power_of_two().ilog2().clamp(6, 10)
}

/// The settings that the tables of a run have in common.
#[derive(Clone)]
pub(crate) struct TableConfig {
    pub(crate) level: Level,
    pub(crate) seeds: Seeds,
    pub(crate) delimiter: u8,
    /// Keys of a size that a worker still keeps in a table of its own when it shares the others.
    pub(crate) local_keys_max: usize,
    /// Each size of keys has 2^`shard_bits` shards.
    pub(crate) shard_bits: u32,
}

impl TableConfig {
    pub(crate) fn new(level: Level, seeds: Seeds, delimiter: u8) -> TableConfig {
        TableConfig {
            level,
            seeds,
            delimiter,
            local_keys_max: LOCAL_KEYS_MAX,
            shard_bits: shard_bits(),
        }
    }
}
