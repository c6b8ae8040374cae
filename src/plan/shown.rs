//! The columns of an answer: aggregates, and values that are computed of them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ringfold_read::{Error, Kind as ErrorKind, Result};

use crate::aggregate::definition::Kind as AggregateKind;
use crate::aggregate::state::Rounding;
use crate::answer::columns::{AnswerColumns, Column, Computed};
use crate::answer::scope::{AGGREGATES, Written};
use crate::decimal::number::{Grammar, shown};
use crate::expression::formula::{Formula, Kind};
use crate::expression::item::alias;
use crate::expression::{Expression, Scope};
use crate::format::time::{TimeZone, TimeZones};
use crate::partial::description::Aggregate;
use crate::plan::Plan;
use crate::plan::columns::Columns;
use crate::refusal::AGGREGATE;

/// A value that is computed of aggregates, as it is asked for.
#[derive(Debug, Clone)]
pub(crate) struct ComputedItem {
    pub(crate) value: Expression,
    pub(crate) name: Option<Vec<u8>>,
}

/// What a partial calls its zones.
pub(crate) const TIME_ZONE: &str = "time zone";
pub(crate) const INPUT_TIME_ZONE: &str = "input time zone";
/// What a partial calls its answer's columns.
const COLUMN: &[u8] = b"column";

impl ComputedItem {
    /// What the column is called.
    fn name(&self) -> Vec<u8> {
        let text = || self.value.text().trim().as_bytes().to_vec();
        self.name.clone().unwrap_or_else(text)
    }

    /// Compiles it for an answer with these keys; `leaf` says which aggregate a text is.
    ///
    /// # Errors
    /// It isn't a number.
    fn column(
        &self,
        keys: &[Vec<u8>],
        leaf: &dyn Fn(&[u8]) -> Option<usize>,
        zones: TimeZones,
        aggregates: usize,
        kind_of: impl Fn(usize) -> AggregateKind,
    ) -> Result<Column> {
        let (mut formula, kind) = self.value.formula(&mut Leaves {
            keys,
            leaf,
            zones,
            is_list: &|at| kind_of(at).is_list,
        })?;
        let refused = |why: &str| {
            let text = shown(self.value.text().trim().as_bytes()).into_owned();
            Err(Error::new(ErrorKind::Usage, format!("`{text}` {why}")))
        };
        match kind {
            Kind::Number | Kind::Field | Kind::Null => {
                let of = |column: usize| {
                    column
                        .checked_sub(keys.len())
                        .is_some_and(|at| kind_of(at).is_quotient)
                };
                let first_total = keys.len() + aggregates;
                let totals = match formula.take_shares(first_total, &of) {
                    Ok(totals) => totals,
                    Err(why) => return refused(&format!("has {why}")),
                };
                let totals = totals.into_iter().map(|total| (total, OnceLock::new()));
                Ok(Column::Computed(Arc::new(Computed {
                    is_quotient: formula.is_quotient_of(&of),
                    text: self.value.text().trim().into(),
                    formula,
                    first_total,
                    totals: totals.collect(),
                })))
            }
            Kind::Text | Kind::Truth => refused("is no number: of aggregates numbers are computed"),
        }
    }
}

/// Keys and aggregates as the columns of a value.
struct Leaves<'a> {
    keys: &'a [Vec<u8>],
    leaf: &'a dyn Fn(&[u8]) -> Option<usize>,
    is_list: &'a dyn Fn(usize) -> bool,
    zones: TimeZones,
}

impl Scope for Leaves<'_> {
    fn find(&mut self, columns: &Columns) -> Result<usize, String> {
        let Columns::Name(name) = columns else {
            return Err("an aggregate is missing, as in sum(price)".into());
        };
        let key = || self.keys.iter().position(|key| key == name);
        let aggregate = (self.leaf)(name);
        if aggregate.is_some_and(self.is_list) {
            return Err("this is a list, and of aggregates numbers are computed".into());
        }
        let aggregate = aggregate.map(|at| self.keys.len() + at);
        aggregate.or_else(key).ok_or_else(|| {
            let name = shown(name);
            format!("`{name}` is neither an aggregate, as sum({name}) is, nor a key")
        })
    }

    fn is_time(&self, _: usize) -> bool {
        false
    }

    fn time_zones(&self) -> TimeZones {
        self.zones
    }

    fn compute(&mut self, _: Formula, _: &str, _: bool) -> Result<usize, String> {
        Err("compare an aggregate with a number or a text here".into())
    }
}

impl Plan {
    /// Shows aggregates.
    pub(crate) fn show(&mut self, aggregates: Range<usize>) {
        for at in aggregates {
            self.names.push(self.titles[at].clone());
            self.shown.push(Column::Aggregate(at));
        }
    }

    /// Shows a value that is computed of aggregates.
    pub(crate) fn show_computed(
        &mut self,
        item: &ComputedItem,
        leaf: impl Fn(&[u8]) -> Option<usize>,
    ) -> Result<()> {
        let column = item.column(
            &self.names[..self.keys.len()],
            &leaf,
            self.time_zones,
            self.aggregates.len(),
            |at| self.aggregates[at].kind,
        )?;
        self.shown.push(column);
        self.names.push(item.name());
        Ok(())
    }

