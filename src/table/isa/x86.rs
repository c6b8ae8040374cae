//! The kernels for AVX2 and AVX-512.
//!
//! Invariant of this module: its functions are methods of a token, or are only called by those. The token proves that
//! the processor has the instructions.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use ringfold_read::internals::{Avx2, Avx512};

use crate::table::isa::{InlineKey, Kernels, LongKey, Seeds, WideKey};
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

/// The first `length` bytes from `start`, zeros after them up to `BYTES`, and their hash.
///
/// # Safety
/// `BYTES` is 96 or 128, and there is as much at `to`, aligned to 32; the key is readable as the trait says.
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
/// The processor has AVX2; the keys have 32 bytes there, aligned.
#[inline(always)]
unsafe fn differences256(key: *const u8, other: *const u8, at: usize) -> __m256i {
    // SAFETY: as the caller's.
    unsafe {
        let key = _mm256_load_si256(key.add(at).cast());
        _mm256_xor_si256(key, _mm256_load_si256(other.add(at).cast()))
    }
}

impl Kernels for Avx2 {
    #[inline(always)]
    unsafe fn load(self, seeds: &Seeds, start: *const u8, length: u32, to: &mut InlineKey) -> u64 {
        // SAFETY: 32 bytes are readable; the masks have 32 from any length.
        unsafe {
            let keep = _mm256_loadu_si256(MASKS.as_ptr().add(128 - length as usize).cast());
            let key = _mm256_and_si256(_mm256_loadu_si256(start.cast()), keep);
            _mm256_store_si256(to.0.as_mut_ptr().cast(), key);
            let low = rounds128(seeds, _mm256_castsi256_si128(key), 0);
            let high = rounds128(seeds, _mm256_extracti128_si256::<1>(key), 1);
            _mm_cvtsi128_si64(_mm_xor_si128(low, high)) as u64
        }
    }

    #[inline(always)]
    fn equals(self, key: &InlineKey, other: &InlineKey) -> bool {
        // SAFETY: an aligned vector each.
        unsafe {
            let all = differences256(key.0.as_ptr(), other.0.as_ptr(), 0);
            _mm256_testz_si256(all, all) != 0
        }
    }

    #[inline(always)]
    unsafe fn load_long(
        self,
        seeds: &Seeds,
        start: *const u8,
        length: u32,
        to: &mut LongKey,
    ) -> u64 {
        // SAFETY: as the caller's.
        unsafe { load256::<96>(seeds, start, length, to.0.as_mut_ptr()) }
    }

