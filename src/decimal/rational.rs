//! What is computed of numbers: a decimal, or a quotient of two. Nothing is rounded before it is stored.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Sub;

use num_bigint::BigInt;
use num_integer::Integer;

use crate::decimal::number::{DIGITS_MAX, Exact, Grammar, Number, SIDE_MAX, Special, rounded};
use crate::decimal::quotient::Quotient;

/// A quotient that is stored has so many digits after the point, and so many significant ones.
pub(crate) const QUOTIENT_DIGITS: u32 = 12;
/// The most digits after the point of one that is stored.
const SCALE_MAX: u32 = 36;
/// More digits than are printed of a number, and the most after the point of a double.
const LONG_DIGITS: u32 = 110;
const DOUBLE_DIGITS: u32 = 1000;
/// The most bits of what is computed, and the most of its decimals as four bits each: more than any number that can be stored has, by far.
const BITS_MAX: u64 = 1 << 14;

/// `dividend / divisor`.
#[derive(Debug, Clone)]
pub(crate) struct Rational {
    dividend: Exact,
    /// More than zero, and no special value; `None` is one.
    divisor: Option<Box<Exact>>,
}

impl From<Exact> for Rational {
    fn from(dividend: Exact) -> Rational {
        Rational {
            dividend,
            divisor: None,
        }
    }
}

impl From<Number> for Rational {
    fn from(number: Number) -> Rational {
        number.exact().into()
    }
}

impl From<i64> for Rational {
    fn from(number: i64) -> Rational {
        Exact::small(number.into(), 0).into()
    }
}

/// How a number loses its further digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// To the nearest, halves away from zero.
    Round,
    Floor,
    Ceiling,
    Truncate,
}

impl Cut {
    /// Whether what was cut towards zero, with a rest of a divisor, is one farther from it.
    #[inline(always)]
    pub(crate) fn is_farther<T>(self, is_negative: bool, rest: T, divisor: T) -> bool
    where
        T: Copy + PartialOrd + Default + Sub<Output = T>,
    {
        match self {
            Cut::Truncate => false,
            Cut::Floor => is_negative && rest > T::default(),
            Cut::Ceiling => !is_negative && rest > T::default(),
            Cut::Round => rest >= divisor - rest,
        }
    }
}

impl Rational {
    pub(crate) fn special(&self) -> Option<Special> {
        self.dividend.special()
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.dividend == Exact::default()
    }

    /// Whether it is a decimal.
    pub(crate) fn is_decimal(&self) -> bool {
        self.divisor.is_none()
    }

