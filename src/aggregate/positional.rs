//! `first` and `last`: the first and the last value in the input, by file and byte.

use crate::aggregate::state::{Argument, Outcome, State, StateColumn, Value, set};
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;

pub(super) type First = Positional<false>;
pub(super) type Last = Positional<true>;

type Place = (u32, u64);

#[derive(Default)]
pub(super) struct Positional<const LAST: bool>(Option<(Place, Vec<u8>)>);

/// Whether a value counts and not one of a known place.
fn counts<const LAST: bool>(place: Place, known: Place) -> bool {
    if LAST { place > known } else { place < known }
}

impl<const LAST: bool> State for Positional<LAST> {
    const ARGUMENT: Argument = Argument::Bytes;
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(if LAST {
        Rule::LastText
    } else {
        Rule::FirstText
    })];

    fn update(&mut self, value: &Value<'_>) {
        match &mut self.0 {
            Some((place, bytes)) if counts::<LAST>(value.place, *place) => {
                *place = value.place;
                set(bytes, value.bytes);
            }
            Some(_) => {}
            None => self.0 = Some((value.place, value.bytes.to_vec())),
        }
    }

    fn merge(&mut self, from: Self) {
        let Some((place, _)) = from.0 else {
            return;
        };
        if (self.0.as_ref()).is_none_or(|(known, _)| counts::<LAST>(place, *known)) {
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
        let value = value.map(|(place, bytes)| (place, bytes.to_vec()));
        Ok(Positional(value))
    }
}