    #[inline(always)]
    fn equals_long(self, key: &LongKey, other: &LongKey) -> bool {
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
    unsafe fn load_wide(
        self,
        seeds: &Seeds,
        start: *const u8,
        length: u32,
        to: &mut WideKey,
    ) -> u64 {
        // SAFETY: as the caller's.
        unsafe { load256::<128>(seeds, start, length, to.0.as_mut_ptr()) }
    }

    #[inline(always)]
    fn equals_wide(self, key: &WideKey, other: &WideKey) -> bool {
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
    fn update(self, stats: &mut Stats, value: u32) {
        // SAFETY: the token's features.
        unsafe {
            let row = _mm256_and_si256(_mm256_set1_epi32(value as i32), lanes(&USED));
            add(stats, _mm256_xor_si256(row, lanes(&FLIPS)));
        }
    }
}

/// # Safety
/// The processor has AVX-512 and vector AES.
#[inline(always)]
unsafe fn rounds512(seeds: &Seeds, bytes: __m512i, half: usize) -> __m512i {
    // SAFETY: the seeds are 8 such vectors.
    unsafe {
        let seeds: *const __m512i = seeds.0.as_ptr().cast();
        let bytes = _mm512_xor_si512(bytes, _mm512_load_si512(seeds.add(half)));
        let bytes = _mm512_aesenc_epi128(bytes, _mm512_load_si512(seeds.add(2 + half)));
        _mm512_aesenc_epi128(bytes, _mm512_load_si512(seeds.add(4 + half)))
    }
}

/// `at` counts halves of what [`rounds512`] hashes at once.
///
/// # Safety
/// As there.
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
/// The processor has AVX-512.
#[inline(always)]
unsafe fn folded512(hash: __m512i) -> __m256i {
    // SAFETY: as the caller's.
    unsafe {
        let half = _mm512_extracti64x4_epi64::<1>(hash);
        _mm256_xor_si256(_mm512_castsi512_si256(hash), half)
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

/// A long key, zeros after it, and its hash, still in two lanes of 128 bits.
///
/// # Safety
/// As [`Kernels::load_long`]'s; a key may be written at `to`.
#[inline(always)]
unsafe fn load_one_long(seeds: &Seeds, start: *const u8, length: u8, to: *mut LongKey) -> __m256i {
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
/// The key is a word at `key`, of `window`, a key may be written at `to`, and the processor has the features.
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
    unsafe fn load(self, seeds: &Seeds, start: *const u8, length: u32, to: &mut InlineKey) -> u64 {
        // SAFETY: masked to the key; 32 aligned bytes.
        unsafe {
            let key = _mm256_maskz_loadu_epi8(_bzhi_u32(!0, length), start.cast());
            _mm256_store_si256(to.0.as_mut_ptr().cast(), key);
            low64_of_folded(rounds256(seeds, key, 0))
        }
    }

    #[inline(always)]
    fn equals(self, key: &InlineKey, other: &InlineKey) -> bool {
        // SAFETY: an aligned vector each.
        unsafe {
            let key = _mm256_load_si256(key.0.as_ptr().cast());
            _mm256_cmpneq_epi64_mask(key, _mm256_load_si256(other.0.as_ptr().cast())) == 0
        }
    }

    #[inline(always)]
    unsafe fn load_four(
        self,
        seeds: &Seeds,
        window: *const u8,
        keys: &[u32; 4],
        to: &mut [InlineKey; 4],
    ) -> [u32; 4] {
        // SAFETY: as the caller's; the last two keys follow the first two.
        unsafe {
            let lengths = _mm512_broadcast_i32x4(_mm_loadu_si128(keys.as_ptr().cast()));
            let (keys, to) = (keys.as_ptr(), to.as_mut_ptr());
            let low = load_two(seeds, window, keys, kept::<0>(lengths), to);
            let high = load_two(seeds, window, keys.add(2), kept::<1>(lengths), to.add(2));
            low32_of_four(low, high)
        }
    }

    #[inline(always)]
    fn equal_two(self, keys: &[InlineKey; 2], others: [&InlineKey; 2]) -> bool {
        // SAFETY: two keys are 64 bytes, and each is an aligned vector.
        unsafe {
            let low = _mm256_load_si256(others[0].0.as_ptr().cast());
            let high = _mm256_load_si256(others[1].0.as_ptr().cast());
            let others = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            _mm512_cmpneq_epi64_mask(others, _mm512_loadu_si512(keys.as_ptr().cast())) == 0
        }
    }

    #[inline(always)]
    unsafe fn load_long(
        self,
        seeds: &Seeds,
        start: *const u8,
        length: u32,
        to: &mut LongKey,
    ) -> u64 {
        // SAFETY: as the caller's.
        unsafe { low64_of_folded(load_one_long(seeds, start, length as u8, to)) }
    }

    #[inline(always)]
    fn equals_long(self, key: &LongKey, other: &LongKey) -> bool {
        let (key, other) = (key.0.as_ptr(), other.0.as_ptr());
        // SAFETY: one and a half vectors each.
        unsafe {
            let low = _mm512_loadu_si512(key.cast());
            let low = _mm512_cmpneq_epi64_mask(low, _mm512_loadu_si512(other.cast()));
            let high = _mm256_load_si256(key.add(64).cast());
            let high = _mm256_cmpneq_epi64_mask(high, _mm256_load_si256(other.add(64).cast()));
            low | high == 0
        }
    }

    #[inline(always)]
    unsafe fn load_four_long(
        self,
        seeds: &Seeds,
        window: *const u8,
        keys: &[u32; 4],
        to: &mut [LongKey; 4],
    ) -> [u32; 4] {
        let (keys, to) = (keys.as_ptr(), to.as_mut_ptr());
        // SAFETY: as the caller's; each key follows another.
        unsafe {
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
    fn equal_two_long(self, keys: &[LongKey; 2], others: [&LongKey; 2]) -> bool {
        let [a, b] = [keys[0].0.as_ptr(), keys[1].0.as_ptr()];
        let [c, d] = [others[0].0.as_ptr(), others[1].0.as_ptr()];
        // SAFETY: one and a half vectors each.
        unsafe {
            let first = _mm512_loadu_si512(a.cast());
            let first = _mm512_xor_si512(first, _mm512_loadu_si512(c.cast()));
            let second = _mm512_loadu_si512(b.cast());
            let second = _mm512_xor_si512(second, _mm512_loadu_si512(d.cast()));
            let high = _mm256_or_si256(differences256(a, c, 64), differences256(b, d, 64));
            let all = _mm512_or_si512(first, second);
            let all = _mm512_or_si512(all, _mm512_zextsi256_si512(high));
            _mm512_test_epi64_mask(all, all) == 0
        }
    }

    #[inline(always)]
    unsafe fn load_wide(
        self,
        seeds: &Seeds,
        start: *const u8,
        length: u32,
        to: &mut WideKey,
    ) -> u64 {
        // SAFETY: masked to the key; two vectors.
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
    fn equals_wide(self, key: &WideKey, other: &WideKey) -> bool {
        let key: *const __m512i = key.0.as_ptr().cast();
        let other: *const __m512i = other.0.as_ptr().cast();
        // SAFETY: two vectors each.
        unsafe {
            let low = _mm512_xor_si512(_mm512_loadu_si512(key), _mm512_loadu_si512(other));
            let high = _mm512_loadu_si512(key.add(1));
            let high = _mm512_xor_si512(high, _mm512_loadu_si512(other.add(1)));
            let all = _mm512_or_si512(low, high);
            _mm512_test_epi64_mask(all, all) == 0
        }
    }

    #[inline(always)]
    fn update(self, stats: &mut Stats, value: u32) {
        let at: *mut __m256i = std::ptr::from_mut(stats).cast();
        // SAFETY: as in `add`.
        unsafe {
            let value = _mm256_set1_epi32(value as i32);
            // FLIPS ^ (value & USED)
            let row = _mm256_ternarylogic_epi32::<0x78>(lanes(&FLIPS), value, lanes(&USED));
            let old = _mm256_load_si256(at);
            let sums = _mm256_add_epi64(old, row);
            _mm256_store_si256(at, _mm256_mask_max_epi32(sums, 0b0011_0000, old, row));
        }
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
