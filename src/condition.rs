//! Conditions on the columns of a record, or of an answer: text, tree, decision.
//!
//! `token` cuts the text, `parse` makes an [`Expression`] of it, `compile` finds its columns and gives a [`Condition`].
//! A test of a column is true, false or, where a value is missing, null, as in SQL. Compiling moves each `not` down
//! into the tests, which leaves only "and", "or" and tests. These never turn null or false into true, so whoever
//! decides needs to know only whether a test is true.

mod compile;
mod decide;
mod fault;
pub(crate) mod literal;
mod parse;
pub(crate) mod pattern;
#[cfg(test)]
mod tests;
mod token;
pub(crate) mod tree;

pub(crate) use decide::{Bytes, Doubts, Operand, Reading};
pub(crate) use parse::Expression;
pub(crate) use tree::Condition;
