//! A ring over memory: for tests, in any order of completion, and for pricing the dispatcher. Also for objects, which are read
//! one range after the other.

use crate::engine::ring::seam::{Completion, Ring, Submission};

/// In which order reads complete.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// As they were submitted.
    First,
    /// The latest first.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests force it"))]
    Last,
    /// Any, by this seed.
    #[cfg_attr(not(any(test, fuzzing)), expect(dead_code, reason = "tests force it"))]
    Shuffled(u64),
}

/// Completes reads by copying from a source.
pub(crate) struct MemoryRing {
    order: Order,
    queue: std::collections::VecDeque<Submission>,
}

impl MemoryRing {
    pub(crate) fn new(order: Order) -> Self {
        MemoryRing {
            order,
            queue: Default::default(),
        }
    }

    fn next(&mut self) -> Option<Submission> {
        match &mut self.order {
            Order::First => self.queue.pop_front(),
            Order::Last => self.queue.pop_back(),
            Order::Shuffled(state) => {
                // An LCG's high bits: any order will do, if only the seed decides it.
                *state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let len = self.queue.len().max(1) as u64;
                self.queue.swap_remove_back(((*state >> 33) % len) as usize)
            }
        }
    }
}

impl Ring for MemoryRing {
    fn submit(&mut self, submission: Submission) {
        self.queue.push_back(submission);
    }

    async fn completion(&mut self) -> Completion {
        match self.try_completion() {
            Some(completion) => completion,
            None => std::future::pending().await,
        }
    }

    fn try_completion(&mut self) -> Option<Completion> {
        let mut submission = self.next()?;
        let at = submission.offset + submission.filled as u64;
        let wanted = submission.len - submission.filled;
        let to = &mut submission.slot.target_bytes(submission.filled)[..wanted];
        let result = submission.source.read_at(to, at);
        Some(Completion { submission, result })
    }

    fn max_depth(&self) -> usize {
        usize::MAX
    }
}
