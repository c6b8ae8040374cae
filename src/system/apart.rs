//! Two calls that belong together, made by a fork: who kills this process can't come between them.
//!
//! # Invariant (`unsafe` room)
//! From the fork to its end the child makes system calls only, on what was made before: it waits for
//! no lock that another thread held then, and allocates nothing. It gets no signals, so that no
//! handler of this process runs in it.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, linkat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};

/// What became of it.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It is done, or this forbade it and nothing is left of it.
    Told(Result<(), Errno>),
    /// There is no process to be had for it: nothing was done.
    NotBegun,
    /// The child died without a word: anything may have been done.
    Silent,
}

/// Links what `source` leads to into a directory as `temporary`, and renames that to `name`.
pub(crate) fn link_and_rename(
    source: &CStr,
    directory: BorrowedFd<'_>,
    temporary: &CStr,
    name: &CStr,
) -> Outcome {
    // It tells by a pipe, not by how it ends: who ignores SIGCHLD, or waits for any child, never
    // learns how ours ended.
    let Ok((mut ear, mouth)) = io::pipe() else {
        return Outcome::NotBegun;
    };
    let mouth = OwnedFd::from(mouth);
    let before = hold_signals();
    // SAFETY: the child keeps to the room's invariant: rustix hands names that end in zero straight to
    // the kernel.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let done = linkat(CWD, source, directory, temporary, AtFlags::SYMLINK_FOLLOW);
        let done = done.and_then(|()| {
            renameat(directory, temporary, directory, name).inspect_err(|_| {
                let _ = unlinkat(directory, temporary, AtFlags::empty());
            })
        });
        let errno = done.map_or_else(Errno::raw_os_error, |()| 0);
        let _ = rustix::io::write(&mouth, &errno.to_ne_bytes());
        // SAFETY: it takes a number and doesn't return.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: the set that this thread had.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    if child < 0 {
        return Outcome::NotBegun;
    }
    let child = Pid::from_raw(child).expect("a child has a number");
    drop(mouth);
    let mut word = [0; size_of::<i32>()];
    let heard = ear.read_exact(&mut word);
    // For no more than that it leaves nothing behind.
    while let Err(Errno::INTR) = waitpid(Some(child), WaitOptions::empty()) {}
    match (heard, i32::from_ne_bytes(word)) {
        (Err(_), _) => Outcome::Silent,
        (Ok(()), 0) => Outcome::Told(Ok(())),
        (Ok(()), errno) => Outcome::Told(Err(Errno::from_raw_os_error(errno))),
    }
}

/// Keeps all signals from this thread; returns what was kept from it before.
fn hold_signals() -> libc::sigset_t {
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: any bytes are a set, and the calls get those on this stack.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags, openat};
    use std::os::fd::AsFd;

    #[test]
    fn it_is_done_or_told_and_nothing_is_left() {
        let room = tempfile::tempdir().unwrap();
        let path = |name: &str| room.path().join(name);
        std::fs::write(path("source"), "new").unwrap();
        std::fs::write(path("old"), "old").unwrap();
        std::fs::create_dir(path("directory")).unwrap();
        let source = std::ffi::CString::new(path("source").to_str().unwrap()).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, room.path(), flags, Mode::empty()).unwrap();
        let told =
            |temporary, name| match link_and_rename(&source, directory.as_fd(), temporary, name) {
                Outcome::Told(told) => told,
                other => panic!("{other:?}"),
            };
        told(c"tmp", c"old").unwrap();
        assert_eq!(std::fs::read(path("old")).unwrap(), b"new");
        assert_eq!(told(c"old", c"other"), Err(Errno::EXIST));
        assert_eq!(told(c"missing/tmp", c"old"), Err(Errno::NOENT));
        assert_eq!(told(c"tmp", c"directory"), Err(Errno::ISDIR));
        let entries = std::fs::read_dir(room.path()).unwrap();
        assert_eq!(entries.count(), 3);
    }
}
