//! Exact decimals: what a field may hold, and sums of any size. Infinities and nan are among them where they are asked
//! for.

mod ordered;

use std::borrow::Cow;
use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

use crate::report::grid::{Digits, with_point};

/// The most digits of a number, leading zeros not counted, and the most after its point.
pub(crate) const DIGITS_MAX: usize = 38;
/// A longer one may have so many digits before and after its point, zeros at the outer ends not counted.
pub(crate) const SIDE_MAX: usize = 36;
/// The low part of a longer one has so many digits.
const LOW: i128 = 10_i128.pow(SIDE_MAX as u32);

/// The most digits before or after the point that an exponent may make where numbers may be long: more than any double
/// has.
const LONG_MAX: i32 = 400;

/// More than any mantissa.
const MANTISSA_MAX: u128 = 10_u128.pow(DIGITS_MAX as u32);

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grammar {
    /// The byte before the decimals.
    pub(crate) decimal_point: u8,
    /// Exponents may put more zeros around the digits than a number has digits.
    pub(crate) is_long: bool,
    /// Infinities and nan are numbers too, and results are doubles.
    pub(crate) is_float: bool,
}

impl Grammar {
    /// Decimals.
    pub(crate) const PLAIN: Grammar = Grammar {
        decimal_point: b'.',
        is_long: false,
        is_float: false,
    };

    /// The same with long ones.
    pub(crate) const LONG: Grammar = Grammar {
        is_long: true,
        ..Grammar::PLAIN
    };

    /// The same with infinities and nan.
    pub(crate) const FLOAT: Grammar = Grammar {
        is_float: true,
        ..Grammar::LONG
    };
}

/// What isn't a decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Special {
    NegativeInfinity,
    Infinity,
    Nan,
}

impl Special {
    /// The sum of two.
    fn plus(self, other: Special) -> Special {
        match self == other {
            true => self,
            false => Special::Nan,
        }
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Special::NegativeInfinity => "-inf",
            Special::Infinity => "inf",
            Special::Nan => "nan",
        }
    }
}

/// A number of a field: `mantissa / 10^scale`, or `(mantissa * LOW + low) / 10^scale` where `low` isn't zero, or none of
/// these.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number {
    mantissa: i128,
    /// Zero, or of the mantissa's sign, which isn't zero then.
    low: i128,
    /// Below zero where an exponent adds zeros.
    scale: i32,
    special: Option<Special>,
}

/// The powers of ten that are doubles, as far as they are needed.
const POWERS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// Calls `take` with the place of each of many numbers in units of `10^-scale`, and with the double nearest to it.
#[inline(always)]
pub(crate) fn nearest_each(numbers: &[i64], scale: u32, mut take: impl FnMut(usize, f64)) {
    let magnitudes = numbers
        .iter()
        .fold(0, |all, number| all | number.unsigned_abs());
    let power = POWERS.get(scale as usize).filter(|_| magnitudes < 1 << 53);
    match power {
        // As in `Number::nearest`.
        Some(power) => {
            for (at, number) in numbers.iter().enumerate() {
                take(at, *number as f64 / power);
            }
        }
        None => {
            for (at, &number) in numbers.iter().enumerate() {
                take(at, Number::new(number.into(), scale).nearest());
            }
        }
    }
}

impl Number {
    pub(crate) const ZERO: Number = Number::new(0, 0);

    pub(crate) const fn new(mantissa: i128, scale: u32) -> Number {
        Number {
            mantissa,
            low: 0,
            scale: scale as i32,
            special: None,
        }
    }

    /// How many digits it has behind the point.
    pub(crate) fn decimals(&self) -> u32 {
        self.scale.max(0) as u32
    }

    /// Whether it is below zero; nan isn't.
    pub(crate) fn is_negative(&self) -> bool {
        match self.special {
            None => self.mantissa < 0,
            Some(special) => special == Special::NegativeInfinity,
        }
    }

