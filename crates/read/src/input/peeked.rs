//! What was taken out of a stream before a run reads it.

use std::sync::{Mutex, MutexGuard};

use crate::sync::lock;

/// What was taken out of a stream and not yet given to a run.
#[derive(Debug, Default)]
pub(crate) struct Prefix(Mutex<State>);

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) bytes: Vec<u8>,
    /// How many of them the run has had.
    given: usize,
    /// Nothing comes after them. A terminal would go on after its end.
    pub(crate) ended: bool,
}

impl Prefix {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Gives a run the next bytes that were taken out before, `Some(0)` at the end; `None`: the stream itself is next.
    pub(crate) fn give(&self, target: &mut [u8]) -> Option<usize> {
        let mut state = self.lock();
        let left = &state.bytes[state.given..];
        let n = left.len().min(target.len());
        target[..n].copy_from_slice(&left[..n]);
        if left.is_empty() {
            return state.ended.then_some(0);
        }
        state.given += n;
        if state.given == state.bytes.len() {
            (state.bytes, state.given) = (Vec::new(), 0);
        }
        Some(n)
    }

    /// Whether [`Prefix::give`] has something.
    pub(crate) fn has_something(&self) -> bool {
        let state = self.lock();
        state.ended || state.given < state.bytes.len()
    }
}
