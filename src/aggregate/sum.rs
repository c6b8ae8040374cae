//! `sum`: exact, at the column's scale.

use crate::aggregate::lanes::{Kept, Part};
use crate::aggregate::state::{Argument, Outcome, Ratio, State, StateColumn, Value};
use crate::decimal::number::{Exact, Number};
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;

#[derive(Default)]
pub(super) struct Sum(Option<Exact>);

impl State for Sum {
    const ARGUMENT: Argument = Argument::Numbers;
    const PARTS: Option<&'static [Part]> = Some(&[Part::Sum]);
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(Rule::Sum)];

    const RATIO: Option<fn(&Kept) -> Ratio> = Some(|kept| Ratio::number(kept.sum, kept.scale));

    fn update(&mut self, value: &Value<'_>) {
        self.0.get_or_insert_default().add(value.number);
    }

    fn absorb(&mut self, kept: &Kept) {
        if kept.known > 0 {
            let sum = Number::new(kept.sum, kept.scale);
            self.0.get_or_insert_default().add(sum);
        }
    }

    fn merge(&mut self, from: Sum) {
        if let Some(from) = from.0 {
            self.0.get_or_insert_default().add_exact(&from);
        }
    }

    fn finish(&self, scale: u32) -> Outcome<'_> {
        match &self.0 {
            Some(sum) => Outcome::Number(sum.clone().with_scale(scale)),
            None => Outcome::Null,
        }
    }

    fn ratio(&self) -> Option<Ratio> {
        Ratio::of(self.0.as_ref()?)
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_exact(self.0.as_ref());
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        Ok(Sum(from[0].exact(row)))
    }
}
