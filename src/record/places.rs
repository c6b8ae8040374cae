//! Lists which bits of a mask are set, as 16-bit positions.
//!
//! Invariant of this module: callers have room for 64 positions, and the processor has what a function names.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

/// The places of the bits of each byte, the lowest first.
static PLACES: [[u8; 8]; 256] = {
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

/// Writes `base` plus the place of each bit that is set, and returns how many there are. What stands behind them up to 64
/// positions may be overwritten.
///
/// Eight bits at a time without a branch: the time doesn't depend on how many are set.
///
/// # Safety
/// 64 positions at `out` can be written. The caller has the features AVX2 and POPCNT.
#[inline(always)]
pub(crate) unsafe fn list_avx2(bits: u64, base: u16, out: *mut u16) -> usize {
    let mut found = 0;
    // SAFETY: as the caller's; before each byte stand at most as many positions as bits, and eight are written.
    unsafe {
        let mut base = _mm_set1_epi16(base as i16);
        for byte in bits.to_le_bytes() {
            let places = _mm_loadl_epi64(PLACES[usize::from(byte)].as_ptr().cast());
            let places = _mm_add_epi16(_mm_cvtepu8_epi16(places), base);
            _mm_storeu_si128(out.add(found).cast(), places);
            base = _mm_add_epi16(base, _mm_set1_epi16(8));
            found += byte.count_ones() as usize;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::Level;

    #[target_feature(enable = "avx2,popcnt")]
    unsafe fn listed(bits: u64, base: u16) -> Vec<u16> {
        let mut places = vec![0; 64];
        // SAFETY: 64 positions; the caller has the features.
        let found = unsafe { list_avx2(bits, base, places.as_mut_ptr()) };
        places.truncate(found);
        places
    }

    #[test]
    fn each_bit_is_listed() {
        if !Level::available().contains(&Level::Avx2) {
            return;
        }
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        let many = (0..2_000).map(|round| {
            bits = bits.wrapping_mul(bits | 1).rotate_left(29);
            // Few bits and many.
            match round % 3 {
                0 => bits,
                1 => bits & bits.rotate_left(7) & bits.rotate_left(19),
                _ => bits | bits.rotate_left(7) | bits.rotate_left(19),
            }
        });
        for bits in many.chain([0, !0]) {
            let places = (0..64).filter(|place| bits >> place & 1 == 1);
            let want: Vec<u16> = places.map(|place| 9 + place).collect();
            // SAFETY: the level is there.
            assert_eq!(unsafe { listed(bits, 9) }, want);
        }
    }
}
