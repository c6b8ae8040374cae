//! Stage 2 for other numbers of usual size: up to 12 digits before the point and 6 behind it, 16 bytes in
//! all, a carriage return included.
//!
//! The code has no branch on the data and takes several rows at a time. It is compiled for every level, so
//! that the compiler vectorizes it. Its oracle is `decimal::number`.
//!
//! Invariant of this module: a level is only made where the processor has its features.
#![allow(unsafe_code)]

use crate::group::scan::rows::{INLINE, List, Rows, WIDE};
use crate::group::scan::window::ScanWindow;
use crate::level::Level;

/// Rows that are read at a time: two of the longest vectors.
const BATCH: usize = 16;

/// Lists in `to` the rows of `window` that `from` lists, their numbers in millionths. With `trims_cr` a
/// carriage return before the terminator belongs to the line end.
///
/// # Panics
/// If a row isn't in the window.
pub(crate) fn decode(
    level: Level,
    window: ScanWindow<'_>,
    from: &List,
    trims_cr: bool,
    to: &mut Rows<i64>,
) {
    to.clear();
    match level {
        // SAFETY: the module's invariant.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512(window, from, trims_cr, to) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2(window, from, trims_cr, to) },
        Level::Portable => batches(window, from, trims_cr, to),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512cd,avx512dq,bmi1,bmi2,popcnt")]
fn avx512(window: ScanWindow<'_>, from: &List, trims_cr: bool, to: &mut Rows<i64>) {
    batches(window, from, trims_cr, to);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn avx2(window: ScanWindow<'_>, from: &List, trims_cr: bool, to: &mut Rows<i64>) {
    batches(window, from, trims_cr, to);
}

#[inline(always)]
fn batches(window: ScanWindow<'_>, from: &List, trims_cr: bool, to: &mut Rows<i64>) {
    let batches = from.keys().chunks(BATCH);
    for (some_keys, some_spans) in batches.zip(from.values().chunks(BATCH)) {
        // A batch is filled up with empty spans, which are no numbers.
        let (mut keys, mut spans) = ([0; BATCH], [1 << 16; BATCH]);
        if let (Ok(all_keys), Ok(all_spans)) = (some_keys.try_into(), some_spans.try_into()) {
            (keys, spans) = (all_keys, all_spans);
        } else {
            keys[..some_keys.len()].copy_from_slice(some_keys);
            spans[..some_spans.len()].copy_from_slice(some_spans);
        }
        let shortest = keys
            .iter()
            .fold(u32::MAX, |shortest, &key| shortest.min(key >> 16));
        if shortest as usize > WIDE {
            to.rest.push_all(&keys, &spans);
            continue;
        }
        let (mut firsts, mut lasts) = ([0; BATCH], [0; BATCH]);
        for (row, span) in spans.iter().enumerate() {
            let words = window.words_before((span >> 16) as usize - 1);
            (firsts[row], lasts[row]) = (words as u64, (words >> 64) as u64);
        }
        let (mut values, mut invalid) = ([0; BATCH], [0; BATCH]);
        for row in 0..BATCH {
            let span = spans[row];
            let length = u64::from((span >> 16) - 1 - (span & 0xffff));
            let trim = trims_cr & (lasts[row] >> 56 == u64::from(b'\r'));
            (values[row], invalid[row]) = millionths(firsts[row], lasts[row], length, trim);
        }
        let any_invalid = invalid.iter().fold(0, |any, invalid| any | invalid);
        let longest = keys.iter().fold(0, |longest, &key| longest.max(key >> 16));
        if any_invalid == 0 && longest as usize <= INLINE {
            to.inline.push_all(&keys, &values);
            continue;
        }
        for row in 0..some_keys.len() {
            to.push(keys[row], values[row], invalid[row] == 0, spans[row]);
        }
    }
}

const fn each(byte: u8) -> u64 {
    u64::MAX / 0xff * byte as u64
}

const TOPS: u64 = each(0x80);

/// The number in the last `length` bytes of `first` and `last`, in millionths. The second result isn't 0 if
/// these bytes are no number, or a longer one.
#[inline(always)]
fn millionths(first: u64, last: u64, length: u64, trim: bool) -> (i64, u64) {
    // Before trimming: the byte that a carriage return displaces isn't in the words.
    let too_long = length > 16;
    let (first, last, length) = if trim {
        (first << 8, last << 8 | first >> 56, length.wrapping_sub(1))
    } else {
        (first, last, length)
    };
    // The first byte of a text is the lowest of its word: what is shifted left moves to the end.
    let later = |word: u64, bits: u64| if bits < 64 { word << bits } else { 0 };
    let earlier = |word: u64, bits: u64| if bits < 64 { word >> bits } else { 0 };
    // Bits before the number.
    let unused = 128_u64.wrapping_sub(length << 3);
    let start = if length > 8 { first } else { last } >> (unused & 63);
    let negative = start & 0xff == u64::from(b'-');
    let unused = if negative {
        unused.wrapping_add(8)
    } else {
        unused
    };
    // A point has at most 6 digits behind it, so it is in the last word. This sets the top bit of each byte
    // that is a point; no byte carries into the next.
    let points = last ^ each(b'.');
    let points = !(((points & !TOPS) + !TOPS) | points) & TOPS;
    let points = points & later(!0, unused.saturating_sub(64));
    // Bits behind the last point. A second point, or one at the end, stays among the integer digits and makes
    // them invalid.
    let behind = u64::from(points.leading_zeros()) & 63;
    let (first, last) = (first ^ each(b'0'), last ^ each(b'0'));
    let fraction = later(earlier(last, 64 - behind), 16);
    let by = if behind > 0 { behind + 8 } else { 0 };
    let unused = unused.wrapping_add(by);
    let high = later(first, by) & later(!0, unused);
    let low = later(last, by) | earlier(first, 64_u64.wrapping_sub(by));
    let low = low & later(!0, unused.saturating_sub(64));
    // A byte above 9 has its top bit set, or gets it here. Only an invalid byte carries.
    let invalid_digits = |digits: u64| (digits.wrapping_add(each(0x76)) | digits) & TOPS;
    let bits = 128_u64.wrapping_sub(unused);
    let size_invalid =
        too_long | (length.wrapping_sub(1) > 15) | (behind > 48) | (bits.wrapping_sub(8) > 88);
    let invalid = invalid_digits(fraction)
        | invalid_digits(low)
        | invalid_digits(high)
        | u64::from(size_invalid);
    let integer = eight_digits(low) + four_digits(high >> 32) * 100_000_000;
    let units = (integer * 1_000_000 + eight_digits(fraction)) as i64;
    (if negative { -units } else { units }, invalid)
}

/// The number of eight digits, one a byte, the first in the lowest.
#[inline(always)]
fn eight_digits(digits: u64) -> u64 {
    let fours = fours(digits);
    (fours & 0xffff) * 10_000 + (fours >> 32 & 0xffff)
}

/// The number of four digits, one a byte, the first in the lowest.
#[inline(always)]
fn four_digits(digits: u64) -> u64 {
    fours(digits) & 0xffff
}

/// The numbers of twice four digits, where the words of 32 bits begin.
#[inline(always)]
fn fours(digits: u64) -> u64 {
    // Multiplied by shifts: few processors multiply vectors of 64 bits well.
    let pairs = (digits << 3)
        .wrapping_add(digits << 1)
        .wrapping_add(digits >> 8);
    let (first, second) = (
        pairs & 0x00ff_00ff_00ff_00ff,
        pairs >> 16 & 0x00ff_00ff_00ff_00ff,
    );
    (first << 6) + (first << 5) + (first << 2) + second
}

#[cfg(test)]
mod tests {
    use crate::group::accumulate::decimal;
    use crate::group::scan::millionths::*;
    use crate::group::scan::rows::LONG;
    use crate::group::scan::window::WINDOW;
    use crate::group::scan::{index, scalar, tenths};
    use crate::record::block::PaddedBuf;
    use proptest::prelude::*;

    /// What should be read.
    fn naive(text: &[u8]) -> Option<i64> {
        match decimal::number(text) {
            Ok(decimal::Number::Millionths(units)) if text.len() <= 16 => Some(units),
            _ => None,
        }
    }

    /// One number, whatever stands before it.
    fn check(text: &[u8]) {
        for before in [0, b'1', b'-', b'.', b';', 0xff] {
            let mut words = [before; 16];
            let last = &text[text.len().saturating_sub(16)..];
            words[16 - last.len()..].copy_from_slice(last);
            let words = u128::from_le_bytes(words);
            let (units, invalid) =
                millionths(words as u64, (words >> 64) as u64, text.len() as u64, false);
            let read = (invalid == 0).then_some(units);
            assert_eq!(read, naive(text), "{:?}", text.escape_ascii().to_string());
        }
    }

    /// Rows of keys of so many bytes and numbers, at every level.
    fn check_rows(lines: &[(usize, String)], trims_cr: bool) {
        let mut text = Vec::new();
        for (length, value) in lines {
            text.extend(std::iter::repeat_n(b'9', *length));
            text.extend_from_slice(format!(";{value}\n").as_bytes());
        }
        assert!(text.len() <= WINDOW);
        for level in Level::available() {
            let buffer = PaddedBuf::with_fill(&text, b'0');
            let window = ScanWindow::at(&buffer.block(0, 0, 0), 0, WINDOW);
            let (mut ends, mut rows) = (index::Ends::new(), Rows::new());
            index::index(level, window, b';', b'\n', &mut ends);
            tenths::decode(level, window, &ends, trims_cr, &mut rows);
            let mut expected: [Vec<(u32, i64)>; 3] = Default::default();
            let mut rest = Vec::new();
            for (&key, &span) in rows.rest.keys().iter().zip(rows.rest.values()) {
                let whole = &text[(span & 0xffff) as usize..(span >> 16) as usize - 1];
                let value = if trims_cr {
                    scalar::trim(whole, b'\n')
                } else {
                    whole
                };
                let class = [INLINE, LONG, WIDE]
                    .iter()
                    .position(|&most| (key >> 16) as usize <= most);
                match (naive(value).filter(|_| whole.len() <= 16), class) {
                    (Some(value), Some(class)) => expected[class].push((key, value)),
                    _ => rest.push((key, span)),
                }
            }
            let mut lists = Rows::new();
            decode(level, window, &rows.rest, trims_cr, &mut lists);
            for (list, expected) in [&lists.inline, &lists.long, &lists.wide]
                .into_iter()
                .zip(expected)
            {
                let pairs = list
                    .keys()
                    .iter()
                    .copied()
                    .zip(list.values().iter().copied());
                assert!(pairs.eq(expected), "{level:?}");
            }
            let pairs = lists
                .rest
                .keys()
                .iter()
                .copied()
                .zip(lists.rest.values().iter().copied());
            assert!(pairs.eq(rest), "{level:?}");
        }
    }

    fn value() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "-?[0-9]{1,13}(\\.[0-9]{1,7})?\r?",
            1 => "[-.0-9]{0,18}",
            1 => "[-+.,/:0-9\r]{0,9}",
        ]
    }

    proptest! {
        #[test]
        fn agrees_with_the_scalar_parser(text in value()) {
            check(text.as_bytes());
        }

        #[test]
        fn levels_agree_with_the_naive(
            short in prop::collection::vec((0..31_usize, "-?[0-9]{1,8}(\\.[0-9]{2,6})?"), 0..70),
            any in prop::collection::vec((0..150_usize, value()), 0..30),
            trims_cr in any::<bool>(),
        ) {
            check_rows(&[short, any].concat(), trims_cr);
        }
    }

    /// 16 bytes with a carriage return are taken, and 17 aren't: the first would be displaced.
    #[test]
    fn a_carriage_return_counts() {
        let lines = [
            "00000000000.000\r",
            "000000000000.000\r",
            "-1.25\r",
            "\r",
            "",
        ];
        for trims_cr in [true, false] {
            check_rows(&lines.map(|value| (3, value.into())), trims_cr);
        }
    }

    /// Every number that differs from a good one in one byte, and every part of one.
    #[test]
    fn near_misses() {
        // Miri takes a thousand times as long.
        let step = if cfg!(miri) { 97 } else { 1 };
        for good in [
            "7",
            "-12",
            "1.25",
            "-3.141592",
            "1234567",
            "12345678",
            "-1234567",
            "123456.78",
            "-99999.99",
            "999999999999",
            "-999999999999",
            "123456789.123456",
            "-1234567890.1234",
            "000000000001.250",
        ] {
            for at in 0..=good.len() {
                for byte in (0..=255).step_by(step) {
                    let mut text = good.as_bytes().to_vec();
                    text.splice(at..good.len().min(at + 1), [byte]);
                    check(&text);
                }
                check(&good.as_bytes()[at..]);
                check(&good.as_bytes()[..at]);
            }
        }
    }
}
