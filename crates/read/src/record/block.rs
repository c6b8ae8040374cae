//! A block: whole records in one slice, and the place in a file where they stood.
//!
//! # Invariant (`unsafe` module)
//! Around the bytes of every [`Block`] lie [`PADDING`] more that may be read: they belong to the
//! same allocation or mapping, are initialised, and nobody writes to them while the block lives.
//! Vector kernels read past both edges by that promise; what they find there is arbitrary.
#![allow(unsafe_code)]

use crate::record::nuls;

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
    #[inline]
    pub const unsafe fn new() -> SharedPages {
        SharedPages(())
    }
}

/// What a record over the limit lost: its block has only its start, with a record end after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cut {
    /// The limit.
    pub max_record: usize,
    /// Bytes of the file that aren't in the block, the record end with them.
    pub left_out: u64,
    /// How many of those begin with bytes of zero.
    pub nuls: u64,
}

impl Cut {
    /// How far over the limit the end of a record is looked for: as far as it takes, or so far as to count the bytes of zero
    /// of a usual hole where the record ends the run.
    pub fn reach(ends_run: bool) -> u64 {
        match ends_run {
            true => 64 << 20,
            false => u64::MAX,
        }
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
    cut: Option<Cut>,
}

impl<'a> Block<'a> {
    /// A block over `bytes`, which begin at byte `offset` of file number `file`.
    ///
    /// # Safety
    /// - The [`PADDING`] bytes before and after `bytes` are readable and initialised.
    /// - Nobody writes to them during `'a`.
    #[inline]
    pub unsafe fn new(bytes: &'a [u8], file: u32, offset: u64, sequence: u64) -> Self {
        Block {
            bytes,
            file,
            offset,
            sequence,
            cut: None,
        }
    }

    /// Its only record was cut.
    #[doc(hidden)]
    #[inline]
    pub fn with_cut(self, cut: Option<Cut>) -> Self {
        Block { cut, ..self }
    }

    /// What its only record lost.
    #[doc(hidden)]
    #[inline]
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// How many bytes of the file it stands for.
    #[doc(hidden)]
    #[inline]
    pub fn length(&self) -> u64 {
        let bytes = self.bytes.len() as u64;
        self.cut.map_or(bytes, |cut| bytes - 1 + cut.left_out)
    }

    /// The block's first `len` bytes.
    #[inline]
    pub fn prefix(&self, len: usize) -> Self {
        // What lies after them is more of the block, and readable all the same.
        Block {
            bytes: &self.bytes[..len],
            ..*self
        }
    }

    /// The block from its byte `from` on.
    #[inline]
    pub(crate) fn suffix(&self, from: usize) -> Self {
        Block {
            bytes: &self.bytes[from..],
            offset: self.offset + from as u64,
            ..*self
        }
    }

    /// The records.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// At most `most` bytes from `start` on, for kernels that read past their edges.
    #[doc(hidden)]
    #[inline]
    pub fn part(&self, start: usize, most: usize) -> Padded<'a> {
        let bytes = &self.bytes[start..];
        Padded {
            bytes: &bytes[..bytes.len().min(most)],
        }
    }

    /// The number of the file among the input's sources, from 0.
    #[inline]
    pub fn file(&self) -> u32 {
        self.file
    }

    /// Where the first byte stands in its file.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The number of the read that the block's first byte belongs to, counted over the whole run
    /// in the order of submission. It grows with the position within a span, but blocks may share
    /// it, one after the other: what was claimed at once, or a record longer than a buffer. For
    /// order among blocks go by file and offset.
    #[inline]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// A part of a block: [`PADDING`] bytes before and after it are readable, because those of the block are.
#[derive(Debug, Clone, Copy)]
pub struct Padded<'a> {
    bytes: &'a [u8],
}

