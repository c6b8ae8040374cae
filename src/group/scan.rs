//! From bytes to rows: where the fields of a window end, and the numbers in them.
//!
//! [`index`](mod@index) finds the fields, [`tenths`] and [`millionths`] read the numbers and list the [`rows`];
//! [`scalar`] reads single records.

pub(crate) mod index;
pub(crate) mod lookahead;
pub(crate) mod millionths;
pub(crate) mod rows;
pub(crate) mod scalar;
pub(crate) mod tenths;
pub(crate) mod window;
