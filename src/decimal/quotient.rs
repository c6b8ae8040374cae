//! What a decimal can't hold: a quotient of exact values, or the root of one. It is rounded once, when it is printed.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_integer::Integer;

use crate::decimal::number::{Exact, Number, rounded};
use crate::decimal::rational::Rational;

/// Digits after the point of a root that is computed with.
const ROOT_DIGITS: u32 = 20;

/// `dividend / divisor`, or the root of that.
#[derive(Debug, Clone)]
pub(crate) struct Quotient {
    dividend: Exact,
    /// More than zero.
    divisor: u128,
    is_root: bool,
}

impl Quotient {
    /// # Panics
    /// The divisor is zero.
    pub(crate) fn new(dividend: Exact, divisor: u128) -> Quotient {
        assert!(divisor > 0, "a quotient's divisor");
        Quotient {
            dividend,
            divisor,
            is_root: false,
        }
    }

    /// The root of a quotient that isn't below zero.
    #[must_use]
    pub(crate) fn root(self) -> Quotient {
        Quotient {
            is_root: true,
            ..self
        }
    }

    /// The same to be computed with; of a root so many digits as [`ROOT_DIGITS`] says.
    pub(crate) fn rational(&self) -> Rational {
        if self.is_root {
            return self.rounded(ROOT_DIGITS).into();
        }
        let divisor = Rational::from(Exact::new(BigInt::from(self.divisor), 0));
        let quotient = Rational::from(self.dividend.clone()).over(&divisor);
        quotient.unwrap_or_else(|| self.rounded(ROOT_DIGITS).into())
    }

    /// With so many digits behind the point, rounded half away from zero.
    pub(crate) fn rounded(&self, digits: u32) -> Exact {
        if self.dividend.special().is_some() {
            return self.dividend.clone();
        }
        let (small, scale) = self.dividend.parts();
        // The digits that the dividend lacks, or that the divisor gets.
        let digits_wanted = if self.is_root { 2 * digits } else { digits };
        let up = digits_wanted.saturating_sub(scale);
        let down = scale.saturating_sub(digits_wanted);
        if let Some(mantissa) = small.filter(|_| !self.is_root)
            && let Some(mantissa) = small_quotient(mantissa, self.divisor, up, down)
        {
            return Exact::small(mantissa, digits);
        }
        let dividend = self.dividend.at(scale) * BigInt::from(10).pow(up);
        let divisor = BigInt::from(self.divisor) * BigInt::from(10).pow(down);
        let mantissa = match self.is_root {
            // The root of four times the value, rounded down, tells on which side of a half it lies.
            true => {
                let quotient: BigInt = dividend * 4 / divisor;
                (quotient.sqrt() + 1) / 2
            }
            false => rounded(&dividend, &divisor),
        };
        Exact::new(mantissa, digits)
    }

    /// With so many digits behind the point, ties rounded towards +infinity; not of a root.
    pub(crate) fn rounded_up(&self, digits: u32) -> Exact {
        if self.dividend.special().is_some() {
            return self.dividend.clone();
        }
        let (small, scale) = self.dividend.parts();
        let (up, down) = (digits.saturating_sub(scale), scale.saturating_sub(digits));
        let divisor = i64::try_from(self.divisor).ok();
        if let (Some(Ok(mantissa)), Some(divisor)) = (small.map(i64::try_from), divisor)
            && let Some(mantissa) = short_quotient(mantissa, divisor, (up, down), true)
        {
            return Exact::small(mantissa.into(), digits);
        }
        // Half a divisor more, rounded down.
        let dividend = self.dividend.at(scale) * BigInt::from(10).pow(up);
        let divisor = BigInt::from(self.divisor) * BigInt::from(10).pow(down);
        let twice: BigInt = dividend * 2 + &divisor;
        let mantissa = twice.div_floor(&(divisor * 2));
        Exact::new(mantissa, digits)
    }

    /// The quotient of doubles, computed in tenths as the styles that are compared with do.
    pub(crate) fn of_tenths(&self) -> f64 {
        let tenths = match self.dividend.parts() {
            (Some(small), 1) => small as f64,
            _ => times(&self.dividend, 10).nearest(),
        };
        tenths / 10.0 / self.divisor as f64
    }

