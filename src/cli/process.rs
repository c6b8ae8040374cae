//! Ends the process, even if threads of it are stuck in the kernel.
//!
//! **Signals.** The kernel delivers a signal to any thread, even to one in a read that can't be
//! interrupted. So all threads but one block SIGINT and SIGTERM, and that one only waits for them. A
//! signal that was ignored when the program began stays ignored: a script's background job isn't
//! meant by the terminal's Ctrl-C.
//!
//! **The guard.** A process ends when its last thread has ended, and a thread in a read that can't be
//! interrupted ends after the read. So with `--io-timeout` a child does the work. The process that the
//! user sees waits until the child ends or reports that it gives up. When the guard ends, for any
//! reason, the child gets a SIGTERM and handles it as any other.

use std::fs;
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use ringfold_bench::measure::process::CHILD;
use ringfold_read::internals::calls::{self, SignalSet, exit, exit_without};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, waitpid,
};

use crate::cli::{allocator, progress};

/// What the process exits with when a signal ends it.
const SIGNALS: [(Signal, u8); 2] = [(Signal::INT, 130), (Signal::TERM, 143)];

/// The output's descriptors are below: it is opened before any input.
const OUTPUT_MAX: RawFd = 64;

/// How long the guard waits for the child to clean up.
const GRACE: Duration = Duration::from_millis(200);

/// Tells the guard that the child gives up, with the exit code.
static GUARD: OnceLock<PipeWriter> = OnceLock::new();

/// Locked by the thread that ends the process, and never unlocked.
static ENDING: Mutex<()> = Mutex::new(());

/// To be taken when the process ends by itself. If another thread ends it already, this waits forever.
pub(super) fn ending() -> MutexGuard<'static, ()> {
    ENDING.lock().unwrap_or_else(|e| e.into_inner())
}

/// The signals that weren't ignored when the program began. It sets no handlers of its own.
fn signal_set() -> SignalSet {
    SignalSet::not_ignored(SIGNALS.into_iter().map(|(signal, _)| signal))
}

/// Blocks the signals in this thread and those that it starts. They stay pending until [`take_signals`].
pub(super) fn hold_signals() {
    signal_set().block();
}

/// A write beyond the limit on the size of files (`ulimit -f`) is an error, and no signal that ends the process.
pub(super) fn ignore_file_size_signal() {
    calls::ignore_signal(Signal::XFSZ);
}

/// From now on SIGINT and SIGTERM, unless they were ignored, end the process at once: nothing is on
/// stdout before the end, and an output file has no name before it is complete.
pub(super) fn take_signals() {
    take_signals_after(|_| end_measured_child());
}

/// Ends the program that is being measured, if there is one.
fn end_measured_child() {
    let child = Pid::from_raw(CHILD.load(Ordering::Relaxed));
    if let Some(child) = child {
        let _ = kill_process_group(child, Signal::KILL);
    }
}

/// The same, but calls `first` before.
fn take_signals_after(first: impl FnOnce(Signal) + Send + 'static) {
    let wait = || {
        let taken = Signal::from_named_raw(signal_set().wait());
        if let Some(signal) = taken {
            first(signal);
        }
        let code = SIGNALS.iter().find(|(signal, _)| Some(*signal) == taken);
        give_up(code.map_or(1, |(_, code)| *code), progress::clear_for_good)
    };
    let thread = std::thread::Builder::new().name("signals".to_string());
    if thread.spawn(wait).is_err() {
        // Without a thread, the kernel ends the process by the signal. A shell sees the same code.
        signal_set().unblock();
    }
}

/// Splits the process: returns in the child, which does the work; the guard ends as the child does.
/// Where there is no pipe or no process, the work goes on in this process.
pub(super) fn guard() {
    let Ok((mut receiver, sender)) = io::pipe() else {
        return;
    };
    let guard = getpid();
    match calls::fork() {
        Err(_) => {}
        Ok(None) => {
            drop(receiver);
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
            // The guard may have ended before that call.
            if rustix::process::getppid() != Some(guard) {
                exit(1);
            }
            let _ = GUARD.set(sender);
        }
        Ok(Some(child)) => {
            drop(sender);
            // Gives the child time to clear the progress line before the shell writes.
            take_signals_after(move |signal| {
                let _ = kill_process(child, signal);
                std::thread::sleep(GRACE);
            });
            let mut word = [0];
            if let Ok(1) = receiver.read(&mut word) {
                exit(word[0].into());
            }
            // The child ended without a report.
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

/// Ends the process even if threads of it never return from the kernel. Calls `last_word` before,
/// unless another thread ends the process already.
pub(super) fn give_up(code: u8, last_word: impl FnOnce()) -> ! {
    // From here on no other thread reports an error: it may be a consequence of this end.
    let _ending = ending();
    allocator::last_word(last_word);
    let guard = GUARD.get();
    if let Some(mut guard) = guard {
        // The guard may have ended already.
        let _ = guard.write_all(&[code]);
    }
    // Readers of the output see its end now, even if the kernel keeps this process for long.
    let leads = |fd: RawFd| fs::read_link(format!("/proc/self/fd/{fd}")).ok();
    let output = [leads(1), leads(2)];
    let is_output =
        |fd: &RawFd| *fd <= 2 || leads(*fd).is_some_and(|to| output.contains(&Some(to)));
    exit_without((0..OUTPUT_MAX).filter(is_output), code.into())
}
