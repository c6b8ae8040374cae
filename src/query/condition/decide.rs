//! Decides whether a condition is true.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::query::condition::tree::{Check, Condition, Test};
use crate::query::number::{Grammar, Number};
use crate::query::time::{Time, read};

/// A value that is tested.
pub(crate) trait Operand {
    fn is_null(&self) -> bool;

    fn text(&self) -> Cow<'_, [u8]>;

    /// The time that it is.
    fn time(&self) -> Option<Time> {
        read(&self.text()).ok()
    }

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
    /// Whether it is true of a value.
    pub(crate) fn is_true(&self, value: &impl Operand) -> bool {
        let Some(unit) = self.unit.filter(|_| !value.is_null()) else {
            return self.check.holds(value);
        };
        let mut cut = Vec::new();
        if unit.cut(&value.text(), &mut cut).is_err() {
            return false;
        }
        self.check.holds(&Bytes {
            bytes: &cut,
            is_null: false,
            grammar: Grammar::PLAIN,
        })
    }
}

impl Check {
    /// Whether it is true of a value.
    fn holds(&self, value: &impl Operand) -> bool {
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
            Check::Time(comparison, wanted) => {
                let order = value.time().and_then(|time| time.order(wanted));
                order.is_some_and(|order| comparison.holds(order))
            }
            Check::Times { among, wanted } => {
                let orders = value.time().map(|time| {
                    let orders = among.iter().map(|one| time.order(one));
                    orders.collect::<Option<Vec<Ordering>>>()
                });
                let orders = orders.flatten();
                orders.is_some_and(|orders| orders.contains(&Ordering::Equal) == *wanted)
            }
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
