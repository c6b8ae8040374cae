//! Sorted plain data that is only read: in memory, or spilled to a file without a name.
//!
//! A file holds the values byte for byte as they lay in memory, so nothing is encoded or decoded: it is
//! written once and mapped back. The kernel may drop its pages whenever it needs memory.
//!
//! Each chunk of a file has a checksum, which is compared before a chunk is iterated over: a chunk of other bytes than were
//! written is left out, and [`Region::read_failed`] reports it. So it does where a page can't be read back, which becomes
//! zeros.
//!
//! Invariant of this module: a mapped file was written by this process with `length` values of `T`, and as
//! it has no name nobody else can open it. Its pages, and no others, are guarded against SIGBUS while they
//! are mapped; any of them may be replaced by zeros, which are valid values of `T`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use twox_hash::XxHash3_64;

use crate::group::spill::pages::{Pages, Zeroed};
use crate::linux::pages::PAGE;
use crate::linux::sigbus::GuardedRange;

/// How many bytes of a file are read ahead, and have a checksum.
pub(crate) const CHUNK: usize = 128 << 10;

/// Values in a chunk.
const fn chunk<T>() -> usize {
    CHUNK / size_of::<T>()
}

/// Values in memory or in a file.
pub(crate) enum Region<T: Zeroed> {
    /// The first so many of the pages.
    Memory(Pages<T>, usize),
    File(Mapped<T>),
}

/// A nameless file, mapped.
pub(crate) struct Mapped<T> {
    start: NonNull<T>,
    length: usize,
    /// Of each chunk.
    sums: Vec<u64>,
    /// Whether one had other bytes.
    is_damaged: AtomicBool,
    /// `None` while it is dropped, and where no SIGBUS handler can be set: then a failed read ends the
    /// process.
    guard: Option<GuardedRange>,
}

// SAFETY: it owns its mapping as a box would, and nobody writes to it.
unsafe impl<T: Zeroed + Send> Send for Mapped<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroed + Sync> Sync for Mapped<T> {}

impl<T: Zeroed> Region<T> {
    /// Moves the values to a file in `directory`; returns its bytes.
    ///
    /// # Errors
    /// The file can't be made, written or mapped; the values stay in memory.
    pub(crate) fn spill(&mut self, directory: &Path) -> io::Result<u64> {
        let Region::Memory(pages, length) = self else {
            return Ok(0);
        };
        let mut file = Spill::new(directory)?;
        file.write(&pages[..*length])?;
        *self = file.finish()?;
        Ok(size_of_val(&**self) as u64)
    }
}

impl<T: Zeroed> Region<T> {
    /// The values of `range` in order. A file is read a chunk ahead.
    pub(crate) fn iter_range(&self, range: Range<usize>) -> impl Iterator<Item = &T> {
        self.chunks(range).flatten()
    }

    /// The same in chunks; the next chunk is requested before one is returned. Damaged ones are empty.
    pub(crate) fn chunks(&self, range: Range<usize>) -> impl Iterator<Item = &[T]> {
        let (chunk, start, end) = (chunk::<T>(), range.start, range.end);
        self.will_need(start, (start + chunk).min(end));
        (start / chunk * chunk..end).step_by(chunk).map(move |at| {
            let piece = at.max(start)..(at + chunk).min(end);
            self.will_need(piece.end, (piece.end + chunk).min(end));
            match self.is_sound(piece.clone()) {
                true => &self[piece],
                false => &[],
            }
        })
    }

    /// Whether the chunks of these values have the bytes that were written. If not, [`Region::read_failed`] reports it.
    pub(crate) fn is_sound(&self, range: Range<usize>) -> bool {
        let Region::File(mapped) = self else {
            return true;
        };
        let chunk = chunk::<T>();
        let chunks = range.start / chunk..range.end.div_ceil(chunk);
        let bytes = size_of_val(&**self);
        // SAFETY: the module's invariant, and a file has no padding.
        let bytes = unsafe { std::slice::from_raw_parts(mapped.start.as_ptr().cast(), bytes) };
        let is_sound = mapped.sums[chunks.clone()]
            .iter()
            .zip(bytes[chunks.start * chunk * size_of::<T>()..].chunks(chunk * size_of::<T>()))
            .all(|(&sum, bytes)| XxHash3_64::oneshot(bytes) == sum);
        if !is_sound {
            mapped.is_damaged.store(true, Ordering::Relaxed);
        }
        is_sound
    }

