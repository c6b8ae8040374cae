//! `approx_median`, `approx_p99.9`: about the number below which so many percent of all numbers lie, between the two nearest
//! as far as the place asks. Exact while a group has few different numbers. Without `approx_`, the names are those of
//! exact percentiles (`values`), and of what older partials have under them.

use std::ops::RangeInclusive;

use num_bigint::BigInt;

use crate::aggregate::definition::{Definition, Kind};
use crate::aggregate::share::{MORE, Share};
use crate::aggregate::state::{Argument, Digest, Outcome, State, StateColumn, Value};
use crate::aggregate::values;
use crate::decimal::number::{Exact, Special, nearest_each};
use crate::decimal::quotient::Quotient;
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;
use crate::sketch::Sketch;
use crate::sketch::histogram::{Histogram, integer};

/// What the names of estimates begin with.
const APPROX: &str = "approx_";

/// The aggregate of a name such as `p99.9` or `approx_p99.9`.
pub(super) fn named(name: &str) -> Option<Kind> {
    let (definition, name) = match name.strip_prefix(APPROX) {
        None => (&PERCENTILE, name),
        Some(name) => (&APPROX_PERCENTILE, name),
    };
    Share::named(name).map(|share| Kind::percentile(definition, share))
}

static APPROX_PERCENTILE: Definition = Definition::of::<Values>("approx_p");

static PERCENTILE: Definition = Definition::of::<Values>("p").exactly(&values::PERCENTILE);

pub(super) const APPROX_MEDIAN: Definition = Definition::of::<Values>("approx_median").of_half();

pub(super) const MEDIAN: Definition = Definition::of::<Values>("median")
    .of_half()
    .exactly(&values::MEDIAN);

/// The numbers of a group.
#[derive(Default)]
struct Values(Histogram);

fn digest(number: f64) -> u64 {
    integer(number).cast_unsigned()
}

fn digests(numbers: &[i64], scale: u32, to: &mut [u64]) {
    nearest_each(numbers, scale, |row, number| to[row] = digest(number));
}

impl State for Values {
    const ARGUMENT: Argument = Argument::Numbers;
    const IS_QUOTIENT: bool = true;
    const DIGEST: Option<Digest> = Some(Digest::Numbers(digests));
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(Rule::Sketch(Sketch::Histogram))];

    fn update(&mut self, value: &Value<'_>) {
        self.add(digest(value.number.nearest()));
    }

    fn add(&mut self, digest: u64) {
        self.0.add(digest.cast_signed());
    }

    fn note(&mut self, digest: u64) -> bool {
        self.0.note(digest.cast_signed())
    }

    fn prefetch(&self, digest: u64) {
        self.0.prefetch(digest.cast_signed());
    }

    fn merge(&mut self, from: Values) {
        self.0.merge(from.0);
    }

    fn heap(&self) -> usize {
        self.0.bytes()
    }

    fn finish(&self, scale: u32) -> Outcome<'_> {
        self.percentile(Share::HALF, scale)
    }

    fn percentile(&self, share: Share, scale: u32) -> Outcome<'_> {
        percentile(&self.0, share, scale)
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_text(&self.0.encode());
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        Histogram::decode(from[0].text(row)).map(Values)
    }
}

/// The number at a share of all.
pub(crate) fn percentile(numbers: &Histogram, share: Share, scale: u32) -> Outcome<'static> {
    let count = numbers.count();
    if count == 0 {
        return Outcome::Null;
    }
    let (place, rest) = share.place(count);
    let [low, high] = numbers.at(place);
    let high = if rest == 0 { low } else { high };
    let [from, to] =
        [place, if rest == 0 { place } else { place + 1 }].map(|place| numbers.bounds(place));
    let part = rest as f64 / share.divisor as f64;
    let between = |low: f64, high: f64| low * (1.0 - part) + high * part;
    let (least, greatest) = (between(from[0], to[0]), between(from[1], to[1]));
    if least < greatest && least.is_finite() && greatest.is_finite() {
        let estimate = between(low, high);
        return known(estimate, least..=greatest, scale + MORE)
            .unwrap_or_else(|| shortest(estimate, scale))
            .into_outcome();
    }
    let [low, high] = [low, high].map(|number| shortest(number, scale));
    let digits = low.digits.max(high.digits);
    let dividend = share.between(low.number, high.number, rest, scale);
    Outcome::Quotient {
        value: Quotient::new(dividend, share.divisor.into()),
        digits,
    }
}

/// A number and how many digits after its point are known.
struct Estimate {
    number: Exact,
    digits: u32,
}

impl Estimate {
    fn into_outcome(self) -> Outcome<'static> {
        Outcome::Quotient {
            value: Quotient::new(self.number, 1),
            digits: self.digits,
        }
    }
}

/// An estimate of what lies in a range, in units of the greatest power of ten that isn't more than the range's width. It stays in
/// the range.
fn known(estimate: f64, range: RangeInclusive<f64>, digits_max: u32) -> Option<Estimate> {
    let power = (range.end() - range.start()).log10().floor() as i32;
    let digits = (-power).max(0).unsigned_abs().min(digits_max);
    let power = power.max(-(digits.cast_signed()));
    let nearest = (estimate / 10_f64.powi(power)).round();
    let units = [nearest, nearest - 1.0, nearest + 1.0].into_iter();
    let known = units.filter(|units| units.abs() < 1e18).map(|units| {
        let units = BigInt::from(units as i64) * BigInt::from(10).pow(power.max(0).unsigned_abs());
        Estimate {
            number: Exact::new(units, digits),
            digits,
        }
    });
    { known }.find(|known| range.contains(&known.number.nearest()))
}

