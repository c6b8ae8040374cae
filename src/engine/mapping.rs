//! A window of a file in memory, moved along for each block.
//!
//! # Invariant (`unsafe` room)
//! A [`Mapping`] owns a reserved range of addresses: a guard page, the window, a guard page. The
//! window is replaced by a read-only mapping of a part of the file; the guards stay zero pages, so
//! that the padding around a block can be read even at the file's edges. `bytes` borrows the
//! mapping, so no window moves while somebody looks at it. Another process may write to the file
//! meanwhile: like every program that maps files, this one assumes that nobody does, and says so.
#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::block::Block;
use crate::error::{Error, Kind, Result};
use crate::source::Source;

const PAGE: usize = 4096;

/// One worker's window.
#[derive(Debug)]
pub(crate) struct Mapping {
    map: NonNull<u8>,
    /// Bytes of the file that the window can show.
    window: usize,
    /// What it shows: the source, and which bytes of it.
    mapped: Option<(u32, Range<u64>)>,
    /// The bytes asked for last, as offsets into the window.
    shown: Range<usize>,
}

// SAFETY: the addresses are owned by the mapping alone.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Reserves addresses for windows of `window` bytes.
    ///
    /// # Errors
    /// The address space is limited.
    pub(crate) fn new(window: usize) -> Result<Mapping> {
        let window = window.next_multiple_of(PAGE) + PAGE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let map = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                PAGE + window + PAGE,
                ProtFlags::READ,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        let map = map.map_err(|errno| {
            Error::new(Kind::Engine, "no addresses for a window of the mmap engine")
                .with_errno(&errno.into())
        })?;
        let map = NonNull::new(map.cast()).expect("mmap returns no null");
        Ok(Mapping {
            map,
            window,
            mapped: None,
            shown: 0..0,
        })
    }

    /// Makes `range` of the source visible, in a window of as much as fits.
    pub(crate) fn view(&mut self, source: &Source, range: Range<u64>) -> Result<()> {
        let inside = |(index, mapped): &(u32, Range<u64>)| {
            *index == source.index() && mapped.start <= range.start && range.end <= mapped.end
        };
        if !self.mapped.as_ref().is_some_and(inside) {
            self.map(source, &range)?;
        }
        let start = self.mapped.as_ref().map_or(0, |(_, mapped)| mapped.start);
        self.shown = (range.start - start) as usize..(range.end - start) as usize;
        Ok(())
    }

    fn map(&mut self, source: &Source, range: &Range<u64>) -> Result<()> {
        let fail = |errno: rustix::io::Errno| {
            Error::io(&errno.into())
                .in_file(source.index(), source.name())
                .at_bytes(range.clone())
        };
        let file = source.file().ok_or(fail(rustix::io::Errno::NODEV))?;
        let from = range.start / PAGE as u64 * PAGE as u64;
        let len = self.window.min((source.len().unwrap_or(0) - from) as usize);
        self.mapped = None;
        // SAFETY: the window's addresses are ours, and nobody looks at them: `self` is borrowed
        // mutably.
        unsafe {
            mmap(
                self.start().as_ptr().cast(),
                len,
                ProtFlags::READ,
                MapFlags::SHARED | MapFlags::FIXED,
                file,
                from,
            )
            .map_err(fail)?;
            if len < self.window {
                // What a longer window left behind it becomes guard again.
                let mapped = len.next_multiple_of(PAGE);
                mmap_anonymous(
                    self.start().add(mapped).as_ptr().cast(),
                    self.window + PAGE - mapped,
                    ProtFlags::READ,
                    MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED,
                )
                .map_err(fail)?;
            }
            // Faults in one go what is cached, and reads what isn't; where the kernel doesn't know
            // it, the pages fault one by one.
            let _ = madvise(self.start().as_ptr().cast(), len, Advice::LinuxPopulateRead);
        }
        self.mapped = Some((source.index(), from..from + len as u64));
        Ok(())
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
        // SAFETY: the first guard page is followed by the window.
        unsafe { self.map.add(PAGE) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: guards and window are ours.
        let _ = unsafe { munmap(self.map.as_ptr().cast(), PAGE + self.window + PAGE) };
    }
}
