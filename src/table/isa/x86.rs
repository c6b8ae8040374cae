//! The kernels for AVX2 and AVX-512.
//!
//! Invariant of this module: its functions are methods of a token, or are only called by those. The token proves that
//! the processor has the instructions.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use ringfold_read::internals::{Avx2, Avx512};

use crate::table::isa::{InlineKey, Kernels, Seeds, equal_each, load_each};
use crate::table::key::Key;
use crate::table::stats::{FLIP, Stats};

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

/// Two keyed rounds: every bit of the result depends on every bit of `bytes`.
///
/// # Safety
/// The processor has AES.
#[inline(always)]
unsafe fn rounds128(seeds: &Seeds, bytes: __m128i, lane: usize) -> __m128i {
    // SAFETY: the seeds are 32 such vectors.
    unsafe {
        let seeds: *const __m128i = seeds.0.as_ptr().cast();
        let bytes = _mm_xor_si128(bytes, _mm_load_si128(seeds.add(lane)));
        let bytes = _mm_aesenc_si128(bytes, _mm_load_si128(seeds.add(8 + lane)));
        _mm_aesenc_si128(bytes, _mm_load_si128(seeds.add(16 + lane)))
    }
}

/// The lanes of a row's value in [`add`], and what is added to them.
const USED: [i32; 8] = [-1, 0, 0, 0, -1, -1, 0, 0];
const FLIPS: [i32; 8] = [0, 0, 1, 0, 0, FLIP as i32, 0, 0];

/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn lanes(lanes: &[i32; 8]) -> __m256i {
    // SAFETY: 32 bytes.
    unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
}

/// Adds the lanes of a row.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn add(stats: &mut Stats, row: __m256i) {
    // SAFETY: `Stats` is 32 bytes, aligned to them, and laid out as the lanes say.
    unsafe {
        let at: *mut __m256i = std::ptr::from_mut(stats).cast();
        let old = _mm256_load_si256(at);
        let sums = _mm256_add_epi64(old, row);
        let extremes = _mm256_max_epi32(old, row);
        _mm256_store_si256(at, _mm256_blend_epi32::<0b0011_0000>(sums, extremes));
    }
}

/// Adds a row with a biased value.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn add_value(stats: &mut Stats, value: u32) {
    // SAFETY: as the caller's.
    unsafe {
        let row = _mm256_and_si256(_mm256_set1_epi32(value as i32), lanes(&USED));
        add(stats, _mm256_xor_si256(row, lanes(&FLIPS)));
    }
}

/// The vectors of a key.
#[inline(always)]
fn vectors<K: Key>(key: &K) -> *const __m256i {
    std::ptr::from_ref(key).cast()
}

/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn are_equal<K: Key>(key: &K, other: &K) -> bool {
    let (key, other) = (vectors(key), vectors(other));
    // SAFETY: as the caller's; keys are whole vectors.
    unsafe {
        let mut all = _mm256_setzero_si256();
        for part in 0..size_of::<K>() / 32 {
            let key = _mm256_loadu_si256(key.add(part));
            let differences = _mm256_xor_si256(key, _mm256_loadu_si256(other.add(part)));
            all = _mm256_or_si256(all, differences);
        }
        _mm256_testz_si256(all, all) != 0
    }
}

impl Kernels for Avx2 {
    #[inline(always)]
    unsafe fn load<K: Key>(self, seeds: &Seeds, start: *const u8, length: u32, to: &mut K) -> u64 {
        let to: *mut __m256i = std::ptr::from_mut(to).cast();
        // SAFETY: as the caller's; the masks have 128 bytes from any length; keys are whole vectors.
        unsafe {
            let masks = MASKS.as_ptr().add(128 - length as usize);
            let mut hash = _mm_setzero_si128();
            for part in 0..size_of::<K>() / 32 {
                let keep = _mm256_loadu_si256(masks.add(32 * part).cast());
                // Past the key's end any readable bytes will do, because they are masked.
                let from = match 32 * part < length as usize {
                    true => start.add(32 * part),
                    false => start,
                };
                let bytes = _mm256_and_si256(_mm256_loadu_si256(from.cast()), keep);
                _mm256_storeu_si256(to.add(part), bytes);
                let low = rounds128(seeds, _mm256_castsi256_si128(bytes), 2 * part);
                let high = rounds128(seeds, _mm256_extracti128_si256::<1>(bytes), 2 * part + 1);
                hash = _mm_xor_si128(hash, _mm_xor_si128(low, high));
            }
            _mm_cvtsi128_si64(hash) as u64
        }
    }

