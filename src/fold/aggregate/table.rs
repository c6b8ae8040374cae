//! Pass 3, *fold*: rows into tables of statistics.
//!
//! - [`inline`]: keys up to 31 bytes, in the slot itself; one 64-byte line a row. While they are few.
//! - [`dense`]: a small slot points to an entry. Wide keys (up to 127 bytes), and the short ones once
//!   they are many.
//!
//! [`tables`] sends each key to its table.
//!
//! All work in batches: hash a batch and prefetch, then compare and update. What differs by
//! instruction set is behind [`isa::Isa`].

pub(crate) mod dense;
pub(crate) mod inline;
pub(crate) mod isa;
pub(crate) mod stats;
pub(crate) mod tables;
