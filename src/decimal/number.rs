//! Exact decimals: what a field may hold, and sums of any size. Infinities and nan are among them where they are asked
//! for.

mod exact;
mod ordered;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;

use num_bigint::BigInt;

pub(crate) use exact::Exact;
pub(crate) use ordered::ordered_length;

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
    /// The one that a double is, if it is no number.
    pub(crate) fn of(value: f64) -> Option<Special> {
        match value {
            f64::INFINITY => Some(Special::Infinity),
            f64::NEG_INFINITY => Some(Special::NegativeInfinity),
            value => value.is_nan().then_some(Special::Nan),
        }
    }

    fn negated(self) -> Special {
        match self {
            Special::NegativeInfinity => Special::Infinity,
            Special::Infinity => Special::NegativeInfinity,
            Special::Nan => Special::Nan,
        }
    }

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

    /// The same with the other sign.
    #[must_use]
    pub(crate) fn negated(self) -> Number {
        Number {
            mantissa: -self.mantissa,
            low: -self.low,
            special: self.special.map(Special::negated),
            ..self
        }
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

    /// The mantissa with its low part.
    fn whole(&self) -> BigInt {
        BigInt::from(self.mantissa) * LOW + self.low
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

/// `dividend / divisor`, rounded half away from zero; the divisor is positive.
pub(crate) fn rounded(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let twice = dividend.magnitude() * 2_u32 + divisor.magnitude();
    let quotient = BigInt::from(twice / (divisor.magnitude() * 2_u32));
    match dividend.sign() {
        num_bigint::Sign::Minus => -quotient,
        _ => quotient,
    }
}
