//! The buffers: one anonymous mapping in huge pages, cut into slots that move from the ring to the workers
//! and back.
//!
//! ```text
//! | 4 KiB | block | spare | block | spare | …
//!           ^ slot 0        ^ slot 1
//! ```
//!
//! A slot's block takes what a read brings. Its spare bytes take the completion of its last
//! record; the last [`PADDING`] of them are never written, so that together with the page at the
//! front every block has the padding that [`crate::record::block::Block`] promises.
//!
//! # Invariant of this module
//! For each index there is at most one [`Slot`] at any time: [`Arena::slots`] hands out each one
//! once, and a slot is neither `Clone` nor made elsewhere. So a slot is the only owner of its part
//! of the mapping, which lives as long as any slot does.
#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use rayon::prelude::*;
use rustix::mm::{Advice, madvise};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::engine::knobs::HugePages;
use crate::error::refusal::{Refusal, Refuser};
use crate::error::setting::Setting;
use crate::error::{Error, Result};
use crate::linux::pages::{HUGE_PAGE, PAGE, transparent_huge_pages};
use crate::linux::{proc, smaps};
use crate::record::block::{Block, PADDING};
use crate::record::stitch::Piece;

/// The size and number of the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes that one read may bring.
    pub block: usize,
    /// How many slots there are.
    pub slots: usize,
}

impl Layout {
    /// From the start of one slot to the start of the next: whole pages, at least one of them
    /// spare.
    pub(crate) fn stride(&self) -> usize {
        self.block.next_multiple_of(PAGE) + PAGE
    }

    /// The anonymous memory that the slots take, in such pages.
    pub(crate) fn bytes(&self, pages: HugePages) -> usize {
        let bytes = PAGE + self.stride() * self.slots;
        let named = matches!(pages, HugePages::Thp | HugePages::Hugetlb);
        if bytes < HUGE_PAGE && !named {
            bytes
        } else {
            bytes.next_multiple_of(HUGE_PAGE)
        }
    }
}

/// Maps anonymous memory, in huge pages of the pool or in small ones.
fn map_memory(bytes: usize, hugetlb: bool) -> rustix::io::Result<NonNull<u8>> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let flags = match hugetlb {
        true => MapFlags::HUGETLB | MapFlags::HUGE_2MB,
        false => MapFlags::NORESERVE,
    };
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    let (anywhere, flags) = (std::ptr::null_mut(), MapFlags::PRIVATE | flags);
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nobody else.
    let map = unsafe { mmap_anonymous(anywhere, bytes, rights, flags) }?;
    Ok(NonNull::new(map.cast::<u8>()).expect("mmap returns no null"))
}

/// The mapping that all slots lie in.
#[derive(Debug)]
pub struct Arena {
    layout: Layout,
    /// Bytes of the slots, from the base on.
    bytes: usize,
    /// Aligned to 2 MiB when it is at least that large, else to a page.
    base: NonNull<u8>,
    map: NonNull<u8>,
    map_len: usize,
}

