//! Pure decisions before the first read: sizes, and which settings contradict each other.

pub(crate) mod buffers;
pub(crate) mod settings;
pub mod sizing;
