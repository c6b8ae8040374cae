//! `median`, `p50`, `p99.9`: the number below which so many percent of all numbers lie, between the two nearest as far as
//! the place asks. Exact while a group has few different numbers.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use num_bigint::BigInt;

use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;
use crate::query::accumulator::share::Share;
use crate::query::accumulator::state::{Kind, Outcome, State, StateColumn, States, Takes, Value};
use crate::query::lanes::Kept;
use crate::query::number::{Exact, Special};
use crate::query::quotient::Quotient;
use crate::sketch::Sketch;
use crate::sketch::histogram::Histogram;

/// Digits beyond the column's.
const MORE: u32 = 2;

/// The aggregate of a name such as `p99.9`. Each is made once and stays.
pub(super) fn named(name: &str) -> Option<&'static Kind> {
    static KNOWN: Mutex<BTreeMap<String, &'static Kind>> = Mutex::new(BTreeMap::new());
    let share = Share::named(name)?;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let kind = known.entry(name.into()).or_insert_with(|| {
        let name = Box::leak(Box::from(name));
        Box::leak(Box::new(
            Kind::of::<Values>(name).of_share(share, |share| Box::new(Percentiles::new(share))),
        ))
    });
    Some(kind)
}

/// The numbers of a group.
#[derive(Default)]
pub(super) struct Values(Histogram);

impl Values {
    fn outcome(&self, share: Share, scale: u32) -> Outcome<'static> {
        let count = self.0.count();
        if count == 0 {
            return Outcome::Null;
        }
        let (place, rest) = share.place(count);
        let [low, high] = self.0.at(place);
        let high = if rest == 0 { low } else { high };
        let (mut low, high) = (exact(low, scale), exact(high, scale));
        let (value, divisor) = match low.special().or(high.special()) {
            Some(_) => {
                low.add_exact(&high);
                (low, 1)
            }
            None => {
                let between: BigInt =
                    low.at(scale) * (share.divisor - rest) + high.at(scale) * rest;
                (Exact::new(between, scale), share.divisor)
            }
        };
        Outcome::Quotient {
            value: Quotient::new(value, divisor.into()),
            digits: scale + MORE,
        }
    }
}

/// A double with so many digits behind the point.
fn exact(value: f64, scale: u32) -> Exact {
    if !value.is_finite() {
        return Exact::of(match value {
            f64::INFINITY => Special::Infinity,
            f64::NEG_INFINITY => Special::NegativeInfinity,
            _ => Special::Nan,
        });
    }
    let text = format!("{value:.*}", scale as usize).replace('.', "");
    let mantissa: BigInt = text.parse().expect("digits");
    Exact::new(mantissa, scale)
}

impl State for Values {
    const TAKES: Takes = Takes::Numbers;
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(Rule::Sketch(Sketch::Histogram))];

    fn update(&mut self, value: &Value<'_>) {
        self.0.add(value.number.nearest());
    }

    fn merge(&mut self, from: Values) {
        self.0.merge(from.0);
    }

    fn heap(&self) -> usize {
        self.0.bytes()
    }

    fn finish(&self, scale: u32) -> Outcome<'_> {
        self.outcome(Share::HALF, scale)
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_text(&self.0.encode());
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        Histogram::decode(from[0].text(row)).map(Values)
    }
}

/// The numbers of all groups, of which one share is asked for.
pub(super) struct Percentiles {
    share: Share,
    groups: Vec<Values>,
}

impl Percentiles {
    pub(super) fn new(share: Share) -> Percentiles {
        Percentiles {
            share,
            groups: Vec::new(),
        }
    }
}

impl States for Percentiles {
    fn push(&mut self) {
        States::push(&mut self.groups);
    }

    fn update(&mut self, group: usize, value: &Value<'_>) -> isize {
        States::update(&mut self.groups, group, value)
    }

    fn absorb(&mut self, group: usize, kept: &Kept) {
        States::absorb(&mut self.groups, group, kept);
    }

    fn prefetch(&self, group: usize) {
        States::prefetch(&self.groups, group);
    }

    fn merge(&mut self, from: Box<dyn States>, into: &[usize]) {
        let from: Box<dyn Any> = from;
        let from = from
            .downcast::<Percentiles>()
            .expect("of the same aggregate");
        States::merge(&mut self.groups, Box::new(from.groups), into);
    }

    fn finish(&self, group: usize, scale: u32) -> Outcome<'_> {
        self.groups[group].outcome(self.share, scale)
    }

    fn columns(&self) -> usize {
        States::columns(&self.groups)
    }

    fn encode(&self, group: usize, to: &mut [Gathered]) {
        States::encode(&self.groups, group, to);
    }

    fn push_decoded(&mut self, from: &[ColumnView<'_>], row: usize) -> Result<(), &'static str> {
        States::push_decoded(&mut self.groups, from, row)
    }

    fn bytes(&self) -> usize {
        States::bytes(&self.groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, dividend, divisor) in [
            ("p50", 500, 1000),
            ("p99.9", 999, 1000),
            ("p0", 0, 1000),
            ("p100", 1000, 1000),
            ("p99.999900", 99_999_900, 100_000_000),
        ] {
            let share = Share::named(name).unwrap();
            assert_eq!((share.dividend, share.divisor), (dividend, divisor));
            assert!(std::ptr::eq(named(name).unwrap(), named(name).unwrap()));
        }
        for name in [
            "p",
            "p.5",
            "p5.",
            "p101",
            "p100.1",
            "p+5",
            "p0x1",
            "p1e1",
            "50",
            "p1234",
            "p1.1234567",
        ] {
            assert!(named(name).is_none(), "{name}");
        }
    }

    /// As numpy and spreadsheets have it: between the two nearest.
    #[test]
    fn values_lie_between_two() {
        let kind = |name: &str| named(name).unwrap();
        for (values, name, want) in [
            (&["1", "2", "3", "4"][..], "p50", "2.50"),
            (&["4", "1"], "p25", "1.75"),
            (&["0.1", "0.2", "0.4"], "p50", "0.200"),
            (&["10", "20"], "p99.9", "19.99"),
            (&["7"], "p0", "7.00"),
            (&["-5", "-1.5", "3"], "p100", "3.000"),
        ] {
            let mut states = kind(name).states();
            states.push();
            let mut scale = 0;
            for text in values {
                let number = crate::query::number::Number::read(text.as_bytes()).unwrap();
                scale = number.decimals().max(scale);
                let value = Value {
                    bytes: text.as_bytes(),
                    number,
                    place: (0, 0),
                };
                states.update(0, &value);
            }
            let outcome = states.finish(0, scale);
            let printed = outcome
                .printed(crate::query::accumulator::state::Rounding::Own)
                .unwrap();
            assert!(
                printed.text().starts_with(want),
                "{name}: {}",
                printed.text()
            );
        }
    }
}
