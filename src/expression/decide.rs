//! Decides whether a condition is true.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::decimal::number::{Grammar, Number};
use crate::expression::pattern::{Pattern, SearchCache};
use crate::expression::tree::{Check, Condition, Test};
use crate::format::time::{NoTime, Time, Zones, read_in};

/// A value that is tested.
pub(crate) trait Operand {
    fn is_null(&self) -> bool;

    /// Whether it is a text where texts are null.
    fn is_null_text(&self) -> bool {
        false
    }

    fn text(&self) -> Cow<'_, [u8]>;

    /// The time that it is.
    fn time(&self, zones: Option<Zones>) -> Option<Time> {
        read_in(&self.text(), zones.map(|zones| zones.input)).ok()
    }

    /// How it compares with numbers, if it is one.
    fn order(&self) -> Option<impl Fn(&Number) -> Ordering>;
}

/// What a test does with a value that it can't compare, or may not compare as people mean it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Not a number or time: null. A text: by bytes.
    #[default]
    Strict,
    /// Not a number or time: true.
    Hopeful,
    /// A text that is a number: as one.
    Numeric,
}

/// How tests are decided, and what they have met.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Doubts {
    pub(crate) reading: Reading,
    /// A value that isn't a number or a time was to be compared with one.
    pub(crate) is_unread: bool,
    /// A number was compared as a text, which gives something else.
    pub(crate) is_bytewise: bool,
}

impl Doubts {
    pub(crate) fn of(reading: Reading) -> Doubts {
        Doubts {
            reading,
            ..Doubts::default()
        }
    }

    /// Other ways to read what was met. They decide otherwise about some records, perhaps.
    pub(crate) fn readings(self) -> impl Iterator<Item = Reading> {
        let unread = self.is_unread.then_some(Reading::Hopeful);
        unread
            .into_iter()
            .chain(self.is_bytewise.then_some(Reading::Numeric))
    }

    fn unread(&mut self) -> bool {
        self.is_unread = true;
        self.reading == Reading::Hopeful
    }
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

    /// Calls `each` with every test.
    pub(crate) fn each_test<'a>(&'a self, each: &mut impl FnMut(&'a Test)) {
        match self {
            Condition::All(conditions) | Condition::Any(conditions) => {
                conditions.iter().for_each(|one| one.each_test(each));
            }
            Condition::Test(test) => each(test),
        }
    }
}

impl Test {
    /// Whether it compares with numbers.
    pub(crate) fn is_numeric(&self) -> bool {
        self.check.is_numeric()
    }

    /// Whether it compares times.
    pub(crate) fn is_of_times(&self) -> bool {
        self.unit.is_some() || matches!(self.check, Check::Time(..) | Check::Times { .. })
    }

    /// Whether it is true of a value.
    pub(crate) fn is_true(&self, value: &impl Operand, doubts: &mut Doubts) -> bool {
        self.decide(value, doubts, Pattern::is_match)
    }

    /// The same, where searches for its pattern have a cache of their own.
    pub(crate) fn is_true_by(
        &self,
        cache: &mut Option<SearchCache>,
        value: &impl Operand,
        doubts: &mut Doubts,
    ) -> bool {
        self.decide(value, doubts, |pattern, text| {
            let cache = cache.get_or_insert_with(|| pattern.cache());
            pattern.is_match_by(cache, text)
        })
    }

    fn decide(
        &self,
        value: &impl Operand,
        doubts: &mut Doubts,
        is_match: impl FnOnce(&Pattern, &[u8]) -> bool,
    ) -> bool {
        let Some(unit) = self.unit.filter(|_| !value.is_null()) else {
            return self.check.holds(value, self.zones, doubts, is_match);
        };
        let mut cut = Vec::new();
        if unit.cut_clock(&value.text(), &mut cut).is_err() {
            return doubts.unread();
        }
        let cut = Bytes {
            bytes: &cut,
            is_null: false,
            wants_number: false,
            grammar: Grammar::PLAIN,
        };
        self.check.holds(&cut, None, doubts, is_match)
    }

    /// Why a text isn't a time that it can compare.
    pub(crate) fn no_time(&self, text: &[u8]) -> Option<NoTime> {
        match self.unit {
            Some(unit) => unit.cut_clock(text, &mut Vec::new()).err(),
            None => read_in(text, self.zones.map(|zones| zones.input)).err(),
        }
    }
}

impl Check {
    fn is_numeric(&self) -> bool {
        matches!(self, Check::Number(..) | Check::Numbers { .. })
    }

    /// Whether it is true of a value.
    fn holds(
        &self,
        value: &impl Operand,
        zones: Option<Zones>,
        doubts: &mut Doubts,
        is_match: impl FnOnce(&Pattern, &[u8]) -> bool,
    ) -> bool {
        if value.is_null() || !self.is_numeric() && value.is_null_text() {
            return matches!(self, Check::Null { wanted: true });
        }
        match self {
            Check::Null { wanted } => !wanted,
            Check::Number(comparison, number) => match value.order() {
                Some(order) => comparison.holds(order(number)),
                None => doubts.unread(),
            },
            Check::Numbers { among, wanted } => match value.order() {
                Some(order) => {
                    let found = among.binary_search_by(|number| order(number).reverse());
                    found.is_ok() == *wanted
                }
                None => doubts.unread(),
            },
            Check::Digits(comparison, text, number) => {
                let by_bytes = comparison.holds(value.text().as_ref().cmp(text.as_slice()));
                match value.order().map(|order| comparison.holds(order(number))) {
                    Some(by_number) if by_number != by_bytes => {
                        doubts.is_bytewise = true;
                        (doubts.reading == Reading::Numeric) == by_number
                    }
                    _ => by_bytes,
                }
            }
            Check::Time(comparison, wanted) => match value.time(zones) {
                Some(time) => (time.order(wanted)).is_some_and(|order| comparison.holds(order)),
                None => doubts.unread(),
            },
            Check::Times { among, wanted } => match value.time(zones) {
                Some(time) => {
                    let orders = among.iter().map(|one| time.order(one));
                    let orders = orders.collect::<Option<Vec<Ordering>>>();
                    orders.is_some_and(|orders| orders.contains(&Ordering::Equal) == *wanted)
                }
                None => doubts.unread(),
            },
            Check::Text(comparison, text) => {
                let order = value.text().as_ref().cmp(text.as_slice());
                comparison.holds(order)
            }
            Check::Texts { among, wanted } => {
                let text = value.text();
                let found = among.binary_search_by(|one| one.as_slice().cmp(&text));
                found.is_ok() == *wanted
            }
            Check::Pattern { pattern, wanted } => is_match(pattern, &value.text()) == *wanted,
        }
    }
}

/// A field of a record.
pub(crate) struct Bytes<'a> {
    pub(crate) bytes: &'a [u8],
    /// Whether they stand for null.
    pub(crate) is_null: bool,
    /// Whether texts are null.
    pub(crate) wants_number: bool,
    /// How numbers are written.
    pub(crate) grammar: Grammar,
}

impl Operand for Bytes<'_> {
    fn is_null(&self) -> bool {
        self.is_null
    }

    fn is_null_text(&self) -> bool {
        self.wants_number && self.order().is_none()
    }

    fn text(&self) -> Cow<'_, [u8]> {
        self.bytes.into()
    }

    fn order(&self) -> Option<impl Fn(&Number) -> Ordering> {
        let own = Number::read_as(self.bytes, self.grammar).ok()?;
        Some(move |number: &Number| own.cmp(number))
    }
}
