//! Reads that failed for a cause that may pass: which they are, how often they are tried again, and
//! how long to wait before.

use std::io;
use std::time::Duration;

/// How often a read is tried again that brought nothing.
pub(crate) const MOST: u32 = 10;

/// Whether a failure may be gone at the next try.
pub(crate) fn may_pass(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN))
}

/// Waits before a try: 1, 2, 4 … 32 ms, a fifth of a second over all of them. Rare enough to hold up
/// the thread.
pub(crate) fn pause(tries: u32) {
    std::thread::sleep(Duration::from_millis(1 << tries.min(5)));
}
