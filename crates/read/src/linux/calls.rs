//! System calls that neither `std` nor `rustix` has in safe code, as safe functions.
//!
//! # Invariant (`unsafe` module)
//! What the kernel writes to lies in the function that makes the call, and outlives it. An [`AddressRange`] owns its
//! addresses until it is dropped, and nobody reads or writes there. A call that could take something away from other code
//! of the process is made only where there is none: [`fork`] with one thread, [`exit_without`] right before the end.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::ptr::{NonNull, null, null_mut};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use rustix::process::{Pid, Signal};

use crate::linux::pages::PAGE;

/// Whether there is a descriptor of this number.
pub fn is_open(fd: RawFd) -> bool {
    // SAFETY: numbers go in and one comes out.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

/// Ends the process at once.
pub fn exit(code: i32) -> ! {
    // SAFETY: it takes a number and doesn't return.
    unsafe { libc::_exit(code) }
}

/// Ends the process at once. If the kernel keeps it for long nevertheless, these descriptors lead to /dev/null meanwhile.
pub fn exit_without(descriptors: impl Iterator<Item = RawFd>, code: i32) -> ! {
    if let Ok(nowhere) = File::options().read(true).write(true).open("/dev/null") {
        for fd in descriptors {
            // SAFETY: numbers go in. The descriptor's owner loses its file, and the process ends below.
            unsafe { libc::dup3(nowhere.as_raw_fd(), fd, libc::O_CLOEXEC) };
        }
    }
    exit(code)
}

/// Splits the process. The child gets `None`.
///
/// # Errors
/// There is more than one thread, so that the child's memory could be in use by threads that it doesn't have; or the
/// kernel allows no more processes.
pub fn fork() -> io::Result<Option<Pid>> {
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(io::Error::other("more than one thread"));
    }
    // SAFETY: there is but this thread.
    match unsafe { libc::fork() } {
        ..0 => Err(io::Error::last_os_error()),
        child => Ok(Pid::from_raw(child)),
    }
}

