//! The memory of the tables: how much they may take, and the temporary files for what exceeds it.

pub(crate) mod budget;
pub(crate) mod pages;
pub(crate) mod region;
