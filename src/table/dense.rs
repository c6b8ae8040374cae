//! The table for many keys: small slots point to entries, which lie in the order in which they came. An
//! empty slot costs 8 bytes and not an entry.
//!
//! A slot holds an [`EntryRef`]: 32 bits of hash and an entry's number. The hash's top bits choose the slot,
//! so that growth reads the old slots and writes the new ones front to back and reads no entry. Entries grow
//! by moving page tables, not bytes.
//!
//! Invariant of this module: there are 2^(32 - `shift`) slots, at least one is empty, and a slot is 0 or
//! holds the number, counted from 1, of an entry in use.
#![allow(unsafe_code)]

use crate::level::Level;
use crate::prefetch;
use crate::table::accumulator::{Accumulator, EntryStats};
#[cfg(target_arch = "x86_64")]
use crate::table::isa::{Avx2, Avx512};
use crate::table::isa::{Isa, Portable};
use crate::table::key::Key;
use crate::table::pages::{Pages, Zeroed};
use crate::table::sorted::SortedKeys;
use crate::table::stats::Stats;
use rayon::prelude::*;

/// A key and its statistics.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct DenseEntry<K: Key> {
    pub(crate) key: K,
    pub(crate) stats: K::EntryStats,
}

// SAFETY: bytes and integers.
unsafe impl<K: Key> Zeroed for DenseEntry<K> {}

/// 32 bits of hash in the high half, an entry's number, counted from 1, in the low. 0 if empty.
#[derive(Clone, Copy)]
pub(crate) struct EntryRef(pub u64);

// SAFETY: a plain integer.
unsafe impl Zeroed for EntryRef {}

impl EntryRef {
    #[inline(always)]
    pub(crate) fn entry(self) -> usize {
        (self.0 as u32 as usize).wrapping_sub(1)
    }

    #[inline(always)]
    pub(crate) fn hash(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Rows that are hashed and prefetched before they are compared.
pub(crate) const BATCH: usize = 64;
/// Entries of a new table. Their memory is only mapped, and touched as keys come.
const ENTRIES_MIN: usize = 1 << 10;
/// In place of an entry's number: the key is new, and the table takes no more keys.
const REJECTED: usize = usize::MAX;

/// How many slots a table has for its keys.
#[derive(Clone, Copy)]
pub(crate) struct Growth {
    /// Slots of a new table.
    pub(crate) slots_min: usize,
    /// Up to so many slots at most a sixteenth is used, for few displaced keys; beyond, three quarters.
    pub(crate) sparse_max: usize,
    /// The most keys that the table takes.
    pub(crate) keys_max: usize,
}

/// The table of a size class.
pub(crate) struct DenseTable<K: Key> {
    pub(crate) slots: Pages<EntryRef>,
    pub(crate) shift: u32,
    pub(crate) entries: Pages<DenseEntry<K>>,
    pub(crate) used: usize,
    /// Statistics that no longer fitted their entry's count.
    pub(crate) overflow: Vec<(K, Stats)>,
    growth: Growth,
}

/// Rows whose keys have been loaded and hashed.
#[derive(Clone, Copy)]
pub(crate) struct LoadedRows<'a, K> {
    pub(crate) keys: &'a [K],
    pub(crate) hashes: &'a [u32],
    pub(crate) values: &'a [u32],
}

/// Prefetches the entry of `slot` among `entries`.
#[inline(always)]
pub(crate) fn prefetch_entry<K: Key>(entries: *const DenseEntry<K>, slot: EntryRef) {
    prefetch::into_l1(entries.wrapping_add(slot.entry()).cast());
}

impl<K: Key> DenseTable<K> {
    pub(crate) fn new(growth: Growth) -> Self {
        DenseTable {
            slots: Pages::new(growth.slots_min),
            shift: 32 - growth.slots_min.trailing_zeros(),
            entries: Pages::new(ENTRIES_MIN),
            used: 0,
            overflow: Vec::new(),
            growth,
        }
    }

