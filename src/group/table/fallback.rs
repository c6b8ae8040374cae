//! The fallback table: any key, any number. It takes the rows that no other table does.
//!
//! Invariant of this module: a [`FlatEntry`] is made of integers, so any bytes are a valid value.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::Path;

use hashbrown::HashMap;
use rayon::slice::ParallelSliceMut;

use crate::group::accumulate::decimal::{FlatTotals, Number, Totals};
use crate::group::spill::pages::Zeroed;
use crate::group::spill::region::{CHUNK, Region, Spill};

/// Totals by key.
#[derive(Default)]
pub(crate) struct FallbackTable {
    map: HashMap<Vec<u8>, Totals, ahash::RandomState>,
    key_bytes: usize,
}

impl FallbackTable {
    pub(crate) fn add(&mut self, key: &[u8], number: &Number) {
        let before = self.map.len();
        self.map.entry_ref(key).or_default().add(number);
        self.key_bytes += key.len() * (self.map.len() - before);
    }

    pub(crate) fn add_totals(&mut self, key: Vec<u8>, totals: &Totals) {
        let (before, length) = (self.map.len(), key.len());
        self.map.entry(key).or_default().merge(totals);
        self.key_bytes += length * (self.map.len() - before);
    }

    pub(crate) fn merge(&mut self, from: FallbackTable) {
        for (key, totals) in from.map {
            self.add_totals(key, &totals);
        }
    }

    /// Bytes of memory in use, or needed while it is sorted.
    pub(crate) fn bytes(&self) -> u64 {
        /// The allocator's overhead.
        const OVERHEAD: usize = 16;
        let entry = size_of::<(Vec<u8>, Totals)>();
        let keys = self.key_bytes + self.map.len() * (entry + OVERHEAD);
        (self.map.capacity() * (entry + 1) + keys) as u64
    }

    pub(crate) fn into_sorted(self) -> SortedFallback {
        let mut sorted: Vec<_> = self.map.into_iter().collect();
        sorted.par_sort_unstable_by(|a, b| a.0.cmp(&b.0));
        SortedFallback::Memory(sorted)
    }
}

/// Keys and totals in byte order of the keys, in memory or in files.
pub(crate) enum SortedFallback {
    Memory(Vec<(Vec<u8>, Totals)>),
    File {
        entries: Region<FlatEntry>,
        keys: Region<u8>,
    },
}

/// Totals without pointers: the key is a range of the file of keys.
#[derive(Clone, Copy)]
pub(crate) struct FlatEntry {
    totals: FlatTotals,
    key_start: usize,
    key_end: usize,
}

/// The key of an entry; empty where a failed read left a range that makes no sense.
fn key<'a>(keys: &'a Region<u8>, entry: &FlatEntry) -> &'a [u8] {
    let key = keys.get(entry.key_start..entry.key_end);
    key.unwrap_or_default()
}

// SAFETY: integers.
unsafe impl Zeroed for FlatEntry {}
// SAFETY: a byte.
unsafe impl Zeroed for u8 {}

impl SortedFallback {
    pub(crate) fn len(&self) -> usize {
        match self {
            SortedFallback::Memory(entries) => entries.len(),
            SortedFallback::File { entries, .. } => entries.len(),
        }
    }

    pub(crate) fn key(&self, at: usize) -> &[u8] {
        match self {
            SortedFallback::Memory(entries) => &entries[at].0,
            SortedFallback::File { entries, keys } => key(keys, &entries[at]),
        }
    }

    pub(crate) fn iter(
        &self,
        range: Range<usize>,
    ) -> Box<dyn Iterator<Item = (&[u8], Cow<'_, Totals>)> + '_> {
        match self {
            SortedFallback::Memory(entries) => {
                let entries = entries[range].iter();
                Box::new(entries.map(|(key, totals)| (&key[..], Cow::Borrowed(totals))))
            }
            SortedFallback::File { entries, keys } => {
                let chunks = entries.chunks(range).flat_map(|chunk| {
                    if let (Some(first), Some(last)) = (chunk.first(), chunk.last()) {
                        keys.will_need(first.key_start, last.key_end);
                    }
                    chunk
                });
                // Keys lie in the order of entries.
                let mut checked = 0;
                Box::new(chunks.map(move |entry| {
                    if checked < entry.key_end {
                        keys.is_sound(entry.key_start..entry.key_end);
                        checked = entry.key_end.next_multiple_of(CHUNK);
                    }
                    let totals = Cow::Owned(Totals::from(&entry.totals));
                    (key(keys, entry), totals)
                }))
            }
        }
    }

    /// Whether a key couldn't be read back.
    pub(crate) fn read_failed(&self) -> bool {
        match self {
            SortedFallback::Memory(_) => false,
            SortedFallback::File { entries, keys } => entries.read_failed() || keys.read_failed(),
        }
    }

    /// Moves the keys to files in `directory`; returns their bytes.
    ///
    /// # Errors
    /// The files can't be made, written or mapped; the keys stay in memory.
    pub(crate) fn spill(&mut self, directory: &Path) -> io::Result<u64> {
        let SortedFallback::Memory(sorted) = self else {
            return Ok(0);
        };
        let (mut entries, mut keys) = (Spill::new(directory)?, Spill::new(directory)?);
        let mut key_start = 0;
        // In small chunks, because memory is short.
        for sorted in sorted.chunks(1024) {
            let mut text = Vec::new();
            let flat = sorted.iter().map(|(key, totals)| {
                text.extend_from_slice(key);
                let key_end = key_start + key.len();
                let key_start = std::mem::replace(&mut key_start, key_end);
                FlatEntry {
                    totals: totals.into(),
                    key_start,
                    key_end,
                }
            });
            entries.write(&flat.collect::<Vec<_>>())?;
            keys.write(&text)?;
        }
        let (entries, keys) = (entries.finish()?, keys.finish()?);
        let bytes = size_of_val(&*entries) + size_of_val(&*keys);
        *self = SortedFallback::File { entries, keys };
        Ok(bytes as u64)
    }
}
