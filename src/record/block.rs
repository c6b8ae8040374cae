//! A block: whole records in one slice, and the place in a file where they stood.
//!
//! # Invariant (`unsafe` module)
//! Around the bytes of every [`Block`] lie [`PADDING`] more that may be read: they belong to the
//! same allocation or mapping, are initialised, and nobody writes to them while the block lives.
//! Vector kernels read past both edges by that promise; what they find there is arbitrary.
#![allow(unsafe_code)]

/// How many bytes may be read before and after the bytes of a block.
pub const PADDING: usize = 64;

/// The word of a sink that its blocks may lie in pages of the page cache, which other processes can write to meanwhile.
///
/// Without it every block lies in memory that only this process writes to.
#[derive(Debug, Clone, Copy)]
pub struct SharedPages(());

impl SharedPages {
    /// The word of a sink.
    ///
    /// # Safety
    /// Bytes of a block may change between two loads of them. The sink, and its framing, do nothing that is unsound then:
    /// no index, length or branch that guards an access depends on two loads of one byte agreeing. What they make of such
    /// bytes is right for some version of each.
    pub const unsafe fn new() -> SharedPages {
        SharedPages(())
    }
}

/// Whole records, one after the other, with the place they came from.
///
/// Every byte of a span is delivered in exactly one block. Only the last record of a file may
/// lack its delimiter.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    bytes: &'a [u8],
    file: u32,
    offset: u64,
    sequence: u64,
}

impl<'a> Block<'a> {
    /// A block over `bytes`, which begin at byte `offset` of file number `file`.
    ///
    /// # Safety
    /// - The [`PADDING`] bytes before and after `bytes` are readable and initialised.
    /// - Nobody writes to them during `'a`.
    pub unsafe fn new(bytes: &'a [u8], file: u32, offset: u64, sequence: u64) -> Self {
        Block {
            bytes,
            file,
            offset,
            sequence,
        }
    }

    /// The block's first `len` bytes.
    pub fn prefix(&self, len: usize) -> Self {
        // What lies behind them is more of the block, and readable all the same.
        Block {
            bytes: &self.bytes[..len],
            ..*self
        }
    }

    /// The records.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The number of the file among the input's sources, from 0.
    pub fn file(&self) -> u32 {
        self.file
    }

    /// Where the first byte stands in its file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The number of the read that the block's first byte belongs to, counted over the whole run
    /// in the order of submission. It grows with the position within a span, but blocks may share
    /// it, one behind the other: what was claimed at once, or a record longer than a buffer. For
    /// order among blocks go by file and offset.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// Bytes in memory of their own with the padding a [`Block`] needs: records longer than a buffer
/// are gathered in one, and tests make blocks of it.
#[derive(Debug, Clone)]
pub struct PaddedBuf {
    /// `PADDING` bytes, the bytes, `PADDING` bytes.
    padded: Vec<u8>,
}

impl Default for PaddedBuf {
    fn default() -> Self {
        PaddedBuf {
            padded: vec![0; 2 * PADDING],
        }
    }
}

impl From<&[u8]> for PaddedBuf {
    fn from(bytes: &[u8]) -> Self {
        let mut buf = PaddedBuf::default();
        buf.extend(bytes);
        buf
    }
}

impl PaddedBuf {
    /// Bytes with padding of another kind, for tests that show it doesn't matter.
    #[cfg(test)]
    pub(crate) fn with_fill(bytes: &[u8], fill: u8) -> Self {
        let padding = [fill; PADDING];
        PaddedBuf {
            padded: [&padding, bytes, &padding].concat(),
        }
    }

    /// Adds bytes at the end.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.padded.truncate(PADDING + self.len());
        self.padded.extend_from_slice(bytes);
        self.padded.extend_from_slice(&[0; PADDING]);
    }

    /// The bytes without their padding.
    pub fn bytes(&self) -> &[u8] {
        &self.padded[PADDING..PADDING + self.len()]
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.padded.len() - 2 * PADDING
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes as a block.
    pub fn block(&self, file: u32, offset: u64, sequence: u64) -> Block<'_> {
        // SAFETY: PADDING bytes of the same vector lie before and after the slice, and the borrow
        // of self keeps everybody from writing.
        unsafe { Block::new(self.bytes(), file, offset, sequence) }
    }
}

#[cfg(test)]
mod tests {
    use crate::record::block::*;

    #[test]
    fn padded_buf_grows_after_it_was_a_block() {
        let mut buf = PaddedBuf::from(&b"ab"[..]);
        assert_eq!(buf.block(0, 7, 0).bytes(), b"ab");
        assert_eq!(
            PaddedBuf::with_fill(b"ab", b'x').block(0, 7, 0).bytes(),
            b"ab"
        );
        buf.extend(b"cd");
        let block = buf.block(3, 7, 9);
        assert_eq!(
            (block.bytes(), block.file(), block.offset()),
            (&b"abcd"[..], 3, 7)
        );
    }
}
