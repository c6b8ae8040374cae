//! Exact decimals: the grammar of numbers, exact sums, and rounding of sums and means.
//!
//! Numbers come in three sizes, each summed exactly: *tenths*, as the vector kernels read them; *millionths*
//! (up to 12 digits before the point and 6 behind it); and *large* (up to 36 digits on either side of the
//! point, summed in limbs of 18 digits).

use num_bigint::BigInt;
use std::fmt;

/// Digits a number may have on either side of its point, zeros at the outer ends aside.
pub const DIGITS_MAX: usize = 36;

const LIMB: i128 = 1_000_000_000_000_000_000;
const MILLIONTHS_DECIMALS: u32 = 6;
const MILLIONTHS_INTEGER_DIGITS: usize = 12;

/// A number as read: `-?[0-9]+(\.[0-9]+)?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// Up to 12 integer digits and 6 decimals.
    Millionths(i64),
    /// Anything else within [`DIGITS_MAX`].
    Large(Large),
}

/// A number of up to 36 digits on either side of the point. Both parts carry the number's sign, so
/// that comparing part by part compares the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Large {
    integer: i128,
    /// In units of 10^-36.
    fraction: i128,
}

impl From<i64> for Large {
    fn from(millionths: i64) -> Self {
        let unit = 10_i128.pow(MILLIONTHS_DECIMALS);
        let millionths = i128::from(millionths);
        Large {
            integer: millionths / unit,
            fraction: millionths % unit * 10_i128.pow(DIGITS_MAX as u32 - MILLIONTHS_DECIMALS),
        }
    }
}

impl Large {
    fn units(self) -> BigInt {
        BigInt::from(self.integer) * BigInt::from(10_i128.pow(DIGITS_MAX as u32)) + self.fraction
    }
}

/// Reads a number, all of `text`.
///
/// # Errors
/// Why it is none.
pub(crate) fn number(text: &[u8]) -> Result<Number, String> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let mut mantissa = 0_u64;
    let mut at = 0;
    while let Some(digit) = digit_at(digits, at) {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
        at += 1;
    }
    let integer_digits = at;
    let mut fraction_digits = 0;
    if digits.get(at) == Some(&b'.') {
        at += 1;
        while let Some(digit) = digit_at(digits, at) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
            at += 1;
        }
        fraction_digits = at - integer_digits - 1;
        if fraction_digits == 0 {
            return Err(no_number(text));
        }
    }
    if integer_digits == 0 || at != digits.len() {
        return Err(no_number(text));
    }
    if integer_digits <= MILLIONTHS_INTEGER_DIGITS
        && fraction_digits <= MILLIONTHS_DECIMALS as usize
    {
        // At most 18 digits: the mantissa did not wrap.
        let units = (mantissa * 10_u64.pow(MILLIONTHS_DECIMALS - fraction_digits as u32)) as i64;
        return Ok(Number::Millionths(if negative { -units } else { units }));
    }
    let fraction = if fraction_digits == 0 {
        &[]
    } else {
        &digits[integer_digits + 1..]
    };
    large(negative, &digits[..integer_digits], fraction)
}

#[inline]
fn digit_at(text: &[u8], at: usize) -> Option<u64> {
    let digit = text.get(at)?.wrapping_sub(b'0');
    (digit <= 9).then_some(u64::from(digit))
}

#[cold]
fn large(negative: bool, integer: &[u8], fraction: &[u8]) -> Result<Number, String> {
    let leading = integer.iter().take_while(|&&digit| digit == b'0').count();
    let integer = &integer[leading..];
    let trailing = fraction
        .iter()
        .rev()
        .take_while(|&&digit| digit == b'0')
        .count();
    let fraction = &fraction[..fraction.len() - trailing];
    for (side, digits) in [("before", integer), ("after", fraction)] {
        if digits.len() > DIGITS_MAX {
            return Err(format!(
                "number with more than {DIGITS_MAX} digits {side} its point"
            ));
        }
    }
    let value = |digits: &[u8]| {
        digits
            .iter()
            .fold(0_i128, |value, digit| value * 10 + i128::from(digit - b'0'))
    };
    let sign = if negative { -1 } else { 1 };
    Ok(Number::Large(Large {
        integer: sign * value(integer),
        fraction: sign * value(fraction) * 10_i128.pow((DIGITS_MAX - fraction.len()) as u32),
    }))
}

#[cold]
fn no_number(text: &[u8]) -> String {
    const SHOWN_MAX: usize = 40;
    let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN_MAX)]);
    let dots = if text.len() > SHOWN_MAX { "…" } else { "" };
    format!("`{shown}{dots}` is not a number")
}

/// Count, sum, least and greatest of a group's numbers, exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    count: u64,
    /// In millionths; 2^64 rows below 10^18 each stay under 2^124.
    sum: i128,
    min: i64,
    max: i64,
    large: Option<Box<LargeTotals>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LargeTotals {
    /// Most significant first, 10^18 apart, the last in units of 10^-36. Each takes 2^64 addends
    /// below 10^18.
    limbs: [i128; 4],
    min: Large,
    max: Large,
}

