//! Handles SIGBUS. Accessing a page of a mapped file that can't be read (the file was truncated, the medium is
//! bad) raises it. The handler puts zero pages there and marks the range as broken.
//!
//! # Invariant of this module
//! The handler does only what a signal handler may: it reads atomics, stores one, and calls mmap, which is a
//! plain system call. It maps zero pages from the fault to the end of the range, but only within the range of
//! a [`GuardedRange`], whose owner has agreed to that. The mark is set before the zeros are mapped, so that
//! whoever reads a zero finds the mark. Other faults go to the handler that was set before.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, OnceLock};

use crate::linux::pages::PAGE;

/// The most ranges at once: as many mappings as the kernel lets a process have.
const MOST: usize = 1 << 16;

struct RangeEntry {
    start: AtomicUsize,
    end: AtomicUsize,
    broken: AtomicBool,
}

static ENTRIES: [RangeEntry; MOST] = [const {
    RangeEntry {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        broken: AtomicBool::new(false),
    }
}; MOST];

/// Entries that are free again.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// Entries from here on have never been used.
static USED: AtomicUsize = AtomicUsize::new(0);
/// The previous handler of SIGBUS.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// A range of mapped pages that is guarded for as long as this lives.
#[derive(Debug)]
pub(crate) struct GuardedRange {
    index: usize,
}

impl GuardedRange {
    /// Guards `start..end`. `None` when too many ranges are guarded already, or no handler can be set.
    ///
    /// # Safety
    /// The range is mapped, whole pages, owned by the caller until this is dropped, and pages in it may be
    /// replaced by zero pages at any time.
    pub(crate) unsafe fn new(start: usize, end: usize) -> Option<GuardedRange> {
        let mut free = FREE.lock().unwrap_or_else(|e| e.into_inner());
        if !install() {
            return None;
        }
        let index = match free.pop() {
            Some(index) => index,
            None => {
                let index = USED.load(Ordering::Relaxed);
                if index == MOST {
                    return None;
                }
                USED.store(index + 1, Ordering::Release);
                index
            }
        };
        let entry = &ENTRIES[index];
        entry.broken.store(false, Ordering::Relaxed);
        entry.start.store(start, Ordering::Relaxed);
        entry.end.store(end, Ordering::Release);
        Some(GuardedRange { index })
    }

    /// Whether a page of the range couldn't be read since the last call.
    pub(crate) fn take_broken(&self) -> bool {
        fence(Ordering::Acquire);
        ENTRIES[self.index].broken.swap(false, Ordering::AcqRel)
    }

    /// Whether a page of the range couldn't be read.
    pub(crate) fn is_broken(&self) -> bool {
        fence(Ordering::Acquire);
        ENTRIES[self.index].broken.load(Ordering::Acquire)
    }
}

impl Drop for GuardedRange {
    fn drop(&mut self) {
        ENTRIES[self.index].end.store(0, Ordering::Release);
        FREE.lock()
            .unwrap_or_else(|e| e.into_inner())
            .push(self.index);
    }
}

fn install() -> bool {
    if BEFORE.get().is_some() {
        return true;
    }
    // SAFETY: zero is a valid sigaction; the calls write to and read from our own structures, and
    // the handler has the signature that SA_SIGINFO wants.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before) != 0 {
            return false;
        }
        let _ = BEFORE.set(before);
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = handle;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) == 0
    }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo; errno belongs to this thread, which was
    // interrupted; the pages replaced lie within a guarded range.
    unsafe {
        let errno = *libc::__errno_location();
        let address = (*info).si_addr() as usize;
        for entry in &ENTRIES[..USED.load(Ordering::Acquire)] {
            let end = entry.end.load(Ordering::Acquire);
            if entry.start.load(Ordering::Relaxed) <= address && address < end {
                let page = address & !(PAGE - 1);
                entry.broken.store(true, Ordering::SeqCst);
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
                let mapped = libc::mmap(page as *mut _, end - page, libc::PROT_READ, flags, -1, 0);
                if mapped == libc::MAP_FAILED {
                    break;
                }
                *libc::__errno_location() = errno;
                return;
            }
        }
        pass_on(signal, info, context);
    }
}

/// Hands a fault elsewhere to the previous handler.
///
/// # Safety
/// `info` and `context` are what the kernel passed to the handler.
unsafe fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the previous handler is called as the kernel would have called it. The default action is set
    // again, so that the fault, which recurs at once, ends the process.
    unsafe {
        match BEFORE.get() {
            Some(before) if before.sa_sigaction > libc::SIG_IGN => {
                if before.sa_flags & libc::SA_SIGINFO != 0 {
                    type Handler =
                        extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
                    let handler: Handler = std::mem::transmute(before.sa_sigaction);
                    handler(signal, info, context);
                } else {
                    type Handler = extern "C" fn(libc::c_int);
                    let handler: Handler = std::mem::transmute(before.sa_sigaction);
                    handler(signal);
                }
            }
            _ => {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