// SAFETY: the arena itself only hands out addresses; the bytes are reached through slots, each of
// which owns its own.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps the memory and asks the kernel for pages of this kind.
    ///
    /// # Errors
    /// The kernel refuses the memory, or the pages that were named.
    pub fn new(layout: Layout, pages: HugePages) -> Result<Arc<Arena>> {
        let bytes = layout.bytes(pages);
        let hugetlb = pages == HugePages::Hugetlb;
        // More, so that the base can be aligned to a huge page. Mappings from the pool are aligned.
        let map_len = if bytes >= HUGE_PAGE && !hugetlb {
            bytes + HUGE_PAGE
        } else {
            bytes
        };
        let map = map_memory(map_len, hugetlb).map_err(|errno| {
            let refusal = match hugetlb {
                true => pool_too_small(bytes),
                false => Refusal::NoMemory {
                    buffers: layout.slots,
                    bytes: layout.block,
                },
            };
            Error::from(refusal).with_errno(&errno.into())
        })?;
        let skip = if bytes >= HUGE_PAGE {
            map.as_ptr().align_offset(HUGE_PAGE)
        } else {
            0
        };
        // SAFETY: skip < HUGE_PAGE, and so much more than `bytes` was mapped; 0 in the pool's pages.
        let base = unsafe { map.add(skip) };
        let arena = Arena {
            layout,
            bytes,
            base,
            map,
            map_len,
        };
        match pages {
            // A refusal leaves small pages; the statistics tell what was granted.
            HugePages::Auto if bytes >= HUGE_PAGE => drop(arena.advise(Advice::LinuxHugepage)),
            HugePages::Auto => {}
            // A kernel that refuses this has no huge pages.
            HugePages::Off => drop(arena.advise(Advice::LinuxNoHugepage)),
            HugePages::Thp => arena.demand_thp()?,
            HugePages::Hugetlb => arena.take_from_pool()?,
        }
        Ok(Arc::new(arena))
    }

    /// Advises the kernel on a new arena's memory.
    fn advise(&self, advice: Advice) -> rustix::io::Result<()> {
        // SAFETY: the range lies within our own mapping, into which nobody else has a pointer yet.
        unsafe { madvise(self.base.as_ptr().cast(), self.bytes, advice) }
    }

    /// Has all memory in transparent huge pages, or fails.
    fn demand_thp(&self) -> Result<()> {
        self.advise(Advice::LinuxHugepage).map_err(|errno| {
            let why = "this kernel has no transparent huge pages".to_string();
            let refusal = not_granted(HugePages::Thp, Refuser::Kernel, why);
            Error::from(refusal).with_errno(&errno.into())
        })?;
        // They are granted at the first touch.
        let touched = self.advise(Advice::LinuxPopulateWrite);
        let granted = self.huge_bytes().unwrap_or(0);
        if granted >= self.bytes as u64 {
            return Ok(());
        }
        let error = Error::from(no_thp(granted, self.bytes));
        Err(match touched {
            Ok(()) => error,
            Err(errno) => error.with_errno(&errno.into()),
        })
    }

    /// Takes all pages from the pool at once. It may have pages that the control group forbids: touched later, they
    /// would be a SIGBUS.
    fn take_from_pool(&self) -> Result<()> {
        match self.advise(Advice::LinuxPopulateWrite) {
            // Before Linux 5.14 they are touched when they are used.
            Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(()),
            Err(errno) => Err(Error::from(pool_too_small(self.bytes)).with_errno(&errno.into())),
        }
    }

    /// The anonymous memory that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many slots there are.
    pub(crate) fn count(&self) -> usize {
        self.layout.slots
    }

    /// All slots, and the channel that they return to when they are dropped. May be called once.
    pub fn slots(self: &Arc<Self>) -> (Vec<Slot>, ReturnedSlots) {
        let (sender, arrivals) = unbounded_channel();
        let slots = (0..self.layout.slots)
            .map(|index| Slot {
                // SAFETY: PAGE + index * stride + block lies within `bytes` mapped from the base.
                start: unsafe { self.base.add(PAGE + index * self.layout.stride()) },
                begin: 0,
                end: 0,
                block: self.layout.block,
                capacity: self.layout.stride() - PADDING,
                index: index as u32,
                position: 0,
                arena: Some(Arc::clone(self)),
                sender: Some(sender.clone()),
            })
            .collect();
        (slots, ReturnedSlots { arrivals, sender })
    }

    /// The arena as address and length, in parts of at most `max` bytes that hold whole slots, and
    /// how many slots each part holds: what the kernel is asked to register.
    pub(crate) fn parts(&self, max: usize) -> (usize, Vec<(NonNull<u8>, usize)>) {
        let stride = self.layout.stride();
        let per_part = (max / stride).max(1);
        let mut parts = Vec::new();
        let mut first = 0;
        while first < self.layout.slots {
            let slots = per_part.min(self.layout.slots - first);
            // SAFETY: the slot exists, so its address lies within the mapping.
            let start = unsafe { self.base.add(PAGE + first * stride) };
            parts.push((start, slots * stride));
            first += slots;
        }
        (per_part, parts)
    }

    /// How many of its bytes are in huge pages, from /proc/self/smaps.
    pub fn huge_bytes(&self) -> io::Result<u64> {
        if self.bytes < HUGE_PAGE {
            return Ok(0);
        }
        let kinds = ["AnonHugePages", "Private_Hugetlb"];
        smaps::bytes(self.base.as_ptr() as usize, &kinds)
    }
}

/// Touches the slots' memory on this pool's threads, unless [`Arena::new`] has. The kernel clears a page at the
/// first touch, and a virtual machine's host may have to allocate it first. A ring that registers untouched
/// buffers would wait for all of that on its one thread.
pub(crate) fn touch(slots: &mut [Slot], pages: HugePages) {
    if matches!(pages, HugePages::Thp | HugePages::Hugetlb) {
        return;
    }
    // Each thread gets adjacent slots, because these lie in the same huge page.
    let row = slots.len().div_ceil(rayon::current_num_threads());
    let rows = slots.par_chunks_mut(row.max(1));
    rows.for_each(|row| row.iter_mut().for_each(Slot::touch));
}