    /// Adds rows.
    pub(crate) fn add_rows(&mut self, level: Level, rows: LoadedRows<'_, K>) {
        match level {
            // SAFETY: needs no feature.
            Level::Portable => unsafe { self.add_batches::<Portable>(rows) },
            // SAFETY: the level is only made where the processor has its features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) => unsafe { self.add_batches_avx2(rows) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512(_) => unsafe { self.add_batches_avx512(rows) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,aes,bmi1,bmi2,popcnt")]
    unsafe fn add_batches_avx2(&mut self, rows: LoadedRows<'_, K>) {
        // SAFETY: as the caller's.
        unsafe { self.add_batches::<Avx2>(rows) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vaes,aes,bmi1,bmi2,popcnt")]
    unsafe fn add_batches_avx512(&mut self, rows: LoadedRows<'_, K>) {
        // SAFETY: as the caller's.
        unsafe { self.add_batches::<Avx512>(rows) }
    }

    /// # Safety
    /// - The features of `I` are enabled.
    #[inline(always)]
    unsafe fn add_batches<I: Isa>(&mut self, rows: LoadedRows<'_, K>) {
        let LoadedRows {
            keys,
            hashes,
            values,
        } = rows;
        let batches = keys.chunks(BATCH).zip(hashes.chunks(BATCH));
        for ((keys, hashes), values) in batches.zip(values.chunks(BATCH)) {
            self.reserve(BATCH);
            // SAFETY: as the caller's; space was reserved.
            unsafe {
                hashes.iter().for_each(|&hash| self.prefetch_home(hash));
                let rows = LoadedRows {
                    keys,
                    hashes,
                    values,
                };
                self.add_batch::<I>(rows, |_, _, _| unreachable!("it takes any number of keys"));
            }
        }
    }

    /// Prefetches the home slot of a hash.
    #[inline(always)]
    pub(crate) fn prefetch_home(&self, hash: u32) {
        let home = (hash >> self.shift) as usize;
        prefetch::into_l1(self.slots.as_ptr().wrapping_add(home).cast());
    }

    /// Prefetches the entry of `slot`.
    pub(crate) fn prefetch_entry(&self, slot: EntryRef) {
        prefetch_entry(self.entries.as_ptr(), slot);
    }

    /// Adds at most [`BATCH`] rows whose home slots were prefetched. Rows of new keys that the table doesn't
    /// take go to `reject`: key, hash, value.
    ///
    /// # Safety
    /// - Space was [reserved](Self::reserve) for as many keys.
    /// - The features of `I` are enabled.
    #[inline(always)]
    pub(crate) unsafe fn add_batch<I: Isa>(
        &mut self,
        rows: LoadedRows<'_, K>,
        mut reject: impl FnMut(&K, u32, u32),
    ) {
        let mut places = [0; BATCH];
        let mask = self.slots.len() - 1;
        for (&hash, to) in rows.hashes.iter().zip(&mut places) {
            let mut place = (hash >> self.shift) as usize;
            // SAFETY: a masked place is a slot's; a prefetch reads nothing.
            unsafe {
                let mut slot = *self.slots.get_unchecked(place);
                while slot.0 != 0 && slot.hash() != hash {
                    place = (place + 1) & mask;
                    slot = *self.slots.get_unchecked(place);
                }
                *to = place as u32;
                let entry = self
                    .entries
                    .as_ptr()
                    .wrapping_add(slot.entry())
                    .cast::<u8>();
                for line in (0..size_of::<DenseEntry<K>>()).step_by(64) {
                    prefetch::into_l1(entry.wrapping_add(line));
                }
            }
        }
        let places = places.iter().map(|&place| place as usize);
        let keys = rows.keys.iter().zip(rows.hashes).zip(rows.values);
        for (((key, &hash), &value), place) in keys.zip(places) {
            // SAFETY: as the caller's; a slot's entry is in use.
            unsafe {
                let entry = self.probe::<I>(key, hash, place);
                if entry == REJECTED {
                    reject(key, hash, value);
                    continue;
                }
                let stats = &mut self.entries.get_unchecked_mut(entry).stats;
                if stats.is_full() {
                    self.overflow.push((*key, stats.unpacked()));
                    *stats = K::EntryStats::default();
                }
                stats.add::<I>(value);
            }
        }
    }

    /// The number of the key's entry, searched from `place` on. A new key gets an entry, or [`REJECTED`] if
    /// the table takes no more.
    ///
    /// # Safety
    /// - There is space for one more key.
    /// - The features of `I` are enabled.
    #[inline(always)]
    unsafe fn probe<I: Isa>(&mut self, key: &K, hash: u32, mut place: usize) -> usize {
        let mask = self.slots.len() - 1;
        loop {
            // SAFETY: a masked place is a slot's, and its entry is in use.
            unsafe {
                let slot = *self.slots.get_unchecked(place);
                if slot.0 == 0 {
                    let entry = self.used;
                    if entry == self.growth.keys_max {
                        return REJECTED;
                    }
                    self.used += 1;
                    let slot = EntryRef(u64::from(hash) << 32 | self.used as u64);
                    *self.slots.get_unchecked_mut(place) = slot;
                    self.entries[entry].key = *key;
                    return entry;
                }
                if slot.hash() == hash
                    && key.equals::<I>(&self.entries.get_unchecked(slot.entry()).key)
                {
                    return slot.entry();
                }
            }
            place = (place + 1) & mask;
        }
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.slots) + self.used * size_of::<DenseEntry<K>>()
    }

    /// Adds statistics of `key`, whose hash is `hash`.
    ///
    /// # Panics
    /// If the key is new and the table takes no more.
    pub(crate) fn add(&mut self, key: &K, hash: u32, stats: &Stats) {
        self.reserve(1);
        let place = (hash >> self.shift) as usize;
        // SAFETY: space was reserved above; needs no feature.
        let entry = unsafe { self.probe::<Portable>(key, hash, place) };
        if !self.entries[entry].stats.try_merge(stats) {
            self.overflow.push((*key, *stats));
        }
    }

    /// Makes space for `more` keys, as far as the table takes them.
    #[inline]
    pub(crate) fn reserve(&mut self, more: usize) {
        let slots = self.slots.len();
        let used_max = if slots < self.growth.sparse_max {
            slots / 16
        } else {
            slots / 4 * 3
        };
        let used = (self.used + more).min(self.growth.keys_max);
        if used > used_max {
            self.grow_slots();
        }
        if used > self.entries.len() {
            let length = self.entries.len() * 2;
            self.entries.grow(length);
        }
    }

    #[cold]
    fn grow_slots(&mut self) {
        assert!(
            self.shift > 0,
            "more than 3 * 2^30 keys of a size in one table"
        );
        let length = self.slots.len() * 2;
        self.shift -= 1;
        let old = std::mem::replace(&mut self.slots, Pages::new(length));
        for slot in old.iter().filter(|slot| slot.0 != 0) {
            let mut place = (slot.hash() >> self.shift) as usize;
            while self.slots[place].0 != 0 {
                place = (place + 1) & (length - 1);
            }
            self.slots[place] = *slot;
        }
    }
}

/// A table's entries, sorted in place by their keys.
///
/// Keys have lost their delimiter; the statistics hold the key's length.
pub(crate) struct SortedEntries<K: Key> {
    entries: Pages<DenseEntry<K>>,
    used: usize,
    /// Statistics that didn't fit their entry's count.
    overflow: Vec<(Vec<u8>, Stats)>,
}

impl<K: Key> SortedEntries<K> {
    /// Sorts the first `used` of `entries`, in which no key occurs twice.
    pub(crate) fn new(
        mut entries: Pages<DenseEntry<K>>,
        used: usize,
        overflow: Vec<(K, Stats)>,
        delimiter: u8,
    ) -> Self {
        entries[..used].par_iter_mut().for_each(|entry| {
            let length = entry.key.strip(delimiter);
            entry.stats.set_length(length);
        });
        // Keys may end with zero bytes of their own; of two with equal bytes the shorter comes first.
        entries[..used].par_sort_unstable_by(|a, b| {
            let lengths = || a.stats.length().cmp(&b.stats.length());
            a.key.order().cmp(&b.key.order()).then_with(lengths)
        });
        let overflow = overflow
            .into_iter()
            .map(|(key, stats)| (key.bytes()[..key.length(delimiter)].to_vec(), stats));
        SortedEntries {
            entries,
            used,
            overflow: overflow.collect(),
        }
    }
}

impl<K: Key> SortedKeys for SortedEntries<K> {
    fn len(&self) -> usize {
        self.used
    }

    fn key(&self, at: usize) -> &[u8] {
        let entry = &self.entries[at];
        &entry.key.bytes()[..entry.stats.length()]
    }

    fn stats(&self, at: usize) -> Stats {
        self.entries[at].stats.unpacked()
    }

    fn remove(&mut self, at: usize) {
        self.entries[at].stats.empty();
    }

    fn prefetch(&self, at: usize) {
        prefetch::into_l1(self.entries.as_ptr().wrapping_add(at).cast());
    }

    fn take_overflow(&mut self) -> Vec<(Vec<u8>, Stats)> {
        std::mem::take(&mut self.overflow)
    }
}

#[cfg(test)]
mod tests {
    use crate::table::dense::*;
    use crate::table::key::ShortKey;
    use crate::table::local::UNSHARED;
    use crate::table::merge;
    use crate::table::shards::{DrainedShards, Shards};
    use crate::table::stats::BIAS;
    use crate::table::stats::FLIP;
    use std::ops::Range;

    /// Statistics of that many rows, each of 0.
    fn rows(count: u64) -> Stats {
        Stats {
            sum: count * u64::from(BIAS),
            count,
            max: BIAS,
            max_flipped: BIAS ^ FLIP,
            length: 0,
        }
    }

    fn add(table: &mut DenseTable<ShortKey>, number: u32, count: u64) {
        let mut key = ShortKey::EMPTY;
        key.0[..9].copy_from_slice(format!("{number:08};").as_bytes());
        table.add(&key, number.wrapping_mul(0x9e37_79b9), &rows(count));
    }

    fn nothing() -> DrainedShards<ShortKey> {
        Shards::new(Level::Portable, 6).drain_if(|_| true)
    }

    fn table(numbers: Range<u32>) -> DenseTable<ShortKey> {
        let mut table = DenseTable::new(UNSHARED);
        numbers.for_each(|number| add(&mut table, number, 1));
        table
    }

    #[test]
    #[cfg_attr(miri, ignore = "too much for an interpreter")]
    fn growth_comes_at_its_edges() {
        let mut table = table(0..0);
        for number in 0..200_000 {
            add(&mut table, number, 1);
            let used = number as usize + 1;
            let fits = |slots: usize| match slots {
                0..0x4_0000 => used <= slots / 16,
                _ => used <= slots / 4 * 3,
            };
            let slots = table.slots.len();
            assert!(fits(slots), "{slots} slots for {used}");
            assert!(
                slots == 8192 || !fits(slots / 2),
                "{slots} slots for {used}"
            );
            assert_eq!(table.entries.len(), used.next_power_of_two().max(1024));
            assert_eq!(table.bytes(), 8 * slots + 32 * used);
        }
    }

    #[test]
    fn merged() {
        let expected = || (0..9000).map(|n| (format!("{n:08}"), 1 + u64::from(n / 1000 == 2)));
        for [into, from] in [[0..3000, 2000..9000], [2000..9000, 0..3000]] {
            let mut sorted = merge::sorted(vec![table(into), table(from)], nothing(), b';');
            assert_eq!(sorted.len(), 9000);
            for (at, (name, count)) in expected().enumerate() {
                let found = (sorted.key(at), sorted.stats(at).count());
                assert_eq!(found, (name.as_bytes(), count));
            }
            sorted.remove(7);
            assert_eq!(
                (sorted.key(7), sorted.stats(7).count()),
                (&b"00000007"[..], 0)
            );
        }
    }

    #[test]
    fn counts_that_overflow_an_entry_are_kept() {
        let most = u64::from(u32::MAX);
        let mut tables = [table(0..2), table(0..1)];
        for table in &mut tables {
            add(table, 1, most - 1);
            add(table, 1, 2);
        }
        let mut sorted = merge::sorted(tables.into(), nothing(), b';');
        let counts = [0, 1].map(|at| sorted.stats(at).count());
        let overflow = sorted.take_overflow();
        assert!(overflow.iter().all(|(key, _)| key == b"00000001"));
        let more: u64 = overflow.iter().map(|(_, stats)| stats.count()).sum();
        assert_eq!((counts[0], counts[1] + more), (2, 2 * most + 3));
        assert!(sorted.take_overflow().is_empty());
    }
}
