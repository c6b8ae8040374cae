//! What is kept for each key: exact decimal totals, and the compact statistics of the tables.

pub(crate) mod decimal;
pub(crate) mod stats;
