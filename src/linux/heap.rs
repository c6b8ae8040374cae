//! The allocator's memory.
//!
//! # Invariant of this module
//! What is called takes no pointer.
#![allow(unsafe_code)]

/// Gives freed memory back to the kernel. glibc keeps what it thinks is needed soon again, in each thread's own heap, and
/// the kernel counts it towards a control group's limit.
pub(crate) fn release() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
