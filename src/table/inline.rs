//! The table for few keys: a key of up to 31 bytes and its lanes side by side in a slot, in a table so sparse that most keys
//! lie in their own slot.
//!
//! Invariant of this module: at least one slot is empty, which is one whose key is all zeros. A place is the number of
//! units before a slot's lanes. Keys that are looked up are readable as [`isa`](crate::table::isa) says.
#![allow(unsafe_code)]

use ringfold_read::internals::prefetch;
use zerocopy::{FromBytes, Immutable, IntoBytes, transmute, transmute_mut, transmute_ref};

use crate::table::batch::{BATCH, Batch};
use crate::table::entries::{SHORT_MAX, UNIT};
use crate::table::isa::{InlineKey, Kernels, Seeds};
use crate::table::pages::Pages;

/// Lanes in a cell.
const CELL_LANES: usize = SHORT_MAX / size_of::<i64>();
/// Units in a cell.
const CELL_UNITS: usize = SHORT_MAX / UNIT;
/// The least slots of a table.
const SLOTS_MIN: usize = 1 << 9;
/// How many times as many slots a table has when it grows.
const GROWTH: usize = 4;
/// Up to so many bytes of slots at most a sixteenth is used: a displaced key costs a mispredicted branch on each of its rows.
const SPARSE_BYTES: usize = 1 << 20;
/// The most bytes of slots, of which a quarter is used.
const BYTES_MAX: usize = 4 << 20;
/// Up to so many bytes of used slots the first-level cache holds most of them.
const L1_BYTES: usize = 64 << 10;

/// A key, or four lanes.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C, align(32))]
struct Cell([i64; CELL_LANES]);

impl Cell {
    fn is_empty(&self) -> bool {
        self.0 == [0; CELL_LANES]
    }

    /// The bytes of a key, with the one after it.
    fn key(&self) -> &[u8] {
        let last = self.0.iter().rposition(|&word| word != 0);
        let length = last.map_or(0, |at| {
            8 * (at + 1) - self.0[at].to_le().leading_zeros() as usize / 8
        });
        &self.as_bytes()[..length]
    }
}

fn lanes_of(cells: &[Cell]) -> &[i64] {
    let lanes: &[[i64; CELL_LANES]] = transmute_ref!(cells);
    lanes.as_flattened()
}

fn lanes_mut(cells: &mut [Cell]) -> &mut [i64] {
    let lanes: &mut [[i64; CELL_LANES]] = transmute_mut!(cells);
    lanes.as_flattened_mut()
}

/// The table.
pub(crate) struct InlineTable {
    cells: Pages<Cell>,
    /// Cells of a slot, a power of two.
    stride: usize,
    used: usize,
}

