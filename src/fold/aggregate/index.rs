//! Pass 1, *index*: where the fields of a window end, and whether they alternate as they should.
//!
//! A field's end is the position one past its delimiter or terminator. `ends[0]` is 0, so the key of
//! row `i` is `ends[2i]..ends[2i+1]` and its number `ends[2i+1]..ends[2i+2]`, delimiters included.
//! The window is *balanced* if delimiters and terminators strictly alternate, delimiter first: then,
//! and only then, every record has exactly two fields.
//!
//! Alternation costs no look at single bits: with `d` and `t` the masks of delimiters and
//! terminators, `t - d` sets exactly the bits of each number's span, delimiter included and
//! terminator not, if they alternate; else the first offender shows as a set terminator bit or a
//! clear delimiter bit. The borrow carries an open span into the next 64 bytes.
//!
//! Invariant of this room: a window's bytes are readable up to 64 past its end, and [`Ends`] has
//! room for 64 more positions than a window has bytes.
#![allow(unsafe_code)]

use super::level::Level;
use super::window::{WINDOW, Window};

const ROOM: usize = WINDOW + 1 + 64;

/// The fields' ends of a window; 16 zeros follow those of its last whole record.
pub(crate) struct Ends {
    ends: Box<[u16; ROOM]>,
    /// Delimiters and terminators found.
    count: usize,
    balanced: bool,
}

impl Ends {
    pub(crate) fn new() -> Self {
        let ends = vec![0; ROOM]
            .into_boxed_slice()
            .try_into()
            .expect("as long as it was made");
        Ends {
            ends,
            count: 0,
            balanced: true,
        }
    }

    /// Whether every record has two fields.
    pub(crate) fn balanced(&self) -> bool {
        self.balanced
    }

    /// Whole records, if balanced.
    pub(crate) fn rows(&self) -> usize {
        self.count / 2
    }

    /// `ends[0]` and the two ends of every whole record.
    pub(crate) fn ends(&self) -> &[u16] {
        &self.ends[..=self.count & !1]
    }

    /// Past the last whole record, if balanced.
    pub(crate) fn end(&self) -> usize {
        usize::from(self.ends[self.count & !1])
    }
}

/// Finds the ends of `window`.
pub(crate) fn index(
    level: Level,
    window: Window<'_>,
    delimiter: u8,
    terminator: u8,
    to: &mut Ends,
) {
    match level {
        Level::Portable => portable(window, delimiter, terminator, to),
        // SAFETY: a level is only made where the processor has its features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { x86::avx2(window, delimiter, terminator, to) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { x86::avx512(window, delimiter, terminator, to) },
    }
    let end = (to.count & !1) + 1;
    to.ends[end..end + 16].fill(0);
}

/// Proves alternation 64 bytes at a time.
#[derive(Default)]
struct Balance {
    open: u64,
    offence: u64,
}

impl Balance {
    #[inline(always)]
    fn take(&mut self, delimiters: u64, terminators: u64) {
        let (spans, under) = terminators.overflowing_sub(delimiters);
        let (spans, under_too) = spans.overflowing_sub(self.open);
        self.open = u64::from(under | under_too);
        self.offence |= (spans & terminators) | (!spans & delimiters);
    }
}

