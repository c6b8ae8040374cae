//! `var`, `stddev`, `var_pop`, `stddev_pop`: from the exact sums of the numbers and of their squares, at the column's
//! scale and 6 digits more, rounded half away from zero. Without `_pop` they are the sample's, null for one number.

use num_bigint::BigInt;

use crate::query::accumulator::state::{Outcome, State, Takes, Value};
use crate::query::lanes::{Kept, Part};
use crate::query::number::{Exact, Number, rounded};

/// Digits beyond the column's.
const MORE: u32 = 6;

pub(super) type Var = Spread<false, false>;
pub(super) type Stddev = Spread<false, true>;
pub(super) type VarPop = Spread<true, false>;
pub(super) type StddevPop = Spread<true, true>;

#[derive(Default)]
pub(super) struct Spread<const POPULATION: bool, const ROOT: bool> {
    count: u64,
    sum: Exact,
    squares: Exact,
}

impl<const POPULATION: bool, const ROOT: bool> State for Spread<POPULATION, ROOT> {
    const TAKES: Takes = Takes::Numbers;
    const PARTS: Option<&'static [Part]> = Some(&[Part::Known, Part::Sum, Part::Squares]);

    fn update(&mut self, value: &Value<'_>) {
        self.count += 1;
        self.sum.add(value.number);
        self.squares.add_square(value.number);
    }

    fn absorb(&mut self, kept: &Kept) {
        let number = |mantissa, scale| Number { mantissa, scale };
        self.count += kept.known;
        self.sum.add(number(kept.sum, kept.scale));
        self.squares.add(number(kept.squares, 2 * kept.scale));
    }

    fn merge(&mut self, from: Self) {
        self.count += from.count;
        self.sum.add_exact(&from.sum);
        self.squares.add_exact(&from.squares);
    }

    fn finish(&self, scale: u32) -> Outcome<'_> {
        let count = BigInt::from(self.count);
        let over = match POPULATION {
            true => count.clone(),
            false => &count - 1,
        };
        if over <= BigInt::ZERO {
            return Outcome::Null;
        }
        // (n Σx² - (Σx)²) / (n (n - 1)), at twice the column's scale.
        let sum: BigInt = self.sum.at(scale);
        let dividend: BigInt = &count * self.squares.at(2 * scale) - &sum * &sum;
        let divisor: BigInt = &count * over;
        let digits = scale + MORE;
        let mantissa = match ROOT {
            // The root of four times the value, rounded down, tells on which side of a half it lies.
            true => {
                let shift = BigInt::from(10).pow(2 * (digits - scale)) * 4;
                let quotient: BigInt = dividend * shift / divisor;
                let twice = quotient.sqrt();
                (twice + 1) / 2
            }
            false => {
                let up = BigInt::from(10).pow(digits.saturating_sub(2 * scale));
                let down = BigInt::from(10).pow((2 * scale).saturating_sub(digits));
                rounded(&(dividend * up), &(divisor * down))
            }
        };
        Outcome::Number(Exact::new(mantissa, digits))
    }
}
