//! Aggregates over all values of a column: exact percentiles, `distinct` and `mode`.
//!
//! A group keeps its values in a bag. What is found among them in the end (`spill::exact`) is kept by another state.

use crate::aggregate::bag::Bags;
use crate::aggregate::count::Count;
use crate::aggregate::definition::{Definition, Statistic};
use crate::aggregate::lexical::LexMin;
use crate::aggregate::share::{MORE, Share};
use crate::aggregate::state::{Argument, Outcome, State, StateColumn, Value};
use crate::decimal::number::Exact;
use crate::decimal::quotient::Quotient;
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;

pub(super) static DISTINCT: Definition = Definition::of::<Count>("distinct").of_values::<Bags>(
    Argument::Bytes,
    Statistic::Distinct,
    &DISTINCT_RESULT,
);
static DISTINCT_RESULT: Definition = Definition::of::<Count>("distinct");

pub(super) static MODE: Definition = Definition::of::<LexMin>("mode").of_values::<Bags>(
    Argument::Bytes,
    Statistic::Mode,
    &MODE_RESULT,
);
static MODE_RESULT: Definition = Definition::of::<LexMin>("mode");

pub(super) static MEDIAN: Definition = percentile("median", &MEDIAN_RESULT).of_half();
static MEDIAN_RESULT: Definition = Definition::of::<Percentile>("median").of_half();

pub(super) static PERCENTILE: Definition = percentile("p", &PERCENTILE_RESULT);
static PERCENTILE_RESULT: Definition = Definition::of::<Percentile>("p");

const fn percentile(name: &'static str, result: &'static Definition) -> Definition {
    let half = Statistic::Percentile(Share::HALF);
    Definition::of::<Percentile>(name).of_values::<Bags>(Argument::Numbers, half, result)
}

/// A percentile times the divisor of its share, if there are numbers.
#[derive(Default)]
struct Percentile(Option<Exact>);

impl State for Percentile {
    const ARGUMENT: Argument = Argument::Numbers;
    const IS_QUOTIENT: bool = true;
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(Rule::Sum)];

    fn update(&mut self, value: &Value<'_>) {
        unreachable!("{value:?} for what is found already");
    }

    fn merge(&mut self, from: Percentile) {
        self.0 = self.0.take().or(from.0);
    }

    fn finish(&self, scale: u32) -> Outcome<'_> {
        self.percentile(Share::HALF, scale)
    }

    fn percentile(&self, share: Share, scale: u32) -> Outcome<'_> {
        let Some(dividend) = &self.0 else {
            return Outcome::Null;
        };
        Outcome::Quotient {
            value: Quotient::new(dividend.clone(), share.divisor.into()),
            digits: scale + MORE,
        }
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_exact(self.0.as_ref());
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        Ok(Percentile(from[0].exact(row)))
    }
}