    /// The mantissa at a scale that isn't lower, where it fits.
    pub(crate) fn at(&self, scale: u32) -> Option<i128> {
        raised(self, scale)
    }

    /// Reads `[+-]?[0-9]+(\.[0-9]*)?` or `[+-]?\.[0-9]+`, with or without an exponent, blanks around it aside.
    ///
    /// # Errors
    /// Why it isn't one.
    pub(crate) fn read(field: &[u8]) -> Result<Number, String> {
        Number::read_as(field, Grammar::PLAIN)
    }

    /// Reads a number of another grammar.
    ///
    /// # Errors
    /// Why it isn't one.
    pub(crate) fn read_as(field: &[u8], grammar: Grammar) -> Result<Number, String> {
        let text = trim(field);
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        if grammar.is_float
            && let Some(special) = special(text, negative)
        {
            return Ok(special);
        }
        let (digits, exponent) = split_exponent(text).ok_or_else(|| not_a_number(field))?;
        let (mut mantissa, mut seen, mut significant) = (0_i128, 0, 0);
        // Zeros past the limit change the scale alone.
        let (mut zeros, mut is_too_long) = (0, false);
        let mut point = None;
        for (at, &byte) in digits.iter().enumerate() {
            match byte {
                b'0'..=b'9' => {
                    seen += 1;
                    significant += usize::from(significant > 0 || byte != b'0');
                    if significant > DIGITS_MAX {
                        zeros += 1;
                        is_too_long |= byte != b'0';
                    } else {
                        mantissa = mantissa * 10 + i128::from(byte - b'0');
                    }
                }
                byte if byte == grammar.decimal_point && point.is_none() => point = Some(at),
                _ => return Err(not_a_number(field)),
            }
        }
        if seen == 0 {
            return Err(not_a_number(field));
        }
        let decimals = point.map_or(0, |point| digits.len() - point - 1) as i64;
        if negative {
            mantissa = -mantissa;
        }
        let scale = decimals - zeros - i64::from(exponent);
        let fitted = fitted(mantissa, scale, decimals, grammar).filter(|_| !is_too_long);
        let long = || long(digits, point, negative).filter(|_| exponent == 0);
        match fitted.or_else(long) {
            Some(number) => Ok(number),
            None if exponent != 0 && scale.abs() > LONG_MAX.into() => Err(format!(
                "the exponent of `{}` is past the limit of {LONG_MAX} digits",
                shown(field)
            )),
            None => {
                let limit = match point {
                    Some(_) if exponent == 0 => {
                        format!("{SIDE_MAX} digits before or after its point")
                    }
                    _ => format!("{DIGITS_MAX} digits"),
                };
                Err(format!(
                    "`{}` has more than {limit}, which is the limit",
                    shown(field)
                ))
            }
        }
    }

    /// The nearest double.
    pub(crate) fn nearest(&self) -> f64 {
        let power = usize::try_from(self.scale)
            .ok()
            .and_then(|scale| POWERS.get(scale));
        match power {
            Some(power)
                if self.special.is_none()
                    && self.low == 0
                    && self.mantissa.unsigned_abs() < 1 << 53 =>
            {
                // Both are doubles, so their quotient is rounded once. 128 bits would take a call.
                self.mantissa as i64 as f64 / power
            }
            _ => self.exact().nearest(),
        }
    }

    pub(crate) fn exact(self) -> Exact {
        if let Some(special) = self.special {
            return Exact {
                scale: 0,
                mantissa: Mantissa::Special(special),
            };
        }
        match u32::try_from(self.scale) {
            Ok(scale) if self.low != 0 => Exact::new(self.whole(), scale),
            Ok(scale) => Exact::small(self.mantissa, scale),
            Err(_) => {
                let zeros = BigInt::from(10).pow(self.scale.unsigned_abs());
                Exact::new(zeros * self.mantissa, 0)
            }
        }
    }

