//! The kinds of jobs.

pub(crate) mod count;
pub(crate) mod fold;

pub use count::{Count, Counted};
