//! Handles SIGBUS. Accessing a page of a mapped file that can't be read (the file was truncated, the medium is
//! bad) raises it. The handler puts zero pages there and marks the range as broken.
//!
//! # Invariant of this module
//! The handler does only what a signal handler may: it reads atomics, stores one, and calls mmap, which is a
//! plain system call. It maps zero pages from the fault to the end of the range, but only within the range of
//! a [`GuardedRange`], whose owner has agreed to that. The mark is set before the zeros are mapped, so that
//! whoever reads a zero finds the mark. Other faults go to the handler that was set before.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock};

use crate::linux::pages::PAGE;
use crate::sync::lock;

/// The most ranges at once: as many mappings as the kernel lets a process have.
const MOST: usize = 1 << 16;

/// Defines [`Bounds`] on the atomics of a module: those of std, and in a test those of loom.
macro_rules! bounds {
    ($($module:ident)::+) => {
        use $($module)::+::{AtomicUsize, Ordering, fence};

        /// A range that a signal handler may read while it is written. The sequence number is odd meanwhile, and another one
        /// afterwards, so that no reader takes halves of two ranges for one.
        struct Bounds {
            sequence: AtomicUsize,
            start: AtomicUsize,
            end: AtomicUsize,
        }

        impl Bounds {
            /// One thread at a time may call it.
            fn set(&self, start: usize, end: usize) {
                let sequence = self.sequence.load(Ordering::Relaxed);
                self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
                fence(Ordering::Release);
                self.start.store(start, Ordering::Relaxed);
                self.end.store(end, Ordering::Relaxed);
                self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
            }

            /// `None` while it is written. That isn't the range of a fault, which its owner has set before.
            fn get(&self) -> Option<(usize, usize)> {
                let before = self.sequence.load(Ordering::Acquire);
                let range = (self.start.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
                fence(Ordering::Acquire);
                let after = self.sequence.load(Ordering::Relaxed);
                (before == after && before.is_multiple_of(2)).then_some(range)
            }
        }
    };
}

bounds!(std::sync::atomic);

struct RangeEntry {
    bounds: Bounds,
    broken: AtomicBool,
}

static ENTRIES: [RangeEntry; MOST] = [const {
    RangeEntry {
        bounds: Bounds {
            sequence: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
        },
        broken: AtomicBool::new(false),
    }
}; MOST];

/// Entries that are free again.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// Entries from here on have never been used.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Whether no handler may be set.
static DECLINED: AtomicBool = AtomicBool::new(false);
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
        let mut free = lock(&FREE);
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
        entry.bounds.set(start, end);
        Some(GuardedRange { index })
    }

    /// Whether a page of the range couldn't be read since the last call.
    pub(crate) fn take_broken(&self) -> bool {
        fence(Ordering::Acquire);
        ENTRIES[self.index].broken.swap(false, Ordering::AcqRel)
    }
}

impl Drop for GuardedRange {
    fn drop(&mut self) {
        ENTRIES[self.index].bounds.set(0, 0);
        lock(&FREE).push(self.index);
    }
}

/// Never sets a handler of SIGBUS in this process. To be called before the first run.
///
/// A run sets one when it first maps a file: with [`Engine::Mmap`](crate::Engine::Mmap), and for cached parts of a file where a
/// sink takes shared pages. A page that can't be read, because the file was cut or the disk failed,
/// then ends the run with an error instead of the process by the signal. The handler stays set. It acts for pages of runs alone,
/// and hands other faults to the handler that was set before. A host that sets its own later hands on faults that it doesn't
/// know. Without the handler no file is mapped: workers read, and [`Engine::Mmap`](crate::Engine::Mmap) is refused.
pub fn decline_sigbus_handler() {
    DECLINED.store(true, Ordering::Release);
}

fn install() -> bool {
    if DECLINED.load(Ordering::Acquire) {
        return false;
    }
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
            if let Some((start, end)) = entry.bounds.get()
                && (start..end).contains(&address)
            {
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::process::Command;

    use super::*;

    mod modelled {
        bounds!(loom::sync::atomic);

        /// In every order of loads and stores that the memory model allows.
        #[test]
        #[cfg_attr(miri, ignore = "loom has threads of its own")]
        fn a_range_is_read_whole() {
            loom::model(|| {
                let bounds = loom::sync::Arc::new(Bounds {
                    sequence: AtomicUsize::new(0),
                    start: AtomicUsize::new(0),
                    end: AtomicUsize::new(0),
                });
                let ranges = [(0, 0), (10, 20), (30, 40)];
                let writer = loom::sync::Arc::clone(&bounds);
                let writer = loom::thread::spawn(move || {
                    ranges[1..]
                        .iter()
                        .for_each(|(start, end)| writer.set(*start, *end));
                });
                if let Some(range) = bounds.get() {
                    assert!(ranges.contains(&range), "{range:?}");
                }
                writer.join().unwrap();
                assert_eq!(bounds.get(), Some((30, 40)));
            });
        }
    }

    /// A page of a file that was cut.
    fn lost_page() -> *const u8 {
        let file = tempfile::tempfile().unwrap();
        file.set_len(PAGE as u64).unwrap();
        let cut = |file: &File| file.set_len(0).unwrap();
        let (shared, fd) = (libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: a new mapping.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, libc::PROT_READ, shared, fd, 0) };
        assert_ne!(map, libc::MAP_FAILED);
        cut(&file);
        map.cast()
    }

    extern "C" fn of_host(_: libc::c_int) {
        // SAFETY: it ends the process at once.
        unsafe { libc::_exit(42) }
    }

    const CHILD: &str = "RINGFOLD_TEST_CHILD";

    /// The first handler is the host's: faults in a page that is guarded are ours, others go to it.
    fn faults_in_a_child() {
        let host = of_host as extern "C" fn(libc::c_int);
        // SAFETY: the pages are mapped; those that are guarded may become zeros.
        unsafe {
            libc::signal(libc::SIGBUS, host as libc::sighandler_t);
            let page = lost_page();
            let guard = GuardedRange::new(page as usize, page as usize + PAGE).unwrap();
            assert_eq!(page.read_volatile(), 0);
            assert!(guard.take_broken());
            drop(guard);
            decline_sigbus_handler();
            assert!(GuardedRange::new(page as usize, page as usize + PAGE).is_none());
            lost_page().read_volatile();
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "it starts a process")]
    fn other_faults_are_the_hosts() {
        if std::env::var_os(CHILD).is_some() {
            return faults_in_a_child();
        }
        let child = Command::new(std::env::current_exe().unwrap())
            .arg("linux::sigbus::tests::other_faults_are_the_hosts")
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert_eq!(child.status.code(), Some(42), "{child:?}");
    }
}
