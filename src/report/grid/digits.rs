//! The text of a number. A short one takes no memory elsewhere, because answers may have millions.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

/// Bytes of a short text.
const SHORT: usize = 23;
/// Of a short number: a mantissa of 64 bits has 20 digits.
const SCALE_MAX: u32 = 20;
/// So many digits always fit 128 bits.
pub(super) const LONG_DIGITS: usize = 38;

/// The text of a number: `-?digits(.digits)?`, or a double's shortest form, which may have an exponent after it.
#[derive(Clone)]
pub struct Digits<'a>(Text<'a>);

#[derive(Clone)]
enum Text<'a> {
    Any(Cow<'a, str>),
    /// ASCII at the end of these bytes.
    Short {
        bytes: [u8; SHORT],
        start: u8,
    },
}

impl Digits<'_> {
    /// Of `mantissa / 10^scale`, with `scale` digits after the point; zero has no sign.
    pub fn decimal(mantissa: i128, scale: u32) -> Digits<'static> {
        match u64::try_from(mantissa.unsigned_abs()) {
            Ok(magnitude) if scale <= SCALE_MAX => short(mantissa < 0, magnitude, scale),
            _ => {
                let digits = mantissa.unsigned_abs().to_string();
                with_point(mantissa < 0, digits, scale).into()
            }
        }
    }

    /// The nearest double.
    ///
    /// ```
    /// use ringfold::report::grid::Digits;
    ///
    /// assert_eq!(Digits::decimal(375, 2).as_f64(), 3.75);
    /// ```
    pub fn as_f64(&self) -> f64 {
        self.parse().expect("a number")
    }

    /// The number itself as a mantissa and a scale, mantissa / 10^scale; `None` for a double with an exponent, and beyond 38
    /// digits.
    ///
    /// ```
    /// use ringfold::report::grid::Digits;
    ///
    /// assert_eq!(Digits::from("-3.50").as_decimal(), Some((-350, 2)));
    /// assert_eq!(Digits::from("1e-7").as_decimal(), None);
    /// ```
    pub fn as_decimal(&self) -> Option<(i128, u32)> {
        let digits = self.bytes().filter(u8::is_ascii_digit).count();
        if self.contains('e') || digits > LONG_DIGITS {
            return None;
        }
        let scale = self.split_once('.').map_or(0, |(_, after)| after.len());
        Some((mantissa(self, scale), scale as u32))
    }

    /// The text's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Any(text) => text.as_bytes(),
            Text::Short { bytes, start } => &bytes[usize::from(*start)..],
        }
    }
}

fn short(is_negative: bool, mut left: u64, scale: u32) -> Digits<'static> {
    let mut bytes = [0; SHORT];
    let mut at = bytes.len();
    let mut push = |byte| {
        at -= 1;
        bytes[at] = byte;
    };
    if scale > 0 {
        for _ in 0..scale {
            push(b'0' + (left % 10) as u8);
            left /= 10;
        }
        push(b'.');
    }
    loop {
        push(b'0' + (left % 10) as u8);
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if is_negative {
        push(b'-');
    }
    let start = at as u8;
    Digits(Text::Short { bytes, start })
}

/// A decimal times `10^scale`, after whose point stand no more digits.
pub(super) fn mantissa(number: &str, scale: usize) -> i128 {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let zeros = scale - fraction.len();
    let digits = whole.bytes().chain(fraction.bytes());
    let digits = digits.filter(|byte| *byte != b'-');
    let magnitude = digits
        .chain(std::iter::repeat_n(b'0', zeros))
        .fold(0, |value, digit| 10 * value + i128::from(digit - b'0'));
    match whole.starts_with('-') {
        true => -magnitude,
        false => magnitude,
    }
}

/// A number of these digits, of which `scale` are after the point.
pub(crate) fn with_point(is_negative: bool, mut digits: String, scale: u32) -> String {
    let scale = scale as usize;
    if scale > 0 {
        if digits.len() <= scale {
            digits.insert_str(0, &"0".repeat(scale + 1 - digits.len()));
        }
        digits.insert(digits.len() - scale, '.');
    }
    if is_negative {
        digits.insert(0, '-');
    }
    digits
}

impl Deref for Digits<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Text::Any(text) => text,
            Text::Short { .. } => std::str::from_utf8(self.as_bytes()).expect("ASCII"),
        }
    }
}

impl<'a> From<&'a str> for Digits<'a> {
    fn from(text: &'a str) -> Digits<'a> {
        Digits(Text::Any(text.into()))
    }
}

impl From<String> for Digits<'_> {
    fn from(text: String) -> Self {
        Digits(Text::Any(text.into()))
    }
}

impl PartialEq for Digits<'_> {
    fn eq(&self, other: &Digits<'_>) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Digits<'_> {}

impl fmt::Debug for Digits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Digits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(mantissa: i128, scale: u32) {
        let digits = mantissa.unsigned_abs().to_string();
        let want = with_point(mantissa < 0, digits, scale);
        let got = Digits::decimal(mantissa, scale);
        assert_eq!(&*got, want);
        assert_eq!(got.as_bytes(), want.as_bytes());
        assert_eq!(got, Digits::from(want));
        let has_room = mantissa
            .unsigned_abs()
            .to_string()
            .len()
            .max(scale as usize + 1)
            <= LONG_DIGITS;
        assert_eq!(got.as_decimal(), has_room.then_some((mantissa, scale)));
    }

    proptest! {
        #[test]
        fn short_texts_are_those_of_long_ones(
            any: i128, long: i64, short in -1000..1000_i128, scale in 0..40_u32,
        ) {
            for mantissa in [any, long.into(), short] {
                check(mantissa, scale);
            }
        }
    }

    #[test]
    fn the_longest_short_texts() {
        for mantissa in [0, 1, 9, 10, u64::MAX.into(), u64::MAX as i128 + 1] {
            for scale in 0..=SCALE_MAX + 1 {
                check(mantissa, scale);
                check(-mantissa, scale);
            }
        }
        assert_eq!(&*Digits::decimal(-5, 3), "-0.005");
        assert_eq!(&*Digits::decimal(0, 2), "0.00");
    }
}
