//! What all tables of one run are made with.

use crate::group::table::isa::Seeds;
use crate::level::Level;

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