/// [`Totals`] without a pointer, so that they can be written to a file as they are.
#[derive(Clone, Copy)]
pub(crate) struct FlatTotals {
    sum: i128,
    /// Meaningless unless `has_large`.
    large: LargeTotals,
    count: u64,
    min: i64,
    max: i64,
    has_large: u64,
}

impl From<&Totals> for FlatTotals {
    fn from(totals: &Totals) -> Self {
        let none = Large {
            integer: 0,
            fraction: 0,
        };
        let no_large = LargeTotals {
            limbs: [0; 4],
            min: none,
            max: none,
        };
        FlatTotals {
            sum: totals.sum,
            large: totals.large.as_deref().copied().unwrap_or(no_large),
            count: totals.count,
            min: totals.min,
            max: totals.max,
            has_large: totals.large.is_some().into(),
        }
    }
}

impl From<&FlatTotals> for Totals {
    fn from(flat: &FlatTotals) -> Self {
        Totals {
            count: flat.count,
            sum: flat.sum,
            min: flat.min,
            max: flat.max,
            large: (flat.has_large == 1).then(|| Box::new(flat.large)),
        }
    }
}

impl Default for Totals {
    fn default() -> Self {
        Totals {
            count: 0,
            sum: 0,
            min: i64::MAX,
            max: i64::MIN,
            large: None,
        }
    }
}

impl Totals {
    /// Totals of `count` rows known in tenths.
    pub(crate) fn of_tenths(count: u64, sum: i64, min: i64, max: i64) -> Self {
        let unit = 100_000;
        let sum = i128::from(sum) * i128::from(unit);
        Totals::of_millionths(count, sum, min * unit, max * unit)
    }

