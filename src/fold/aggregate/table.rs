//! Pass 3, *fold*: rows into tables of statistics.
//!
//! - [`direct`]: keys in the slots themselves, while they are few.
//! - [`dense`]: a small slot points to an entry, once they are many.
//!
//! Both come for several sizes of [`key`]; [`tables`] sends each key to its table. In the end [`merge`]
//! brings the dense tables of all workers together.
//!
//! All work in batches: hash a batch and prefetch, then compare and update. What differs by
//! instruction set is behind [`isa::Isa`].

pub(crate) mod dense;
pub(crate) mod direct;
pub(crate) mod isa;
pub(crate) mod key;
mod merge;
pub(crate) mod stats;
pub(crate) mod tables;
