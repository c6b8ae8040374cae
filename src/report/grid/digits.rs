//! A number of an answer. Its text is made where it is written: an answer may have millions, and a text that is built and
//! then moved is read before its bytes have arrived in the cache.

use std::borrow::Cow;
use std::fmt;

/// Of a short number: a mantissa of 64 bits has 20 digits.
const SCALE_MAX: u32 = 20;
/// The most bytes of its text: a sign, and a zero and a point before 20 digits.
const SHORT_MAX: usize = 3 + SCALE_MAX as usize;
/// So many digits always fit 128 bits.
pub(super) const LONG_DIGITS: usize = 38;

/// A number, whose text is `-?digits(.digits)?`, or a double's shortest form, which may have an exponent after it.
#[derive(Clone)]
pub struct Digits<'a>(Text<'a>);

#[derive(Clone)]
enum Text<'a> {
    Any(Cow<'a, str>),
    Short(Short),
}

/// `magnitude / 10^scale`, with `scale` digits after the point.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Short {
    magnitude: u64,
    /// The scale, and in the lowest bit whether it is negative, as one word: fields that are written one by one and moved
    /// together wait for each other.
    form: u64,
}

impl Digits<'_> {
    /// Of `mantissa / 10^scale`, with `scale` digits after the point; zero has no sign.
    #[inline]
    pub fn decimal(mantissa: i128, scale: u32) -> Digits<'static> {
        match u64::try_from(mantissa.unsigned_abs()) {
            Ok(magnitude) if scale <= SCALE_MAX => Digits(Text::Short(Short {
                magnitude,
                form: u64::from(scale) << 1 | u64::from(mantissa < 0),
            })),
            _ => long(mantissa, scale),
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
        self.text().parse().expect("a number")
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
        let text = match &self.0 {
            Text::Short(short) => return Some((short.mantissa(), short.scale() as u32)),
            Text::Any(text) => text,
        };
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        if text.contains('e') || digits > LONG_DIGITS {
            return None;
        }
        let scale = text.split_once('.').map_or(0, |(_, after)| after.len());
        let text = text.replace('.', "");
        Some((text.parse().expect("few digits"), scale as u32))
    }

    /// Its text.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.0 {
            Text::Any(text) => Cow::Borrowed(text),
            Text::Short(_) => {
                let mut text = Vec::with_capacity(ROOM);
                self.push(&mut text);
                Cow::Owned(String::from_utf8(text).expect("ASCII"))
            }
        }
    }

    /// Appends its text.
    #[inline]
    pub fn push(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Text::Any(text) => out.extend_from_slice(text.as_bytes()),
            Text::Short(short) => short.push(out),
        }
    }

    /// The most bytes of its text.
    #[inline]
    pub(super) fn len_max(&self) -> usize {
        match &self.0 {
            Text::Any(text) => text.len(),
            Text::Short(_) => SHORT_MAX,
        }
    }

    /// Bytes up to the point, and from there on.
    pub(super) fn lengths(&self) -> (usize, usize) {
        match &self.0 {
            Text::Any(text) => {
                let whole = text.find('.').unwrap_or(text.len());
                (whole, text.len() - whole)
            }
            Text::Short(short) => {
                let (whole, _) = short.parts();
                let fraction = short.scale() + usize::from(short.scale() > 0);
                (usize::from(short.is_negative()) + length(whole), fraction)
            }
        }
    }

    #[cfg(feature = "arrow")]
    pub(super) fn is_negative(&self) -> bool {
        match &self.0 {
            Text::Any(text) => text.starts_with('-'),
            Text::Short(short) => short.is_negative(),
        }
    }

    /// The text that it is given by, which may have zeros before its other digits or an exponent after them.
    pub(super) fn given(&self) -> Option<&str> {
        match &self.0 {
            Text::Any(text) => Some(text),
            Text::Short(_) => None,
        }
    }
}

/// Bytes that are appended at once, which is faster than as many as a text has.
const ROOM: usize = 32;

impl Short {
    fn scale(self) -> usize {
        (self.form >> 1) as usize
    }

    /// Zero isn't.
    fn is_negative(self) -> bool {
        self.form & 1 == 1
    }

    fn mantissa(self) -> i128 {
        let magnitude = i128::from(self.magnitude);
        if self.is_negative() {
            -magnitude
        } else {
            magnitude
        }
    }

    /// What is before the point, and after it.
    #[inline]
    fn parts(self) -> (u64, u64) {
        match (self.scale(), 10_u64.checked_pow(self.scale() as u32)) {
            (0, _) => (self.magnitude, 0),
            (_, Some(power)) => (self.magnitude / power, self.magnitude % power),
            (_, None) => (0, self.magnitude),
        }
    }

    #[inline]
    fn push(self, out: &mut Vec<u8>) {
        let (whole, fraction) = self.parts();
        let start = out.len() + usize::from(self.is_negative());
        let point = start + length(whole);
        out.extend_from_slice(&[b'-'; ROOM]);
        fill(whole, &mut out[start..point]);
        let mut end = point;
        if self.scale() > 0 {
            end += 1 + self.scale();
            out[point] = b'.';
            fill(fraction, &mut out[point + 1..end]);
        }
        out.truncate(end);
    }
}

/// Digits of a number.
#[inline]
fn length(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Fills a text with a number's last digits.
#[inline]
fn fill(mut number: u64, text: &mut [u8]) {
    let mut pairs = text.rchunks_exact_mut(2);
    for pair in &mut pairs {
        pair.copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if let [first] = pairs.into_remainder() {
        *first = b'0' + (number % 10) as u8;
    }
}

/// The two digits of each number up to 99.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut at = 0;
    while at < pairs.len() {
        pairs[at] = [b'0' + (at / 10) as u8, b'0' + (at % 10) as u8];
        at += 1;
    }
    pairs
};

#[cold]
fn long(mantissa: i128, scale: u32) -> Digits<'static> {
    let digits = mantissa.unsigned_abs().to_string();
    with_point(mantissa < 0, digits, scale).into()
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
        match (&self.0, &other.0) {
            (Text::Short(one), Text::Short(other)) => one == other,
            _ => self.text() == other.text(),
        }
    }
}

impl Eq for Digits<'_> {}

impl fmt::Debug for Digits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text(), f)
    }
}

impl fmt::Display for Digits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text())
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
        assert_eq!(got.text(), want);
        assert!(want.len() <= got.len_max());
        let text = Digits::from(want);
        assert_eq!(got, text);
        assert_eq!(got.lengths(), text.lengths());
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
        assert_eq!(Digits::decimal(-5, 3).text(), "-0.005");
        assert_eq!(Digits::decimal(0, 2).text(), "0.00");
    }
}