/// Waits for a child to end, and returns what it used.
///
/// # Errors
/// Somebody else has waited for it.
pub fn wait4(child: &Child) -> io::Result<(ExitStatus, libc::rusage)> {
    let mut status = 0;
    // SAFETY: the structure is made of integers; all zeros is one.
    let mut usage: libc::rusage = unsafe { zeroed() };
    loop {
        // SAFETY: both are on the stack.
        let pid = unsafe { libc::wait4(child.id().cast_signed(), &mut status, 0, &mut usage) };
        if pid >= 0 {
            return Ok((ExitStatus::from_raw(status), usage));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Has the process ignore a signal.
pub fn ignore_signal(signal: Signal) {
    // SAFETY: no handler is set.
    unsafe { libc::signal(signal.as_raw(), libc::SIG_IGN) };
}

/// A set of signals.
pub struct SignalSet(libc::sigset_t);

impl SignalSet {
    /// Those of `signals` that the process doesn't ignore.
    pub fn not_ignored(signals: impl Iterator<Item = Signal>) -> SignalSet {
        // SAFETY: any bytes are a set or an action, and both are on the stack.
        unsafe {
            let mut set = zeroed();
            libc::sigemptyset(&mut set);
            for signal in signals {
                let mut action: libc::sigaction = zeroed();
                libc::sigaction(signal.as_raw(), null(), &mut action);
                if action.sa_sigaction != libc::SIG_IGN {
                    libc::sigaddset(&mut set, signal.as_raw());
                }
            }
            SignalSet(set)
        }
    }

    /// Has them wait, when they come to this thread and to those that it starts.
    pub fn block(&self) {
        // SAFETY: the set is borrowed, and the old one isn't returned.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &self.0, null_mut()) };
    }

    /// Has them come again.
    pub fn unblock(&self) {
        // SAFETY: as above.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &self.0, null_mut()) };
    }

    /// Waits for one of them, which must be blocked, and returns its number.
    pub fn wait(&self) -> i32 {
        let mut signal = 0;
        // SAFETY: the set is borrowed, and the number is on the stack.
        while unsafe { libc::sigwait(&self.0, &mut signal) } != 0 {}
        signal
    }
}

/// The I/O priority of this thread; `None` where the kernel doesn't report it.
pub(crate) fn io_priority() -> Option<u16> {
    const THREAD: libc::c_int = 1; // IOPRIO_WHO_PROCESS, and its 0 is the calling thread
    // SAFETY: two numbers go in and one comes out.
    let own = unsafe { libc::syscall(libc::SYS_ioprio_get, THREAD, 0) };
    u16::try_from(own).ok()
}

/// Sets from how many bytes on glibc's allocator takes a block from the kernel, and gives it back when it is freed.
pub(crate) fn set_mmap_threshold(bytes: u32) {
    #[cfg(target_env = "gnu")]
    // SAFETY: numbers go in, and glibc takes the allocator's lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, bytes.cast_signed());
    }
    let _ = bytes;
}

/// Gives free memory of glibc's allocator back to the kernel.
pub(crate) fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The number of cachestat(2), the same on all architectures, since Linux 6.5.
const CACHESTAT: libc::c_long = 451;

#[repr(C)]
#[derive(Default)]
struct CachestatRange {
    off: u64,
    len: u64,
}

#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cache: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// How many pages of `from..to` are in the page cache.
///
/// # Errors
/// The kernel lacks cachestat (ENOSYS), or this process neither owns the file nor may write it (EPERM).
pub fn cachestat(file: &File, from: u64, to: u64) -> io::Result<u64> {
    let range = CachestatRange {
        off: from,
        len: to - from,
    };
    let mut stat = Cachestat::default();
    let flags: libc::c_uint = 0;
    // SAFETY: both structures are laid out as the kernel has them.
    let done = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &range, &mut stat, flags) };
    match done {
        0 => Ok(stat.cache),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Addresses that are mapped, so that the kernel can be asked about their pages.
pub struct AddressRange {
    base: NonNull<u8>,
    len: usize,
}

impl AddressRange {
    /// Addresses of no file.
    ///
    /// # Errors
    /// The address space is limited.
    pub fn reserve(len: usize) -> io::Result<AddressRange> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { mmap_anonymous(null_mut(), len, ProtFlags::READ, MapFlags::PRIVATE)? };
        let base = NonNull::new(base.cast()).expect("mmap returns no null");
        Ok(AddressRange { base, len })
    }

    /// Those of `len` bytes of a file, from a page on.
    ///
    /// # Errors
    /// The file can't be mapped, or the address space is limited.
    pub fn of_file(file: &File, from: u64, len: usize) -> io::Result<AddressRange> {
        let (read, shared) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: as above.
        let base = unsafe { mmap(null_mut(), len, read, shared, file, from)? };
        let base = NonNull::new(base.cast()).expect("mmap returns no null");
        Ok(AddressRange { base, len })
    }

    /// The first address.
    pub fn address(&self) -> usize {
        self.base.as_ptr().addr()
    }

    /// Puts `len` bytes of a file, from a page on, at the page that is `at` bytes after the first address. Nothing is read
    /// ahead there.
    ///
    /// # Errors
    /// The file can't be mapped.
    pub fn put_file(&mut self, at: usize, file: &File, from: u64, len: usize) -> io::Result<()> {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len));
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: the file replaces a part of the range.
        unsafe {
            let start = self.base.as_ptr().add(at).cast();
            mmap(start, len, ProtFlags::READ, flags, file, from)?;
            madvise(start, len, Advice::Random)?;
        }
        Ok(())
    }

    /// Maps the page that is `at` bytes after the first address. The end of a truncated file is an error.
    ///
    /// # Errors
    /// It can't be read, or the kernel lacks MADV_POPULATE_READ.
    pub fn populate(&self, at: usize) -> io::Result<()> {
        assert!(at.checked_add(PAGE).is_some_and(|end| end <= self.len));
        // SAFETY: the page lies in the range; its content isn't changed.
        unsafe {
            let page = self.base.as_ptr().add(at).cast();
            madvise(page, PAGE, Advice::LinuxPopulateRead)?;
        }
        Ok(())
    }

    /// Whether each page is in memory, by mincore(2).
    ///
    /// # Errors
    /// The kernel lacks memory.
    pub fn resident(&self) -> io::Result<Vec<bool>> {
        let mut pages = vec![0_u8; self.len.div_ceil(PAGE)];
        // SAFETY: the range is mapped, and there is a byte for each of its pages.
        let done =
            unsafe { libc::mincore(self.base.as_ptr().cast(), self.len, pages.as_mut_ptr()) };
        match done {
            0 => Ok(pages.iter().map(|page| page & 1 == 1).collect()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for AddressRange {
    fn drop(&mut self) {
        // SAFETY: the range is owned.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}
