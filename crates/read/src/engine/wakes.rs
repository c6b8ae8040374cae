//! Wakes threads that wait for something to change.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How long a thread sleeps at most before it checks whether the run was given up.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A count of wakes. A thread notes the count, looks at what it waits for, and sleeps until the count has changed, so
/// that it misses no wake in between.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Wakes {
    /// The count of now.
    pub(crate) fn count(&self) -> u64 {
        *self.lock()
    }

    /// Wakes all threads that sleep.
    pub(crate) fn wake(&self) {
        *self.lock() += 1;
        self.changed.notify_all();
    }

    /// Sleeps until the count is no longer `noted`, or for a quarter of a second.
    pub(crate) fn sleep(&self, noted: u64) {
        let unchanged = |count: &mut u64| *count == noted;
        let slept = self
            .changed
            .wait_timeout_while(self.lock(), CHECK_INTERVAL, unchanged);
        drop(slept);
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.count.lock().unwrap_or_else(|e| e.into_inner())
    }
}