/// Why there are no transparent huge pages under all of the buffers.
fn no_thp(granted: u64, bytes: usize) -> Refusal {
    let why = match transparent_huge_pages().as_deref() {
        Ok("never") => "/sys/kernel/mm/transparent_hugepage/enabled says never",
        _ => "memory is fragmented or short, or this process may have none",
    };
    let why = format!(
        "the kernel grants {granted} of {bytes} bytes of the buffers in huge pages ({why})"
    );
    not_granted(HugePages::Thp, Refuser::Memory, why)
}

/// Why the pool has no pages for the buffers.
fn pool_too_small(bytes: usize) -> Refusal {
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    let free = proc::text(pool).map_or("no such pool".to_string(), |free| {
        format!("{free} in the pool are free")
    });
    let why = format!("{} pages of 2 MiB are needed, {free}", bytes / HUGE_PAGE);
    not_granted(HugePages::Hugetlb, Refuser::Memory, why)
}

fn not_granted(pages: HugePages, by: Refuser, why: String) -> Refusal {
    Refusal::not_granted(Setting::HugePages.of(pages), by, why)
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and as every slot holds the arena none is left. Reads in
        // flight hold their slot.
        let _ = unsafe { rustix::mm::munmap(self.map.as_ptr().cast(), self.map_len) };
    }
}

/// The channel that slots return to when they are dropped.
pub struct ReturnedSlots {
    arrivals: UnboundedReceiver<Slot>,
    /// For slots that leave again. It also keeps the channel open.
    sender: UnboundedSender<Slot>,
}

impl ReturnedSlots {
    /// Waits for a returned slot.
    pub(crate) async fn arrival(&mut self) -> Slot {
        let slot = self.arrivals.recv().await;
        self.reconnect(slot.expect("this end keeps the channel open"))
    }

    /// A slot that has returned already.
    pub(crate) fn try_arrival(&mut self) -> Option<Slot> {
        let slot = self.arrivals.try_recv().ok()?;
        Some(self.reconnect(slot))
    }

    fn reconnect(&self, mut slot: Slot) -> Slot {
        slot.sender = Some(self.sender.clone());
        slot
    }
}

/// A buffer: the only owner of its part of the arena. When it is dropped, also by a panic, it returns itself
/// to its `ReturnedSlots`.
#[derive(Debug)]
pub struct Slot {
    start: NonNull<u8>,
    begin: usize,
    end: usize,
    block: usize,
    capacity: usize,
    index: u32,
    /// The position in the run of the block that it was last filled with, for the dispatcher.
    pub(crate) position: u64,
    /// `None` only while the slot is dropped.
    arena: Option<Arc<Arena>>,
    /// Returns the slot when it is dropped. A slot in the channel has none; otherwise a slot that is sent while
    /// the receiver is dropped would keep the channel alive, and the channel the slot.
    sender: Option<UnboundedSender<Slot>>,
}

// SAFETY: a slot is the only owner of its bytes.
unsafe impl Send for Slot {}
// SAFETY: a shared slot can only be read.
unsafe impl Sync for Slot {}

impl Slot {
    /// The slot's number in the arena.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Where a read may write, and how much, after `filled` bytes of the block.
    pub(crate) fn target(&mut self, filled: usize) -> (NonNull<u8>, usize) {
        assert!(filled <= self.block);
        // SAFETY: `filled` is within the block.
        (unsafe { self.start.add(filled) }, self.block - filled)
    }

    /// The same as a slice, for sources that are copied from.
    pub fn target_bytes(&mut self, filled: usize) -> &mut [u8] {
        let (start, len) = self.target(filled);
        // SAFETY: the bytes are within the block, which is mapped, zeroed at first, and owned by
        // this slot alone.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
    }

    /// Writes to every page of the block.
    fn touch(&mut self) {
        for page in self.target_bytes(0).chunks_mut(PAGE) {
            page[0] = 0;
        }
    }

    /// Sets which bytes of the block hold the piece.
    pub(crate) fn set_filled(&mut self, begin: usize, end: usize) {
        assert!(begin <= end && end <= self.block);
        (self.begin, self.end) = (begin, end);
    }

    /// A part of the piece as a block.
    pub(crate) fn block(
        &self,
        range: std::ops::Range<usize>,
        file: u32,
        offset: u64,
        sequence: u64,
    ) -> Block<'_> {
        // SAFETY: before the first slot lies a page, before every other one the padding of its neighbour,
        // which nobody writes; after the piece `append` leaves PADDING bytes.
        unsafe { Block::new(&self.bytes()[range], file, offset, sequence) }
    }
}