/// The twin of the vector passes: byte by byte, and safe.
fn portable(window: Window<'_>, delimiter: u8, terminator: u8, to: &mut Ends) {
    let mut count = 0;
    let mut balance = Balance::default();
    for (chunk_index, chunk) in window.bytes().chunks(64).enumerate() {
        let mut masks = [0_u64; 2];
        for (word_index, word) in chunk.chunks(8).enumerate() {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            let valid = u64::MAX >> (64 - 8 * word.len());
            for (mask, byte) in masks.iter_mut().zip([delimiter, terminator]) {
                let mut hits = equal(u64::from_le_bytes(bytes), byte) & valid;
                // The top bits of the 8 bytes, gathered into the low 8.
                hits = (hits >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
                *mask |= hits << (8 * word_index);
            }
        }
        let [delimiters, terminators] = masks;
        balance.take(delimiters, terminators);
        let mut all = delimiters | terminators;
        while all != 0 {
            count += 1;
            to.ends[count] = (64 * chunk_index + all.trailing_zeros() as usize + 1) as u16;
            all &= all - 1;
        }
    }
    to.count = count;
    to.balanced = balance.offence == 0;
}

/// The top bit of every byte of `word` that equals `byte`, exactly.
fn equal(word: u64, byte: u8) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let differences = word ^ (u64::from(byte) * 0x0101_0101_0101_0101);
    !(((differences & LOW) + LOW) | differences | LOW)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Balance, Ends, Window};
    use std::arch::x86_64::*;

    /// # Safety
    /// The processor must have the features named.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) unsafe fn avx2(window: Window<'_>, delimiter: u8, terminator: u8, to: &mut Ends) {
        let delimiter = _mm256_set1_epi8(delimiter as i8);
        let terminator = _mm256_set1_epi8(terminator as i8);
        let length = window.bytes().len();
        let out = to.ends.as_mut_ptr();
        let mut count = 1;
        let mut balance = Balance::default();
        let mut at = 0;
        while at < length {
            // SAFETY: `at` is within the window, and 64 bytes past its end are readable.
            let (low, high) = unsafe {
                let from = window.pointer().add(at);
                (
                    _mm256_loadu_si256(from.cast()),
                    _mm256_loadu_si256(from.add(32).cast()),
                )
            };
            let hits = |byte| {
                let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, byte)) as u32;
                let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, byte)) as u32;
                u64::from(low) | u64::from(high) << 32
            };
            let valid = if length - at < 64 {
                _bzhi_u64(!0, (length - at) as u32)
            } else {
                !0
            };
            let (delimiters, terminators) = (hits(delimiter) & valid, hits(terminator) & valid);
            balance.take(delimiters, terminators);
            let mut all = delimiters | terminators;
            let found = all.count_ones() as usize;
            // Eight at a time without a look at the mask: a branch per eight, not per position.
            let mut group = 0;
            loop {
                for position in 0..8 {
                    // SAFETY: at most `at` positions stand before these 64.
                    unsafe {
                        let end = (at + 1) as u16 + all.trailing_zeros() as u16;
                        *out.add(count + group + position) = end;
                    }
                    all = _blsr_u64(all);
                }
                group += 8;
                if group >= found {
                    break;
                }
            }
            count += found;
            at += 64;
        }
        to.count = count - 1;
        to.balanced = balance.offence == 0;
    }

    /// # Safety
    /// The processor must have the features named.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
    pub(super) unsafe fn avx512(window: Window<'_>, delimiter: u8, terminator: u8, to: &mut Ends) {
        let delimiter = _mm512_set1_epi8(delimiter as i8);
        let terminator = _mm512_set1_epi8(terminator as i8);
        let iota: [u8; 64] = std::array::from_fn(|position| position as u8);
        // SAFETY: 64 bytes are read of 64.
        let iota = unsafe { _mm512_loadu_si512(iota.as_ptr().cast()) };
        let step = _mm512_set1_epi16(64);
        let mut base = _mm512_set1_epi16(1);
        let length = window.bytes().len();
        let out = to.ends.as_mut_ptr();
        let mut count = 1;
        let mut balance = Balance::default();
        let mut chunk = |at: usize, valid: u64| {
            // SAFETY: `at` is within the window, and 64 bytes past its end are readable.
            let bytes = unsafe { _mm512_loadu_si512(window.pointer().add(at).cast()) };
            let delimiters = _mm512_cmpeq_epi8_mask(bytes, delimiter) & valid;
            let terminators = _mm512_cmpeq_epi8_mask(bytes, terminator) & valid;
            balance.take(delimiters, terminators);
            let all = delimiters | terminators;
            let found = all.count_ones() as usize;
            // In a register: compressing to memory is microcoded on some processors.
            let positions = _mm512_maskz_compress_epi8(all, iota);
            let first = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(positions));
            // SAFETY: at most `at` positions stand before these 64, and there is room for 64 more.
            unsafe {
                _mm512_storeu_si512(out.add(count).cast(), _mm512_add_epi16(first, base));
                if found > 32 {
                    let rest = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(positions));
                    _mm512_storeu_si512(out.add(count + 32).cast(), _mm512_add_epi16(rest, base));
                }
            }
            base = _mm512_add_epi16(base, step);
            count += found;
        };
        let whole = length & !63;
        let mut at = 0;
        while at < whole {
            chunk(at, !0);
            at += 64;
        }
        if whole < length {
            chunk(whole, _bzhi_u64(!0, (length - whole) as u32));
        }
        to.count = count - 1;
        to.balanced = balance.offence == 0;
    }
}
