//! `mean`: the exact sum over the count, printed at the column's scale and 2 digits more.

use crate::aggregate::lanes::{Kept, Part};
use crate::aggregate::state::{Argument, Outcome, Ratio, State, StateColumn, Value};
use crate::decimal::number::{Exact, Number};
use crate::decimal::quotient::Quotient;
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;

/// Digits beyond the column's.
pub(super) const MORE: u32 = 2;

#[derive(Default)]
pub(super) struct Mean {
    count: u64,
    sum: Exact,
}

impl State for Mean {
    const ARGUMENT: Argument = Argument::Numbers;
    const IS_QUOTIENT: bool = true;
    const PARTS: Option<&'static [Part]> = Some(&[Part::Known, Part::Sum]);
    const COLUMNS: &'static [StateColumn] =
        &[StateColumn::of(Rule::Count), StateColumn::of(Rule::Sum)];

    const RATIO: Option<fn(&Kept) -> Ratio> = Some(|kept| Ratio {
        dividend: kept.sum,
        divisor: kept.known,
        scale: kept.scale,
        more: MORE,
    });

    fn update(&mut self, value: &Value<'_>) {
        self.count += 1;
        self.sum.add(value.number);
    }

    fn absorb(&mut self, kept: &Kept) {
        self.count += kept.known;
        self.sum.add(Number::new(kept.sum, kept.scale));
    }

    fn merge(&mut self, from: Mean) {
        self.count += from.count;
        self.sum.add_exact(&from.sum);
    }

    fn finish(&self, scale: u32) -> Outcome<'_> {
        match self.count {
            0 => Outcome::Null,
            count => Outcome::Quotient {
                value: Quotient::new(self.sum.clone(), count.into()),
                digits: scale + MORE,
            },
        }
    }

    fn ratio(&self) -> Option<Ratio> {
        let sum = Ratio::of(&self.sum).filter(|_| self.count > 0)?;
        Some(Ratio {
            divisor: self.count,
            more: MORE,
            ..sum
        })
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_count(self.count);
        to[1].push_exact(Some(&self.sum));
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        Ok(Mean {
            count: from[0].count(row),
            sum: from[1].exact(row).unwrap_or_default(),
        })
    }
}
