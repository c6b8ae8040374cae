//! Zeroed memory from the kernel: touched page by page as it is used, in huge pages where it is large.
//!
//! Invariant of this module: `start` maps `length * size_of::<T>()` bytes, private and zeroed at first,
//! until drop. `T` may be all zeros, so those bytes are `length` values of it.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::panic::panic_any;
use std::ptr::NonNull;

use ringfold_read::internals::OutOfMemory;
use zerocopy::FromZeros;

/// From this size on the kernel is asked for huge pages.
const HUGE_FROM: usize = 2 << 20;

/// Addresses are reserved, not memory. Miri knows neither this flag nor madvise.
const FLAGS: libc::c_int =
    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | if cfg!(miri) { 0 } else { libc::MAP_NORESERVE };

/// A slice of zeroed `T`.
pub(crate) struct Pages<T: FromZeros + Copy> {
    start: NonNull<T>,
    length: usize,
}

// SAFETY: it owns its memory as a box would, and `T` is plain data.
unsafe impl<T: FromZeros + Copy + Send> Send for Pages<T> {}
// SAFETY: as above.
unsafe impl<T: FromZeros + Copy + Sync> Sync for Pages<T> {}

impl<T: FromZeros + Copy> Pages<T> {
    /// `length` zeroed values.
    ///
    /// # Panics
    /// If the kernel refuses the memory.
    pub(crate) fn new(length: usize) -> Self {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= 4096) };
        let Some(bytes) = length
            .checked_mul(size_of::<T>())
            .filter(|&bytes| bytes > 0)
        else {
            assert_eq!(length, 0, "more memory than there are addresses");
            return Pages {
                start: NonNull::dangling(),
                length,
            };
        };
        // SAFETY: a fresh anonymous mapping touches nothing that exists.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                FLAGS,
                -1,
                0,
            )
        };
        Pages::mapped(start, bytes, length)
    }

    fn mapped(start: *mut libc::c_void, bytes: usize, length: usize) -> Self {
        if start == libc::MAP_FAILED {
            panic_any(OutOfMemory(bytes));
        }
        if bytes >= HUGE_FROM && !cfg!(miri) {
            // SAFETY: a mapping just made; the call is advice, and its failure harmless.
            unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
        }
        Pages {
            start: NonNull::new(start.cast()).expect("not mapped at zero"),
            length,
        }
    }

    /// The same, all of which is written soon: one call touches all pages where the kernel has it (Linux 5.14). A page that
    /// is read before it is written costs two faults, the second of which stops all threads.
    pub(crate) fn touched(length: usize) -> Self {
        let pages: Pages<T> = Pages::new(length);
        if length > 0 && !cfg!(miri) {
            let bytes = length * size_of::<T>();
            let start = pages.start.as_ptr().cast();
            // SAFETY: a mapping just made; where the call fails, pages are touched as they are used.
            unsafe { libc::madvise(start, bytes, libc::MADV_POPULATE_WRITE) };
        }
        pages
    }

    /// The first value, for modules that access values without bounds checks.
    pub(crate) fn pointer(&self) -> *mut T {
        self.start.as_ptr()
    }

    /// Grows to `length` values, the new ones zeroed. Page tables move, bytes do not.
    ///
    /// # Panics
    /// If the kernel refuses the memory.
    pub(crate) fn grow(&mut self, length: usize) {
        assert!(self.length > 0 && length >= self.length);
        if cfg!(tsan) {
            // ThreadSanitizer doesn't know `mremap` and would report races with earlier users of the new
            // addresses.
            let mut new = Pages::new(length);
            new[..self.length].copy_from_slice(self);
            *self = new;
            return;
        }
        let bytes = length
            .checked_mul(size_of::<T>())
            .expect("more memory than there are addresses");
        // SAFETY: mapped at this length; `self` is borrowed alone, so nothing points to the old place.
        let start = unsafe {
            let old_bytes = self.length * size_of::<T>();
            libc::mremap(
                self.start.as_ptr().cast(),
                old_bytes,
                bytes,
                libc::MREMAP_MAYMOVE,
            )
        };
        std::mem::forget(std::mem::replace(self, Pages::mapped(start, bytes, length)));
    }
}

impl<T: FromZeros + Copy> Deref for Pages<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the module's invariant.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T: FromZeros + Copy> DerefMut for Pages<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the module's invariant, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl<T: FromZeros + Copy> Drop for Pages<T> {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: mapped by `new` at this length, and no borrow outlives `self`.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.length * size_of::<T>()) };
        }
    }
}
