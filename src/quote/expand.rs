//! The hot loop of quoting: copies the bytes of a block, and puts words in place of those that don't stand for themselves.
//!
//! 64 bytes at a time become a mask of special bytes. Between two of them bytes are copied by whole vectors, and a word
//! is copied as 16 bytes, whatever its length: what is too much is overwritten by what follows.
//!
//! # Invariant (`unsafe` module)
//! [`PADDING`](crate::record::block::PADDING) bytes behind a block are readable, so vectors that begin within it may be
//! loaded whole. Before 64 bytes are expanded the output has room for as many of the longest words and two vectors
//! more, so stores that begin within those words stay in it.
#![allow(unsafe_code)]

use crate::level::Level;
use crate::quote::words::Words;
use crate::record::block::Block;

/// How a block is expanded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expansion<'a> {
    words: &'a Words,
    level: Level,
}

impl<'a> Expansion<'a> {
    /// `level` must be one of this processor's.
    pub(super) fn new(words: &'a Words, level: Level) -> Self {
        Expansion { words, level }
    }

    /// Adds the words of a block's records to `out`.
    ///
    /// # Errors
    /// The place of the first byte that is refused. Then `out` holds anything.
    pub(super) fn records(&self, block: &Block<'_>, out: &mut Vec<u8>) -> Result<(), usize> {
        let Some(&last) = block.bytes().last() else {
            return Ok(());
        };
        // At once, so that a new text isn't copied over and over as it grows. Pages that aren't used cost nothing.
        out.reserve(2 * block.bytes().len());
        out.push(b'\'');
        match self.level {
            Level::Portable => portable(self.words, block.bytes(), out)?,
            // SAFETY: the processor has the instructions of its level.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 | Level::Avx512 => unsafe { avx2::expand(self.words, block, out)? },
        }
        if last == self.words.delimiter() {
            // Every record's end has begun another word.
            out.pop();
        } else {
            out.extend(self.words.end());
        }
        Ok(())
    }
}

/// The oracle, and the way for other processors.
fn portable(words: &Words, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), usize> {
    let special = words.special();
    let is_special = |byte: &u8| *byte <= special.up_to || special.others.contains(byte);
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let run = rest.iter().position(is_special).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..run]);
        at += run;
        if let Some(&byte) = bytes.get(at) {
            let word = words.of(byte).bytes();
            if word.is_empty() {
                return Err(at);
            }
            out.extend_from_slice(word);
            at += 1;
        }
    }
    Ok(())
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Block, Words};
    use crate::quote::words::{Special, Word};
    use std::arch::x86_64::*;

    /// Bytes for which there is one mask.
    const WINDOW: usize = 64;
    const VECTOR: usize = 32;
    const HALF: usize = 16;

    /// # Safety
    /// The processor has AVX2 and BMI.
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub(super) unsafe fn expand(
        words: &Words,
        block: &Block<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), usize> {
        let bytes = block.bytes();
        let special = words.special();
        let room = WINDOW * words.longest() + 2 * VECTOR;
        let mut len = out.len();
        let mut at = 0;
        while at < bytes.len() {
            if out.capacity() - len < room {
                // SAFETY: so many bytes have been written.
                unsafe { out.set_len(len) };
                out.reserve(room);
            }
            let count = WINDOW.min(bytes.len() - at);
            // SAFETY: `at` lies in the block, and 64 bytes behind the block are readable. `room` bytes of the output
            // behind `len` are allocated.
            let written = unsafe {
                let from = bytes.as_ptr().add(at);
                let to = out.as_mut_ptr().add(len);
                window(words, special, from, count, to)
            };
            match written {
                Ok(written) => len += written,
                Err(place) => return Err(at + place),
            }
            at += count;
        }
        // SAFETY: so many bytes have been written.
        unsafe { out.set_len(len) };
        Ok(())
    }

    /// Expands `count` bytes, at most 64; returns how many were written, or the place of the first that is refused.
    ///
    /// # Safety
    /// 64 bytes can be read from `from` and from every place of these bytes on, and at `to` there is room for `count` of
    /// the longest words and 64 bytes more. The processor has AVX2 and BMI.
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    #[inline]
    unsafe fn window(
        words: &Words,
        special: Special,
        from: *const u8,
        count: usize,
        to: *mut u8,
    ) -> Result<usize, usize> {
        // SAFETY: by this function's contract; a run or a word begins within the bytes that were written or follow
        // them, and what is stored past its end still lies in the room.
        unsafe {
            let (low, high) = (load(from), load(from.add(VECTOR)));
            let mask = u64::from(mask(low, special)) | u64::from(mask(high, special)) << VECTOR;
            let mut mask = _bzhi_u64(mask, count as u32);
            if mask == 0 {
                store(to, low);
                store(to.add(VECTOR), high);
                return Ok(count);
            }
            let (mut read, mut write) = (0, to);
            while mask != 0 {
                let place = mask.trailing_zeros() as usize;
                mask = _blsr_u64(mask);
                write = run(from.add(read), place - read, write);
                let word: *const Word = words.of(*from.add(place));
                let len = (*word).len();
                if len == 0 {
                    return Err(place);
                }
                // A word is 16 bytes, aligned, and its own come first.
                _mm_storeu_si128(write.cast(), _mm_load_si128(word.cast()));
                write = write.add(len);
                read = place + 1;
            }
            write = run(from.add(read), count - read, write);
            Ok(write.offset_from(to) as usize)
        }
    }

    /// Copies so many bytes, at most 64, and what follows them; returns where the copy of what follows begins. Most runs
    /// are short, and a store across the end of a cache line costs two: so the first vector is a small one.
    ///
    /// # Safety
    /// 64 bytes can be read and written. The processor has AVX2.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn run(from: *const u8, len: usize, to: *mut u8) -> *mut u8 {
        // SAFETY: by this function's contract.
        unsafe {
            if len > 0 {
                store_half(to, from);
            }
            if len > HALF {
                store_half(to.add(HALF), from.add(HALF));
            }
            if len > VECTOR {
                store(to.add(VECTOR), load(from.add(VECTOR)));
            }
            to.add(len)
        }
    }

    /// # Safety
    /// 16 bytes can be read and written.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn store_half(to: *mut u8, from: *const u8) {
        // SAFETY: by this function's contract.
        unsafe { _mm_storeu_si128(to.cast(), _mm_loadu_si128(from.cast())) }
    }

    /// # Safety
    /// 32 bytes can be read. The processor has AVX2.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn load(from: *const u8) -> __m256i {
        // SAFETY: by this function's contract.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    /// # Safety
    /// 32 bytes can be written. The processor has AVX2.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn store(to: *mut u8, vector: __m256i) {
        // SAFETY: by this function's contract.
        unsafe { _mm256_storeu_si256(to.cast(), vector) }
    }

    /// A bit for each special byte.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn mask(bytes: __m256i, special: Special) -> u32 {
        let splat = |byte: u8| _mm256_set1_epi8(byte as i8);
        let [first, second] = special.others.map(splat);
        let low = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, splat(special.up_to)), bytes);
        let other = _mm256_or_si256(
            _mm256_cmpeq_epi8(bytes, first),
            _mm256_cmpeq_epi8(bytes, second),
        );
        _mm256_movemask_epi8(_mm256_or_si256(low, other)) as u32
    }
}
