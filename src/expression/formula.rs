//! A value that is computed of a record: a tree, and what it is, one record at a time. It is the definition; the passes
//! over windows must agree with it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::decimal::number::Number;
use crate::decimal::rational::Rational;
use crate::expression::decide::{Doubts, Reading};
use crate::expression::function::{self, Arguments, Function, Loop, Prepared};
use crate::expression::tree::{Condition, Test};
use crate::expression::value::{Missing, Record, Tested, Value, ValueError, Wrong, stored};
use crate::format::time::ZonedUnit;
use crate::lookup::LookupTable;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
    /// Of texts.
    Join,
}

impl Operator {
    pub(super) fn sign(self) -> &'static str {
        match self {
            Operator::Plus => "+",
            Operator::Minus => "-",
            Operator::Times => "*",
            Operator::Over => "/",
            Operator::Modulo => "%",
            Operator::Join => "||",
        }
    }
}

/// What values of a formula are, as far as it is known before there is a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    /// A field, which may hold anything.
    Field,
    Number,
    Text,
    Truth,
}

impl Kind {
    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Field => "a column",
            Kind::Number => "a number",
            Kind::Text => "a text",
            Kind::Truth => "a condition",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Formula {
    Null,
    Column(usize),
    Number(Number),
    Text(Vec<u8>),
    /// A time cut down, whose time of day may stand in a second column.
    Time(usize, Option<usize>, ZonedUnit),
    Negative(Box<Formula>),
    Operation(Operator, Box<[Formula; 2]>),
    Call(&'static Function, Box<[Formula]>, Prepared),
    /// The value of the first condition that is true, or that of none.
    Choice(Vec<(Condition, Formula)>, Box<Formula>),
    /// A condition and its opposite: where neither is true, it is null.
    Truth(Box<[Condition; 2]>),
    /// A column's field in the row of a table that has this key.
    Lookup(Arc<LookupTable>, usize, Arc<[Formula]>),
}

pub(crate) type Found<T> = Result<T, Missing>;

impl Formula {
    /// Calls `see` with each column, those of conditions included.
    pub(crate) fn each_column(&self, see: &mut impl FnMut(usize)) {
        let of_condition = |condition: &Condition, see: &mut dyn FnMut(usize)| {
            condition.each_test(&mut |test| {
                see(test.column);
                test.clock.into_iter().for_each(&mut *see);
            });
        };
        match self {
            Formula::Null | Formula::Number(_) | Formula::Text(_) => {}
            Formula::Column(column) => see(*column),
            Formula::Time(date, clock, _) => {
                see(*date);
                clock.iter().for_each(|clock| see(*clock));
            }
            Formula::Negative(inner) => inner.each_column(see),
            Formula::Operation(_, sides) => sides.iter().for_each(|side| side.each_column(see)),
            Formula::Call(_, arguments, _) => {
                arguments.iter().for_each(|one| one.each_column(see));
            }
            Formula::Choice(cases, other) => {
                for (condition, value) in cases {
                    of_condition(condition, see);
                    value.each_column(see);
                }
                other.each_column(see);
            }
            Formula::Truth(both) => of_condition(&both[0], see),
            Formula::Lookup(.., key) => key.iter().for_each(|part| part.each_column(see)),
        }
    }

    /// Whether another one is made of the same, numbers with the same decimals included.
    pub(crate) fn is_same(&self, other: &Formula) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }

    /// The columns that it gives the order of, if it does nothing else.
    pub(crate) fn compared(&self) -> Option<[usize; 2]> {
        match self {
            Formula::Call(function, arguments, _) if function.is_order() => match **arguments {
                [Formula::Column(one), Formula::Column(two)] => Some([one, two]),
                _ => None,
            },
            _ => None,
        }
    }

    /// Makes a quotient of each `share`: its argument over a column from `first` on, which is the sum of what is returned.
    ///
    /// # Errors
    /// Of what there is no share.
    pub(crate) fn take_shares(
        &mut self,
        first: usize,
        is_quotient: &dyn Fn(usize) -> bool,
    ) -> Result<Vec<Formula>, &'static str> {
        let mut totals = Vec::new();
        self.add_totals(first, &mut totals);
        let mut inner = Vec::new();
        for total in &totals {
            total.clone().add_totals(0, &mut inner);
        }
        if !inner.is_empty() {
            return Err("a share of a share: shares are of counts and sums");
        }
        match totals.iter().any(|total| total.is_quotient_of(is_quotient)) {
            true => Err("a share of a quotient: shares are of counts and sums"),
            false => Ok(totals),
        }
    }

