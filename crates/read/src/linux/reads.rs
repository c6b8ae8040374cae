//! Reads at an offset, with flags.

use std::io::IoSliceMut;
use std::os::fd::AsFd;

use rustix::io::{ReadWriteFlags, Result, pread, preadv2};

/// RWF_DONTCACHE, since Linux 6.14.
pub const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// Reads once. Without flags that is pread(2), which every file takes.
pub fn read_at(
    file: impl AsFd,
    target: &mut [u8],
    offset: u64,
    flags: ReadWriteFlags,
) -> Result<usize> {
    match flags.is_empty() {
        true => pread(file, target, offset),
        false => preadv2(file, &mut [IoSliceMut::new(target)], offset, flags),
    }
}
