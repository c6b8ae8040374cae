//! `max`: the greatest number, at the column's scale.

use crate::aggregate::lanes::{Kept, Part};
use crate::aggregate::state::{Outcome, Ratio, State, StateColumn, Takes, Value};
use crate::decimal::number::Number;
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;

#[derive(Default)]
pub(super) struct Max(Option<Number>);

impl Max {
    fn add(&mut self, number: Number) {
        self.0 = Some(self.0.map_or(number, |known| known.max(number)));
    }
}

impl State for Max {
    const TAKES: Takes = Takes::Numbers;
    const PARTS: Option<&'static [Part]> = Some(&[Part::Greatest]);
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(Rule::Greatest)];

    const RATIO: Option<fn(&Kept) -> Ratio> = Some(|kept| Ratio::number(kept.greatest, kept.scale));

    fn update(&mut self, value: &Value<'_>) {
        self.add(value.number);
    }

    fn absorb(&mut self, kept: &Kept) {
        if kept.known > 0 {
            self.add(Number::new(kept.greatest.into(), kept.scale));
        }
    }

    fn merge(&mut self, from: Max) {
        if let Some(number) = from.0 {
            self.add(number);
        }
    }

    fn finish(&self, scale: u32) -> Outcome<'_> {
        match self.0 {
            Some(number) => Outcome::Number(number.exact().with_scale(scale)),
            None => Outcome::Null,
        }
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_number(self.0);
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        Ok(Max(from[0].number(row)?))
    }
}
