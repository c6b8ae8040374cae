//! Aggregates over all values of a column: exact percentiles, `distinct` and `mode`.
//!
//! A group keeps its values in a bag. What is found among them in the end (`spill::exact`) is kept by another state.

use crate::aggregate::bag::Bags;
use crate::aggregate::count::Count;
use crate::aggregate::lexical::LexMin;
use crate::aggregate::share::{MORE, Share};
use crate::aggregate::state::{
    Argument, Kind, OfValues, Outcome, State, StateColumn, Statistic, Value,
};
use crate::decimal::number::Exact;
use crate::decimal::quotient::Quotient;
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;

const fn counted(name: &'static str, argument: Argument, of_values: OfValues) -> Kind {
    Kind::of::<Count>(name).of_values::<Bags>(argument, of_values)
}

pub(super) static DISTINCT: Kind = counted(
    "distinct",
    Argument::Bytes,
    OfValues {
        statistic: Statistic::Distinct,
        result: &DISTINCT_RESULT,
    },
);
static DISTINCT_RESULT: Kind = Kind::of::<Count>("distinct");

pub(super) static MODE: Kind = counted(
    "mode",
    Argument::Bytes,
    OfValues {
        statistic: Statistic::Mode,
        result: &MODE_RESULT,
    },
);
static MODE_RESULT: Kind = Kind::of::<LexMin>("mode");

pub(super) static MEDIAN: Kind = percentile("median", Share::HALF, &MEDIAN_RESULT);
static MEDIAN_RESULT: Kind = result("median", Share::HALF);

/// An exact percentile.
pub(super) const fn percentile(name: &'static str, share: Share, result: &'static Kind) -> Kind {
    let statistic = Statistic::Percentile(share);
    counted(name, Argument::Numbers, OfValues { statistic, result })
}

/// What keeps it once it is found.
pub(super) const fn result(name: &'static str, share: Share) -> Kind {
    Kind::of::<Percentile>(name).of_share(share)
}

/// A percentile times the divisor of its share, if there are numbers.
#[derive(Default)]
struct Percentile(Option<Exact>);

impl State for Percentile {
    const ARGUMENT: Argument = Argument::Numbers;
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
