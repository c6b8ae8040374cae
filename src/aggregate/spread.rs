//! `var`, `stddev`, `var_pop`, `stddev_pop`: from the exact sums of the numbers and of their squares, printed at
//! the column's scale and 6 digits more. Without `_pop` they are the sample's, null for one number.

use num_bigint::BigInt;

use crate::aggregate::lanes::{Kept, Part};
use crate::aggregate::state::{Argument, Outcome, State, StateColumn, Value};
use crate::decimal::number::{Exact, Number, Special};
use crate::decimal::quotient::Quotient;
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;

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
    const ARGUMENT: Argument = Argument::Numbers;
    const IS_QUOTIENT: bool = true;
    const PARTS: Option<&'static [Part]> = Some(&[Part::Known, Part::Sum, Part::Squares]);
    const COLUMNS: &'static [StateColumn] = &[
        StateColumn::of(Rule::Count),
        StateColumn::of(Rule::Sum),
        StateColumn {
            rule: Rule::Sum,
            is_squared: true,
        },
    ];

    fn update(&mut self, value: &Value<'_>) {
        self.count += 1;
        self.sum.add(value.number);
        self.squares.add_square(value.number);
    }

    fn absorb(&mut self, kept: &Kept) {
        self.count += kept.known;
        self.sum.add(Number::new(kept.sum, kept.scale));
        self.squares.add(Number::new(kept.squares, 2 * kept.scale));
    }

    fn merge(&mut self, from: Self) {
        self.count += from.count;
        self.sum.add_exact(&from.sum);
        self.squares.add_exact(&from.squares);
    }

    fn finish(&self, scale: u32) -> Outcome<'_> {
        let over = match POPULATION {
            true => self.count,
            false => self.count.saturating_sub(1),
        };
        if over == 0 {
            return Outcome::Null;
        }
        if self.squares.special().is_some() {
            return Outcome::Quotient {
                value: Quotient::new(Exact::of(Special::Nan), 1),
                digits: scale + MORE,
            };
        }
        // (n Σx² - (Σx)²) / (n (n - 1)), at twice the column's scale.
        let sum: BigInt = self.sum.at(scale);
        let dividend: BigInt = self.squares.at(2 * scale) * self.count - &sum * &sum;
        let divisor = u128::from(self.count) * u128::from(over);
        let value = Quotient::new(Exact::new(dividend, 2 * scale), divisor);
        Outcome::Quotient {
            value: if ROOT { value.root() } else { value },
            digits: scale + MORE,
        }
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_count(self.count);
        to[1].push_exact(Some(&self.sum));
        to[2].push_exact(Some(&self.squares));
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        let count = from[0].count(row);
        let sum = from[1].exact(row).unwrap_or_default();
        let squares = from[2].exact(row).unwrap_or_default();
        let is_possible = match (sum.special(), squares.special()) {
            (None, None) => {
                // So it is for all numbers, and then no variance is below zero.
                let scale = from[1].column.scale.max(from[2].column.scale.div_ceil(2));
                let total: BigInt = sum.at(scale);
                squares.at(2 * scale) * count >= &total * &total
            }
            (_, squares) => squares.is_some(),
        };
        match is_possible {
            true => Ok(Self {
                count,
                sum,
                squares,
            }),
            false => Err("a sum of squares is too small"),
        }
    }
}
