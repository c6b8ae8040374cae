//! Looks at sixteen bytes at a time: where few are looked through, a call of memchr would take longer than the look.
//!
//! Invariant of this module: it uses no instructions but those that every processor of the target has.
#![allow(unsafe_code)]

/// A bit for each quote, backslash and control character.
#[inline(always)]
pub(crate) fn special(bytes: &[u8; 16]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 belongs to x86-64.
    return unsafe { sse2::special(bytes) };
    #[cfg(not(target_arch = "x86_64"))]
    naive::special(bytes)
}

/// Where the first of two bytes stands from `at` on.
#[inline(always)]
pub(crate) fn first_of(one: u8, other: u8, bytes: &[u8], mut at: usize) -> Option<usize> {
    while let Some(sixteen) = bytes.get(at..at + 16) {
        let found = sixteen.try_into().map_or(0, |text| equal(text, one, other));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize);
        }
        at += 16;
    }
    let rest = bytes.get(at..)?;
    let found = rest.iter().position(|byte| *byte == one || *byte == other);
    found.map(|found| at + found)
}

/// A bit for each byte that is one of two.
#[inline(always)]
fn equal(bytes: &[u8; 16], one: u8, other: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 belongs to x86-64.
    return unsafe { sse2::equal(bytes, one, other) };
    #[cfg(not(target_arch = "x86_64"))]
    naive::equal(bytes, one, other)
}

/// A bit for each byte that is no digit.
#[inline(always)]
pub(crate) fn no_digits(bytes: &[u8; 16]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 belongs to x86-64.
    return unsafe { sse2::no_digits(bytes) };
    #[cfg(not(target_arch = "x86_64"))]
    naive::no_digits(bytes)
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::*;

    /// # Safety
    /// The processor has SSE2.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub(crate) unsafe fn special(bytes: &[u8; 16]) -> u32 {
        let text = load(bytes);
        let quotes = _mm_cmpeq_epi8(text, _mm_set1_epi8(b'"' as i8));
        let backslashes = _mm_cmpeq_epi8(text, _mm_set1_epi8(b'\\' as i8));
        let controls = _mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(0x1f)), text);
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quotes, backslashes), controls)) as u32
    }

    /// # Safety
    /// The processor has SSE2.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub(crate) unsafe fn equal(bytes: &[u8; 16], one: u8, other: u8) -> u32 {
        let text = load(bytes);
        let ones = _mm_cmpeq_epi8(text, _mm_set1_epi8(one as i8));
        let others = _mm_cmpeq_epi8(text, _mm_set1_epi8(other as i8));
        _mm_movemask_epi8(_mm_or_si128(ones, others)) as u32
    }

    /// # Safety
    /// The processor has SSE2.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub(crate) unsafe fn no_digits(bytes: &[u8; 16]) -> u32 {
        let digits = _mm_sub_epi8(load(bytes), _mm_set1_epi8(b'0' as i8));
        let is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digits, _mm_set1_epi8(9)), digits);
        !_mm_movemask_epi8(is_digit) as u32 & 0xffff
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn load(bytes: &[u8; 16]) -> __m128i {
        // SAFETY: sixteen bytes are there.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
mod naive {
    fn bits(bytes: &[u8; 16], is_it: impl Fn(u8) -> bool) -> u32 {
        let bytes = bytes.iter().enumerate();
        bytes.fold(0, |bits, (at, byte)| bits | u32::from(is_it(*byte)) << at)
    }

    pub(crate) fn special(bytes: &[u8; 16]) -> u32 {
        bits(bytes, |byte| matches!(byte, b'"' | b'\\' | 0..0x20))
    }

    pub(crate) fn equal(bytes: &[u8; 16], one: u8, other: u8) -> u32 {
        bits(bytes, |byte| byte == one || byte == other)
    }

    pub(crate) fn no_digits(bytes: &[u8; 16]) -> u32 {
        bits(bytes, |byte| !byte.is_ascii_digit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place() {
        for byte in 0..=255 {
            for other in *b"a0\"" {
                for at in 0..16 {
                    let mut bytes = [other; 16];
                    bytes[at] = byte;
                    assert_eq!(special(&bytes), naive::special(&bytes), "{bytes:?}");
                    assert_eq!(no_digits(&bytes), naive::no_digits(&bytes), "{bytes:?}");
                    let found = naive::equal(&bytes, byte, b'~');
                    assert_eq!(equal(&bytes, byte, b'~'), found, "{bytes:?}");
                }
            }
        }
    }
    #[test]
    fn the_first_of_two() {
        let text = b"0123456789abcdefghijklmnopqrstuvw";
        for from in 0..=text.len() + 1 {
            for (one, other) in [(b'a', b'w'), (b'w', b'w'), (b'0', b'!'), (b'~', b'g')] {
                let is_it = |at: &usize| text[*at] == one || text[*at] == other;
                let want = (from..text.len()).find(is_it);
                assert_eq!(
                    first_of(one, other, text, from),
                    want,
                    "{from} {one} {other}"
                );
            }
        }
    }
}
