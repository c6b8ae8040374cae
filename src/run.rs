//! How a plan's records become rows of groups: a worker's blocks, window by window or one by one.
//!
//! [`job`] is the fold over blocks, [`passes`] add most records of a window, [`pairs`] those of a key and a number,
//! [`one_by_one`] the [`rest`]. [`memory`] bounds what a [`partial`] takes.
//! [`in_order`] reads an input from front to back where that is needed. [`plans`] are several folds of one read.

mod filter;
pub(crate) mod in_order;
pub(crate) mod job;
mod memory;
mod one_by_one;
pub(crate) mod pairs;
pub(crate) mod partial;
pub(crate) mod passes;
pub(crate) mod plans;
mod rest;
mod verdicts;
