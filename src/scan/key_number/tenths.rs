//! Stage 2, *decode*: reads and checks the numbers of a balanced window that have one decimal, and lists the
//! rows by the size of their keys. The rest is for others.
//!
//! The shape read here is `-?[0-9]{1,2}\.[0-9]`, before an optional carriage return. A number is aligned by
//! its end, so that its point needs no search: of the 8 bytes that end at it, the last is the decimal digit,
//! then point, units, tens. One saturating addition checks digits and point: after an exclusive-or with
//! `00.0` a digit is at most 9 and the point 0, so adding 0x76 (0x7f for the point) sets the top bit of
//! every other byte.
//!
//! Invariant of this module: the ends of [`Ends`] rise and lie within the window, 32 zeros follow the last
//! row's, and a list can hold 16 more rows than a window.
#![allow(unsafe_code)]

use ringfold_read::internals::Level;

use crate::scan::key_number::index::Ends;
use crate::scan::key_number::rows::Rows;
use crate::scan::key_number::window::ScanWindow;
use crate::table::stats::BIAS;

/// Lists the rows of a balanced `window` in `to`. With `trims_cr` a carriage return before the terminator
/// belongs to the line end.
pub(crate) fn decode(
    level: Level,
    window: ScanWindow<'_>,
    ends: &Ends,
    trims_cr: bool,
    to: &mut Rows,
) {
    debug_assert!(ends.balanced());
    to.clear();
    match level {
        // SAFETY: a level is only made where the processor has its features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => unsafe { x86::avx512(window, ends, trims_cr, to) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { x86::avx2(window, ends, trims_cr, to) },
        Level::Portable => portable(window, ends, trims_cr, to),
    }
}

const SHAPE: u64 = u64::from_le_bytes([0, 0, 0, 0, b'0', b'0', b'.', b'0']);
const LIMITS: u64 = u64::from_le_bytes([0, 0, 0, 0, 0x76, 0x76, 0x7f, 0x76]);
const INVALID: u64 = u64::from_le_bytes([0, 0, 0, 0, 0x80, 0x80, 0x80, 0x80]);

