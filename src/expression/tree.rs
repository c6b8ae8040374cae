//! A condition as data: "and", "or" and tests of columns.

use crate::decimal::number::Number;
pub(crate) use crate::expression::literal::Comparison;
use crate::expression::pattern::Pattern;
use crate::format::time::{Time, ZonedUnit, Zones};

/// A condition as data.
#[derive(Debug, Clone)]
pub(crate) enum Condition {
    /// All are true.
    All(Vec<Condition>),
    /// One is true.
    Any(Vec<Condition>),
    Test(Test),
}

/// A test of one column.
#[derive(Debug, Clone)]
pub(crate) struct Test {
    /// From 0.
    pub(crate) column: usize,
    /// The column of the time of day, where the first has the date.
    pub(crate) clock: Option<usize>,
    /// What is tested of a time, if not all of it.
    pub(crate) unit: Option<ZonedUnit>,
    /// The zones of whole times: that of what they are compared with, and that of those without an offset.
    pub(crate) zones: Option<Zones>,
    pub(crate) check: Check,
}

/// What is asked of a value.
#[derive(Debug, Clone)]
pub(crate) enum Check {
    /// It is null, or it isn't.
    Null {
        wanted: bool,
    },
    Number(Comparison, Number),
    Time(Comparison, Time),
    /// By bytes.
    Text(Comparison, Vec<u8>),
    /// A text that is a number, by bytes.
    Digits(Comparison, Vec<u8>, Number),
    /// It is one of these, or it is a number and none of them. They are sorted.
    Numbers {
        among: Vec<Number>,
        wanted: bool,
    },
    /// It is one of these, or it is a time and none of them.
    Times {
        among: Vec<Time>,
        wanted: bool,
    },
    /// It is one of these, or none of them. They are sorted.
    Texts {
        among: Vec<Vec<u8>>,
        wanted: bool,
    },
    /// A part of it matches, or none.
    Pattern {
        pattern: Pattern,
        wanted: bool,
    },
}