    /// Requests that the kernel reads these values, if they are in a file.
    pub(crate) fn will_need(&self, from: usize, to: usize) {
        let (from, to) = (from.min(self.len()), to.min(self.len()));
        let Region::File(mapped) = self else {
            return;
        };
        // From the page that the first lies in.
        let start = from * size_of::<T>() / PAGE * PAGE;
        // SAFETY: part of the mapping; the call is advice, and its failure harmless.
        unsafe {
            let address = mapped.start.as_ptr().byte_add(start);
            let length = to * size_of::<T>() - start;
            libc::madvise(address.cast(), length, libc::MADV_WILLNEED);
        }
    }

    /// Whether a value that was accessed so far couldn't be read back, or wasn't what was written.
    pub(crate) fn read_failed(&self) -> bool {
        match self {
            Region::Memory(..) => false,
            Region::File(mapped) => {
                mapped.is_damaged.load(Ordering::Relaxed)
                    || mapped.guard.as_ref().is_some_and(GuardedRange::is_broken)
            }
        }
    }
}

impl<T: Zeroed> Deref for Region<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Region::Memory(pages, length) => &pages[..*length],
            // SAFETY: the module's invariant.
            Region::File(mapped) => unsafe {
                std::slice::from_raw_parts(mapped.start.as_ptr(), mapped.length)
            },
        }
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        self.guard = None;
        // SAFETY: mapped by `Spill::finish` at this length, and no borrow outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length * size_of::<T>()) };
    }
}

/// A region's file that is being written.
pub(crate) struct Spill<T> {
    file: File,
    bytes: usize,
    sums: Vec<u64>,
    /// Where a chunk is read back.
    buffer: Vec<u8>,
    values: PhantomData<T>,
}

impl<T: Zeroed> Spill<T> {
    pub(crate) fn new(directory: &Path) -> io::Result<Self> {
        Ok(Spill {
            file: tempfile::tempfile_in(directory)?,
            bytes: 0,
            sums: Vec::new(),
            buffer: Vec::new(),
            values: PhantomData,
        })
    }

