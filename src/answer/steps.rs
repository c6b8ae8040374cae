//! Keys whose values follow each other: buckets of times, numbers in steps, and parts of times that come round.

use std::collections::BTreeSet;

use crate::decimal::number::{Grammar, Number};
use crate::decimal::rational::{Cut, Rational};
use crate::expression::formula::{Formula, Kind};
use crate::expression::value::Value;
use crate::expression::{Expression, Prepared, Scope};
use crate::format::time::{Spans, TimeZones, Unit, ZonedUnit};
use crate::plan::columns::Columns;
use crate::refusal::KEY;

/// Which value of a key comes next.
#[derive(Debug, Clone)]
pub(crate) enum Steps {
    Times(Spans),
    /// All whole numbers from one to another, whatever values there are.
    Cycle(i64, i64),
    /// The multiples of a number.
    Multiples(Rational),
    /// The powers of a number.
    Powers(Rational),
}

/// What a key may be, for people.
pub(crate) const KINDS: &str = "times that are cut down (t@hour, time_bucket('5 minutes', t)), numbers in steps (bin(x, 10), \
     round(x, 1), year(t)) and parts of times (hour(t), t@weekday)";

/// An expression's columns, whatever they are.
struct AnyColumns(TimeZones);

impl Scope for AnyColumns {
    fn find(&mut self, _: &Columns) -> Result<usize, String> {
        Ok(0)
    }

    fn is_time(&self, _: usize) -> bool {
        false
    }

    fn time_zones(&self) -> TimeZones {
        self.0
    }

    fn compute(&mut self, _: Formula, _: &str, _: bool) -> Result<usize, String> {
        Ok(0)
    }
}

impl Steps {
    /// Those of a key that is written so, as a partial keeps it: `t@hour[Europe/Berlin]`, `bin(x, 10)`.
    pub(crate) fn of_key(text: &str, zones: TimeZones) -> Option<Steps> {
        let unit = text
            .rsplit_once('@')
            .and_then(|(_, unit)| Unit::zoned(unit).ok()?);
        if let Some((unit, zone)) = unit {
            let zones = zones.of(zone);
            return Some(Steps::of_unit(ZonedUnit { unit, zones }));
        }
        let value = Expression::value(text, KEY).ok()?;
        let (formula, _): (Formula, Kind) = value.formula(&mut AnyColumns(zones)).ok()?;
        Steps::of(&formula)
    }

    fn of_unit(of: ZonedUnit) -> Steps {
        Spans::of_unit(of).map_or(Steps::Cycle(1, 7), Steps::Times)
    }

    fn of(formula: &Formula) -> Option<Steps> {
        let (function, arguments) = match formula {
            Formula::Time(.., of) => return Some(Steps::of_unit(*of)),
            Formula::Call(_, _, Prepared::Bucket(bucket, zones)) => {
                return Some(Steps::Times(Spans::of_bucket(*bucket, *zones)));
            }
            Formula::Call(function, arguments, _) => (function.name, arguments),
            _ => return None,
        };
        let constant = |at: usize| match arguments.get(at) {
            Some(Formula::Number(number)) => Some(Rational::from(*number)),
            _ => None,
        };
        Some(match function {
            "bin" => Steps::Multiples(constant(1).filter(|width| *width > Rational::from(0))?),
            "log_bin" => Steps::Powers(constant(1).filter(|base| *base > Rational::from(1))?),
            "floor" | "ceil" | "year" => Steps::Multiples(1.into()),
            "round" | "trunc" if arguments.len() == 1 => Steps::Multiples(1.into()),
            "round" | "trunc" => Steps::Multiples(last_digit(&constant(1)?)?),
            "quarter" => Steps::Cycle(1, 4),
            "month" => Steps::Cycle(1, 12),
            "day" => Steps::Cycle(1, 31),
            "weekday" => Steps::Cycle(1, 7),
            "hour" => Steps::Cycle(0, 23),
            "minute" | "second" => Steps::Cycle(0, 59),
            _ => return None,
        })
    }

    /// Where a value stands among the others, if it is one of theirs.
    pub(super) fn place(&self, text: &[u8]) -> Option<Rational> {
        match self {
            Steps::Times(spans) => spans.place(text).map(Rational::from),
            // A leap second is 60.
            Steps::Cycle(from, to) => written(text).filter(|number| {
                let values = (*from..=*to).chain((*to == 59).then_some(60));
                values.map(Rational::from).any(|value| value == *number)
            }),
            Steps::Powers(_) => written(text),
            Steps::Multiples(width) => written(text).filter(|number| {
                let times = number.over(width);
                times.is_some_and(|times| times == Rational::from(times.cut(0, Cut::Floor)))
            }),
        }
    }

    /// All values from one to another, in the order of bytes. Times that are shown twice have no offset if they are in `either`.
    /// `None`: they are more than `most`.
    pub(super) fn between(
        &self,
        first: &[u8],
        last: &[u8],
        either: &BTreeSet<Vec<u8>>,
        most: usize,
    ) -> Option<BTreeSet<Vec<u8>>> {
        let mut values = BTreeSet::new();
        let (mut at, width) = match self {
            Steps::Times(spans) => return spans.between(first, last, either, most),
            Steps::Cycle(from, to) => {
                return Some(
                    (*from..=*to)
                        .map(|value| value.to_string().into())
                        .collect(),
                );
            }
            Steps::Multiples(width) => (number(first)?, width),
            Steps::Powers(base) => (Rational::from(1), base),
        };
        let (first, last) = (number(first)?, number(last)?);
        let is_power = matches!(self, Steps::Powers(_));
        while at > first {
            at = at.over(width)?;
        }
        loop {
            let mut text = Vec::new();
            Value::Number(at.clone()).write(&mut text).ok()?;
            // Powers may be quotients, which are rounded.
            let rounded = number(&text)?;
            if rounded >= first && rounded <= last {
                values.insert(text);
            }
            if at > last || values.len() > most {
                break;
            }
            at = match is_power {
                true => at.times(width)?,
                false => at.plus(width)?,
            };
        }
        (values.len() <= most).then_some(values)
    }
}

fn number(text: &[u8]) -> Option<Rational> {
    Some(Number::read_as(text, Grammar::LONG).ok()?.into())
}

/// The number that a computed key is, if it is written as one: 7, and not 07 or 7.0.
fn written(text: &[u8]) -> Option<Rational> {
    let number = number(text)?;
    let mut canonical = Vec::new();
    Value::Number(number.clone()).write(&mut canonical).ok()?;
    (canonical == text).then_some(number)
}

/// What numbers of so many digits after the point are multiples of.
fn last_digit(digits: &Rational) -> Option<Rational> {
    let digits = digits.cut(0, Cut::Truncate).digits().as_decimal();
    let digits = i32::try_from(digits.filter(|(_, scale)| *scale == 0)?.0).ok()?;
    let power = Number::new(10_i128.checked_pow(digits.unsigned_abs().min(36))?, 0);
    match digits < 0 {
        true => Some(power.into()),
        false => Rational::from(1).over(&power.into()),
    }
}
