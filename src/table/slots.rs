//! A hash table of short keys with their lanes side by side in slots: what a worker adds most rows to.
//!
//! A key has a byte behind it that isn't zero, and zeros up to 32 bytes. So a slot is empty if its key is all zeros.
//! Rows come in batches: hash and prefetch all, then compare, then add.
//!
//! Slots lie in the order of their hashes. So a range of hashes is a contiguous part of every table, a table that grows
//! is copied from front to back, and tables are merged by ranges, in parallel.
//!
//! Invariant of this module: at least one slot is empty, and a place is the number of units before a slot. Keys that are
//! looked up are readable for 64 bytes.
#![allow(unsafe_code)]

use std::collections::HashSet;

use rayon::prelude::*;

use crate::level::Level;
use crate::prefetch;
use crate::table::hash_range::HashRange;
#[cfg(target_arch = "x86_64")]
use crate::table::isa::{Avx2, Avx512};
use crate::table::isa::{InlineKey, Isa, Portable, Seeds};
use crate::table::key::hash;
use crate::table::pages::{Pages, Zeroed};

/// Rows that are looked up at once.
pub(crate) const BATCH: usize = 256;
/// The most bytes of a key, with the one behind it.
pub(crate) const KEY_MAX: usize = 32;
/// Lanes in a unit.
pub(crate) const UNIT_LANES: usize = 4;

/// The most ranges of hashes, as a power of two.
const RANGE_BITS_MAX: u32 = 9;
/// The least slots of a table; all tables have a multiple of it, so that a range has whole slots.
const SLOTS_MIN: usize = 1 << RANGE_BITS_MAX;
/// Bytes of a range of slots that is merged: they stay in a core's cache.
const RANGE_BYTES: usize = 256 << 10;
/// Keys among which it is counted how many tables have in common.
const SAMPLE: usize = 4096;
/// From so many bytes on a table grows by less at a time.
const LARGE_BYTES: usize = 64 << 20;
/// Up to so many bytes of used slots the first-level cache holds most of them.
const L1_BYTES: usize = 64 << 10;
/// Beyond so many bytes of slots the one behind a key's own, where a displaced key is, is worth a prefetch.
const L2_BYTES: usize = 4 << 20;

/// A key, or four lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C, align(32))]
pub(crate) struct Unit([i64; UNIT_LANES]);

impl Unit {
    /// A key and the byte behind it, if they fit.
    pub(crate) fn of_key(key: &[u8]) -> Option<Unit> {
        let mut bytes = [0; KEY_MAX];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        let word = |at: usize| std::array::from_fn(|byte| bytes[8 * at + byte]);
        Some(Unit(std::array::from_fn(|at| i64::from_ne_bytes(word(at)))))
    }

    /// The bytes of a key, with the one behind it.
    pub(crate) fn key(&self) -> &[u8] {
        let last = self.0.iter().rposition(|&word| word != 0);
        let length = last.map_or(0, |at| {
            8 * (at + 1) - self.0[at].to_le().leading_zeros() as usize / 8
        });
        // SAFETY: a unit is so many bytes and nothing else.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), length) }
    }

    fn is_empty(&self) -> bool {
        self.0 == [0; UNIT_LANES]
    }
}

/// The lanes behind a key.
pub(crate) fn lanes_of(units: &[Unit]) -> &[i64] {
    // SAFETY: a unit is so many numbers and nothing else.
    unsafe { std::slice::from_raw_parts(units.as_ptr().cast(), units.len() * UNIT_LANES) }
}

/// The lanes behind a key.
pub(crate) fn lanes_mut(units: &mut [Unit]) -> &mut [i64] {
    let length = units.len() * UNIT_LANES;
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts_mut(units.as_mut_ptr().cast(), length) }
}

// SAFETY: plain numbers.
unsafe impl Zeroed for Unit {}