impl<'a> Padded<'a> {
    /// Its bytes.
    #[inline(always)]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The padding before its bytes, these, and the padding after them.
    #[inline(always)]
    pub fn with_padding(self) -> &'a [u8] {
        // SAFETY: as many bytes as the padding has are readable before the part and after it.
        unsafe {
            std::slice::from_raw_parts(self.pointer().sub(PADDING), self.bytes.len() + 2 * PADDING)
        }
    }

    /// Its bytes and the padding after them.
    #[inline(always)]
    pub fn bytes_and_padding(self) -> &'a [u8] {
        &self.with_padding()[PADDING..]
    }

    /// The first byte.
    #[inline(always)]
    pub fn pointer(self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// `N` bytes from `start` on. They may end in the padding.
    #[inline(always)]
    pub fn from<const N: usize>(self, start: usize) -> &'a [u8; N] {
        assert!(start <= self.bytes.len() + const { PADDING - N });
        // SAFETY: as many bytes as the padding has are readable after the part.
        unsafe { &*self.pointer().add(start).cast() }
    }

    /// The `N` bytes before `end`. They may begin or end in the padding: the byte after the last value of a text that
    /// doesn't end with a newline is there.
    #[inline(always)]
    pub fn before<const N: usize>(self, end: usize) -> &'a [u8; N] {
        const { assert!(N <= PADDING) };
        assert!(end <= self.bytes.len() + PADDING);
        // SAFETY: as many bytes as the padding has are readable before the part and after it.
        unsafe { &*self.pointer().add(end).sub(N).cast() }
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
    pub fn with_fill(bytes: &[u8], fill: u8) -> Self {
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

    /// Removes all bytes.
    pub fn clear(&mut self) {
        self.padded.clear();
        self.padded.resize(2 * PADDING, 0);
    }

    /// The bytes without their padding.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.padded[PADDING..PADDING + self.len()]
    }

    /// How many bytes there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.padded.len() - 2 * PADDING
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes as a block.
    #[inline]
    pub fn block(&self, file: u32, offset: u64, sequence: u64) -> Block<'_> {
        // SAFETY: PADDING bytes of the same vector lie before and after the slice, and the borrow
        // of self keeps everybody from writing.
        unsafe { Block::new(self.bytes(), file, offset, sequence) }
    }
}

/// A record that is gathered piece by piece.
#[derive(Debug)]
pub struct LongRecord {
    /// Its bytes, as far as they are kept.
    pub bytes: PaddedBuf,
    /// Where it begins.
    pub offset: u64,
    pub(crate) cut: Cut,
    reach: Option<u64>,
}

impl LongRecord {
    /// A record that begins at `offset`. With a `reach` no more than its start is kept.
    pub(crate) fn new(offset: u64, max_record: usize, reach: Option<u64>) -> LongRecord {
        LongRecord {
            bytes: PaddedBuf::from(&b""[..]),
            offset,
            cut: Cut {
                max_record,
                ..Cut::default()
            },
            reach,
        }
    }

    /// Adds bytes.
    pub(crate) fn extend(&mut self, more: &[u8]) {
        // Enough to see that it is over the limit.
        let kept = self.cut.max_record.saturating_add(3);
        let room = match self.reach {
            Some(_) => kept.saturating_sub(self.bytes.len()),
            None => more.len(),
        };
        let (kept, rest) = more.split_at(room.min(more.len()));
        if !kept.is_empty() {
            self.bytes.extend(kept);
        }
        if self.cut.nuls == self.cut.left_out {
            let nuls = rest.iter().take_while(|byte| **byte == 0).count();
            self.cut.nuls += nuls as u64;
        }
        self.cut.left_out += rest.len() as u64;
    }

    /// Whether a run of NUL bytes is in what is kept.
    pub(crate) fn has_nuls(&self) -> bool {
        nuls::run(self.bytes.bytes()).is_some()
    }

    /// Whether it is further over the limit than is looked for its end.
    pub(crate) fn is_beyond(&self) -> bool {
        match self.reach {
            Some(reach) => self.cut.left_out > reach,
            None => self.bytes.len() > self.cut.max_record,
        }
    }

    /// How many bytes were added.
    pub(crate) fn length(&self) -> u64 {
        self.bytes.len() as u64 + self.cut.left_out
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

    #[test]
    fn parts_are_read_past_their_edges() {
        let buf = PaddedBuf::with_fill(b"abcd", b'x');
        let part = buf.block(0, 0, 0).part(1, 2);
        assert_eq!(part.bytes(), b"bc");
        assert_eq!(part.from(0), b"bcdxxxxx");
        assert_eq!(part.from(2), b"dxxx");
        assert_eq!(part.from(PADDING), b"xx");
        assert_eq!(part.before(2), b"xxabc");
        assert_eq!(part.before(3), b"abcd");
        assert!(std::panic::catch_unwind(|| part.from::<3>(PADDING)).is_err());
        assert!(std::panic::catch_unwind(|| part.before::<1>(PADDING + 3)).is_err());
    }
}
