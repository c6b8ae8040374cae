//! `lexmin` and `lexmax`: the least and the greatest value, compared as bytes.

use crate::aggregate::state::{Argument, Outcome, State, StateColumn, Value, set};
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;

pub(super) type LexMin = Lexical<false>;
pub(super) type LexMax = Lexical<true>;

#[derive(Default)]
pub(super) struct Lexical<const GREATEST: bool>(Option<Vec<u8>>);

/// Whether a value counts and not a known one.
#[inline]
fn counts<const GREATEST: bool>(bytes: &[u8], known: &[u8]) -> bool {
    let order = match (bytes.first(), known.first()) {
        // Most differ here already.
        (Some(one), Some(other)) if one != other => one.cmp(other),
        _ => bytes.cmp(known),
    };
    if GREATEST {
        order.is_gt()
    } else {
        order.is_lt()
    }
}

impl<const GREATEST: bool> State for Lexical<GREATEST> {
    const ARGUMENT: Argument = Argument::Bytes;
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(if GREATEST {
        Rule::GreatestText
    } else {
        Rule::LeastText
    })];

    fn update(&mut self, value: &Value<'_>) {
        match &mut self.0 {
            Some(known) if counts::<GREATEST>(value.bytes, known) => set(known, value.bytes),
            Some(_) => {}
            None => self.0 = Some(value.bytes.to_vec()),
        }
    }

    fn merge(&mut self, from: Self) {
        let Some(bytes) = &from.0 else {
            return;
        };
        if (self.0.as_ref()).is_none_or(|known| counts::<GREATEST>(bytes, known)) {
            *self = from;
        }
    }

    fn heap(&self) -> usize {
        self.0.as_ref().map_or(0, |bytes| bytes.capacity())
    }

    fn finish(&self, _: u32) -> Outcome<'_> {
        match &self.0 {
            Some(bytes) => Outcome::Text(bytes),
            None => Outcome::Null,
        }
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_text(self.0.as_deref().unwrap_or_default());
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        let text = from[0].text(row);
        Ok(Lexical((!text.is_empty()).then(|| text.to_vec())))
    }
}
