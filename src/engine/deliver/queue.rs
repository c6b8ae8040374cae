//! The queue in which released blocks wait for a worker.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::engine::deliver::delivery::{Delivery, Ready};

/// Released buffers on their way to the workers.
pub(crate) struct Queue {
    state: Mutex<Waiting>,
    /// Mirrors the length, so that a look at an empty queue costs no lock.
    len: AtomicU64,
    threads: usize,
}

#[derive(Default)]
struct Waiting {
    ready: VecDeque<Ready>,
    /// Workers that were called and take from the queue until it is empty.
    workers: usize,
}

impl Queue {
    /// A queue that `threads` workers take from.
    pub(crate) fn new(threads: usize) -> Self {
        Queue {
            state: Mutex::default(),
            len: AtomicU64::new(0),
            threads,
        }
    }

    /// Adds buffers; returns how many workers have to be called for them.
    pub(crate) fn push(&self, ready: &mut Vec<Ready>) -> usize {
        let mut state = self.lock();
        let wanted = (state.workers + ready.len()).min(self.threads);
        let called = wanted.saturating_sub(state.workers);
        state.workers += called;
        state.ready.extend(ready.drain(..));
        self.len.store(state.ready.len() as u64, Relaxed);
        called
    }

    /// What a worker does that was called.
    pub(crate) fn work(&self, delivery: &Delivery<'_>) {
        loop {
            let mut state = self.lock();
            let Some(ready) = self.take(&mut state) else {
                // Under the lock, so that what is pushed from now on calls a worker anew.
                state.workers -= 1;
                return;
            };
            drop(state);
            delivery.deliver_ready(ready);
        }
    }

    /// A buffer for a worker that has other things to do too.
    pub(crate) fn pop(&self) -> Option<Ready> {
        // It may be empty by now, or not any more: whoever was called looks again.
        if self.len.load(Relaxed) == 0 {
            return None;
        }
        self.take(&mut self.lock())
    }

    fn take(&self, state: &mut Waiting) -> Option<Ready> {
        let ready = state.ready.pop_front();
        self.len.store(state.ready.len() as u64, Relaxed);
        ready
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}