    /// The mantissa with its low part.
    fn whole(&self) -> BigInt {
        BigInt::from(self.mantissa) * LOW + self.low
    }

    /// The same value as one that a field may hold; `None` if none does.
    pub(crate) fn of(exact: &Exact) -> Option<Number> {
        if let Some(special) = exact.special() {
            return Some(Number {
                special: Some(special),
                ..Number::ZERO
            });
        }
        let fits = |mantissa: &i128| mantissa.unsigned_abs() < MANTISSA_MAX;
        if let (Some(mantissa), scale) = exact.parts()
            && fits(&mantissa)
        {
            return Some(Number::new(mantissa, scale));
        }
        // Zeros at its end aren't needed.
        let (mut mantissa, mut scale) = (exact.mantissa.big(), exact.scale as i32);
        for zeros in [16, 4, 1] {
            let power = BigInt::from(10_u64.pow(zeros));
            loop {
                let small = i128::try_from(&mantissa).ok().filter(fits);
                if let Some(mantissa) = small {
                    return Some(Number {
                        mantissa,
                        scale,
                        ..Number::ZERO
                    });
                }
                let shorter = &mantissa / &power;
                if &shorter * &power != mantissa {
                    break;
                }
                (mantissa, scale) = (shorter, scale - zeros as i32);
            }
        }
        let high = i128::try_from(&mantissa / LOW).ok()?;
        let low = i128::try_from(&mantissa % LOW).ok()?;
        let decimals = usize::try_from(scale).ok()?;
        let digits = SIDE_MAX + high.unsigned_abs().to_string().len();
        (digits <= SIDE_MAX + decimals && decimals <= SIDE_MAX).then_some(Number {
            mantissa: high,
            low,
            scale,
            special: None,
        })
    }
}

/// The number `mantissa / 10^scale`, written with so many decimals, if a grammar has it.
fn fitted(mut mantissa: i128, mut scale: i64, decimals: i64, grammar: Grammar) -> Option<Number> {
    let limit = match grammar.is_long {
        true => LONG_MAX,
        false => DIGITS_MAX as i32,
    };
    if mantissa == 0 {
        return Some(Number::new(0, decimals.min(DIGITS_MAX as i64) as u32));
    }
    while scale > limit.into() && mantissa % 10 == 0 {
        (mantissa, scale) = (mantissa / 10, scale - 1);
    }
    if scale < 0
        && let Some(whole) = Number::new(mantissa, 0).at(u32::try_from(-scale).ok()?)
        && whole.unsigned_abs() < MANTISSA_MAX
    {
        (mantissa, scale) = (whole, 0);
    }
    let is_fitting =
        scale <= limit.into() && (scale >= 0 || grammar.is_long && -scale <= limit.into());
    is_fitting.then_some(Number {
        mantissa,
        scale: scale as i32,
        ..Number::ZERO
    })
}

/// A number of more than [`DIGITS_MAX`] digits, if there are no more than [`SIDE_MAX`] on either side of the point.
#[cold]
fn long(digits: &[u8], point: Option<usize>, is_negative: bool) -> Option<Number> {
    let (whole, decimals) = digits.split_at(point?);
    let zeros = whole.iter().take_while(|digit| **digit == b'0').count();
    let whole = &whole[zeros..];
    let last = decimals.iter().rposition(|digit| *digit != b'0')?;
    let decimals = &decimals[1..=last];
    if whole.len() > SIDE_MAX || decimals.len() > SIDE_MAX {
        return None;
    }
    let all = [whole, decimals].concat();
    let (high, low) = all.split_at(all.len().checked_sub(SIDE_MAX)?);
    let sign = if is_negative { -1 } else { 1 };
    let value = |digits: &[u8]| {
        let digits = digits.iter().map(|digit| i128::from(digit - b'0'));
        sign * digits.fold(0, |value, digit| 10 * value + digit)
    };
    Some(Number {
        mantissa: value(high),
        low: value(low),
        scale: decimals.len() as i32,
        special: None,
    })
}

