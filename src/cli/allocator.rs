//! The program's allocator: where there is no memory the run ends with a line, as with any other error.
//!
//! # Invariant of this module
//! All calls go to the allocator below as they are. What follows a failure takes no memory.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::io::{Cursor, Write};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

use ringfold_read::internals::{calls, heap};

/// An allocator that never fails, because it ends the process.
pub struct Allocator<A>(pub A);

/// Whether the line with which the process ends is written.
static IS_SAID: AtomicBool = AtomicBool::new(false);

/// Makes this thread the one that ends the process with a line. Any other one waits for that.
fn claim_end() {
    static ENDING: AtomicI32 = AtomicI32::new(0);
    let own = rustix::thread::gettid().as_raw_pid();
    let first = ENDING.compare_exchange(0, own, Relaxed, Relaxed);
    while first.is_err_and(|first| first != own) {
        rustix::event::pause();
    }
}

/// Has this thread say why the process ends. If there is no memory for that, the allocator's line is the last one.
pub(super) fn last_word(word: impl FnOnce()) {
    claim_end();
    word();
    IS_SAID.store(true, Relaxed);
}

/// Returns what was found, or `null` where that is expected.
fn checked(start: *mut u8, size: usize) -> *mut u8 {
    match !start.is_null() || heap::may_fail() {
        true => start,
        false => end(size),
    }
}

/// Ends the process, because there is no memory for so many bytes.
pub(super) fn end(size: usize) -> ! {
    let mut line = Cursor::new([0; 160]);
    // It is long enough.
    let _ = writeln!(
        line,
        "ringfold: no memory for {size} bytes more: lower --threads or --memory, or raise the limit (ulimit -v) [ENOMEM]"
    );
    let len = line.position() as usize;
    claim_end();
    if !IS_SAID.load(Relaxed) {
        let _ = rustix::io::write(rustix::stdio::stderr(), &line.get_ref()[..len]);
    }
    calls::exit(1)
}

// SAFETY: the allocator below is one, and what it returns is returned.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller's.
        checked(unsafe { self.0.alloc(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as the caller's.
        unsafe { self.0.dealloc(start, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller's.
        checked(unsafe { self.0.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller's.
        checked(unsafe { self.0.realloc(start, layout, size) }, size)
    }
}
