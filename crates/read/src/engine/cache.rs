//! The page cache: what of a file lies in it, and what reads do to it.

pub(crate) mod advice;
pub mod residency;
