//! Decides whether a condition is true.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::query::condition::tree::{Check, Condition, Test};
use crate::query::number::{Grammar, Number};

/// A value that is tested.
pub(crate) trait Operand {
    fn is_null(&self) -> bool;

    fn text(&self) -> Cow<'_, [u8]>;

    /// How it compares with numbers, if it is one.
    fn order(&self) -> Option<impl Fn(&Number) -> Ordering>;
}

impl Condition {
    /// Whether it is true: `is_true` looks up the value of a test's column and says whether the test is true of it.
    pub(crate) fn decide(&self, is_true: &mut impl FnMut(&Test) -> bool) -> bool {
        match self {
            Condition::All(conditions) => conditions.iter().all(|one| one.decide(is_true)),
            Condition::Any(conditions) => conditions.iter().any(|one| one.decide(is_true)),
            Condition::Test(test) => is_true(test),
        }
    }
}

impl Condition {
    /// Calls `each` with every test.
    pub(crate) fn each_test(&self, each: &mut impl FnMut(&Test)) {
        match self {
            Condition::All(conditions) | Condition::Any(conditions) => {
                conditions.iter().for_each(|one| one.each_test(each));
            }
            Condition::Test(test) => each(test),
        }
    }
}

impl Test {
    /// Whether it is true of a field's bytes.
    pub(crate) fn is_true(&self, value: &Bytes<'_>) -> bool {
        self.check.holds(value)
    }
}

impl Check {
    /// Whether it is true of a value.
    pub(crate) fn holds(&self, value: &impl Operand) -> bool {
        if value.is_null() {
            return matches!(self, Check::Null { wanted: true });
        }
        match self {
            Check::Null { wanted } => !wanted,
            Check::Number(comparison, number) => {
                let order = value.order();
                order.is_some_and(|order| comparison.holds(order(number)))
            }
            Check::Numbers { among, wanted } => value.order().is_some_and(|order| {
                let found = among.binary_search_by(|number| order(number).reverse());
                found.is_ok() == *wanted
            }),
            Check::Text(comparison, text) => {
                let order = value.text().as_ref().cmp(text.as_slice());
                comparison.holds(order)
            }
            Check::Texts { among, wanted } => {
                let text = value.text();
                let found = among.binary_search_by(|one| one.as_slice().cmp(&text));
                found.is_ok() == *wanted
            }
            Check::Pattern { regex, wanted } => regex.is_match(&value.text()) == *wanted,
        }
    }
}

/// A field of a record.
pub(crate) struct Bytes<'a> {
    pub(crate) bytes: &'a [u8],
    /// Whether they stand for null.
    pub(crate) is_null: bool,
    /// How numbers are written.
    pub(crate) grammar: Grammar,
}

impl Operand for Bytes<'_> {
    fn is_null(&self) -> bool {
        self.is_null
    }

    fn text(&self) -> Cow<'_, [u8]> {
        self.bytes.into()
    }

    fn order(&self) -> Option<impl Fn(&Number) -> Ordering> {
        let own = Number::read_as(self.bytes, self.grammar).ok()?;
        Some(move |number: &Number| own.cmp(number))
    }
}
