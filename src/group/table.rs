//! Pass 3, *fold*: rows into tables of statistics.
//!
//! - [`direct`]: keys in the slots themselves, while they are few.
//! - [`dense`]: a small slot points to an entry, once they are many: in a worker's [`own`] table and, when
//!   memory is short, in the [`shards`] that all workers have in common.
//!
//! All come for several sizes of [`key`]; [`tables`] sends each key to its table. In the end [`merge`]
//! brings the own tables of all workers and the shards together.
//!
//! All work in batches: hash a batch and prefetch, then compare and update. What differs by
//! instruction set is behind [`isa::Isa`].

pub(crate) mod accumulator;
pub(crate) mod config;
pub(crate) mod dense;
pub(crate) mod direct;
pub(crate) mod fallback;
mod hash_range;
pub(crate) mod isa;
pub(crate) mod key;
mod local;
mod merge;
mod shards;
pub(crate) mod shared;
pub(crate) mod small;
pub(crate) mod sorted;
pub(crate) mod tables;