/// Digits that doubles always keep.
const DOUBLE_DIGITS: i32 = 15;

/// The shortest decimal of a double, with up to so many digits after the point.
fn shortest(value: f64, scale: u32) -> Estimate {
    if let Some(special) = Special::of(value) {
        return Estimate {
            number: Exact::of(special),
            digits: scale + MORE,
        };
    }
    let mut text = value.to_string();
    let decimals = |text: &str| {
        text.split_once('.')
            .map_or(0, |(_, decimals)| decimals.len())
    };
    if decimals(&text) > scale as usize {
        text = format!("{value:.*}", scale as usize);
    }
    let mantissa: BigInt = text.replace('.', "").parse().expect("digits");
    // Of the first digit's place.
    let place = if value == 0.0 {
        0
    } else {
        value.abs().log10().floor() as i32
    };
    let digits = (DOUBLE_DIGITS - 1 - place).max(0).unsigned_abs();
    Estimate {
        number: Exact::new(mantissa, decimals(&text) as u32),
        digits: digits.min(scale + MORE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::state::Rounding;

    #[test]
    fn names() {
        for (name, dividend, divisor) in [
            ("p50", 50, 100),
            ("p050.00", 5000, 10_000),
            ("p99.9", 999, 1000),
            ("p0", 0, 100),
            ("p100", 100, 100),
            ("p99.999900", 99_999_900, 100_000_000),
        ] {
            let share = Share::named(name).unwrap();
            assert_eq!((share.dividend, share.divisor), (dividend, divisor));
            assert_eq!(named(name).unwrap().name(), name);
        }
        let kind = named("approx_p99.9").unwrap();
        assert!(kind.exact().is_none() && kind.is_estimate());
        assert_eq!(kind.name(), "approx_p99.9");
        let exact = named("p50").unwrap().exact().unwrap();
        for (one, other, wanted) in [
            (kind, named("p50").unwrap(), true),
            (kind, exact, false),
            (exact, named("p9").unwrap().exact().unwrap(), true),
        ] {
            assert_eq!(one.shares_states(other), wanted);
            assert_eq!(other.shares_states(one), wanted);
        }
        for name in [
            "approx_50",
            "approx_approx_p50",
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

    /// What docs/estimates.md says: within a 128th of the greater of the two numbers beside the place.
    #[test]
    fn estimates_are_within_their_bound() {
        // `(centre, width)` of clusters.
        for clusters in [
            &[(-1000.0, 1.0), (1000.0, 1.0)][..],
            &[(-1000.0, 1.0), (0.001, 1e-6)],
            &[(1e-9, 1e-12), (1e6, 1.0)],
            &[(-1e300, 1e297), (1e300, 1e297)],
            &[(-1.7e308, 1e305), (1.7e308, 1e305)],
            &[(-3.0, 1.0), (0.0, 1e-3), (3.0, 1.0)],
            &[(131_500.0, 500.0), (1e9, 1e6)],
        ] {
            for each in [1000, 1001, 1333] {
                let mut values = Values::default();
                let mut numbers: Vec<f64> = clusters
                    .iter()
                    .flat_map(|(centre, width)| {
                        // Most lie at one end.
                        (0..each).map(move |at| {
                            centre + width * (f64::from(at) / f64::from(each)).powi(4)
                        })
                    })
                    .collect();
                numbers
                    .iter()
                    .for_each(|number| values.add(digest(*number)));
                numbers.sort_by(f64::total_cmp);
                for name in [
                    "p1", "p25", "p33", "p45", "p50", "p66", "p75", "p99", "p99.9",
                ] {
                    let share = Share::named(name).unwrap();
                    let (place, rest) = share.place(numbers.len() as u64);
                    let part = rest as f64 / share.divisor as f64;
                    let [low, high] =
                        [place, place + u64::from(rest > 0)].map(|at| numbers[at as usize]);
                    let want = low * (1.0 - part) + high * part;
                    let outcome = values.percentile(share, 12);
                    let printed = outcome.printed(Rounding::Own).unwrap();
                    let got: f64 = printed.text().parse().unwrap();
                    let bound = low.abs().max(high.abs()) / 128.0;
                    assert!(
                        (got - want).abs() <= bound * (1.0 + 1e-9),
                        "{clusters:?} {name}: {got}, not {want} ± {bound}"
                    );
                }
            }
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
            let mut states = (kind(name).states)();
            states.push();
            let mut scale = 0;
            for text in values {
                let number = crate::decimal::number::Number::read(text.as_bytes()).unwrap();
                scale = number.decimals().max(scale);
                let value = Value {
                    bytes: text.as_bytes(),
                    number,
                    hash_key: &crate::sketch::distinct::HashKey::NONE,
                    grammar: crate::decimal::number::Grammar::PLAIN,
                    zone: None,
                    place: (0, 0),
                };
                states.update(0, &value);
            }
            let outcome = states.finish(0, kind(name).share, scale);
            let printed = outcome.printed(Rounding::Own).unwrap();
            assert!(
                printed.text().starts_with(want),
                "{name}: {}",
                printed.text()
            );
        }
    }
}
