//! How the process ends, whatever its threads wait for.
//!
//! **Signals.** The kernel hands a signal to any thread it likes, even to one that sleeps where only
//! the device's answer wakes it. So SIGINT and SIGTERM are kept from all threads but one, which waits
//! for nothing else. One that was ignored when the program began stays so, as of a script's job in
//! the background, which the terminal's Ctrl-C isn't meant for.
//!
//! **The guard.** A process is gone when the last of its threads is, and a thread in a read that
//! nothing can interrupt isn't gone before the read. So with `--io-timeout` a child does the work, and
//! the process that the user sees waits for the child's end, or for its word that it gives up. When
//! the guard ends, by whatever, the child gets a SIGTERM and takes it as any other.
//!
//! # Invariant (`unsafe` room)
//! [`guard`] is called while there is one thread, so that the child has everything of it. Signal sets
//! live on the stack of who passes them. No descriptor is closed behind its owner's back: those of
//! the output are made to lead nowhere, by who ends the process right after.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use crate::cli::progress;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

/// What the process exits with when a signal ends it.
const SIGNALS: [(libc::c_int, u8); 2] = [(libc::SIGINT, 130), (libc::SIGTERM, 143)];

/// The output's descriptors are below: it is opened before any input.
const FEW: RawFd = 64;

/// What the guard waits for a child's last word.
const GRACE: Duration = Duration::from_millis(200);

/// Where the guard hears that the work is given up.
static GUARD: OnceLock<PipeWriter> = OnceLock::new();

/// Held by who ends the process; nobody lets go of it.
static ENDING: Mutex<()> = Mutex::new(());

/// To be held from where the process ends by itself: whoever came before has the say.
pub(super) fn ending() -> MutexGuard<'static, ()> {
    ENDING.lock().unwrap_or_else(|e| e.into_inner())
}

/// Ends the process without a look back.
fn exit(code: i32) -> ! {
    // SAFETY: it takes a number and doesn't return.
    unsafe { libc::_exit(code) }
}

/// Those that weren't ignored when the program began: it sets no handlers of its own.
fn signal_set() -> libc::sigset_t {
    // SAFETY: any bytes are a set or an action, and the calls get those on this stack.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for (signal, _) in SIGNALS {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut action);
            if action.sa_sigaction != libc::SIG_IGN {
                libc::sigaddset(&mut set, signal);
            }
        }
        set
    }
}

/// Keeps the signals from this thread and those that it starts. They wait for [`take_signals`].
pub(super) fn hold_signals() {
    // SAFETY: a set on the stack, and nothing to be told of the old one.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &signal_set(), std::ptr::null_mut()) };
}

/// From now on SIGINT and SIGTERM, unless they were ignored, end the process at once: nothing is on
/// stdout before the end, and an output file has no name before it is complete.
pub(super) fn take_signals() {
    take_signals_after(|_| ());
}

/// The same, after something else is done about the signal.
fn take_signals_after(first: impl FnOnce(Signal) + Send + 'static) {
    let wait = || {
        let set = signal_set();
        let mut taken = 0;
        // SAFETY: set and number are on the stack.
        while unsafe { libc::sigwait(&set, &mut taken) } != 0 {}
        if let Some(signal) = Signal::from_named_raw(taken) {
            first(signal);
        }
        let code = SIGNALS.iter().find(|(signal, _)| *signal == taken);
        give_up(code.map_or(1, |(_, code)| *code), progress::clear_for_good)
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
    let Ok((mut receiver, sender)) = io::pipe() else {
        return;
    };
    let guard = getpid();
    // SAFETY: there is but this thread.
    match unsafe { libc::fork() } {
        ..0 => {}
        0 => {
            drop(receiver);
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
            // It may have gone before that was said.
            if rustix::process::getppid() != Some(guard) {
                exit(1);
            }
            let _ = GUARD.set(sender);
        }
        child => {
            drop(sender);
            let child = Pid::from_raw(child).expect("a child has a number");
            // The child leaves the terminal as it should be, if it can, before a shell has it again.
            take_signals_after(move |signal| {
                let _ = kill_process(child, signal);
                std::thread::sleep(GRACE);
            });
            let mut word = [0];
            if let Ok(1) = receiver.read(&mut word) {
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

/// Ends the process although threads of it may never come back from the kernel. It says its last word
/// unless another ends the process already.
pub(super) fn give_up(code: u8, last_word: impl FnOnce()) -> ! {
    // What others meet without their files is nobody's business any more.
    let _ending = ending();
    last_word();
    let guard = GUARD.get();
    if let Some(mut guard) = guard {
        // A guard that is gone needs no word.
        let _ = guard.write_all(&[code]);
    }
    // Who reads our output is to see its end, although the kernel may keep this process for long.
    let leads = |fd: RawFd| fs::read_link(format!("/proc/self/fd/{fd}")).ok();
    let output = [leads(1), leads(2)];
    let nowhere = File::options().read(true).write(true).open("/dev/null");
    if let Ok(nowhere) = nowhere {
        for fd in 0..FEW {
            if fd <= 2 || leads(fd).is_some_and(|to| output.contains(&Some(to))) {
                // SAFETY: see the invariant.
                unsafe { libc::dup3(nowhere.as_raw_fd(), fd, libc::O_CLOEXEC) };
            }
        }
    }
    exit(code.into())
}
