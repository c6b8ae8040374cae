//! The table for many keys: small slots point to entries, which lie in the order in which they came.
//!
//! An entry is the lanes of a key and then the key, in whole units. A slot is an [`EntryRef`]: a key's tag, and where its
//! entry begins. The tag is the key's hash, in whose lowest bits stands how many units the key takes: so growth reads no
//! entry, and keys of different lengths are never compared. Slots lie in the order of their tags: a range of hashes is a
//! contiguous part of every table. Entries grow by moving page tables, not bytes.
//!
//! Invariant of this module: there are 2^(32 - `shift`) slots, at least one is empty, and a slot is 0 or holds a place,
//! counted from 1, from which an entry in use begins. [`SPARE`] units at least lie after those in use.
#![allow(unsafe_code)]

use rayon::prelude::*;
use ringfold_read::internals::{Level, prefetch};
use zerocopy::{
    FromBytes, FromZeros, Immutable, IntoBytes, transmute, transmute_mut, transmute_ref,
};

use crate::table::hash_range::HashRange;
use crate::table::isa::{InlineKey, Seeds};
use crate::table::key::{ANY_KEY, AnyKey, hash_any};
use crate::table::pages::Pages;

mod in_order;

/// Bytes of a unit.
pub(crate) const UNIT: usize = 16;
/// Units of a cache line.
const LINE_UNITS: usize = 64 / UNIT;
/// The most bytes of a key, with the byte after it.
pub(crate) const KEY_MAX: usize = size_of::<AnyKey>();
/// Bits that tell how many units a key takes.
pub(crate) const KEY_UNIT_BITS: u32 = (KEY_MAX / UNIT).ilog2();
const KEY_UNITS: u32 = (1 << KEY_UNIT_BITS) - 1;
/// The most bytes of a key that is loaded and compared at once.
pub(crate) const SHORT_MAX: usize = 32;
/// Units that are read after a key of one.
const SPARE: usize = 2;

/// Slots of a new table, and of one for a range of hashes.
const SLOTS_MIN: usize = 1 << 13;
const SLOTS_MIN_OF_PART: usize = 1 << 10;
/// Up to so many slots at most a quarter is used, for few displaced keys; beyond, three quarters.
const SPARSE_MAX: usize = 1 << 18;
/// Units of a new table. Their memory is only mapped, and touched as keys come.
const UNITS_MIN: usize = 1 << 12;
/// A sample has so many keys at least, if there are as many.
const SAMPLE_LEN: usize = 1 << 10;
/// How many slots ahead entries are fetched.
const AHEAD: usize = 32;

/// Half of a short key, or two lanes.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C, align(16))]
pub(crate) struct Unit(pub(crate) [i64; 2]);

impl Unit {
    #[inline(always)]
    pub(super) fn bytes(self) -> [u8; UNIT] {
        transmute!(self)
    }

    /// Bytes up to the last one that isn't zero.
    #[inline(always)]
    pub(super) fn length(self) -> usize {
        UNIT - u128::from_le_bytes(self.bytes()).leading_zeros() as usize / 8
    }
}

/// A tag in the high half, and in the low one where the entry begins, counted from 1. 0 if empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromZeros)]
pub(crate) struct EntryRef(u64);

