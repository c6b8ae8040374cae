//! Hash tables of keys and their statistics in tenths, for the rows of [`key_number`](crate::key_number).
//!
//! - [`direct`]: keys and statistics in the buckets themselves, while keys are few.
//! - [`dense`]: small slots that point to entries, once keys are many: in a worker's [`local`] table and,
//!   when memory is short, in [`shards`] that all workers share.
//!
//! [`tables`] sends each key to its table by the key's size ([`key`]). At the end [`merge`] merges the local
//! tables of all workers and the shards, and the result is [`sorted`].
//!
//! Tables work in batches: they hash a batch and prefetch, then compare and update. What depends on the
//! instruction set is in [`isa::Isa`] and [`accumulator::Accumulator`].

pub(crate) mod accumulator;
pub(crate) mod config;
pub(crate) mod dense;
pub(crate) mod direct;
pub(crate) mod hash_range;
pub(crate) mod isa;
pub(crate) mod key;
mod local;
mod merge;
pub(crate) mod pages;
mod shards;
pub(crate) mod shared;
pub(crate) mod sorted;
pub(crate) mod stats;
pub(crate) mod tables;
