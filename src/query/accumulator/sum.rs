//! `sum`: exact, at the column's scale.

use crate::query::accumulator::state::{Outcome, State, Takes, Value};
use crate::query::number::Exact;

#[derive(Default)]
pub(super) struct Sum(Option<Exact>);

impl State for Sum {
    const TAKES: Takes = Takes::Numbers;

    fn update(&mut self, value: &Value<'_>) {
        self.0.get_or_insert_default().add(value.number);
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
}