    fn add_totals(&mut self, first: usize, totals: &mut Vec<Formula>) {
        match self {
            Formula::Call(function, arguments, _) if function.is_share() => {
                let argument = arguments[0].clone();
                let total = Formula::Column(first + totals.len());
                totals.push(argument.clone());
                *self = Formula::Operation(Operator::Over, [argument, total].into());
            }
            Formula::Negative(inner) => inner.add_totals(first, totals),
            Formula::Operation(_, sides) => {
                sides
                    .iter_mut()
                    .for_each(|side| side.add_totals(first, totals));
            }
            Formula::Call(_, arguments, _) => {
                arguments
                    .iter_mut()
                    .for_each(|one| one.add_totals(first, totals));
            }
            Formula::Choice(cases, other) => {
                cases
                    .iter_mut()
                    .for_each(|(_, value)| value.add_totals(first, totals));
                other.add_totals(first, totals);
            }
            _ => {}
        }
    }

    pub(crate) fn has_columns(&self) -> bool {
        let mut has = false;
        self.each_column(&mut |_| has = true);
        has
    }

    /// Whether its numbers may be quotients, which are rounded where a column has them.
    pub(crate) fn is_quotient(&self) -> bool {
        self.is_quotient_of(&|_| false)
    }

    /// The same where some columns are of quotients.
    pub(crate) fn is_quotient_of(&self, is_column: &dyn Fn(usize) -> bool) -> bool {
        let is = |formula: &Formula| formula.is_quotient_of(is_column);
        match self {
            Formula::Column(column) => is_column(*column),
            Formula::Operation(operator, sides) => {
                *operator == Operator::Over || sides.iter().any(is)
            }
            Formula::Negative(inner) => is(inner),
            Formula::Call(function, arguments, _) => {
                function.keeps_quotients && arguments.iter().any(is)
            }
            Formula::Choice(cases, other) => is(other) || cases.iter().any(|(_, value)| is(value)),
            _ => false,
        }
    }

    /// A dividend and a divisor without quotients in them: it is their quotient in each record where the divisor isn't zero.
    pub(crate) fn fraction(&self) -> Option<(Formula, Option<Formula>)> {
        let operation = |operator, one, two| Formula::Operation(operator, [one, two].into());
        let times = |one: Formula, two: &Option<Formula>| match two {
            Some(two) => operation(Operator::Times, one, two.clone()),
            None => one,
        };
        match self {
            _ if !self.is_quotient() => Some((self.clone(), None)),
            Formula::Negative(inner) => {
                let (dividend, divisor) = inner.fraction()?;
                Some((Formula::Negative(dividend.into()), divisor))
            }
            Formula::Call(function, arguments, _) if function.loops == Some(Loop::Absolute) => {
                let absolute = |of| Formula::Call(function, [of].into(), Prepared::Nothing);
                let (dividend, divisor) = arguments[0].fraction()?;
                Some((absolute(dividend), divisor.map(absolute)))
            }
            Formula::Operation(operator, sides) => {
                let (one, one_by) = sides[0].fraction()?;
                let (two, two_by) = sides[1].fraction()?;
                let (dividend, divisors) = match operator {
                    Operator::Over if two_by.is_none() => (one, (one_by, Some(two))),
                    Operator::Over | Operator::Modulo | Operator::Join => return None,
                    Operator::Times => (operation(*operator, one, two), (one_by, two_by)),
                    Operator::Plus | Operator::Minus => {
                        let both = (times(one, &two_by), times(two, &one_by));
                        (operation(*operator, both.0, both.1), (one_by, two_by))
                    }
                };
                let is_constant =
                    |of: &Formula| matches!(of, Formula::Number(by) if *by != Number::ZERO);
                let divisor = match divisors {
                    (Some(one), Some(two)) if is_constant(&one) || is_constant(&two) => {
                        operation(Operator::Times, one, two)
                    }
                    // Zero times null would hide that it is divided by zero.
                    (Some(_), Some(_)) => return None,
                    (one, two) => one.or(two)?,
                };
                Some((dividend, Some(divisor)))
            }
            _ => None,
        }
    }

    /// What it is of a record.
    ///
    /// # Errors
    /// It can't be computed.
    pub(crate) fn value<'a>(&'a self, record: &'a dyn Record) -> Result<Value<'a>, ValueError> {
        match self.found(record) {
            Ok(value) => Ok(value),
            Err(Missing::Null) => Ok(Value::Null),
            Err(Missing::Error(unread)) => Err(unread),
        }
    }

    /// The number that it is, as a column has it, if it isn't null.
    ///
    /// # Errors
    /// It can't be computed, or is no number that a column may have.
    pub(crate) fn stored_number(&self, record: &dyn Record) -> Result<Option<Number>, ValueError> {
        let whole = match self {
            Formula::Call(function, arguments, prepared) => function.whole(&Arguments {
                arguments,
                prepared,
                record,
            }),
            _ => None,
        };
        let number = match whole {
            Some(whole) => whole.map(|whole| Number::new(whole.into(), 0)),
            None => self.number(record).and_then(|number| stored(&number)),
        };
        match number {
            Ok(number) => Ok(Some(number)),
            Err(Missing::Null) => Ok(None),
            Err(Missing::Error(unread)) => Err(unread),
        }
    }

