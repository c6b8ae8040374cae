//! What a table becomes at the end: its keys in byte order.

use crate::table::stats::Stats;

/// The keys of a table in byte order, with their statistics.
pub(crate) trait SortedKeys: Send + Sync {
    fn len(&self) -> usize;
    fn key(&self, at: usize) -> &[u8];
    /// Without rows once the key was [removed](Self::remove).
    fn stats(&self, at: usize) -> Stats;
    /// Empties the statistics of a key.
    fn remove(&mut self, at: usize);
    /// Fetches a key and its statistics into the cache.
    fn prefetch(&self, at: usize);

    /// Takes out the statistics that did not fit their entries. Such keys have an entry as well.
    fn take_overflow(&mut self) -> Vec<(Vec<u8>, Stats)> {
        Vec::new()
    }
}
