//! The kinds of jobs.

pub(crate) mod count;
pub(crate) mod transform;
pub(crate) mod write;

pub use count::{Count, Counted};
