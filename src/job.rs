//! The kinds of jobs.

pub(crate) mod count;
pub(crate) mod fold;
#[cfg(fuzzing)]
pub mod simulated;
pub(crate) mod transform;

pub use count::{Count, Counted};
