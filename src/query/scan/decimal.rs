//! The third pass: the numbers of a column, in units of a power of ten.
//!
//! It reads values of up to eight bytes, `-?[0-9]*\.?[0-9]*` with a digit and no more decimals than the scale. What else
//! there is it leaves to a caller, by row.
//!
//! Invariant of this module: spans end within a window, so that nine bytes before their ends are readable; there are
//! eight spans more than are decoded, and as many places to write to.
#![allow(unsafe_code)]

use crate::level::Level;
use crate::query::number::Number;
use crate::query::scan::index::{TextWindow, WINDOW};
use crate::query::scan::spans::value;

/// The most decimals: what eight digits are multiplied by fits 32 bits.
pub(crate) const SCALE_MAX: u32 = 7;

/// Rows that lists have places for: those of a window, and eight more.
pub(crate) const ROWS: usize = WINDOW + 8;

/// The numbers of a column in a window.
pub(crate) struct Numbers {
    /// In units of `10^-scale`; zero where there is none.
    pub(crate) values: Box<[i64]>,
    /// A byte for eight rows, a bit for each whose value is empty.
    pub(crate) nulls: Box<[u8]>,
    pub(crate) has_nulls: bool,
    /// Rows that weren't read.
    pub(crate) unread: Vec<u32>,
    /// All values without their signs, by `or`.
    pub(crate) magnitudes: u64,
    /// The most digits behind a point.
    pub(crate) decimals: u32,
}

impl Numbers {
    pub(crate) fn new() -> Numbers {
        Numbers {
            values: vec![0; ROWS].into(),
            nulls: vec![0; ROWS.div_ceil(8)].into(),
            has_nulls: false,
            unread: Vec::new(),
            magnitudes: 0,
            decimals: 0,
        }
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls[row / 8] >> (row % 8) & 1 == 1
    }

    pub(crate) fn set_null(&mut self, row: usize, is_null: bool) {
        let bit = 1 << (row % 8);
        self.nulls[row / 8] &= !bit;
        if is_null {
            self.nulls[row / 8] |= bit;
            self.has_nulls = true;
        }
    }

    /// Books eight rows from `row` on, of which there are `rows`.
    #[inline(always)]
    fn book(&mut self, row: usize, rows: usize, nulls: u8, good: u8) {
        let valid = if rows - row < 8 {
            !(!0 << (rows - row))
        } else {
            !0
        };
        self.nulls[row / 8] = nulls & valid;
        self.has_nulls |= nulls & valid != 0;
        let mut unread = valid & !(good | nulls);
        while unread != 0 {
            self.unread.push(row as u32 + unread.trailing_zeros());
            unread &= unread - 1;
        }
    }
}

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

/// What a value with so many decimals is multiplied by; zero where it has too many.
fn factors(scale: u32) -> [u32; 8] {
    std::array::from_fn(|decimals| match scale.checked_sub(decimals as u32) {
        Some(more) => 10_u32.pow(more),
        None => 0,
    })
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
        Level::Avx2 | Level::Avx512 => unsafe { x86::avx2(window, spans, rows, scale, to) },
    }
}

