//! 64 bytes at once: which of them equal a byte, as a bit each.
//!
//! Invariant of this module: an implementation's functions are only called where the processor has what it needs, from a
//! function that has the same features, and are inlined into it.
#![allow(unsafe_code)]

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
}

/// Bits set from each set bit up to the next one, which isn't set, and so on.
#[inline(always)]
pub(crate) fn between(mut quotes: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        quotes ^= quotes << shift;
    }
    quotes
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
pub(crate) use x86::Avx2;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use crate::record::masks::Bytes64;

    /// AVX2.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2([__m256i; 2]);

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
            let [low, high] = self.0.map(|half| unsafe {
                _mm256_movemask_epi8(_mm256_cmpeq_epi8(half, _mm256_set1_epi8(byte as i8))) as u32
            });
            u64::from(low) | u64::from(high) << 32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_bytes() {
        let bytes: [u8; 64] = std::array::from_fn(|at| (at * at % 7) as u8 | ((at as u8) << 7));
        for byte in [0, 1, 2, 4, 0x80, 0x81, 0x7f, 0xff] {
            let want = (0..64).fold(0, |mask, at| mask | u64::from(bytes[at] == byte) << at);
            // SAFETY: 64 bytes.
            let got = unsafe { Words::load(bytes.as_ptr()).equal(byte) };
            assert_eq!(got, want);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: 64 bytes, and the processor has AVX2.
                let got = unsafe { Avx2::load(bytes.as_ptr()).equal(byte) };
                assert_eq!(got, want);
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
