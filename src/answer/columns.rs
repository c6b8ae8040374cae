//! The columns of an answer after its keys: those of aggregates, and values that are computed of these.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use crate::aggregate::state::{Outcome, Rounding, text_of};
use crate::answer::sorted::part;
use crate::decimal::number::Grammar;
use crate::decimal::rational::Rational;
use crate::expression::formula::Formula;
use crate::expression::value::{Record, Value, ValueError};
use crate::table::groups::Groups;
use crate::table::states::Group;

/// Digits of a quotient after the point, unless others are asked for.
const QUOTIENT_DIGITS: u32 = 6;

/// A column after the keys.
#[derive(Debug, Clone)]
pub(crate) enum Column {
    /// That of an aggregate.
    Aggregate(usize),
    Computed(Arc<ComputedNumber>),
}

/// A number that is computed.
#[derive(Debug)]
pub(crate) struct ComputedNumber {
    /// Its columns are keys, aggregates and `totals`.
    pub(crate) formula: Formula,
    pub(crate) is_quotient: bool,
    /// What is summed up over all rows, and the sums once they are known.
    pub(crate) totals: Vec<(Formula, OnceLock<Rational>)>,
}

impl Column {
    /// Those of so many aggregates and nothing else.
    pub(crate) fn of_aggregates(count: usize) -> Vec<Column> {
        (0..count).map(Column::Aggregate).collect()
    }
}

/// All columns.
#[derive(Debug, Clone)]
pub(crate) struct AnswerColumns {
    pub(crate) keys: usize,
    /// The scale of the column of each aggregate, and how its numbers are printed.
    pub(crate) scales: Vec<u32>,
    pub(crate) roundings: Vec<Rounding>,
    /// Those that are shown.
    pub(crate) shown: Vec<Column>,
    /// How computed numbers are printed.
    pub(crate) computed: Rounding,
}

impl AnswerColumns {
    /// What a group has in a column.
    pub(crate) fn outcome<'g>(
        &self,
        groups: &'g Groups,
        group: Group,
        column: usize,
    ) -> Outcome<'g> {
        let Some(at) = column.checked_sub(self.keys) else {
            return Outcome::Text(part(groups, group, column));
        };
        match &self.shown[at] {
            Column::Aggregate(at) => groups.finish(group, *at, self.scales[*at]),
            Column::Computed(computed) => {
                let record = GroupRecord {
                    columns: self,
                    totals: &computed.totals,
                    groups,
                    group,
                };
                match computed.formula.value(&record) {
                    Ok(Value::Number(number)) => outcome(&number, computed.is_quotient),
                    // There is no value: it is divided by zero.
                    _ => Outcome::Null,
                }
            }
        }
    }

    /// Whether sums over all rows are wanted.
    pub(crate) fn has_totals(&self) -> bool {
        self.totals().next().is_some()
    }

    fn totals(&self) -> impl Iterator<Item = &(Formula, OnceLock<Rational>)> {
        let computed = self.shown.iter().filter_map(|column| match column {
            Column::Computed(computed) => Some(computed),
            Column::Aggregate(_) => None,
        });
        computed.flat_map(|computed| &computed.totals)
    }

    /// Adds some rows to sums over all, which begin as nothing.
    pub(crate) fn add_totals(&self, groups: &Groups, rows: &[Group], to: &mut Vec<Rational>) {
        let zero = || Rational::from(0);
        to.resize_with(self.totals().count(), zero);
        for ((formula, _), to) in self.totals().zip(to) {
            let number = |group: &Group| {
                let record = GroupRecord {
                    columns: self,
                    totals: &[],
                    groups,
                    group: *group,
                };
                match formula.value(&record) {
                    Ok(Value::Number(number)) => Some(number),
                    _ => None,
                }
            };
            // Sums of counts and sums have few digits.
            let plus = |one: Rational, two: Rational| one.plus(&two).unwrap_or(two);
            let sum = rows.par_iter().filter_map(number).reduce(zero, plus);
            *to = plus(std::mem::replace(to, zero()), sum);
        }
    }

    /// Knows the sums over all rows.
    pub(crate) fn set_totals(&self, totals: Vec<Rational>) {
        for ((_, total), sum) in self.totals().zip(totals) {
            let _ = total.set(sum);
        }
    }

    /// How a column's numbers are printed.
    pub(crate) fn rounding(&self, column: usize) -> Rounding {
        match column.checked_sub(self.keys).map(|at| &self.shown[at]) {
            None => Rounding::Own,
            Some(Column::Aggregate(at)) => self.roundings[*at],
            Some(Column::Computed(..)) => self.computed,
        }
    }
}

/// A number of a column all of whose numbers are quotients, or none.
fn outcome(number: &Rational, is_quotient: bool) -> Outcome<'static> {
    let value = is_quotient.then(|| number.quotient()).flatten();
    match value {
        Some(value) => Outcome::Quotient {
            value,
            digits: QUOTIENT_DIGITS,
        },
        None => number
            .stored()
            .map_or(Outcome::Null, |number| Outcome::Number(number.exact())),
    }
}

/// A group's keys and aggregates.
struct GroupRecord<'a> {
    columns: &'a AnswerColumns,
    totals: &'a [(Formula, OnceLock<Rational>)],
    groups: &'a Groups,
    group: Group,
}

impl Record for GroupRecord<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>, ValueError> {
        let Some(at) = column.checked_sub(self.columns.keys) else {
            let text = part(self.groups, self.group, column);
            return Ok(match text.is_empty() {
                true => Value::Null,
                false => Value::Text(text.into()),
            });
        };
        let Some(&scale) = self.columns.scales.get(at) else {
            let total = self.totals.get(at - self.columns.scales.len());
            let total = total.and_then(|(_, total)| total.get());
            return Ok(total.map_or(Value::Null, |total| Value::Number(total.clone())));
        };
        Ok(match self.groups.finish(self.group, at, scale) {
            Outcome::Null => Value::Null,
            Outcome::Text(text) => Value::Text(text.into()),
            Outcome::Time(time) => Value::Text(text_of(time).into()),
            Outcome::Number(exact) => Value::Number(exact.into()),
            Outcome::Quotient { value, .. } => Value::Number(value.rational()),
        })
    }

    fn grammar(&self) -> Grammar {
        Grammar::LONG
    }

    fn wants_number(&self, _: usize) -> bool {
        false
    }
}
