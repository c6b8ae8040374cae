//! Wakes threads that wait for something to change.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use crate::sync::lock;

/// How long a thread sleeps at most before it checks whether the run was given up.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A count of wakes. A thread notes the count, looks at what it waits for, and sleeps until the count has changed, so
/// that it misses no wake in between.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    count: Mutex<u64>,
    changed: Condvar,
    /// For threads that wait for other things too.
    notify: Notify,
}

impl Wakes {
    /// The count of now.
    pub(crate) fn count(&self) -> u64 {
        *lock(&self.count)
    }

    /// Wakes all threads that sleep.
    pub(crate) fn wake(&self) {
        *lock(&self.count) += 1;
        self.changed.notify_all();
        self.notify.notify_waiters();
    }

    /// The next wake from now on, also before it is first polled.
    pub(crate) fn woken(&self) -> impl Future<Output = ()> {
        self.notify.notified()
    }

    /// Sleeps until the count is no longer `noted`, or for a quarter of a second.
    pub(crate) fn sleep(&self, noted: u64) {
        let unchanged = |count: &mut u64| *count == noted;
        let slept = self
            .changed
            .wait_timeout_while(lock(&self.count), CHECK_INTERVAL, unchanged);
        drop(slept);
    }
}
