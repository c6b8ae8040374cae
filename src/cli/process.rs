//! How the process ends, whatever its threads wait for.
//!
//! **Signals.** The kernel hands a signal to any thread it likes, even to one that sleeps where only
//! the device's answer wakes it. So SIGINT and SIGTERM are kept from all threads but one, which waits
//! for nothing else.
//!
//! **The guard.** A process is gone when the last of its threads is, and a thread in a read that
//! nothing can interrupt isn't gone before the read. So with `--io-timeout` a child does the work, and
//! the process that the user sees waits for the child's end, or for its word that it gives up. Who
//! kills the guard kills the child.
//!
//! # Invariant (`unsafe` room)
//! [`guard`] is called while there is one thread, so that the child has everything of it. Signal sets
//! live on the stack of who passes them. Descriptors are closed in masses only by who ends the
//! process right after, and doesn't use one again.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

/// What the process exits with when a signal ends it.
const SIGNALS: [(libc::c_int, i32); 2] = [(libc::SIGINT, 130), (libc::SIGTERM, 143)];

/// Where the guard hears that the work is given up.
static GUARD: OnceLock<PipeWriter> = OnceLock::new();

/// Ends the process without a look back.
fn exit(code: i32) -> ! {
    // SAFETY: it takes a number and doesn't return.
    unsafe { libc::_exit(code) }
}

fn signal_set() -> libc::sigset_t {
    // SAFETY: any bytes are a set, and the calls get the one on this stack.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for (signal, _) in SIGNALS {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Keeps the signals from this thread and those that it starts. They wait for [`take_signals`].
pub(super) fn hold_signals() {
    // SAFETY: a set on the stack, and nothing to be told of the old one.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &signal_set(), std::ptr::null_mut()) };
}

/// From now on SIGINT and SIGTERM end the process at once, and its child: nothing is on stdout
/// before the end, and an output file has no name before it is complete.
pub(super) fn take_signals(child: Option<Pid>) {
    let wait = move || {
        let set = signal_set();
        let mut taken = 0;
        // SAFETY: set and number are on the stack.
        while unsafe { libc::sigwait(&set, &mut taken) } != 0 {}
        if let Some(child) = child {
            let _ = kill_process(child, Signal::KILL);
        }
        let code = SIGNALS.iter().find(|(signal, _)| *signal == taken);
        exit(code.map_or(1, |(_, code)| *code));
    };
    let thread = std::thread::Builder::new().name("signals".to_string());
    if thread.spawn(wait).is_err() {
        // Where there is no thread for it the kernel ends the process, with the same code to a shell.
        // SAFETY: as above.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &signal_set(), std::ptr::null_mut()) };
    }
}

/// Splits the process: returns in the child, which does the work; the guard ends as the child does.
/// Where that can't be had the process goes on alone.
pub(super) fn guard() {
    let Ok((mut ear, mouth)) = io::pipe() else {
        return;
    };
    let guard = getpid();
    // SAFETY: there is but this thread.
    match unsafe { libc::fork() } {
        ..0 => {}
        0 => {
            drop(ear);
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            // It may have gone before that was said.
            if rustix::process::getppid() != Some(guard) {
                exit(1);
            }
            let _ = GUARD.set(mouth);
        }
        child => {
            drop(mouth);
            let child = Pid::from_raw(child).expect("a child has a number");
            take_signals(Some(child));
            let mut word = [0];
            if let Ok(1) = ear.read(&mut word) {
                exit(word[0].into());
            }
            // No word but the end.
            let status = loop {
                match waitpid(Some(child), WaitOptions::empty()) {
                    Err(rustix::io::Errno::INTR) => {}
                    waited => break waited.ok().flatten().map(|(_, status)| status),
                }
            };
            if let Some(signal) = status.and_then(|status| status.terminating_signal()) {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    let _ = kill_process(getpid(), signal);
                }
                exit(128 + signal);
            }
            exit(status.and_then(|status| status.exit_status()).unwrap_or(1));
        }
    }
}

/// Ends the process although threads of it may never come back from the kernel.
pub(super) fn give_up(code: u8) -> ! {
    if let Some(mut guard) = GUARD.get() {
        // A guard that is gone needs no word.
        let _ = guard.write_all(&[code]);
    }
    // Who reads our output is to see its end, although the kernel may keep this process for long. The
    // output was opened before the input, so that an input that can't even be closed comes behind it.
    if let Ok(nowhere) = File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&nowhere);
        let _ = rustix::stdio::dup2_stdout(&nowhere);
        let _ = rustix::stdio::dup2_stderr(&nowhere);
    }
    // SAFETY: see the invariant.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    exit(code.into())
}
