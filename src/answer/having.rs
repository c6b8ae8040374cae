//! Conditions on the rows of an answer.

use std::borrow::Cow;
use std::cmp::Ordering;

use ringfold_read::Cause;

use crate::aggregate::state::{Numeral, Outcome, Rounding, text_of};
use crate::decimal::number::{Grammar, Number};
use crate::expression::{Condition, Operand};

/// A condition on rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Having<'a> {
    pub(crate) condition: &'a Condition,
    /// How numbers are written in keys and other texts of the input.
    pub(crate) grammar: Grammar,
}

/// Rows that a condition would decide otherwise if all values were numbers, or were compared as such: how many, and what
/// the first one has.
#[derive(Debug, Default)]
pub(crate) struct DoubtedRows {
    pub(crate) unread: u64,
    pub(crate) first_unread: Option<Cause>,
    pub(crate) bytewise: u64,
    pub(crate) first_bytewise: Option<Cause>,
}

impl DoubtedRows {
    /// Adds those of later rows.
    pub(super) fn add(&mut self, later: DoubtedRows) {
        self.unread += later.unread;
        self.first_unread = self.first_unread.take().or(later.first_unread);
        self.bytewise += later.bytewise;
        self.first_bytewise = self.first_bytewise.take().or(later.first_bytewise);
    }
}

/// A field of an answer. Its number is exact, its text is what is printed.
pub(super) struct Tested<'a> {
    pub(super) outcome: Outcome<'a>,
    /// How its number is printed.
    pub(super) rounding: Rounding,
    /// How numbers are written in texts of the input.
    pub(super) grammar: Grammar,
}

impl Operand for Tested<'_> {
    /// No outcome, or the empty key.
    fn is_null(&self) -> bool {
        matches!(self.outcome, Outcome::Null | Outcome::Text(b""))
    }

    fn text(&self) -> Cow<'_, [u8]> {
        match &self.outcome {
            Outcome::Text(text) => Cow::Borrowed(text),
            Outcome::Time(time) => Cow::Borrowed(text_of(time)),
            number => {
                let printed = number.printed(self.rounding);
                let text = printed.as_ref().map_or("", Numeral::text);
                text.as_bytes().to_vec().into()
            }
        }
    }

    fn order(&self) -> Option<impl Fn(&Number) -> Ordering> {
        let read = match &self.outcome {
            Outcome::Text(text) => Some(Number::read_as(text, self.grammar).ok()?),
            Outcome::Null | Outcome::Time(_) => return None,
            _ => None,
        };
        Some(move |number: &Number| match (&self.outcome, read) {
            (Outcome::Quotient { value, .. }, _) => value.compare(number),
            (Outcome::Number(exact), _) => exact.cmp(&number.exact()),
            (_, read) => read.cmp(&Some(*number)),
        })
    }
}
