//! A byte among many: how often it is there, and whether. Both halves are read at once, piece by piece, because the
//! prefetcher of one stream doesn't use all of the memory bandwidth.

use crate::isa::{Isa, dispatch};
use crate::level::Level;
use crate::prefetch;

/// Bytes of one half that are read before as many of the other.
const PIECE: usize = 512;

/// How far ahead [`contains`] fetches into the cache: the processor's own prefetching ends with a page.
const AHEAD: usize = 1024;

/// Whether `byte` is in `bytes`.
pub(crate) fn contains(level: Level, byte: u8, bytes: &[u8]) -> bool {
    let half = bytes.len() / 2 / PIECE * PIECE;
    let [first, second] = [&bytes[..half], &bytes[half..2 * half]];
    dispatch!(level, isa => is_in_either(isa, byte, first, second))
        || memchr::memchr(byte, &bytes[2 * half..]).is_some()
}

/// Whether `byte` is in one of two halves.
#[inline(always)]
fn is_in_either<I: Isa>(isa: I, byte: u8, first: &[u8], second: &[u8]) -> bool {
    let [first, second] = [first, second].map(|half| half.as_chunks::<PIECE>().0);
    for (first, second) in first.iter().zip(second) {
        let mut found = 0;
        let [first, second] = [first, second].map(|piece| piece.as_chunks::<64>().0);
        for (first, second) in first.iter().zip(second) {
            for bytes in [first, second] {
                prefetch::into_l1(bytes.as_ptr().wrapping_add(AHEAD));
                found |= isa.equal(isa.load(bytes), byte);
            }
        }
        if found != 0 {
            return true;
        }
    }
    false
}

/// How often `byte` is in `bytes`.
pub fn count(byte: u8, bytes: &[u8]) -> usize {
    let (halves, odd) = bytes.split_at(bytes.len() & !1);
    let (first, second) = halves.split_at(halves.len() / 2);
    let pieces = first.chunks(PIECE).zip(second.chunks(PIECE));
    let count = |piece| bytecount::count(piece, byte);
    pieces
        .map(|(first, second)| count(first) + count(second))
        .sum::<usize>()
        + count(odd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every length of the halves around a piece's, whatever is in them.
        #[test]
        fn none_is_missed(bytes in prop::collection::vec(0..3_u8, 0..4 * PIECE + 4)) {
            let naive = bytes.iter().filter(|&&byte| byte == 1).count();
            prop_assert_eq!(count(1, &bytes), naive);
        }
    }

    #[test]
    fn a_byte_is_found_at_any_place() {
        for level in Level::available() {
            for length in [0, 1, 63, 2 * PIECE - 1, 2 * PIECE, 4 * PIECE + 1] {
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
    fn lengths_around_whole_pieces() {
        for length in (0..4)
            .chain(2 * PIECE - 3..2 * PIECE + 4)
            .chain(4 * PIECE - 3..4 * PIECE + 4)
        {
            assert_eq!(count(1, &vec![1; length]), length);
        }
    }
}
