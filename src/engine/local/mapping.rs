//! A window of a file in memory, moved along for each block.
//!
//! # Invariant (`unsafe` room)
//! A [`Mapping`] owns a reserved range of addresses: guard pages, the window, a guard page. The
//! window is replaced by a read-only mapping of a part of the file; the guards stay zero pages, so
//! that the padding around a block can be read even at the file's edges. Addresses and file offset
//! agree modulo a huge page, so that the kernel maps what it has cached in large folios by one entry
//! each. A page that can't be had is replaced by zeros and the window marked as broken (see `sigbus`). `bytes` borrows the
//! mapping, so no window moves while somebody looks at it. Another process may write to the file
//! meanwhile: like every program that maps files, this one assumes that nobody does, and says so.
#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::engine::knobs::{Knobs, MapAdvice};
use crate::error::{Error, Kind, Result};
use crate::input::source::Source;
use crate::linux::pages::{HUGE_PAGE, PAGE};
use crate::linux::retry;
use crate::linux::sigbus::GuardedRange;
use crate::record::block::Block;

/// One worker's window.
#[derive(Debug)]
pub(crate) struct Mapping {
    map: NonNull<u8>,
    map_len: usize,
    /// Where the window begins in the reserved range: behind a guard page at least.
    skip: usize,
    /// Bytes of the file that the window can show.
    window: usize,
    /// Bytes of it that show a file now.
    mapped: usize,
    /// The bytes asked for last, as offsets into the window.
    shown: Range<usize>,
    /// Whether all pages are mapped before they are looked at, and not by faults.
    populate: bool,
    advice: Option<MapAdvice>,
    /// Whether the kernel is asked not to read around faults, where it heeds that.
    calm: bool,
    /// The source that was last found to be one that can be mapped.
    mappable: Option<u32>,
    /// `None` only while it is torn down.
    watch: Option<GuardedRange>,
}

