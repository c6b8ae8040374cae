//! A ring that tells an observer of its reads. Without one it only passes calls on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::observer::Observer;
use crate::engine::ring::seam::{Completion, Ring, Submission};
use crate::linux::threads;

/// A ring, and who looks at it. It is made and dropped on the thread that submits.
pub(crate) struct ObservedRing<'a, R> {
    ring: &'a mut R,
    observer: Option<&'a Arc<dyn Observer>>,
    /// When the read into a slot was submitted, by the slot's index.
    submitted: Vec<Instant>,
    /// The thread's processor time before, where somebody looks.
    cpu: Duration,
}

impl<'a, R: Ring> ObservedRing<'a, R> {
    pub(crate) fn new(ring: &'a mut R, observer: Option<&'a Arc<dyn Observer>>) -> Self {
        ObservedRing {
            ring,
            observer,
            submitted: Vec::new(),
            cpu: observer.map_or(Duration::ZERO, |_| threads::own_cpu()),
        }
    }

    fn tell(&self, completion: &Completion) {
        if let Some(observer) = self.observer {
            let now = Instant::now();
            let index = completion.submission.slot.index() as usize;
            observer.completed(now, now - self.submitted[index]);
        }
    }
}

impl<R: Ring> Ring for ObservedRing<'_, R> {
    fn submit(&mut self, submission: Submission) {
        if let Some(observer) = self.observer {
            let now = Instant::now();
            let index = submission.slot.index() as usize;
            if self.submitted.len() <= index {
                self.submitted.resize(index + 1, now);
            }
            self.submitted[index] = now;
            observer.submitted(now);
        }
        self.ring.submit(submission);
    }

    async fn completion(&mut self) -> Completion {
        let completion = self.ring.completion().await;
        self.tell(&completion);
        completion
    }

    fn try_completion(&mut self) -> Option<Completion> {
        let completion = self.ring.try_completion()?;
        self.tell(&completion);
        Some(completion)
    }

    fn max_depth(&self) -> usize {
        self.ring.max_depth()
    }
}

impl<R> Drop for ObservedRing<'_, R> {
    fn drop(&mut self) {
        if let Some(observer) = self.observer {
            observer.ring_ended(threads::own_cpu().saturating_sub(self.cpu));
            // Before the ring ends, and its threads with it.
            observer.io_workers(threads::io_cpu());
        }
    }
}
