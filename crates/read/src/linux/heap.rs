//! The allocator's memory.
//!
//! # Invariant of this module
//! What is called takes no pointer.
#![allow(unsafe_code)]

use std::cell::Cell;

thread_local! {
    static MAY_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// Does something that copes with a lack of memory. The program's allocator ends the process otherwise.
pub(crate) fn attempt<T>(what: impl FnOnce() -> T) -> T {
    let before = MAY_FAIL.replace(true);
    let done = what();
    MAY_FAIL.set(before);
    done
}

/// Whether this thread attempts something.
pub fn may_fail() -> bool {
    MAY_FAIL.get()
}

/// Has glibc give large blocks back to the kernel as soon as they are freed. By default it keeps them for others once some
/// were freed. To be called before there are threads.
pub fn return_large() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and no other thread allocates meanwhile.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 << 10);
    }
}

/// Gives freed memory back to the kernel. glibc keeps what it thinks is needed soon again, in each thread's own heap, and
/// the kernel counts it towards a control group's limit.
pub fn release() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
