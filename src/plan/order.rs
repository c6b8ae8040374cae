//! Whether an input is read in order, and what is known of the file that is.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ringfold_read::PaddedBuf;

/// Whether a plan's input is read in order.
#[derive(Debug, Default)]
pub(crate) struct Order {
    is_wanted: AtomicBool,
    /// The input can be read a second time.
    can_repeat: bool,
}

impl Order {
    pub(crate) fn new(is_wanted: bool, can_repeat: bool) -> Order {
        Order {
            is_wanted: is_wanted.into(),
            can_repeat,
        }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Relaxed)
    }

    /// Wants it from now on.
    pub(crate) fn require(&self) {
        self.is_wanted.store(true, Relaxed);
    }

    /// Wants it from now on; `false` where it was wanted before, or isn't possible.
    pub(crate) fn want(&self) -> bool {
        self.can_repeat && !self.is_wanted.swap(true, Relaxed)
    }
}

/// A file that is being read in order.
pub(crate) struct InOrder {
    pub(crate) file: u32,
    /// Bytes of a record that isn't whole, and those behind it.
    pub(crate) rest: PaddedBuf,
    /// Where they begin.
    pub(crate) offset: u64,
    /// Lines before them.
    pub(crate) lines: u64,
    /// With so many bytes the record may be whole. They double each time, because each look begins at its start.
    pub(crate) look_at: usize,
    pub(crate) skip_lines: u64,
    pub(crate) wants_header: bool,
}
