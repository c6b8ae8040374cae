//! Exact decimals: what a field may hold, and sums of any size.

use std::borrow::Cow;
use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

/// The most digits of a number, leading zeros not counted, and the most behind its point.
pub(crate) const DIGITS_MAX: usize = 38;

/// A number of a field: `mantissa / 10^scale`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number {
    pub(crate) mantissa: i128,
    pub(crate) scale: u32,
}

impl Number {
    pub(crate) const ZERO: Number = Number {
        mantissa: 0,
        scale: 0,
    };

    /// The mantissa at a scale that isn't lower, where it fits.
    pub(crate) fn at(&self, scale: u32) -> Option<i128> {
        raised(self, scale)
    }

    /// Reads `[+-]?[0-9]+(\.[0-9]*)?` or `[+-]?\.[0-9]+`, blanks around it aside.
    ///
    /// # Errors
    /// Why it isn't one.
    pub(crate) fn read(field: &[u8]) -> Result<Number, String> {
        Number::read_with(field, b'.')
    }

    /// The same with another byte before the decimals.
    ///
    /// # Errors
    /// Why it isn't one.
    pub(crate) fn read_with(field: &[u8], decimal_point: u8) -> Result<Number, String> {
        let text = trim(field);
        let (negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let (mut mantissa, mut seen, mut significant) = (0_i128, 0, 0);
        let mut point = None;
        for (at, &byte) in digits.iter().enumerate() {
            match byte {
                b'0'..=b'9' => {
                    seen += 1;
                    significant += usize::from(significant > 0 || byte != b'0');
                    // Past the limit the value isn't used any more.
                    mantissa = mantissa.wrapping_mul(10) + i128::from(byte - b'0');
                    if significant > DIGITS_MAX {
                        mantissa = 0;
                    }
                }
                byte if byte == decimal_point && point.is_none() => point = Some(at),
                _ => return Err(not_a_number(field)),
            }
        }
        if seen == 0 {
            return Err(not_a_number(field));
        }
        let scale = point.map_or(0, |point| digits.len() - point - 1);
        if significant > DIGITS_MAX || scale > DIGITS_MAX {
            return Err(format!(
                "`{}` has more than {DIGITS_MAX} digits",
                shown(field)
            ));
        }
        Ok(Number {
            mantissa: if negative { -mantissa } else { mantissa },
            scale: scale as u32,
        })
    }

    pub(crate) fn exact(self) -> Exact {
        Exact {
            scale: self.scale,
            mantissa: Mantissa::Small(self.mantissa),
        }
    }
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
    /// By value: 1.0 is 1.
    fn cmp(&self, other: &Number) -> Ordering {
        if self.scale == other.scale {
            return self.mantissa.cmp(&other.mantissa);
        }
        let scale = self.scale.max(other.scale);
        match (raised(self, scale), raised(other, scale)) {
            (Some(one), Some(two)) => one.cmp(&two),
            _ => (self.exact().at(scale)).cmp(&other.exact().at(scale)),
        }
    }
}

/// The mantissa at a scale that isn't lower, where it fits.
fn raised(number: &Number, scale: u32) -> Option<i128> {
    let factor = 10_i128.checked_pow(scale.checked_sub(number.scale)?)?;
    number.mantissa.checked_mul(factor)
}

/// An exact value of any size: `mantissa / 10^scale`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exact {
    mantissa: Mantissa,
    scale: u32,
}

#[derive(Debug, Clone)]
enum Mantissa {
    Small(i128),
    Big(Box<BigInt>),
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
        }
    }
}

