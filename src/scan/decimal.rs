//! The third pass: the numbers of a column, in units of a power of ten.
//!
//! It reads values of up to eight bytes, `-?[0-9]*\.?[0-9]*` with a digit and no more decimals than the scale. What else
//! there is it leaves to a caller, by row.
//!
//! Invariant of this module: spans end within a window, so that nine bytes before their ends are readable; there are
//! eight spans more than are decoded, and as many places to write to.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::decimal::number::Number;
use crate::level::Level;
use crate::scan::index::{TextWindow, WINDOW};
use crate::scan::numbers::{FACTORS, Numbers, SCALE_MAX};
use crate::scan::spans::value;

/// The most decimals among those of some values that are numbers, as far as they can be decoded.
pub(crate) fn usual_scale(window: TextWindow<'_>, spans: &[u32]) -> u32 {
    let values = spans.iter().map(|&span| value(window, span));
    let scales = values
        .flat_map(Number::read)
        .map(|number| number.decimals());
    scales
        .filter(|scale| *scale <= SCALE_MAX)
        .max()
        .unwrap_or(0)
}

/// Decodes the first `rows` of `spans`, which are of `window`.
pub(crate) fn decode(
    level: Level,
    window: TextWindow<'_>,
    spans: &[u32],
    rows: usize,
    scale: u32,
    to: &mut Numbers,
) {
    assert!(rows + 8 <= spans.len() && rows <= WINDOW && scale <= SCALE_MAX);
    to.unread.clear();
    to.has_nulls = false;
    (to.magnitudes, to.decimals) = (0, 0);
    match level {
        Level::Portable => portable(window, &spans[..rows], scale, to),
        // SAFETY: a level is only made where the processor has its features; the spans are the window's.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { avx2::decode(window, spans, rows, scale, to) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => unsafe { avx512::decode(window, spans, rows, scale, to) },
    }
}

/// One after the other, in 64-bit words.
fn portable(window: TextWindow<'_>, spans: &[u32], scale: u32, to: &mut Numbers) {
    let factors = &FACTORS[scale as usize];
    for (eight, spans) in spans.chunks(8).enumerate() {
        let (mut nulls, mut good) = (0, 0);
        for (at, &span) in spans.iter().enumerate() {
            let value = value(window, span);
            to.values[8 * eight + at] = 0;
            nulls |= u8::from(value.is_empty()) << at;
            let Some((number, decimals)) = read(value) else {
                continue;
            };
            if decimals <= scale {
                let magnitude = number.unsigned_abs() * u64::from(factors[decimals as usize]);
                to.magnitudes |= magnitude;
                to.decimals = to.decimals.max(decimals);
                to.values[8 * eight + at] = number.signum() * magnitude as i64;
                good |= 1 << at;
            }
        }
        to.book(8 * eight, 8 * eight + spans.len(), nulls, good);
    }
}

/// A number of up to eight bytes without its point, and the digits behind that.
fn read(value: &[u8]) -> Option<(i64, u32)> {
    if value.len() > 8 {
        return None;
    }
    let (is_negative, digits) = match value {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let (mut number, mut point, mut seen) = (0, None, 0);
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                number = number * 10 + i64::from(byte - b'0');
                seen += 1;
            }
            b'.' if point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    let decimals = point.map_or(0, |point| digits.len() - point - 1);
    (seen > 0).then_some((if is_negative { -number } else { number }, decimals as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::block::PaddedBuf;
    use proptest::prelude::*;

    /// Every level against the parser of single numbers.
    fn check(values: &[String], scale: u32) {
        let text: String = values.iter().map(|value| format!("{value}\n")).collect();
        let padded = PaddedBuf::from(text.as_bytes());
        let block = padded.block(0, 0, 0);
        let window = TextWindow::at(&block, 0);
        let (mut spans, mut at) = (vec![], 0);
        for value in values {
            let end = at + value.len() as u32 + 1;
            spans.push(at | end << 16);
            at = end;
        }
        spans.extend([0; 8]);
        for level in Level::available() {
            let mut numbers = Numbers::new();
            numbers.values.fill(7);
            decode(level, window, &spans, values.len(), scale, &mut numbers);
            let (mut unread, mut magnitudes, mut decimals) = (vec![], 0, 0);
            for (row, value) in values.iter().enumerate() {
                assert_eq!(numbers.is_null(row), value.is_empty());
                let got = numbers.values[row];
                // What the pass may leave to others, it must leave: signs, blanks, long numbers.
                let is_short = value.len() <= 8 && !value.starts_with('+');
                let number = Number::read(value.as_bytes()).ok();
                let number = number.filter(|number| {
                    is_short && number.decimals() <= scale && !value.contains([' ', '\t'])
                });
                match number {
                    Some(number) => {
                        let want = number.at(scale).expect("a short one") as i64;
                        assert_eq!(got, want, "{value}");
                        magnitudes |= want.unsigned_abs();
                        decimals = decimals.max(number.decimals());
                    }
                    None => {
                        assert_eq!(got, 0, "{value}");
                        if !value.is_empty() {
                            unread.push(row as u32);
                        }
                    }
                }
            }
            assert_eq!(numbers.unread, unread, "{values:?}");
            assert_eq!(numbers.magnitudes, magnitudes);
            assert_eq!(numbers.decimals, decimals);
            assert_eq!(numbers.has_nulls, values.iter().any(String::is_empty));
        }
    }

    proptest! {
        #[test]
        fn as_the_parser_reads(
            values in prop::collection::vec(
                prop_oneof!["-?[0-9]{0,9}", "-?[0-9]{1,5}\\.[0-9]{0,4}", "[-+. 0-9a/:\"]{0,10}", "-?\\.?[0-9]?"],
                0..40),
            scale in 0..=SCALE_MAX,
        ) {
            check(&values, scale);
        }
    }

    /// Every text of up to four bytes that are near digits, points and signs.
    #[test]
    fn all_short_texts() {
        let bytes = b"0179.-+/:, ";
        let mut texts = vec![String::new()];
        for _ in 0..if cfg!(miri) { 1 } else { 4 } {
            let longer = texts.iter().flat_map(|text| {
                bytes
                    .iter()
                    .map(move |&byte| format!("{text}{}", byte as char))
            });
            texts = longer.chain([String::new()]).collect();
        }
        for values in texts.chunks(3000) {
            check(values, 2);
        }
    }
}