// SAFETY: the addresses are owned by the mapping alone.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Reserves addresses for windows of `window` bytes; of those that are `calm` only what is asked
    /// for is read, unless the knobs say something of mappings.
    ///
    /// # Errors
    /// The address space is limited.
    pub(crate) fn new(window: usize, knobs: &Knobs, calm: bool) -> Result<Mapping> {
        // A range may begin just before a huge page and end just behind one.
        let window = (window + HUGE_PAGE).next_multiple_of(HUGE_PAGE);
        let map_len = HUGE_PAGE + window + PAGE + HUGE_PAGE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let map = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                map_len,
                ProtFlags::READ,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        let map = map.map_err(|errno| {
            Error::new(Kind::Engine, "no addresses for a window of the mmap engine")
                .with_errno(&errno.into())
        })?;
        let map = NonNull::new(map.cast::<u8>()).expect("mmap returns no null");
        let skip = PAGE + map.as_ptr().wrapping_add(PAGE).align_offset(HUGE_PAGE);
        let start = map.as_ptr() as usize + skip;
        // SAFETY: the window lies within what was just reserved and is ours until drop, where the
        // watch goes before the addresses do.
        let Some(watch) = (unsafe { GuardedRange::new(start, start + window) }) else {
            // SAFETY: nobody else knows of the range yet.
            let _ = unsafe { munmap(map.as_ptr().cast(), map_len) };
            return Err(Error::new(
                Kind::Engine,
                "too many windows of the mmap engine",
            ));
        };
        Ok(Mapping {
            map,
            map_len,
            skip,
            window,
            mapped: 0,
            shown: 0..0,
            populate: knobs.populate == Some(true),
            advice: knobs.map_advice,
            calm: calm && !knobs.of_mappings(),
            mappable: None,
            watch: Some(watch),
        })
    }

    /// Makes `range` of the source visible.
    pub(crate) fn view(&mut self, source: &Source, range: Range<u64>) -> Result<()> {
        let fail = |errno: rustix::io::Errno| {
            Error::io(&errno.into())
                .in_file(source.index(), source.name())
                .at_bytes(range.clone())
        };
        let file = source.file().ok_or(fail(rustix::io::Errno::NODEV))?;
        let from = range.start / HUGE_PAGE as u64 * HUGE_PAGE as u64;
        let wanted = (range.end - from) as usize;
        let len = wanted
            .next_multiple_of(HUGE_PAGE)
            .min((source.len().unwrap_or(0) - from) as usize);
        assert!(
            wanted <= len && len <= self.window,
            "the window is too small for {range:?}"
        );
        let first = (range.start - from) as usize / PAGE * PAGE;
        let last = wanted.next_multiple_of(PAGE);
        let refused = |errno: rustix::io::Errno| {
            let cause = "the file can't be mapped: read it with another engine";
            Error::new(Kind::Engine, cause)
                .with_errno(&errno.into())
                .in_file(source.index(), source.name())
        };
        if self.mappable != Some(source.index()) {
            // A file system that refuses does so after the kernel has cleared the place: in the window
            // that would be a hole, and what another thread maps there would go with the window.
            // SAFETY: a new mapping at an address of the kernel's choice, which nobody looks at.
            unsafe {
                let anywhere = std::ptr::null_mut();
                let shared = MapFlags::SHARED;
                let page = mmap(anywhere, PAGE, ProtFlags::READ, shared, file, from);
                munmap(page.map_err(refused)?, PAGE).map_err(fail)?;
            }
            self.mappable = Some(source.index());
        }
        // SAFETY: the window's addresses are ours, and nobody looks at them: `self` is borrowed
        // mutably.
        let shown = unsafe {
            mmap(
                self.start().as_ptr().cast(),
                len,
                ProtFlags::READ,
                MapFlags::SHARED | MapFlags::FIXED,
                file,
                from,
            )
        };
        let mapped = if shown.is_ok() {
            len.next_multiple_of(PAGE)
        } else {
            0
        };
        if mapped < self.mapped {
            // What a longer window has left behind this one becomes guard again.
            // SAFETY: as above.
            let guarded = unsafe {
                mmap_anonymous(
                    self.start().add(mapped).as_ptr().cast(),
                    self.mapped - mapped,
                    ProtFlags::READ,
                    MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED,
                )
            };
            guarded.map_err(fail)?;
        }
        self.mapped = mapped;
        if let Err(errno) = shown {
            return Err(refused(errno));
        }
        if let Some(advice) = self.advice {
            self.advise(advice, len).map_err(|errno| {
                let why = match advice {
                    MapAdvice::Collapse => {
                        "; on most file systems that takes CONFIG_READ_ONLY_THP_FOR_FS and a file \
                         that nobody writes to"
                    }
                    _ => "",
                };
                let cause =
                    format!("the kernel refuses --map-advice {advice} here{why}: leave it out");
                Error::new(Kind::Engine, cause)
                    .with_errno(&errno)
                    .in_file(source.index(), source.name())
            })?;
        }
        if self.calm {
            let _ = self.advise(MapAdvice::Random, len);
        }
        self.shown = first + (range.start as usize % PAGE)..wanted;
        // Looking up every page that it has mapped, and under the lock of all mappings, costs more than
        // the faults: one for each 64 KiB, or for a huge page.
        if !self.populate {
            return Ok(());
        }
        // SAFETY: the range lies within what was just mapped.
        let populated = unsafe {
            let start = self.start().add(first).as_ptr().cast();
            madvise(start, last - first, Advice::LinuxPopulateRead)
        };
        populated.map_err(|errno| match errno {
            // Touching it would be a bus error.
            rustix::io::Errno::FAULT => missing(source, &range),
            rustix::io::Errno::INVAL => {
                let cause = "--populate on needs MADV_POPULATE_READ of Linux 5.14: leave it out";
                Error::new(Kind::Engine, cause)
                    .with_errno(&errno.into())
                    .in_file(source.index(), source.name())
            }
            _ => fail(errno),
        })
    }

    /// Tells the kernel how `len` bytes of the window are going to be looked at.
    fn advise(&self, advice: MapAdvice, len: usize) -> std::io::Result<()> {
        let word = match advice {
            MapAdvice::Normal => libc::MADV_NORMAL,
            MapAdvice::Sequential => libc::MADV_SEQUENTIAL,
            MapAdvice::Random => libc::MADV_RANDOM,
            MapAdvice::WillNeed => libc::MADV_WILLNEED,
            MapAdvice::HugePage => libc::MADV_HUGEPAGE,
            MapAdvice::Collapse => libc::MADV_COLLAPSE,
        };
        let mut tries = 0;
        loop {
            // SAFETY: the range lies within what was just mapped; no advice here changes content.
            let done = unsafe { libc::madvise(self.start().as_ptr().cast(), len, word) };
            let error = std::io::Error::last_os_error();
            match done {
                0 => return Ok(()),
                // Pages that are on their way somewhere can't be collapsed at the moment.
                _ if retry::may_pass(&error) && tries < retry::MOST => {
                    retry::pause(tries);
                    tries += 1;
                }
                _ => return Err(error),
            }
        }
    }

    /// Whether what was made visible last couldn't all be had: its bytes were zeros then.
    pub(crate) fn broken(&self, source: &Source, range: Range<u64>) -> Option<Error> {
        // Within a file's last page there is no bus error: what was cut off reads as zeros.
        let shorter = source.length_now().is_some_and(|now| now < range.end);
        let broken = self.watch.as_ref().is_some_and(GuardedRange::take_broken) || shorter;
        broken.then(|| missing(source, &range))
    }

    /// The bytes made visible last.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: they lie in the window, which is mapped.
        unsafe {
            let start = self.start().add(self.shown.start);
            std::slice::from_raw_parts(start.as_ptr(), self.shown.len())
        }
    }

    /// A part of them as a block.
    pub(crate) fn block(
        &self,
        range: Range<usize>,
        file: u32,
        offset: u64,
        sequence: u64,
    ) -> Block<'_> {
        // SAFETY: a guard page lies before the window and one behind it.
        unsafe { Block::new(&self.bytes()[range], file, offset, sequence) }
    }

    fn start(&self) -> NonNull<u8> {
        // SAFETY: skip is at most a huge page, and so much was reserved beside the window.
        unsafe { self.map.add(self.skip) }
    }
}

/// Why mapped bytes can't be had.
fn missing(source: &Source, range: &Range<u64>) -> Error {
    let error = match source.length_now() {
        Some(now) if now < range.end => source.ended(now),
        _ => Error::io(&rustix::io::Errno::IO.into()).in_file(source.index(), source.name()),
    };
    error.at_bytes(range.clone())
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.watch = None;
        // SAFETY: guards and window are ours.
        let _ = unsafe { munmap(self.map.as_ptr().cast(), self.map_len) };
    }
}
