//! The queue in which released blocks wait for a worker.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::deliver::delivery::{Delivery, Ready};
use crate::sync::lock;

/// How often a worker lets others go first before it sleeps: the next buffer is often about to come, and to be woken
/// takes longer.
const TURNS: u32 = 32;

/// Released buffers on their way to the workers.
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// Mirrors the length, so that a look at an empty queue costs no lock.
    len: AtomicU64,
    threads: usize,
    /// How long workers found it empty, in nanoseconds, all of them together.
    waited: AtomicU64,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Ready>,
    /// Workers that were called.
    called: usize,
    /// Those of them that wait for a buffer.
    idle: usize,
    closed: bool,
}

impl Queue {
    /// A queue that `threads` workers take from.
    pub(crate) fn new(threads: usize) -> Self {
        Queue {
            state: Mutex::default(),
            changed: Condvar::new(),
            len: AtomicU64::new(0),
            threads,
            waited: AtomicU64::new(0),
        }
    }

    /// Adds buffers; returns how many workers have to be called for them. Each is called once a run, so that nothing is
    /// allocated for a block.
    pub(crate) fn push(&self, ready: &mut Vec<Ready>) -> usize {
        let mut state = lock(&self.state);
        let arrived = ready.len();
        state.ready.extend(ready.drain(..));
        self.len.store(state.ready.len() as u64, Relaxed);
        let missing = state.ready.len().saturating_sub(state.idle);
        let called = missing.min(self.threads - state.called);
        state.called += called;
        let woken = arrived.min(state.idle);
        drop(state);
        for _ in 0..woken {
            self.changed.notify_one();
        }
        called
    }

    /// What a worker does that was called, until the queue is closed.
    pub(crate) fn work(&self, delivery: &Delivery<'_>) {
        while let Some(ready) = self.next() {
            delivery.deliver_ready(ready);
        }
    }

    fn next(&self) -> Option<Ready> {
        let mut state = lock(&self.state);
        let mut turns = 0;
        let mut empty_since = None;
        loop {
            let ready = self.take(&mut state);
            if ready.is_some() || state.closed {
                if let Some(since) = empty_since {
                    let waited = Instant::elapsed(&since).as_nanos() as u64;
                    self.waited.fetch_add(waited, Relaxed);
                }
                return ready;
            }
            empty_since = empty_since.or_else(|| Some(Instant::now()));
            if turns < TURNS {
                drop(state);
                while turns < TURNS && self.len.load(Relaxed) == 0 {
                    std::thread::yield_now();
                    turns += 1;
                }
                state = lock(&self.state);
                continue;
            }
            state.idle += 1;
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            turns = 0;
        }
    }

    /// How long workers have found it empty, all of them together.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited.load(Relaxed))
    }

    /// A buffer for a worker that has other things to do too.
    pub(crate) fn pop(&self) -> Option<Ready> {
        // It may be empty by now, or not any more: whoever was called looks again.
        if self.len.load(Relaxed) == 0 {
            return None;
        }
        self.take(&mut lock(&self.state))
    }

    /// Nothing more will be pushed once what this returns is dropped, and workers end when the queue is empty.
    pub(crate) fn closing(&self) -> Closing<'_> {
        Closing(self)
    }

    fn take(&self, state: &mut State) -> Option<Ready> {
        let ready = state.ready.pop_front();
        self.len.store(state.ready.len() as u64, Relaxed);
        ready
    }
}

/// Closes a queue when it is dropped, also by a panic.
pub(crate) struct Closing<'a>(&'a Queue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).closed = true;
        self.0.changed.notify_all();
    }
}