/// One after the other, in 64-bit words.
fn portable(window: TextWindow<'_>, spans: &[u32], scale: u32, to: &mut Numbers) {
    let factors = factors(scale);
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

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use crate::query::scan::decimal::{Numbers, factors};
    use crate::query::scan::index::TextWindow;

    /// Of four rows: values, and a bit for each that is null or was read.
    struct Four {
        values: __m256i,
        nulls: u8,
        good: u8,
    }

    /// The eight bytes before the last of each of four spans, in lanes of their own.
    ///
    /// # Safety
    /// The spans end in the window, and AVX2 is there.
    #[inline(always)]
    unsafe fn words(window: *const u8, spans: *const u32) -> __m256i {
        // SAFETY: nine bytes before a window's place are readable.
        unsafe {
            let word = |lane: usize| {
                let end = (*spans.add(lane) >> 16) as usize;
                _mm_loadl_epi64(window.add(end).sub(9).cast())
            };
            let two = |lane: usize| _mm_unpacklo_epi64(word(lane), word(lane + 1));
            _mm256_set_m128i(two(2), two(0))
        }
    }

    /// What eight digits, the first in the lowest byte, are together.
    ///
    /// # Safety
    /// AVX2 is there.
    #[inline(always)]
    unsafe fn together(digits: __m256i) -> __m256i {
        // SAFETY: as the caller's.
        unsafe {
            let twos = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010a));
            let fours = _mm256_madd_epi16(twos, _mm256_set1_epi32(0x0001_0064));
            let high = _mm256_mul_epu32(fours, _mm256_set1_epi64x(10_000));
            _mm256_add_epi64(high, _mm256_srli_epi64::<32>(fours))
        }
    }

    /// A bit for each lane that is all ones.
    ///
    /// # Safety
    /// AVX2 is there.
    #[inline(always)]
    unsafe fn bits(lanes: __m256i) -> u8 {
        // SAFETY: as the caller's.
        unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(lanes)) as u8 }
    }

    /// # Safety
    /// The spans end in the window, and AVX2 is there.
    #[inline(always)]
    unsafe fn four(
        window: *const u8,
        spans: *const u32,
        factors: __m256i,
        magnitudes: &mut __m256i,
        most: &mut __m256i,
    ) -> Four {
        // SAFETY: as the caller's; four spans are read.
        unsafe {
            let (none, ones) = (_mm256_setzero_si256(), _mm256_set1_epi64x(-1));
            let (one, low_byte) = (_mm256_set1_epi64x(1), _mm256_set1_epi64x(0xff));
            let lanes = _mm256_cvtepu32_epi64(_mm_loadu_si128(spans.cast()));
            let start = _mm256_and_si256(lanes, _mm256_set1_epi64x(0xffff));
            let end = _mm256_srli_epi64::<16>(lanes);
            let length = _mm256_sub_epi64(_mm256_sub_epi64(end, start), one);
            // Longer values are shifted out as a whole, and don't count.
            let shift = _mm256_slli_epi64::<3>(_mm256_sub_epi64(_mm256_set1_epi64x(8), length));
            let digits = _mm256_xor_si256(words(window, spans), _mm256_set1_epi8(b'0' as i8));
            let mut word = _mm256_and_si256(digits, _mm256_sllv_epi64(ones, shift));
            let first = _mm256_and_si256(_mm256_srlv_epi64(word, shift), low_byte);
            let dash = _mm256_set1_epi64x(i64::from(b'-' ^ b'0'));
            let negative = _mm256_cmpeq_epi64(first, dash);
            let dashes = _mm256_and_si256(negative, _mm256_sllv_epi64(dash, shift));
            word = _mm256_xor_si256(word, dashes);
            // The first point is taken out, and what stands before it moves up; a second one is no digit.
            let points = _mm256_cmpeq_epi8(word, _mm256_set1_epi8((b'.' ^ b'0') as i8));
            let without = _mm256_cmpeq_epi64(points, none);
            let before = _mm256_andnot_si256(points, _mm256_add_epi64(points, ones));
            let up_to = _mm256_or_si256(_mm256_slli_epi64::<8>(before), low_byte);
            let behind = _mm256_andnot_si256(_mm256_or_si256(up_to, without), ones);
            let moved = _mm256_slli_epi64::<8>(_mm256_and_si256(word, before));
            let joined = _mm256_or_si256(_mm256_and_si256(word, behind), moved);
            word = _mm256_blendv_epi8(joined, word, without);
            let decimals = _mm256_sad_epu8(_mm256_and_si256(behind, _mm256_set1_epi8(1)), none);
            let factor = _mm256_permutevar8x32_epi32(factors, decimals);
            let factor = _mm256_and_si256(factor, _mm256_set1_epi64x(0xffff_ffff));
            // Signs and points are -1 in their lanes.
            let count = _mm256_add_epi64(length, negative);
            let count = _mm256_add_epi64(count, _mm256_xor_si256(without, ones));
            let fits = _mm256_and_si256(
                _mm256_cmpgt_epi64(_mm256_set1_epi64x(9), length),
                _mm256_cmpgt_epi64(count, none),
            );
            let above_nine = _mm256_adds_epu8(word, _mm256_set1_epi8(0x76));
            let above_nine = _mm256_and_si256(above_nine, _mm256_set1_epi8(-128));
            let digits_only = _mm256_cmpeq_epi64(above_nine, none);
            let good = _mm256_and_si256(fits, digits_only);
            let good = _mm256_andnot_si256(_mm256_cmpeq_epi64(factor, none), good);
            let magnitude = _mm256_mul_epu32(together(word), factor);
            let magnitude = _mm256_and_si256(magnitude, good);
            *magnitudes = _mm256_or_si256(*magnitudes, magnitude);
            *most = _mm256_max_epu32(*most, _mm256_and_si256(decimals, good));
            Four {
                values: _mm256_sub_epi64(_mm256_xor_si256(magnitude, negative), negative),
                nulls: bits(_mm256_cmpeq_epi64(length, none)),
                good: bits(good),
            }
        }
    }

    /// # Safety
    /// The processor has AVX2; the spans end in the window, and are eight more than `rows`.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) unsafe fn avx2(
        window: TextWindow<'_>,
        spans: &[u32],
        rows: usize,
        scale: u32,
        to: &mut Numbers,
    ) {
        let factors = factors(scale);
        let (mut magnitudes, mut most) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        // SAFETY: eight lanes of eight.
        let factors = unsafe { _mm256_loadu_si256(factors.as_ptr().cast()) };
        for row in (0..rows).step_by(8) {
            let from = spans[row..row + 8].as_ptr();
            // Not mapped by a closure: rustc 1.95 may load what it captures as if it were aligned, and the run dies.
            // SAFETY: as the caller's.
            let (one, two) = unsafe {
                let text = window.pointer();
                let one = four(text, from, factors, &mut magnitudes, &mut most);
                let two = four(text, from.add(4), factors, &mut magnitudes, &mut most);
                (one, two)
            };
            let values = to.values[row..row + 8].as_mut_ptr();
            // SAFETY: eight values of eight.
            unsafe {
                _mm256_storeu_si256(values.cast(), one.values);
                _mm256_storeu_si256(values.add(4).cast(), two.values);
            }
            let nulls = one.nulls | two.nulls << 4;
            to.book(row, rows, nulls, one.good | two.good << 4);
        }
        let mut lanes = [0_u64; 4];
        // SAFETY: four lanes of four.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), magnitudes) };
        to.magnitudes = lanes.into_iter().fold(0, |all, lane| all | lane);
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), most) };
        to.decimals = lanes.into_iter().max().unwrap_or_default() as u32;
    }
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