    #[inline(always)]
    fn equals<K: Key>(self, key: &K, other: &K) -> bool {
        // SAFETY: the token's features.
        unsafe { are_equal(key, other) }
    }

    #[inline(always)]
    fn update(self, stats: &mut Stats, value: u32) {
        // SAFETY: the token's features.
        unsafe { add_value(stats, value) };
    }
}

/// Two keyed rounds, as those of [`rounds128`], of 64 bytes of a key.
///
/// # Safety
/// The processor has AVX-512 and vector AES.
#[inline(always)]
unsafe fn rounds512(seeds: &Seeds, bytes: __m512i, at: usize) -> __m512i {
    // SAFETY: the seeds are 8 such vectors.
    unsafe {
        let seeds: *const __m512i = seeds.0.as_ptr().cast();
        let bytes = _mm512_xor_si512(bytes, _mm512_load_si512(seeds.add(at)));
        let bytes = _mm512_aesenc_epi128(bytes, _mm512_load_si512(seeds.add(2 + at)));
        _mm512_aesenc_epi128(bytes, _mm512_load_si512(seeds.add(4 + at)))
    }
}

/// The same of 32 bytes.
///
/// # Safety
/// The processor has vector AES.
#[inline(always)]
unsafe fn rounds256(seeds: &Seeds, bytes: __m256i, at: usize) -> __m256i {
    // SAFETY: the seeds are 16 such vectors.
    unsafe {
        let seeds: *const __m256i = seeds.0.as_ptr().cast();
        let bytes = _mm256_xor_si256(bytes, _mm256_load_si256(seeds.add(at)));
        let bytes = _mm256_aesenc_epi128(bytes, _mm256_load_si256(seeds.add(4 + at)));
        _mm256_aesenc_epi128(bytes, _mm256_load_si256(seeds.add(8 + at)))
    }
}

/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn low64_of_folded(hash: __m256i) -> u64 {
    // SAFETY: as the caller's.
    unsafe {
        let high = _mm256_extracti128_si256::<1>(hash);
        _mm_cvtsi128_si64(_mm_xor_si128(_mm256_castsi256_si128(hash), high)) as u64
    }
}

/// Loads two keys and returns their hashes. The low half of each word is where the key starts; `kept`
/// masks the keys' bytes.
///
/// # Safety
/// The keys are two words at `keys`, of `window`, two keys may be written at `to`, and the processor has the features.
#[inline(always)]
unsafe fn load_two(
    seeds: &Seeds,
    window: *const u8,
    keys: *const u32,
    kept: __mmask64,
    to: *mut InlineKey,
) -> __m512i {
    // SAFETY: as the caller's; 32 bytes from a key's start are readable; the seeds are 16 vectors of half the width.
    unsafe {
        // Volatile, or the compiler would load a vector and extract from it at twice the price.
        let first = usize::from(keys.cast::<u16>().read_volatile());
        let second = usize::from(keys.add(1).cast::<u16>().read_volatile());
        let first = _mm512_castsi256_si512(_mm256_loadu_si256(window.add(first).cast()));
        let second = _mm256_loadu_si256(window.add(second).cast());
        let keys = _mm512_maskz_mov_epi8(kept, _mm512_inserti64x4::<1>(first, second));
        _mm512_storeu_si512(to.cast(), keys);
        let seeds: *const __m256i = seeds.0.as_ptr().cast();
        let hash = _mm512_xor_si512(keys, _mm512_broadcast_i64x4(_mm256_load_si256(seeds)));
        let seed = _mm512_broadcast_i64x4(_mm256_load_si256(seeds.add(4)));
        let hash = _mm512_aesenc_epi128(hash, seed);
        let seed = _mm512_broadcast_i64x4(_mm256_load_si256(seeds.add(8)));
        _mm512_aesenc_epi128(hash, seed)
    }
}

/// Masks the bytes of two keys, each in half a vector: their lengths are the third bytes of words `PAIR`
/// times two and the next of each 128 bits of `keys`. Making the mask in general registers takes three
/// times as many instructions.
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
unsafe fn kept<const PAIR: usize>(keys: __m512i) -> __mmask64 {
    let lengths: [u8; 64] = std::array::from_fn(|byte| (8 * PAIR + 4 * (byte / 32) + 2) as u8);
    let places: [u8; 64] = std::array::from_fn(|byte| byte as u8 % 32);
    // SAFETY: 64 bytes each.
    unsafe {
        let lengths = _mm512_shuffle_epi8(keys, _mm512_loadu_si512(lengths.as_ptr().cast()));
        _mm512_cmpgt_epu8_mask(lengths, _mm512_loadu_si512(places.as_ptr().cast()))
    }
}

