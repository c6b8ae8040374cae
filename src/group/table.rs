//! Stage 3, *fold*: rows into hash tables of statistics.
//!
//! - [`direct`]: keys and statistics in the buckets themselves, while keys are few.
//! - [`dense`]: small slots that point to entries, once keys are many: in a worker's [`local`] table and,
//!   when memory is short, in [`shards`] that all workers share.
//! - [`small`] and [`fallback`]: numbers with more than one decimal; any key and any number.
//!
//! [`tables`] sends each key to its table by the key's size ([`key`]). At the end [`merge`] merges the local
//! tables of all workers and the shards, and the result is [`sorted`].
//!
//! Tables work in batches: they hash a batch and prefetch, then compare and update. What depends on the
//! instruction set is behind [`isa::Isa`] and [`accumulator::Accumulator`].

pub(crate) mod accumulator;
pub(crate) mod config;
pub(crate) mod dense;
pub(crate) mod direct;
pub(crate) mod fallback;
pub(crate) mod hash_range;
pub(crate) mod isa;
pub(crate) mod key;
mod local;
mod merge;
mod shards;
pub(crate) mod shared;
pub(crate) mod small;
pub(crate) mod sorted;
pub(crate) mod tables;
