//! `max`: the greatest number, at the column's scale.

use crate::query::accumulator::state::{Outcome, State, Takes, Value};
use crate::query::lanes::{Kept, Part};
use crate::query::number::Number;

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
}
