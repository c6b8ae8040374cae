//! What a table becomes at the end: its keys in byte order, in memory or in a file.

use std::io;
use std::ops::Range;
use std::path::Path;

use crate::group::accumulate::stats::Stats;

/// The keys of a table in byte order, with their statistics.
pub(crate) trait SortedKeys: Send + Sync {
    fn len(&self) -> usize;
    fn key(&self, at: usize) -> &[u8];
    fn iter(&self, range: Range<usize>) -> Box<dyn Iterator<Item = (&[u8], Stats)> + '_>;

    /// Takes out the statistics that did not fit their entries. Such keys have an entry as well.
    fn take_overflow(&mut self) -> Vec<(Vec<u8>, Stats)> {
        Vec::new()
    }

    /// Moves the keys to a file in `directory`; returns its bytes.
    ///
    /// # Errors
    /// See [`Region::spill`](crate::group::spill::region::Region::spill).
    fn spill(&mut self, directory: &Path) -> io::Result<u64>;

    /// See [`Region::read_failed`](crate::group::spill::region::Region::read_failed).
    fn read_failed(&self) -> bool;
}
