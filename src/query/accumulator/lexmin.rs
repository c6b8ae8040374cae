//! `lexmin`: the least value, compared as bytes.

use crate::query::accumulator::state::{Outcome, State, Takes, Value, set};

#[derive(Default)]
pub(super) struct LexMin(Option<Vec<u8>>);

impl State for LexMin {
    const TAKES: Takes = Takes::Bytes;

    fn update(&mut self, value: &Value<'_>) {
        match &mut self.0 {
            Some(known) if value.bytes < known.as_slice() => set(known, value.bytes),
            Some(_) => {}
            None => self.0 = Some(value.bytes.to_vec()),
        }
    }

    fn merge(&mut self, from: LexMin) {
        let Some(bytes) = &from.0 else {
            return;
        };
        if self.0.as_ref().is_none_or(|known| bytes < known) {
            *self = from;
        }
    }

    fn finish(&self, _: u32) -> Outcome<'_> {
        match &self.0 {
            Some(bytes) => Outcome::Text(bytes),
            None => Outcome::Null,
        }
    }
}
