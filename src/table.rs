//! Groups in hash tables, by their keys.
//!
//! - [`direct`]: few keys and their statistics in tenths, for the rows of [`key_number`](crate::scan::key_number).
//! - [`lane_table`]: keys and their [lanes](crate::aggregate::lanes), [`inline`] while they are few, in [`entries`] once they are
//!   many. [`lane_groups`] are those of a worker, by a [`lane_plan`]; when memory is short, all workers have [`shared`] ones. In the end all
//!   are [`merged`] and become [`lane_rows`].
//! - [`states`]: the states of aggregates that have no lanes, and groups that lanes can't hold.
//!
//! Tables work in batches: they hash a [`batch`] and prefetch, then compare and update. What depends on the
//! instruction set is in [`isa::Isa`]. [`groups`] are those of all tables.

pub(crate) mod batch;
pub(crate) mod direct;
pub(crate) mod entries;
mod entry_order;
pub(crate) mod groups;
pub(crate) mod hash_range;
mod inline;
pub(crate) mod isa;
pub(crate) mod key;
pub(crate) mod key_order;
pub(crate) mod lane_groups;
pub(crate) mod lane_plan;
pub(crate) mod lane_rows;
pub(crate) mod lane_table;
mod merged;
pub(crate) mod pages;
pub(crate) mod shared;
pub(crate) mod states;
pub(crate) mod stats;
