//! From the bytes of a window to columns, in passes: where fields end, where a column's values stand, what their
//! numbers are.
//!
//! Passes know plain records: as many fields as expected, quotes as RFC 4180 has them. They tell which records aren't
//! plain, and which values they can't read; those are left to the [dialect](crate::query::dialect) and to
//! [`Number::read`](crate::query::number::Number::read), which are also what tests hold the passes against.

pub(crate) mod decimal;
pub(crate) mod index;
pub(crate) mod keys;
pub(crate) mod lines;
pub(crate) mod numbers;
pub(crate) mod spans;
