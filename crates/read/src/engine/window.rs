//! The window of a sink that wants order: how far blocks may run ahead of the first one that isn't retired. It is the
//! same for the dispatcher and for workers that fetch their own blocks.
//!
//! A sequence number is *open* as long as the engine may bring a block of it, *finished* from then on, and *retired*
//! when the sink has dropped its [`Finished`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::engine::wakes::Wakes;
use crate::sync::lock;

/// A sequence number of which all blocks have been taken. Dropping it retires the number.
#[derive(Debug)]
pub struct Finished {
    sequence: u64,
    window: Arc<Window>,
}

impl Finished {
    /// The number.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl Drop for Finished {
    fn drop(&mut self) {
        self.window.retire(self.sequence);
    }
}

/// The window of a run.
#[derive(Debug)]
pub(crate) struct Window {
    size: u64,
    progress: Mutex<Progress>,
    /// The window has moved, or the run ends.
    pub(crate) wakes: Wakes,
}

#[derive(Debug, Default)]
struct Progress {
    /// The first number that isn't retired.
    first: u64,
    /// What has become of it and of those after it.
    stages: VecDeque<Stage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    Finished,
    Retired,
}

impl Window {
    /// A window of `size` numbers, at least one. The first number is 0.
    pub(crate) fn new(size: u64) -> Arc<Window> {
        Arc::new(Window {
            size: size.max(1),
            progress: Mutex::default(),
            wakes: Wakes::default(),
        })
    }

    /// One past the last number that may be handed out.
    pub(crate) fn end(&self) -> u64 {
        lock(&self.progress).first.saturating_add(self.size)
    }

    /// Whether the first number in the window is still open.
    pub(crate) fn waits_for_engine(&self) -> bool {
        let progress = lock(&self.progress);
        let first = progress.stages.front();
        first.is_none_or(|stage| *stage == Stage::Open)
    }

    /// No more blocks of this number will come. To be handed to the sink.
    pub(crate) fn finish(self: &Arc<Self>, sequence: u64) -> Finished {
        lock(&self.progress).set(sequence, Stage::Finished);
        Finished {
            sequence,
            window: Arc::clone(self),
        }
    }

    fn retire(&self, sequence: u64) {
        let mut progress = lock(&self.progress);
        progress.set(sequence, Stage::Retired);
        if sequence > progress.first {
            return;
        }
        while progress.stages.front() == Some(&Stage::Retired) {
            progress.stages.pop_front();
            progress.first += 1;
        }
        drop(progress);
        self.wakes.wake();
    }

    /// Waits until `ready`, which is asked at once, after each wake, and a few times a second.
    pub(crate) fn wait_until(&self, mut ready: impl FnMut() -> bool) {
        loop {
            let noted = self.wakes.count();
            if ready() {
                return;
            }
            self.wakes.sleep(noted);
        }
    }
}

impl Progress {
    fn set(&mut self, sequence: u64, stage: Stage) {
        let place = (sequence - self.first) as usize;
        if self.stages.len() <= place {
            self.stages.resize(place + 1, Stage::Open);
        }
        self.stages[place] = stage;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_moves_with_the_first_number_that_is_retired() {
        let window = Window::new(2);
        assert_eq!(window.end(), 2);
        let second = window.finish(1);
        assert!(window.waits_for_engine());
        drop(second);
        assert_eq!(window.end(), 2, "0 is still open");
        let first = window.finish(0);
        assert!(!window.waits_for_engine(), "0 is with the sink");
        assert_eq!(window.end(), 2);
        drop(first);
        assert_eq!(window.end(), 4);
        assert!(window.waits_for_engine());
    }

    #[test]
    fn a_wake_before_the_wait_is_not_lost() {
        let window = Window::new(1);
        let waits = Arc::clone(&window);
        let waiter = std::thread::spawn(move || waits.wait_until(|| waits.end() > 3));
        for sequence in 0..3 {
            drop(window.finish(sequence));
        }
        waiter.join().unwrap();
    }
}