/// An infinity or nan, behind its sign.
fn special(text: &[u8], is_negative: bool) -> Option<Number> {
    let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
    let special = match is_negative {
        _ if is("nan") => Special::Nan,
        true if is("inf") || is("infinity") => Special::NegativeInfinity,
        false if is("inf") || is("infinity") => Special::Infinity,
        _ => return None,
    };
    Some(Number {
        special: Some(special),
        ..Number::ZERO
    })
}

/// Cuts an exponent off; `None` if it isn't a number.
fn split_exponent(text: &[u8]) -> Option<(&[u8], i32)> {
    let Some(at) = text.iter().position(|byte| matches!(byte, b'e' | b'E')) else {
        return Some((text, 0));
    };
    let (negative, digits) = match &text[at + 1..] {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |value: i32, digit: &u8| {
        value
            .saturating_mul(10)
            .saturating_add((digit - b'0').into())
    };
    // Far past the limit it is only too large.
    let value = digits.iter().fold(0, add).min(i32::MAX / 2);
    Some((&text[..at], if negative { -value } else { value }))
}

fn not_a_number(field: &[u8]) -> String {
    format!("`{}` is not a number", shown(field))
}

/// As much of a field as an error shows.
pub(crate) fn shown(field: &[u8]) -> Cow<'_, str> {
    const MOST: usize = 40;
    match field.len() > MOST {
        false => String::from_utf8_lossy(field),
        true => format!("{}…", String::from_utf8_lossy(&field[..MOST])).into(),
    }
}

/// A field without the blanks around it.
fn trim(mut field: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = field {
        field = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = field {
        field = rest;
    }
    field
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    /// By value: 1.0 is 1, and nan is greater than all others.
    fn cmp(&self, other: &Number) -> Ordering {
        if self.special.is_some() || other.special.is_some() {
            return special_order(self.special, other.special);
        }
        if self.scale == other.scale && (self.low, other.low) == (0, 0) {
            return self.mantissa.cmp(&other.mantissa);
        }
        let scale = self.scale.max(other.scale).max(0) as u32;
        match (raised(self, scale), raised(other, scale)) {
            (Some(one), Some(two)) => one.cmp(&two),
            _ => (self.exact().at(scale)).cmp(&other.exact().at(scale)),
        }
    }
}

/// The order of two values of which one is special at least.
fn special_order(one: Option<Special>, two: Option<Special>) -> Ordering {
    let rank = |special: Option<Special>| match special {
        Some(Special::NegativeInfinity) => 0,
        None => 1,
        Some(Special::Infinity) => 2,
        Some(Special::Nan) => 3,
    };
    rank(one).cmp(&rank(two))
}

/// The mantissa at a scale that isn't lower, where it fits.
fn raised(number: &Number, scale: u32) -> Option<i128> {
    if number.special.is_some() || number.low != 0 {
        return None;
    }
    let zeros = u32::try_from(i64::from(scale) - i64::from(number.scale)).ok()?;
    let factor = 10_i128.checked_pow(zeros)?;
    number.mantissa.checked_mul(factor)
}

/// An exact value of any size: `mantissa / 10^scale`, or a special one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exact {
    mantissa: Mantissa,
    scale: u32,
}

#[derive(Debug, Clone)]
enum Mantissa {
    Small(i128),
    Big(Box<BigInt>),
    Special(Special),
}

impl Default for Mantissa {
    fn default() -> Mantissa {
        Mantissa::Small(0)
    }
}

impl Mantissa {
    fn big(&self) -> BigInt {
        match self {
            Mantissa::Small(small) => BigInt::from(*small),
            Mantissa::Big(big) => (**big).clone(),
            Mantissa::Special(_) => unreachable!("digits of a special value"),
        }
    }
}

