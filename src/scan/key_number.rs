//! Records of a key and a number with one decimal, as the fastest loop reads them: where the fields of a window end, and
//! the numbers in them.
//!
//! [`index`](mod@index) finds the fields, [`tenths`] reads the numbers and lists the [`rows`].

pub(crate) mod index;
pub(crate) mod lookahead;
pub(crate) mod rows;
pub(crate) mod tenths;
pub(crate) mod window;