impl InlineTable {
    /// For keys with so many lanes.
    pub(crate) fn new(lanes: usize) -> InlineTable {
        let stride = (1 + lanes.div_ceil(CELL_LANES)).next_power_of_two();
        InlineTable {
            cells: Pages::new(SLOTS_MIN * stride),
            stride,
            used: 0,
        }
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.cells)
    }

    /// The first unit, for lanes that are found by their places.
    pub(crate) fn pointer(&self) -> *mut u8 {
        self.cells.pointer().cast()
    }

    fn slots(&self) -> usize {
        self.cells.len() / self.stride
    }

    fn used_max(&self) -> usize {
        let slots = self.slots();
        match self.bytes() {
            _ if slots == SLOTS_MIN => slots / 2,
            ..=SPARSE_BYTES => slots / 16,
            _ => slots / 4,
        }
    }

    /// Makes room for so many keys; says whether there is.
    pub(crate) fn reserve(
        &mut self,
        keys: usize,
        seeds: &Seeds,
        hash: impl Fn(&Seeds, &InlineKey) -> u32,
    ) -> bool {
        while self.used + keys > self.used_max() {
            let growth = GROWTH.min(BYTES_MAX / self.bytes());
            if growth < 2 {
                return false;
            }
            let slots = growth * self.slots();
            let old = std::mem::replace(&mut self.cells, Pages::new(slots * self.stride));
            self.used = 0;
            for slot in old.chunks(self.stride).filter(|slot| !slot[0].is_empty()) {
                let key = transmute!(slot[0]);
                let hash = hash(seeds, &key);
                self.insert(hash, &key)
                    .copy_from_slice(lanes_of(&slot[1..]));
            }
        }
        true
    }

    /// Gives a key that isn't there yet a slot, for which there is room; returns its lanes, and perhaps some more.
    pub(crate) fn insert(&mut self, hash: u32, key: &InlineKey) -> &mut [i64] {
        let mut at = home(hash, self.slots() as u32) as usize * self.stride;
        while !self.cells[at].is_empty() {
            at = (at + self.stride) % self.cells.len();
        }
        self.cells[at] = transmute!(*key);
        self.used += 1;
        lanes_mut(&mut self.cells[at + 1..at + self.stride])
    }

    /// The lanes at a place, and perhaps some more.
    pub(crate) fn lanes_mut(&mut self, place: u32) -> &mut [i64] {
        let at = place as usize / CELL_UNITS;
        lanes_mut(&mut self.cells[at..at + self.stride - 1])
    }

    /// All keys, with the byte after each, and their lanes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[i64])> {
        let slots = self.cells.chunks(self.stride);
        let used = slots.filter(|slot| !slot[0].is_empty());
        used.map(|slot| (slot[0].key(), lanes_of(&slot[1..])))
    }

    /// Calls `change` for each of them.
    pub(crate) fn each_mut(&mut self, mut change: impl FnMut(&[u8], &mut [i64])) {
        for slot in self.cells.chunks_mut(self.stride) {
            let (key, lanes) = slot.split_at_mut(1);
            if !key[0].is_empty() {
                change(key[0].key(), lanes_mut(lanes));
            }
        }
    }

    /// Looks up the keys of a batch, which are spans of `text`. Those that are new get slots of zeros.
    ///
    /// # Safety
    /// As that of [`LaneTable::find`](crate::table::lane_table::LaneTable::find); keys are no longer than [`SHORT_MAX`], and
    /// there is room for as many.
    #[inline(always)]
    pub(crate) unsafe fn find<I: Kernels>(
        &mut self,
        isa: I,
        seeds: &Seeds,
        text: *const u8,
        spans: &[u32],
        batch: &mut Batch,
    ) {
        let exceeds_l1 = self.used * self.stride * size_of::<Cell>() > L1_BYTES;
        let cells = self.cells.pointer();
        let (count, stride, end) = (
            self.slots() as u32,
            self.stride as u32,
            self.cells.len() as u32,
        );
        let stride_bits = stride.trailing_zeros();
        let following = |at: u32| {
            let next = at + stride;
            if next == end { 0 } else { next }
        };
        let fetch = |at: u32| {
            let slot = cells.wrapping_add(at as usize).cast::<u8>();
            prefetch::into_l1(slot);
            if stride > 2 {
                prefetch::into_l1(slot.wrapping_add(64));
            }
        };
        // SAFETY: as the caller's.
        unsafe { batch.load(isa, seeds, text, spans, |_| ()) };
        for place in &mut batch.places[..spans.len()] {
            *place = home(*place, count) << stride_bits;
            if exceeds_l1 {
                fetch(*place);
            }
        }
        let rows = batch.keys.iter().zip(&mut batch.places).take(spans.len());
        for (row, (key, place)) in rows.enumerate() {
            // SAFETY: homes, and the slots that follow them, are in the table.
            unsafe {
                let mut at = *place;
                *place = (at + 1) * CELL_UNITS as u32;
                if isa.equals(key, &*cells.add(at as usize).cast::<InlineKey>()) {
                    continue;
                }
                // Displaced or new.
                loop {
                    let slot = cells.add(at as usize);
                    if (*slot).0 == [0; CELL_LANES] {
                        slot.cast::<InlineKey>().write(*key);
                        self.used += 1;
                        batch.fresh.push(row as u32);
                        break;
                    }
                    at = following(at);
                    if isa.equals(key, &*cells.add(at as usize).cast::<InlineKey>()) {
                        break;
                    }
                }
                *place = (at + 1) * CELL_UNITS as u32;
            }
        }
        debug_assert!(spans.len() <= BATCH);
    }
}

/// Which slot keys of this hash belong to.
#[inline(always)]
fn home(hash: u32, slots: u32) -> u32 {
    ((u64::from(hash) * u64::from(slots)) >> 32) as u32
}