/// The scalar counterpart of the vector kernels, row by row in 64-bit words. A byte carries into its
/// neighbour only if it is invalid already.
fn portable(window: ScanWindow<'_>, ends: &Ends, trims_cr: bool, to: &mut Rows) {
    for ends in ends.ends().windows(3).step_by(2) {
        let [start, key_end, end] = [ends[0], ends[1], ends[2]].map(u32::from);
        let mut word = window.word_before(end as usize - 1);
        // Arithmetic in place of branches, because the shape of a number can't be predicted.
        let trim = u32::from(trims_cr & (word >> 56 == u64::from(b'\r')));
        word <<= 8 * trim;
        let mut unused = 64_u32
            .wrapping_sub(8 * (end - key_end - 1))
            .wrapping_add(8 * trim);
        // From 64 on the shifts mean nothing, but then the number doesn't fit.
        let negative = u32::from(word.wrapping_shr(unused) as u8 == b'-');
        unused = unused.wrapping_add(8 * negative);
        let fits = unused.wrapping_sub(32) & !8 == 0;
        let word = (word ^ SHAPE) & u64::MAX.wrapping_shl(unused);
        let digits = (word >> 32) as u32;
        // Bytes below 0x80 can't carry; those above are invalid by themselves.
        let low = digits & 0x7f7f_7f7f;
        let invalid = (low.wrapping_add((LIMITS >> 32) as u32) | digits) & (INVALID >> 32) as u32;
        let good = fits & (invalid == 0);
        let tenths = ((digits & 0xff) * 100 + (digits >> 8 & 0xff) * 10).wrapping_add(digits >> 24);
        let sign = negative.wrapping_neg();
        let value = BIAS.wrapping_add(tenths ^ sign).wrapping_add(negative);
        let key = start | (key_end - start) << 16;
        to.push(key, value, good, key_end | end << 16);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::scan::key_number::index::Ends;
    use crate::scan::key_number::rows::{INLINE, LONG, List, Rows, WIDE};
    use crate::scan::key_number::tenths::{INVALID, LIMITS, SHAPE};
    use crate::scan::key_number::window::ScanWindow;
    use crate::table::stats::BIAS;
    use std::arch::x86_64::*;

    const WEIGHTS: u64 = u64::from_le_bytes([0, 0, 0, 0, 100, 10, 0, 1]);

    /// The 8 bytes before the terminators of two rows, of which the first ends at `end`.
    ///
    /// # Safety
    /// Each terminator is within the window or, past its rows, at its start less one.
    #[inline(always)]
    unsafe fn two_words(window: ScanWindow<'_>, end: *const u16) -> __m128i {
        // SAFETY: the 8 bytes are within the window or its padding; every other end is a terminator's.
        unsafe {
            // Volatile, or the compiler would load vectors and extract from them at twice the price.
            let word = |end: *const u16| {
                window
                    .pointer()
                    .add(usize::from(end.read_volatile()))
                    .sub(9)
            };
            let low = _mm_castsi128_pd(_mm_loadl_epi64(word(end).cast()));
            _mm_castpd_si128(_mm_loadh_pd(low, word(end.add(2)).cast()))
        }
    }

    /// Sixteen rows at a time, each a 32-bit lane: the last four bytes of its number hold all digits,
    /// and only a number of five bytes has one before them, which must be its sign.
    ///
    /// # Safety
    /// The processor must have the features named, and `ends` must be of `window`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
    pub(crate) unsafe fn avx512(
        window: ScanWindow<'_>,
        ends: &Ends,
        trims_cr: bool,
        to: &mut Rows,
    ) {
        let lanes = |word: u32| _mm512_set1_epi32(word as i32);
        let evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let odds = _mm512_add_epi32(evens, lanes(1));
        let first_dash = lanes(b'-'.into());
        let last_dash = lanes(u32::from(b'-') << 24);
        let shape = lanes((SHAPE >> 32) as u32);
        let limits = lanes((LIMITS >> 32) as u32);
        let invalid = lanes((INVALID >> 32) as u32);
        let weights = lanes((WEIGHTS >> 32) as u32);
        let bias = lanes(BIAS);
        let inline_max = lanes((INLINE << 16 | 0xffff) as u32);
        let long_max = lanes((LONG << 16 | 0xffff) as u32);
        let wide_max = lanes((WIDE << 16 | 0xffff) as u32);
        let from = ends.pointer();
        let rows = ends.rows();
        let mut row = 0;
        while row < rows {
            let valid = _bzhi_u32(0xffff, (rows - row).min(16) as u32) as u16;
            // SAFETY: `Ends` has zeros past its last row.
            let (keys, spans) = unsafe {
                let at = from.add(2 * row).cast::<u8>();
                (
                    _mm512_loadu_si512(at.cast()),
                    _mm512_loadu_si512(at.add(2).cast()),
                )
            };
            let keys = _mm512_sub_epi32(keys, _mm512_slli_epi32::<16>(keys));
            // The terminator is counted.
            let mut lengths = _mm512_sub_epi32(
                _mm512_srli_epi32::<16>(spans),
                _mm512_and_si512(spans, lanes(0xffff)),
            );
            // Gathers are slower than so many loads.
            // SAFETY: `Ends` has zeros past its last row.
            let words = |first: usize| unsafe {
                let two = |lane: usize| two_words(window, from.add(2 * (row + first + lane) + 2));
                let four = |lane: usize| {
                    let low = _mm256_castsi128_si256(two(lane));
                    _mm256_inserti128_si256::<1>(low, two(lane + 2))
                };
                _mm512_inserti64x4::<1>(_mm512_castsi256_si512(four(0)), four(4))
            };
            let (mut low, mut high) = (words(0), words(8));
            let last = |low, high| _mm512_permutex2var_epi32(low, odds, high);
            let mut ending = last(low, high);
            if trims_cr {
                let trim = _mm512_cmpge_epu32_mask(ending, lanes(u32::from(b'\r') << 24))
                    & _mm512_cmplt_epu32_mask(ending, lanes((u32::from(b'\r') + 1) << 24));
                if trim != 0 {
                    low = _mm512_mask_slli_epi64::<8>(low, trim as u8, low);
                    high = _mm512_mask_slli_epi64::<8>(high, (trim >> 8) as u8, high);
                    ending = last(low, high);
                    lengths = _mm512_mask_sub_epi32(lengths, trim, lengths, lanes(1));
                }
            }
            let before = _mm512_permutex2var_epi32(low, evens, high);
            let of_length = |length: u32| _mm512_cmpeq_epi32_mask(lengths, lanes(length + 1));
            let three = of_length(3);
            let four = of_length(4);
            let negative = _mm512_mask_testn_epi32_mask(
                four,
                _mm512_xor_si512(ending, first_dash),
                lanes(0xff),
            );
            let five = _mm512_mask_testn_epi32_mask(
                of_length(5),
                _mm512_xor_si512(before, last_dash),
                lanes(0xff00_0000),
            );
            let digits = _mm512_xor_si512(ending, shape);
            let digits =
                _mm512_mask_and_epi32(digits, three | negative, digits, lanes(0xffff_ff00));
            let good = _mm512_mask_testn_epi32_mask(
                (three | four | five) & valid,
                _mm512_adds_epu8(digits, limits),
                invalid,
            );
            let tenths =
                _mm512_madd_epi16(_mm512_maddubs_epi16(digits, weights), _mm512_set1_epi16(1));
            let values = _mm512_add_epi32(bias, tenths);
            let values = _mm512_mask_sub_epi32(values, negative | five, bias, tenths);

            let inline = _mm512_mask_cmple_epu32_mask(good, keys, inline_max);
            // SAFETY: a list can hold 16 more rows than a window.
            unsafe {
                let put_all = |list: &mut List| {
                    _mm512_storeu_si512(list.keys.0.as_mut_ptr().add(list.count).cast(), keys);
                    _mm512_storeu_si512(list.values.0.as_mut_ptr().add(list.count).cast(), values);
                    list.count += 16;
                };
                let put = |to: *mut u32, mask, from| {
                    _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi32(mask, from));
                };
                let put_some = |list: &mut List, mask: u16, values| {
                    put(list.keys.0.as_mut_ptr().add(list.count), mask, keys);
                    put(list.values.0.as_mut_ptr().add(list.count), mask, values);
                    list.count += mask.count_ones() as usize;
                };
                if inline == 0xffff {
                    put_all(&mut to.inline);
                    row += 16;
                    continue;
                }
                let long = _mm512_mask_cmple_epu32_mask(good & !inline, keys, long_max);
                if long == 0xffff {
                    put_all(&mut to.long);
                    row += 16;
                    continue;
                }
                put_some(&mut to.inline, inline, values);
                if inline != valid {
                    let good_and_wide = _mm512_mask_cmple_epu32_mask(good, keys, wide_max);
                    put_some(&mut to.long, long, values);
                    put_some(&mut to.wide, good_and_wide & !(inline | long), values);
                    put_some(&mut to.rest, valid & !good_and_wide, spans);
                }
            }
            row += 16;
        }
    }

    /// For each set of eight lanes: the lanes in the set, compacted to the front.
    static COMPACT: [[u8; 8]; 256] = {
        let mut compact = [[0; 8]; 256];
        let mut set = 0;
        while set < 256 {
            let (mut lane, mut to) = (0, 0);
            while lane < 8 {
                if set >> lane & 1 == 1 {
                    compact[set][to] = lane;
                    to += 1;
                }
                lane += 1;
            }
            set += 1;
        }
        compact
    };

    /// Eight rows at a time, as the sixteen of [`avx512`].
    ///
    /// # Safety
    /// The processor must have the features named, and `ends` must be of `window`.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(crate) unsafe fn avx2(window: ScanWindow<'_>, ends: &Ends, trims_cr: bool, to: &mut Rows) {
        let from = ends.pointer();
        let rows = ends.rows();
        let mut row = 0;
        while row < rows {
            let valid = _bzhi_u32(0xff, (rows - row).min(8) as u32) as u8;
            // SAFETY: `Ends` has zeros past its last row.
            let (keys, spans) = unsafe {
                let at = from.add(2 * row).cast::<u8>();
                (
                    _mm256_loadu_si256(at.cast()),
                    _mm256_loadu_si256(at.add(2).cast()),
                )
            };
            let keys = _mm256_sub_epi32(keys, _mm256_slli_epi32::<16>(keys));
            // The terminator is counted.
            let lengths = _mm256_sub_epi32(
                _mm256_srli_epi32::<16>(spans),
                _mm256_and_si256(spans, _mm256_set1_epi32(0xffff)),
            );
            // SAFETY: `Ends` has zeros past its last row.
            let words = |first: usize| unsafe {
                let two = |lane: usize| two_words(window, from.add(2 * (row + lane) + 2));
                let low = _mm256_castsi128_si256(two(first));
                _mm256_inserti128_si256::<1>(low, two(first + 4))
            };
            // Rows 0, 1, 4, 5 and 2, 3, 6, 7, so that shuffles within the halves pick them in order.
            let (values, good) = eight_tenths(words(0), words(2), lengths, trims_cr);
            // SAFETY: the rows are of a window.
            unsafe { list_eight(keys, values, spans, good & valid, valid, to) };
            row += 8;
        }
    }

    /// The set of lanes that are all ones.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn set(lanes: __m256i) -> u8 {
        _mm256_movemask_ps(_mm256_castsi256_ps(lanes)) as u8
    }

    /// The values of eight numbers, and the set of those that have the shape. The 8 bytes before the
    /// terminators are in `low` (rows 0, 1, 4, 5) and `high` (rows 2, 3, 6, 7).
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn eight_tenths(
        mut low: __m256i,
        mut high: __m256i,
        mut lengths: __m256i,
        trims_cr: bool,
    ) -> (__m256i, u8) {
        let lanes = |word: u32| _mm256_set1_epi32(word as i32);
        let equal = |a, b| _mm256_cmpeq_epi32(a, b);
        let last = |low, high| {
            let (low, high) = (_mm256_castsi256_ps(low), _mm256_castsi256_ps(high));
            _mm256_castps_si256(_mm256_shuffle_ps::<0xdd>(low, high))
        };
        let first = |low, high| {
            let (low, high) = (_mm256_castsi256_ps(low), _mm256_castsi256_ps(high));
            _mm256_castps_si256(_mm256_shuffle_ps::<0x88>(low, high))
        };
        let mut ending = last(low, high);
        if trims_cr {
            let trim = equal(_mm256_srli_epi32::<24>(ending), lanes(b'\r'.into()));
            if set(trim) != 0 {
                let later =
                    |words, trim| _mm256_blendv_epi8(words, _mm256_slli_epi64::<8>(words), trim);
                low = later(low, _mm256_unpacklo_epi32(trim, trim));
                high = later(high, _mm256_unpackhi_epi32(trim, trim));
                ending = last(low, high);
                lengths = _mm256_add_epi32(lengths, trim);
            }
        }
        let of_length = |length: u32| equal(lengths, lanes(length + 1));
        let (three, four) = (of_length(3), of_length(4));
        let dash = lanes(b'-'.into());
        let first_dash = equal(_mm256_and_si256(ending, lanes(0xff)), dash);
        let negative = _mm256_and_si256(four, first_dash);
        let before = _mm256_srli_epi32::<24>(first(low, high));
        let five = _mm256_and_si256(of_length(5), equal(before, dash));
        let digits = _mm256_xor_si256(ending, lanes((SHAPE >> 32) as u32));
        let other = _mm256_srli_epi32::<24>(_mm256_or_si256(three, negative));
        let digits = _mm256_andnot_si256(other, digits);
        let invalid = _mm256_and_si256(
            _mm256_adds_epu8(digits, lanes((LIMITS >> 32) as u32)),
            lanes((INVALID >> 32) as u32),
        );
        let fits = _mm256_or_si256(_mm256_or_si256(three, four), five);
        let good = _mm256_and_si256(fits, equal(invalid, _mm256_setzero_si256()));
        let pairs = _mm256_maddubs_epi16(digits, lanes((WEIGHTS >> 32) as u32));
        let tenths = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
        let sign = _mm256_or_si256(negative, five);
        let tenths = _mm256_sub_epi32(_mm256_xor_si256(tenths, sign), sign);
        (_mm256_add_epi32(lanes(BIAS), tenths), set(good))
    }

    /// Lists the `valid` ones of eight rows, of which `good` have a value.
    ///
    /// # Safety
    /// The rows are of a window, and no row of it is listed twice.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    unsafe fn list_eight(
        keys: __m256i,
        values: __m256i,
        spans: __m256i,
        good: u8,
        valid: u8,
        to: &mut Rows,
    ) {
        let within = |most: usize| {
            let most = _mm256_set1_epi32((most << 16 | 0xffff) as i32);
            !set(_mm256_cmpgt_epi32(keys, most))
        };
        let inline = good & within(INLINE);
        // SAFETY: a list can hold 16 more rows than a window; there are 256 sets.
        unsafe {
            let put_all = |list: &mut List| {
                _mm256_storeu_si256(list.keys.0.as_mut_ptr().add(list.count).cast(), keys);
                _mm256_storeu_si256(list.values.0.as_mut_ptr().add(list.count).cast(), values);
                list.count += 8;
            };
            let put_some = |list: &mut List, rows: u8, values| {
                let compact = _mm_loadl_epi64(COMPACT.as_ptr().add(rows.into()).cast());
                let put = |to: *mut u32, from| {
                    let from = _mm256_permutevar8x32_epi32(from, _mm256_cvtepu8_epi32(compact));
                    _mm256_storeu_si256(to.cast(), from);
                };
                put(list.keys.0.as_mut_ptr().add(list.count), keys);
                put(list.values.0.as_mut_ptr().add(list.count), values);
                list.count += rows.count_ones() as usize;
            };
            if inline == 0xff {
                return put_all(&mut to.inline);
            }
            let long = good & !inline & within(LONG);
            if long == 0xff {
                return put_all(&mut to.long);
            }
            put_some(&mut to.inline, inline, values);
            if inline != valid {
                let good_and_wide = good & within(WIDE);
                put_some(&mut to.long, long, values);
                put_some(&mut to.wide, good_and_wide & !(inline | long), values);
                put_some(&mut to.rest, valid & !good_and_wide, spans);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scan::key_number::index;
    use crate::scan::key_number::rows::{INLINE, LONG, WIDE};
    use crate::scan::key_number::tenths::*;
    use crate::scan::key_number::window::WINDOW;
    use proptest::prelude::*;
    use ringfold_read::PaddedBuf;

    /// In tenths, if `text` has the shape that is read here.
    fn naive(text: &[u8]) -> Option<u32> {
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        let point = digits.iter().position(|&byte| byte == b'.')?;
        let shaped = (1..=2).contains(&point) && digits.len() == point + 2;
        let number: i64 = std::str::from_utf8(text)
            .ok()?
            .replacen('.', "", 1)
            .parse()
            .ok()?;
        let is_plain = digits
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'.');
        (shaped && is_plain).then_some((number + i64::from(BIAS)) as u32)
    }

    fn check(lines: &[(usize, Vec<u8>)], trims_cr: bool) {
        let mut text = Vec::new();
        let mut expected: [Vec<(u32, u32)>; 3] = Default::default();
        let mut rest = Vec::new();
        for (length, value) in lines {
            let key = text.len() as u32 | (*length as u32 + 1) << 16;
            text.extend(std::iter::repeat_n(b'9', *length));
            text.push(b';');
            let start = text.len() as u32;
            text.extend_from_slice(value);
            text.push(b'\n');
            let span = start | (text.len() as u32) << 16;
            let value = match value.strip_suffix(b"\r") {
                Some(rest) if trims_cr => rest,
                _ => value,
            };
            match naive(value) {
                Some(value) if *length < INLINE => expected[0].push((key, value)),
                Some(value) if *length < LONG => expected[1].push((key, value)),
                Some(value) if *length < WIDE => expected[2].push((key, value)),
                _ => rest.push((key, span)),
            }
        }
        assert!(text.len() <= WINDOW);
        for level in Level::available() {
            let buffer = PaddedBuf::with_fill(&text, b'0');
            let window = ScanWindow::at(&buffer.block(0, 0, 0), 0, WINDOW);
            let (mut ends, mut rows) = (Ends::new(), Rows::new());
            index::index(level, window, b';', b'\n', &mut ends);
            decode(level, window, &ends, trims_cr, &mut rows);
            let lists = rows.lists().chain([&rows.rest]);
            for (list, expected) in lists.zip(expected.iter().chain([&rest])) {
                let pairs = list
                    .keys()
                    .iter()
                    .copied()
                    .zip(list.values().iter().copied());
                assert!(pairs.eq(expected.iter().copied()), "{level:?}");
            }
        }
    }

    fn value() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            4 => "-?[0-9]{1,2}\\.[0-9]\r?".prop_map(String::into_bytes),
            1 => "[-+.,/:0-9\r]{0,8}".prop_map(String::into_bytes),
            1 => prop::collection::vec(any::<u8>().prop_filter("a field", |b| !b";\n".contains(b)), 0..8),
        ]
    }

    proptest! {
        #[test]
        fn levels_agree_with_the_naive(
            lines in prop::collection::vec((0..150_usize, value()), 0..50),
            trims_cr in any::<bool>(),
        ) {
            check(&lines, trims_cr);
        }
    }

    /// Every value that differs from a good one in one byte, at every length around.
    #[test]
    fn near_misses() {
        // Miri takes a thousand times as long.
        let step = if cfg!(miri) { 97 } else { 1 };
        for good in [
            "1.2", "12.3", "-1.2", "-12.3", "99.9", "-99.9", "0.0", "-0.0",
        ] {
            let mut lines = Vec::new();
            // One place more, for what stands where a carriage return may.
            for at in 0..=good.len() {
                let bytes = (0..=255).step_by(step);
                for byte in bytes.filter(|byte| !b";\n".contains(byte)) {
                    let mut value = good.as_bytes().to_vec();
                    value.splice(at..good.len().min(at + 1), [byte]);
                    lines.push((1, value));
                }
                lines.push((1, good.as_bytes()[at..].to_vec()));
                lines.push((1, good.as_bytes()[..at].to_vec()));
            }
            for lines in lines.chunks(400) {
                check(lines, false);
                check(lines, true);
            }
        }
    }
}