impl Exact {
    pub(crate) fn add(&mut self, number: Number) {
        if let Mantissa::Small(sum) = &mut self.mantissa
            && number.special.is_none()
            && number.low == 0
        {
            if number.scale == self.scale as i32
                && let Some(both) = sum.checked_add(number.mantissa)
            {
                *sum = both;
                return;
            }
            if *sum == 0 && number.scale > self.scale as i32 {
                (*sum, self.scale) = (number.mantissa, number.decimals());
                return;
            }
            let scale = self.scale.max(number.decimals());
            let old = Number::new(*sum, self.scale);
            if let (Some(one), Some(two)) = (raised(&old, scale), raised(&number, scale))
                && let Some(both) = one.checked_add(two)
            {
                (*sum, self.scale) = (both, scale);
                return;
            }
        }
        self.add_exact(&number.exact());
    }

    /// Adds the square of a number.
    pub(crate) fn add_square(&mut self, number: Number) {
        if number.special.is_none()
            && number.low == 0
            && let Ok(scale) = u32::try_from(2 * number.scale)
            && let Some(mantissa) = number.mantissa.checked_mul(number.mantissa)
        {
            return self.add(Number::new(mantissa, scale));
        }
        let exact = number.exact();
        self.add_exact(&match exact.special() {
            // The square of either infinity.
            Some(Special::NegativeInfinity) => Exact::of(Special::Infinity),
            Some(_) => exact,
            None => {
                let mantissa = exact.at(exact.scale);
                Exact::new(&mantissa * &mantissa, 2 * exact.scale)
            }
        });
    }

    pub(crate) fn add_exact(&mut self, other: &Exact) {
        match (self.special(), other.special()) {
            (None, None) => {}
            (Some(one), Some(two)) => return *self = Exact::of(one.plus(two)),
            (one, two) => {
                let special = one.or(two).expect("one of them is");
                return *self = Exact::of(special);
            }
        }
        if let (&Mantissa::Small(one), &Mantissa::Small(two)) = (&self.mantissa, &other.mantissa) {
            let scale = self.scale.max(other.scale);
            let one = raised(&Number::new(one, self.scale), scale);
            let two = raised(&Number::new(two, other.scale), scale);
            if let (Some(one), Some(two)) = (one, two)
                && let Some(both) = one.checked_add(two)
            {
                *self = Exact::small(both, scale);
                return;
            }
        }
        let scale = self.scale.max(other.scale);
        *self = Exact::new(self.at(scale) + other.at(scale), scale);
    }

    /// The same with the other sign.
    #[must_use]
    pub(crate) fn negated(self) -> Exact {
        let mantissa = match self.mantissa {
            Mantissa::Special(Special::Infinity) => Mantissa::Special(Special::NegativeInfinity),
            Mantissa::Special(Special::NegativeInfinity) => Mantissa::Special(Special::Infinity),
            Mantissa::Special(Special::Nan) => Mantissa::Special(Special::Nan),
            Mantissa::Small(_) | Mantissa::Big(_) => {
                return Exact::new(-self.mantissa.big(), self.scale);
            }
        };
        Exact {
            mantissa,
            scale: self.scale,
        }
    }

    pub(crate) fn of(special: Special) -> Exact {
        Exact {
            mantissa: Mantissa::Special(special),
            scale: 0,
        }
    }

    /// What it is if it isn't a decimal. All that asks for digits asks this first.
    pub(crate) fn special(&self) -> Option<Special> {
        match self.mantissa {
            Mantissa::Special(special) => Some(special),
            Mantissa::Small(_) | Mantissa::Big(_) => None,
        }
    }

    /// The nearest double.
    pub(crate) fn nearest(&self) -> f64 {
        // The library reads decimals of any length exactly, and knows the words.
        self.text().parse().expect("a decimal, inf or nan")
    }

