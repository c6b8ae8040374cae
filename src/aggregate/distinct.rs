//! `distinct`: how many different values there are, compared as bytes; exact while they are few.

use crate::aggregate::state::{Argument, Digest, Outcome, State, StateColumn, Value};
use crate::decimal::number::Exact;
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;
use crate::sketch::{self, Sketch};

#[derive(Default)]
pub(super) struct Distinct(sketch::distinct::Distinct);

impl State for Distinct {
    const ARGUMENT: Argument = Argument::Bytes;
    const DIGEST: Option<Digest> = Some(Digest::Hash);
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(Rule::Sketch(Sketch::Distinct))];

    fn update(&mut self, value: &Value<'_>) {
        self.add(value.hash_key.hash(value.bytes));
    }

    fn add(&mut self, digest: u64) {
        self.0.add(digest);
    }

    fn note(&mut self, digest: u64) -> bool {
        self.0.note(digest)
    }

    fn prefetch(&self, digest: u64) {
        self.0.prefetch(digest);
    }

    fn merge(&mut self, from: Distinct) {
        self.0.merge(from.0);
    }

    fn heap(&self) -> usize {
        self.0.bytes()
    }

    fn finish(&self, _: u32) -> Outcome<'_> {
        Outcome::Number(Exact::small(self.0.count().into(), 0))
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_text(&self.0.encode());
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        sketch::distinct::Distinct::decode(from[0].text(row)).map(Distinct)
    }
}
