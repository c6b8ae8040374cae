//! The memory that tables take, and where they go beyond it.

pub(crate) mod budget;
pub(crate) mod pages;
pub(crate) mod region;
