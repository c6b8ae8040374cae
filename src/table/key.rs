//! The sizes of keys in the tables. A key is stored with its delimiter and zeros after it, so that two keys
//! are equal if all their bytes are, and no length is compared.
//!
//! Invariant of this module: an instruction set is only used by a caller that has its features.
#![allow(unsafe_code)]

use ringfold_read::internals::Level;

#[cfg(target_arch = "x86_64")]
use crate::table::isa::{Avx2, Avx512};
use crate::table::isa::{InlineKey, Isa, LongKey, Portable, Seeds, WideKey};

/// A key of a size class.
///
/// # Safety
/// - All zeros are a valid value, and [`Key::bytes`] is the whole of it.
pub(crate) unsafe trait Key: Copy + Send + Sync + 'static {
    /// The alignment of a direct table's bucket, so that it spans no more cache lines than it must.
    type Line: Copy + Send + Sync;
    const EMPTY: Self;

    /// Loads a key and returns its hash.
    ///
    /// # Safety
    /// - `length` bytes from `start` are in a window or the whole of another key, and fit the class.
    /// - The features of `I` are enabled.
    unsafe fn load<I: Isa>(seeds: &Seeds, start: *const u8, length: u32, to: &mut Self) -> u64;

    /// Loads four keys: the low half of each word is where the key starts, the high half its length. Returns
    /// the low halves of the hashes.
    ///
    /// # Safety
    /// - The keys are in `window`, and fit the class.
    /// - The features of `I` are enabled.
    #[inline(always)]
    unsafe fn load_four<I: Isa>(
        seeds: &Seeds,
        window: *const u8,
        keys: &[u32; 4],
        to: &mut [Self; 4],
    ) -> [u32; 4] {
        // SAFETY: as the caller's.
        unsafe { load_each::<I, _>(seeds, window, keys, to) }
    }

    /// # Safety
    /// - The features of `I` are enabled.
    unsafe fn equals<I: Isa>(&self, other: &Self) -> bool;

    /// Whether both keys are those of `others`.
    ///
    /// # Safety
    /// - The features of `I` are enabled.
    #[inline(always)]
    unsafe fn equal_two<I: Isa>(keys: &[Self; 2], others: [&Self; 2]) -> bool {
        // SAFETY: as the caller's.
        unsafe { equal_each::<I, _>(keys, others) }
    }

    fn bytes(&self) -> &[u8];
    #[cfg(test)]
    fn bytes_mut(&mut self) -> &mut [u8];
    /// The bytes with the delimiter, which isn't zero.
    fn text(&self) -> &[u8] {
        let last = self.bytes().iter().rposition(|&byte| byte != 0);
        &self.bytes()[..last.map_or(0, |last| last + 1)]
    }
}

/// [`Key::load_four`], one by one.
///
/// # Safety
/// As there.
#[inline(always)]
pub(crate) unsafe fn load_each<I: Isa, K: Key>(
    seeds: &Seeds,
    window: *const u8,
    keys: &[u32; 4],
    to: &mut [K; 4],
) -> [u32; 4] {
    let mut hashes = [0; 4];
    for ((hash, key), to) in hashes.iter_mut().zip(keys).zip(to) {
        // SAFETY: as the caller's.
        unsafe {
            let start = window.add((key & 0xffff) as usize);
            *hash = K::load::<I>(seeds, start, key >> 16, to) as u32;
        }
    }
    hashes
}

/// [`Key::equal_two`], one by one.
///
/// # Safety
/// As there.
#[inline(always)]
pub(crate) unsafe fn equal_each<I: Isa, K: Key>(keys: &[K; 2], others: [&K; 2]) -> bool {
    // SAFETY: as the caller's.
    unsafe { keys[0].equals::<I>(others[0]) && keys[1].equals::<I>(others[1]) }
}

/// The hash of a key, the same as when it is loaded from a window.
pub(crate) fn hash<K: Key>(level: Level, seeds: &Seeds, key: &K) -> u32 {
    match level {
        // SAFETY: needs no feature.
        Level::Portable => unsafe { hash_of::<Portable, K>(seeds, key) },
        // SAFETY: the level is only made where the processor has its features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => unsafe { hash_avx2(seeds, key) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => unsafe { hash_avx512(seeds, key) },
    }
}