    fn divisor(&self) -> Cow<'_, Exact> {
        match &self.divisor {
            Some(divisor) => Cow::Borrowed(divisor),
            None => Cow::Owned(Exact::small(1, 0)),
        }
    }

    /// By doubles where one is infinite or nan.
    fn special_of(&self, other: &Rational, of: fn(f64, f64) -> f64) -> Option<Rational> {
        self.special().or(other.special())?;
        let special = Special::of(of(self.nearest(), other.nearest()));
        Some(special.map_or_else(Exact::default, Exact::of).into())
    }

    /// What is too large to be stored by far isn't computed with any longer.
    fn bounded(self) -> Option<Rational> {
        let size = |exact: &Exact| exact.bits().max(u64::from(exact.parts().1) * 4);
        let divisor = self.divisor.as_deref().map_or(0, size);
        (size(&self.dividend).max(divisor) <= BITS_MAX).then_some(self)
    }

    /// The sum; `None` where it is too large.
    pub(crate) fn plus(&self, other: &Rational) -> Option<Rational> {
        if let Some(special) = self.special_of(other, |one, two| one + two) {
            return Some(special);
        }
        let (dividend, divisor) = match (&self.divisor, &other.divisor) {
            (None, None) => {
                let mut sum = self.dividend.clone();
                sum.add_exact(&other.dividend);
                (sum, None)
            }
            _ => {
                let (one, two) = (self.divisor(), other.divisor());
                let mut sum = self.dividend.times(&two);
                sum.add_exact(&other.dividend.times(&one));
                (sum, Some(one.times(&two).into()))
            }
        };
        Rational { dividend, divisor }.bounded()
    }

    #[must_use]
    pub(crate) fn negated(self) -> Rational {
        Rational {
            dividend: self.dividend.negated(),
            ..self
        }
    }

    /// The difference; `None` where it is too large.
    pub(crate) fn minus(&self, other: &Rational) -> Option<Rational> {
        self.plus(&other.clone().negated())
    }

    /// The product; `None` where it is too large.
    pub(crate) fn times(&self, other: &Rational) -> Option<Rational> {
        if let Some(special) = self.special_of(other, |one, two| one * two) {
            return Some(special);
        }
        let divisor = match (&self.divisor, &other.divisor) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(one.clone()),
            (Some(one), Some(two)) => Some(one.times(two).into()),
        };
        Rational {
            dividend: self.dividend.times(&other.dividend),
            divisor,
        }
        .bounded()
    }

    /// The quotient; `None` where it is too large, or the divisor is zero.
    pub(crate) fn over(&self, other: &Rational) -> Option<Rational> {
        if other.is_zero() {
            return None;
        }
        if let Some(special) = self.special_of(other, |one, two| one / two) {
            return Some(special);
        }
        let dividend = self.dividend.times(&other.divisor());
        let divisor = self.divisor().times(&other.dividend);
        let (dividend, divisor) = match divisor < Exact::default() {
            true => (dividend.negated(), divisor.negated()),
            false => (dividend, divisor),
        };
        let divisor = Some(divisor.into());
        Rational { dividend, divisor }.bounded()
    }

    /// What is left of it after so many times `other` as fit, with its own sign; `None` where that is zero.
    pub(crate) fn modulo(&self, other: &Rational) -> Option<Rational> {
        let times = Rational::from(self.over(other)?.cut(0, Cut::Truncate));
        self.minus(&times.times(other)?)
    }

    /// With so many digits after the point; fewer than none leave zeros before it.
    pub(crate) fn cut(&self, digits: i32, cut: Cut) -> Exact {
        if self.special().is_some() {
            return self.dividend.clone();
        }
        let (_, scale) = self.dividend.parts();
        if self.is_decimal() && i64::from(scale) <= digits.into() {
            return self.dividend.clone();
        }
        if let Some(short) = self.short_cut(digits, cut) {
            return short;
        }
        let power = |exponent: u32| BigInt::from(10).pow(exponent);
        let mut dividend = self.dividend.at(scale);
        let mut divisor = power(scale);
        if let Some(by) = &self.divisor {
            let (_, scale) = by.parts();
            dividend *= power(scale);
            divisor *= by.at(scale);
        }
        match u32::try_from(digits) {
            Ok(digits) => dividend *= power(digits),
            Err(_) => divisor *= power(digits.unsigned_abs()),
        }
        let mantissa = match cut {
            Cut::Round => rounded(&dividend, &divisor),
            Cut::Floor => dividend.div_floor(&divisor),
            Cut::Ceiling => dividend.div_ceil(&divisor),
            Cut::Truncate => dividend / divisor,
        };
        match u32::try_from(digits) {
            Ok(digits) => Exact::new(mantissa, digits),
            Err(_) => Exact::new(mantissa * power(digits.unsigned_abs()), 0),
        }
    }

    /// The same where 128 bits are enough.
    fn short_cut(&self, digits: i32, cut: Cut) -> Option<Exact> {
        let digits = u32::try_from(digits).ok()?;
        let (dividend, divisor) = self.short_parts(digits)?;
        let (quotient, rest) = (dividend / divisor, dividend % divisor);
        let (rest, divisor) = (rest.unsigned_abs(), divisor.unsigned_abs());
        let is_farther = cut.is_farther(dividend < 0, rest, divisor);
        let up = i128::from(is_farther) * dividend.signum();
        Some(Exact::small(quotient + up, digits))
    }

    /// Two whole numbers of which it is the quotient in units of so many decimals; the second is more than zero.
    fn short_parts(&self, digits: u32) -> Option<(i128, i128)> {
        let (mantissa, scale) = self.dividend.parts();
        let (by, by_scale) = match &self.divisor {
            None => (Some(1), 0),
            Some(divisor) => divisor.parts(),
        };
        let times = |number: i128, zeros: u32| number.checked_mul(10_i128.checked_pow(zeros)?);
        let (up, down) = (by_scale + digits, scale);
        let dividend = times(mantissa?, up.saturating_sub(down))?;
        let divisor = times(by?, down.saturating_sub(up))?;
        Some((dividend, divisor))
    }

    /// How many zeros stand between its point and its first other digit.
    fn zeros(&self) -> u32 {
        if let Some((dividend, divisor)) = self.short_parts(0) {
            let (mut dividend, divisor) = (dividend.unsigned_abs(), divisor.unsigned_abs());
            let mut zeros = 0;
            while zeros < SCALE_MAX && dividend.checked_mul(10).is_some_and(|more| more < divisor) {
                (dividend, zeros) = (dividend * 10, zeros + 1);
            }
            if zeros < SCALE_MAX && dividend < u128::MAX / 10 {
                return zeros;
            }
        }
        let all = self.cut(SCALE_MAX as i32, Cut::Truncate).at(SCALE_MAX);
        SCALE_MAX.saturating_sub(all.magnitude().to_string().len() as u32)
    }

    /// What a column has of it: a decimal as it is, and of a quotient so many digits as [`QUOTIENT_DIGITS`] says, without
    /// zeros at its end.
    ///
    /// # Errors
    /// It has more digits than a number may have.
    pub(crate) fn stored(&self) -> Result<Number, String> {
        let number = match self.divisor {
            None => Number::of(&self.dividend),
            Some(_) if self.special().is_some() => Number::of(&self.dividend),
            Some(_) => {
                let digits = (QUOTIENT_DIGITS + self.zeros()).min(SCALE_MAX);
                Number::of(&self.cut(digits as i32, Cut::Round).shortest())
            }
        };
        number.ok_or_else(|| {
            format!("it has more than {DIGITS_MAX} digits, or {SIDE_MAX} before or after its point, which are the limits")
        })
    }

    /// The same as a quotient that is rounded for print.
    pub(crate) fn quotient(&self) -> Quotient {
        let Some(divisor) = &self.divisor else {
            return Quotient::new(self.dividend.clone(), 1);
        };
        let (mantissa, scale) = divisor.parts();
        let Some(divisor) = mantissa.and_then(|mantissa| u128::try_from(mantissa).ok()) else {
            return Quotient::new(self.long_decimal(), 1);
        };
        let dividend = match self.special() {
            Some(_) => self.dividend.clone(),
            None => self
                .dividend
                .times(&Exact::new(BigInt::from(10).pow(scale), 0)),
        };
        Quotient::new(dividend, divisor)
    }

    /// A decimal that is rounded to fewer digits as it is: it has more of them than are printed, and a last one that isn't
    /// zero where something is cut off.
    fn long_decimal(&self) -> Exact {
        let digits = f64::from(LONG_DIGITS) - self.magnitude().floor();
        let digits = digits.clamp(LONG_DIGITS.into(), DOUBLE_DIGITS.into()) as u32;
        let cut = self.cut(digits.cast_signed(), Cut::Truncate);
        let rest = self.cmp(&Rational::from(cut.clone()));
        Exact::new(cut.at(digits) * 10 + rest as i32, digits + 1)
    }

    /// The decimal logarithm of its absolute value, about.
    fn magnitude(&self) -> f64 {
        let of = |exact: &Exact| exact.magnitude().unwrap_or_default();
        of(&self.dividend) - self.divisor.as_deref().map_or(0.0, of)
    }

    /// The nearest double, or one of its neighbours.
    pub(crate) fn nearest(&self) -> f64 {
        match &self.divisor {
            None => self.dividend.nearest(),
            Some(_) => {
                let digits = 20.0 - self.magnitude().floor();
                self.cut(digits.clamp(-300.0, 340.0) as i32, Cut::Round)
                    .nearest()
            }
        }
    }

    /// The decimal that a double is printed as.
    ///
    /// # Errors
    /// It is infinite or nan, or has more digits than a number may have.
    pub(crate) fn of_double(value: f64) -> Result<Rational, String> {
        let text = format!("{value:e}");
        Number::read_as(text.as_bytes(), Grammar::FLOAT).map(Rational::from)
    }
}

