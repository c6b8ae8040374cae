//! 64 bytes at once: which of them equal a byte, as a bit each; and whether a byte is among many.
//!
//! Invariant of this module: an implementation's functions are only called where the processor has what it needs, from a
//! function that has the same features, and are inlined into it.
#![allow(unsafe_code)]

use crate::level::Level;
use crate::prefetch;

/// 64 bytes.
pub(crate) trait Bytes64: Copy {
    /// # Safety
    /// 64 bytes are readable, and the processor has what the implementation needs.
    unsafe fn load(from: *const u8) -> Self;

    /// A bit for each byte that equals `byte`, the first byte's lowest.
    ///
    /// # Safety
    /// The processor has what the implementation needs.
    unsafe fn equal(self, byte: u8) -> u64;

    /// A bit for each byte that equals one of two, the first byte's lowest.
    ///
    /// # Safety
    /// The processor has what the implementation needs.
    #[inline(always)]
    unsafe fn among(self, [one, two]: [u8; 2]) -> u64 {
        // SAFETY: as the caller's.
        unsafe { self.equal(one) | self.equal(two) }
    }

    /// Bits set from each set bit up to the next one, which isn't set, and so on.
    ///
    /// # Safety
    /// The processor has what the implementation needs.
    #[inline(always)]
    unsafe fn between(quotes: u64) -> u64 {
        between(quotes)
    }
}

/// Bits set from each set bit up to the next one, which isn't set, and so on.
#[inline(always)]
fn between(mut quotes: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        quotes ^= quotes << shift;
    }
    quotes
}

/// Bytes of one half that are read before as many of the other.
const PIECE: usize = 256;
/// How far ahead bytes are fetched into the cache: the processor's own prefetching ends with a page.
const AHEAD: usize = 1024;

/// Whether `byte` is in `bytes`. Both halves are read at once, because the prefetcher of one stream doesn't use all of the
/// memory bandwidth.
pub(crate) fn contains(level: Level, byte: u8, bytes: &[u8]) -> bool {
    match level {
        // SAFETY: needs no feature.
        Level::Portable => unsafe { contains_by::<Words>(byte, bytes) },
        // SAFETY: a level is only made where the processor has its features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { x86::contains_avx2(byte, bytes) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { x86::contains_avx512(byte, bytes) },
    }
}

/// # Safety
/// The processor has what `B` needs.
#[inline(always)]
unsafe fn contains_by<B: Bytes64>(byte: u8, bytes: &[u8]) -> bool {
    let (first, second) = bytes.split_at(bytes.len() / 2 / PIECE * PIECE);
    let (second, rest) = second.split_at(first.len());
    let pieces = first.chunks_exact(PIECE).zip(second.chunks_exact(PIECE));
    for (first, second) in pieces {
        let mut found = 0;
        for at in (0..PIECE).step_by(64) {
            for piece in [first, second] {
                let from = piece[at..at + 64].as_ptr();
                prefetch::into_l1(from.wrapping_add(AHEAD));
                // SAFETY: 64 bytes; the processor has what is needed.
                found |= unsafe { B::load(from).equal(byte) };
            }
        }
        if found != 0 {
            return true;
        }
    }
    memchr::memchr(byte, rest).is_some()
}

/// 64-bit words, any processor.
#[derive(Clone, Copy)]
pub(crate) struct Words([u64; 8]);

impl Bytes64 for Words {
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Words {
        // SAFETY: as the caller's.
        let bytes: [[u8; 8]; 8] = unsafe { from.cast::<[[u8; 8]; 8]>().read_unaligned() };
        Words(bytes.map(u64::from_le_bytes))
    }

    #[inline(always)]
    unsafe fn equal(self, byte: u8) -> u64 {
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let wanted = u64::from(byte) * 0x0101_0101_0101_0101;
        self.0.iter().enumerate().fold(0, |mask, (at, word)| {
            let differences = word ^ wanted;
            // The top bit of every byte that is equal, gathered into eight bits.
            let hits = !(((differences & LOW) + LOW) | differences | LOW);
            let hits = (hits >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            mask | hits << (8 * at)
        })
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use crate::record::masks::{Bytes64, contains_by};

    /// # Safety
    /// The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn contains_avx2(byte: u8, bytes: &[u8]) -> bool {
        // SAFETY: as the caller's.
        unsafe { contains_by::<Avx2>(byte, bytes) }
    }

    /// # Safety
    /// The processor has AVX-512.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn contains_avx512(byte: u8, bytes: &[u8]) -> bool {
        // SAFETY: as the caller's.
        unsafe { contains_by::<Avx512>(byte, bytes) }
    }

    /// AVX2 and carry-less multiplication.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2([__m256i; 2]);
    /// AVX-512 and carry-less multiplication.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(__m512i);

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

