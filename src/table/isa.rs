//! The kernels of the tables for each instruction set: load and hash a key, compare keys, add a row.
//!
//! A hash covers all bytes of a key and is seeded at run time, so that no input can be made to collide. It
//! uses AES rounds where the processor has them, and folded multiplication elsewhere.
//!
//! Invariant of this module: the `length` bytes of a key are readable, and 32 more after them. An implementation's methods are only called from a function that has its target
//! features, and are inlined into it.
#![allow(unsafe_code)]

use crate::table::stats::{FLIP, Stats};
use std::hash::{BuildHasher, RandomState};

/// The hash's random seeds. All dense tables of a run have the same, so that they can be merged by hash. A
/// direct table may draw its own.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Seeds([u64; 64]);

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
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct WideKey(pub(crate) [u8; 128]);

/// A long key with its delimiter, zeros after it. With its statistics it fills two cache lines.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct LongKey(pub(crate) [u8; 96]);

/// An inline key with its delimiter, zeros after it.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct InlineKey(pub(crate) [u8; 32]);

/// An instruction set.
///
/// # Safety
/// Each method may only be called where the set's target features are enabled.
pub(crate) unsafe trait Isa: Sized {
    /// An inline key in registers.
    type Key: Copy;

    /// The first `length` (at most 32) bytes from `start`, zeros after them.
    unsafe fn load(start: *const u8, length: u32) -> Self::Key;
    unsafe fn read(from: &InlineKey) -> Self::Key;
    unsafe fn write(key: Self::Key, to: &mut InlineKey);
    unsafe fn equals(key: Self::Key, other: &InlineKey) -> bool;
    unsafe fn hash(seeds: &Seeds, key: Self::Key) -> u64;

    /// Four inline keys, loaded into `to` and hashed; each starts from `window` at what the low half
    /// of its word says, and its length is the high half. Returns the low halves of the hashes.
    #[inline(always)]
    unsafe fn load_four(
        seeds: &Seeds,
        window: *const u8,
        keys: &[u32; 4],
        to: &mut [InlineKey; 4],
    ) -> [u32; 4] {
        let mut hashes = [0; 4];
        for ((hash, key), to) in hashes.iter_mut().zip(keys).zip(to) {
            // SAFETY: as the caller's.
            unsafe {
                let start = window.add((key & 0xffff) as usize);
                let key = Self::load(start, key >> 16);
                Self::write(key, to);
                *hash = Self::hash(seeds, key) as u32;
            }
        }
        hashes
    }

    /// Whether both keys are those of `others`.
    #[inline(always)]
    unsafe fn equal_two(keys: &[InlineKey; 2], others: [&InlineKey; 2]) -> bool {
        // SAFETY: as the caller's.
        unsafe {
            Self::equals(Self::read(&keys[0]), others[0])
                && Self::equals(Self::read(&keys[1]), others[1])
        }
    }

    /// The first `length` (at most 96) bytes from `start`, zeros after them, and their hash.
    unsafe fn load_long(seeds: &Seeds, start: *const u8, length: u32, to: &mut LongKey) -> u64;
    unsafe fn equals_long(key: &LongKey, other: &LongKey) -> bool;

    /// Four long keys, loaded and hashed as [`Isa::load_four`] does.
    #[inline(always)]
    unsafe fn load_four_long(
        seeds: &Seeds,
        window: *const u8,
        keys: &[u32; 4],
        to: &mut [LongKey; 4],
    ) -> [u32; 4] {
        let mut hashes = [0; 4];
        for ((hash, key), to) in hashes.iter_mut().zip(keys).zip(to) {
            // SAFETY: as the caller's.
            unsafe {
                let start = window.add((key & 0xffff) as usize);
                *hash = Self::load_long(seeds, start, key >> 16, to) as u32;
            }
        }
        hashes
    }

    /// Whether both keys are those of `others`.
    #[inline(always)]
    unsafe fn equal_two_long(keys: &[LongKey; 2], others: [&LongKey; 2]) -> bool {
        // SAFETY: as the caller's.
        unsafe { Self::equals_long(&keys[0], others[0]) && Self::equals_long(&keys[1], others[1]) }
    }

