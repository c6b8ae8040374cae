//! Retries of transient failures: which failures are transient, how often to retry, and how long to wait.

use std::io;
use std::time::Duration;

/// The most retries of a read.
pub(crate) const MOST: u32 = 10;

/// Whether a failure is transient.
pub(crate) fn may_pass(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN))
}

/// Waits before a retry: 1, 2, 4 … 32 ms, a fifth of a second in all. It blocks the thread, which is fine
/// because it is rare.
pub(crate) fn pause(tries: u32) {
    std::thread::sleep(Duration::from_millis(1 << tries.min(5)));
}
