//! Conditions on the rows of an answer.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::query::accumulator::state::{Outcome, Printed, Rounding, text_of};
use crate::query::condition::Operand;
use crate::query::number::Number;

/// A field of an answer. Its number is exact, its text is what is printed.
pub(super) struct Tested<'a> {
    pub(super) outcome: Outcome<'a>,
    /// How its number is printed.
    pub(super) rounding: Rounding,
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
                let text = printed.as_ref().map_or("", Printed::text);
                text.as_bytes().to_vec().into()
            }
        }
    }

    fn order(&self) -> Option<impl Fn(&Number) -> Ordering> {
        let read = match &self.outcome {
            Outcome::Text(text) => Some(Number::read(text).ok()?),
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