    /// Appends what a column has of it to a text; nothing where it is null.
    ///
    /// # Errors
    /// It can't be computed, or is a number that has too many digits.
    pub(crate) fn write(&self, record: &dyn Record, to: &mut Vec<u8>) -> Result<(), ValueError> {
        let appended = match self {
            Formula::Call(function, arguments, prepared) => {
                let arguments = Arguments {
                    arguments,
                    prepared,
                    record,
                };
                function.append(&arguments, to)
            }
            _ => None,
        };
        let write = || self.found(record).and_then(|value| value.write(to));
        match appended.unwrap_or_else(write) {
            Ok(()) | Err(Missing::Null) => Ok(()),
            Err(Missing::Error(unread)) => Err(unread),
        }
    }

    /// What it is; a text without a byte is null, as such a field is.
    pub(super) fn found<'a>(&'a self, record: &'a dyn Record) -> Found<Value<'a>> {
        match self.evaluated(record)? {
            Value::Text(text) if text.is_empty() => Err(Missing::Null),
            value => Ok(value),
        }
    }

    fn evaluated<'a>(&'a self, record: &'a dyn Record) -> Found<Value<'a>> {
        Ok(match self {
            Formula::Null => Value::Null,
            Formula::Column(column) => record.value(*column).map_err(Missing::Error)?,
            Formula::Number(number) => Value::Number((*number).into()),
            Formula::Text(text) => Value::Text(Cow::Borrowed(text)),
            Formula::Time(date, clock, unit) => {
                let text = joined(record, *date, *clock)?;
                let mut cut = Vec::new();
                unit.cut(&text, &mut cut).map_err(|why| {
                    Missing::Error(ValueError {
                        wrong: Wrong::Time(why.why(&text).into_owned()),
                        text: text.into_owned(),
                        column: Some(*date),
                    })
                })?;
                Value::Text(cut.into())
            }
            Formula::Negative(inner) => Value::Number(inner.number(record)?.negated()),
            Formula::Operation(Operator::Join, sides) => {
                let [one, two] = &**sides;
                let mut text = one.text(record)?.into_owned();
                text.extend_from_slice(&two.text(record)?);
                function::check_text(text.len())?;
                Value::Text(text.into())
            }
            Formula::Operation(operator, sides) => {
                let [one, two] = &**sides;
                let (one, two) = (one.number(record)?, two.number(record)?);
                Value::Number(computed(*operator, &one, &two)?)
            }
            Formula::Call(function, arguments, prepared) => {
                return function.apply(&Arguments {
                    arguments,
                    prepared,
                    record,
                });
            }
            Formula::Choice(cases, other) => {
                for (condition, value) in cases {
                    if holds(condition, record)? {
                        return value.found(record);
                    }
                }
                return other.found(record);
            }
            Formula::Truth(both) => match (holds(&both[0], record)?, holds(&both[1], record)?) {
                (true, _) => Value::Truth(true),
                (false, true) => Value::Truth(false),
                (false, false) => Value::Null,
            },
            Formula::Lookup(table, column, key) => match row_of(table, key, record)? {
                Some(row) => Value::Text(Cow::Borrowed(table.field(row, *column))),
                None => Value::Null,
            },
        })
    }

    /// The number that it is.
    pub(super) fn number(&self, record: &dyn Record) -> Found<Rational> {
        if let Formula::Choice(cases, other) = self {
            for (condition, value) in cases {
                if holds(condition, record)? {
                    return value.number(record);
                }
            }
            return other.number(record);
        }
        let text = match self.found(record)? {
            Value::Null => return Err(Missing::Null),
            Value::Number(number) => return Ok(number),
            Value::Text(text) => text,
            Value::Truth(truth) => truth.to_string().into_bytes().into(),
        };
        let column = match self {
            Formula::Column(column) => Some(*column),
            _ => None,
        };
        Number::read_as(&text, record.grammar())
            .map(Rational::from)
            .map_err(|why| {
                Missing::Error(ValueError {
                    text: text.into_owned(),
                    column,
                    wrong: Wrong::Number(why),
                })
            })
    }

    /// The text that it is.
    pub(crate) fn text<'a>(&'a self, record: &'a dyn Record) -> Found<Cow<'a, [u8]>> {
        match self.found(record)? {
            Value::Null => Err(Missing::Null),
            Value::Text(text) => Ok(text),
            other => {
                let mut text = Vec::new();
                other.write(&mut text)?;
                Ok(text.into())
            }
        }
    }
}