    /// The columns of the answer as a partial keeps them, if they aren't all aggregates as they are.
    pub(crate) fn described_columns(&self, items: &[ComputedItem]) -> Vec<(Vec<u8>, Vec<u8>)> {
        if items.is_empty() {
            return Vec::new();
        }
        let mut items = items.iter();
        let word = |column: &Column| match column {
            Column::Aggregate(at) => at.to_string().into_bytes(),
            Column::Computed(..) => {
                let item = items.next().expect("one for each computed column");
                let name = String::from_utf8_lossy(&item.name()).replace('"', "\"\"");
                format!("{} as \"{name}\"", item.value.text().trim()).into_bytes()
            }
        };
        let words = self.shown.iter().map(word);
        words.map(|word| (COLUMN.to_vec(), word)).collect()
    }
}

/// The zones that partials say of themselves.
pub(crate) fn zones_of(words: &[(Vec<u8>, Vec<u8>)]) -> Result<TimeZones> {
    let of = |name: &str| {
        let word = words.iter().find(|(known, _)| known == name.as_bytes());
        let zone = word.map(|(_, zone)| TimeZone::named(&String::from_utf8_lossy(zone)));
        let zone = zone.transpose();
        zone.map_err(|why| Error::new(ErrorKind::Usage, why))
    };
    Ok(TimeZones {
        zone: of(TIME_ZONE)?,
        input: of(INPUT_TIME_ZONE)?,
    })
}

/// The columns of merged partials and their names, by what these say of them.
///
/// # Errors
/// That can't be understood.
pub(crate) fn columns_of(
    words: &[(Vec<u8>, Vec<u8>)],
    keys: &[Vec<u8>],
    aggregates: &[Aggregate],
    kinds: &[AggregateKind],
) -> Result<(Vec<Column>, Vec<Vec<u8>>)> {
    let title = |at: usize| aggregates[at].title.clone();
    let columns = words.iter().filter(|(name, _)| name == COLUMN);
    let (mut shown, mut names) = (Vec::new(), keys.to_vec());
    for (_, word) in columns {
        let text = String::from_utf8_lossy(word);
        let number = text.parse::<usize>().ok();
        if let Some(at) = number.filter(|at| *at < aggregates.len()) {
            shown.push(Column::Aggregate(at));
            names.push(title(at));
            continue;
        }
        let (text, name) = alias(&text);
        let item = ComputedItem {
            value: Expression::of_aggregates(text, AGGREGATE, &AGGREGATES)?.0,
            name,
        };
        let asked = || words.iter().filter(|(name, _)| name == b"aggregate");
        let leaf = |text: &[u8]| {
            // Rows are counted under one name.
            let text = if [&b"count(*)"[..], b"count()"].contains(&text) {
                b"count"
            } else {
                text
            };
            let at = asked().position(|(_, word)| word == text);
            at.filter(|at| *at < aggregates.len())
        };
        let zones = zones_of(words)?;
        shown.push(item.column(keys, &leaf, zones, aggregates.len(), |at| kinds[at])?);
        names.push(item.name());
    }
    if shown.is_empty() {
        shown = Column::of_aggregates(aggregates.len());
        names.extend((0..aggregates.len()).map(title));
    }
    Ok((shown, names))
}

impl AnswerColumns {
    /// Those of a plan, whose aggregates have numbers of these scales.
    pub(crate) fn of(plan: &Plan, scales: Vec<u32>) -> AnswerColumns {
        let aggregates = plan.aggregates.iter();
        let aggregates = aggregates.map(|of| (of.kind, of.is_numeric()));
        let aggregates = aggregates.zip(scales);
        let columns = AnswerColumns::new(
            plan.keys.len(),
            aggregates.map(|((kind, is_numeric), scale)| (kind, is_numeric, scale)),
            plan.shown.clone(),
            &plan.asked,
            (plan.precision, plan.grammar),
        );
        AnswerColumns {
            hidden: plan.hidden.clone(),
            ..columns
        }
    }

    /// Those of aggregates of which it is known whether they compute on numbers, and their scales; `words` are what a partial
    /// keeps of the query.
    pub(crate) fn new(
        keys: usize,
        aggregates: impl Iterator<Item = (AggregateKind, bool, u32)>,
        shown: Vec<Column>,
        words: &[(Vec<u8>, Vec<u8>)],
        (precision, grammar): (Option<u32>, Grammar),
    ) -> AnswerColumns {
        let rounding = |is_numeric| Rounding::of(is_numeric, precision, grammar.is_float);
        let mut texts = words.iter().filter(|(name, _)| name == b"aggregate");
        let (mut scales, mut roundings, mut written) = (Vec::new(), Vec::new(), Vec::new());
        for (kind, is_numeric, scale) in aggregates {
            scales.push(scale);
            roundings.push(rounding(is_numeric));
            written.extend(texts.next().map(|(_, text)| Written {
                text: text.clone(),
                is_quotient: kind.is_quotient,
            }));
        }
        AnswerColumns {
            keys,
            scales,
            roundings,
            shown,
            hidden: Vec::new(),
            written: written.into(),
            computed: rounding(true),
            grammar: Grammar {
                is_long: true,
                ..grammar
            },
        }
    }
}