    /// The first `length` (at most 128) bytes from `start`, zeros after them, and their hash.
    unsafe fn load_wide(seeds: &Seeds, start: *const u8, length: u32, to: &mut WideKey) -> u64;
    unsafe fn equals_wide(key: &WideKey, other: &WideKey) -> bool;

    unsafe fn update(stats: &mut Stats, value: u32);

    /// Updates two, one after the other: they may be the same.
    ///
    /// # Safety
    /// Both are valid, and nobody else accesses them.
    #[inline(always)]
    unsafe fn update_two(stats: [*mut Stats; 2], values: &[u32; 2]) {
        // SAFETY: as the caller's.
        unsafe {
            Self::update(&mut *stats[0], values[0]);
            Self::update(&mut *stats[1], values[1]);
        }
    }
}

/// 64-bit words, any processor.
pub(crate) struct Portable;

/// Byte masks: 128 set, 128 clear. From `128 - n`, the first n bytes are set.
static MASKS: [u8; 256] = {
    let mut masks = [0; 256];
    let mut at = 0;
    while at < 128 {
        masks[at] = 0xff;
        at += 1;
    }
    masks
};

#[inline(always)]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
fn words<const BYTES: usize, const WORDS: usize>(bytes: &[u8; BYTES]) -> [u64; WORDS] {
    std::array::from_fn(|word| {
        u64::from_ne_bytes(std::array::from_fn(|byte| bytes[8 * word + byte]))
    })
}

/// # Safety
/// `length` bytes from `start` are readable.
#[inline(always)]
unsafe fn load_bytes(seeds: &Seeds, start: *const u8, length: u32, to: &mut [u8]) -> u64 {
    to.fill(0);
    // SAFETY: as the caller's.
    let key = unsafe { std::slice::from_raw_parts(start, length as usize) };
    to[..key.len()].copy_from_slice(key);
    let mut hash = seeds.0[16];
    for (pair, bytes) in to.as_chunks::<16>().0.iter().enumerate() {
        let [even, odd] = words(bytes);
        hash ^= folded(even ^ seeds.0[2 * pair], odd ^ seeds.0[2 * pair + 1])
            .rotate_left(8 * pair as u32);
    }
    folded(hash ^ seeds.0[17], seeds.0[18] | 1)
}

// SAFETY: needs no feature.
unsafe impl Isa for Portable {
    type Key = [u64; 4];

    #[inline(always)]
    unsafe fn load(start: *const u8, length: u32) -> [u64; 4] {
        let masks = &MASKS[128 - length as usize..][..32];
        // SAFETY: 32 bytes from a key's start are readable.
        let bytes = unsafe { start.cast::<[u8; 32]>().read_unaligned() };
        let [keep, key]: [[u64; 4]; 2] = [
            words::<32, 4>(masks.try_into().expect("32 bytes")),
            words(&bytes),
        ];
        std::array::from_fn(|word| key[word] & keep[word])
    }

    #[inline(always)]
    unsafe fn read(from: &InlineKey) -> [u64; 4] {
        words(&from.0)
    }

    #[inline(always)]
    unsafe fn write(key: [u64; 4], to: &mut InlineKey) {
        for (bytes, word) in to.0.chunks_exact_mut(8).zip(key) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
    }

    #[inline(always)]
    unsafe fn equals(key: [u64; 4], other: &InlineKey) -> bool {
        let other: [u64; 4] = words(&other.0);
        (0..4).fold(0, |differences, word| {
            differences | (key[word] ^ other[word])
        }) == 0
    }

    #[inline(always)]
    unsafe fn hash(seeds: &Seeds, key: [u64; 4]) -> u64 {
        let low = folded(key[0] ^ seeds.0[0], key[1] ^ seeds.0[1]);
        let high = folded(key[2] ^ seeds.0[2], key[3] ^ seeds.0[3]);
        folded(low ^ seeds.0[4], high.rotate_left(32) ^ seeds.0[5])
    }

    #[inline(always)]
    unsafe fn load_long(seeds: &Seeds, start: *const u8, length: u32, to: &mut LongKey) -> u64 {
        // SAFETY: a window's key is readable as far as its length.
        unsafe { load_bytes(seeds, start, length, &mut to.0) }
    }

