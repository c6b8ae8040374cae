//! `min`: the least number, at the column's scale.

use crate::query::accumulator::state::{Outcome, State, Takes, Value};
use crate::query::lanes::{Kept, Part};
use crate::query::number::Number;

#[derive(Default)]
pub(super) struct Min(Option<Number>);

impl Min {
    fn add(&mut self, number: Number) {
        self.0 = Some(self.0.map_or(number, |known| known.min(number)));
    }
}

impl State for Min {
    const TAKES: Takes = Takes::Numbers;
    const PARTS: Option<&'static [Part]> = Some(&[Part::Least]);

    fn update(&mut self, value: &Value<'_>) {
        self.add(value.number);
    }

    fn absorb(&mut self, kept: &Kept) {
        if kept.known > 0 {
            self.add(Number::new(kept.least.into(), kept.scale));
        }
    }

    fn merge(&mut self, from: Min) {
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
}
