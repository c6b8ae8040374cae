//! Calls to the kernel that the standard library lacks.
//!
//! # Invariant of this module
//! What runs between fork and exec makes system calls only, and names memory that was allocated
//! before the fork and lives in the closure. Nothing looks at the bytes of a mapping.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The numbers of io_uring's calls, the same on all architectures.
pub const SETUP: u32 = 425;
pub const ENTER: u32 = 426;
pub const REGISTER: u32 = 427;

/// Lets the child's system calls of these numbers fail with `errno`, by a seccomp filter.
pub fn deny_calls(command: &mut Command, calls: &[u32], errno: i32) {
    let op = |code: u32, jt: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf: 0,
        k,
    };
    // The number of the call; for each denied one a jump to the last instruction.
    let mut filter = vec![op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (at, &call) in calls.iter().enumerate() {
        let jump = (calls.len() - at) as u8;
        filter.push(op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jump, call));
    }
    filter.push(op(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    filter.push(op(
        libc::BPF_RET | libc::BPF_K,
        0,
        libc::SECCOMP_RET_ERRNO | errno as u32,
    ));
    let install = move || {
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_ptr().cast_mut(),
        };
        // SAFETY: plain numbers, and a program that lives until the kernel has copied it.
        unsafe {
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            check(libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &program,
            ))
        }
    };
    // SAFETY: see the module's invariant.
    unsafe { command.pre_exec(install) };
}

/// Limits the child, for good.
pub fn limit(command: &mut Command, resource: libc::__rlimit_resource_t, value: u64) {
    let set = move || {
        let limit = libc::rlimit {
            rlim_cur: value,
            rlim_max: value,
        };
        // SAFETY: a structure on the stack.
        check(unsafe { libc::setrlimit(resource, &limit) })
    };
    // SAFETY: see the module's invariant.
    unsafe { command.pre_exec(set) };
}

/// Lets the child start with a signal ignored.
pub fn ignore_signal(command: &mut Command, signal: libc::c_int) {
    let ignore = move || {
        // SAFETY: no handler is named.
        match unsafe { libc::signal(signal, libc::SIG_IGN) } {
            libc::SIG_ERR => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: see the module's invariant.
    unsafe { command.pre_exec(ignore) };
}

/// Lets this process and its children take SIGINT as a program does that a user has started: a shell has
/// its jobs in the background ignore it, and they hand that down. Said once here and not in each child,
/// which would then be forked with all our memory.
pub fn heed_interrupts() {
    // SAFETY: no handler is named.
    let before = unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    assert_ne!(before, libc::SIG_ERR);
}

/// Keeps transparent huge pages from the child.
pub fn deny_huge_pages(command: &mut Command) {
    let deny = || {
        // SAFETY: plain numbers.
        check(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) })
    };
    // SAFETY: see the module's invariant.
    unsafe { command.pre_exec(deny) };
}

/// Lets the child see the mounts of a namespace.
pub fn enter(command: &mut Command, namespace: std::fs::File) {
    let enter = move || {
        let fd = std::os::fd::AsRawFd::as_raw_fd(&namespace);
        // SAFETY: plain numbers.
        check(unsafe { libc::setns(fd, libc::CLONE_NEWNS) })
    };
    // SAFETY: see the module's invariant.
    unsafe { command.pre_exec(enter) };
}

/// Lets the child begin in these control groups: their `cgroup.procs`, open for writing.
pub fn join(command: &mut Command, groups: Vec<std::fs::File>) {
    let join = move || {
        let mut groups = groups.iter();
        // It stands for whoever writes it.
        groups.try_for_each(|mut group| io::Write::write_all(&mut group, b"0"))
    };
    // SAFETY: see the module's invariant.
    unsafe { command.pre_exec(join) };
}

/// Pages of a file that are mapped and were looked at: they can't leave the page cache while this lives.
pub struct Mapped {
    start: *mut std::ffi::c_void,
    len: usize,
}

/// Maps the first bytes of a file.
pub fn mapped(file: &std::fs::File, len: usize) -> Mapped {
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    let flags = MapFlags::SHARED | MapFlags::POPULATE;
    let anywhere = std::ptr::null_mut();
    // SAFETY: a new mapping at an address of the kernel's choice; nobody looks at its bytes.
    let start = unsafe { mmap(anywhere, len, ProtFlags::READ, flags, file, 0) }.unwrap();
    Mapped { start, len }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        let _ = unsafe { rustix::mm::munmap(self.start, self.len) };
    }
}

impl Mapped {
    /// Maps a file to be written to.
    pub fn writable(file: &std::fs::File, len: usize) -> Mapped {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let (flags, anywhere) = (MapFlags::SHARED | MapFlags::POPULATE, std::ptr::null_mut());
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice; nobody has a reference to its bytes.
        let start = unsafe { mmap(anywhere, len, protection, flags, file, 0) }.unwrap();
        Mapped { start, len }
    }

    /// Writes a byte, which other threads and processes see at once.
    pub fn set(&self, at: usize, byte: u8) {
        assert!(at < self.len);
        // SAFETY: within the mapping; atomic, because other threads write too.
        let place =
            unsafe { std::sync::atomic::AtomicU8::from_ptr(self.start.cast::<u8>().add(at)) };
        place.store(byte, std::sync::atomic::Ordering::Relaxed);
    }
}

// SAFETY: its bytes are only written to, by atomic stores.
unsafe impl Sync for Mapped {}

pub fn is_root() -> bool {
    // SAFETY: it takes nothing and can't fail.
    unsafe { libc::geteuid() == 0 }
}

/// The identity of nobody: no capabilities, no groups.
pub const NOBODY: u32 = 65534;

/// Which pages of a file are in the page cache.
pub fn residency(path: &std::path::Path) -> Vec<bool> {
    let file = std::fs::File::open(path).unwrap();
    let len = file.metadata().unwrap().len() as usize;
    let mut pages = vec![0; len.div_ceil(4096)];
    let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
    // SAFETY: nothing looks at the mapping's bytes, and there is a place for each page.
    unsafe {
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        let map = libc::mmap(std::ptr::null_mut(), len, read, shared, fd, 0);
        assert_ne!(map, libc::MAP_FAILED);
        assert_eq!(libc::mincore(map, len, pages.as_mut_ptr()), 0);
        libc::munmap(map, len);
    }
    pages.iter().map(|page| page & 1 == 1).collect()
}
