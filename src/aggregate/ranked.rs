//! `arg_min` and `arg_max`: the value where a number is least or greatest; of several the least, compared as bytes.
//!
//! Both take one text, the number's bytes and the value after them (`expression::function::pair`): the least one remains.

use crate::aggregate::lexical::LexMin;
use crate::aggregate::state::{Argument, Outcome, State, StateColumn, Value};
use crate::decimal::number::ordered_length;
use crate::partial::column::{ColumnView, Gathered};

#[derive(Default)]
pub(super) struct Ranked(LexMin);

impl State for Ranked {
    const ARGUMENT: Argument = Argument::Bytes;
    const COLUMNS: &'static [StateColumn] = LexMin::COLUMNS;

    fn update(&mut self, value: &Value<'_>) {
        self.0.update(value);
    }

    fn merge(&mut self, from: Ranked) {
        self.0.merge(from.0);
    }

    fn heap(&self) -> usize {
        self.0.heap()
    }

    fn finish(&self, scale: u32) -> Outcome<'_> {
        match self.0.finish(scale) {
            Outcome::Text(text) => Outcome::Text(&text[ordered_length(text)..]),
            other => other,
        }
    }

    fn encode(&self, to: &mut [Gathered]) {
        self.0.encode(to);
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        let text = from[0].text(row);
        match !text.is_empty() && ordered_length(text) >= text.len() {
            true => Err("a value is cut"),
            false => LexMin::decode(from, row).map(Ranked),
        }
    }
}