impl Exact {
    pub(crate) fn add(&mut self, number: Number) {
        if let Mantissa::Small(sum) = &mut self.mantissa {
            if number.scale == self.scale
                && let Some(both) = sum.checked_add(number.mantissa)
            {
                *sum = both;
                return;
            }
            let scale = self.scale.max(number.scale);
            let old = Number {
                mantissa: *sum,
                scale: self.scale,
            };
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
        let scale = 2 * number.scale;
        match number.mantissa.checked_mul(number.mantissa) {
            Some(mantissa) => self.add(Number { mantissa, scale }),
            None => {
                let mantissa = BigInt::from(number.mantissa);
                self.add_exact(&Exact {
                    mantissa: Mantissa::Big(Box::new(&mantissa * &mantissa)),
                    scale,
                });
            }
        }
    }

    pub(crate) fn add_exact(&mut self, other: &Exact) {
        if let (Mantissa::Small(_), &Mantissa::Small(mantissa)) = (&self.mantissa, &other.mantissa)
        {
            let number = Number {
                mantissa,
                scale: other.scale,
            };
            let old = self.as_number();
            let scale = self.scale.max(other.scale);
            if let (Some(one), Some(two)) = (raised(&old, scale), raised(&number, scale))
                && let Some(both) = one.checked_add(two)
            {
                *self = Exact {
                    mantissa: Mantissa::Small(both),
                    scale,
                };
                return;
            }
        }
        let scale = self.scale.max(other.scale);
        *self = Exact::new(self.at(scale) + other.at(scale), scale);
    }

    fn as_number(&self) -> Number {
        match self.mantissa {
            Mantissa::Small(mantissa) => Number {
                mantissa,
                scale: self.scale,
            },
            Mantissa::Big(_) => unreachable!("asked of small ones only"),
        }
    }

    pub(crate) fn small(mantissa: i128, scale: u32) -> Exact {
        let mantissa = Mantissa::Small(mantissa);
        Exact { mantissa, scale }
    }

    /// The mantissa, if it fits 128 bits, and the scale.
    pub(crate) fn parts(&self) -> (Option<i128>, u32) {
        match self.mantissa {
            Mantissa::Small(small) => (Some(small), self.scale),
            Mantissa::Big(_) => (None, self.scale),
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
        if let Mantissa::Small(_) = self.mantissa
            && let Some(mantissa) = raised(&self.as_number(), scale)
        {
            return Exact {
                mantissa: Mantissa::Small(mantissa),
                scale,
            };
        }
        Exact::new(self.at(scale), scale)
    }

    /// As `-?digits(.digits)?`; zero has no sign.
    pub(crate) fn text(&self) -> String {
        if let Mantissa::Small(small) = self.mantissa
            && self.scale <= DIGITS_MAX as u32
        {
            return text_of(small, self.scale);
        }
        let (negative, mut digits) = match &self.mantissa {
            Mantissa::Small(small) => (*small < 0, small.unsigned_abs().to_string()),
            Mantissa::Big(big) => (big.sign() == Sign::Minus, big.magnitude().to_string()),
        };
        let scale = self.scale as usize;
        if scale > 0 {
            if digits.len() <= scale {
                digits.insert_str(0, &"0".repeat(scale + 1 - digits.len()));
            }
            digits.insert(digits.len() - scale, '.');
        }
        if negative {
            digits.insert(0, '-');
        }
        digits
    }
}

/// As [`Exact::text`].
fn text_of(mantissa: i128, scale: u32) -> String {
    let mut bytes = [0; 2 * DIGITS_MAX + 4];
    let (mut at, mut digits, mut left) = (bytes.len(), 0, mantissa.unsigned_abs());
    while left > 0 || digits <= scale {
        if digits == scale && scale > 0 {
            at -= 1;
            bytes[at] = b'.';
        }
        // Division of short numbers is much faster.
        let digit = match u64::try_from(left) {
            Ok(short) => {
                left = u128::from(short / 10);
                (short % 10) as u8
            }
            Err(_) => {
                let digit = (left % 10) as u8;
                left /= 10;
                digit
            }
        };
        at -= 1;
        bytes[at] = b'0' + digit;
        digits += 1;
    }
    if mantissa < 0 {
        at -= 1;
        bytes[at] = b'-';
    }
    String::from_utf8_lossy(&bytes[at..]).into_owned()
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
        if let (Mantissa::Small(_), Mantissa::Small(_)) = (&self.mantissa, &other.mantissa) {
            return self.as_number().cmp(&other.as_number());
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
        ] {
            let number = Number::read(text.as_bytes()).unwrap();
            assert_eq!(number.exact().text(), want, "{text}");
        }
        for text in [
            "", " ", "-", "+", ".", "-.", "1.2.3", "1e3", "1,5", "--1", "+-1", "1 2", "0x1", "nan",
            "٣",
        ] {
            let error = Number::read(text.as_bytes()).unwrap_err();
            assert_eq!(error, format!("`{text}` is not a number"));
        }
        for text in [
            "100000000000000000000000000000000000000",
            "0.000000000000000000000000000000000000000",
            "123456789012345678901234567890123456789012345678901234567890",
        ] {
            let error = Number::read(text.as_bytes()).unwrap_err();
            assert!(error.ends_with("has more than 38 digits"), "{error}");
        }
    }

    fn number() -> impl Strategy<Value = Number> {
        let most = 10_i128.pow(38) - 1;
        let mantissa = prop_oneof![-most..=most, -1000..1000_i128];
        (mantissa, 0..=38_u32).prop_map(|(mantissa, scale)| Number { mantissa, scale })
    }

    proptest! {
        /// Against big integers at the greatest scale, in one order and split in two.
        #[test]
        fn sums_are_exact(numbers in prop::collection::vec(number(), 0..20), cut in 0..20_usize) {
            let big = |n: &Number| BigInt::from(n.mantissa) * BigInt::from(10).pow(38 - n.scale);
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
            let big = |n: Number| BigInt::from(n.mantissa) * BigInt::from(10).pow(38 - n.scale);
            prop_assert_eq!(one.cmp(&two), big(one).cmp(&big(two)));
            prop_assert_eq!(one.exact().cmp(&two.exact()), big(one).cmp(&big(two)));
        }
    }
}