    #[inline(always)]
    unsafe fn equals_long(key: &LongKey, other: &LongKey) -> bool {
        key.0 == other.0
    }

    #[inline(always)]
    unsafe fn load_wide(seeds: &Seeds, start: *const u8, length: u32, to: &mut WideKey) -> u64 {
        // SAFETY: a window's key is readable as far as its length.
        unsafe { load_bytes(seeds, start, length, &mut to.0) }
    }

    #[inline(always)]
    unsafe fn equals_wide(key: &WideKey, other: &WideKey) -> bool {
        key.0 == other.0
    }

    #[inline(always)]
    unsafe fn update(stats: &mut Stats, value: u32) {
        stats.add(value);
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::table::isa::{FLIP, InlineKey, Isa, LongKey, MASKS, Seeds, Stats, WideKey};
    use std::arch::x86_64::*;

    /// AVX2 and AES.
    pub(crate) struct Avx2;
    /// AVX-512 and vector AES.
    pub(crate) struct Avx512;

    #[inline(always)]
    unsafe fn seed128(seeds: &Seeds, at: usize) -> __m128i {
        // SAFETY: the seeds are 32 such vectors.
        unsafe { _mm_load_si128(seeds.0.as_ptr().cast::<__m128i>().add(at)) }
    }

    /// Two keyed rounds: every bit of the result depends on every bit of `bytes`.
    #[inline(always)]
    unsafe fn rounds128(seeds: &Seeds, bytes: __m128i, lane: usize) -> __m128i {
        // SAFETY: the caller has the features.
        unsafe {
            let bytes = _mm_aesenc_si128(
                _mm_xor_si128(bytes, seed128(seeds, lane)),
                seed128(seeds, 8 + lane),
            );
            _mm_aesenc_si128(bytes, seed128(seeds, 16 + lane))
        }
    }

    /// The lanes of a row's value in [`add`], and what is added to them.
    const USED: [i32; 8] = [-1, 0, 0, 0, -1, -1, 0, 0];
    const FLIPS: [i32; 8] = [0, 0, 1, 0, 0, FLIP as i32, 0, 0];

    #[inline(always)]
    unsafe fn lanes(lanes: &[i32; 8]) -> __m256i {
        // SAFETY: 32 bytes; the caller has the features.
        unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn update(stats: &mut Stats, value: u32) {
        // SAFETY: the caller has the features.
        unsafe {
            let row = _mm256_and_si256(_mm256_set1_epi32(value as i32), lanes(&USED));
            add(stats, _mm256_xor_si256(row, lanes(&FLIPS)));
        }
    }

    /// Adds the lanes of a row.
    #[inline(always)]
    unsafe fn add(stats: &mut Stats, row: __m256i) {
        // SAFETY: the caller has the features; `Stats` is 32 bytes, aligned to them, and laid out as
        // the lanes say.
        unsafe {
            let at: *mut __m256i = std::ptr::from_mut(stats).cast();
            let old = _mm256_load_si256(at);
            let sums = _mm256_add_epi64(old, row);
            let extremes = _mm256_max_epi32(old, row);
            _mm256_store_si256(at, _mm256_blend_epi32::<0b0011_0000>(sums, extremes));
        }
    }

    /// The first `length` bytes from `start`, zeros after them up to `BYTES`, and their hash.
    ///
    /// # Safety
    /// `BYTES` is 64, 96 or 128, and there is as much at `to`, aligned to 32; 64 bytes are readable from
    /// `start` and from every part of the key.
    #[inline(always)]
    unsafe fn load256<const BYTES: usize>(
        seeds: &Seeds,
        start: *const u8,
        length: u32,
        to: *mut u8,
    ) -> u64 {
        // SAFETY: as the caller's; the masks have 128 bytes from any length.
        unsafe {
            let masks = MASKS.as_ptr().add(128 - length as usize);
            for at in (0..BYTES).step_by(32) {
                let keep = _mm256_loadu_si256(masks.add(at).cast());
                // Past the key's end any readable bytes will do, because they are masked.
                let from = if at < length as usize {
                    start.add(at)
                } else {
                    start
                };
                let bytes = _mm256_and_si256(_mm256_loadu_si256(from.cast()), keep);
                _mm256_store_si256(to.add(at).cast(), bytes);
            }
            let key: *const __m128i = to.cast();
            let mut hash = rounds128(seeds, _mm_load_si128(key), 0);
            for lane in 1..BYTES / 16 {
                hash = _mm_xor_si128(hash, rounds128(seeds, _mm_load_si128(key.add(lane)), lane));
            }
            _mm_cvtsi128_si64(hash) as u64
        }
    }

    /// # Safety
    /// The caller has AVX2.
    #[inline(always)]
    unsafe fn differences256(key: *const u8, other: *const u8, at: usize) -> __m256i {
        // SAFETY: the caller's keys have 32 bytes there, aligned.
        unsafe {
            _mm256_xor_si256(
                _mm256_load_si256(key.add(at).cast()),
                _mm256_load_si256(other.add(at).cast()),
            )
        }
    }

    // SAFETY: AVX2, AES, BMI2.
    unsafe impl Isa for Avx2 {
        type Key = __m256i;

        #[inline(always)]
        unsafe fn load(start: *const u8, length: u32) -> __m256i {
            // SAFETY: 32 bytes from a key's start are readable; the masks have 32 from any length.
            unsafe {
                let keep = _mm256_loadu_si256(MASKS.as_ptr().add(128 - length as usize).cast());
                _mm256_and_si256(_mm256_loadu_si256(start.cast()), keep)
            }
        }

        #[inline(always)]
        unsafe fn read(from: &InlineKey) -> __m256i {
            // SAFETY: 32 aligned bytes.
            unsafe { _mm256_load_si256(from.0.as_ptr().cast()) }
        }

        #[inline(always)]
        unsafe fn write(key: __m256i, to: &mut InlineKey) {
            // SAFETY: 32 aligned bytes.
            unsafe { _mm256_store_si256(to.0.as_mut_ptr().cast(), key) }
        }

        #[inline(always)]
        unsafe fn equals(key: __m256i, other: &InlineKey) -> bool {
            // SAFETY: 32 aligned bytes.
            unsafe {
                let differences = _mm256_xor_si256(key, _mm256_load_si256(other.0.as_ptr().cast()));
                _mm256_testz_si256(differences, differences) != 0
            }
        }

        #[inline(always)]
        unsafe fn hash(seeds: &Seeds, key: __m256i) -> u64 {
            // SAFETY: the caller has the features.
            unsafe {
                let low = rounds128(seeds, _mm256_castsi256_si128(key), 0);
                let high = rounds128(seeds, _mm256_extracti128_si256::<1>(key), 1);
                _mm_cvtsi128_si64(_mm_xor_si128(low, high)) as u64
            }
        }

        #[inline(always)]
        unsafe fn load_long(seeds: &Seeds, start: *const u8, length: u32, to: &mut LongKey) -> u64 {
            // SAFETY: the first 64 bytes are readable in any case, the next as far as the length
            // goes and 64 past it.
            unsafe { load256::<96>(seeds, start, length, to.0.as_mut_ptr()) }
        }

        #[inline(always)]
        unsafe fn equals_long(key: &LongKey, other: &LongKey) -> bool {
            let (key, other) = (key.0.as_ptr(), other.0.as_ptr());
            // SAFETY: 3 aligned vectors each.
            unsafe {
                let low = _mm256_or_si256(
                    differences256(key, other, 0),
                    differences256(key, other, 32),
                );
                let all = _mm256_or_si256(low, differences256(key, other, 64));
                _mm256_testz_si256(all, all) != 0
            }
        }

        #[inline(always)]
        unsafe fn load_wide(seeds: &Seeds, start: *const u8, length: u32, to: &mut WideKey) -> u64 {
            // SAFETY: the first 64 bytes are readable in any case, the next as far as the length
            // goes and 64 past it.
            unsafe { load256::<128>(seeds, start, length, to.0.as_mut_ptr()) }
        }

        #[inline(always)]
        unsafe fn equals_wide(key: &WideKey, other: &WideKey) -> bool {
            let (key, other) = (key.0.as_ptr(), other.0.as_ptr());
            // SAFETY: 4 aligned vectors each.
            unsafe {
                let low = _mm256_or_si256(
                    differences256(key, other, 0),
                    differences256(key, other, 32),
                );
                let high = _mm256_or_si256(
                    differences256(key, other, 64),
                    differences256(key, other, 96),
                );
                let all = _mm256_or_si256(low, high);
                _mm256_testz_si256(all, all) != 0
            }
        }

        #[inline(always)]
        unsafe fn update(stats: &mut Stats, value: u32) {
            // SAFETY: AVX2 is there.
            unsafe { update(stats, value) }
        }
    }

    #[inline(always)]
    unsafe fn rounds512(seeds: &Seeds, bytes: __m512i, half: usize) -> __m512i {
        // SAFETY: the seeds are 8 such vectors; the caller has the features.
        unsafe {
            let seeds: *const __m512i = seeds.0.as_ptr().cast();
            let bytes = _mm512_xor_si512(bytes, _mm512_load_si512(seeds.add(half)));
            let bytes = _mm512_aesenc_epi128(bytes, _mm512_load_si512(seeds.add(2 + half)));
            _mm512_aesenc_epi128(bytes, _mm512_load_si512(seeds.add(4 + half)))
        }
    }

    /// `at` counts halves of what [`rounds512`] hashes at once.
    #[inline(always)]
    unsafe fn rounds256(seeds: &Seeds, bytes: __m256i, at: usize) -> __m256i {
        // SAFETY: the seeds are 16 such vectors; the caller has the features.
        unsafe {
            let seeds: *const __m256i = seeds.0.as_ptr().cast();
            let bytes = _mm256_xor_si256(bytes, _mm256_load_si256(seeds.add(at)));
            let bytes = _mm256_aesenc_epi128(bytes, _mm256_load_si256(seeds.add(4 + at)));
            _mm256_aesenc_epi128(bytes, _mm256_load_si256(seeds.add(8 + at)))
        }
    }

    #[inline(always)]
    unsafe fn folded512(hash: __m512i) -> __m256i {
        // SAFETY: the caller has the features.
        unsafe {
            let half = _mm512_extracti64x4_epi64::<1>(hash);
            _mm256_xor_si256(_mm512_castsi512_si256(hash), half)
        }
    }

    #[inline(always)]
    unsafe fn low64_of_folded(hash: __m256i) -> u64 {
        // SAFETY: the caller has the features.
        unsafe {
            let high = _mm256_extracti128_si256::<1>(hash);
            _mm_cvtsi128_si64(_mm_xor_si128(_mm256_castsi256_si128(hash), high)) as u64
        }
    }

    /// Loads two keys and returns their hashes. The low half of each word is where the key starts; `kept`
    /// masks the keys' bytes.
    ///
    /// # Safety
    /// The keys are two words at `keys`, of `window`, two keys may be written at `to`, and the caller has
    /// the features.
    #[inline(always)]
    unsafe fn load_two(
        seeds: &Seeds,
        window: *const u8,
        keys: *const u32,
        kept: __mmask64,
        to: *mut InlineKey,
    ) -> __m512i {
        // SAFETY: as the caller's; 32 bytes from a key's start are readable; the seeds are 16 vectors
        // of half the width.
        unsafe {
            // Volatile, or the compiler would load a vector and extract from it at twice the price.
            let load = |key: *const u32| {
                let start = usize::from(key.cast::<u16>().read_volatile());
                _mm256_loadu_si256(window.add(start).cast())
            };
            let low = _mm512_castsi256_si512(load(keys));
            let both = _mm512_inserti64x4::<1>(low, load(keys.add(1)));
            let keys = _mm512_maskz_mov_epi8(kept, both);
            _mm512_storeu_si512(to.cast(), keys);
            let seeds: *const __m256i = seeds.0.as_ptr().cast();
            let hash = _mm512_xor_si512(keys, _mm512_broadcast_i64x4(_mm256_load_si256(seeds)));
            let hash = _mm512_aesenc_epi128(
                hash,
                _mm512_broadcast_i64x4(_mm256_load_si256(seeds.add(4))),
            );
            _mm512_aesenc_epi128(
                hash,
                _mm512_broadcast_i64x4(_mm256_load_si256(seeds.add(8))),
            )
        }
    }

    /// Masks the bytes of two keys, each in half a vector: their lengths are the third bytes of words `PAIR`
    /// times two and the next of each 128 bits of `keys`. Making the mask in general registers takes three
    /// times as many instructions.
    #[inline(always)]
    unsafe fn kept<const PAIR: usize>(keys: __m512i) -> __mmask64 {
        let lengths: [u8; 64] = std::array::from_fn(|byte| (8 * PAIR + 4 * (byte / 32) + 2) as u8);
        let places: [u8; 64] = std::array::from_fn(|byte| byte as u8 % 32);
        // SAFETY: 64 bytes each; the caller has the features.
        unsafe {
            let lengths = _mm512_shuffle_epi8(keys, _mm512_loadu_si512(lengths.as_ptr().cast()));
            _mm512_cmpgt_epu8_mask(lengths, _mm512_loadu_si512(places.as_ptr().cast()))
        }
    }

    /// A long key, zeros after it, and its hash, still in two lanes of 128 bits.
    ///
    /// # Safety
    /// As [`Isa::load_long`]'s; a key may be written at `to`.
    #[inline(always)]
    unsafe fn load_one_long(
        seeds: &Seeds,
        start: *const u8,
        length: u8,
        to: *mut LongKey,
    ) -> __m256i {
        let places: [u8; 96] = std::array::from_fn(|byte| byte as u8);
        // SAFETY: masked to the key; `places` and `to` have 96 bytes, aligned to 32.
        unsafe {
            // The masks as in `kept`.
            let length = _mm512_set1_epi8(length as i8);
            let kept = _mm512_cmpgt_epu8_mask(length, _mm512_loadu_si512(places.as_ptr().cast()));
            let low = _mm512_maskz_loadu_epi8(kept, start.cast());
            let kept = _mm256_cmpgt_epu8_mask(
                _mm512_castsi512_si256(length),
                _mm256_loadu_si256(places.as_ptr().add(64).cast()),
            );
            let high = _mm256_maskz_loadu_epi8(kept, start.wrapping_add(64).cast());
            let to = to.cast::<u8>();
            _mm512_storeu_si512(to.cast(), low);
            _mm256_store_si256(to.add(64).cast(), high);
            let low = folded512(rounds512(seeds, low, 0));
            _mm256_xor_si256(low, rounds256(seeds, high, 2))
        }
    }

    /// The same for a key that starts from `window` at what the low half of its word says.
    ///
    /// # Safety
    /// The key is a word at `key`, of `window`, a key may be written at `to`, and the caller has the features.
    #[inline(always)]
    unsafe fn load_word_long(
        seeds: &Seeds,
        window: *const u8,
        key: *const u32,
        to: *mut LongKey,
    ) -> __m256i {
        // SAFETY: as the caller's.
        unsafe {
            // Volatile as in `load_two`.
            let start = window.add(usize::from(key.cast::<u16>().read_volatile()));
            load_one_long(seeds, start, key.cast::<u8>().add(2).read_volatile(), to)
        }
    }

    /// The low halves of four hashes, each still in two lanes of 128 bits; two to a vector.
    #[inline(always)]
    unsafe fn low32_of_four(low: __m512i, high: __m512i) -> [u32; 4] {
        // SAFETY: the caller has the features.
        unsafe {
            let of_four =
                |a, b, c, d| _mm512_setr_epi32(a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
            let first = _mm512_permutex2var_epi32(low, of_four(0, 8, 16, 24), high);
            let second = _mm512_permutex2var_epi32(low, of_four(4, 12, 20, 28), high);
            let hashes = _mm512_castsi512_si128(_mm512_xor_si512(first, second));
            std::mem::transmute::<__m128i, [u32; 4]>(hashes)
        }
    }

    // SAFETY: AVX-512 F, BW, VL; VAES; BMI2.
    unsafe impl Isa for Avx512 {
        type Key = __m256i;

        #[inline(always)]
        unsafe fn load(start: *const u8, length: u32) -> __m256i {
            // SAFETY: masked to the key.
            unsafe { _mm256_maskz_loadu_epi8(_bzhi_u32(!0, length), start.cast()) }
        }

        #[inline(always)]
        unsafe fn read(from: &InlineKey) -> __m256i {
            // SAFETY: 32 aligned bytes.
            unsafe { _mm256_load_si256(from.0.as_ptr().cast()) }
        }

        #[inline(always)]
        unsafe fn write(key: __m256i, to: &mut InlineKey) {
            // SAFETY: 32 aligned bytes.
            unsafe { _mm256_store_si256(to.0.as_mut_ptr().cast(), key) }
        }

        #[inline(always)]
        unsafe fn equals(key: __m256i, other: &InlineKey) -> bool {
            // SAFETY: 32 aligned bytes.
            unsafe {
                let other = _mm256_load_si256(other.0.as_ptr().cast());
                _mm256_cmpneq_epi64_mask(key, other) == 0
            }
        }

        #[inline(always)]
        unsafe fn hash(seeds: &Seeds, key: __m256i) -> u64 {
            // SAFETY: the caller has the features.
            unsafe { low64_of_folded(rounds256(seeds, key, 0)) }
        }

        #[inline(always)]
        unsafe fn load_four(
            seeds: &Seeds,
            window: *const u8,
            keys: &[u32; 4],
            to: &mut [InlineKey; 4],
        ) -> [u32; 4] {
            // SAFETY: as the caller's; the last two keys lie behind the first two.
            unsafe {
                let lengths = _mm512_broadcast_i32x4(_mm_loadu_si128(keys.as_ptr().cast()));
                let (keys, to) = (keys.as_ptr(), to.as_mut_ptr());
                let low = load_two(seeds, window, keys, kept::<0>(lengths), to);
                let high = load_two(seeds, window, keys.add(2), kept::<1>(lengths), to.add(2));
                low32_of_four(low, high)
            }
        }

        #[inline(always)]
        unsafe fn equal_two(keys: &[InlineKey; 2], others: [&InlineKey; 2]) -> bool {
            // SAFETY: two keys are 64 bytes; the caller has the features.
            unsafe {
                let [low, high] = others.map(|other| Self::read(other));
                let others = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
                _mm512_cmpneq_epi64_mask(others, _mm512_loadu_si512(keys.as_ptr().cast())) == 0
            }
        }

        #[inline(always)]
        unsafe fn update_two(stats: [*mut Stats; 2], values: &[u32; 2]) {
            // SAFETY: as the caller's; the values are 8 bytes.
            unsafe {
                let both = _mm512_castsi128_si512(_mm_loadl_epi64(values.as_ptr().cast()));
                let halves = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
                let rows = _mm512_permutexvar_epi32(halves, both);
                let rows = _mm512_and_si512(rows, _mm512_broadcast_i64x4(lanes(&USED)));
                let rows = _mm512_xor_si512(rows, _mm512_broadcast_i64x4(lanes(&FLIPS)));
                add(&mut *stats[0], _mm512_castsi512_si256(rows));
                add(&mut *stats[1], _mm512_extracti64x4_epi64::<1>(rows));
            }
        }

        #[inline(always)]
        unsafe fn load_long(seeds: &Seeds, start: *const u8, length: u32, to: &mut LongKey) -> u64 {
            // SAFETY: as the caller's.
            unsafe { low64_of_folded(load_one_long(seeds, start, length as u8, to)) }
        }

        #[inline(always)]
        unsafe fn load_four_long(
            seeds: &Seeds,
            window: *const u8,
            keys: &[u32; 4],
            to: &mut [LongKey; 4],
        ) -> [u32; 4] {
            let (keys, to) = (keys.as_ptr(), to.as_mut_ptr());
            // SAFETY: as the caller's; a key lies behind the other.
            unsafe {
                // No closure: the compiler may not inline it, and then it lacks the features.
                let a = load_word_long(seeds, window, keys, to);
                let b = load_word_long(seeds, window, keys.add(1), to.add(1));
                let c = load_word_long(seeds, window, keys.add(2), to.add(2));
                let d = load_word_long(seeds, window, keys.add(3), to.add(3));
                let low = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b);
                let high = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(c), d);
                low32_of_four(low, high)
            }
        }

        #[inline(always)]
        unsafe fn equal_two_long(keys: &[LongKey; 2], others: [&LongKey; 2]) -> bool {
            let [keys, others] =
                [[&keys[0], &keys[1]], others].map(|keys| keys.map(|key| key.0.as_ptr()));
            // SAFETY: one and a half vectors each; the caller has the features.
            unsafe {
                let low = |key: *const u8| _mm512_loadu_si512(key.cast());
                let high = |key: *const u8| _mm256_load_si256(key.add(64).cast());
                let low_of = |row: usize| _mm512_xor_si512(low(keys[row]), low(others[row]));
                let high_of = |row: usize| _mm256_xor_si256(high(keys[row]), high(others[row]));
                let high = _mm512_zextsi256_si512(_mm256_or_si256(high_of(0), high_of(1)));
                let all = _mm512_or_si512(_mm512_or_si512(low_of(0), low_of(1)), high);
                _mm512_test_epi64_mask(all, all) == 0
            }
        }

        #[inline(always)]
        unsafe fn equals_long(key: &LongKey, other: &LongKey) -> bool {
            let (key, other) = (key.0.as_ptr(), other.0.as_ptr());
            // SAFETY: one and a half vectors each.
            unsafe {
                let low = _mm512_cmpneq_epi64_mask(
                    _mm512_loadu_si512(key.cast()),
                    _mm512_loadu_si512(other.cast()),
                );
                let high = _mm256_cmpneq_epi64_mask(
                    _mm256_load_si256(key.add(64).cast()),
                    _mm256_load_si256(other.add(64).cast()),
                );
                low | high == 0
            }
        }

        #[inline(always)]
        unsafe fn load_wide(seeds: &Seeds, start: *const u8, length: u32, to: &mut WideKey) -> u64 {
            // SAFETY: masked to the key.
            unsafe {
                let (low, high) = (
                    _bzhi_u64(!0, length),
                    _bzhi_u64(!0, length.saturating_sub(64)),
                );
                let low = _mm512_maskz_loadu_epi8(low, start.cast());
                let high = _mm512_maskz_loadu_epi8(high, start.wrapping_add(64).cast());
                let to: *mut __m512i = to.0.as_mut_ptr().cast();
                _mm512_storeu_si512(to, low);
                _mm512_storeu_si512(to.add(1), high);
                low64_of_folded(folded512(_mm512_xor_si512(
                    rounds512(seeds, low, 0),
                    rounds512(seeds, high, 1),
                )))
            }
        }

        #[inline(always)]
        unsafe fn equals_wide(key: &WideKey, other: &WideKey) -> bool {
            // SAFETY: 2 vectors each.
            unsafe {
                let (key, other): (*const __m512i, *const __m512i) =
                    (key.0.as_ptr().cast(), other.0.as_ptr().cast());
                let difference = |at| {
                    _mm512_xor_si512(
                        _mm512_loadu_si512(key.add(at)),
                        _mm512_loadu_si512(other.add(at)),
                    )
                };
                let all = _mm512_or_si512(difference(0), difference(1));
                _mm512_test_epi64_mask(all, all) == 0
            }
        }

        #[inline(always)]
        unsafe fn update(stats: &mut Stats, value: u32) {
            // SAFETY: as for AVX2.
            unsafe {
                let at: *mut __m256i = std::ptr::from_mut(stats).cast();
                let value = _mm256_set1_epi32(value as i32);
                // FLIPS ^ (value & USED)
                let row = _mm256_ternarylogic_epi32::<0x78>(lanes(&FLIPS), value, lanes(&USED));
                let old = _mm256_load_si256(at);
                let sums = _mm256_add_epi64(old, row);
                _mm256_store_si256(at, _mm256_mask_max_epi32(sums, 0b0011_0000, old, row));
            }
        }
    }
}