    /// The decimal logarithm of its absolute value, about; `None` of zero and special values.
    pub(crate) fn magnitude(&self) -> Option<f64> {
        let bits = match &self.mantissa {
            Mantissa::Small(small) => 128 - u64::from(small.unsigned_abs().leading_zeros()),
            Mantissa::Big(big) => big.magnitude().bits(),
            Mantissa::Special(_) => 0,
        };
        (bits > 0).then(|| bits as f64 * std::f64::consts::LOG10_2 - f64::from(self.scale))
    }

    pub(crate) fn small(mantissa: i128, scale: u32) -> Exact {
        let mantissa = Mantissa::Small(mantissa);
        Exact { mantissa, scale }
    }

    /// The mantissa, if it fits 128 bits, and the scale.
    pub(crate) fn parts(&self) -> (Option<i128>, u32) {
        match self.mantissa {
            Mantissa::Small(small) => (Some(small), self.scale),
            Mantissa::Big(_) | Mantissa::Special(_) => (None, self.scale),
        }
    }

    pub(crate) fn new(mantissa: BigInt, scale: u32) -> Exact {
        let mantissa = match i128::try_from(&mantissa) {
            Ok(small) => Mantissa::Small(small),
            Err(_) => Mantissa::Big(Box::new(mantissa)),
        };
        Exact { mantissa, scale }
    }

    /// The mantissa at a scale that the value needs no digit beyond.
    pub(crate) fn at(&self, scale: u32) -> BigInt {
        let power = BigInt::from(10).pow(scale.abs_diff(self.scale));
        match scale < self.scale {
            true => self.mantissa.big() / power,
            false => self.mantissa.big() * power,
        }
    }

    /// The same value with so many digits behind the point, not fewer than it needs.
    #[must_use]
    pub(crate) fn with_scale(self, scale: u32) -> Exact {
        match self.mantissa {
            Mantissa::Special(_) => return self,
            Mantissa::Small(mantissa) => {
                if let Some(mantissa) = raised(&Number::new(mantissa, self.scale), scale) {
                    return Exact::small(mantissa, scale);
                }
            }
            Mantissa::Big(_) => {}
        }
        Exact::new(self.at(scale), scale)
    }

    /// As `-?digits(.digits)?`; zero has no sign. Special values are `inf`, `-inf` and `nan`.
    pub(crate) fn digits(&self) -> Digits<'static> {
        match &self.mantissa {
            Mantissa::Small(small) => Digits::decimal(*small, self.scale),
            Mantissa::Big(big) => {
                let digits = big.magnitude().to_string();
                with_point(big.sign() == Sign::Minus, digits, self.scale).into()
            }
            Mantissa::Special(special) => special.text().into(),
        }
    }

    /// The same as a string.
    pub(crate) fn text(&self) -> String {
        self.digits().to_string()
    }
}

impl PartialEq for Exact {
    fn eq(&self, other: &Exact) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Exact {}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Exact) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Exact {
    fn cmp(&self, other: &Exact) -> Ordering {
        if let (&Mantissa::Small(one), &Mantissa::Small(two)) = (&self.mantissa, &other.mantissa) {
            return Number::new(one, self.scale).cmp(&Number::new(two, other.scale));
        }
        if self.special().is_some() || other.special().is_some() {
            return special_order(self.special(), other.special());
        }
        let scale = self.scale.max(other.scale);
        self.at(scale).cmp(&other.at(scale))
    }
}

