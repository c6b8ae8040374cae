//! `count`: rows, or a column's values that aren't null.

use crate::aggregate::lanes::{Kept, Part};
use crate::aggregate::state::{Argument, Outcome, Ratio, State, StateColumn, Value};
use crate::decimal::number::Exact;
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;

#[derive(Default)]
pub(super) struct Count(u64);

impl State for Count {
    const ARGUMENT: Argument = Argument::Anything;
    const PARTS: Option<&'static [Part]> = Some(&[Part::Known]);
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(Rule::Count)];

    const RATIO: Option<fn(&Kept) -> Ratio> = Some(|kept| Ratio::number(kept.known, 0));

    fn update(&mut self, _: &Value<'_>) {
        self.0 += 1;
    }

    fn absorb(&mut self, kept: &Kept) {
        self.0 += kept.known;
    }

    fn merge(&mut self, from: Self) {
        self.0 += from.0;
    }

    fn finish(&self, _: u32) -> Outcome<'_> {
        Outcome::Number(Exact::small(self.0.into(), 0))
    }

    fn ratio(&self) -> Option<Ratio> {
        Some(Ratio::number(self.0, 0))
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_count(self.0);
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        Ok(Count(from[0].count(row)))
    }
}
