//! The contract between an engine and what takes its blocks.

use crate::record::block::Block;

/// Receives blocks.
pub trait Sink: Sync {
    /// Takes a block, on any thread, in any order, several at the same time.
    ///
    /// # Errors
    /// The lowest record of the block that can't be taken. Blocks before it are still delivered,
    /// and of all failures of a run the lowest is reported.
    fn block(&self, block: &Block<'_>) -> Result<(), Malformed>;

    /// For a sink that puts its results into the input's order and must not hold too many of them:
    /// no block is handed out that is this many ahead of the first unfinished one, as long as no
    /// read has failed. With one, blocks come one at a time, in the input's order; `None` leaves
    /// the order free.
    fn window(&self) -> Option<u64> {
        None
    }
}

/// A record that can't be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Its first byte, from the block's start.
    pub start: usize,
    /// One past its last byte, the line's end not counted.
    pub end: usize,
    /// What is wrong with it.
    pub cause: String,
    /// Whether the record is innocent, because what failed is the sink's own, as a file that it
    /// writes: then the run ends with the cause alone, without file, bytes and line.
    pub innocent: bool,
}
