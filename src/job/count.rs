//! The job `count`: records and bytes, like `wc -l` and `wc -c`. As little work as a job can do,
//! so its time is the time of reading.

use crate::engine::sink::BlockError;
use crate::job::fold::Fold;
use crate::record::block::Block;
use crate::record::framing::{Delimited, Framing};

/// Counts record ends and bytes, file by file.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    /// The byte that ends a record.
    pub delimiter: u8,
}

/// What was counted in one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Delimiters: a last record that lacks its own isn't counted, as in `wc -l`.
    pub records: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Bytes of one half that are looked at before as many of the other.
const PIECE: usize = 512;

/// How often `byte` is in `bytes`. Both halves are read at once, piece by piece: what a processor reads
/// ahead of one stream by itself doesn't fill the way to memory.
fn count(byte: u8, bytes: &[u8]) -> usize {
    let (halves, odd) = bytes.split_at(bytes.len() & !1);
    let (first, second) = halves.split_at(halves.len() / 2);
    let pieces = first.chunks(PIECE).zip(second.chunks(PIECE));
    let count = |piece| bytecount::count(piece, byte);
    pieces
        .map(|(first, second)| count(first) + count(second))
        .sum::<usize>()
        + count(odd)
}

impl Fold for Count {
    type Partial = Vec<Counted>;
    /// One a file that has any bytes, by the file's number; missing ones at the end hold nothing.
    type Output = Vec<Counted>;

    fn partial(&self) -> Vec<Counted> {
        Vec::new()
    }

    /// Lines are counted, not looked at: they may be as long as they like, and lie across blocks.
    fn framing(&self) -> &dyn Framing {
        &Delimited::EVERY_BYTE
    }

    fn block(&self, counted: &mut Vec<Counted>, block: &Block<'_>) -> Result<(), BlockError> {
        let file = block.file() as usize;
        if counted.len() <= file {
            counted.resize(file + 1, Counted::default());
        }
        counted[file].records += count(self.delimiter, block.bytes()) as u64;
        counted[file].bytes += block.bytes().len() as u64;
        Ok(())
    }

    fn merge(&self, into: &mut Vec<Counted>, from: Vec<Counted>) {
        into.resize(into.len().max(from.len()), Counted::default());
        for (into, from) in into.iter_mut().zip(from) {
            into.records += from.records;
            into.bytes += from.bytes;
        }
    }

    fn finish(&self, total: Vec<Counted>) -> Vec<Counted> {
        total
    }
}

#[cfg(test)]
mod tests {
    use crate::job::count::*;
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
