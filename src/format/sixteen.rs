//! Looks at sixteen bytes at a time: where few are looked through, a call of memchr would take longer than the look.

#[cfg(not(target_arch = "x86_64"))]
use naive::equal;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use naive::{no_digits, special};
#[cfg(target_arch = "x86_64")]
use ringfold_read::internals::isa::x86::sixteen::equal;
#[cfg(target_arch = "x86_64")]
pub(crate) use ringfold_read::internals::isa::x86::sixteen::no_digits;
#[cfg(target_arch = "x86_64")]
pub(crate) use ringfold_read::internals::isa::x86::sixteen::special;

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