impl EntryRef {
    /// Of an entry with a key of so many units.
    pub(crate) fn new(place: u32, key_units: usize) -> EntryRef {
        EntryRef((key_units as u64 - 1) << 32 | (u64::from(place) + 1))
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Where the entry begins.
    #[inline(always)]
    pub(crate) fn place(self) -> u32 {
        (self.0 as u32).wrapping_sub(1)
    }

    /// Units of the key.
    #[inline(always)]
    pub(crate) fn key_units(self) -> usize {
        units_of(self.tag())
    }
}

/// Units of the keys with this tag.
#[inline(always)]
fn units_of(tag: u32) -> usize {
    (tag & KEY_UNITS) as usize + 1
}

/// The tag of a key of so many bytes, the one after it counted.
#[inline(always)]
pub(crate) fn tag_of(hash: u32, bytes: usize) -> u32 {
    (hash & !KEY_UNITS) | ((bytes as u32 - 1) / UNIT as u32)
}

/// The tag under which the table of one range stores a tag. All tags of a range begin with the same bits, and they come in
/// order; stored as they are they would crowd at one end of the table.
#[inline(always)]
fn scattered(tag: u32) -> u32 {
    // An odd factor is a bijection; this one, 2^32 over the golden ratio, spreads neighbours far apart.
    (tag >> KEY_UNIT_BITS).wrapping_mul(0x9e37_79b1) << KEY_UNIT_BITS | tag & KEY_UNITS
}

/// A key with the byte after it, which isn't zero, and zeros after that.
#[derive(Clone)]
pub(crate) struct Key {
    bytes: AnyKey,
    length: usize,
}

impl Key {
    /// A key with the byte after it, if it fits an entry.
    pub(crate) fn of(key: &[u8]) -> Option<Key> {
        let mut bytes = ANY_KEY;
        let to = bytes.as_mut_bytes().get_mut(..key.len())?;
        to.copy_from_slice(key);
        (!key.is_empty()).then_some(Key {
            bytes,
            length: key.len(),
        })
    }

    /// Its bytes, without the one after it.
    pub(crate) fn text(&self) -> &[u8] {
        &self.bytes.as_bytes()[..self.length - 1]
    }

    /// Its bytes if they are few, and zeros after them.
    pub(crate) fn short(&self) -> Option<InlineKey> {
        let short = self.bytes[0].0.first_chunk().expect("a key has more");
        (self.length <= SHORT_MAX).then_some(InlineKey(*short))
    }

    /// The same for any table of these seeds.
    pub(crate) fn tag(&self, level: Level, seeds: &Seeds) -> u32 {
        let key = &self.bytes.as_bytes()[..self.length];
        tag_of(hash_any(level, seeds, key), self.length)
    }
}

/// The table.
pub(crate) struct EntryTable {
    slots: Pages<EntryRef>,
    shift: u32,
    units: Pages<Unit>,
    used: usize,
    len: usize,
    lane_units: usize,
    /// How many keys have each byte after them.
    after: Box<[u32; 256]>,
    /// A bit for each number of units that a key has.
    key_sizes: u16,
    /// It has keys of one range of hashes.
    is_part: bool,
    /// Memory is short: few slots are left empty.
    is_dense: bool,
    /// The most units that were in use: their memory is taken.
    touched: usize,
}

impl EntryTable {
    /// For keys with so many lanes; where memory is short, with few slots that are left empty.
    pub(crate) fn new(lanes: usize, is_dense: bool) -> EntryTable {
        EntryTable {
            is_dense,
            ..EntryTable::with_slots(lanes, SLOTS_MIN)
        }
    }

    /// For the keys of one range of hashes.
    pub(crate) fn part(lanes: usize) -> EntryTable {
        EntryTable {
            is_part: true,
            is_dense: true,
            ..EntryTable::with_slots(lanes, SLOTS_MIN_OF_PART)
        }
    }

    /// A new one of this kind.
    pub(crate) fn like(&self, lanes: usize) -> EntryTable {
        match self.is_part {
            true => EntryTable::part(lanes),
            false => EntryTable::new(lanes, self.is_dense),
        }
    }

    fn with_slots(lanes: usize, slots: usize) -> EntryTable {
        EntryTable {
            slots: Pages::touched(slots),
            shift: 32 - slots.trailing_zeros(),
            units: Pages::new(UNITS_MIN),
            used: 0,
            len: 0,
            lane_units: lanes.div_ceil(2),
            after: Box::new([0; 256]),
            key_sizes: 0,
            is_part: false,
            is_dense: false,
            touched: 0,
        }
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.slots) + self.used.max(self.touched) * UNIT
    }

