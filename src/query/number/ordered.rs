//! Numbers as bytes whose order is that of the numbers. Equal numbers have the same bytes, and no byte is zero.
//!
//! The first byte is the class of the number. Behind it stand the exponent of `0.d1d2… * 10^exponent`, two digits a byte,
//! and an end that is less than any digits. Of a negative number all of these are turned around.

use crate::query::number::{DIGITS_MAX, Number, Special};

const NEGATIVE_INFINITY: u8 = 1;
const NEGATIVE: u8 = 2;
const ZERO: u8 = 3;
const POSITIVE: u8 = 4;
const INFINITY: u8 = 5;
const NAN: u8 = 6;

const END: u8 = 1;
/// Added to two digits.
const DIGITS: u8 = END + 1;
/// Added to an exponent. It is larger than any.
const BIAS: i32 = 1 << 12;
/// A byte of an exponent has so many values, from 1 on.
const BASE: i32 = 1 << 7;

impl Number {
    /// Appends its bytes.
    pub(crate) fn push_ordered(&self, to: &mut Vec<u8>) {
        let class = match self.special {
            Some(Special::NegativeInfinity) => NEGATIVE_INFINITY,
            Some(Special::Infinity) => INFINITY,
            Some(Special::Nan) => NAN,
            None if self.mantissa == 0 => ZERO,
            None if self.mantissa < 0 => NEGATIVE,
            None => POSITIVE,
        };
        to.push(class);
        if !matches!(class, NEGATIVE | POSITIVE) {
            return;
        }
        let start = to.len();
        let mut digits = [0; 40];
        let length = match u64::try_from(self.mantissa.unsigned_abs()) {
            // Divisions of 128 bits take a call.
            Ok(mut rest) => split(&mut digits, &mut rest, |rest| {
                let digit = *rest % 10;
                *rest /= 10;
                (digit as u8, *rest == 0)
            }),
            Err(_) => split(&mut digits, &mut self.mantissa.unsigned_abs(), |rest| {
                let digit = *rest % 10;
                *rest /= 10;
                (digit as u8, *rest == 0)
            }),
        };
        let digits = &digits[40 - length..];
        let exponent = length as i32 - self.scale + BIAS;
        to.push((1 + exponent / BASE) as u8);
        to.push((1 + exponent % BASE) as u8);
        let significant = length - digits.iter().rev().take_while(|digit| **digit == 0).count();
        for pair in digits[..significant].chunks(2) {
            to.push(10 * pair[0] + pair.get(1).unwrap_or(&0) + DIGITS);
        }
        to.push(END);
        if class == NEGATIVE {
            to[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    /// The number of these bytes, if they are those of one.
    pub(crate) fn of_ordered(bytes: &[u8]) -> Option<Number> {
        let (&class, rest) = bytes.split_first()?;
        let special = match class {
            NEGATIVE_INFINITY => Some(Special::NegativeInfinity),
            INFINITY => Some(Special::Infinity),
            NAN => Some(Special::Nan),
            _ => None,
        };
        let (mut mantissa, mut scale) = (0_i128, 0);
        if matches!(class, NEGATIVE | POSITIVE) {
            let turned = if class == NEGATIVE { !0 } else { 0 };
            let (exponent, digits) = rest.split_first_chunk::<2>()?;
            let exponent = exponent.map(|byte| i32::from(byte ^ turned) - 1);
            let (_, digits) = digits.split_last()?;
            if digits.len() > DIGITS_MAX.div_ceil(2) {
                return None;
            }
            for digit in digits {
                let pair = (digit ^ turned)
                    .checked_sub(DIGITS)
                    .filter(|pair| *pair < 100)?;
                mantissa = 100 * mantissa + i128::from(pair);
            }
            scale = 2 * digits.len() as i32 - (exponent[0] * BASE + exponent[1] - BIAS);
            if mantissa % 10 == 0 {
                (mantissa, scale) = (mantissa / 10, scale - 1);
            }
            if class == NEGATIVE {
                mantissa = -mantissa;
            }
        }
        let number = Number {
            mantissa,
            scale,
            special,
        };
        // What no number has as its bytes doesn't come back.
        let mut back = Vec::with_capacity(bytes.len());
        number.push_ordered(&mut back);
        (back == bytes).then_some(number)
    }
}

/// Fills digits in from the end; returns how many.
fn split<T>(digits: &mut [u8; 40], rest: &mut T, next: impl Fn(&mut T) -> (u8, bool)) -> usize {
    for at in (0..digits.len()).rev() {
        let (digit, is_last) = next(rest);
        digits[at] = digit;
        if is_last {
            return digits.len() - at;
        }
    }
    digits.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::query::number::Grammar;

    const FLOAT: Grammar = Grammar::FLOAT;

    fn numbers() -> impl Strategy<Value = Number> {
        let text = prop_oneof![
            4 => "-?[0-9]{1,3}(\\.[0-9]{0,3})?",
            2 => "-?[0-9]{1,20}(\\.[0-9]{0,18})?",
            1 => "-?[1-9][0-9]{37}",
            2 => "-?[0-9]{1,3}e-?[0-3]?[0-9]{1,2}",
            1 => "-?inf|nan|-?0\\.0",
        ];
        text.prop_filter_map("a number", |text| {
            Number::read_as(text.as_bytes(), FLOAT).ok()
        })
    }

    fn bytes(number: Number) -> Vec<u8> {
        let mut bytes = Vec::new();
        number.push_ordered(&mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn bytes_have_the_order_of_numbers(one in numbers(), two in numbers()) {
            prop_assert_eq!(bytes(one).cmp(&bytes(two)), one.cmp(&two), "{:?} {:?}", one, two);
            prop_assert!(!bytes(one).contains(&0));
            let back = Number::of_ordered(&bytes(one)).unwrap();
            prop_assert_eq!(back, one);
            prop_assert!(back.decimals() <= one.decimals());
        }

        #[test]
        fn no_bytes_make_it_panic(class in 0..8_u8, rest in prop::collection::vec(any::<u8>(), 0..30)) {
            let some = [&[class], &rest[..]].concat();
            if let Some(number) = Number::of_ordered(&some) {
                prop_assert_eq!(bytes(number), some);
            }
        }
    }
}