    /// As it is printed: with so many digits behind the point, or with as many as three significant digits take.
    pub(crate) fn printed(&self, digits: u32) -> Exact {
        let rounded = self.rounded(digits);
        // Most have them. What rounds to the least number with three digits may be less than it.
        let is_short = matches!(rounded.parts(), (Some(-100..=100), _));
        if !is_short || self.dividend == Exact::default() {
            return rounded;
        }
        let has_three = |digits: &u32| match self.dividend < Exact::default() {
            true => self.compare(&Number::new(-100, *digits)).is_le(),
            false => self.compare(&Number::new(100, *digits)).is_ge(),
        };
        match (digits..).find(has_three) {
            Some(more) if more > digits => self.rounded(more),
            _ => rounded,
        }
    }

    /// The nearest double.
    pub(crate) fn nearest(&self) -> f64 {
        // The dividend may be past all doubles, though the quotient isn't.
        let Some(magnitude) = self.dividend.magnitude() else {
            return self.dividend.nearest();
        };
        let magnitude = magnitude - (self.divisor as f64).log10();
        let magnitude = if self.is_root {
            magnitude / 2.0
        } else {
            magnitude
        };
        // More digits than would let a second rounding change the double.
        let digits = 40.0 - magnitude.floor();
        self.rounded(digits.clamp(0.0, 500.0) as u32).nearest()
    }

    /// The order of the exact value and a number.
    pub(crate) fn compare(&self, number: &Number) -> Ordering {
        if !self.is_root {
            return self.dividend.cmp(&times(&number.exact(), self.divisor));
        }
        if number.is_negative() {
            return Ordering::Greater;
        }
        let mut square = Exact::default();
        square.add_square(*number);
        self.dividend.cmp(&times(&square, self.divisor))
    }
}

/// `mantissa * 10^up / (divisor * 10^down)` where 64 bits are enough, with halves rounded up or away from zero.
pub(crate) fn short_quotient(
    mantissa: i64,
    divisor: i64,
    (up, down): (u32, u32),
    is_up: bool,
) -> Option<i64> {
    let times = |number: i64, power: u32| number.checked_mul(10_i64.checked_pow(power)?);
    let dividend = times(mantissa, up)?;
    // Most numbers of a column are printed as they are.
    if divisor == 1 && down == 0 {
        return Some(dividend);
    }
    let divisor = times(divisor, down)?;
    // Half a divisor more, rounded down, or as much less, rounded towards zero.
    let (twice, both) = (dividend.checked_mul(2)?, divisor.checked_mul(2)?);
    match is_up || dividend >= 0 {
        true => Some(twice.checked_add(divisor)?.div_euclid(both)),
        false => Some(twice.checked_sub(divisor)? / both),
    }
}

/// `mantissa * 10^up / (divisor * 10^down)`, rounded half away from zero, where 128 bits are enough.
fn small_quotient(mantissa: i128, divisor: u128, up: u32, down: u32) -> Option<i128> {
    // Division of short numbers is much faster.
    if let (Ok(mantissa), Ok(divisor)) = (i64::try_from(mantissa), i64::try_from(divisor))
        && let Some(quotient) = short_quotient(mantissa, divisor, (up, down), false)
    {
        return Some(quotient.into());
    }
    let dividend = mantissa.checked_mul(10_i128.checked_pow(up)?)?;
    let divisor = i128::try_from(divisor).ok()?;
    let divisor = divisor.checked_mul(10_i128.checked_pow(down)?)?;
    let (quotient, rest) = (dividend / divisor, dividend % divisor);
    let is_up = rest.unsigned_abs() * 2 >= divisor.unsigned_abs();
    Some(quotient + i128::from(is_up) * dividend.signum())
}

fn times(exact: &Exact, factor: u128) -> Exact {
    match (exact.special(), i128::try_from(factor)) {
        (Some(_), _) => exact.clone(),
        (None, Ok(factor)) => exact.times(&Exact::small(factor, 0)),
        (None, Err(_)) => exact.times(&Exact::new(BigInt::from(factor), 0)),
    }
}

