//! Retries of transient failures: which failures are transient, how often to retry, and how long to wait.

use std::io;
use std::time::Duration;

/// The most retries of a read.
pub(crate) const MOST: u32 = 10;

/// Whether a failure is transient.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN))
}

/// Whether a failed call is to be made again, after `tries` retries. It waits before.
pub(crate) fn again(error: &io::Error, tries: &mut u32) -> bool {
    let retries = is_transient(error) && *tries < MOST;
    if retries {
        pause(*tries);
        *tries += 1;
    }
    retries
}

/// Waits before a retry: 1, 2, 4 … 32 ms, a fifth of a second in all. It blocks the thread, which is fine
/// because it is rare.
pub(crate) fn pause(tries: u32) {
    std::thread::sleep(Duration::from_millis(1 << tries.min(5)));
}
