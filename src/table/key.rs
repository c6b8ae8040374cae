//! The sizes of keys in the tables. A key is stored with its delimiter and zeros after it, so that two keys
//! are equal if all their bytes are, and no length is compared.
//!
//! Invariant of this module: as that of [`isa`](crate::table::isa).
#![allow(unsafe_code)]

use ringfold_read::internals::{Level, isa::dispatch};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use crate::table::isa::{InlineKey, Kernels, LongKey, READABLE, Seeds, WideKey, folded};

/// A key of a size class.
pub(crate) trait Key:
    Copy + FromBytes + IntoBytes + Immutable + Send + Sync + 'static
{
    /// The alignment of a direct table's bucket, so that it spans no more cache lines than it must.
    type Line: Copy + FromZeros + Send + Sync;

    /// The bytes with the delimiter, which isn't zero.
    fn text(&self) -> &[u8] {
        let last = self.as_bytes().iter().rposition(|&byte| byte != 0);
        &self.as_bytes()[..last.map_or(0, |last| last + 1)]
    }
}

/// The hash of a key, the same as when it is loaded from a window.
pub(crate) fn hash<K: Key>(level: Level, seeds: &Seeds, key: &K) -> u32 {
    let mut bytes = [0; 128 + READABLE];
    let length = size_of::<K>();
    bytes[..length].copy_from_slice(key.as_bytes());
    let (start, mut to) = (bytes.as_ptr(), *key);
    // SAFETY: the whole of a key, and what is readable after it.
    dispatch!(level, isa => unsafe { isa.load(seeds, start, length as u32, &mut to) as u32 })
}

/// How a key is made of its parts in a slot. After it stands one byte more, which isn't zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyForm {
    /// There are no parts.
    None,
    /// One part.
    One,
    /// Parts with this byte between them.
    Between(u8),
    /// Parts that each begin with a byte of their length. A 1 stands after the last.
    Prefixed,
}

/// A key of any length that tables have.
pub(crate) type AnyKey = [WideKey; 2];
pub(crate) const ANY_KEY: AnyKey = [WideKey([0; 128]); 2];

/// Loads a key, with zeros after it as far as its 16 bytes go, and returns its hash.
///
/// # Safety
/// As that of [`Kernels::load`].
#[inline(always)]
pub(crate) unsafe fn load_any<I: Kernels>(
    isa: I,
    seeds: &Seeds,
    start: *const u8,
    length: u32,
    [key, rest]: &mut AnyKey,
) -> u32 {
    const SHORT: usize = size_of::<InlineKey>();
    const WIDE: usize = size_of::<WideKey>();
    // SAFETY: as the caller's; the rest is as readable.
    unsafe {
        if length as usize <= SHORT {
            let mut short = InlineKey([0; SHORT]);
            let hash = isa.load(seeds, start, length, &mut short);
            key.0[..SHORT].copy_from_slice(&short.0);
            return hash as u32;
        }
        let hash = isa.load(seeds, start, length.min(WIDE as u32), key);
        if length as usize <= WIDE {
            return hash as u32;
        }
        let more = isa.load(seeds, start.add(WIDE), length - WIDE as u32, rest);
        folded(hash ^ seeds.0[48], more ^ seeds.0[49]) as u32
    }
}

/// The hash of a key, the same as when it is loaded from a window.
pub(crate) fn hash_any(level: Level, seeds: &Seeds, key: &[u8]) -> u32 {
    let mut bytes = [0; size_of::<AnyKey>() + READABLE];
    bytes[..key.len()].copy_from_slice(key);
    let (start, length, mut to) = (bytes.as_ptr(), key.len() as u32, ANY_KEY);
    // SAFETY: a key, and what is readable after it.
    dispatch!(level, isa => unsafe { load_any(isa, seeds, start, length, &mut to) })
}

/// Nothing, aligned to a line.
#[derive(Clone, Copy, FromZeros)]
#[repr(align(64))]
pub(crate) struct Line;

/// Nothing, aligned to two lines.
#[derive(Clone, Copy, FromZeros)]
#[repr(align(128))]
pub(crate) struct TwoLines;

impl Key for InlineKey {
    type Line = Line;
}

impl Key for LongKey {
    type Line = TwoLines;
}

impl Key for WideKey {
    type Line = Line;
}