impl PartialEq for Quotient {
    fn eq(&self, other: &Quotient) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quotient {}

impl PartialOrd for Quotient {
    fn partial_cmp(&self, other: &Quotient) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quotient {
    /// By the exact value, among those of one aggregate; roots stand behind the others.
    fn cmp(&self, other: &Quotient) -> Ordering {
        self.is_root.cmp(&other.is_root).then_with(|| {
            // Roots stand in the order of what they are roots of.
            times(&self.dividend, other.divisor).cmp(&times(&other.dividend, self.divisor))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exact(text: &str) -> Exact {
        Number::read(text.as_bytes()).unwrap().exact()
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (dividend, divisor, digits, want) in [
            ("1", 2, 0, "1"),
            ("-1", 2, 0, "-1"),
            ("0.1", 4, 2, "0.03"),
            ("-0.1", 4, 2, "-0.03"),
            ("-0.1", 100, 2, "0.00"),
            ("10", 4, 2, "2.50"),
            // Rounded at three digits first, this would be 0.35.
            ("0.3449", 1, 2, "0.34"),
            ("1.005", 1, 2, "1.01"),
            ("-1.4999", 1, 0, "-1"),
            ("99.5", 1, 0, "100"),
            ("0.004", 1, 2, "0.00"),
        ] {
            let quotient = Quotient::new(exact(dividend), divisor);
            assert_eq!(
                quotient.rounded(digits).text(),
                want,
                "{dividend} / {divisor}"
            );
        }
        for (radicand, digits, want) in [
            ("2", 0, "1"),
            ("2", 5, "1.41421"),
            ("2.25", 0, "2"),
            ("2.2499999", 0, "1"),
            ("0", 3, "0.000"),
            ("0.0625", 2, "0.25"),
            ("0.0625", 1, "0.3"),
        ] {
            let root = Quotient::new(exact(radicand), 1).root();
            assert_eq!(root.rounded(digits).text(), want, "{radicand}");
        }
    }

    #[test]
    fn halves_are_rounded_up() {
        for (dividend, divisor, digits, want) in [
            ("1", 2, 0, "1"),
            ("-1", 2, 0, "0"),
            ("-3", 2, 0, "-1"),
            ("-0.25", 1, 1, "-0.2"),
            ("-0.26", 1, 1, "-0.3"),
            ("0.25", 1, 1, "0.3"),
            ("-0.1", 4, 2, "-0.02"),
            (
                "99999999999999999999999999999.5",
                1,
                0,
                "100000000000000000000000000000",
            ),
            (
                "-99999999999999999999999999999.5",
                1,
                0,
                "-99999999999999999999999999999",
            ),
            ("7", 1, 1, "7.0"),
        ] {
            let quotient = Quotient::new(exact(dividend), divisor);
            let got = quotient.rounded_up(digits);
            assert_eq!(got.text(), want, "{dividend} / {divisor}");
        }
    }

    #[test]
    fn three_digits_are_significant() {
        for (dividend, divisor, digits, want) in [
            ("2", 2000, 2, "0.00100"),
            ("-2", 2000, 2, "-0.00100"),
            ("0", 7, 2, "0.00"),
            ("1", 2, 2, "0.500"),
            ("1", 1, 2, "1.00"),
            ("996", 1000, 2, "0.996"),
            ("99996", 100_000, 2, "1.000"),
            ("-99996", 100_000, 2, "-1.000"),
            ("12345", 1000, 2, "12.35"),
            ("1", 3_000_000_000, 6, "0.000000000333"),
            (
                "0.0000000000000000000000000000000000001",
                1 << 100,
                39,
                "0.0000000000000000000000000000000000000000000000000000000000000000000789",
            ),
        ] {
            let quotient = Quotient::new(exact(dividend), divisor);
            assert_eq!(
                quotient.printed(digits).text(),
                want,
                "{dividend} / {divisor}"
            );
        }
        let root = Quotient::new(exact("0.0000004"), 1).root();
        assert_eq!(root.printed(2).text(), "0.000632");
        assert_eq!(
            Quotient::new(Exact::of(crate::decimal::number::Special::Nan), 1)
                .printed(2)
                .text(),
            "nan"
        );
    }

    #[test]
    fn doubles_of_what_no_double_holds() {
        let exact = |text: &str| {
            let number = Number::read_as(text.as_bytes(), crate::decimal::number::Grammar::FLOAT);
            number.unwrap().exact()
        };
        let mut square = Exact::default();
        square.add_exact(&exact("2e400"));
        assert_eq!(Quotient::new(square.clone(), 1).nearest(), f64::INFINITY);
        let root: f64 = "1.41421356237309504880168872420969807857e200"
            .parse()
            .unwrap();
        assert_eq!(Quotient::new(square, 1).root().nearest(), root);
        for (dividend, divisor, want) in [
            ("4e308", 4, 1e308),
            ("-4e308", 4, -1e308),
            ("4e-320", 4, 1e-320),
            ("1e-400", 3, 0.0),
            ("0", 3, 0.0),
            ("inf", 3, f64::INFINITY),
            ("1", 3, 1.0 / 3.0),
        ] {
            assert_eq!(
                Quotient::new(exact(dividend), divisor).nearest(),
                want,
                "{dividend}"
            );
        }
        assert_eq!(Quotient::new(exact("4e-400"), 1).root().nearest(), 2e-200);
    }

    fn number() -> impl Strategy<Value = Number> {
        let most = 10_i128.pow(38) - 1;
        let mantissa = prop_oneof![-most..=most, -1000..1000_i128];
        (mantissa, 0..=38_u32).prop_map(|(mantissa, scale)| Number::new(mantissa, scale))
    }

    /// The mantissa.
    fn big(number: Number) -> BigInt {
        number.exact().at(number.decimals())
    }

    fn positive(number: Number) -> Number {
        let mantissa = number.at(number.decimals()).expect("its own scale");
        Number::new(mantissa.abs(), number.decimals())
    }

    fn divisor() -> impl Strategy<Value = u128> {
        prop_oneof![1..20_u128, 1..=u128::MAX]
    }

    proptest! {
        /// Twice the distance to the value is at most one unit of the last digit, and a half lies farther from zero.
        #[test]
        fn it_is_the_nearest(number in number(), divisor in divisor(), digits in 0..50_u32) {
            let got = Quotient::new(number.exact(), divisor).rounded(digits);
            // Both over `divisor * 10^(38 + digits)`.
            let ten = |exponent: u32| BigInt::from(10).pow(exponent);
            let value = big(number) * ten(38 - number.decimals()) * ten(digits);
            let unit = BigInt::from(divisor) * ten(38);
            let got = got.at(digits) * &unit;
            let off: BigInt = (&got - &value) * 2;
            prop_assert!(off.magnitude() <= unit.magnitude());
            if off.magnitude() == unit.magnitude() {
                prop_assert!(got.magnitude() > value.magnitude());
            }
        }

        /// The value lies between the squares of half a unit below and above.
        #[test]
        fn a_root_is_the_nearest(number in number(), divisor in divisor(), digits in 0..30_u32) {
            let number = positive(number);
            let got = Quotient::new(number.exact(), divisor).root().rounded(digits);
            let ten = |exponent: u32| BigInt::from(10).pow(exponent);
            // Four times the value, and the square of twice the root, both times divisor * 10^(2 digits + 38).
            let value = big(number) * ten(38 - number.decimals()) * ten(2 * digits) * 4;
            let square = |twice: BigInt| &twice * &twice * BigInt::from(divisor) * ten(38);
            let twice = got.at(digits) * 2;
            prop_assert!(square(&twice + 1) > value);
            prop_assert!(twice == BigInt::ZERO || square(twice - 1) <= value);
        }

        #[test]
        fn order_is_by_value(
            one in (number(), divisor()),
            two in (number(), divisor()),
            literal in number(),
        ) {
            let times = |number: Number, factor: u128| {
                big(number) * BigInt::from(10).pow(38 - number.decimals()) * factor
            };
            let quotient = |(number, divisor): (Number, u128)| Quotient::new(number.exact(), divisor);
            let want = times(one.0, two.1).cmp(&times(two.0, one.1));
            prop_assert_eq!(quotient(one).cmp(&quotient(two)), want);
            let want = times(one.0, 1).cmp(&times(literal, one.1));
            prop_assert_eq!(quotient(one).compare(&literal), want);
            let positive_one = positive(one.0);
            let root = quotient((positive_one, one.1)).root();
            let other = quotient((positive(two.0), two.1)).root();
            let want = times(one.0, two.1).magnitude().cmp(times(two.0, one.1).magnitude());
            prop_assert_eq!(root.cmp(&other), want);
            let square = times(literal, 1).pow(2) * one.1;
            let want = match literal.is_negative() {
                true => Ordering::Greater,
                false => (times(positive_one, 1) * BigInt::from(10).pow(38)).cmp(&square),
            };
            prop_assert_eq!(root.compare(&literal), want);
        }
    }
}
