//! Writes a partial: groups in the order of their keys go out block by block.

use std::io::{self, Write};

use zerocopy::IntoBytes;

use crate::partial::block::Groups;
use crate::partial::description::Description;
use crate::partial::layout::{
    BlockHead, END_MAGIC, HEAD_BYTES, Head, IndexEntry, TAIL_BYTES, Tail, checksum, padded,
};
use zerocopy::FromBytes;

/// A partial that is being written.
pub(crate) struct Writer<W> {
    out: W,
    head_checksum: u64,
    /// Bytes that were written.
    at: u64,
    index: Vec<IndexEntry>,
    groups: u64,
    /// Groups that aren't written yet.
    gathered: Groups,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins with the description.
    ///
    /// # Errors
    /// `out` can't be written.
    pub(crate) fn new(mut out: W, description: &Description) -> io::Result<Writer<W>> {
        let mut bytes = description.encode();
        let description_bytes = bytes.len();
        bytes.resize(padded(bytes.len()), 0);
        let head = Head::new(description.version(), description_bytes, &bytes);
        out.write_all(head.as_bytes())?;
        out.write_all(&bytes)?;
        Ok(Writer {
            out,
            head_checksum: head.checksum.get(),
            at: (HEAD_BYTES + bytes.len()) as u64,
            index: Vec::new(),
            groups: 0,
            gathered: Groups::new(description),
            block: Vec::new(),
        })
    }

    /// Where further groups are put: the key of each, greater than all before, and a value in each column. What was
    /// written is no longer there.
    pub(crate) fn gathered(&mut self) -> &mut Groups {
        &mut self.gathered
    }

    /// Writes the blocks that are full.
    ///
    /// # Errors
    /// `out` can't be written, or a group is too large.
    pub(crate) fn write_full(&mut self) -> io::Result<()> {
        let mut from = 0;
        while let Some(to) = self.gathered.block_end(from) {
            self.write_block(from, to)?;
            from = to;
        }
        if from > 0 {
            self.gathered.remove_first(from);
        }
        Ok(())
    }

    fn write_block(&mut self, from: usize, to: usize) -> io::Result<()> {
        let written = self.gathered.write(from..to, &mut self.block);
        written.map_err(|why| io::Error::new(io::ErrorKind::FileTooLarge, why))?;
        self.out.write_all(&self.block)?;
        let head = BlockHead::read_from_prefix(&self.block);
        let (head, _) = head.expect("it was just written");
        self.index.push(IndexEntry {
            offset: self.at.into(),
            bytes: head.bytes,
            groups: u64::from(head.groups.get()).into(),
            checksum: head.checksum,
        });
        self.at += self.block.len() as u64;
        self.groups += (to - from) as u64;
        Ok(())
    }

    /// Writes the rest, and gives back where it went.
    ///
    /// # Errors
    /// `out` can't be written, or a group is too large.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.write_full()?;
        if self.gathered.len() > 0 {
            self.write_block(0, self.gathered.len())?;
        }
        let index = self.index.as_bytes();
        let mut tail = Tail {
            index_offset: self.at.into(),
            blocks: (self.index.len() as u64).into(),
            groups: self.groups.into(),
            file_bytes: (self.at + (index.len() + TAIL_BYTES) as u64).into(),
            head_checksum: self.head_checksum.into(),
            index_checksum: checksum(index).into(),
            checksum: 0.into(),
            magic: END_MAGIC,
        };
        tail.checksum = tail.right_checksum().into();
        self.out.write_all(index)?;
        self.out.write_all(tail.as_bytes())?;
        Ok(self.out)
    }
}
