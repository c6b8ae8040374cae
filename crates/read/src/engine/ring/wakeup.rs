//! Wakes a ring's thread that sleeps in `io_uring_enter` when a slot is returned.
//!
//! The thread waits for completions, which end its system call, and for returned slots, which come over a
//! channel. The channel wakes the task that waits on it; [`Wakeup`] is the waker of that task. If the thread
//! sleeps in the kernel, it writes to an eventfd that the ring polls. Otherwise it costs no system call.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

/// Nothing has happened since the task was last polled.
const IDLE: u8 = 0;
/// The thread is in the kernel, or about to be.
const ASLEEP: u8 = 1;
/// The task was woken.
const WOKEN: u8 = 2;

/// The waker of a ring's task.
#[derive(Debug)]
pub(crate) struct Wakeup {
    state: AtomicU8,
    eventfd: OwnedFd,
    /// The waker of the runtime that the task runs in.
    runtime: OnceLock<Waker>,
}

impl Wakeup {
    pub(crate) fn new() -> rustix::io::Result<Arc<Wakeup>> {
        let flags = rustix::event::EventfdFlags::CLOEXEC;
        Ok(Arc::new(Wakeup {
            state: AtomicU8::new(IDLE),
            eventfd: rustix::event::eventfd(0, flags)?,
            runtime: OnceLock::new(),
        }))
    }

    /// The descriptor that becomes readable to end the sleep.
    pub(crate) fn fd(&self) -> RawFd {
        self.eventfd.as_raw_fd()
    }

    /// Runs a task with this as its waker.
    pub(crate) async fn drive<T>(self: &Arc<Self>, task: impl Future<Output = T>) -> T {
        let mut task = std::pin::pin!(task);
        let waker = Waker::from(Arc::clone(self));
        std::future::poll_fn(|context| {
            // `block_on` has one waker from beginning to end.
            self.runtime.get_or_init(|| context.waker().clone());
            // This poll is for all wake-ups until now.
            self.state.swap(IDLE, SeqCst);
            task.as_mut().poll(&mut Context::from_waker(&waker))
        })
        .await
    }

    /// To be called before the thread sleeps. `false` means that the task was woken since it was polled: the
    /// thread has to return to its runtime, which will poll the task again.
    pub(crate) fn begin_sleep(&self) -> bool {
        let idle = self.state.compare_exchange(IDLE, ASLEEP, SeqCst, SeqCst);
        idle.is_ok()
    }

    /// To be called when the thread is back. Returns whether the task was woken meanwhile.
    pub(crate) fn end_sleep(&self) -> bool {
        // The state stays WOKEN until the task is polled.
        let slept = self.state.compare_exchange(ASLEEP, IDLE, SeqCst, SeqCst);
        slept.is_err()
    }

    /// Has the task polled again, after the runtime has checked its timers.
    pub(crate) fn poll_again<T>(&self) -> Poll<T> {
        if let Some(runtime) = self.runtime.get() {
            runtime.wake_by_ref();
        }
        Poll::Pending
    }
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, SeqCst) == ASLEEP {
            // The eventfd's count can't overflow in practice, so this neither fails nor waits.
            let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
        }
        if let Some(runtime) = self.runtime.get() {
            runtime.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::ring::wakeup::*;

    fn rings(wakeup: &Wakeup) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let now = Timespec::default();
        poll(
            &mut [PollFd::new(&wakeup.eventfd, PollFlags::IN)],
            Some(&now),
        )
        .unwrap()
            > 0
    }

    #[test]
    fn only_a_sleeper_is_rung_for() {
        let wakeup = Wakeup::new().unwrap();
        let waker = Waker::from(Arc::clone(&wakeup));
        waker.wake_by_ref();
        assert!(!rings(&wakeup), "nobody sleeps");
        assert!(
            !wakeup.begin_sleep(),
            "what has happened must be looked at first"
        );
        let mut task = std::pin::pin!(wakeup.drive(std::future::pending::<()>()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(task.as_mut().poll(&mut context).is_pending());
        assert!(wakeup.begin_sleep());
        assert!(!wakeup.end_sleep() && wakeup.begin_sleep());
        waker.wake_by_ref();
        assert!(rings(&wakeup));
        assert!(wakeup.end_sleep() && !wakeup.begin_sleep());
    }
}
