//! `range`: the greatest number less the least one, at the column's scale.

use crate::query::accumulator::state::{Outcome, State, Takes, Value};
use crate::query::lanes::{Kept, Part};
use crate::query::number::Number;

#[derive(Default)]
pub(super) struct Range(Option<(Number, Number)>);

impl Range {
    fn add(&mut self, least: Number, greatest: Number) {
        let (least, greatest) = match self.0 {
            Some((low, high)) => (low.min(least), high.max(greatest)),
            None => (least, greatest),
        };
        self.0 = Some((least, greatest));
    }
}

impl State for Range {
    const TAKES: Takes = Takes::Numbers;
    const PARTS: Option<&'static [Part]> = Some(&[Part::Least, Part::Greatest]);

    fn update(&mut self, value: &Value<'_>) {
        self.add(value.number, value.number);
    }

    fn absorb(&mut self, kept: &Kept) {
        let number = |value: i64| Number::new(value.into(), kept.scale);
        if kept.known > 0 {
            self.add(number(kept.least), number(kept.greatest));
        }
    }

    fn merge(&mut self, from: Range) {
        if let Some((least, greatest)) = from.0 {
            self.add(least, greatest);
        }
    }

    fn finish(&self, scale: u32) -> Outcome<'_> {
        let Some((least, greatest)) = self.0 else {
            return Outcome::Null;
        };
        let mut range = greatest.exact();
        range.add_exact(&least.exact().negated());
        Outcome::Number(range.with_scale(scale))
    }
}
