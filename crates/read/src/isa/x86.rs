//! The operations for AVX2 and AVX-512.
//!
//! Invariant of this module: its functions are methods of a token, or are only called by those. The token proves that
//! the processor has the instructions. Every x86-64 processor has those of [`sixteen`], and a prefetch.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use crate::isa::Isa;
use crate::level::{Avx2, Avx512};

/// Methods of a token.
macro_rules! methods {
    ($($method:ident($($of:ident: $type:ty),*) -> $gives:ty = $body:expr;)*) => {
        $(
            #[inline(always)]
            fn $method(self $(, $of: $type)*) -> $gives {
                // SAFETY: the token's features; no instruction here has an address.
                unsafe { $body }
            }
        )*
    };
}

pub(crate) use methods;

/// Fetches the cache line of an address.
#[cfg_attr(miri, expect(dead_code, reason = "Miri has no such instruction"))]
#[inline(always)]
pub(crate) fn prefetch<const HINT: i32>(at: *const u8) {
    // SAFETY: it reads nothing.
    unsafe { _mm_prefetch::<HINT>(at.cast()) };
}

/// A carry-less product with all ones: each bit is the parity of those up to it.
///
/// # Safety
/// The processor has the instruction.
#[inline(always)]
unsafe fn parities(bits: u64) -> u64 {
    // SAFETY: as the caller's.
    unsafe {
        let bits = _mm_set_epi64x(0, bits as i64);
        let product = _mm_clmulepi64_si128::<0>(bits, _mm_set1_epi8(-1));
        _mm_cvtsi128_si64(product) as u64
    }
}

/// A bit for each of 64 bytes whose highest bit is set.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn tops(low: __m256i, high: __m256i) -> u64 {
    // SAFETY: as the caller's.
    let [low, high] = unsafe { [_mm256_movemask_epi8(low), _mm256_movemask_epi8(high)] };
    u64::from(low as u32) | u64::from(high as u32) << 32
}

/// All bits of each byte that equals one of two.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn among(half: __m256i, [one, two]: [u8; 2]) -> __m256i {
    // SAFETY: as the caller's.
    unsafe {
        let one = _mm256_cmpeq_epi8(half, _mm256_set1_epi8(one as i8));
        let two = _mm256_cmpeq_epi8(half, _mm256_set1_epi8(two as i8));
        _mm256_or_si256(one, two)
    }
}

/// All bits of each byte up to `most`, or that equals one of two.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn special(half: __m256i, most: u8, others: [u8; 2]) -> __m256i {
    // SAFETY: as the caller's.
    unsafe {
        let least = _mm256_min_epu8(half, _mm256_set1_epi8(most as i8));
        _mm256_or_si256(_mm256_cmpeq_epi8(least, half), among(half, others))
    }
}

/// Two half vectors.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn halves(from: &[u8; 64]) -> [__m256i; 2] {
    let from = from.as_ptr();
    // SAFETY: 64 bytes; else as the caller's.
    unsafe {
        [
            _mm256_loadu_si256(from.cast()),
            _mm256_loadu_si256(from.add(32).cast()),
        ]
    }
}

/// [`Isa::special`], in half vectors: with AVX-512 that is faster than three masks of 64 bits.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn special_of_halves(bytes: &[u8; 64], most: u8, others: [u8; 2]) -> u64 {
    // SAFETY: as the caller's.
    unsafe {
        let [low, high] = halves(bytes);
        tops(special(low, most, others), special(high, most, others))
    }
}

/// The places of the bits of each byte, the lowest first.
pub(crate) static PLACES: [[u8; 8]; 256] = {
    let mut places = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut found) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                places[byte][found] = bit as u8;
                found += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    places
};

impl Isa for Avx2 {
    type Bytes = [__m256i; 2];
    type Base = __m128i;

    #[inline(always)]
    fn load(self, from: &[u8; 64]) -> [__m256i; 2] {
        // SAFETY: the token's features.
        unsafe { halves(from) }
    }

    methods! {
        equal(bytes: [__m256i; 2], byte: u8) -> u64 = {
            let byte = _mm256_set1_epi8(byte as i8);
            tops(_mm256_cmpeq_epi8(bytes[0], byte), _mm256_cmpeq_epi8(bytes[1], byte))
        };
        // The bits of both are gathered at once.
        among(bytes: [__m256i; 2], others: [u8; 2]) -> u64 =
            tops(among(bytes[0], others), among(bytes[1], others));
        special(bytes: &[u8; 64], most: u8, others: [u8; 2]) -> u64 =
            special_of_halves(bytes, most, others);
        between(quotes: u64) -> u64 = parities(quotes);
        base(place: u16) -> __m128i = _mm_set1_epi16(place as i16);
    }

    #[inline(always)]
    fn copy_sixteen(self, from: &[u8; 16], to: &mut MaybeUninit<[u8; 16]>) {
        sixteen::copy(from, to);
    }

