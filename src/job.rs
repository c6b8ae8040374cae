//! The kinds of jobs.

pub(crate) mod count;
pub(crate) mod fold;
pub(crate) mod transform;

pub use count::{Count, Counted};
