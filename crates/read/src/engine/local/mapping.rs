//! A worker's window of a mapped file, moved on for each block.
//!
//! # Invariant of this module
//! A [`Mapping`] owns a reserved range of addresses: guard pages, the window, a guard page. The
//! window is replaced by a read-only mapping of a part of the file; the guards stay zero pages, so
//! that the padding around a block can be read even at the file's edges. Addresses and file offset
//! agree modulo a huge page, so that the kernel maps what it has cached in large folios by one entry
//! each. A page that can't be read is replaced by zeros and the window marked as broken (see `sigbus`).
//! `bytes` borrows the mapping, so that no window moves while its bytes are in use. Another process may
//! write to the file meanwhile: so `bytes` are for sinks that have given their word (`SharedPages`), and
//! for all others `copy` makes bytes that nobody changes.
#![allow(unsafe_code)]

use std::fs::File;
use std::ops::Range;
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::engine::knobs::{Knobs, MapAdvice};
use crate::error::refusal::{Facility, Refusal, Refuser};
use crate::error::setting::Setting;
use crate::error::{Error, Result};
use crate::input::source::Source;
use crate::linux::pages::{HUGE_PAGE, PAGE};
use crate::linux::retry;
use crate::linux::sigbus::GuardedRange;
use crate::record::block::Block;

/// The flags of pages that only hold addresses.
const RESERVED: MapFlags = MapFlags::PRIVATE.union(MapFlags::NORESERVE);

/// One worker's window.
#[derive(Debug)]
pub(crate) struct Mapping {
    map: NonNull<u8>,
    map_len: usize,
    /// Where the window begins in the reserved range: behind a guard page at least.
    skip: usize,
    /// Bytes of the file that the window can show.
    window: usize,
    /// Bytes of the window that show a file now.
    mapped: usize,
    /// The bytes shown last, as offsets into the window.
    shown: Range<usize>,
    /// Whether all pages are mapped before they are accessed, and not by faults.
    populate: bool,
    advice: Option<MapAdvice>,
    /// Whether the kernel is asked not to read pages around a fault.
    no_read_around: bool,
    /// The source that was last found to be mappable.
    mappable: Option<u32>,
    /// `None` only while it is dropped.
    guard: Option<GuardedRange>,
}

