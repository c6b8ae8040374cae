//! Eight numbers at a time with AVX-512.
//!
//! Invariant of this module: as that of its parent.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::scan::index::TextWindow;
use crate::scan::numbers::{FACTORS, Numbers};

/// Of eight rows: values, and a bit for each that is null or was read.
struct Eight {
    values: __m512i,
    nulls: u8,
    good: u8,
}

/// What eight digits, the first in the lowest byte, are together.
///
/// # Safety
/// AVX-512 is there.
#[inline(always)]
unsafe fn together(digits: __m512i) -> __m512i {
    // SAFETY: as the caller's.
    unsafe {
        let twos = _mm512_maddubs_epi16(digits, _mm512_set1_epi16(0x010a));
        let fours = _mm512_madd_epi16(twos, _mm512_set1_epi32(0x0001_0064));
        let high = _mm512_mul_epu32(fours, _mm512_set1_epi64(10_000));
        _mm512_add_epi64(high, _mm512_srli_epi64::<32>(fours))
    }
}

/// # Safety
/// The spans end in the window, and AVX-512 is there.
#[inline(always)]
unsafe fn eight(
    window: *const u8,
    spans: *const u32,
    factors: __m512i,
    magnitudes: &mut __m512i,
    most: &mut __m512i,
) -> Eight {
    // SAFETY: as the caller's; eight spans are read.
    unsafe {
        let (none, ones) = (_mm512_setzero_si512(), _mm512_set1_epi64(-1));
        let (one, low_byte) = (_mm512_set1_epi64(1), _mm512_set1_epi64(0xff));
        let lanes = _mm512_cvtepu32_epi64(_mm256_loadu_si256(spans.cast()));
        let start = _mm512_and_si512(lanes, _mm512_set1_epi64(0xffff));
        let end = _mm512_srli_epi64::<16>(lanes);
        let length = _mm512_sub_epi64(_mm512_sub_epi64(end, start), one);
        // Longer values are shifted out as a whole, and don't count.
        let shift = _mm512_slli_epi64::<3>(_mm512_sub_epi64(_mm512_set1_epi64(8), length));
        // Nine bytes before a window's place are readable.
        let words = _mm512_i64gather_epi64::<1>(end, window.sub(9).cast());
        let digits = _mm512_xor_si512(words, _mm512_set1_epi8(b'0' as i8));
        let mut word = _mm512_and_si512(digits, _mm512_sllv_epi64(ones, shift));
        let first = _mm512_and_si512(_mm512_srlv_epi64(word, shift), low_byte);
        let dash = _mm512_set1_epi64(i64::from(b'-' ^ b'0'));
        let negative = _mm512_cmpeq_epi64_mask(first, dash);
        let dashes = _mm512_sllv_epi64(dash, shift);
        word = _mm512_mask_xor_epi64(word, negative, word, dashes);
        // The first point is taken out, and what stands before it moves up; a second one is no digit.
        let point = _mm512_set1_epi8((b'.' ^ b'0') as i8);
        let points = _mm512_movm_epi8(_mm512_cmpeq_epi8_mask(word, point));
        let has_point = _mm512_test_epi64_mask(points, points);
        let before = _mm512_andnot_si512(points, _mm512_add_epi64(points, ones));
        let up_to = _mm512_or_si512(_mm512_slli_epi64::<8>(before), low_byte);
        let behind = _mm512_maskz_andnot_epi64(has_point, up_to, ones);
        let moved = _mm512_slli_epi64::<8>(_mm512_and_si512(word, before));
        let joined = _mm512_or_si512(_mm512_and_si512(word, behind), moved);
        word = _mm512_mask_mov_epi64(word, has_point, joined);
        let decimals = _mm512_sad_epu8(_mm512_and_si512(behind, _mm512_set1_epi8(1)), none);
        let factor = _mm512_permutexvar_epi64(decimals, factors);
        let count = _mm512_mask_sub_epi64(length, negative, length, one);
        let count = _mm512_mask_sub_epi64(count, has_point, count, one);
        let fits = _mm512_cmplt_epi64_mask(length, _mm512_set1_epi64(9));
        let fits = _mm512_mask_cmpgt_epi64_mask(fits, count, none);
        let above_nine = _mm512_adds_epu8(word, _mm512_set1_epi8(0x76));
        let digits_only = _mm512_mask_testn_epi64_mask(fits, above_nine, _mm512_set1_epi8(-128));
        let good = _mm512_mask_test_epi64_mask(digits_only, factor, factor);
        let magnitude = _mm512_maskz_mul_epu32(good, together(word), factor);
        *magnitudes = _mm512_or_si512(*magnitudes, magnitude);
        *most = _mm512_mask_max_epu64(*most, good, *most, decimals);
        Eight {
            values: _mm512_mask_sub_epi64(magnitude, negative, none, magnitude),
            nulls: _mm512_cmpeq_epi64_mask(length, none),
            good,
        }
    }
}

/// # Safety
/// The processor has the features named; the spans end in the window, and are eight more than `rows`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(super) unsafe fn decode(
    window: TextWindow<'_>,
    spans: &[u32],
    rows: usize,
    scale: u32,
    to: &mut Numbers,
) {
    let (mut magnitudes, mut most) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    let factors = &FACTORS[scale as usize];
    // SAFETY: eight lanes of eight.
    let factors = unsafe { _mm512_cvtepu32_epi64(_mm256_loadu_si256(factors.as_ptr().cast())) };
    for row in (0..rows).step_by(8) {
        let from = spans[row..row + 8].as_ptr();
        // SAFETY: as the caller's.
        let eight = unsafe { eight(window.pointer(), from, factors, &mut magnitudes, &mut most) };
        let values = to.values[row..row + 8].as_mut_ptr();
        // SAFETY: eight values of eight.
        unsafe { _mm512_storeu_si512(values.cast(), eight.values) };
        to.book(row, rows, eight.nulls, eight.good);
    }
    to.magnitudes = _mm512_reduce_or_epi64(magnitudes) as u64;
    to.decimals = _mm512_reduce_max_epu64(most) as u32;
}
