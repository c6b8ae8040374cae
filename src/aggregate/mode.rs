//! `mode`: the most frequent value; of several the least, compared as bytes. It keeps every value of a group.

use crate::aggregate::state::{Argument, Outcome, State, StateColumn, Value};
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;
use crate::sketch::Sketch;
use crate::sketch::frequencies::Frequencies;

#[derive(Default)]
pub(super) struct Mode(Frequencies);

impl State for Mode {
    const ARGUMENT: Argument = Argument::Bytes;
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(Rule::Sketch(Sketch::Frequencies))];

    fn update(&mut self, value: &Value<'_>) {
        self.0.add(value.bytes);
    }

    fn merge(&mut self, from: Mode) {
        self.0.merge(from.0);
    }

    fn heap(&self) -> usize {
        self.0.bytes()
    }

    fn finish(&self, _: u32) -> Outcome<'_> {
        self.0.mode().map_or(Outcome::Null, Outcome::Text)
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_text(&self.0.encode());
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        Frequencies::decode(from[0].text(row)).map(Mode)
    }
}
