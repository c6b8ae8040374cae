//! Four numbers at a time with AVX2.
//!
//! Invariant of this module: as that of its parent.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::scan::index::TextWindow;
use crate::scan::numbers::{FACTORS, Numbers};

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
pub(super) unsafe fn decode(
    window: TextWindow<'_>,
    spans: &[u32],
    rows: usize,
    scale: u32,
    to: &mut Numbers,
) {
    let factors = &FACTORS[scale as usize];
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