/// The table.
pub(crate) struct Slots {
    level: Level,
    units: Pages<Unit>,
    /// Units of a slot, a power of two.
    stride: usize,
    /// How many there are.
    count: u32,
    used: usize,
    used_max: usize,
    seeds: Seeds,
    /// How many keys have each byte behind them.
    behind: Box<[u32; 256]>,
    /// Memory is short: no slots are left empty for speed.
    is_dense: bool,
    keys: Box<[InlineKey; BATCH]>,
    places: Box<[u32; BATCH]>,
    /// Rows of the batch whose keys are new.
    fresh: Vec<u32>,
}

impl Slots {
    /// For keys with so many lanes. Tables of the same seeds have the same hashes.
    pub(crate) fn new(level: Level, seeds: &Seeds, lanes: usize) -> Slots {
        let mut slots = Slots {
            level,
            units: Pages::new(0),
            stride: (1 + lanes.div_ceil(UNIT_LANES)).next_power_of_two(),
            count: 0,
            used: 0,
            used_max: 0,
            seeds: seeds.clone(),
            behind: Box::new([0; 256]),
            is_dense: false,
            keys: Box::new([InlineKey([0; KEY_MAX]); BATCH]),
            places: Box::new([0; BATCH]),
            fresh: Vec::new(),
        };
        slots.lay_out(SLOTS_MIN);
        slots
    }

    /// Without keys, for those and lanes of this table's form, with so many slots.
    fn like(&self, slots: usize) -> Slots {
        let mut like = Slots::new(self.level, &self.seeds, (self.stride - 1) * UNIT_LANES);
        like.is_dense = self.is_dense;
        like.lay_out(slots);
        like
    }

