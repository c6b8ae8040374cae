//! The kernels of the tables for each instruction set: load and hash a key, compare keys, add a row.
//!
//! A hash covers all bytes of a key and is seeded at run time, so that no input can be made to collide. It
//! uses AES rounds where the processor has them, and folded multiplication elsewhere.
//!
//! Invariant of this module: a key that is loaded is readable, and so are [`READABLE`] bytes after it.
#![allow(unsafe_code)]

use std::hash::{BuildHasher, RandomState};

use ringfold_read::internals::isa::Portable;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::table::key::Key;
use crate::table::stats::Stats;

#[cfg(target_arch = "x86_64")]
mod x86;

/// Bytes that are readable after a key.
pub(crate) const READABLE: usize = 32;

/// The hash's random seeds. All dense tables of a run have the same, so that they can be merged by hash. A
/// direct table may draw its own.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Seeds(pub(super) [u64; 64]);

impl Seeds {
    pub(crate) fn random() -> Self {
        // SipHash under a random key: a fresh word for every number.
        Seeds::drawn(&RandomState::new())
    }

    /// The seeds that a random state makes.
    pub(crate) fn drawn(state: &impl BuildHasher) -> Self {
        Seeds(std::array::from_fn(|word| state.hash_one(word)))
    }
}

/// A wide key with its delimiter, zeros after it.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C, align(32))]
pub(crate) struct WideKey(pub(crate) [u8; 128]);

/// A long key with its delimiter, zeros after it. With its statistics it fills two cache lines.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C, align(32))]
pub(crate) struct LongKey(pub(crate) [u8; 96]);

/// An inline key with its delimiter, zeros after it.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C, align(32))]
pub(crate) struct InlineKey(pub(crate) [u8; 32]);

/// The kernels of an instruction set, for keys of each size. Those that load a key write it to `to`, zeros after it, and
/// return its hash.
///
/// # Safety
/// Of the methods that load: `length` bytes from `start` are readable, and [`READABLE`] more; they are no more than the key
/// has. Of those that load four keys: each starts from `window` at what the low half of its word says, its length is the high
/// half, and it is as readable. They return the low halves of the hashes.
pub(crate) trait Kernels: Copy {
    unsafe fn load<K: Key>(self, seeds: &Seeds, start: *const u8, length: u32, to: &mut K) -> u64;

    fn equals<K: Key>(self, key: &K, other: &K) -> bool;

    #[inline(always)]
    unsafe fn load_four<K: Key>(
        self,
        seeds: &Seeds,
        window: *const u8,
        keys: &[u32; 4],
        to: &mut [K; 4],
    ) -> [u32; 4] {
        // SAFETY: as the caller's.
        unsafe { load_each(self, seeds, window, keys, to) }
    }

    /// Whether both keys are those of `others`.
    #[inline(always)]
    fn equal_two<K: Key>(self, keys: &[K; 2], others: [&K; 2]) -> bool {
        equal_each(self, keys, others)
    }

    /// Adds a row, whose value is biased.
    fn update(self, stats: &mut Stats, value: u32);

    /// Updates two, one after the other: they may be the same.
    ///
    /// # Safety
    /// Both are valid, and nobody else accesses them.
    #[inline(always)]
    unsafe fn update_two(self, stats: [*mut Stats; 2], values: &[u32; 2]) {
        // SAFETY: as the caller's.
        unsafe {
            self.update(&mut *stats[0], values[0]);
            self.update(&mut *stats[1], values[1]);
        }
    }
}

/// [`Kernels::load_four`], one by one.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn load_each<I: Kernels, K: Key>(
    isa: I,
    seeds: &Seeds,
    window: *const u8,
    keys: &[u32; 4],
    to: &mut [K; 4],
) -> [u32; 4] {
    let mut hashes = [0; 4];
    for ((hash, key), to) in hashes.iter_mut().zip(keys).zip(to) {
        // SAFETY: as the caller's.
        unsafe {
            // Volatile, or the compiler would load a vector and extract from it at twice the price.
            let key = std::ptr::from_ref(key).read_volatile();
            let start = window.add((key & 0xffff) as usize);
            *hash = isa.load(seeds, start, key >> 16, to) as u32;
        }
    }
    hashes
}

/// [`Kernels::equal_two`], one by one.
#[inline(always)]
fn equal_each<I: Kernels, K: Key>(isa: I, keys: &[K; 2], others: [&K; 2]) -> bool {
    isa.equals(&keys[0], others[0]) && isa.equals(&keys[1], others[1])
}

#[inline(always)]
pub(super) fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Loads a key by 64-bit words.
///
/// # Safety
/// `length` bytes from `start` are readable.
#[inline(always)]
unsafe fn load_bytes(seeds: &Seeds, start: *const u8, length: u32, to: &mut [u8]) -> u64 {
    // SAFETY: as the caller's.
    let key = unsafe { std::slice::from_raw_parts(start, length as usize) };
    to.fill(0);
    to[..key.len()].copy_from_slice(key);
    let mut hash = seeds.0[16];
    let (words, _) = to.as_chunks::<8>();
    for (pair, [even, odd]) in words.as_chunks::<2>().0.iter().enumerate() {
        let [even, odd] = [even, odd].map(|&word| u64::from_le_bytes(word));
        hash ^= folded(even ^ seeds.0[2 * pair], odd ^ seeds.0[2 * pair + 1])
            .rotate_left(8 * pair as u32);
    }
    folded(hash ^ seeds.0[17], seeds.0[18] | 1)
}

impl Kernels for Portable {
    #[inline(always)]
    unsafe fn load<K: Key>(self, seeds: &Seeds, start: *const u8, length: u32, to: &mut K) -> u64 {
        let to = to.as_mut_bytes();
        if to.len() > READABLE {
            // SAFETY: as the caller's.
            return unsafe { load_bytes(seeds, start, length, to) };
        }
        // SAFETY: as many bytes as are readable after a key.
        let bytes = unsafe { start.cast::<[u8; READABLE]>().read_unaligned() };
        let key: [u64; 4] = std::array::from_fn(|word| {
            let kept = (8 * length).saturating_sub(64 * word as u32).min(64);
            let bytes = bytes.as_chunks().0[word];
            u64::from_le_bytes(bytes) & u64::MAX.checked_shr(64 - kept).unwrap_or(0)
        });
        for (to, word) in to.as_chunks_mut().0.iter_mut().zip(key) {
            *to = word.to_le_bytes();
        }
        let low = folded(key[0] ^ seeds.0[0], key[1] ^ seeds.0[1]);
        let high = folded(key[2] ^ seeds.0[2], key[3] ^ seeds.0[3]);
        folded(low ^ seeds.0[4], high.rotate_left(32) ^ seeds.0[5])
    }

    #[inline(always)]
    fn equals<K: Key>(self, key: &K, other: &K) -> bool {
        key.as_bytes() == other.as_bytes()
    }

    #[inline(always)]
    fn update(self, stats: &mut Stats, value: u32) {
        stats.add(value);
    }
}
