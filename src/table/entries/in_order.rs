//! The entries of a table as they lie in memory: their slots lie in the order of hashes, and each would be a cache miss.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::iter::Either;
use rayon::prelude::*;

use crate::table::entries::{EntryRef, EntryTable};

/// Bits of a word; no more than half as many entries begin in so many units.
const BITS: usize = u64::BITS as usize;

impl EntryTable {
    /// All entries, as they lie in memory.
    pub(crate) fn in_order(&self) -> impl ParallelIterator<Item = EntryRef> {
        if let (lane_units, Some(key_units)) = self.entry_size() {
            let size = lane_units + key_units;
            let all = (0..self.len).into_par_iter();
            return Either::Left(all.map(move |at| EntryRef::new((at * size) as u32, key_units)));
        }
        let firsts = self.first_units();
        let words = (0..firsts.len()).into_par_iter();
        Either::Right(words.flat_map_iter(move |word| self.in_word(&firsts, word)))
    }

    /// A bit for each unit, set where an entry begins, and after the last one.
    fn first_units(&self) -> Vec<AtomicU64> {
        let mut firsts = Vec::new();
        firsts.resize_with(self.used / BITS + 1, AtomicU64::default);
        let set = |unit: usize| firsts[unit / BITS].fetch_or(1 << (unit % BITS), Relaxed);
        let entries = self.slots.par_iter().filter(|slot| !slot.is_empty());
        entries.for_each(|entry| _ = set(entry.place() as usize));
        set(self.used);
        firsts
    }

    /// The entries that begin in a word of these bits.
    fn in_word(&self, firsts: &[AtomicU64], word: usize) -> impl Iterator<Item = EntryRef> + use<> {
        let bits = |word: usize| firsts.get(word).map_or(0, |bits| bits.load(Relaxed));
        let (mut found, mut count, mut rest) = ([EntryRef(0); BITS / 2], 0, bits(word));
        while rest != 0 {
            let first = BITS * word + rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let next = match rest {
                0 => (word + 1..firsts.len()).find(|word| bits(*word) != 0),
                _ => Some(word),
            };
            let Some(next) = next else { break };
            let bits = if next == word { rest } else { bits(next) };
            let end = BITS * next + bits.trailing_zeros() as usize;
            found[count] = EntryRef::new(first as u32, end - first - self.lane_units);
            count += 1;
        }
        found.into_iter().take(count)
    }
}