/// `dividend / divisor`, rounded half away from zero; the divisor is positive.
pub(crate) fn rounded(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let twice = dividend.magnitude() * 2_u32 + divisor.magnitude();
    let quotient = BigInt::from(twice / (divisor.magnitude() * 2_u32));
    match dividend.sign() {
        Sign::Minus => -quotient,
        _ => quotient,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_grammar() {
        for (text, want) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.00", "0.00"),
            ("+1", "1"),
            ("5.", "5"),
            (".5", "0.5"),
            ("-.50", "-0.50"),
            (" \t12.5 ", "12.5"),
            ("00012", "12"),
            (
                "99999999999999999999999999999999999999",
                "99999999999999999999999999999999999999",
            ),
            (
                "-0.00000000000000000000000000000000000001",
                "-0.00000000000000000000000000000000000001",
            ),
            (
                "123456789012345678901234567890123456.123456789012345678901234567890123456",
                "123456789012345678901234567890123456.123456789012345678901234567890123456",
            ),
            (
                "-00100000000000000000000000000000000000.0000000000000000000000000000000000010",
                "-100000000000000000000000000000000000.000000000000000000000000000000000001",
            ),
            ("1e3", "1000"),
            ("-1.5E+2", "-150"),
            ("1.2e-9", "0.0000000012"),
            ("1e37", "10000000000000000000000000000000000000"),
            ("0e999999999999", "0"),
            // Zeros past the limit.
            (
                "0.1000000000000000000000000000000000000000000000",
                "0.10000000000000000000000000000000000000",
            ),
            (
                "-0.0010000000000000000000000000000000000000000000",
                "-0.00100000000000000000000000000000000000",
            ),
            (
                "0.000000000000000000000000000000000000000",
                "0.00000000000000000000000000000000000000",
            ),
        ] {
            let number = Number::read(text.as_bytes()).unwrap();
            assert_eq!(number.exact().text(), want, "{text}");
        }
        for text in [
            "", " ", "-", "+", ".", "-.", "1.2.3", "1,5", "--1", "+-1", "1 2", "0x1", "nan", "٣",
            "1e", "e3",
        ] {
            let error = Number::read(text.as_bytes()).unwrap_err();
            assert_eq!(error, format!("`{text}` is not a number"));
        }
        for text in [
            "100000000000000000000000000000000000000",
            "0.000000000000000000000000000000000000001",
            "123456789012345678901234567890123456789012345678901234567890",
            "1e38",
            "1e-39",
            "12e-38e",
        ] {
            let error = Number::read(text.as_bytes()).unwrap_err();
            let is_right = match text.ends_with('e') {
                true => error.ends_with("is not a number"),
                false => error.ends_with("which is the limit"),
            };
            assert!(is_right, "{error}");
        }
    }

    const FLOAT: Grammar = Grammar::FLOAT;

    #[test]
    fn the_grammar_of_floats() {
        for (text, want) in [
            ("1e3", "1000"),
            ("-1.5E+2", "-150"),
            ("2.50e-3", "0.00250"),
            ("1e-5", "0.00001"),
            ("0e999999999999", "0"),
            ("+inf", "inf"),
            ("-Infinity", "-inf"),
            (" NaN ", "nan"),
            ("-nan", "nan"),
            ("1e39", "1000000000000000000000000000000000000000"),
            (
                "1000000000000000000000000000000000000000",
                "1000000000000000000000000000000000000000",
            ),
        ] {
            let number = Number::read_as(text.as_bytes(), FLOAT).unwrap();
            assert_eq!(number.exact().text(), want, "{text}");
        }
        for text in [
            "e3", "1e", "1e+", "1e1.5", "1 e3", "in", "infinite", "+-inf", "1e3e3",
        ] {
            let error = Number::read_as(text.as_bytes(), FLOAT).unwrap_err();
            assert_eq!(error, format!("`{text}` is not a number"));
        }
        for text in ["1e401", "1e-401", "-1e99999999999999999999"] {
            let error = Number::read_as(text.as_bytes(), FLOAT).unwrap_err();
            let why = format!("the exponent of `{text}` is past the limit of 400 digits");
            assert_eq!(error, why);
        }
    }

    #[test]
    fn special_values() {
        let number = |text: &str| Number::read_as(text.as_bytes(), FLOAT).unwrap();
        let sum = |texts: &[&str]| {
            let mut sum = Exact::default();
            texts.iter().for_each(|text| sum.add(number(text)));
            sum
        };
        for (texts, want) in [
            (&["1", "inf", "2"][..], "inf"),
            (&["-inf", "1e300"], "-inf"),
            (&["inf", "-inf"], "nan"),
            (&["nan", "inf", "1"], "nan"),
        ] {
            assert_eq!(sum(texts).text(), want);
            let backwards: Vec<_> = texts.iter().rev().copied().collect();
            assert_eq!(sum(&backwards).text(), want);
        }
        let ordered = [
            "-inf", "-1e50", "-1", "0", "1e-300", "1e-299", "1", "1e38", "1e50", "inf", "nan",
        ];
        for (at, one) in ordered.iter().enumerate() {
            for (other_at, other) in ordered.iter().enumerate() {
                let (one, other) = (number(one), number(other));
                assert_eq!(one.cmp(&other), at.cmp(&other_at));
                assert_eq!(one.exact().cmp(&other.exact()), at.cmp(&other_at));
            }
        }
    }

    fn number() -> impl Strategy<Value = Number> {
        let most = 10_i128.pow(38) - 1;
        let mantissa = prop_oneof![-most..=most, -1000..1000_i128];
        (mantissa, 0..=38_u32).prop_map(|(mantissa, scale)| Number::new(mantissa, scale))
    }

    proptest! {
        /// Against big integers at the greatest scale, in one order and split in two.
        #[test]
        fn sums_are_exact(numbers in prop::collection::vec(number(), 0..20), cut in 0..20_usize) {
            let big = |n: &Number| BigInt::from(n.mantissa) * BigInt::from(10).pow(38 - n.decimals());
            let want = Exact::new(numbers.iter().map(big).sum(), 38);
            let (mut all, mut halves) = (Exact::default(), [Exact::default(), Exact::default()]);
            for (at, number) in numbers.iter().enumerate() {
                all.add(*number);
                halves[usize::from(at < cut)].add(*number);
            }
            let [mut one, two] = halves;
            one.add_exact(&two);
            prop_assert_eq!(all.with_scale(38).text(), want.text());
            prop_assert_eq!(one.with_scale(38).text(), want.text());
            let squares = numbers.iter().map(|n| big(n) * big(n)).sum::<BigInt>();
            let mut square = Exact::default();
            for number in &numbers {
                square.add_square(*number);
            }
            prop_assert_eq!(square.with_scale(76).text(), Exact::new(squares, 76).text());
        }

        /// A float's value is the decimal's that it is written as, so its double is that of the standard library.
        #[test]
        fn floats_are_read_as_the_standard_library_does(value: f64) {
            for text in [format!("{value}"), format!("{value:e}"), format!("{value:?}")] {
                let Ok(number) = Number::read_as(text.as_bytes(), FLOAT) else {
                    // Without an exponent, doubles may have hundreds of digits.
                    prop_assert!(text.len() > DIGITS_MAX);
                    continue;
                };
                let nearest = number.exact().nearest();
                prop_assert_eq!(number.nearest().to_bits(), (nearest + 0.0).to_bits());
                prop_assert!(nearest == value || nearest.is_nan() && value.is_nan(), "{}", text);
            }
        }

        #[test]
        fn texts_are_those_of_big_integers(mantissa: i128, short in -1000..1000_i128, scale in 0..=38_u32) {
            for mantissa in [mantissa, short, mantissa >> 64] {
                let mantissa = Mantissa::Big(Box::new(BigInt::from(mantissa)));
                let big = Exact { mantissa, scale };
                let small = Exact::new(big.mantissa.big(), scale);
                prop_assert_eq!(small.text(), big.text());
            }
        }

        #[test]
        fn order_is_by_value(one in number(), two in number()) {
            let big = |n: Number| BigInt::from(n.mantissa) * BigInt::from(10).pow(38 - n.decimals());
            prop_assert_eq!(one.cmp(&two), big(one).cmp(&big(two)));
            prop_assert_eq!(one.exact().cmp(&two.exact()), big(one).cmp(&big(two)));
        }
    }
}
