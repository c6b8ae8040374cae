//! Groups in hash tables, by their keys.
//!
//! Keys and statistics in tenths, for the rows of [`key_number`](crate::scan::key_number):
//!
//! - [`direct`]: keys and statistics in the buckets themselves, while keys are few.
//! - [`dense`]: small slots that point to entries, once keys are many: in a worker's [`local`] table and,
//!   when memory is short, in [`shards`] that all workers share.
//! - [`tables`] sends each key to its table by the key's size ([`key`]). At the end [`merge`] merges the local
//!   tables of all workers and the shards, and the result is [`sorted`]: [`pair_rows`].
//!
//! Any numbers: [`slots`] have short keys and [lanes](crate::aggregate::lanes), [`lane_groups`] move them to [`states`],
//! which are those of long keys and other aggregates, too.
//!
//! Tables work in batches: they hash a batch and prefetch, then compare and update. What depends on the
//! instruction set is in [`isa::Isa`] and [`accumulator::Accumulator`]. [`groups`] are those of all tables.

pub(crate) mod accumulator;
pub(crate) mod config;
pub(crate) mod dense;
pub(crate) mod direct;
pub(crate) mod groups;
pub(crate) mod hash_range;
pub(crate) mod isa;
pub(crate) mod key;
pub(crate) mod key_order;
pub(crate) mod lane_groups;
mod local;
mod merge;
pub(crate) mod pages;
pub(crate) mod pair_rows;
mod shards;
pub(crate) mod shared;
pub(crate) mod slots;
pub(crate) mod sorted;
pub(crate) mod states;
pub(crate) mod stats;
pub(crate) mod tables;