    /// Totals of `count` rows known in millionths.
    pub(crate) fn of_millionths(count: u64, sum: i128, min: i64, max: i64) -> Self {
        Totals {
            count,
            sum,
            min,
            max,
            large: None,
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, number: &Number) {
        self.count += 1;
        match number {
            Number::Millionths(units) => {
                self.sum += i128::from(*units);
                self.min = self.min.min(*units);
                self.max = self.max.max(*units);
            }
            Number::Large(value) => self.add_large(value),
        }
    }

    #[cold]
    fn add_large(&mut self, value: &Large) {
        let Large { integer, fraction } = *value;
        let limbs = [
            integer / LIMB,
            integer % LIMB,
            fraction / LIMB,
            fraction % LIMB,
        ];
        self.merge_large(&LargeTotals {
            limbs,
            min: *value,
            max: *value,
        });
    }

    fn merge_large(&mut self, from: &LargeTotals) {
        match &mut self.large {
            None => self.large = Some(Box::new(*from)),
            Some(into) => {
                for (limb, more) in into.limbs.iter_mut().zip(from.limbs) {
                    *limb += more;
                }
                into.min = into.min.min(from.min);
                into.max = into.max.max(from.max);
            }
        }
    }

    pub(crate) fn merge(&mut self, from: &Totals) {
        self.count += from.count;
        self.sum += from.sum;
        self.min = self.min.min(from.min);
        self.max = self.max.max(from.max);
        if let Some(large) = &from.large {
            self.merge_large(large);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn sum(&self) -> Exact {
        let Some(large) = &self.large else {
            return Exact::new(self.sum, MILLIONTHS_DECIMALS);
        };
        let limb = BigInt::from(LIMB);
        let mut units = BigInt::ZERO;
        for part in large.limbs {
            units = units * &limb + part;
        }
        units += BigInt::from(self.sum) * 10_i128.pow(DIGITS_MAX as u32 - MILLIONTHS_DECIMALS);
        Exact {
            units: Units::Big(units),
            scale: DIGITS_MAX as u32,
        }
    }

    pub(crate) fn min(&self) -> Exact {
        self.extreme(
            self.min,
            |large, small| large.min.min(small.into()),
            |large| large.min,
        )
    }

    pub(crate) fn max(&self) -> Exact {
        self.extreme(
            self.max,
            |large, small| large.max.max(small.into()),
            |large| large.max,
        )
    }

    fn extreme(
        &self,
        small: i64,
        of_both: impl Fn(&LargeTotals, i64) -> Large,
        of_large: impl Fn(&LargeTotals) -> Large,
    ) -> Exact {
        let Some(large) = &self.large else {
            return Exact::new(i128::from(small), MILLIONTHS_DECIMALS);
        };
        let any_small = self.min <= self.max;
        let value = if any_small {
            of_both(large, small)
        } else {
            of_large(large)
        };
        Exact {
            units: Units::Big(value.units()),
            scale: DIGITS_MAX as u32,
        }
    }
}

/// An exact decimal: `units` / 10^`scale`.
#[derive(Clone, Debug)]
pub struct Exact {
    units: Units,
    scale: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Units {
    Small(i128),
    Big(BigInt),
}

impl Units {
    fn into_big(self) -> BigInt {
        match self {
            Units::Small(units) => units.into(),
            Units::Big(units) => units,
        }
    }

    fn of_big(units: BigInt) -> Self {
        match i128::try_from(&units) {
            Ok(small) => Units::Small(small),
            Err(_) => Units::Big(units),
        }
    }
}

impl Exact {
    pub(crate) fn new(units: i128, scale: u32) -> Self {
        Exact {
            units: Units::Small(units),
            scale,
        }
    }

    /// This number over `count`, rounded to `decimals`, ties toward +infinity.
    ///
    /// With the sum at scale s, n rows and p decimals it is `floor((2·sum·10^p + n·10^s) / (2·n·10^s))`.
    ///
    /// # Panics
    /// If `count` is 0.
    pub fn over(&self, count: u64, decimals: u32) -> Fixed {
        if let Units::Small(units) = self.units
            && let Some(units) = over_small(units, self.scale, count, decimals)
        {
            return Fixed {
                units: Units::Small(units),
                decimals,
            };
        }
        let below = BigInt::from(10).pow(self.scale) * count;
        let above = self.units.clone().into_big() * 2 * BigInt::from(10).pow(decimals) + &below;
        let units = floor_div(&above, &(below * 2));
        Fixed {
            units: Units::of_big(units),
            decimals,
        }
    }

    /// This number rounded to `decimals`, ties toward +infinity.
    pub fn round(&self, decimals: u32) -> Fixed {
        if self.scale == decimals {
            return Fixed {
                units: self.units.clone(),
                decimals,
            };
        }
        self.over(1, decimals)
    }

    /// The nearest double of this number in tenths, or one beside it: for styles that compute in
    /// doubles. Exact as long as it is a whole number of tenths below 2^53.
    pub fn tenths_f64(&self) -> f64 {
        match (&self.units, self.scale) {
            (Units::Small(units), 1) => *units as f64,
            (Units::Small(units), MILLIONTHS_DECIMALS) if units % 100_000 == 0 => {
                (units / 100_000) as f64
            }
            _ => {
                let units = self.units.clone().into_big();
                format!("{units}e-{}", self.scale - 1)
                    .parse()
                    .expect("digits and an exponent")
            }
        }
    }
}

fn over_small(units: i128, scale: u32, count: u64, decimals: u32) -> Option<i128> {
    // The common case, without 128-bit arithmetic.
    if scale == decimals
        && let (Ok(units), Ok(count)) = (i32::try_from(units), i32::try_from(count))
    {
        let (units, count) = (i64::from(units), i64::from(count));
        return Some((2 * units + count).div_euclid(2 * count).into());
    }
    // Cancel the powers of ten that both sides share.
    let shared = scale.min(decimals);
    let below = 10_i128
        .checked_pow(scale - shared)?
        .checked_mul(i128::from(count))?;
    let above = units.checked_mul(10_i128.checked_pow(decimals - shared)?)?;
    let above = above.checked_mul(2)?.checked_add(below)?;
    let below = below.checked_mul(2)?;
    // A 64-bit division is several times as fast.
    Some(match (i64::try_from(above), i64::try_from(below)) {
        (Ok(above), Ok(below)) => above.div_euclid(below).into(),
        _ => above.div_euclid(below),
    })
}

fn floor_div(above: &BigInt, below: &BigInt) -> BigInt {
    let quotient = above / below;
    if above < &BigInt::ZERO && &quotient * below != *above {
        quotient - 1
    } else {
        quotient
    }
}

/// A number rounded to fixed decimals. Zero has no sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    units: Units,
    decimals: u32,
}

impl Fixed {
    /// `units` / 10^`decimals`.
    pub fn new(units: i128, decimals: u32) -> Self {
        Fixed {
            units: Units::Small(units),
            decimals,
        }
    }

    /// The number in units of its last decimal, if that fits.
    pub fn units(&self) -> Option<i128> {
        match self.units {
            Units::Small(units) => Some(units),
            Units::Big(_) => None,
        }
    }

    /// Appends the number's text.
    pub fn push_to(&self, out: &mut Vec<u8>) {
        let decimals = self.decimals as usize;
        let mut scratch = [0; 48];
        let big;
        let (negative, digits) = match &self.units {
            Units::Small(units) => {
                let mut at = scratch.len();
                let mut rest = units.unsigned_abs();
                while rest > u128::from(u64::MAX) {
                    at -= 1;
                    scratch[at] = b'0' + (rest % 10) as u8;
                    rest /= 10;
                }
                let mut rest = rest as u64;
                while rest > 0 {
                    at -= 1;
                    scratch[at] = b'0' + (rest % 10) as u8;
                    rest /= 10;
                }
                (*units < 0, &scratch[at..])
            }
            Units::Big(units) => {
                big = units.magnitude().to_string();
                (*units < BigInt::ZERO, big.as_bytes())
            }
        };
        if negative {
            out.push(b'-');
        }
        let (integer, fraction) = digits.split_at(digits.len().saturating_sub(decimals));
        out.extend_from_slice(if integer.is_empty() { b"0" } else { integer });
        if decimals > 0 {
            out.push(b'.');
            out.extend(std::iter::repeat_n(b'0', decimals - fraction.len()));
            out.extend_from_slice(fraction);
        }
    }
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.push_to(&mut text);
        f.pad(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}