/// A date, or one and its time of day.
pub(crate) fn joined(
    record: &dyn Record,
    date: usize,
    clock: Option<usize>,
) -> Found<Cow<'_, [u8]>> {
    let part = |column: usize| match record.value(column).map_err(Missing::Error)? {
        Value::Text(text) if !text.is_empty() => Ok(text),
        _ => Err(Missing::Null),
    };
    let date = part(date)?;
    let Some(clock) = clock else {
        return Ok(date);
    };
    Ok([&date, &b" "[..], &part(clock)?].concat().into())
}

/// The row of a table that has a record's key, if there is one. A key is null where a part of it is.
pub(crate) fn row_of(
    table: &LookupTable,
    key: &[Formula],
    record: &dyn Record,
) -> Found<Option<usize>> {
    match key {
        [one] => Ok(table.find(&[one.text(record)?])),
        several => {
            let parts = several.iter().map(|part| part.text(record));
            Ok(table.find(&parts.collect::<Found<Vec<_>>>()?))
        }
    }
}

/// What an operator makes of two numbers.
pub(super) fn computed(operator: Operator, one: &Rational, two: &Rational) -> Found<Rational> {
    let result = match operator {
        Operator::Plus => one.plus(two),
        Operator::Minus => one.minus(two),
        Operator::Times => one.times(two),
        Operator::Over | Operator::Modulo if two.is_zero() => {
            let why = "it is divided by zero: nullif(divisor, 0) makes that null";
            return Err(Missing::other(why));
        }
        Operator::Over => one.over(two),
        Operator::Modulo => one.modulo(two),
        Operator::Join => unreachable!("of texts"),
    };
    result.ok_or_else(|| Missing::other("it has too many digits"))
}

/// Whether a condition is true. It isn't where a value that can't be read decides about it.
pub(super) fn holds(condition: &Condition, record: &dyn Record) -> Found<bool> {
    let mut unread = None;
    let mut decide = |reading: Reading| {
        let mut doubts = Doubts::of(reading);
        let truth =
            condition.decide(&mut |test| is_true(test, record, &mut doubts, Some(&mut unread)));
        (truth, doubts.is_unread)
    };
    let (truth, is_doubtful) = decide(Reading::Strict);
    if is_doubtful && decide(Reading::Hopeful).0 != truth {
        let unread: Option<ValueError> = unread;
        return Err(Missing::Error(unread.expect("a value that wasn't read")));
    }
    Ok(truth)
}

/// Whether a test is true of a record.
pub(crate) fn test_is_true(test: &Test, record: &dyn Record, doubts: &mut Doubts) -> bool {
    is_true(test, record, doubts, None)
}

/// What a test is about in a record.
///
/// # Errors
/// It can't be computed.
pub(crate) fn tested<'a>(test: &Test, record: &'a dyn Record) -> Result<Value<'a>, ValueError> {
    if test.clock.is_none() {
        return record.value(test.column);
    }
    match joined(record, test.column, test.clock) {
        Ok(time) => Ok(Value::Text(time)),
        Err(Missing::Null) => Ok(Value::Null),
        Err(Missing::Error(error)) => Err(error),
    }
}

/// The same; `unread` gets the first value that can't be read.
fn is_true(
    test: &Test,
    record: &dyn Record,
    doubts: &mut Doubts,
    unread: Option<&mut Option<ValueError>>,
) -> bool {
    let value = match tested(test, record) {
        Ok(value) => value,
        Err(error) => {
            unread.map(|unread| unread.get_or_insert(error));
            doubts.is_unread = true;
            return doubts.reading == Reading::Hopeful;
        }
    };
    let wants_number = record.wants_number(test.column);
    let mut grammar = record.grammar();
    grammar.is_long |= !wants_number;
    let tested = Tested {
        value: &value,
        wants_number,
        grammar,
    };
    let mut own = Doubts::of(doubts.reading);
    let truth = test.is_true(&tested, &mut own);
    doubts.is_unread |= own.is_unread;
    doubts.is_bytewise |= own.is_bytewise;
    if let Some(unread) = unread.filter(|_| own.is_unread) {
        unread.get_or_insert_with(|| {
            let text = match &value {
                Value::Text(text) => text.to_vec(),
                _ => Vec::new(),
            };
            let wrong = match Number::read_as(&text, grammar) {
                Err(why) if test.is_numeric() => Wrong::Number(why),
                _ => Wrong::Time(match test.no_time(&text) {
                    Some(why) => why.why(&text).into_owned(),
                    None => "has no zone, and is compared with a time that has one".into(),
                }),
            };
            ValueError {
                text,
                column: Some(test.column),
                wrong,
            }
        });
    }
    truth
}
