//! `range`: the greatest number less the least one, at the column's scale.

use crate::aggregate::lanes::{Kept, Part};
use crate::aggregate::state::{Argument, Outcome, State, StateColumn, Value};
use crate::decimal::number::Number;
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;

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
    const ARGUMENT: Argument = Argument::Numbers;
    const PARTS: Option<&'static [Part]> = Some(&[Part::Least, Part::Greatest]);
    const COLUMNS: &'static [StateColumn] = &[
        StateColumn::of(Rule::Least),
        StateColumn::of(Rule::Greatest),
    ];

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

    fn encode(&self, to: &mut [Gathered]) {
        let (least, greatest) = self.0.unzip();
        to[0].push_number(least);
        to[1].push_number(greatest);
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        let ends = from[0].number(row)?.zip(from[1].number(row)?);
        match ends.is_some_and(|(least, greatest)| least > greatest) {
            true => Err("a least number is greater than the greatest one"),
            false => Ok(Range(ends)),
        }
    }
}
