//! Quotients of a window's rows, rounded as a column has them.

use crate::aggregate::lanes::MAGNITUDE_MAX;
use crate::decimal::rational::{Cut, QUOTIENT_DIGITS};
use crate::scan::numbers::{Numbers, SCALE_MAX};

/// A quotient that is less than one has up to so many digits more.
const MORE: usize = (SCALE_MAX - QUOTIENT_DIGITS) as usize;
/// The values of a column may become so many times as large before those with more decimals are left to single records.
const ROOM: u64 = 16;

/// What is made of a quotient.
pub(super) enum Digits {
    /// As [`Rational::stored`](crate::decimal::rational::Rational::stored) has it.
    Stored,
    /// With so many digits after the point.
    Cut(Cut, i32),
    /// Less than zero, zero, or more.
    Sign,
}

/// What quotients are rounded by.
pub(super) struct Quotients {
    digits: Digits,
    /// Decimals of the unit of those that are stored.
    scale: u32,
    /// All so far without their signs in units of the least digits, by `or`.
    magnitudes: u64,
    /// How many digits each row's has after the point.
    places: Vec<u32>,
}

/// What a dividend is multiplied by, and a divisor.
type Factors = Option<(u128, u64)>;

impl Quotients {
    pub(super) fn new(digits: Digits) -> Quotients {
        Quotients {
            digits,
            scale: 0,
            magnitudes: 0,
            places: Vec::new(),
        }
    }

    /// Divides numbers of two scales; rows that it can't be done of are `out`. Returns the scale.
    pub(super) fn divide(
        &mut self,
        to: &mut Numbers,
        by: &Numbers,
        rows: usize,
        [scale, by_scale]: [u32; 2],
        out: &mut Vec<u32>,
    ) -> u32 {
        // By zero it is an error, or null, as single records have it.
        let is_out = |row: &usize| by.values[*row] == 0 && !by.is_null(*row);
        out.extend((0..rows).filter(is_out).map(|row| row as u32));
        let up = by_scale.cast_signed() - scale.cast_signed();
        let (decimals, unit) = match self.digits {
            Digits::Sign => {
                let pairs = to.values[..rows].iter_mut().zip(&by.values[..rows]);
                pairs.for_each(|(to, by)| *to = to.signum() * by.signum());
                to.magnitudes = 1;
                (0, 0)
            }
            Digits::Cut(cut, digits) => {
                let left = digits.max(0).cast_unsigned();
                let factors = factors(up + digits).filter(|_| left <= SCALE_MAX);
                let zeros = digits.min(0).unsigned_abs();
                each(to, by, rows, out, |dividend, divisor, is_negative| {
                    let [whole, rest, divisor] = divided(dividend, divisor, factors)?;
                    let whole = whole + u64::from(cut.is_farther(is_negative, rest, divisor));
                    whole.checked_mul(power(zeros)?)
                });
                (left, left)
            }
            Digits::Stored => self.stored(to, by, rows, up, out),
        };
        to.decimals = decimals;
        unit
    }

    /// Returns the most decimals, and those of the unit.
    fn stored(
        &mut self,
        to: &mut Numbers,
        by: &Numbers,
        rows: usize,
        up: i32,
        out: &mut Vec<u32>,
    ) -> (u32, u32) {
        const LEAST: u32 = QUOTIENT_DIGITS;
        let mut most = 0;
        let all: [Factors; MORE + 1] =
            std::array::from_fn(|more| factors(up + (LEAST as usize + more) as i32));
        self.places.clear();
        each(to, by, rows, out, |dividend, divisor, _| {
            self.places.push(0);
            let found = divided(dividend, divisor, all[0])?;
            self.magnitudes |= found[0];
            // As many zeros follow the point as it has digits less.
            let more = match found[1] {
                0 => 0,
                _ => LEAST.saturating_sub(found[0].checked_ilog10()? + 1),
            };
            let [whole, rest, divisor] = match more {
                0 => found,
                more => divided(dividend, divisor, *all.get(more as usize)?)?,
            };
            let value = whole + u64::from(Cut::Round.is_farther(false, rest, divisor));
            let places = LEAST + more;
            *self.places.last_mut()? = places;
            if value % power(places.saturating_sub(most))? != 0 {
                let zeros = (0..places).take_while(|&zeros| value % 10_u64.pow(zeros + 1) == 0);
                most = places - zeros.count() as u32;
            }
            Some(value)
        });
        let magnitudes = self.magnitudes.saturating_mul(ROOM);
        let fits = |scale: &u32| {
            let factor = power(scale.saturating_sub(LEAST));
            factor.is_some_and(|factor| magnitudes <= MAGNITUDE_MAX / factor)
        };
        let scales = (self.scale + 1..=most).rev();
        let wanted = { scales }.find(|scale| *scale <= LEAST || fits(scale));
        self.scale = wanted.unwrap_or(self.scale);
        to.replace(rows, out, |row, value| {
            let places = self.places[row];
            let up = power(self.scale.saturating_sub(places)).unwrap_or_default();
            let down = power(places.saturating_sub(self.scale)).unwrap_or_default();
            match down {
                1 => value.checked_mul(up.cast_signed()),
                down => {
                    let down = down.cast_signed();
                    (value % down == 0).then_some(value / down)
                }
            }
        });
        (most, self.scale)
    }
}

/// Computes magnitudes of two, and whether theirs is negative; where there is none, or one is null, they are zero.
#[inline(always)]
fn each(
    to: &mut Numbers,
    by: &Numbers,
    rows: usize,
    out: &mut Vec<u32>,
    mut of: impl FnMut(u64, u64, bool) -> Option<u64>,
) {
    to.magnitudes = 0;
    for row in 0..rows {
        let (dividend, mut divisor) = (to.values[row], by.values[row]);
        let is_there = divisor != 0 && !to.is_null(row) && !by.is_null(row);
        let dividend = if is_there { dividend } else { 0 };
        divisor = if is_there { divisor } else { 1 };
        let is_negative = (dividend < 0) != (divisor < 0);
        let found = of(dividend.unsigned_abs(), divisor.unsigned_abs(), is_negative);
        let found = found.filter(|found| *found < MAGNITUDE_MAX);
        if found.is_none() {
            out.push(row as u32);
        }
        let magnitude = found.unwrap_or_default();
        to.magnitudes |= magnitude;
        let value = magnitude.cast_signed();
        to.values[row] = if is_negative { -value } else { value };
    }
}

/// A quotient without its decimals, what is left, and of how much that is the rest.
#[inline(always)]
fn divided(dividend: u64, divisor: u64, factors: Factors) -> Option<[u64; 3]> {
    let (up, down) = factors?;
    let divisor = divisor.checked_mul(down)?;
    let product = u128::from(dividend).checked_mul(up)?;
    // Division of short numbers is much faster.
    if let Ok(short) = u64::try_from(product) {
        return Some([short / divisor, short % divisor, divisor]);
    }
    let whole = product / u128::from(divisor);
    let rest = product - whole * u128::from(divisor);
    Some([u64::try_from(whole).ok()?, rest as u64, divisor])
}

fn factors(up: i32) -> Factors {
    let up_by = 10_u128.checked_pow(up.max(0).cast_unsigned())?;
    Some((up_by, power(up.min(0).unsigned_abs())?))
}

/// A power of ten.
pub(super) fn power(exponent: u32) -> Option<u64> {
    10_u64.checked_pow(exponent)
}
