//! `min` and `max` of times: the earliest or latest, as it stands in its field.
//!
//! Kept is the time's rank, whose bytes are ordered as instants are, and the text after it: so of equal instants the
//! lesser text remains for `min`, the greater for `max`, whatever the order.

use crate::aggregate::state::{Argument, Outcome, State, StateColumn, Value, set};
use crate::format::time::read_in;
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::{RANK_BYTES, Rule};

#[derive(Default)]
pub(super) struct Moment<const IS_LATEST: bool> {
    kept: Option<Vec<u8>>,
    scratch: Vec<u8>,
}

impl<const IS_LATEST: bool> Moment<IS_LATEST> {
    fn replaces(new: &[u8], known: &[u8]) -> bool {
        match IS_LATEST {
            true => new > known,
            false => new < known,
        }
    }
}

impl<const IS_LATEST: bool> State for Moment<IS_LATEST> {
    const ARGUMENT: Argument = Argument::Bytes;
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(match IS_LATEST {
        true => Rule::LatestTime,
        false => Rule::EarliestTime,
    })];

    fn update(&mut self, value: &Value<'_>) {
        // What isn't a time was refused before, or is null.
        let Ok(time) = read_in(value.bytes, value.zone) else {
            return;
        };
        set(&mut self.scratch, &time.rank());
        self.scratch.extend_from_slice(value.bytes);
        match &mut self.kept {
            Some(known) if Self::replaces(&self.scratch, known) => {
                std::mem::swap(known, &mut self.scratch);
            }
            Some(_) => {}
            None => self.kept = Some(std::mem::take(&mut self.scratch)),
        }
    }

    fn merge(&mut self, from: Moment<IS_LATEST>) {
        let Some(new) = &from.kept else {
            return;
        };
        let known = self.kept.as_ref();
        if known.is_none_or(|known| Self::replaces(new, known)) {
            *self = from;
        }
    }

    fn heap(&self) -> usize {
        self.kept.as_ref().map_or(0, Vec::capacity) + self.scratch.capacity()
    }

    fn finish(&self, _: u32) -> Outcome<'_> {
        self.kept.as_deref().map_or(Outcome::Null, Outcome::Time)
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_text(self.kept.as_deref().unwrap_or_default());
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        let kept = from[0].text(row);
        if (1..=RANK_BYTES).contains(&kept.len()) {
            return Err("a time is cut");
        }
        Ok(Moment {
            kept: (!kept.is_empty()).then(|| kept.to_vec()),
            scratch: Vec::new(),
        })
    }
}