/// # Safety
/// - The features of `I` are enabled.
#[inline(always)]
unsafe fn hash_of<I: Isa, K: Key>(seeds: &Seeds, key: &K) -> u32 {
    // A window has bytes after a key.
    let mut bytes = [0_u8; 128];
    let length = key.bytes().len();
    bytes[..length].copy_from_slice(key.bytes());
    // SAFETY: the whole of a key, and 64 bytes in any case.
    unsafe { K::load::<I>(seeds, bytes.as_ptr(), length as u32, &mut { K::EMPTY }) as u32 }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,aes,bmi1,bmi2,popcnt")]
unsafe fn hash_avx2<K: Key>(seeds: &Seeds, key: &K) -> u32 {
    // SAFETY: as the caller's.
    unsafe { hash_of::<Avx2, K>(seeds, key) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vaes,aes,bmi1,bmi2,popcnt")]
unsafe fn hash_avx512<K: Key>(seeds: &Seeds, key: &K) -> u32 {
    // SAFETY: as the caller's.
    unsafe { hash_of::<Avx512, K>(seeds, key) }
}

/// Nothing, aligned to a line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line;

/// Nothing, aligned to two lines.
#[derive(Clone, Copy)]
#[repr(align(128))]
pub(crate) struct TwoLines;

// SAFETY: bytes.
unsafe impl Key for InlineKey {
    type Line = Line;
    const EMPTY: Self = InlineKey([0; 32]);

    #[inline(always)]
    unsafe fn load<I: Isa>(seeds: &Seeds, start: *const u8, length: u32, to: &mut Self) -> u64 {
        // SAFETY: as the caller's.
        unsafe {
            let key = I::load(start, length);
            I::write(key, to);
            I::hash(seeds, key)
        }
    }

    #[inline(always)]
    unsafe fn load_four<I: Isa>(
        seeds: &Seeds,
        window: *const u8,
        keys: &[u32; 4],
        to: &mut [Self; 4],
    ) -> [u32; 4] {
        // SAFETY: as the caller's.
        unsafe { I::load_four(seeds, window, keys, to) }
    }

    #[inline(always)]
    unsafe fn equals<I: Isa>(&self, other: &Self) -> bool {
        // SAFETY: as the caller's.
        unsafe { I::equals(I::read(self), other) }
    }

    #[inline(always)]
    unsafe fn equal_two<I: Isa>(keys: &[Self; 2], others: [&Self; 2]) -> bool {
        // SAFETY: as the caller's.
        unsafe { I::equal_two(keys, others) }
    }

    fn bytes(&self) -> &[u8] {
        &self.0
    }

    #[cfg(test)]
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// Implements [`Key`] by an instruction set's methods for this length, and by those for several keys at once
/// where it has any.
macro_rules! key {
    (
        $key:ident, $bytes:literal, $line:ty, $load:ident, $equals:ident
        $(, $load_four:ident, $equal_two:ident)?
    ) => {
        // SAFETY: bytes.
        unsafe impl Key for $key {
            type Line = $line;
            const EMPTY: Self = $key([0; $bytes]);

            #[inline(always)]
            unsafe fn load<I: Isa>(
                seeds: &Seeds,
                start: *const u8,
                length: u32,
                to: &mut Self,
            ) -> u64 {
                // SAFETY: as the caller's.
                unsafe { I::$load(seeds, start, length, to) }
            }

            #[inline(always)]
            unsafe fn equals<I: Isa>(&self, other: &Self) -> bool {
                // SAFETY: as the caller's.
                unsafe { I::$equals(self, other) }
            }

            $(
                #[inline(always)]
                unsafe fn load_four<I: Isa>(
                    seeds: &Seeds,
                    window: *const u8,
                    keys: &[u32; 4],
                    to: &mut [Self; 4],
                ) -> [u32; 4] {
                    // SAFETY: as the caller's.
                    unsafe { I::$load_four(seeds, window, keys, to) }
                }

                #[inline(always)]
                unsafe fn equal_two<I: Isa>(keys: &[Self; 2], others: [&Self; 2]) -> bool {
                    // SAFETY: as the caller's.
                    unsafe { I::$equal_two(keys, others) }
                }
            )?

            fn bytes(&self) -> &[u8] {
                &self.0
            }

            #[cfg(test)]
    fn bytes_mut(&mut self) -> &mut [u8] {
                &mut self.0
            }
        }
    };
}

key!(
    LongKey,
    96,
    TwoLines,
    load_long,
    equals_long,
    load_four_long,
    equal_two_long
);
key!(WideKey, 128, Line, load_wide, equals_wide);
