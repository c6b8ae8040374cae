//! `last`: the last value in the input, by file and byte.

use crate::aggregate::state::{Outcome, State, StateColumn, Takes, Value, set};
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;

#[derive(Default)]
pub(super) struct Last(Option<((u32, u64), Vec<u8>)>);

impl State for Last {
    const TAKES: Takes = Takes::Bytes;
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(Rule::LastText)];

    fn update(&mut self, value: &Value<'_>) {
        match &mut self.0 {
            Some((place, bytes)) if value.place > *place => {
                *place = value.place;
                set(bytes, value.bytes);
            }
            Some(_) => {}
            None => self.0 = Some((value.place, value.bytes.to_vec())),
        }
    }

    fn merge(&mut self, from: Last) {
        let Some((place, _)) = &from.0 else {
            return;
        };
        if self.0.as_ref().is_none_or(|(known, _)| place > known) {
            *self = from;
        }
    }

    fn heap(&self) -> usize {
        self.0.as_ref().map_or(0, |(_, bytes)| bytes.capacity())
    }

    fn finish(&self, _: u32) -> Outcome<'_> {
        match &self.0 {
            Some((_, bytes)) => Outcome::Text(bytes),
            None => Outcome::Null,
        }
    }

    fn encode(&self, to: &mut [Gathered]) {
        let value = self.0.as_ref();
        to[0].push_placed(value.map(|(place, bytes)| (*place, bytes.as_slice())));
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        let value = from[0].placed(row);
        Ok(Last(value.map(|(place, bytes)| (place, bytes.to_vec()))))
    }
}