    /// Forgets all keys, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.touched = self.touched.max(self.used);
        self.slots.fill(EntryRef(0));
        self.units[..self.used].fill(Unit([0; 2]));
        self.after.fill(0);
        (self.used, self.len, self.key_sizes) = (0, 0, 0);
    }

    /// The most memory that is taken while so many keys more are added.
    pub(crate) fn bytes_with(&self, more: usize) -> usize {
        let slots = size_of_val(&*self.slots);
        let grows = self.len + more > self.used_max();
        let entry = self.used.div_ceil(self.len.max(1)) * UNIT;
        self.bytes() + more * entry + if grows { 2 * slots } else { 0 }
    }

    /// How many keys have each byte after them.
    pub(crate) fn after(&self) -> &[u32; 256] {
        &self.after
    }

    /// The first unit, for lanes that are found by their places.
    pub(crate) fn pointer(&self) -> *mut Unit {
        self.units.pointer()
    }

    fn used_max(&self) -> usize {
        let slots = self.slots.len();
        match slots <= SPARSE_MAX && !self.is_dense {
            true => slots / 4,
            false => slots / 4 * 3,
        }
    }

    /// Makes room for so many keys of so many units.
    pub(crate) fn reserve(&mut self, keys: usize, key_units: usize) {
        while self.len + keys > self.used_max() {
            self.grow_slots();
        }
        let units = self.used + keys * (self.lane_units + key_units) + SPARE;
        if units > self.units.len() {
            assert!(u32::try_from(units).is_ok(), "a table of less than 64 GiB");
            self.units.grow(units.next_power_of_two());
        }
    }

    #[cold]
    fn grow_slots(&mut self) {
        let length = self.slots.len() * 2;
        assert!(length <= 1 << 29, "fewer than 400 million keys");
        self.shift -= 1;
        let old = std::mem::replace(&mut self.slots, Pages::touched(length));
        for slot in old.iter().filter(|slot| !slot.is_empty()) {
            let mut at = (slot.tag() >> self.shift) as usize;
            while !self.slots[at].is_empty() {
                at = (at + 1) & (length - 1);
            }
            self.slots[at] = *slot;
        }
    }

    /// The slot that keys with this tag belong to.
    #[inline(always)]
    fn home(&self, tag: u32) -> usize {
        (tag >> self.shift) as usize
    }

    /// Fetches that slot: to the second-level cache, which has more fill buffers than the first.
    #[inline(always)]
    pub(crate) fn prefetch_home(&self, tag: u32) {
        prefetch::into_l2(self.slots.as_ptr().wrapping_add(self.home(tag)).cast());
    }

    /// Fetches an entry.
    #[inline(always)]
    pub(crate) fn prefetch(&self, entry: EntryRef) {
        let first = self.units.pointer().wrapping_add(entry.place() as usize);
        let last = self.lane_units + entry.key_units() - 1;
        for unit in (0..last).step_by(LINE_UNITS) {
            prefetch::into_l2(first.wrapping_add(unit).cast());
        }
        prefetch::into_l2(first.wrapping_add(last).cast());
    }

    /// The first slot from a tag's own on with the same tag, or empty. Its entry is fetched.
    #[inline(always)]
    pub(crate) fn seek(&self, tag: u32) -> u32 {
        let mask = self.slots.len() - 1;
        let mut at = self.home(tag);
        loop {
            // SAFETY: a masked number is a slot's.
            let slot = unsafe { *self.slots.get_unchecked(at) };
            if slot.is_empty() || slot.tag() == tag {
                self.prefetch(slot);
                return at as u32;
            }
            at = (at + 1) & mask;
        }
    }

    /// Whether the entry at `place` has this key, of so many units.
    ///
    /// # Safety
    /// The entry is in use, its key has as many units; so many of `key` are readable.
    #[inline(always)]
    unsafe fn has_key(&self, place: u32, key: *const Unit, key_units: usize) -> bool {
        // SAFETY: as the caller's.
        unsafe {
            let stored: *const Unit = self.units.pointer().add(place as usize + self.lane_units);
            let differ = |at: usize| {
                let (stored, key) = (*stored.add(at), *key.add(at));
                stored.0[0] ^ key.0[0] | stored.0[1] ^ key.0[1]
            };
            // No branch on the length of short keys, and no look at what is after them.
            let first_two = differ(0) | differ(usize::from(key_units > 1));
            first_two == 0 && (2..key_units).all(|at| differ(at) == 0)
        }
    }

    /// The place of a key's entry, searched from the slot `at` on, which is its tag's own or after that. A new key gets an
    /// entry of zeros. Says whether it is new.
    ///
    /// # Safety
    /// There is room for a key more; as many units of `key` are readable as its tag says.
    #[inline(always)]
    pub(crate) unsafe fn find_or_push(
        &mut self,
        tag: u32,
        key: *const Unit,
        mut at: usize,
    ) -> (u32, bool) {
        let mask = self.slots.len() - 1;
        loop {
            // SAFETY: a masked number is a slot's; the rest as the caller's.
            unsafe {
                let slot = *self.slots.get_unchecked(at);
                if slot.is_empty() {
                    let place = self.used;
                    *self.slots.get_unchecked_mut(at) =
                        EntryRef(u64::from(tag) << 32 | (place as u64 + 1));
                    self.push_key(key, units_of(tag));
                    return (place as u32, true);
                }
                if slot.tag() == tag && self.has_key(slot.place(), key, units_of(tag)) {
                    return (slot.place(), false);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Appends an entry.
    ///
    /// # Safety
    /// There is room for it; so many units of `key` are readable.
    #[inline(always)]
    unsafe fn push_key(&mut self, key: *const Unit, units: usize) {
        // SAFETY: as the caller's; the table has exclusive use of its units.
        unsafe {
            let to = self.units.pointer().add(self.used + self.lane_units);
            std::ptr::copy_nonoverlapping(key, to, units);
            let last = *key.add(units - 1);
            self.after[usize::from(last.bytes()[last.length().max(1) - 1])] += 1;
        }
        self.used += self.lane_units + units;
        self.len += 1;
        self.key_sizes |= 1 << (units - 1);
    }

    /// The entry of a key with this tag, if there is one.
    pub(crate) fn find(&self, tag: u32, key: &Key) -> Option<EntryRef> {
        // SAFETY: a key has more than its units.
        unsafe { self.find_by(self.own(tag), key.bytes.as_ptr().cast()) }
    }

    /// The entry of a key with this tag, as the table stores it.
    ///
    /// # Safety
    /// As many units of `key` are readable as its tag says.
    unsafe fn find_by(&self, tag: u32, key: *const Unit) -> Option<EntryRef> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(tag);
        loop {
            let slot = self.slots[at];
            if slot.is_empty() {
                return None;
            }
            // SAFETY: as the caller's; a slot's entry is in use.
            if slot.tag() == tag && unsafe { self.has_key(slot.place(), key, units_of(tag)) } {
                return Some(slot);
            }
            at = (at + 1) & mask;
        }
    }

    /// A tag as the table stores it.
    fn own(&self, tag: u32) -> u32 {
        if self.is_part { scattered(tag) } else { tag }
    }

    /// Adds a key with its lanes, or these to the lanes that it has by `add`, which may refuse to: then it says so.
    pub(crate) fn add(
        &mut self,
        tag: u32,
        key: &Key,
        lanes: &[i64],
        add: impl FnOnce(&mut [i64], &[i64]) -> bool,
    ) -> bool {
        // SAFETY: a key has more than its units.
        unsafe { self.add_by(tag, key.bytes.as_ptr().cast(), lanes, add) }
    }

    /// # Safety
    /// As many units of `key` are readable as its tag says.
    unsafe fn add_by(
        &mut self,
        tag: u32,
        key: *const Unit,
        lanes: &[i64],
        add: impl FnOnce(&mut [i64], &[i64]) -> bool,
    ) -> bool {
        self.reserve(1, units_of(tag));
        let tag = self.own(tag);
        // SAFETY: as the caller's.
        let (place, is_new) = unsafe { self.find_or_push(tag, key, self.home(tag)) };
        let to = self.lanes_mut(place);
        if is_new {
            to[..lanes.len()].copy_from_slice(lanes);
            return true;
        }
        add(to, lanes)
    }

    /// The lanes of the entry at a place, and perhaps one more.
    pub(crate) fn lanes(&self, place: u32) -> &[i64] {
        let units = &self.units[place as usize..][..self.lane_units];
        units.as_flattened_lanes()
    }

    /// The same, to be changed.
    pub(crate) fn lanes_mut(&mut self, place: u32) -> &mut [i64] {
        let units = &mut self.units[place as usize..][..self.lane_units];
        units.as_flattened_lanes_mut()
    }

    /// An entry's key with the byte after it.
    pub(crate) fn key(&self, entry: EntryRef) -> &[u8] {
        let from = entry.place() as usize + self.lane_units;
        key_of(&self.units[from..from + entry.key_units()])
    }

    /// All entries, in the order of their tags.
    pub(crate) fn entries(&self) -> impl Iterator<Item = EntryRef> {
        (0..self.slots.len()).filter_map(|slot| self.entry_in(slot))
    }

    /// The keys of all of them, with the byte after each, and their lanes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[i64])> {
        (self.entries()).map(|entry| (self.key(entry), self.lanes(entry.place())))
    }

    /// The entry in a slot, if it isn't empty; the one in a later slot is fetched.
    pub(crate) fn entry_in(&self, slot: usize) -> Option<EntryRef> {
        if let Some(later) = self.slots.get(slot + AHEAD) {
            self.prefetch(*later);
        }
        Some(self.slots[slot]).filter(|slot| !slot.is_empty())
    }

    /// Calls `change` for each key, with the byte after it, and its lanes.
    pub(crate) fn each_mut(&mut self, mut change: impl FnMut(&[u8], &mut [i64])) {
        for slot in 0..self.slots.len() {
            let Some(entry) = self.entry_in(slot) else {
                continue;
            };
            let key = self.key(entry).to_vec();
            change(&key, self.lanes_mut(entry.place()));
        }
    }

    /// Whether this table lacks most keys of another one, by a sample of them.
    pub(crate) fn lacks_most_of(&self, other: &EntryTable) -> bool {
        let bits = (other.len / SAMPLE_LEN).max(1).ilog2();
        let (mut lacks, mut sampled) = (0, 0);
        for (tag, entry) in other.range(HashRange { bits, number: 0 }) {
            // SAFETY: the key of an entry in use, after which there are units more.
            lacks += usize::from(unsafe { self.find_by(tag, other.key_pointer(entry)) }.is_none());
            sampled += 1;
        }
        8 * lacks > 7 * sampled
    }

    /// The entries of a range of hashes, and their tags. The table isn't one of a range itself.
    pub(crate) fn range(&self, hashes: HashRange) -> impl Iterator<Item = (u32, EntryRef)> {
        let (homes, slots) = (hashes.homes(self.shift), self.slots.len());
        // Displaced ones lie after the last home slot, with no empty slot in between; those of all hashes in any slot.
        let most = if hashes.bits == 0 { slots } else { 2 * slots };
        (homes.start..most)
            .map(move |at| (at, self.entry_in(at & (slots - 1))))
            .take_while(move |(at, entry)| *at < homes.end || entry.is_some())
            .filter_map(|(_, entry)| Some((entry?.tag(), entry?)))
            .filter(move |(tag, _)| hashes.contain(*tag))
    }

    /// Adds the entries of another table that are in a range of hashes to this one, which is one of that range. Entries that
    /// `add` refuses are `refused`.
    pub(crate) fn absorb(
        &mut self,
        from: &EntryTable,
        hashes: HashRange,
        add: &impl Fn(&mut [i64], &[i64]) -> bool,
        refused: &mut Vec<Refused>,
    ) {
        let mut entries = from.range(hashes);
        let mut batch = Vec::with_capacity(AHEAD);
        loop {
            batch.extend(entries.by_ref().take(AHEAD));
            if batch.is_empty() {
                return;
            }
            for (tag, _) in &batch {
                self.prefetch_home(self.own(*tag));
            }
            for (tag, _) in &batch {
                self.seek(self.own(*tag));
            }
            for (tag, entry) in batch.drain(..) {
                self.absorb_one(from, tag, entry, add, refused);
            }
        }
    }

    /// Adds the entries of other tables to those of the same keys here, in parallel. Returns for each of 2^`bits` ranges of
    /// hashes a table of the other keys, if there are some.
    pub(crate) fn merge(
        &mut self,
        tables: &[EntryTable],
        bits: u32,
        add: &(impl Fn(&mut [i64], &[i64]) -> bool + Sync),
        refused: &mut Vec<Refused>,
    ) -> Vec<Option<EntryTable>> {
        let lanes = 2 * self.lane_units;
        let this = &*self;
        let ranges: Vec<HashRange> = HashRange::ranges(bits).collect();
        let parts = ranges.into_par_iter().map(|hashes| {
            let (mut new, mut refused) = (None, Vec::new());
            let mut batch = Vec::with_capacity(AHEAD);
            for table in tables {
                let mut entries = table.range(hashes);
                loop {
                    batch.extend(entries.by_ref().take(AHEAD));
                    if batch.is_empty() {
                        break;
                    }
                    for (tag, _) in &batch {
                        this.seek(*tag);
                    }
                    for (tag, entry) in batch.drain(..) {
                        // SAFETY: the key of an entry in use, after which there are units more.
                        let found = unsafe { this.find_by(tag, table.key_pointer(entry)) };
                        let Some(found) = found else {
                            let new = new.get_or_insert_with(|| EntryTable::part(lanes));
                            new.absorb_one(table, tag, entry, add, &mut refused);
                            continue;
                        };
                        // SAFETY: the lanes of an entry in use. Its tag is in the task's range, so no other task has
                        // them, and `self` is borrowed alone.
                        let to = unsafe {
                            let to = this.units.pointer().add(found.place() as usize);
                            std::slice::from_raw_parts_mut(to.cast::<i64>(), lanes)
                        };
                        if !add(to, table.lanes(entry.place())) {
                            refused.push(table.refused(entry));
                        }
                    }
                }
            }
            (new, refused)
        });
        let parts: Vec<(Option<EntryTable>, Vec<Refused>)> = parts.collect();
        let parts = parts.into_iter().map(|(new, mut of_range)| {
            refused.append(&mut of_range);
            new
        });
        parts.collect()
    }

    fn absorb_one(
        &mut self,
        from: &EntryTable,
        tag: u32,
        entry: EntryRef,
        add: impl FnOnce(&mut [i64], &[i64]) -> bool,
        refused: &mut Vec<Refused>,
    ) {
        let lanes = from.lanes(entry.place());
        // SAFETY: the key of an entry in use, after which there are units more.
        let is_added = unsafe { self.add_by(tag, from.key_pointer(entry), lanes, add) };
        if !is_added {
            refused.push(from.refused(entry));
        }
    }

    /// How many units each entry's lanes take, and each key, if they all take as many.
    pub(crate) fn entry_size(&self) -> (usize, Option<usize>) {
        let key_units = self.key_sizes.trailing_zeros() as usize + 1;
        let is_uniform = self.key_sizes.count_ones() == 1;
        (self.lane_units, is_uniform.then_some(key_units))
    }

    /// All entries, in the order in which they came, and how many units they take.
    pub(crate) fn into_units(self) -> (Pages<Unit>, usize) {
        (self.units, self.used)
    }

    fn key_pointer(&self, entry: EntryRef) -> *const Unit {
        let place = entry.place() as usize + self.lane_units;
        self.units.pointer().wrapping_add(place)
    }

    fn refused(&self, entry: EntryRef) -> Refused {
        (self.key(entry).to_vec(), self.lanes(entry.place()).to_vec())
    }
}

/// A key with the byte after it, and lanes that were not added to those of the same key.
pub(crate) type Refused = (Vec<u8>, Vec<i64>);

/// The key in some units, with the byte after it.
#[inline(always)]
fn key_of(units: &[Unit]) -> &[u8] {
    let last = units[units.len() - 1];
    &units.as_bytes()[..(units.len() - 1) * UNIT + last.length()]
}

/// Numbers in units.
pub(super) trait Lanes {
    fn as_flattened_lanes(&self) -> &[i64];
    fn as_flattened_lanes_mut(&mut self) -> &mut [i64];
}

impl Lanes for [Unit] {
    fn as_flattened_lanes(&self) -> &[i64] {
        let lanes: &[[i64; 2]] = transmute_ref!(self);
        lanes.as_flattened()
    }

    fn as_flattened_lanes_mut(&mut self) -> &mut [i64] {
        let lanes: &mut [[i64; 2]] = transmute_mut!(self);
        lanes.as_flattened_mut()
    }
}