    impl Bytes64 for Avx2 {
        #[inline(always)]
        unsafe fn load(from: *const u8) -> Avx2 {
            // SAFETY: as the caller's.
            unsafe {
                Avx2([
                    _mm256_loadu_si256(from.cast()),
                    _mm256_loadu_si256(from.add(32).cast()),
                ])
            }
        }

        #[inline(always)]
        unsafe fn equal(self, byte: u8) -> u64 {
            // SAFETY: the caller has AVX2.
            unsafe {
                let [low, high] = self.0;
                let wanted = _mm256_set1_epi8(byte as i8);
                let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted)) as u32;
                let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted)) as u32;
                u64::from(low) | u64::from(high) << 32
            }
        }

        #[inline(always)]
        unsafe fn among(self, [one, two]: [u8; 2]) -> u64 {
            // SAFETY: the caller has AVX2.
            unsafe {
                let one = _mm256_set1_epi8(one as i8);
                let two = _mm256_set1_epi8(two as i8);
                // The bits of both are gathered at once.
                let [low, high] = self.0;
                let low = _mm256_or_si256(_mm256_cmpeq_epi8(low, one), _mm256_cmpeq_epi8(low, two));
                let high =
                    _mm256_or_si256(_mm256_cmpeq_epi8(high, one), _mm256_cmpeq_epi8(high, two));
                let low = _mm256_movemask_epi8(low) as u32;
                let high = _mm256_movemask_epi8(high) as u32;
                u64::from(low) | u64::from(high) << 32
            }
        }

        #[inline(always)]
        unsafe fn between(quotes: u64) -> u64 {
            // SAFETY: as the caller's.
            unsafe { parities(quotes) }
        }
    }

    impl Bytes64 for Avx512 {
        #[inline(always)]
        unsafe fn load(from: *const u8) -> Avx512 {
            // SAFETY: as the caller's.
            unsafe { Avx512(_mm512_loadu_si512(from.cast())) }
        }

        #[inline(always)]
        unsafe fn equal(self, byte: u8) -> u64 {
            // SAFETY: the caller has AVX-512.
            unsafe { _mm512_cmpeq_epi8_mask(self.0, _mm512_set1_epi8(byte as i8)) }
        }

        #[inline(always)]
        unsafe fn between(quotes: u64) -> u64 {
            // SAFETY: as the caller's.
            unsafe { parities(quotes) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a level's masks say of 64 bytes and of a mask.
    fn of(level: Level, bytes: &[u8; 64], byte: u8, quotes: u64) -> [u64; 3] {
        fn by<B: Bytes64>(bytes: &[u8; 64], byte: u8, quotes: u64) -> [u64; 3] {
            // SAFETY: 64 bytes, and the level is there.
            unsafe {
                let text = B::load(bytes.as_ptr());
                [
                    text.equal(byte),
                    text.among([byte, 0x86]),
                    B::between(quotes),
                ]
            }
        }
        match level {
            Level::Portable => by::<Words>(bytes, byte, quotes),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => by::<Avx2>(bytes, byte, quotes),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => by::<Avx512>(bytes, byte, quotes),
        }
    }

    #[test]
    fn bits_of_bytes() {
        let bytes: [u8; 64] = std::array::from_fn(|at| (at * at % 7) as u8 | ((at as u8) << 7));
        let mut quotes = 0x9e37_79b9_7f4a_7c15_u64;
        for byte in [0, 1, 2, 4, 0x80, 0x81, 0x7f, 0xff] {
            let bits = |set: &[u8]| {
                (0..64).fold(0, |mask, at| {
                    mask | u64::from(set.contains(&bytes[at])) << at
                })
            };
            quotes = quotes.wrapping_mul(quotes | 1);
            for level in Level::available() {
                let got = of(level, &bytes, byte, quotes);
                assert_eq!(got, [bits(&[byte]), bits(&[byte, 0x86]), between(quotes)]);
            }
        }
    }

    #[test]
    fn a_byte_is_found_wherever_it_stands() {
        for level in Level::available() {
            for length in [0, 1, 63, 2 * PIECE - 1, 2 * PIECE, 5 * PIECE + 1] {
                let mut bytes = vec![0; length];
                assert!(!contains(level, 7, &bytes));
                for at in 0..length {
                    bytes[at] = 7;
                    assert!(contains(level, 7, &bytes));
                    bytes[at] = 0;
                }
            }
        }
    }

    #[test]
    fn between_bits() {
        assert_eq!(between(0b1_0010), 0b0_1110);
        assert_eq!(between(0b1000), !0b111);
        assert_eq!(between(0b11), 0b01);
    }
}