// SAFETY: the addresses are owned by the mapping alone.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Reserves addresses for windows of `window` bytes. With `no_read_around` the kernel reads only the
    /// pages that are accessed, unless the knobs give advice on mappings.
    ///
    /// # Errors
    /// The address space is limited.
    pub(crate) fn new(window: usize, knobs: &Knobs, no_read_around: bool) -> Result<Mapping> {
        // A range may begin just before a huge page and end just after one.
        let window = (window + HUGE_PAGE).next_multiple_of(HUGE_PAGE);
        let map_len = HUGE_PAGE + window + PAGE + HUGE_PAGE;
        let anywhere = std::ptr::null_mut();
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let map = unsafe { mmap_anonymous(anywhere, map_len, ProtFlags::READ, RESERVED) };
        let map = map.map_err(|errno| {
            let why = "no addresses for a window of the mmap engine";
            unavailable(why).with_errno(&errno.into())
        })?;
        let map = NonNull::new(map.cast::<u8>()).expect("mmap returns no null");
        let skip = PAGE + map.as_ptr().wrapping_add(PAGE).align_offset(HUGE_PAGE);
        let start = map.as_ptr() as usize + skip;
        // SAFETY: the window lies within what was just reserved and is ours until drop, which drops the
        // guard before it unmaps the addresses.
        let Some(guard) = (unsafe { GuardedRange::new(start, start + window) }) else {
            // SAFETY: nobody else has a pointer into the range yet.
            let _ = unsafe { munmap(map.as_ptr().cast(), map_len) };
            return Err(unavailable("too many windows of the mmap engine"));
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
            no_read_around: no_read_around && !knobs.of_mappings(),
            mappable: None,
            guard: Some(guard),
        })
    }

    /// Shows `range` of the source in the window.
    pub(crate) fn view(&mut self, source: &Source, range: Range<u64>) -> Result<()> {
        let file = source
            .file()
            .map_err(|error| source.error(&error).at_bytes(range.clone()))?;
        let from = range.start / HUGE_PAGE as u64 * HUGE_PAGE as u64;
        let wanted = (range.end - from) as usize;
        let len = wanted
            .next_multiple_of(HUGE_PAGE)
            .min((source.len().unwrap_or(0) - from) as usize);
        assert!(
            wanted <= len && len <= self.window,
            "the window is too small for {range:?}"
        );
        self.check_mappable(source, &file, &range, from)?;
        self.map_file(source, &file, &range, from, len)?;
        if let Some(advice) = self.advice {
            self.advise(advice, len)
                .map_err(|errno| advice_refused(source, advice, &errno))?;
        }
        if self.no_read_around {
            let _ = self.advise(MapAdvice::Random, len);
        }
        let first = (range.start - from) as usize / PAGE * PAGE;
        self.shown = first + (range.start as usize % PAGE)..wanted;
        // Page faults are cheaper: populating takes the lock of all mappings and looks up every page again.
        if self.populate {
            self.populate(source, &range, first..wanted.next_multiple_of(PAGE))?;
        }
        Ok(())
    }

    /// Tries once for each source whether it can be mapped at all. A file system that refuses does so after
    /// the kernel has cleared the addresses: in the window that would leave a hole.
    fn check_mappable(
        &mut self,
        source: &Source,
        file: &File,
        range: &Range<u64>,
        from: u64,
    ) -> Result<()> {
        if self.mappable == Some(source.index()) {
            return Ok(());
        }
        // SAFETY: a new mapping at an address of the kernel's choice, to which nobody has a pointer.
        unsafe {
            let anywhere = std::ptr::null_mut();
            let shared = MapFlags::SHARED;
            let page = mmap(anywhere, PAGE, ProtFlags::READ, shared, file, from);
            let page = page.map_err(|errno| map_refused(source, errno))?;
            munmap(page, PAGE).map_err(|errno| failed(source, range, errno))?;
        }
        self.mappable = Some(source.index());
        Ok(())
    }

    /// Maps `len` bytes of the file from `from` on over the window. Pages after them that showed a file
    /// before become guard pages again.
    fn map_file(
        &mut self,
        source: &Source,
        file: &File,
        range: &Range<u64>,
        from: u64,
        len: usize,
    ) -> Result<()> {
        // SAFETY: the window's addresses are ours, and nobody borrows its bytes: `self` is borrowed
        // mutably.
        let shown = unsafe {
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            let start = self.start().as_ptr().cast();
            mmap(start, len, ProtFlags::READ, flags, file, from)
        };
        let mapped = match shown {
            Ok(_) => len.next_multiple_of(PAGE),
            Err(_) => 0,
        };
        if mapped < self.mapped {
            // SAFETY: as above.
            let guarded = unsafe {
                let start = self.start().add(mapped).as_ptr().cast();
                let flags = RESERVED | MapFlags::FIXED;
                mmap_anonymous(start, self.mapped - mapped, ProtFlags::READ, flags)
            };
            guarded.map_err(|errno| failed(source, range, errno))?;
        }
        self.mapped = mapped;
        shown
            .map(|_| ())
            .map_err(|errno| map_refused(source, errno))
    }

    /// Maps the pages of a part of the window before they are accessed.
    fn populate(&self, source: &Source, range: &Range<u64>, part: Range<usize>) -> Result<()> {
        // SAFETY: the part lies within what was just mapped.
        let populated = unsafe {
            let start = self.start().add(part.start).as_ptr().cast();
            madvise(start, part.len(), Advice::LinuxPopulateRead)
        };
        populated.map_err(|errno| match errno {
            // Touching it would be a bus error.
            Errno::FAULT => missing(source, range),
            Errno::INVAL => {
                let why = "it needs MADV_POPULATE_READ of Linux 5.14";
                let choice = Setting::Populate.of("on");
                let refusal = Refusal::not_granted(choice, Refuser::Kernel, why);
                source.error(refusal).with_errno(&errno.into())
            }
            _ => failed(source, range, errno),
        })
    }

    /// Advises the kernel on how `len` bytes of the window will be accessed.
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
                // Pages in use can't be collapsed at the moment.
                _ if retry::again(&error, &mut tries) => {}
                _ => return Err(error),
            }
        }
    }

    /// The error if some of the bytes shown last couldn't be read, so that they were zeros.
    pub(crate) fn broken(&self, source: &Source, range: Range<u64>) -> Option<Error> {
        // Within a file's last page there is no bus error: what was cut off reads as zeros.
        let shorter = source.length_now().is_some_and(|now| now < range.end);
        let broken = self.guard.as_ref().is_some_and(GuardedRange::take_broken) || shorter;
        broken.then(|| missing(source, &range))
    }

    /// The bytes shown last.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: they lie in the window, which is mapped.
        unsafe {
            let start = self.start().add(self.shown.start);
            std::slice::from_raw_parts(start.as_ptr(), self.shown.len())
        }
    }

    /// Copies a part of what is shown.
    pub(crate) fn copy(&self, part: Range<usize>, to: &mut [u8]) {
        assert!(part.start <= part.end && part.end <= self.shown.len());
        assert_eq!(part.len(), to.len());
        // SAFETY: the part lies in the window, which is mapped, and `to` doesn't. Each byte is loaded once.
        unsafe {
            let from = self.start().add(self.shown.start + part.start);
            std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), part.len());
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
        // SAFETY: a guard page lies before the window and one after it.
        unsafe { Block::new(&self.bytes()[range], file, offset, sequence) }
    }

    fn start(&self) -> NonNull<u8> {
        // SAFETY: skip is at most a huge page and a page, and so much was reserved before the window.
        unsafe { self.map.add(self.skip) }
    }
}

