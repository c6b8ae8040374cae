//! The allocator's memory.

use std::cell::Cell;

use crate::linux::calls;

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
    calls::set_mmap_threshold(256 << 10);
}

/// Gives freed memory back to the kernel. glibc keeps what it thinks is needed soon again, in each thread's own heap, and
/// the kernel counts it towards a control group's limit.
pub fn release() {
    calls::trim_heap();
}