    /// Eight bits at a time without a branch: the time doesn't depend on how many are set.
    #[inline(always)]
    fn list(self, bits: u64, _: u32, mut base: __m128i, to: &mut [u16; 64]) -> __m128i {
        let (to, mut count) = (to.as_mut_ptr(), 0);
        // SAFETY: the token's features; before each byte are at most as many places as bits, and eight are written.
        unsafe {
            for byte in bits.to_le_bytes() {
                let places = _mm_loadl_epi64(PLACES[usize::from(byte)].as_ptr().cast());
                let places = _mm_add_epi16(_mm_cvtepu8_epi16(places), base);
                _mm_storeu_si128(to.add(count).cast(), places);
                base = _mm_add_epi16(base, _mm_set1_epi16(8));
                count += byte.count_ones() as usize;
            }
        }
        base
    }
}

impl Isa for Avx512 {
    type Bytes = __m512i;
    type Base = __m512i;

    #[inline(always)]
    fn load(self, from: &[u8; 64]) -> __m512i {
        // SAFETY: 64 bytes.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    methods! {
        equal(bytes: __m512i, byte: u8) -> u64 =
            _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8));
        special(bytes: &[u8; 64], most: u8, others: [u8; 2]) -> u64 =
            special_of_halves(bytes, most, others);
        between(quotes: u64) -> u64 = parities(quotes);
        base(place: u16) -> __m512i = _mm512_set1_epi16(place as i16);
    }

    #[inline(always)]
    fn copy_sixteen(self, from: &[u8; 16], to: &mut MaybeUninit<[u8; 16]>) {
        sixteen::copy(from, to);
    }

    #[inline(always)]
    fn list(self, bits: u64, count: u32, base: __m512i, to: &mut [u16; 64]) -> __m512i {
        let places: [u8; 64] = std::array::from_fn(|place| place as u8);
        let to = to.as_mut_ptr();
        // SAFETY: the token's features; 16 places are written, or 64.
        unsafe {
            // In a register: compressing to memory is microcoded on some processors.
            let places = _mm512_maskz_compress_epi8(bits, self.load(&places));
            // Most chunks have no more, and half a vector crosses a cache line half as often.
            let first = _mm256_cvtepu8_epi16(_mm512_castsi512_si128(places));
            let first = _mm256_add_epi16(first, _mm512_castsi512_si256(base));
            _mm256_storeu_si256(to.cast(), first);
            if count > 16 {
                let first = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(places));
                let rest = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(places));
                _mm512_storeu_si512(to.cast(), _mm512_add_epi16(first, base));
                _mm512_storeu_si512(to.add(32).cast(), _mm512_add_epi16(rest, base));
            }
            _mm512_add_epi16(base, _mm512_set1_epi16(64))
        }
    }
}

/// Masks of sixteen bytes, by SSE2.
pub mod sixteen {
    use std::arch::x86_64::*;
    use std::mem::MaybeUninit;

    #[inline(always)]
    fn load(bytes: &[u8; 16]) -> __m128i {
        // SAFETY: 16 bytes.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    pub(super) fn copy(from: &[u8; 16], to: &mut MaybeUninit<[u8; 16]>) {
        // SAFETY: 16 bytes.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), load(from)) }
    }

    /// A bit for each quote, backslash and control character.
    #[inline(always)]
    pub fn special(bytes: &[u8; 16]) -> u32 {
        let text = load(bytes);
        // SAFETY: the module's invariant.
        unsafe {
            let quotes = _mm_cmpeq_epi8(text, _mm_set1_epi8(b'"' as i8));
            let backslashes = _mm_cmpeq_epi8(text, _mm_set1_epi8(b'\\' as i8));
            let controls = _mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(0x1f)), text);
            _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quotes, backslashes), controls)) as u32
        }
    }

    /// A bit for each byte that is one of two.
    #[inline(always)]
    pub fn equal(bytes: &[u8; 16], one: u8, other: u8) -> u32 {
        let text = load(bytes);
        // SAFETY: the module's invariant.
        unsafe {
            let ones = _mm_cmpeq_epi8(text, _mm_set1_epi8(one as i8));
            let others = _mm_cmpeq_epi8(text, _mm_set1_epi8(other as i8));
            _mm_movemask_epi8(_mm_or_si128(ones, others)) as u32
        }
    }

    /// A bit for each byte that is no digit.
    #[inline(always)]
    pub fn no_digits(bytes: &[u8; 16]) -> u32 {
        // SAFETY: the module's invariant.
        unsafe {
            let digits = _mm_sub_epi8(load(bytes), _mm_set1_epi8(b'0' as i8));
            let is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digits, _mm_set1_epi8(9)), digits);
            !_mm_movemask_epi8(is_digit) as u32 & 0xffff
        }
    }
}
