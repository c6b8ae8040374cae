//! Counts a byte.

/// Bytes of one half that are read before as many of the other.
const PIECE: usize = 512;

/// How often `byte` is in `bytes`. Both halves are read at once, piece by piece, because the prefetcher of one stream
/// doesn't use all of the memory bandwidth.
pub(crate) fn count(byte: u8, bytes: &[u8]) -> usize {
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
    fn lengths_around_whole_pieces() {
        for length in (0..4)
            .chain(2 * PIECE - 3..2 * PIECE + 4)
            .chain(4 * PIECE - 3..4 * PIECE + 4)
        {
            assert_eq!(count(1, &vec![1; length]), length);
        }
    }
}
