//! `mean`: the exact sum over the count, printed at the column's scale and 2 digits more.

use crate::query::accumulator::state::{Outcome, State, Takes, Value};
use crate::query::lanes::{Kept, Part};
use crate::query::number::{Exact, Number};
use crate::query::quotient::Quotient;

/// Digits beyond the column's.
const MORE: u32 = 2;

#[derive(Default)]
pub(super) struct Mean {
    count: u64,
    sum: Exact,
}

impl State for Mean {
    const TAKES: Takes = Takes::Numbers;
    const PARTS: Option<&'static [Part]> = Some(&[Part::Known, Part::Sum]);

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
}
