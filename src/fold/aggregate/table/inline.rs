//! Keys up to 31 bytes: an open-addressed table of 64-byte slots, key and statistics side by side.
//!
//! The key is kept with its delimiter, zeros after it, so two keys are equal if their 32 bytes are,
//! and no length is compared. The table is kept sparse while it fits the caches: a key out of its
//! home slot costs a mispredicted branch on each of its rows.
//!
//! Invariant of this room: the slots are a power of two, at least one is empty, and an offset masked
//! by `mask` is a slot's place in units of 8 bytes.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use super::isa::{Avx2, Avx512};
use super::isa::{InlineKey, Isa, Portable, Seeds};
use super::stats::Stats;
use crate::fold::aggregate::decode::INLINE;
use crate::fold::aggregate::level::Level;
use crate::fold::aggregate::pages::{Pages, Zeroed};
use crate::fold::aggregate::window::Window;
use rayon::slice::ParallelSliceMut;

/// A key and its statistics. Empty if it counts no row.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Slot {
    key: InlineKey,
    pub(crate) stats: Stats,
}

// SAFETY: plain integers.
unsafe impl Zeroed for Slot {}

impl Slot {
    /// The key without its delimiter.
    pub(crate) fn key(&self, delimiter: u8) -> &[u8] {
        let bytes = &self.key.0;
        let length = bytes
            .iter()
            .position(|&byte| byte == delimiter)
            .unwrap_or(INLINE);
        &bytes[..length]
    }
}

/// Rows hashed and prefetched ahead.
const BATCH: usize = 128;
/// Slots at first: 512 KiB of addresses, touched as keys come.
const SLOTS_MIN: usize = 1 << 13;
/// Slots at most: 8 MiB.
const SLOTS_MAX: usize = 1 << 17;

/// Units of 8 bytes in a slot.
const UNITS: usize = size_of::<Slot>() / 8;

/// The table.
pub(crate) struct InlineTable {
    level: Level,
    slots: Pages<Slot>,
    /// Of offsets in units of 8 bytes.
    mask: u32,
    used: usize,
    used_max: usize,
    seeds: Seeds,
    batch: Batch,
}

/// A batch under way; kept, so that none begins by clearing it.
struct Batch {
    keys: [InlineKey; BATCH],
    /// Of home slots, in units of 8 bytes.
    offsets: [u32; BATCH],
}

impl InlineTable {
    pub(crate) fn new(level: Level, seeds: Seeds) -> Self {
        let slots = Pages::new(SLOTS_MIN);
        let (mask, used_max) = (mask_of(SLOTS_MIN), used_max_of(SLOTS_MIN));
        InlineTable {
            level,
            slots,
            mask,
            used: 0,
            used_max,
            seeds,
            batch: Batch {
                keys: [InlineKey([0; INLINE]); BATCH],
                offsets: [0; BATCH],
            },
        }
    }

    /// The keys in byte order, without their `delimiter`.
    pub(crate) fn into_sorted(self, delimiter: u8) -> SortedSlots {
        SortedSlots::new(self.slots, delimiter)
    }

