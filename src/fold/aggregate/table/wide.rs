//! Keys of 32 to 127 bytes: small slots of a hash's bits and an entry's number, entries of 192 bytes
//! in the order they came.
//!
//! Invariant of this room: the slots are a power of two, at least one is empty, and a slot is 0 or
//! holds the number, counted from 1, of an entry that exists.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use super::isa::{Avx2, Avx512};
use super::isa::{Isa, Portable, Seeds, WideKey};
use super::{BATCH, Stats};
use crate::fold::aggregate::decode::{List, WIDE};
use crate::fold::aggregate::level::Level;
use crate::fold::aggregate::pages::{Pages, Zeroed};
use crate::fold::aggregate::window::Window;

/// A key and its statistics.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct WideEntry {
    key: WideKey,
    pub(crate) stats: Stats,
    hash: u64,
}

impl WideEntry {
    /// The key without its delimiter.
    pub(crate) fn key(&self, delimiter: u8) -> &[u8] {
        let bytes = &self.key.0;
        &bytes[..memchr::memchr(delimiter, bytes).unwrap_or(WIDE)]
    }
}

/// The number of an entry, counted from 1, in the low half; high bits of its hash in the high. 0 if
/// empty.
#[derive(Clone, Copy)]
struct Slot(u64);

// SAFETY: a plain integer.
unsafe impl Zeroed for Slot {}

impl Slot {
    fn new(hash: u64, entry: usize) -> Self {
        let number = u32::try_from(entry + 1).expect("fewer than 2^32 wide keys");
        Slot(hash & !0xffff_ffff | u64::from(number))
    }

    #[inline(always)]
    fn entry(self) -> usize {
        (self.0 as u32 as usize).wrapping_sub(1)
    }

    #[inline(always)]
    fn may_hold(self, hash: u64) -> bool {
        (self.0 ^ hash) >> 32 == 0
    }
}

const SLOTS_MIN: usize = 1 << 12;

/// The table.
pub(crate) struct WideTable {
    level: Level,
    slots: Pages<Slot>,
    entries: Vec<WideEntry>,
    seeds: Seeds,
    batch: Box<Batch>,
}

/// A batch under way; kept, so that none begins by clearing it.
struct Batch {
    keys: [WideKey; BATCH],
    hashes: [u64; BATCH],
}

impl WideTable {
    pub(crate) fn new(level: Level, seeds: Seeds) -> Self {
        WideTable {
            level,
            slots: Pages::new(SLOTS_MIN),
            entries: Vec::new(),
            seeds,
            batch: Box::new(Batch {
                keys: [WideKey([0; WIDE]); BATCH],
                hashes: [0; BATCH],
            }),
        }
    }

    /// Every key held.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &WideEntry> {
        self.entries.iter()
    }

    /// Takes the rows of `list`, whose keys are in `window`.
    pub(crate) fn fold(&mut self, window: Window<'_>, list: &List) {
        for (keys, values) in list.keys().chunks(BATCH).zip(list.values().chunks(BATCH)) {
            self.reserve(BATCH);
            match self.level {
                // SAFETY: the list's keys are in the window.
                Level::Portable => unsafe {
                    self.batch::<Portable>(window.pointer(), keys, values)
                },
                // SAFETY: as above; the level is only made where the processor has its features.
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => unsafe { self.batch_avx2(window.pointer(), keys, values) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 => unsafe { self.batch_avx512(window.pointer(), keys, values) },
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,aes,bmi1,bmi2,popcnt")]
    unsafe fn batch_avx2(&mut self, window: *const u8, keys: &[u32], values: &[u32]) {
        // SAFETY: as the caller's.
        unsafe { self.batch::<Avx2>(window, keys, values) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vaes,aes,bmi1,bmi2,popcnt")]
    unsafe fn batch_avx512(&mut self, window: *const u8, keys: &[u32], values: &[u32]) {
        // SAFETY: as the caller's.
        unsafe { self.batch::<Avx512>(window, keys, values) }
    }

    /// # Safety
    /// - `keys` are of `window`, 33 to 128 bytes each, and no more than [`BATCH`], as are `values`.
    /// - The features of `I` are enabled.
    #[inline(always)]
    unsafe fn batch<I: Isa>(&mut self, window: *const u8, keys: &[u32], values: &[u32]) {
        let count = keys.len().min(values.len()).min(BATCH);
        let mask = self.slots.len() - 1;
        for row in 0..count {
            let key = keys[row];
            // SAFETY: the key is in the window; a masked number is a slot's.
            unsafe {
                let start = window.add((key & 0xffff) as usize);
                let hash = I::load_wide(&self.seeds, start, key >> 16, &mut self.batch.keys[row]);
                self.batch.hashes[row] = hash;
                I::prefetch(self.slots.as_ptr().add(hash as usize & mask).cast());
            }
        }
        for hash in &self.batch.hashes[..count] {
            let entry = self.slots[*hash as usize & mask].entry();
            let entry = self.entries.as_ptr().wrapping_add(entry).cast::<u8>();
            // SAFETY: a prefetch reads nothing.
            unsafe {
                I::prefetch(entry);
                I::prefetch(entry.wrapping_add(64));
                I::prefetch(entry.wrapping_add(128));
            }
        }
        for row in 0..count {
            // SAFETY: as the caller's.
            unsafe {
                let entry = Self::probe::<I>(
                    &mut self.slots,
                    &mut self.entries,
                    &self.batch.keys[row],
                    self.batch.hashes[row],
                );
                I::update(
                    &mut self.entries.get_unchecked_mut(entry).stats,
                    values[row],
                );
            }
        }
    }

    /// The number of the key's entry; a new one if it has none.
    ///
    /// # Safety
    /// - The table has an empty slot to spare.
    /// - The features of `I` are enabled.
    #[inline(always)]
    unsafe fn probe<I: Isa>(
        slots: &mut [Slot],
        entries: &mut Vec<WideEntry>,
        key: &WideKey,
        hash: u64,
    ) -> usize {
        let mask = slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = slots[at];
            if slot.0 == 0 {
                let entry = entries.len();
                slots[at] = Slot::new(hash, entry);
                entries.push(WideEntry {
                    key: *key,
                    stats: Stats::default(),
                    hash,
                });
                return entry;
            }
            // SAFETY: a slot's entry exists; the caller has the features.
            if slot.may_hold(hash)
                && unsafe { I::equals_wide(key, &entries.get_unchecked(slot.entry()).key) }
            {
                return slot.entry();
            }
            at = (at + 1) & mask;
        }
    }

    /// Takes what `from` holds; both must have the same seeds.
    pub(crate) fn merge(&mut self, from: &WideTable) {
        for entry in &from.entries {
            self.reserve(1);
            // SAFETY: room was made above; needs no feature. The hash is kept, not computed.
            unsafe {
                let into = Self::probe::<Portable>(
                    &mut self.slots,
                    &mut self.entries,
                    &entry.key,
                    entry.hash,
                );
                self.entries[into].stats.merge(&entry.stats);
            }
        }
    }

    /// Makes room for `more` keys.
    fn reserve(&mut self, more: usize) {
        if (self.entries.len() + more) * 4 > self.slots.len() {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let length = self.slots.len() * 4;
        let mask = length - 1;
        self.slots = Pages::new(length);
        for (number, entry) in self.entries.iter().enumerate() {
            let mut at = entry.hash as usize & mask;
            while self.slots[at].0 != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = Slot::new(entry.hash, number);
        }
    }
}
