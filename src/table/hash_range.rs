//! Ranges of hashes. Slots lie in the order of their hashes, so a range is a contiguous part of every dense
//! table, and ranges can be merged in parallel.

use std::ops::Range;

use crate::table::accumulator::EntryStats;
use crate::table::dense::{DenseEntry, DenseTable, EntryRef};
use crate::table::key::Key;
use crate::table::stats::Stats;

/// How many slots ahead entries are prefetched.
const PREFETCH_DISTANCE: usize = 32;

/// The hashes that begin with the same bits.
#[derive(Clone, Copy)]
pub(crate) struct HashRange {
    pub(crate) bits: u32,
    pub(crate) number: u32,
}

impl HashRange {
    /// All of them, in 2^`bits` ranges.
    pub(crate) fn ranges(bits: u32) -> impl Iterator<Item = HashRange> {
        (0..1 << bits).map(move |number| HashRange { bits, number })
    }

    /// The range of `hash` among 2^`bits`.
    #[inline(always)]
    pub(crate) fn of(hash: u32, bits: u32) -> Self {
        let number = hash >> (32 - bits);
        HashRange { bits, number }
    }

    pub(crate) fn contain(self, hash: u32) -> bool {
        HashRange::of(hash, self.bits).number == self.number
    }

    /// The home slots of these hashes in a table.
    fn homes(self, shift: u32) -> Range<usize> {
        let home = |number: u64| ((number << (32 - self.bits)) >> shift) as usize;
        home(self.number.into())..home(u64::from(self.number) + 1)
    }

    /// A table's entries in this range: key, hash and statistics. `prefetch` is called with slots that are
    /// visited soon, because entries lie in no order.
    pub(crate) fn entries<K: Key>(
        self,
        table: &DenseTable<K>,
        prefetch: impl Fn(EntryRef),
    ) -> impl Iterator<Item = (&K, u32, Stats)> {
        self.slots(table).map(move |(place, slot)| {
            if let Some(later) = table.slots.get(place + PREFETCH_DISTANCE) {
                prefetch(*later);
            }
            let DenseEntry { key, stats } = &table.entries[slot.entry()];
            (key, slot.hash(), stats.unpacked())
        })
    }

    /// A table's slots in this range, each with its position. Displaced ones lie behind the last home slot
    /// with no empty slot in between.
    fn slots<K: Key>(self, table: &DenseTable<K>) -> impl Iterator<Item = (usize, EntryRef)> {
        let (homes, mask) = (self.homes(table.shift), table.slots.len() - 1);
        (homes.start..)
            .map(move |place| (place, table.slots[place & mask]))
            .take_while(move |(place, slot)| *place < homes.end || slot.0 != 0)
            .filter(move |(_, slot)| slot.0 != 0 && self.contain(slot.hash()))
    }
}

/// The hash under which a table of one range stores `hash`. All hashes of a range begin with the same bits,
/// and they arrive in order; stored as they are they would crowd at one end of the table.
#[inline(always)]
pub(crate) fn scattered(hash: u32) -> u32 {
    // An odd factor is a bijection; this one, 2^32 over the golden ratio, spreads neighbours far apart.
    hash.wrapping_mul(0x9e37_79b1)
}

#[cfg(test)]
mod tests {
    use crate::table::hash_range::*;

    /// Slots looked at until each of `hashes` has one, of which three quarters are used then.
    fn looks(hashes: &[u32]) -> usize {
        let slots = (hashes.len() / 3 * 4).next_power_of_two();
        let mut used = vec![false; slots];
        let mut looks = 0;
        for hash in hashes {
            let mut place = *hash as usize >> (32 - slots.trailing_zeros());
            while std::mem::replace(&mut used[place], true) {
                place = (place + 1) % slots;
                looks += 1;
            }
            looks += 1;
        }
        looks
    }

    /// A range's table grows several times while it takes hashes in order. At each size the hashes that it
    /// has by then must be spread over all of it.
    #[test]
    #[cfg_attr(miri, ignore = "too much for an interpreter")]
    fn hashes_in_order_are_scattered() {
        const TAKEN: usize = 3 << 12;
        // Murmur's last steps, which make any number look random.
        let random = |number: u32| {
            let number = (number ^ number >> 16).wrapping_mul(0x85eb_ca6b);
            let number = (number ^ number >> 13).wrapping_mul(0xc2b2_ae35);
            number ^ number >> 16
        };
        for bits in 4..=11 {
            for part in [1, 4, 16] {
                let hashes = (0..(part * TAKEN) as u32).map(|at| random(at) >> bits);
                let mut hashes: Vec<u32> = hashes.collect();
                hashes.sort_unstable();
                hashes.truncate(TAKEN);
                let within = hashes.iter().map(|hash| 5 << (32 - bits) | hash);
                let spread: Vec<u32> = within.map(scattered).collect();
                assert!(looks(&spread) < 8 * TAKEN, "{bits} bits, 1 of {part}");
                if part > 1 {
                    let order: Vec<u32> = hashes.iter().map(|hash| hash << bits).collect();
                    assert!(looks(&order) > 50 * TAKEN, "{bits} bits: no crowd");
                }
            }
        }
    }
}