    /// Leaves fewer slots empty from now on.
    pub(crate) fn pack(&mut self) {
        self.is_dense = true;
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.is_dense
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.units)
    }

    /// The most memory that is taken while so many keys more are added.
    pub(crate) fn bytes_with(&self, more: usize) -> usize {
        match self.used + more < self.used_max {
            true => self.bytes(),
            false => self.bytes() * (1 + self.growth()),
        }
    }

    /// How many times as many slots a table has when it grows.
    fn growth(&self) -> usize {
        let is_small = self.bytes() < LARGE_BYTES && !self.is_dense;
        if is_small { 4 } else { 2 }
    }

    /// Units of a key and its lanes.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// How many keys have each byte behind them.
    pub(crate) fn behind(&self) -> &[u32; 256] {
        &self.behind
    }

    pub(crate) fn slot_bytes(&self) -> usize {
        self.stride * size_of::<Unit>()
    }

    /// Empty slots, so many.
    fn lay_out(&mut self, slots: usize) {
        self.units = Pages::new(slots * self.stride);
        assert!(
            u32::try_from(slots * self.stride).is_ok(),
            "a table of less than 128 GiB"
        );
        self.count = slots as u32;
        // A displaced key costs a mispredicted branch on each of its rows, so a small table is sparse.
        self.used_max = match slots * self.slot_bytes() {
            _ if self.is_dense => slots / 8 * 5,
            ..=0x10_0000 if slots > SLOTS_MIN => slots / 16,
            ..=0x40_0000 if slots > SLOTS_MIN => slots / 4,
            ..=0x200_0000 => slots / 2,
            _ => slots / 8 * 5,
        };
        self.used = 0;
    }

    #[cold]
    fn grow(&mut self) {
        let slots = self.growth() * self.count as usize;
        let old = std::mem::replace(&mut self.units, Pages::new(0));
        self.lay_out(slots);
        for slot in old.chunks(self.stride) {
            if !slot[0].is_empty() {
                self.push(&slot[0], lanes_of(&slot[1..]));
            }
        }
    }

    /// The hash of a key with the byte behind it.
    pub(crate) fn hash(&self, key: &Unit) -> u32 {
        let mut bytes = InlineKey([0; KEY_MAX]);
        for (to, word) in bytes.0.chunks_exact_mut(8).zip(key.0) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        hash(self.level, &self.seeds, &bytes)
    }

    /// The place of the slot that keys of this hash belong to.
    fn home(&self, hash: u32) -> usize {
        home(hash, self.count) as usize * self.stride
    }

    /// The place of a key's slot, or of the empty one that it would take.
    fn seek(&self, hash: u32, key: &Unit) -> usize {
        let mut place = self.home(hash);
        while !self.units[place].is_empty() && self.units[place] != *key {
            place += self.stride;
            if place == self.units.len() {
                place = 0;
            }
        }
        place
    }

    /// The place of a key's slot.
    pub(crate) fn place_of(&self, key: &Unit) -> Option<usize> {
        let place = self.seek(self.hash(key), key);
        (!self.units[place].is_empty()).then_some(place)
    }

    /// Takes the next empty slot for a key that isn't there.
    fn push(&mut self, key: &Unit, lanes: &[i64]) {
        let place = self.seek(self.hash(key), key);
        self.units[place] = *key;
        lanes_mut(&mut self.units[place + 1..place + self.stride])[..lanes.len()]
            .copy_from_slice(lanes);
        self.used += 1;
    }

    /// Adds a key that isn't there, with its lanes.
    pub(crate) fn insert(&mut self, key: &Unit, lanes: &[i64]) {
        // A table that grows may be sparser than before, and allow fewer keys than it has.
        while self.used >= self.used_max {
            self.grow();
        }
        self.push(key, lanes);
        self.count_behind(key);
    }

    fn count_behind(&mut self, key: &Unit) {
        let last = key.key().last().copied().unwrap_or_default();
        self.behind[usize::from(last)] += 1;
    }

    /// Looks up the keys of a batch, which are spans of `text`; each is a key's start and, in the high half, the end of
    /// the byte behind it. New keys get slots of zeros, and their rows are [fresh](Slots::fresh).
    ///
    /// # Safety
    /// The spans are of bytes that are readable for 64 bytes more, and no longer than [`KEY_MAX`].
    pub(crate) unsafe fn find(&mut self, text: *const u8, spans: &[u32]) {
        assert!(spans.len() <= BATCH);
        self.fresh.clear();
        while self.used + spans.len() > self.used_max {
            self.grow();
        }
        match self.level {
            // SAFETY: as the caller's; needs no feature.
            Level::Portable => unsafe { self.find_by::<Portable>(text, spans) },
            // SAFETY: as the caller's; a level is only made where the processor has its features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) => unsafe { self.find_avx2(text, spans) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512(_) => unsafe { self.find_avx512(text, spans) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,aes,bmi1,bmi2,popcnt")]
    unsafe fn find_avx2(&mut self, text: *const u8, spans: &[u32]) {
        // SAFETY: as the caller's.
        unsafe { self.find_by::<Avx2>(text, spans) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vaes,aes,bmi1,bmi2,popcnt")]
    unsafe fn find_avx512(&mut self, text: *const u8, spans: &[u32]) {
        // SAFETY: as the caller's.
        unsafe { self.find_by::<Avx512>(text, spans) }
    }

    /// # Safety
    /// As that of [`Slots::find`]; the features of `I` are enabled, and there are slots for as many new keys.
    #[inline(always)]
    unsafe fn find_by<I: Isa>(&mut self, text: *const u8, spans: &[u32]) {
        let exceeds_l1 = self.used * self.slot_bytes() > L1_BYTES;
        let exceeds_l2 = self.bytes() > L2_BYTES;
        let units = self.units.pointer();
        let (count, stride, end) = (self.count, self.stride as u32, self.units.len() as u32);
        let stride_bits = stride.trailing_zeros();
        let following = |place: u32| {
            let next = place + stride;
            if next == end { 0 } else { next }
        };
        let fetch = |place: u32| {
            let slot = units.wrapping_add(place as usize).cast::<u8>();
            prefetch::into_l1(slot);
            if stride > 2 {
                prefetch::into_l1(slot.wrapping_add(64));
            }
            if exceeds_l2 {
                prefetch::into_l1(slot.wrapping_add(32 * stride as usize));
            }
        };
        let (fours, rest) = spans.as_chunks::<4>();
        let (keys, rest_keys) = self.keys[..spans.len()].as_chunks_mut::<4>();
        let (places, rest_places) = self.places[..spans.len()].as_chunks_mut::<4>();
        for ((spans, keys), places) in fours.iter().zip(keys).zip(places) {
            // A start, and in the high half a length.
            let spans = spans.map(|span| span - (span << 16));
            // SAFETY: as the caller's.
            let hashes = unsafe { I::load_four(&self.seeds, text, &spans, keys) };
            for (place, hash) in places.iter_mut().zip(hashes) {
                *place = home(hash, count) << stride_bits;
                if exceeds_l1 {
                    fetch(*place);
                }
            }
        }
        for ((&span, key), place) in rest.iter().zip(rest_keys).zip(rest_places) {
            let (start, end) = (span & 0xffff, span >> 16);
            // SAFETY: as the caller's.
            unsafe {
                let loaded = I::load(text.add(start as usize), end - start);
                I::write(loaded, key);
                *place = home(I::hash(&self.seeds, loaded) as u32, count) << stride_bits;
            }
            if exceeds_l1 {
                fetch(*place);
            }
        }
        let rows = self.keys.iter().zip(&mut *self.places).take(spans.len());
        for (row, (key, place)) in rows.enumerate() {
            // SAFETY: homes, and the slots that follow them, are in the table; the features of `I` are enabled.
            unsafe {
                let wanted = I::read(key);
                if I::equals(wanted, &*units.add(*place as usize).cast()) {
                    continue;
                }
                // Displaced or new.
                loop {
                    let slot = units.add(*place as usize);
                    if (*slot).0 == [0; UNIT_LANES] {
                        slot.cast::<InlineKey>().write(*key);
                        self.used += 1;
                        self.fresh.push(row as u32);
                        let end = (spans[row] >> 16) as usize;
                        self.behind[usize::from(*text.add(end - 1))] += 1;
                        break;
                    }
                    *place = following(*place);
                    if I::equals(wanted, &*units.add(*place as usize).cast()) {
                        break;
                    }
                }
            }
        }
    }

    /// The rows of the batch whose keys were new, each key once.
    pub(crate) fn fresh(&self) -> &[u32] {
        &self.fresh
    }

    /// The lanes of a row of the batch.
    pub(crate) fn lanes(&mut self, row: usize) -> &mut [i64] {
        let place = self.places[row] as usize;
        lanes_mut(&mut self.units[place + 1..place + self.stride])
    }

    /// Adds to the lanes from `first` on, which is a multiple of [`UNIT_LANES`]: for each of them a value of each row of
    /// the batch. Of lanes that are `extremes` the greatest value is kept.
    pub(crate) fn add(
        &mut self,
        first: usize,
        values: [&[i64]; UNIT_LANES],
        extremes: [bool; UNIT_LANES],
    ) {
        let at = 1 + first / UNIT_LANES;
        let rows = values[0].len();
        assert!(at < self.stride && rows <= BATCH);
        assert!(values.iter().all(|lane| lane.len() == rows));
        match self.level {
            Level::Portable => self.add_rows(0, at, values, extremes),
            // SAFETY: a level is only made where the processor has its features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) | Level::Avx512(_) => unsafe { self.add_avx2(at, values, extremes) },
        }
    }

    /// Adds the rows of the batch from `from` on, one by one.
    fn add_rows(
        &mut self,
        from: usize,
        at: usize,
        values: [&[i64]; UNIT_LANES],
        extremes: [bool; UNIT_LANES],
    ) {
        for row in from..values[0].len() {
            let lanes = &mut self.units[self.places[row] as usize + at].0;
            for ((lane, values), is_extreme) in lanes.iter_mut().zip(values).zip(extremes) {
                *lane = match is_extreme {
                    true => values[row].max(*lane),
                    false => *lane + values[row],
                };
            }
        }
    }

    /// Four rows at a time: four of each lane become four of each row.
    ///
    /// # Safety
    /// The processor has AVX2; there are as many values of each lane.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn add_avx2(
        &mut self,
        at: usize,
        values: [&[i64]; UNIT_LANES],
        extremes: [bool; UNIT_LANES],
    ) {
        use std::arch::x86_64::*;
        let mask = extremes.map(|is_extreme| -i64::from(is_extreme));
        let has_extremes = extremes.contains(&true);
        let units = self.units.pointer();
        let whole = values[0].len() / UNIT_LANES * UNIT_LANES;
        // SAFETY: four values of four; places of the batch are in the table, and `at` is in their slots.
        unsafe {
            let mask = _mm256_set_epi64x(mask[3], mask[2], mask[1], mask[0]);
            for from in (0..whole).step_by(UNIT_LANES) {
                let a = _mm256_loadu_si256(values[0].as_ptr().add(from).cast());
                let b = _mm256_loadu_si256(values[1].as_ptr().add(from).cast());
                let c = _mm256_loadu_si256(values[2].as_ptr().add(from).cast());
                let d = _mm256_loadu_si256(values[3].as_ptr().add(from).cast());
                let (ab, ab_odd) = (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
                let (cd, cd_odd) = (_mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d));
                let rows = [
                    _mm256_permute2x128_si256::<0x20>(ab, cd),
                    _mm256_permute2x128_si256::<0x20>(ab_odd, cd_odd),
                    _mm256_permute2x128_si256::<0x31>(ab, cd),
                    _mm256_permute2x128_si256::<0x31>(ab_odd, cd_odd),
                ];
                for (row, &place) in rows.into_iter().zip(&self.places[from..from + UNIT_LANES]) {
                    let to: *mut __m256i = units.add(place as usize + at).cast();
                    let old = _mm256_load_si256(to);
                    let mut new = _mm256_add_epi64(old, row);
                    if has_extremes {
                        let greater = _mm256_blendv_epi8(old, row, _mm256_cmpgt_epi64(row, old));
                        new = _mm256_blendv_epi8(new, greater, mask);
                    }
                    _mm256_store_si256(to, new);
                }
            }
        }
        self.add_rows(whole, at, values, extremes);
    }

    /// All keys, with the byte behind each, and their lanes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Unit, &[i64])> {
        let slots = self.units.chunks(self.stride);
        let used = slots.filter(|slot| !slot[0].is_empty());
        used.map(|slot| (&slot[0], lanes_of(&slot[1..])))
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&Unit, &mut [i64])> {
        let slots = self.units.chunks_mut(self.stride);
        let used = slots.filter(|slot| !slot[0].is_empty());
        used.map(|slot| {
            let (key, lanes) = slot.split_at_mut(1);
            (&key[0], lanes_mut(lanes))
        })
    }

    /// The key in a place, and its lanes.
    pub(crate) fn at(&self, place: usize) -> (&Unit, &[i64]) {
        let slot = &self.units[place..place + self.stride];
        (&slot[0], lanes_of(&slot[1..]))
    }

    /// The same, to be changed.
    pub(crate) fn at_mut(&mut self, place: usize) -> (&Unit, &mut [i64]) {
        let (key, lanes) = self.units[place..place + self.stride].split_at_mut(1);
        (&key[0], lanes_mut(lanes))
    }

    /// The places of all keys whose lanes are `wanted`, in no order.
    pub(crate) fn places(
        &self,
        wanted: impl Fn(&[i64]) -> bool + Send + Sync,
    ) -> impl ParallelIterator<Item = usize> {
        let slots = self.units.par_chunks(self.stride).enumerate();
        let used = slots.filter(|(_, slot)| !slot[0].is_empty());
        let used = used.filter(move |(_, slot)| wanted(lanes_of(&slot[1..])));
        used.map(|(at, _)| at * self.stride)
    }

    /// Fetches the slot in a place into the cache.
    pub(crate) fn prefetch(&self, place: usize) {
        let slot = self.units.as_ptr().wrapping_add(place).cast::<u8>();
        for line in (0..self.slot_bytes()).step_by(64) {
            prefetch::into_l1(slot.wrapping_add(line));
        }
    }

    /// The slots of a range of hashes, of which there are no more than slots at least; with their hashes.
    fn range(&self, hashes: HashRange) -> impl Iterator<Item = (u32, &[Unit])> {
        let slots = self.count as usize;
        let of_range = slots >> hashes.bits;
        let first = hashes.number as usize * of_range;
        // Displaced ones lie behind the last home slot, with no empty one in between.
        let places = (0..slots).map(move |at| (at, (first + at) % slots * self.stride));
        let slots = places.map(|(at, place)| (at, &self.units[place..place + self.stride]));
        slots
            .take_while(move |(at, slot)| *at < of_range || !slot[0].is_empty())
            .filter(|(_, slot)| !slot[0].is_empty())
            .map(|(_, slot)| (self.hash(&slot[0]), slot))
            .filter(move |(hash, _)| hashes.bits == 0 || hashes.contain(*hash))
    }

    /// One table of several that have the same seeds and as many lanes. `add` adds lanes to those of the same key, or
    /// refuses to: slots that it refuses are returned besides, each with all of its units.
    ///
    /// # Panics
    /// There is no table.
    pub(crate) fn merged(
        mut all: Vec<Slots>,
        add: impl Fn(&mut [i64], &[i64]) -> bool + Sync,
    ) -> (Slots, Vec<Unit>) {
        let (_, wanted) = Slots::union(all.iter());
        let largest = (0..all.len()).max_by_key(|&at| all[at].count);
        let largest = largest.expect("a table");
        let mut merged = match wanted {
            Some(slots) => all[largest].like(slots),
            None => all.swap_remove(largest),
        };
        let mut refused = Vec::new();
        for from in all {
            merged.merge(&from, &add, &mut refused);
        }
        (merged, refused)
    }

    /// About how many different keys some tables have, and how many slots a table has that they are merged to, if it is none of
    /// them.
    pub(crate) fn union<'a>(
        all: impl Iterator<Item = &'a Slots> + Clone,
    ) -> (usize, Option<usize>) {
        let keys = Slots::union_len(all.clone());
        // A quarter stays empty.
        let wanted = (keys / 3 * 4).next_multiple_of(SLOTS_MIN);
        let is_enough = all.clone().any(|slots| slots.count as usize >= wanted);
        (keys, (!is_enough && all.count() > 1).then_some(wanted))
    }

    /// About how many different keys some tables have.
    fn union_len<'a>(all: impl Iterator<Item = &'a Slots> + Clone) -> usize {
        let keys: usize = all.clone().map(Slots::len).sum();
        let bits = (keys / SAMPLE).max(1).ilog2().min(RANGE_BITS_MAX);
        let sample = HashRange { bits, number: 0 };
        let sampled = || all.clone().flat_map(|slots| slots.range(sample));
        let different = sampled().map(|(_, slot)| slot[0].0).collect::<HashSet<_>>();
        match sampled().count() {
            0 => keys,
            count => (keys as f64 * different.len() as f64 / count as f64) as usize,
        }
    }

    /// Adds the slots of another table.
    fn merge(
        &mut self,
        from: &Slots,
        add: &(impl Fn(&mut [i64], &[i64]) -> bool + Sync),
        refused: &mut Vec<Unit>,
    ) {
        let ranges = self.bytes().div_ceil(RANGE_BYTES).next_power_of_two();
        let bits = ranges.ilog2().min(RANGE_BITS_MAX);
        let hashes: Vec<HashRange> = HashRange::ranges(bits).collect();
        let (count, stride) = (self.count, self.stride);
        let of_range = self.units.len() >> bits;
        let parts = self.units.par_chunks_mut(of_range);
        let merged = parts.zip(hashes).map(|(units, hashes)| {
            let before = hashes.number as usize * units.len();
            let mut part = Part {
                units,
                stride,
                added: 0,
                refused: Vec::new(),
                left: Vec::new(),
            };
            for (hash, slot) in from.range(hashes) {
                let home = home(hash, count) as usize * stride;
                part.add(home - before, slot, add);
            }
            (part.added, part.refused, part.left)
        });
        let merged: Vec<_> = merged.collect();
        let mut left = Vec::new();
        for (added, of_range, beyond) in merged {
            self.used += added;
            refused.extend(of_range);
            left.extend(beyond);
        }
        // One slot at least stays empty.
        while self.used + left.len() / stride >= self.count as usize {
            self.grow();
        }
        for slot in left.chunks(stride) {
            let (key, lanes) = (&slot[0], lanes_of(&slot[1..]));
            match self.place_of(key) {
                Some(place) => {
                    if !add(self.at_mut(place).1, lanes) {
                        refused.extend_from_slice(slot);
                    }
                }
                None => self.push(key, lanes),
            }
        }
    }

    /// Empties the table.
    pub(crate) fn clear(&mut self) {
        self.lay_out(SLOTS_MIN);
        self.behind.fill(0);
    }
}

