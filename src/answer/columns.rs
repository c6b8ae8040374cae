//! The columns of an answer after its keys: those of aggregates, and values that are computed of these.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use crate::aggregate::state::{Numeral, Outcome, Rounding, text_of};
use crate::answer::scope::Written;
use crate::answer::sorted::part;
use crate::decimal::number::Grammar;
use crate::decimal::rational::Rational;
use crate::expression::formula::Formula;
use crate::expression::value::{Record, Value, ValueError};
use crate::report::grid::Cell;
use crate::table::groups::Groups;
use crate::table::states::Group;

/// Digits of a quotient after the point, unless others are asked for.
const QUOTIENT_DIGITS: u32 = 6;

/// A column after the keys.
#[derive(Debug, Clone)]
pub(crate) enum Column {
    /// That of an aggregate.
    Aggregate(usize),
    Computed(Arc<Computed>),
}

/// A value that is computed of a row.
#[derive(Debug)]
pub(crate) struct Computed {
    /// Its columns are [places](AnswerColumns::place), and `totals` from `first_total` on.
    pub(crate) formula: Formula,
    pub(crate) is_quotient: bool,
    /// As it is written.
    pub(crate) text: Vec<u8>,
    pub(crate) first_total: usize,
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
    /// Those that only conditions and orders of rows look at.
    pub(crate) hidden: Vec<Arc<Computed>>,
    /// The aggregates as they were asked for.
    pub(crate) written: Arc<[Written]>,
    /// How computed numbers are printed.
    pub(crate) computed: Rounding,
    /// How numbers are written in keys and other texts of the input.
    pub(crate) grammar: Grammar,
}

impl AnswerColumns {
    /// So many keys and other columns of which only the names are known.
    pub(super) fn of_names(keys: usize, shown: usize, grammar: Grammar) -> AnswerColumns {
        AnswerColumns {
            keys,
            scales: Vec::new(),
            roundings: Vec::new(),
            shown: vec![Column::Aggregate(0); shown],
            hidden: Vec::new(),
            written: Arc::new([]),
            computed: Rounding::Own,
            grammar,
        }
    }

