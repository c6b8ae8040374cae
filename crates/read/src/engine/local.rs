//! Engines whose workers fetch their own blocks.

pub(crate) mod choice;
pub(crate) mod claims;
pub(crate) mod mapping;
pub(crate) mod workers;
