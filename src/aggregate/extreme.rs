//! `min` and `max`: the least and the greatest number, at the column's scale.

use crate::aggregate::lanes::{Kept, Part};
use crate::aggregate::state::{Argument, Outcome, Ratio, State, StateColumn, Value};
use crate::decimal::number::Number;
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;

pub(super) type Min = Extreme<false>;
pub(super) type Max = Extreme<true>;

#[derive(Default)]
pub(super) struct Extreme<const GREATEST: bool>(Option<Number>);

impl<const GREATEST: bool> Extreme<GREATEST> {
    fn add(&mut self, number: Number) {
        self.0 = Some(match self.0 {
            Some(known) if GREATEST => known.max(number),
            Some(known) => known.min(number),
            None => number,
        });
    }

    fn of(kept: &Kept) -> i64 {
        if GREATEST { kept.greatest } else { kept.least }
    }
}

impl<const GREATEST: bool> State for Extreme<GREATEST> {
    const ARGUMENT: Argument = Argument::Numbers;
    const PARTS: Option<&'static [Part]> = Some(if GREATEST {
        &[Part::Greatest]
    } else {
        &[Part::Least]
    });
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(if GREATEST {
        Rule::Greatest
    } else {
        Rule::Least
    })];

    const RATIO: Option<fn(&Kept) -> Ratio> =
        Some(|kept| Ratio::number(Self::of(kept), kept.scale));

    fn update(&mut self, value: &Value<'_>) {
        self.add(value.number);
    }

    fn absorb(&mut self, kept: &Kept) {
        if kept.known > 0 {
            self.add(Number::new(Self::of(kept).into(), kept.scale));
        }
    }

    fn merge(&mut self, from: Self) {
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

    fn ratio(&self) -> Option<Ratio> {
        Ratio::of(&self.0?.exact())
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_number(self.0);
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        Ok(Extreme(from[0].number(row)?))
    }
}