    /// What a group has in a place, which isn't a hidden one.
    pub(crate) fn outcome<'g>(
        &self,
        groups: &'g Groups,
        group: Group,
        place: usize,
    ) -> Outcome<'g> {
        let Some(at) = place.checked_sub(self.keys) else {
            return Outcome::Text(part(groups, group, place));
        };
        let column = match at.checked_sub(self.scales.len()) {
            None => &Column::Aggregate(at),
            Some(at) => &self.shown[at],
        };
        match column {
            Column::Aggregate(at) => groups.finish(group, *at, self.scales[*at]),
            Column::Computed(computed) => match self.computed(groups, group, computed) {
                Ok(Value::Number(number)) => outcome(&number, computed.is_quotient),
                // There is no value: it is divided by zero.
                _ => Outcome::Null,
            },
        }
    }

    /// The aggregate whose outcome is in a place.
    pub(super) fn aggregate(&self, place: usize) -> Option<usize> {
        let at = place.checked_sub(self.keys)?;
        match at.checked_sub(self.scales.len()) {
            None => Some(at),
            Some(at) => match self.shown.get(at)? {
                Column::Aggregate(at) => Some(*at),
                Column::Computed(_) => None,
            },
        }
    }

    /// Adds what is shown of a group after its keys.
    pub(super) fn push_cells<'a>(
        &'a self,
        groups: &'a Groups,
        group: Group,
        cells: &mut Vec<Cell<'a>>,
    ) {
        for (at, column) in self.shown.iter().enumerate() {
            if let Column::Aggregate(at) = column
                && let Some(ratio) = groups.ratio(group, *at)
                && let Some(digits) = ratio.digits(self.scales[*at], self.roundings[*at])
            {
                cells.push(Cell::Number(digits));
                continue;
            }
            let place = self.place(self.keys + at);
            let rounding = self.rounding(place);
            cells.push(match self.outcome(groups, group, place) {
                Outcome::Null => Cell::Null,
                Outcome::Text(text) => match column {
                    Column::Aggregate(at) if groups.kind(*at).is_list => Cell::Json(text),
                    _ => Cell::Text(text),
                },
                Outcome::Time(time) => Cell::Text(text_of(time)),
                number => match number.printed(rounding) {
                    Some(Numeral::Decimal(digits)) => Cell::Number(digits),
                    // No format has a number for it.
                    Some(Numeral::Special(special)) => Cell::Text(special.text().as_bytes()),
                    None => Cell::Null,
                },
            });
        }
    }

    /// The hidden column in a place.
    pub(super) fn hidden(&self, place: usize) -> Option<&Computed> {
        let first = self.places() - self.hidden.len();
        let at = place.checked_sub(first)?;
        self.hidden.get(at).map(|computed| &**computed)
    }

    /// A value that is computed of a group.
    pub(super) fn computed(
        &self,
        groups: &Groups,
        group: Group,
        computed: &Computed,
    ) -> Result<Value<'static>, ValueError> {
        let record = GroupRecord {
            columns: self,
            totals: Some(computed),
            groups,
            group,
        };
        Ok(computed.formula.value(&record)?.into_owned())
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
        let all = computed.chain(&self.hidden);
        all.flat_map(|computed| &computed.totals)
    }

    /// Adds some rows to sums over all, which begin as nothing.
    pub(crate) fn add_totals(&self, groups: &Groups, rows: &[Group], to: &mut Vec<Rational>) {
        let zero = || Rational::from(0);
        to.resize_with(self.totals().count(), zero);
        for ((formula, _), to) in self.totals().zip(to) {
            let number = |group: &Group| {
                let record = GroupRecord {
                    columns: self,
                    totals: None,
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

    /// How the numbers in a place are printed.
    pub(crate) fn rounding(&self, place: usize) -> Rounding {
        let Some(at) = place.checked_sub(self.keys) else {
            return Rounding::Own;
        };
        match at.checked_sub(self.scales.len()) {
            None => self.roundings[at],
            Some(at) => match &self.shown[at] {
                Column::Aggregate(at) => self.roundings[*at],
                Column::Computed(..) => self.computed,
            },
        }
    }
}

/// A number of a column all of whose numbers are quotients, or none.
fn outcome(number: &Rational, is_quotient: bool) -> Outcome<'static> {
    match is_quotient {
        true => Outcome::Quotient {
            value: number.quotient(),
            digits: QUOTIENT_DIGITS,
        },
        false => number
            .stored()
            .map_or(Outcome::Null, |number| Outcome::Number(number.exact())),
    }
}

/// A group as a record of places.
pub(super) struct GroupRecord<'a> {
    pub(super) columns: &'a AnswerColumns,
    /// Whose totals it has.
    pub(super) totals: Option<&'a Computed>,
    pub(super) groups: &'a Groups,
    pub(super) group: Group,
}

impl Record for GroupRecord<'_> {
    fn value(&self, place: usize) -> Result<Value<'_>, ValueError> {
        if let Some(of) = self.totals
            && let Some(at) = place.checked_sub(of.first_total)
        {
            let total = of.totals[at].1.get();
            return Ok(total.map_or(Value::Null, |total| Value::Number(total.clone())));
        }
        let AnswerColumns { keys, scales, .. } = self.columns;
        let shown = place.checked_sub(keys + scales.len());
        let computed = match shown.and_then(|at| self.columns.shown.get(at)) {
            Some(Column::Computed(computed)) => Some(&**computed),
            _ => self.columns.hidden(place),
        };
        if let Some(computed) = computed {
            return self.columns.computed(self.groups, self.group, computed);
        }
        Ok(match self.columns.outcome(self.groups, self.group, place) {
            // The empty key.
            Outcome::Null | Outcome::Text(b"") => Value::Null,
            Outcome::Text(text) => Value::Text(text.into()),
            Outcome::Time(time) => Value::Text(text_of(time).into()),
            Outcome::Number(exact) => Value::Number(exact.into()),
            Outcome::Quotient { value, .. } => Value::Number(value.rational()),
        })
    }

    fn grammar(&self) -> Grammar {
        self.columns.grammar
    }

    fn wants_number(&self, _: usize) -> bool {
        false
    }
}