/// Which slot keys of this hash belong to.
#[inline(always)]
fn home(hash: u32, slots: u32) -> u32 {
    ((u64::from(hash) * u64::from(slots)) >> 32) as u32
}

/// A range of a table's slots, to which those of the same hashes in another one are added.
struct Part<'a> {
    units: &'a mut [Unit],
    stride: usize,
    /// Keys that are new.
    added: usize,
    /// Slots that could not be added to.
    refused: Vec<Unit>,
    /// Slots that belong behind the range, because it is full from their homes on.
    left: Vec<Unit>,
}

impl Part<'_> {
    /// Adds a slot whose home is at `place`.
    fn add(&mut self, place: usize, slot: &[Unit], add: &impl Fn(&mut [i64], &[i64]) -> bool) {
        for to in self.units[place..].chunks_exact_mut(self.stride) {
            if to[0] == slot[0] {
                if !add(lanes_mut(&mut to[1..]), lanes_of(&slot[1..])) {
                    self.refused.extend_from_slice(slot);
                }
                return;
            }
            if to[0].is_empty() {
                to.copy_from_slice(slot);
                self.added += 1;
                return;
            }
        }
        self.left.extend_from_slice(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Many keys with sums and extremes, in every level, through growth and clearing.
    #[test]
    fn as_an_ordered_map_has_it() {
        // Miri takes a thousand times as long, most of all to zero tables.
        let (rows, batch) = if cfg!(miri) { (100, 19) } else { (40_000, 249) };
        for level in Level::available() {
            for (lanes, keys) in [(4, 7_u64), (5, 3000), (9, 900)] {
                let seeds = Seeds::random();
                let mut slots = Slots::new(level, &seeds, lanes);
                let mut got: BTreeMap<Vec<u8>, Vec<i64>> = BTreeMap::new();
                let mut want: BTreeMap<Vec<u8>, Vec<i64>> = BTreeMap::new();
                let extremes = |lane: usize| lane % 3 == 2;
                let merge = |into: &mut BTreeMap<Vec<u8>, Vec<i64>>, key: &[u8], add: &[i64]| {
                    let to = into.entry(key.to_vec()).or_insert_with(|| vec![0; lanes]);
                    for (lane, (to, &add)) in to.iter_mut().zip(add).enumerate() {
                        *to = if extremes(lane) {
                            add.max(*to)
                        } else {
                            *to + add
                        };
                    }
                };
                let take = |slots: &Slots, got: &mut BTreeMap<_, _>| {
                    for (key, add) in slots.iter() {
                        let key = key.key().strip_suffix(b";").unwrap();
                        merge(got, key, &add[..lanes]);
                    }
                };
                let mut number = 1_u64;
                let mut fresh = 0;
                for _ in 0..rows / batch {
                    let (mut text, mut spans, mut adds) = (Vec::new(), vec![], vec![]);
                    for _ in 0..batch {
                        number = number
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        let key = (number >> 33) % keys;
                        let key = format!("{}{key}", "k".repeat((key % 23) as usize));
                        let start = text.len() as u32;
                        text.extend_from_slice(key.as_bytes());
                        text.push(b';');
                        spans.push(start | (text.len() as u32) << 16);
                        let add: Vec<i64> = (0..lanes)
                            .map(|lane| (number >> (20 + lane)) as i64 & 0xfff)
                            .collect();
                        merge(&mut want, key.as_bytes(), &add);
                        adds.push(add);
                    }
                    text.extend_from_slice(&[0; 64]);
                    if slots.len() > 2000 {
                        take(&slots, &mut got);
                        slots.clear();
                    }
                    // SAFETY: 64 bytes more are readable.
                    unsafe { slots.find(text.as_ptr(), &spans) };
                    fresh += slots.fresh().len();
                    for first in (0..lanes).step_by(UNIT_LANES) {
                        let values: [Vec<i64>; UNIT_LANES] = std::array::from_fn(|at| {
                            let lane = |add: &Vec<i64>| add.get(first + at).copied();
                            adds.iter()
                                .map(|add| lane(add).unwrap_or_default())
                                .collect()
                        });
                        let extremes = std::array::from_fn(|at| extremes(first + at));
                        slots.add(first, std::array::from_fn(|at| &values[at][..]), extremes);
                    }
                    let sum: i64 = slots.lanes(0).iter().sum();
                    assert!(sum > 0);
                }
                assert!(fresh >= want.len().min(slots.len()));
                take(&slots, &mut got);
                assert!(got == want);
                in_ranges(&slots);
            }
        }
    }
    /// Each slot is in one range of hashes.
    fn in_ranges(slots: &Slots) {
        let mut all: Vec<&[u8]> = slots.iter().map(|(key, _)| key.key()).collect();
        all.sort_unstable();
        for bits in [0, 3, RANGE_BITS_MAX] {
            let ranges = HashRange::ranges(bits).flat_map(|hashes| slots.range(hashes));
            let mut found: Vec<&[u8]> = ranges.map(|(_, slot)| slot[0].key()).collect();
            found.sort_unstable();
            assert_eq!(found, all);
        }
    }

    /// Tables with common keys and without, some larger than others, against a map.
    #[test]
    fn merged_tables_have_all_groups() {
        let each = if cfg!(miri) { 40_u64 } else { 6000 };
        for level in Level::available() {
            let seeds = Seeds::random();
            let cases = [
                (1, 0),
                (2, 0),
                (5, 0),
                (2, each / 3),
                (3, each),
                (7, each / 2),
            ];
            for (tables, step) in cases {
                let mut want: BTreeMap<Unit, i64> = BTreeMap::new();
                let all = (0..tables).map(|table| {
                    let mut slots = Slots::new(level, &seeds, 5);
                    for number in table * step..table * step + each {
                        let key = Unit::of_key(format!("key {number};").as_bytes()).unwrap();
                        slots.insert(&key, &[1, 0, 0, 0, number as i64]);
                        *want.entry(key).or_default() += 1;
                    }
                    slots
                });
                let all = all.collect();
                let (slots, refused) = Slots::merged(all, |to, from| {
                    assert_eq!(to[4], from[4]);
                    let is_added = to[0] + from[0] <= 2;
                    to[0] += i64::from(is_added) * from[0];
                    is_added
                });
                assert_eq!(slots.len(), want.len());
                let mut got: BTreeMap<Unit, i64> = BTreeMap::new();
                for place in slots.places(|lanes| lanes[0] > 0).collect::<Vec<_>>() {
                    let (key, lanes) = slots.at(place);
                    assert_eq!(slots.place_of(key), Some(place));
                    assert!(lanes[0] <= 2);
                    assert_eq!(got.insert(*key, lanes[0]), None);
                }
                for slot in refused.chunks(slots.stride()) {
                    *got.get_mut(&slot[0]).unwrap() += lanes_of(&slot[1..])[0];
                }
                assert!(got == want);
            }
        }
    }

    #[test]
    fn keys_are_units() {
        for length in 0..=KEY_MAX {
            let key = vec![b'x'; length];
            assert_eq!(Unit::of_key(&key).unwrap().key(), key);
        }
        assert_eq!(Unit::of_key(&[1; KEY_MAX + 1]), None);
    }
}
