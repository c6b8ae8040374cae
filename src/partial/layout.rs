//! The fixed parts of the format, as they lie in a file. All numbers are little-endian.
//!
//! A file is a head, a description, blocks, an index of the blocks and a tail. All of these begin at multiples of
//! [`ALIGNMENT`]. Whoever reads a file from its start, as a stream, has the description before the first group; whoever
//! can seek begins with the tail.

use twox_hash::XxHash3_64;
use zerocopy::byteorder::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first bytes of a file. The first of them is in no text, and the line's ends are damaged by a transfer as text.
pub(crate) const MAGIC: [u8; 8] = *b"\x89RFP\r\n\x1a\n";
/// The last bytes of a file.
pub(crate) const END_MAGIC: [u8; 8] = *b"RFP-end\n";
/// The latest version. A file has the first one that can say what is in it.
pub(crate) const VERSION: u32 = 2;
/// What sections and columns begin at multiples of.
pub(crate) const ALIGNMENT: usize = 8;

/// A number of 64 bits in a column.
pub(crate) type Fixed = I64;
/// Where a value of variable length ends, counted from the first value's start.
pub(crate) type End = U32;

/// The first bytes of a file.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Head {
    pub(crate) magic: [u8; 8],
    pub(crate) version: U32,
    /// Zero.
    pub(crate) reserved: U32,
    /// Bytes of the description, without what fills it up.
    pub(crate) description_bytes: U64,
    /// With what fills it up.
    pub(crate) description_checksum: U64,
    /// Of the bytes before it.
    pub(crate) checksum: U64,
}

/// The first bytes of a block.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct BlockHead {
    /// Of all bytes of the block after it.
    pub(crate) checksum: U64,
    /// Bytes of the block with its head.
    pub(crate) bytes: U64,
    pub(crate) groups: U32,
    /// How many [`SectionHead`]s follow: one for the keys and one for each column.
    pub(crate) sections: U32,
}

/// How the values of a section of a block lie.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct SectionHead {
    /// [`FIXED`] or [`VARIABLE`].
    pub(crate) encoding: U32,
    /// Zero.
    pub(crate) reserved: U32,
    /// Bytes of the values, ends not counted.
    pub(crate) bytes: U64,
}

/// A number of 64 bits for each group.
pub(crate) const FIXED: u32 = 0;
/// An [`End`] for each group, and after them the values.
pub(crate) const VARIABLE: u32 = 1;

/// What the index says of a block.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct IndexEntry {
    pub(crate) offset: U64,
    pub(crate) bytes: U64,
    pub(crate) groups: U64,
    pub(crate) checksum: U64,
}

/// The last bytes of a file.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Tail {
    /// Where the index begins, which goes up to the tail.
    pub(crate) index_offset: U64,
    pub(crate) blocks: U64,
    pub(crate) groups: U64,
    pub(crate) file_bytes: U64,
    /// The checksum of the file's head, so that no other tail fits.
    pub(crate) head_checksum: U64,
    pub(crate) index_checksum: U64,
    /// Of the bytes before it.
    pub(crate) checksum: U64,
    pub(crate) magic: [u8; 8],
}

pub(crate) const HEAD_BYTES: usize = size_of::<Head>();
pub(crate) const BLOCK_HEAD_BYTES: usize = size_of::<BlockHead>();
pub(crate) const SECTION_HEAD_BYTES: usize = size_of::<SectionHead>();
pub(crate) const INDEX_ENTRY_BYTES: usize = size_of::<IndexEntry>();
pub(crate) const TAIL_BYTES: usize = size_of::<Tail>();

/// A checksum's bytes in a block.
pub(crate) const CHECKSUM_BYTES: usize = 8;

/// The checksum of some bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// As many bytes filled up.
pub(crate) const fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

impl Head {
    /// Of a description of so many bytes, which was filled up with zeros since.
    pub(crate) fn new(version: u32, description_bytes: usize, description: &[u8]) -> Head {
        let mut head = Head {
            magic: MAGIC,
            version: version.into(),
            reserved: 0.into(),
            description_bytes: (description_bytes as u64).into(),
            description_checksum: checksum(description).into(),
            checksum: 0.into(),
        };
        head.checksum = head.right_checksum().into();
        head
    }

    pub(crate) fn right_checksum(&self) -> u64 {
        checksum(&self.as_bytes()[..HEAD_BYTES - CHECKSUM_BYTES])
    }
}

impl Tail {
    pub(crate) fn right_checksum(&self) -> u64 {
        checksum(&self.as_bytes()[..TAIL_BYTES - CHECKSUM_BYTES - END_MAGIC.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/partial-format.md has these.
    #[test]
    fn sizes() {
        assert_eq!((HEAD_BYTES, TAIL_BYTES), (40, 64));
        assert_eq!((BLOCK_HEAD_BYTES, SECTION_HEAD_BYTES), (24, 16));
        assert_eq!(INDEX_ENTRY_BYTES, 32);
        for bytes in [
            HEAD_BYTES,
            BLOCK_HEAD_BYTES,
            SECTION_HEAD_BYTES,
            INDEX_ENTRY_BYTES,
            TAIL_BYTES,
        ] {
            assert_eq!(padded(bytes), bytes);
        }
        // The hash's own test vector.
        assert_eq!(checksum(b""), 0x2d06_8005_38d3_94c2);
    }
}
