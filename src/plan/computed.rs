//! Columns that are computed: they stand after those of the input, and have no values before there is a record.

use std::borrow::Cow;
use std::sync::Arc;

use ringfold_read::Cause;

use crate::decimal::number::{Grammar, shown};
use crate::expression::formula::{Formula, Kind, Operator};
use crate::expression::value::{Record, Value, ValueError, Wrong};
use crate::expression::{Condition, Scope};
use crate::format::field::Field;
use crate::format::time::TimeZones;
use crate::lookup::LookupTable;
use crate::plan::Plan;
use crate::plan::columns::Columns;
use crate::reject::rejects::OnError;

/// A column that is computed.
#[derive(Debug)]
pub(crate) struct Computed {
    pub(crate) formula: Formula,
    /// As it is written.
    pub(crate) text: String,
    /// It is of numbers with the decimals that they have; otherwise of texts, and numbers have no zeros at their end.
    pub(crate) is_number: bool,
}

impl Computed {
    /// The table that it is a column of, if it is one's.
    pub(crate) fn lookup(&self) -> Option<&Arc<LookupTable>> {
        match &self.formula {
            Formula::Lookup(table, ..) => Some(table),
            _ => None,
        }
    }
}

impl Plan {
    /// How many columns the input has.
    pub(crate) fn width(&self) -> usize {
        self.shape.as_ref().map_or(0, |shape| shape.width)
    }

    /// What a column is computed by, if it is.
    pub(crate) fn computed(&self, column: usize) -> Option<&Computed> {
        self.computed.get(column.checked_sub(self.width())?)
    }

    /// The place of a column that is computed.
    pub(crate) fn compute(&mut self, formula: Formula, text: &str, is_number: bool) -> usize {
        let is_known =
            |known: &Computed| known.is_number == is_number && known.formula.is_same(&formula);
        let place = self.computed.iter().position(is_known);
        let place = place.unwrap_or_else(|| {
            self.computed.push(Computed {
                formula,
                text: text.trim().into(),
                is_number,
            });
            self.computed.len() - 1
        });
        self.width() + place
    }

    /// Wants numbers of the columns that keys and aggregates are computed of as numbers, as of those that aggregates take as they
    /// are, where what isn't one is null: then a value is the same wherever it stands.
    pub(crate) fn want_numbers(&mut self) {
        if self.rejecting.on_error != OnError::Null {
            return;
        }
        let mut operands = Vec::new();
        let of_aggregates = self.aggregates.iter().filter_map(|of| of.column);
        let columns = self.keys.iter().copied().chain(of_aggregates);
        columns.for_each(|column| self.operands(&Formula::Column(column), false, &mut operands));
        for column in operands {
            self.number(column);
        }
    }

    /// The columns that a formula takes as numbers.
    fn operands(&self, formula: &Formula, is_number: bool, found: &mut Vec<usize>) {
        let mut of = |formula: &Formula, is_number: bool| self.operands(formula, is_number, found);
        let of_condition = |condition: &Condition, of: &mut dyn FnMut(&Formula, bool)| {
            condition.each_test(&mut |test| of(&Formula::Column(test.column), false));
        };
        match formula {
            Formula::Column(column) => match self.computed(*column) {
                Some(computed) if !self.is_field(*column) => {
                    of(&computed.formula, is_number || computed.is_number);
                }
                _ => found.extend(is_number.then_some(*column)),
            },
            Formula::Negative(inner) => of(inner, true),
            Formula::Operation(operator, sides) => {
                let are_numbers = *operator != Operator::Join;
                sides.iter().for_each(|side| of(side, are_numbers));
            }
            Formula::Call(function, arguments, _) => {
                for (at, argument) in arguments.iter().enumerate() {
                    let is_number = match function.parameter(at) {
                        Kind::Number => true,
                        Kind::Field => is_number && function.result == Kind::Field,
                        _ => false,
                    };
                    of(argument, is_number);
                }
            }
            Formula::Choice(cases, other) => {
                for (condition, value) in cases {
                    of_condition(condition, &mut of);
                    of(value, is_number);
                }
                of(other, is_number);
            }
            Formula::Truth(both) => of_condition(&both[0], &mut of),
            Formula::Lookup(.., key) => key.iter().for_each(|part| of(part, false)),
            Formula::Null | Formula::Number(_) | Formula::Text(_) | Formula::Time(..) => {}
        }
    }