impl Piece for Slot {
    fn bytes(&self) -> &[u8] {
        // SAFETY: begin..end is within the slot's own part of the mapping.
        unsafe {
            std::slice::from_raw_parts(self.start.add(self.begin).as_ptr(), self.end - self.begin)
        }
    }

    fn truncate(&mut self, len: usize) {
        self.end = self.end.min(self.begin + len);
    }

    fn append(&mut self, more: &[u8]) -> bool {
        if more.len() > self.capacity - self.end {
            return false;
        }
        // SAFETY: end + more.len() <= capacity, which is PADDING less than the stride, so the bytes
        // are this slot's own; `more` can't overlap them, as nobody else can borrow them.
        unsafe {
            std::ptr::copy_nonoverlapping(
                more.as_ptr(),
                self.start.add(self.end).as_ptr(),
                more.len(),
            );
        }
        self.end += more.len();
        true
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            let slot = Slot {
                arena: self.arena.take(),
                sender: None,
                ..*self
            };
            // Without a receiver the run is over.
            let _ = sender.send(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::arena::*;

    #[test]
    fn slots_return_and_do_not_overlap() {
        for (block, slots) in [(1, 3), (4096, 2), (5000, 3), (1 << 20, 4)] {
            let arena = Arena::new(Layout { block, slots }, HugePages::Auto).unwrap();
            let (mut all, mut returned) = arena.slots();
            for (fill, slot) in (1..).zip(&mut all) {
                slot.target_bytes(0).fill(fill);
                slot.set_filled(0, block);
                let spare = slot.capacity - block;
                assert!(slot.append(&vec![fill; spare]));
                assert!(!slot.append(&[0]), "the padding is not to be had");
            }
            for (fill, slot) in (1..).zip(&all) {
                assert!(slot.bytes().iter().all(|&byte| byte == fill), "slot {fill}");
                let block = slot.block(0..1, 0, 0, 0);
                assert_eq!(block.bytes(), [fill]);
            }
            drop(all);
            let mut indexes: Vec<_> = (0..slots)
                .map(|_| returned.try_arrival().unwrap())
                .collect();
            indexes.sort_by_key(Slot::index);
            assert_eq!(indexes.len(), slots);
            drop(returned);
            drop(indexes);
            assert_eq!(Arc::strong_count(&arena), 1, "no slot is left");
        }
    }

    /// Slots that are returned while the receiver is dropped must not keep the memory.
    #[test]
    fn slots_that_race_with_the_receivers_end_are_freed() {
        use std::sync::Barrier;
        const ROUNDS: usize = 5_000;
        let layout = Layout {
            block: 1,
            slots: 64,
        };
        let (meet, slots) = (Barrier::new(2), std::sync::Mutex::new(Vec::new()));
        let mut left = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    meet.wait();
                    let mine = std::mem::take(&mut *slots.lock().unwrap());
                    meet.wait();
                    drop(mine);
                    meet.wait();
                }
            });
            for _ in 0..ROUNDS {
                let arena = Arena::new(layout, HugePages::Off).unwrap();
                let (all, returned) = arena.slots();
                *slots.lock().unwrap() = all;
                meet.wait();
                meet.wait();
                drop(returned);
                meet.wait();
                left += Arc::strong_count(&arena) - 1;
            }
        });
        assert_eq!(left, 0, "slots that keep the memory");
    }

    #[test]
    fn touched_slots_lie_in_memory() {
        let layout = Layout {
            block: 100_000,
            slots: 5,
        };
        let arena = Arena::new(layout, HugePages::Off).unwrap();
        let (mut slots, _returned) = arena.slots();
        let resident = || smaps::bytes(arena.base.as_ptr() as usize, &["Rss"]).unwrap();
        let before = resident();
        touch(&mut slots, HugePages::Off);
        let touched = resident() - before;
        assert!(touched >= 500_000, "{touched}");
    }

    #[test]
    fn parts_hold_whole_slots() {
        let arena = Arena::new(
            Layout {
                block: 10_000,
                slots: 7,
            },
            HugePages::Off,
        )
        .unwrap();
        let stride = arena.layout.stride();
        let (per_part, parts) = arena.parts(3 * stride + 1);
        assert_eq!(per_part, 3);
        assert_eq!(
            parts.iter().map(|p| p.1 / stride).collect::<Vec<_>>(),
            [3, 3, 1]
        );
    }
}