/// The low halves of four hashes, each still in two lanes of 128 bits; two to a vector.
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
unsafe fn low32_of_four(low: __m512i, high: __m512i) -> [u32; 4] {
    // SAFETY: as the caller's.
    unsafe {
        let first = _mm512_setr_epi32(0, 8, 16, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        let first = _mm512_permutex2var_epi32(low, first, high);
        let second = _mm512_setr_epi32(4, 12, 20, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        let second = _mm512_permutex2var_epi32(low, second, high);
        let hashes = _mm512_castsi512_si128(_mm512_xor_si512(first, second));
        std::mem::transmute::<__m128i, [u32; 4]>(hashes)
    }
}

impl Kernels for Avx512 {
    #[inline(always)]
    unsafe fn load<K: Key>(self, seeds: &Seeds, start: *const u8, length: u32, to: &mut K) -> u64 {
        let to: *mut u8 = std::ptr::from_mut(to).cast();
        // SAFETY: masked to the key; keys are whole vectors, the last of which may be half as wide.
        unsafe {
            let mut hash = _mm256_setzero_si256();
            for at in (0..size_of::<K>()).step_by(64) {
                let (start, to) = (start.wrapping_add(at), to.add(at));
                let length = length.saturating_sub(at as u32);
                if size_of::<K>() - at < 64 {
                    let kept = _bzhi_u32(!0, length);
                    let bytes = _mm256_maskz_loadu_epi8(kept, start.cast());
                    _mm256_storeu_si256(to.cast(), bytes);
                    hash = _mm256_xor_si256(hash, rounds256(seeds, bytes, at / 32));
                } else {
                    let kept = _bzhi_u64(!0, length);
                    let bytes = _mm512_maskz_loadu_epi8(kept, start.cast());
                    _mm512_storeu_si512(to.cast(), bytes);
                    let both = rounds512(seeds, bytes, at / 64);
                    hash = _mm256_xor_si256(hash, _mm512_castsi512_si256(both));
                    hash = _mm256_xor_si256(hash, _mm512_extracti64x4_epi64::<1>(both));
                }
            }
            low64_of_folded(hash)
        }
    }

    #[inline(always)]
    fn equals<K: Key>(self, key: &K, other: &K) -> bool {
        // SAFETY: the token's features.
        unsafe { are_equal(key, other) }
    }

    #[inline(always)]
    unsafe fn load_four<K: Key>(
        self,
        seeds: &Seeds,
        window: *const u8,
        keys: &[u32; 4],
        to: &mut [K; 4],
    ) -> [u32; 4] {
        if size_of::<K>() > 32 {
            // SAFETY: as the caller's.
            return unsafe { load_each(self, seeds, window, keys, to) };
        }
        // SAFETY: as the caller's; the last two keys follow the first two.
        unsafe {
            let lengths = _mm512_broadcast_i32x4(_mm_loadu_si128(keys.as_ptr().cast()));
            let (keys, to) = (keys.as_ptr(), to.as_mut_ptr().cast::<InlineKey>());
            let low = load_two(seeds, window, keys, kept::<0>(lengths), to);
            let high = load_two(seeds, window, keys.add(2), kept::<1>(lengths), to.add(2));
            low32_of_four(low, high)
        }
    }

    #[inline(always)]
    fn equal_two<K: Key>(self, keys: &[K; 2], others: [&K; 2]) -> bool {
        if size_of::<K>() > 32 {
            return equal_each(self, keys, others);
        }
        // SAFETY: two keys are 64 bytes, and each is a vector.
        unsafe {
            let low = _mm256_loadu_si256(vectors(others[0]));
            let high = _mm256_loadu_si256(vectors(others[1]));
            let others = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            _mm512_cmpneq_epi64_mask(others, _mm512_loadu_si512(keys.as_ptr().cast())) == 0
        }
    }

    #[inline(always)]
    fn update(self, stats: &mut Stats, value: u32) {
        // SAFETY: the token's features.
        unsafe { add_value(stats, value) };
    }

    #[inline(always)]
    unsafe fn update_two(self, stats: [*mut Stats; 2], values: &[u32; 2]) {
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
}
