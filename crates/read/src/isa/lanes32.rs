//! Vectors of 32-bit lanes, for kernels with a scalar counterpart.
//!
//! Invariant of this module: as that of [`x86`](crate::isa::x86).
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::isa::Isa;
use crate::isa::x86::{PLACES, methods};
use crate::level::{Avx2, Avx512};

/// An instruction set with vectors of [`Lanes32::COUNT`] numbers. A set of lanes is a bit for each.
#[expect(missing_docs, reason = "the names say it")]
pub trait Lanes32: Isa {
    type Words: Copy;
    /// A choice of lanes.
    type Mask: Copy;
    /// Eight bytes for each lane.
    type Eights: Copy;
    const COUNT: usize;

    fn splat(self, word: u32) -> Self::Words;
    /// Pairs of numbers, the first in the lower half.
    fn pairs(self, from: &[u16]) -> Self::Words;
    fn store(self, words: Self::Words, to: &mut [u32]);
    /// The words of the lanes in the set, at the front.
    fn compact(self, set: u16, words: Self::Words) -> Self::Words;

    fn and(self, a: Self::Words, b: Self::Words) -> Self::Words;
    fn xor(self, a: Self::Words, b: Self::Words) -> Self::Words;
    fn sub(self, a: Self::Words, b: Self::Words) -> Self::Words;
    fn shl_16(self, a: Self::Words) -> Self::Words;
    fn shr_16(self, a: Self::Words) -> Self::Words;
    fn add_saturating_bytes(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// The sum of the products of four bytes, those of `weights` below 128.
    fn dot(self, bytes: Self::Words, weights: Self::Words) -> Self::Words;

    fn equal_words(self, a: Self::Words, b: Self::Words) -> Self::Mask;
    /// Whether no bit is set in both.
    fn disjoint(self, a: Self::Words, b: Self::Words) -> Self::Mask;
    fn first_byte_is(self, words: Self::Words, byte: u8) -> Self::Mask;
    fn last_byte_is(self, words: Self::Words, byte: u8) -> Self::Mask;
    fn both(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn either(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn set(self, mask: Self::Mask) -> u16;
    /// The set of lanes where `a` is at most `b`, of words below 2^31.
    fn at_most(self, a: Self::Words, b: Self::Words) -> u16;
    /// `a & b` where `mask` says so, and `a` elsewhere.
    fn and_where(self, mask: Self::Mask, a: Self::Words, b: Self::Words) -> Self::Words;
    /// `a - b` where `mask` says so, and `a + b` elsewhere.
    fn add_or_sub(self, mask: Self::Mask, a: Self::Words, b: Self::Words) -> Self::Words;
    /// One less where `mask` says so.
    fn decrement(self, mask: Self::Mask, words: Self::Words) -> Self::Words;

    /// Eight bytes from `base` and the second number of each pair on.
    fn eights(self, from: &[u8], base: usize, pairs: &[u16]) -> Self::Eights;
    fn first_fours(self, eights: Self::Eights) -> Self::Words;
    fn last_fours(self, eights: Self::Eights) -> Self::Words;
    /// Moves bytes to the next place where `mask` says so. The last one is lost.
    fn move_bytes(self, mask: Self::Mask, eights: Self::Eights) -> Self::Eights;
}

/// The greatest pair whose second number is a place of eight bytes after `base`.
#[inline(always)]
fn greatest_pair(from: &[u8], base: usize) -> u32 {
    let places = from.len().checked_sub(base + 8).expect("eight bytes");
    (places.min(0xffff) as u32) << 16 | 0xffff
}

/// Two eights, the second of the pair after that of the first.
///
/// # Safety
/// There are two pairs, and eight bytes at the second number of each.
#[inline(always)]
unsafe fn two_eights(base: *const u8, pairs: *const u16) -> __m128i {
    // SAFETY: as the caller's.
    unsafe {
        // Volatile, or the compiler would load vectors and extract from them at twice the price.
        let first = base.add(pairs.add(1).read_volatile().into());
        let second = base.add(pairs.add(3).read_volatile().into());
        let first = _mm_castsi128_pd(_mm_loadl_epi64(first.cast()));
        _mm_castpd_si128(_mm_loadh_pd(first, second.cast()))
    }
}

/// Two eights and two more. A gather is slower than these loads.
///
/// # Safety
/// As that of [`two_eights`], for both; the processor has AVX2.
#[inline(always)]
unsafe fn four_eights(base: *const u8, low: *const u16, high: *const u16) -> __m256i {
    // SAFETY: as the caller's.
    unsafe {
        let low = _mm256_castsi128_si256(two_eights(base, low));
        _mm256_inserti128_si256::<1>(low, two_eights(base, high))
    }
}

impl Lanes32 for Avx2 {
    type Words = __m256i;
    type Mask = __m256i;
    /// Lanes 0, 1, 4, 5 and 2, 3, 6, 7, so that shuffles within the halves pick them in order.
    type Eights = [__m256i; 2];
    const COUNT: usize = 8;

    #[inline(always)]
    fn pairs(self, from: &[u16]) -> __m256i {
        let from: &[u16; 16] = from.first_chunk().expect("eight pairs");
        // SAFETY: 32 bytes.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, words: __m256i, to: &mut [u32]) {
        let to: &mut [u32; 8] = to.first_chunk_mut().expect("eight places");
        // SAFETY: 32 bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), words) }
    }

    #[inline(always)]
    fn compact(self, set: u16, words: __m256i) -> __m256i {
        // The lanes in the set, at the front.
        let lanes = &PLACES[usize::from(set as u8)];
        // SAFETY: eight bytes.
        unsafe {
            let lanes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(lanes.as_ptr().cast()));
            _mm256_permutevar8x32_epi32(words, lanes)
        }
    }

    #[inline(always)]
    fn eights(self, from: &[u8], base: usize, pairs: &[u16]) -> [__m256i; 2] {
        let greatest = self.splat(greatest_pair(from, base));
        let pairs: &[u16; 16] = pairs.first_chunk().expect("eight pairs");
        // SAFETY: the places are checked; pairs are indexed by less than eight.
        unsafe {
            // Bits remain of a greater second number.
            let beyond = _mm256_subs_epu16(self.pairs(pairs), greatest);
            assert!(_mm256_testz_si256(beyond, beyond) == 1);
            let (from, pairs) = (from.as_ptr().add(base), pairs.as_ptr());
            [
                four_eights(from, pairs, pairs.add(8)),
                four_eights(from, pairs.add(4), pairs.add(12)),
            ]
        }
    }

    methods! {
        splat(word: u32) -> __m256i = _mm256_set1_epi32(word as i32);
        and(a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
        xor(a: __m256i, b: __m256i) -> __m256i = _mm256_xor_si256(a, b);
        sub(a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi32(a, b);
        shl_16(a: __m256i) -> __m256i = _mm256_slli_epi32::<16>(a);
        shr_16(a: __m256i) -> __m256i = _mm256_srli_epi32::<16>(a);
        add_saturating_bytes(a: __m256i, b: __m256i) -> __m256i = _mm256_adds_epu8(a, b);
        dot(bytes: __m256i, weights: __m256i) -> __m256i =
            _mm256_madd_epi16(_mm256_maddubs_epi16(bytes, weights), _mm256_set1_epi16(1));
        equal_words(a: __m256i, b: __m256i) -> __m256i = _mm256_cmpeq_epi32(a, b);
        disjoint(a: __m256i, b: __m256i) -> __m256i =
            _mm256_cmpeq_epi32(_mm256_and_si256(a, b), _mm256_setzero_si256());
        first_byte_is(words: __m256i, byte: u8) -> __m256i = {
            let first = _mm256_and_si256(words, _mm256_set1_epi32(0xff));
            _mm256_cmpeq_epi32(first, _mm256_set1_epi32(byte.into()))
        };
        last_byte_is(words: __m256i, byte: u8) -> __m256i =
            _mm256_cmpeq_epi32(_mm256_srli_epi32::<24>(words), _mm256_set1_epi32(byte.into()));
        both(a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
        either(a: __m256i, b: __m256i) -> __m256i = _mm256_or_si256(a, b);
        set(mask: __m256i) -> u16 = _mm256_movemask_ps(_mm256_castsi256_ps(mask)) as u16;
        at_most(a: __m256i, b: __m256i) -> u16 = {
            let greater = _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b));
            _mm256_movemask_ps(greater) as u16 ^ 0xff
        };
        and_where(mask: __m256i, a: __m256i, b: __m256i) -> __m256i =
            _mm256_andnot_si256(_mm256_andnot_si256(b, mask), a);
        add_or_sub(mask: __m256i, a: __m256i, b: __m256i) -> __m256i =
            _mm256_add_epi32(a, _mm256_sub_epi32(_mm256_xor_si256(b, mask), mask));
        decrement(mask: __m256i, words: __m256i) -> __m256i = _mm256_add_epi32(words, mask);
        first_fours(eights: [__m256i; 2]) -> __m256i = {
            let (low, high) = (_mm256_castsi256_ps(eights[0]), _mm256_castsi256_ps(eights[1]));
            _mm256_castps_si256(_mm256_shuffle_ps::<0x88>(low, high))
        };
        last_fours(eights: [__m256i; 2]) -> __m256i = {
            let (low, high) = (_mm256_castsi256_ps(eights[0]), _mm256_castsi256_ps(eights[1]));
            _mm256_castps_si256(_mm256_shuffle_ps::<0xdd>(low, high))
        };
        move_bytes(mask: __m256i, eights: [__m256i; 2]) -> [__m256i; 2] = {
            let [low, high] = eights;
            let low_mask = _mm256_unpacklo_epi32(mask, mask);
            let high_mask = _mm256_unpackhi_epi32(mask, mask);
            [
                _mm256_blendv_epi8(low, _mm256_slli_epi64::<8>(low), low_mask),
                _mm256_blendv_epi8(high, _mm256_slli_epi64::<8>(high), high_mask),
            ]
        };
    }
}

impl Lanes32 for Avx512 {
    type Words = __m512i;
    type Mask = __mmask16;
    /// The first eight lanes, and the others.
    type Eights = [__m512i; 2];
    const COUNT: usize = 16;

    #[inline(always)]
    fn pairs(self, from: &[u16]) -> __m512i {
        let from: &[u16; 32] = from.first_chunk().expect("sixteen pairs");
        // SAFETY: 64 bytes.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, words: __m512i, to: &mut [u32]) {
        let to: &mut [u32; 16] = to.first_chunk_mut().expect("sixteen places");
        // SAFETY: 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), words) }
    }

    #[inline(always)]
    fn both(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a & b
    }

    #[inline(always)]
    fn either(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a | b
    }

    #[inline(always)]
    fn set(self, mask: __mmask16) -> u16 {
        mask
    }

    #[inline(always)]
    fn eights(self, from: &[u8], base: usize, pairs: &[u16]) -> [__m512i; 2] {
        let greatest = self.splat(greatest_pair(from, base));
        let pairs: &[u16; 32] = pairs.first_chunk().expect("sixteen pairs");
        // SAFETY: the places are checked; pairs are indexed by less than sixteen.
        unsafe {
            assert!(_mm512_cmpgt_epu32_mask(self.pairs(pairs), greatest) == 0);
            let (from, pairs) = (from.as_ptr().add(base), pairs.as_ptr());
            let a = four_eights(from, pairs, pairs.add(4));
            let b = four_eights(from, pairs.add(8), pairs.add(12));
            let c = four_eights(from, pairs.add(16), pairs.add(20));
            let d = four_eights(from, pairs.add(24), pairs.add(28));
            [
                _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b),
                _mm512_inserti64x4::<1>(_mm512_castsi256_si512(c), d),
            ]
        }
    }

    methods! {
        splat(word: u32) -> __m512i = _mm512_set1_epi32(word as i32);
        compact(set: u16, words: __m512i) -> __m512i = _mm512_maskz_compress_epi32(set, words);
        and(a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512(a, b);
        xor(a: __m512i, b: __m512i) -> __m512i = _mm512_xor_si512(a, b);
        sub(a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi32(a, b);
        shl_16(a: __m512i) -> __m512i = _mm512_slli_epi32::<16>(a);
        shr_16(a: __m512i) -> __m512i = _mm512_srli_epi32::<16>(a);
        add_saturating_bytes(a: __m512i, b: __m512i) -> __m512i = _mm512_adds_epu8(a, b);
        dot(bytes: __m512i, weights: __m512i) -> __m512i =
            _mm512_madd_epi16(_mm512_maddubs_epi16(bytes, weights), _mm512_set1_epi16(1));
        equal_words(a: __m512i, b: __m512i) -> __mmask16 = _mm512_cmpeq_epi32_mask(a, b);
        disjoint(a: __m512i, b: __m512i) -> __mmask16 = _mm512_testn_epi32_mask(a, b);
        first_byte_is(words: __m512i, byte: u8) -> __mmask16 = {
            let others = _mm512_xor_si512(words, _mm512_set1_epi32(byte.into()));
            _mm512_testn_epi32_mask(others, _mm512_set1_epi32(0xff))
        };
        last_byte_is(words: __m512i, byte: u8) -> __mmask16 = {
            let others = _mm512_xor_si512(words, _mm512_set1_epi32(i32::from(byte) << 24));
            _mm512_testn_epi32_mask(others, _mm512_set1_epi32(0xff << 24))
        };
        at_most(a: __m512i, b: __m512i) -> u16 = _mm512_cmple_epu32_mask(a, b);
        and_where(mask: __mmask16, a: __m512i, b: __m512i) -> __m512i =
            _mm512_mask_and_epi32(a, mask, a, b);
        add_or_sub(mask: __mmask16, a: __m512i, b: __m512i) -> __m512i =
            _mm512_mask_sub_epi32(_mm512_add_epi32(a, b), mask, a, b);
        decrement(mask: __mmask16, words: __m512i) -> __m512i =
            _mm512_mask_sub_epi32(words, mask, words, _mm512_set1_epi32(1));
        first_fours(eights: [__m512i; 2]) -> __m512i = {
            let evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            _mm512_permutex2var_epi32(eights[0], evens, eights[1])
        };
        last_fours(eights: [__m512i; 2]) -> __m512i = {
            let odds = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
            _mm512_permutex2var_epi32(eights[0], odds, eights[1])
        };
        move_bytes(mask: __mmask16, eights: [__m512i; 2]) -> [__m512i; 2] = {
            let [low, high] = eights;
            [
                _mm512_mask_slli_epi64::<8>(low, mask as u8, low),
                _mm512_mask_slli_epi64::<8>(high, (mask >> 8) as u8, high),
            ]
        };
    }
}