/// The error for a system call that failed on `range`.
fn failed(source: &Source, range: &Range<u64>, errno: Errno) -> Error {
    source.error(&errno.into()).at_bytes(range.clone())
}

/// The error for a file that can't be mapped.
fn map_refused(source: &Source, errno: Errno) -> Error {
    let why = "the file can't be mapped";
    let refusal = Refusal::unavailable(Facility::Mapping, Refuser::FileSystem, why);
    source.error(refusal).with_errno(&errno.into())
}

/// The error for advice that the kernel refuses.
fn advice_refused(source: &Source, advice: MapAdvice, errno: &std::io::Error) -> Error {
    let why = match advice {
        MapAdvice::Collapse => {
            "; on most file systems that takes CONFIG_READ_ONLY_THP_FOR_FS and a file \
             that nobody writes to"
        }
        _ => "",
    };
    let why = format!("the kernel refuses it here{why}");
    let refusal = Refusal::not_granted(Setting::MapAdvice.of(advice), Refuser::Kernel, why);
    source.error(refusal).with_errno(errno)
}

/// The error for a window without addresses.
fn unavailable(why: &str) -> Error {
    Refusal::unavailable(Facility::Mapping, Refuser::Memory, why).into()
}

/// The error for mapped bytes that couldn't be read.
fn missing(source: &Source, range: &Range<u64>) -> Error {
    let error = match source.length_now() {
        Some(now) if now < range.end => source.ended(now),
        _ => source.error(&Errno::IO.into()),
    };
    error.at_bytes(range.clone())
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.guard = None;
        // SAFETY: guards and window are ours.
        let _ = unsafe { munmap(self.map.as_ptr().cast(), self.map_len) };
    }
}
