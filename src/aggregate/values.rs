//! Aggregates over all values of a column: exact percentiles, `distinct`, `mode`, and lists: `top3`, `values`, `histogram`.
//!
//! A group keeps its values in a bag. What is found among them in the end (`spill::exact`) is kept by another state.

use crate::aggregate::bag::Bags;
use crate::aggregate::count::Count;
use crate::aggregate::definition::{Definition, Kind, List, Statistic};
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

/// What the names of lists of the most frequent values begin with.
pub(crate) const TOP: &str = "top";
/// The most values of such a list.
pub(crate) const TOP_MAX: u32 = 1000;

static TOP_LIST: Definition = list(TOP, List::Top(0), &TOP_RESULT);
static TOP_RESULT: Definition = Definition::of::<LexMin>(TOP).of_lists();

pub(super) const VALUES: Definition = list("values", List::Values, &VALUES_RESULT);
static VALUES_RESULT: Definition = Definition::of::<LexMin>("values").of_lists();

pub(super) const HISTOGRAM: Definition = list("histogram", List::Histogram, &HISTOGRAM_RESULT);
static HISTOGRAM_RESULT: Definition = Definition::of::<LexMin>("histogram").of_lists();

const fn list(name: &'static str, list: List, result: &'static Definition) -> Definition {
    Definition::of::<LexMin>(name)
        .of_values::<Bags>(Argument::Bytes, Statistic::List(list), result)
        .of_lists()
}

/// The aggregate of a name such as `top3`.
pub(super) fn top_named(name: &str) -> Option<Kind> {
    let count = name.strip_prefix(TOP)?;
    let top = count.parse().ok()?;
    let is_right = (1..=TOP_MAX).contains(&top) && !count.starts_with(['0', '+']);
    is_right.then_some(Kind::top(&TOP_LIST, top))
}

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