impl PartialEq for Rational {
    fn eq(&self, other: &Rational) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Rational {}

impl PartialOrd for Rational {
    fn partial_cmp(&self, other: &Rational) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rational {
    fn cmp(&self, other: &Rational) -> Ordering {
        let are_decimals = self.is_decimal() && other.is_decimal();
        if are_decimals || self.special().or(other.special()).is_some() {
            return self.dividend.cmp(&other.dividend);
        }
        let one = self.dividend.times(&other.divisor());
        one.cmp(&other.dividend.times(&self.divisor()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rational(text: &str) -> Rational {
        let number =
            |text: &str| Rational::from(Number::read_as(text.as_bytes(), Grammar::FLOAT).unwrap());
        match text.split_once('/') {
            Some((one, two)) => number(one).over(&number(two)).unwrap(),
            None => number(text),
        }
    }

    fn stored(value: &Rational) -> String {
        value.stored().unwrap().exact().text()
    }

    #[test]
    fn what_is_stored() {
        for (text, want) in [
            ("1.50", "1.50"),
            ("1/4", "0.25"),
            ("6/3", "2"),
            ("-1/3", "-0.333333333333"),
            ("2/3", "0.666666666667"),
            ("1/3000000", "0.000000333333333333"),
            ("100000/3", "33333.333333333333"),
            ("0/7", "0"),
            ("inf/2", "inf"),
            ("3/inf", "0"),
            ("-3/-0.5", "6"),
        ] {
            assert_eq!(stored(&rational(text)), want, "{text}");
        }
        let large = rational("99999999999999999999999999999999999999");
        let square = large.times(&large).unwrap();
        assert!(square.stored().unwrap_err().contains("more than 38 digits"));
        // What goes on growing isn't computed for ever.
        let mut growing = Some(large);
        for _ in 0..20 {
            growing = growing.and_then(|value| value.times(&value));
        }
        assert!(growing.is_none());
        assert!(rational("1").over(&rational("0.00")).is_none());
    }

    #[test]
    fn cuts() {
        for (text, digits, want) in [
            ("-2.5", 0, ["-3", "-3", "-2", "-2"]),
            ("2.5", 0, ["3", "2", "3", "2"]),
            ("7/3", 2, ["2.33", "2.33", "2.34", "2.33"]),
            ("1250", -2, ["1300", "1200", "1300", "1200"]),
            ("1.5", 3, ["1.5", "1.5", "1.5", "1.5"]),
        ] {
            let cuts = [Cut::Round, Cut::Floor, Cut::Ceiling, Cut::Truncate];
            let got = cuts.map(|cut| rational(text).cut(digits, cut).text());
            assert_eq!(got, want, "{text}");
        }
        let modulo = |one, two| stored(&rational(one).modulo(&rational(two)).unwrap());
        assert_eq!(modulo("7", "3"), "1");
        assert_eq!(modulo("-7.5", "2"), "-1.5");
        assert!(rational("1").modulo(&rational("0")).is_none());
    }

    proptest! {
        /// What 128 bits are enough for is what any number of digits gives.
        #[test]
        fn short_cuts_are_cuts(
            a in -1_000_000..1_000_000_i64, b in 1..100_000_i64, scales in (0..6_u32, 0..6_u32), digits in 0..14_i32,
        ) {
            let large = Rational::from(Exact::new(BigInt::from(10).pow(60), 0));
            let of = |number: i64, scale: u32| Rational::from(Exact::small(number.into(), scale));
            let short = of(a, scales.0).over(&of(b, scales.1)).unwrap();
            let long = of(a, scales.0).times(&large).unwrap().over(&of(b, scales.1).times(&large).unwrap()).unwrap();
            for cut in [Cut::Round, Cut::Floor, Cut::Ceiling, Cut::Truncate] {
                prop_assert!(short.short_cut(digits, cut).is_some() && long.short_cut(digits, cut).is_none());
                prop_assert_eq!(short.cut(digits, cut).text(), long.cut(digits, cut).text());
            }
            prop_assert_eq!(short.zeros(), long.zeros());
            prop_assert_eq!(short.stored().unwrap().exact().text(), long.stored().unwrap().exact().text());
        }

        /// Fractions of small whole numbers, by whole numbers.
        #[test]
        fn arithmetic_is_that_of_fractions(
            a in -50..50_i64, b in 1..50_i64, c in -50..50_i64, d in 1..50_i64,
        ) {
            let of = |a: i64, b: i64| Rational::from(a).over(&Rational::from(b)).unwrap();
            let (one, two) = (of(a, b), of(c, d));
            prop_assert_eq!(one.plus(&two).unwrap(), of(a * d + c * b, b * d));
            prop_assert_eq!(one.minus(&two).unwrap(), of(a * d - c * b, b * d));
            prop_assert_eq!(one.times(&two).unwrap(), of(a * c, b * d));
            prop_assert_eq!(one.cmp(&two), (a * d).cmp(&(c * b)));
            if c != 0 {
                let sign = c.signum();
                prop_assert_eq!(one.over(&two).unwrap(), of(a * d * sign, b * c * sign));
            }
            let near = one.nearest();
            prop_assert!((near - a as f64 / b as f64).abs() < 1e-12);
            prop_assert_eq!(one.cut(0, Cut::Floor), Exact::small(a.div_euclid(b).into(), 0));
        }
    }
}
