//! Vectors of 64-bit lanes, for kernels with a scalar counterpart.
//!
//! Invariant of this module: as that of [`x86`](crate::isa::x86).
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::isa::Isa;
use crate::isa::x86::methods;
use crate::level::{Avx2, Avx512};

/// An instruction set with vectors of [`Lanes::COUNT`] numbers.
#[expect(missing_docs, reason = "the names say it")]
pub trait Lanes: Isa {
    type Lanes: Copy;
    /// A choice of lanes.
    type Mask: Copy;
    const COUNT: usize;

    fn collect(self, lane: impl Fn(usize) -> u64) -> Self::Lanes;
    fn splat(self, lane: u64) -> Self::Lanes;
    fn splat_bytes(self, byte: u8) -> Self::Lanes;
    fn widen(self, from: &[u32]) -> Self::Lanes;
    fn store(self, lanes: Self::Lanes, to: &mut [i64]);

    fn and(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;
    fn or(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;
    fn xor(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;
    /// The bits of `a` that aren't in `b`.
    fn without(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;
    fn add(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;
    fn sub(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;
    /// The product of the lower halves.
    fn mul(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;
    /// The greater one, of lanes below 2^31.
    fn max(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;
    /// Shifts by 64 or more give 0.
    fn shl(self, a: Self::Lanes, bits: Self::Lanes) -> Self::Lanes;
    fn shr(self, a: Self::Lanes, bits: Self::Lanes) -> Self::Lanes;

    /// All bits of each byte that is the same in both.
    fn equal_bytes(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;
    fn add_saturating_bytes(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;
    fn sum_bytes(self, a: Self::Lanes) -> Self::Lanes;
    /// The number that eight digits make, the first in the lowest byte.
    fn join_digits(self, digits: Self::Lanes) -> Self::Lanes;

    /// Eight numbers for [`Lanes::look_up`].
    fn table(self, numbers: &[u32; 8]) -> Self::Table;
    type Table: Copy;
    fn look_up(self, table: Self::Table, at: Self::Lanes) -> Self::Lanes;

    fn equal_lanes(self, a: Self::Lanes, b: Self::Lanes) -> Self::Mask;
    fn greater(self, a: Self::Lanes, b: Self::Lanes) -> Self::Mask;
    fn both(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn not(self, a: Self::Mask) -> Self::Mask;
    /// A bit for each lane.
    fn bits(self, mask: Self::Mask) -> u8;
    /// The lanes of `mask`, and 0 in the others.
    fn keep(self, mask: Self::Mask, lanes: Self::Lanes) -> Self::Lanes;
    /// The lanes of `yes` where `mask` says so, and those of `no`.
    fn select(self, mask: Self::Mask, yes: Self::Lanes, no: Self::Lanes) -> Self::Lanes;
    /// One less where `mask` says so.
    fn decrement(self, mask: Self::Mask, lanes: Self::Lanes) -> Self::Lanes;
    /// The negative number where `mask` says so.
    fn negate(self, mask: Self::Mask, lanes: Self::Lanes) -> Self::Lanes;
}

impl Lanes for Avx2 {
    type Lanes = __m256i;
    type Mask = __m256i;
    type Table = __m256i;
    const COUNT: usize = 4;

    #[inline(always)]
    fn collect(self, lane: impl Fn(usize) -> u64) -> __m256i {
        let [a, b, c, d] = [lane(0), lane(1), lane(2), lane(3)].map(u64::cast_signed);
        // SAFETY: the token's features.
        unsafe { _mm256_setr_epi64x(a, b, c, d) }
    }

    #[inline(always)]
    fn widen(self, from: &[u32]) -> __m256i {
        let from: &[u32; 4] = from.first_chunk().expect("four numbers");
        // SAFETY: 16 bytes.
        unsafe { _mm256_cvtepu32_epi64(_mm_loadu_si128(from.as_ptr().cast())) }
    }

    #[inline(always)]
    fn store(self, lanes: __m256i, to: &mut [i64]) {
        let to: &mut [i64; 4] = to.first_chunk_mut().expect("four places");
        // SAFETY: 32 bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), lanes) }
    }

    #[inline(always)]
    fn table(self, numbers: &[u32; 8]) -> __m256i {
        // SAFETY: 32 bytes.
        unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) }
    }

    methods! {
        splat(lane: u64) -> __m256i = _mm256_set1_epi64x(lane as i64);
        splat_bytes(byte: u8) -> __m256i = _mm256_set1_epi8(byte as i8);
        and(a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
        or(a: __m256i, b: __m256i) -> __m256i = _mm256_or_si256(a, b);
        xor(a: __m256i, b: __m256i) -> __m256i = _mm256_xor_si256(a, b);
        without(a: __m256i, b: __m256i) -> __m256i = _mm256_andnot_si256(b, a);
        add(a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi64(a, b);
        sub(a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi64(a, b);
        mul(a: __m256i, b: __m256i) -> __m256i = _mm256_mul_epu32(a, b);
        max(a: __m256i, b: __m256i) -> __m256i = _mm256_max_epu32(a, b);
        shl(a: __m256i, bits: __m256i) -> __m256i = _mm256_sllv_epi64(a, bits);
        shr(a: __m256i, bits: __m256i) -> __m256i = _mm256_srlv_epi64(a, bits);
        equal_bytes(a: __m256i, b: __m256i) -> __m256i = _mm256_cmpeq_epi8(a, b);
        add_saturating_bytes(a: __m256i, b: __m256i) -> __m256i = _mm256_adds_epu8(a, b);
        sum_bytes(a: __m256i) -> __m256i = _mm256_sad_epu8(a, _mm256_setzero_si256());
        join_digits(digits: __m256i) -> __m256i = {
            let twos = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010a));
            let fours = _mm256_madd_epi16(twos, _mm256_set1_epi32(0x0001_0064));
            let high = _mm256_mul_epu32(fours, _mm256_set1_epi64x(10_000));
            _mm256_add_epi64(high, _mm256_srli_epi64::<32>(fours))
        };
        look_up(table: __m256i, at: __m256i) -> __m256i = {
            let low_half = _mm256_set1_epi64x(0xffff_ffff);
            _mm256_and_si256(_mm256_permutevar8x32_epi32(table, at), low_half)
        };
        equal_lanes(a: __m256i, b: __m256i) -> __m256i = _mm256_cmpeq_epi64(a, b);
        greater(a: __m256i, b: __m256i) -> __m256i = _mm256_cmpgt_epi64(a, b);
        both(a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
        not(a: __m256i) -> __m256i = _mm256_xor_si256(a, _mm256_set1_epi64x(-1));
        bits(mask: __m256i) -> u8 = _mm256_movemask_pd(_mm256_castsi256_pd(mask)) as u8;
        keep(mask: __m256i, lanes: __m256i) -> __m256i = _mm256_and_si256(mask, lanes);
        select(mask: __m256i, yes: __m256i, no: __m256i) -> __m256i =
            _mm256_blendv_epi8(no, yes, mask);
        decrement(mask: __m256i, lanes: __m256i) -> __m256i = _mm256_add_epi64(lanes, mask);
        negate(mask: __m256i, lanes: __m256i) -> __m256i =
            _mm256_sub_epi64(_mm256_xor_si256(lanes, mask), mask);
    }
}

impl Lanes for Avx512 {
    type Lanes = __m512i;
    type Mask = __mmask8;
    type Table = __m512i;
    const COUNT: usize = 8;

    #[inline(always)]
    fn collect(self, lane: impl Fn(usize) -> u64) -> __m512i {
        let [a, b, c, d] = [lane(0), lane(1), lane(2), lane(3)].map(u64::cast_signed);
        let [e, f, g, h] = [lane(4), lane(5), lane(6), lane(7)].map(u64::cast_signed);
        // SAFETY: the token's features.
        unsafe { _mm512_setr_epi64(a, b, c, d, e, f, g, h) }
    }

    #[inline(always)]
    fn widen(self, from: &[u32]) -> __m512i {
        self.table(from.first_chunk().expect("eight numbers"))
    }

    #[inline(always)]
    fn store(self, lanes: __m512i, to: &mut [i64]) {
        let to: &mut [i64; 8] = to.first_chunk_mut().expect("eight places");
        // SAFETY: 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), lanes) }
    }

    #[inline(always)]
    fn both(self, a: __mmask8, b: __mmask8) -> __mmask8 {
        a & b
    }

    #[inline(always)]
    fn not(self, a: __mmask8) -> __mmask8 {
        !a
    }

    #[inline(always)]
    fn bits(self, mask: __mmask8) -> u8 {
        mask
    }

    #[inline(always)]
    fn table(self, numbers: &[u32; 8]) -> __m512i {
        // SAFETY: 32 bytes.
        unsafe { _mm512_cvtepu32_epi64(_mm256_loadu_si256(numbers.as_ptr().cast())) }
    }

    methods! {
        splat(lane: u64) -> __m512i = _mm512_set1_epi64(lane as i64);
        splat_bytes(byte: u8) -> __m512i = _mm512_set1_epi8(byte as i8);
        and(a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512(a, b);
        or(a: __m512i, b: __m512i) -> __m512i = _mm512_or_si512(a, b);
        xor(a: __m512i, b: __m512i) -> __m512i = _mm512_xor_si512(a, b);
        without(a: __m512i, b: __m512i) -> __m512i = _mm512_andnot_si512(b, a);
        add(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi64(a, b);
        sub(a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi64(a, b);
        mul(a: __m512i, b: __m512i) -> __m512i = _mm512_mul_epu32(a, b);
        max(a: __m512i, b: __m512i) -> __m512i = _mm512_max_epu64(a, b);
        shl(a: __m512i, bits: __m512i) -> __m512i = _mm512_sllv_epi64(a, bits);
        shr(a: __m512i, bits: __m512i) -> __m512i = _mm512_srlv_epi64(a, bits);
        equal_bytes(a: __m512i, b: __m512i) -> __m512i =
            _mm512_movm_epi8(_mm512_cmpeq_epi8_mask(a, b));
        add_saturating_bytes(a: __m512i, b: __m512i) -> __m512i = _mm512_adds_epu8(a, b);
        sum_bytes(a: __m512i) -> __m512i = _mm512_sad_epu8(a, _mm512_setzero_si512());
        join_digits(digits: __m512i) -> __m512i = {
            let twos = _mm512_maddubs_epi16(digits, _mm512_set1_epi16(0x010a));
            let fours = _mm512_madd_epi16(twos, _mm512_set1_epi32(0x0001_0064));
            let high = _mm512_mul_epu32(fours, _mm512_set1_epi64(10_000));
            _mm512_add_epi64(high, _mm512_srli_epi64::<32>(fours))
        };
        look_up(table: __m512i, at: __m512i) -> __m512i = _mm512_permutexvar_epi64(at, table);
        equal_lanes(a: __m512i, b: __m512i) -> __mmask8 = _mm512_cmpeq_epi64_mask(a, b);
        greater(a: __m512i, b: __m512i) -> __mmask8 = _mm512_cmpgt_epi64_mask(a, b);
        keep(mask: __mmask8, lanes: __m512i) -> __m512i = _mm512_maskz_mov_epi64(mask, lanes);
        select(mask: __mmask8, yes: __m512i, no: __m512i) -> __m512i =
            _mm512_mask_mov_epi64(no, mask, yes);
        decrement(mask: __mmask8, lanes: __m512i) -> __m512i =
            _mm512_mask_sub_epi64(lanes, mask, lanes, _mm512_set1_epi64(1));
        negate(mask: __mmask8, lanes: __m512i) -> __m512i =
            _mm512_mask_sub_epi64(lanes, mask, _mm512_setzero_si512(), lanes);
    }
}