    pub(crate) fn write(&mut self, values: &[T]) -> io::Result<()> {
        let (mut from, mut left) = (values.as_ptr().cast::<u8>(), size_of_val(values));
        while left > 0 {
            let count = left.min(CHUNK);
            // SAFETY: `left` bytes of the values; the kernel copies them, padding and all.
            let written = unsafe { libc::write(self.file.as_raw_fd(), from.cast(), count) };
            match usize::try_from(written) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    left -= written;
                    // SAFETY: no further than the values' end.
                    from = unsafe { from.add(written) };
                    self.bytes += written;
                    self.sum(chunk::<T>() * size_of::<T>())?;
                }
                Err(_) => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Computes the checksums of chunks of which at least so many bytes are written. They are read back from the page cache,
    /// because padding in memory has no value.
    fn sum(&mut self, least: usize) -> io::Result<()> {
        let chunk = chunk::<T>() * size_of::<T>();
        loop {
            let from = self.sums.len() * chunk;
            let bytes = self.bytes.saturating_sub(from).min(chunk);
            if bytes < least {
                return Ok(());
            }
            self.buffer.resize(bytes, 0);
            self.file.read_exact_at(&mut self.buffer, from as u64)?;
            self.sums.push(XxHash3_64::oneshot(&self.buffer));
        }
    }

    pub(crate) fn finish(mut self) -> io::Result<Region<T>> {
        if self.bytes == 0 {
            return Ok(Region::Memory(Pages::new(0), 0));
        }
        self.sum(1)?;
        let fd = self.file.as_raw_fd();
        // Start writing to the disk, because the kernel drops clean pages more easily.
        // SAFETY: advice; its failure is harmless.
        unsafe { libc::sync_file_range(fd, 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
        let bytes = self.bytes;
        // SAFETY: a fresh mapping touches nothing that exists; it keeps the file when `fd` is closed.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                fd,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Many runs are merged in little memory. The kernel's own read-ahead, some MiB for each run, would
        // evict what was read ahead for the others.
        // SAFETY: the mapping just made; advice.
        unsafe { libc::madvise(start, bytes, libc::MADV_RANDOM) };
        let from = start as usize;
        // SAFETY: the pages of the mapping just made; `Mapped` drops the guard before it unmaps them.
        let guard = unsafe { GuardedRange::new(from, from + bytes.next_multiple_of(PAGE)) };
        Ok(Region::File(Mapped {
            start: NonNull::new(start.cast()).expect("not mapped at zero"),
            length: bytes / size_of::<T>(),
            sums: self.sums,
            is_damaged: AtomicBool::new(false),
            guard,
        }))
    }
}

#[cfg(test)]
mod tests {
    use crate::group::spill::region::*;

    // SAFETY: an integer.
    unsafe impl Zeroed for u64 {}

    #[test]
    fn failed_reads_are_zeros_and_reported() {
        let directory = tempfile::tempdir().unwrap();
        let page = PAGE / size_of::<u64>();
        let values: Vec<u64> = (1..=4 * page as u64).collect();
        let spilled = || {
            let mut spill = Spill::new(directory.path()).unwrap();
            spill.write(&values).unwrap();
            let file = spill.file.try_clone().unwrap();
            (spill.finish().unwrap(), file)
        };
        let ((sound, _), (region, file)) = (spilled(), spilled());
        file.set_len(PAGE as u64).unwrap();
        assert_eq!(region[page - 1], page as u64);
        assert!(!region.read_failed());
        assert_eq!(region[2 * page], 0);
        assert!(region.read_failed());
        // Values before it, and in other files, are unharmed.
        assert_eq!(region[..page], values[..page]);
        assert_eq!(sound[..], values[..]);
        assert!(!sound.read_failed());
        // A guard that is used again begins anew.
        drop(region);
        assert!(!spilled().0.read_failed());
    }

    #[test]
    fn other_bytes_are_left_out_and_reported() {
        let directory = tempfile::tempdir().unwrap();
        let count = 3 * chunk::<u64>() + 5;
        let values: Vec<u64> = (0..count as u64).collect();
        for at in (0..count * 8).step_by(997).chain([count * 8 - 1]) {
            let mut spill = Spill::new(directory.path()).unwrap();
            values
                .chunks(1000)
                .for_each(|some| spill.write(some).unwrap());
            let file = spill.file.try_clone().unwrap();
            let region = spill.finish().unwrap();
            assert!(region.iter_range(0..count).eq(&values) && !region.read_failed());
            file.write_all_at(&[!values[at / 8].to_ne_bytes()[at % 8]], at as u64)
                .unwrap();
            let damaged = at / CHUNK * chunk::<u64>();
            let sound = (0..count).filter(|at| !(damaged..damaged + chunk::<u64>()).contains(at));
            let sound = sound.map(|at| &values[at]);
            assert!(region.iter_range(0..count).eq(sound), "byte {at}");
            assert!(region.read_failed(), "byte {at}");
        }
    }

    #[test]
    fn spilled_values_are_read_back() {
        let directory = tempfile::tempdir().unwrap();
        for length in [0, 1, 1000, 100_000] {
            let mut pages: Pages<u64> = Pages::new(length + 10);
            for (at, value) in pages.iter_mut().enumerate() {
                *value = at as u64 * 7;
            }
            let mut region = Region::Memory(pages, length);
            assert_eq!(region.spill(directory.path()).unwrap(), 8 * length as u64);
            assert_eq!(region.spill(directory.path()).unwrap(), 0);
            assert!(region.iter_range(0..length).eq(region.iter()));
            let middle = length / 3..length / 2;
            assert!(region.iter_range(middle.clone()).eq(&region[middle]));
            assert!(
                region
                    .iter()
                    .copied()
                    .eq((0..length as u64).map(|at| at * 7))
            );
        }
        let names = std::fs::read_dir(directory.path()).unwrap();
        assert_eq!(names.count(), 0);
        let nowhere = directory.path().join("nowhere");
        let mut region = Region::Memory(Pages::<u8>::new(3), 3);
        assert!(region.spill(&nowhere).is_err());
        assert_eq!(*region, [0; 3]);
    }
}
