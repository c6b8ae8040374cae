//! The columns of an answer as expressions call them: conditions on its rows, and their order.

use std::sync::{Arc, OnceLock};

use ringfold_read::{Result, Setting};

use crate::aggregate::composed::composed_named;
use crate::aggregate::values::TOP;
use crate::aggregate::{named, names};
use crate::answer::columns::{AnswerColumns, Column, Computed};
use crate::decimal::number::shown;
use crate::expression::formula::{Formula, Kind};
use crate::expression::item::written;
use crate::expression::leaf::Aggregates;
use crate::expression::{Condition, Expression, Scope};
use crate::plan::columns::{Columns, plural, unknown};

/// The short form of `count(*) filter (where ...)`.
pub(crate) const COUNT_IF: &str = "count_if";

/// Which aggregates a value may be computed of.
pub(crate) static AGGREGATES: Aggregates = Aggregates {
    is_one: |name| {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        named(name).is_some() || is(COUNT_IF) || is(TOP)
    },
    names,
    composed: composed_named,
};

/// An aggregate of an answer, as it was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    /// `sum:price`, or `sum(price) filter (where qty > 1)`.
    pub(crate) text: Vec<u8>,
    /// Its numbers are quotients.
    pub(crate) is_quotient: bool,
}

/// An aggregate's name, argument and condition, however it is written.
fn parts(text: &[u8]) -> (String, String, String) {
    let text = String::from_utf8_lossy(text);
    let (name, argument, filter) = written(&text);
    match named(&name) {
        Some(kind) => (kind.name().into_owned(), argument, filter),
        // It counts where its argument is true.
        None if name.eq_ignore_ascii_case(COUNT_IF) => ("count".into(), String::new(), argument),
        None => (name, argument, filter),
    }
}

/// Compiles conditions on the rows of an answer, which must all hold. What they compute is added to its columns.
///
/// # Errors
/// There is no such column, or a value is of another kind than it must be.
pub(crate) fn conditions(
    texts: &[Expression],
    names: &[Vec<u8>],
    columns: &mut AnswerColumns,
) -> Result<Option<Condition>> {
    Condition::compiled(texts, &mut AnswerScope { names, columns })
}

/// Compiles a value of a row, and says where it stands among the answer's columns, and whether it is turned around.
///
/// # Errors
/// The same, or it has a share.
pub(crate) fn value(
    text: &str,
    setting: Setting,
    names: &[Vec<u8>],
    columns: &mut AnswerColumns,
) -> Result<(usize, bool)> {
    let (expression, _) = Expression::of_aggregates(text, setting, &AGGREGATES)?;
    let mut scope = AnswerScope { names, columns };
    let (formula, kind) = expression.formula(&mut scope)?;
    let (formula, is_turned) = match formula {
        Formula::Negative(inner) if matches!(*inner, Formula::Column(_)) => (*inner, true),
        formula => (formula, false),
    };
    if let Formula::Column(place) = formula {
        return Ok((place, is_turned));
    }
    let before = scope.columns.hidden.len();
    let place = scope.compute(formula, text, kind == Kind::Number);
    let place = place.map_err(|why| expression.fault(why))?;
    // All rows are gone by then.
    match scope.columns.hidden[before..]
        .iter()
        .all(|of| of.totals.is_empty())
    {
        true => Ok((place, is_turned)),
        false => Err(expression.fault("share(x) has the order of x".into())),
    }
}

struct AnswerScope<'a> {
    names: &'a [Vec<u8>],
    columns: &'a mut AnswerColumns,
}

impl AnswerScope<'_> {
    /// The place of an aggregate that is written so.
    fn aggregate(&self, text: &[u8]) -> Option<usize> {
        let known = &self.columns.written;
        let at = known.iter().position(|known| known.text == text);
        let at = at.or_else(|| {
            let wanted = parts(text);
            known.iter().position(|known| parts(&known.text) == wanted)
        })?;
        Some(self.columns.keys + at)
    }
}

impl Scope for AnswerScope<'_> {
    fn find(&mut self, columns: &Columns) -> Result<usize, String> {
        let names = self.names;
        let at = match columns {
            Columns::Name(name) if !names.contains(name) => {
                let aggregate = name.ends_with(b")").then(|| self.aggregate(name));
                return match aggregate {
                    Some(Some(place)) => Ok(place),
                    _ => Err(unknown("the answer", name, names)),
                };
            }
            Columns::Number(number) if *number > names.len() => {
                let columns = plural(names.len(), "column");
                return Err(format!(
                    "there is no column {number}: the answer has {columns}"
                ));
            }
            _ => columns.find(names.len(), Some(names))?[0],
        };
        Ok(self.columns.place(at))
    }

    fn is_time(&self, _: usize) -> bool {
        false
    }

    fn compute(&mut self, mut formula: Formula, text: &str, _: bool) -> Result<usize, String> {
        let columns = &mut *self.columns;
        let place = columns.places();
        let is_quotient = |place: usize| columns.is_quotient(place);
        let totals = formula.take_shares(place, &is_quotient);
        let totals =
            totals.map_err(|why| format!("`{}` has {why}", shown(text.trim().as_bytes())))?;
        let computed = Computed {
            is_quotient: formula.is_quotient_of(&is_quotient),
            text: text.trim().into(),
            first_total: place,
            totals: totals
                .into_iter()
                .map(|total| (total, OnceLock::new()))
                .collect(),
            formula,
        };
        columns.hidden.push(Arc::new(computed));
        Ok(place)
    }
}

impl AnswerColumns {
    /// Where the columns stand that expressions know: keys, aggregates, those that are shown after the keys, and the hidden
    /// ones.
    pub(crate) fn place(&self, column: usize) -> usize {
        match column < self.keys {
            true => column,
            false => column + self.scales.len(),
        }
    }

    /// How many places there are.
    pub(super) fn places(&self) -> usize {
        self.keys + self.scales.len() + self.shown.len() + self.hidden.len()
    }

    /// What a column is called.
    pub(super) fn name<'a>(&'a self, place: usize, names: &'a [Vec<u8>]) -> &'a [u8] {
        let Some(at) = place.checked_sub(self.keys) else {
            return &names[place];
        };
        match (at.checked_sub(self.scales.len()), self.hidden(place)) {
            (_, Some(computed)) => &computed.text,
            (None, _) => &self.written[at].text,
            (Some(at), None) => &names[self.keys + at],
        }
    }

    fn is_quotient(&self, place: usize) -> bool {
        let of_aggregate = |at: usize| self.written.get(at).is_some_and(|of| of.is_quotient);
        let Some(at) = place.checked_sub(self.keys) else {
            return false;
        };
        match at.checked_sub(self.scales.len()) {
            None => of_aggregate(at),
            Some(at) => match self.shown.get(at) {
                Some(Column::Aggregate(at)) => of_aggregate(*at),
                Some(Column::Computed(computed)) => computed.is_quotient,
                None => self
                    .hidden
                    .get(at - self.shown.len())
                    .is_some_and(|of| of.is_quotient),
            },
        }
    }
}
