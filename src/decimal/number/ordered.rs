//! Numbers as bytes whose order is that of the numbers. Equal numbers have the same bytes, and no byte is zero.
//!
//! The first byte is the class of the number. Behind it stand the exponent of `0.d1d2… * 10^exponent`, two digits a byte,
//! and an end that is less than any digits. Of a negative number all of these are turned around.

use crate::decimal::number::{DIGITS_MAX, Number, SIDE_MAX, Special};

const NEGATIVE_INFINITY: u8 = 1;
const NEGATIVE: u8 = 2;
const ZERO: u8 = 3;
const POSITIVE: u8 = 4;
const INFINITY: u8 = 5;
const NAN: u8 = 6;

const END: u8 = 1;
/// Added to two digits.
const PAIR: u8 = END + 1;
/// Digits of a mantissa, and more.
const DIGITS: usize = 40;
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
        let mut all = [0; DIGITS + SIDE_MAX];
        let (digits, low) = all.split_at_mut(DIGITS);
        let low_length = match self.low.unsigned_abs() {
            0 => 0,
            mut rest => {
                for digit in low.iter_mut().rev() {
                    (*digit, rest) = ((rest % 10) as u8, rest / 10);
                }
                SIDE_MAX
            }
        };
        let length = match u64::try_from(self.mantissa.unsigned_abs()) {
            // Divisions of 128 bits take a call.
            Ok(mut rest) => split(digits, &mut rest, |rest| {
                let digit = *rest % 10;
                *rest /= 10;
                (digit as u8, *rest == 0)
            }),
            Err(_) => split(digits, &mut self.mantissa.unsigned_abs(), |rest| {
                let digit = *rest % 10;
                *rest /= 10;
                (digit as u8, *rest == 0)
            }),
        };
        let digits = &all[DIGITS - length..DIGITS + low_length];
        let length = digits.len();
        let exponent = length as i32 - self.scale + BIAS;
        to.push((1 + exponent / BASE) as u8);
        to.push((1 + exponent % BASE) as u8);
        let significant = length - digits.iter().rev().take_while(|digit| **digit == 0).count();
        for pair in digits[..significant].chunks(2) {
            to.push(10 * pair[0] + pair.get(1).unwrap_or(&0) + PAIR);
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
        let (mut mantissa, mut low, mut scale) = (0_i128, 0_i128, 0);
        if matches!(class, NEGATIVE | POSITIVE) {
            let turned = if class == NEGATIVE { !0 } else { 0 };
            let (exponent, digits) = rest.split_first_chunk::<2>()?;
            let exponent = exponent.map(|byte| i32::from(byte ^ turned) - 1);
            let (_, digits) = digits.split_last()?;
            if digits.len() > SIDE_MAX {
                return None;
            }
            let mut all = Vec::with_capacity(2 * digits.len());
            for digit in digits {
                let pair = (digit ^ turned)
                    .checked_sub(PAIR)
                    .filter(|pair| *pair < 100)?;
                all.extend([pair / 10, pair % 10]);
            }
            if all.last() == Some(&0) {
                all.pop();
            }
            let high = match all.len() {
                ..=DIGITS_MAX => all.len(),
                more => more - SIDE_MAX,
            };
            let value = |digits: &[u8]| {
                let digits = digits.iter().map(|digit| i128::from(*digit));
                digits.fold(0, |value, digit| 10 * value + digit)
            };
            (mantissa, low) = (value(&all[..high]), value(&all[high..]));
            scale = all.len() as i32 - (exponent[0] * BASE + exponent[1] - BIAS);
            if class == NEGATIVE {
                (mantissa, low) = (-mantissa, -low);
            }
        }
        let number = Number {
            mantissa,
            low,
            scale,
            special,
        };
        // What no number has as its bytes doesn't come back.
        let mut back = Vec::with_capacity(bytes.len());
        number.push_ordered(&mut back);
        (back == bytes).then_some(number)
    }
}

/// How many bytes those of a number take at the start of a text, where all of them may be turned around.
pub(crate) fn ordered_length(text: &[u8]) -> usize {
    let Some(&class) = text.first() else {
        return 0;
    };
    let turned = if class > NAN { !0 } else { 0 };
    let end = match class ^ turned {
        POSITIVE => END,
        NEGATIVE => !END,
        _ => return 1,
    };
    // The end is less than any digits, and stands after an exponent.
    let digits = text.get(3..).unwrap_or_default();
    let digits = digits.iter().position(|byte| byte ^ turned == end);
    digits.map_or(text.len(), |digits| 3 + digits + 1)
}

/// Fills digits in from the end; returns how many.
fn split<T>(digits: &mut [u8], rest: &mut T, next: impl Fn(&mut T) -> (u8, bool)) -> usize {
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
    use crate::decimal::number::Grammar;

    const FLOAT: Grammar = Grammar::FLOAT;

    fn numbers() -> impl Strategy<Value = Number> {
        let text = prop_oneof![
            4 => "-?[0-9]{1,3}(\\.[0-9]{0,3})?",
            2 => "-?[0-9]{1,20}(\\.[0-9]{0,18})?",
            1 => "-?[1-9][0-9]{37}",
            2 => "-?[0-9]{1,36}\\.[0-9]{1,36}",
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
            for turned in [0, !0] {
                let mut text: Vec<u8> = bytes(one).iter().map(|byte| byte ^ turned).collect();
                let length = text.len();
                text.extend(bytes(two));
                prop_assert_eq!(ordered_length(&text), length);
            }
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
