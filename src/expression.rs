//! Expressions on the columns of a record, or of an answer: conditions, and values that are computed.
//!
//! `token` cuts the text, `parse` makes an [`Expression`] of it, `compile` finds its columns and gives a [`Condition`] or a
//! [`Formula`].
//!
//! A test of a column is true, false or, where a value is missing, null, as in SQL. Compiling moves each `not` down
//! into the tests, which leaves only "and", "or" and tests. These never turn null or false into true, so whoever
//! decides needs to know only whether a test is true. What a test compares is a column: a value that is computed gets a
//! place among the columns, by its [`Scope`].

mod compile;
mod decide;
mod fault;
pub(crate) mod formula;
pub(crate) mod function;
pub(crate) mod item;
pub(crate) mod leaf;
pub(crate) mod literal;
mod parse;
pub(crate) mod pattern;
#[cfg(test)]
mod tests;
mod token;
pub(crate) mod tree;
pub(crate) mod value;
mod written;

pub(crate) use compile::Scope;
pub(crate) use decide::{Bytes, Doubts, Operand, Reading};
pub(crate) use function::Prepared;
pub(crate) use tree::Condition;
pub(crate) use written::Expression;