    /// A value of a column that is computed: a text that stands for null is null.
    pub(crate) fn computed_value<'a>(
        &self,
        computed: &'a Computed,
        record: &'a dyn Record,
    ) -> Result<Value<'a>, ValueError> {
        let value = computed.formula.value(record)?;
        let mut own = Vec::new();
        let is_null = match &value {
            _ if computed.is_number => false,
            Value::Text(text) => self.is_null(text),
            // What has no text is refused where a column has it.
            value => !self.nulls.is_empty() && value.write(&mut own).is_ok() && self.is_null(&own),
        };
        Ok(if is_null { Value::Null } else { value })
    }

    /// What is wrong with a value that a column can't be computed of, in a record.
    pub(crate) fn unread_cause(
        &self,
        column: usize,
        unread: &ValueError,
        record: Option<&dyn Record>,
    ) -> Cause {
        let text = &unread.text;
        let of = unread.column.unwrap_or(column);
        match &unread.wrong {
            Wrong::Number(why) => {
                let line = record.and_then(|record| self.lookup_of(of)?.line(record));
                let line = line.map_or(String::new(), |line| format!(", in line {line}"));
                self.value_cause(text, of, &format!("{why}{line}"))
            }
            Wrong::Time(why) => self.time_cause(text, of, &format!("`{}` {why}", shown(text))),
            Wrong::Other(why) => format!("{why} (column {})", self.column_name(column)).into(),
        }
    }
}

impl Scope for Plan {
    fn find(&mut self, columns: &Columns) -> Result<usize, String> {
        Ok(self.places(columns)?[0])
    }

    fn is_time(&self, column: usize) -> bool {
        self.has_times(column)
    }

    fn time_zones(&self) -> TimeZones {
        self.time_zones
    }

    fn compute(&mut self, formula: Formula, text: &str, is_number: bool) -> Result<usize, String> {
        Ok(Plan::compute(self, formula, text, is_number))
    }
}

/// A record's columns.
pub(crate) struct Fields<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) fields: &'a [Field],
    pub(crate) bytes: &'a [u8],
    /// Where a column [wants numbers](Plan::wants_number), other values are null.
    pub(crate) has_numbers: bool,
}

impl Fields<'_> {
    fn is_no_number(&self, column: usize, value: &Value<'_>) -> bool {
        let is_text = |text: &[u8]| self.plan.read_number(text).is_err();
        self.has_numbers
            && self.plan.wants_number(column)
            && matches!(value, Value::Text(text) if is_text(text))
    }
}

impl Record for Fields<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>, ValueError> {
        let Some(field) = self.fields.get(column) else {
            let computed = self.plan.computed(column).expect("a column of the plan");
            let value = self.plan.computed_value(computed, self)?;
            return Ok(match self.is_no_number(column, &value) {
                true => Value::Null,
                false => value,
            });
        };
        let text = match field.escape {
            None => Cow::Borrowed(&self.bytes[field.start..field.end]),
            Some(_) => {
                let mut scratch = Vec::new();
                Cow::Owned(field.value(self.bytes, &mut scratch).to_vec())
            }
        };
        let is_null = self.plan.is_null(&text);
        let value = Value::Text(text);
        Ok(match is_null || self.is_no_number(column, &value) {
            true => Value::Null,
            false => value,
        })
    }

    fn grammar(&self) -> Grammar {
        self.plan.grammar
    }

    fn wants_number(&self, column: usize) -> bool {
        self.plan.wants_number(column)
    }
}