    /// Takes rows whose keys are in `window`, until it [is full](Self::is_full); returns how many.
    pub(crate) fn fold(&mut self, window: Window<'_>, keys: &[u32], values: &[u32]) -> usize {
        let mut taken = 0;
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks(BATCH)) {
            if self.used + BATCH > self.used_max {
                if self.is_full() {
                    break;
                }
                self.grow();
            }
            taken += keys.len();
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
        taken
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
    /// - `keys` are of `window`, at most 32 bytes each, and no more than [`BATCH`], as are `values`.
    /// - The features of `I` are enabled.
    #[inline(always)]
    unsafe fn batch<I: Isa>(&mut self, window: *const u8, keys: &[u32], values: &[u32]) {
        let count = keys.len().min(values.len()).min(BATCH);
        let slots = self.slots.pointer();
        let mask = self.mask;
        let (fours, _) = keys[..count].as_chunks::<4>();
        let (to, _) = self.batch.keys.as_chunks_mut::<4>();
        let (offsets, _) = self.batch.offsets.as_chunks_mut::<4>();
        for ((four, to), offsets) in fours.iter().zip(to).zip(offsets) {
            // SAFETY: the keys are in the window; a masked offset is in the table.
            unsafe {
                *offsets = I::load_four(&self.seeds, window, four, to).map(|hash| hash & mask);
                for offset in offsets {
                    I::prefetch(slots.cast::<u64>().add(*offset as usize).cast());
                }
            }
        }
        for row in 4 * fours.len()..count {
            // SAFETY: `row < count`; the key is in the window; a masked offset is in the table.
            unsafe {
                let key = *keys.get_unchecked(row);
                let key = I::load(window.add((key & 0xffff) as usize), key >> 16);
                I::write(key, self.batch.keys.get_unchecked_mut(row));
                let offset = I::hash(&self.seeds, key) as u32 & mask;
                *self.batch.offsets.get_unchecked_mut(row) = offset;
                I::prefetch(slots.cast::<u64>().add(offset as usize).cast());
            }
        }
        for row in 0..count {
            // SAFETY: `row < count`; a masked offset is in the table.
            unsafe {
                let key = I::read(self.batch.keys.get_unchecked(row));
                let offset = *self.batch.offsets.get_unchecked(row);
                let mut slot = slots.cast::<u64>().add(offset as usize).cast::<Slot>();
                if !I::equals(key, &(*slot).key) {
                    cold();
                    slot = self.probe::<I>(key, offset);
                }
                I::update(&mut (*slot).stats, *values.get_unchecked(row));
            }
        }
    }

    /// The slot of a key that is not in its home slot; a new one if it is in none.
    ///
    /// # Safety
    /// - `offset` is masked, and the table has an empty slot to spare.
    /// - The features of `I` are enabled.
    #[inline(always)]
    unsafe fn probe<I: Isa>(&mut self, key: I::Key, mut offset: u32) -> *mut Slot {
        loop {
            // SAFETY: a masked offset is in the table.
            unsafe {
                let slot = self
                    .slots
                    .pointer()
                    .cast::<u64>()
                    .add(offset as usize)
                    .cast::<Slot>();
                if (*slot).stats.count == 0 {
                    I::write(key, &mut (*slot).key);
                    self.used += 1;
                    return slot;
                }
                if I::equals(key, &(*slot).key) {
                    return slot;
                }
                offset = offset.wrapping_add(UNITS as u32) & self.mask;
            }
        }
    }

    /// Whether the keys are too many for this kind of table; then no row may be added.
    pub(crate) fn is_full(&self) -> bool {
        self.used + BATCH > used_max_of(SLOTS_MAX)
    }

    /// Each key used, its hash, and its statistics.
    pub(crate) fn drain(self) -> impl Iterator<Item = (InlineKey, u32, Stats)> {
        let InlineTable {
            level,
            slots,
            seeds,
            ..
        } = self;
        (0..slots.len())
            .map(move |at| slots[at])
            .filter(|slot| slot.stats.count > 0)
            .map(move |slot| {
                let hash = match level {
                    // SAFETY: needs no feature.
                    Level::Portable => unsafe { hash::<Portable>(&seeds, &slot.key) },
                    // SAFETY: the level is only made where the processor has its features.
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx2 => unsafe { hash_avx2(&seeds, &slot.key) },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx512 => unsafe { hash_avx512(&seeds, &slot.key) },
                };
                (slot.key, hash, slot.stats)
            })
    }

    /// Takes statistics of `key`; the table may not be full.
    pub(crate) fn add(&mut self, key: &InlineKey, stats: &Stats) {
        self.merge_slot(&Slot {
            key: *key,
            stats: *stats,
        });
    }

    fn merge_slot(&mut self, from: &Slot) {
        if self.used + 1 > self.used_max {
            self.grow();
        }
        match self.level {
            // SAFETY: a slot was made sure of above.
            Level::Portable => unsafe { self.merge_one::<Portable>(from) },
            // SAFETY: as above; the level is only made where the processor has its features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { self.merge_avx2(from) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { self.merge_avx512(from) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,aes,bmi1,bmi2,popcnt")]
    unsafe fn merge_avx2(&mut self, from: &Slot) {
        // SAFETY: as the caller's.
        unsafe { self.merge_one::<Avx2>(from) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vaes,aes,bmi1,bmi2,popcnt")]
    unsafe fn merge_avx512(&mut self, from: &Slot) {
        // SAFETY: as the caller's.
        unsafe { self.merge_one::<Avx512>(from) }
    }

    /// # Safety
    /// - The table has an empty slot to spare.
    /// - The features of `I` are enabled.
    #[inline(always)]
    unsafe fn merge_one<I: Isa>(&mut self, from: &Slot) {
        // SAFETY: as the caller's.
        unsafe {
            let key = I::read(&from.key);
            let offset = I::hash(&self.seeds, key) as u32 & self.mask;
            let slot = self.probe::<I>(key, offset);
            (*slot).stats.merge_with(&from.stats);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let length = self.slots.len() * 4;
        let old = std::mem::replace(&mut self.slots, Pages::new(length));
        self.mask = mask_of(length);
        self.used_max = used_max_of(length);
        self.used = 0;
        for slot in old.iter().filter(|slot| slot.stats.count > 0) {
            self.merge_slot(slot);
        }
    }
}

/// # Safety
/// - The features of `I` are enabled.
#[inline(always)]
unsafe fn hash<I: Isa>(seeds: &Seeds, key: &InlineKey) -> u32 {
    // SAFETY: as the caller's.
    unsafe { I::hash(seeds, I::read(key)) as u32 }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,aes,bmi1,bmi2,popcnt")]
unsafe fn hash_avx2(seeds: &Seeds, key: &InlineKey) -> u32 {
    // SAFETY: as the caller's.
    unsafe { hash::<Avx2>(seeds, key) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vaes,aes,bmi1,bmi2,popcnt")]
unsafe fn hash_avx512(seeds: &Seeds, key: &InlineKey) -> u32 {
    // SAFETY: as the caller's.
    unsafe { hash::<Avx512>(seeds, key) }
}

/// A table's slots in byte order of their keys, where they lay.
///
/// The delimiter is gone from each key, and its length is in the statistics' spare word.
pub(crate) struct SortedSlots {
    slots: Pages<Slot>,
    used: usize,
}

impl SortedSlots {
    fn new(mut slots: Pages<Slot>, delimiter: u8) -> Self {
        let mut used = 0;
        for at in 0..slots.len() {
            let mut slot = slots[at];
            if slot.stats.count > 0 {
                let length = slot.key(delimiter).len();
                slot.key.0[length] = 0;
                slot.stats.length = length as u64;
                slots[used] = slot;
                used += 1;
            }
        }
        // A key's zeros may be its own: then the shorter of two comes first.
        let order = |slot: &Slot| (slot.key.big_endian(), slot.stats.length);
        slots[..used].par_sort_unstable_by(|a, b| order(a).cmp(&order(b)));
        SortedSlots { slots, used }
    }

    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Each key and its statistics.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Stats)> {
        self.slots[..self.used]
            .iter()
            .map(|slot| (&slot.key.0[..slot.stats.length as usize], slot.stats))
    }
}

fn mask_of(slots: usize) -> u32 {
    let units = u32::try_from(slots * UNITS).expect("a table under 32 GiB");
    units - UNITS as u32
}

fn used_max_of(slots: usize) -> usize {
    if slots < SLOTS_MAX {
        slots / 16
    } else {
        slots / 2
    }
}

/// Called where the processor seldom comes, so that the common way is laid out straight.
#[cold]
fn cold() {}
