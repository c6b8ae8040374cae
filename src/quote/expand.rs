//! The hot loop of quoting: copies the bytes of a block, and puts words in place of those that don't stand for themselves.
//!
//! 64 bytes at a time become a mask of special bytes. Between two of them bytes are copied by whole vectors, and a word
//! is copied as 16 bytes, of any length: what is too much is overwritten by what follows.
//!
//! # Invariant (`unsafe` module)
//! Before 64 bytes are expanded the output has room for as many of the longest words and 64 bytes more, so stores that
//! begin within those words stay in it.
#![allow(unsafe_code)]

use crate::isa::{Isa, dispatch};
use crate::level::Level;
use crate::quote::words::{Special, Word, Words};
use crate::record::block::{Block, Padded};

/// Bytes for which there is one mask.
const WINDOW: usize = 64;

/// How a block is expanded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expansion<'a> {
    words: &'a Words,
    level: Level,
}

impl<'a> Expansion<'a> {
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
        let text = block.part(0, usize::MAX);
        dispatch!(self.level, isa => expand(isa, self.words, text, out))?;
        if last == self.words.delimiter() {
            // Every record's end has begun another word.
            out.pop();
        } else {
            out.extend(self.words.end());
        }
        Ok(())
    }
}

#[inline(always)]
fn expand<I: Isa>(isa: I, words: &Words, text: Padded<'_>, out: &mut Vec<u8>) -> Result<(), usize> {
    let length = text.bytes().len();
    let special = words.special();
    let room = WINDOW * (words.longest() + 1);
    let mut at = 0;
    while at < length {
        out.reserve(room);
        let count = WINDOW.min(length - at);
        // SAFETY: there is as much room as the module's invariant says, and as many bytes were written.
        unsafe {
            let to = out.as_mut_ptr().add(out.len());
            let written = window(isa, words, special, (text, at), count, to)?;
            out.set_len(out.len() + written);
        }
        at += count;
    }
    Ok(())
}

/// Expands `count` bytes of `text` from `at` on, at most 64; returns how many were written, or the place in `text` of the
/// first that is refused.
///
/// # Safety
/// At `to` there is room for `count` of the longest words and 64 bytes more.
#[inline(always)]
unsafe fn window<I: Isa>(
    isa: I,
    words: &Words,
    special: Special,
    (text, at): (Padded<'_>, usize),
    count: usize,
    to: *mut u8,
) -> Result<usize, usize> {
    let bytes = text.from(at);
    let vector = isa.load(bytes);
    let mask = isa.at_most(vector, special.up_to) | isa.among(vector, special.others);
    let mut mask = mask & u64::MAX >> (WINDOW - count);
    let (mut read, mut write) = (0, to);
    // SAFETY: as the caller's; a run or a word begins within the bytes that were written or follow them, and what is
    // stored past its end still lies in the room.
    unsafe {
        if mask == 0 {
            to.cast::<[u8; WINDOW]>().write_unaligned(*bytes);
            return Ok(count);
        }
        while mask != 0 {
            let place = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            write = run(text.from(at + read), place - read, write);
            let word = words.of(bytes[place]);
            if word.len() == 0 {
                return Err(at + place);
            }
            write.cast::<Word>().write_unaligned(*word);
            write = write.add(word.len());
            read = place + 1;
        }
        write = run(text.from(at + read), count - read, write);
        Ok(write.offset_from_unsigned(to))
    }
}

/// Copies `length` bytes, at most 64, and what follows them; returns where the copy of what follows begins. Most runs
/// are short, and a store across the end of a cache line costs two: so the first vector is a small one.
///
/// # Safety
/// 64 bytes can be written.
#[inline(always)]
unsafe fn run(from: &[u8; WINDOW], length: usize, to: *mut u8) -> *mut u8 {
    // SAFETY: as the caller's; 16, 16 and 32 bytes of 64.
    unsafe {
        if length > 0 {
            to.cast::<[u8; 16]>()
                .write_unaligned(*from.first_chunk().expect("16 bytes"));
        }
        if length > 16 {
            to.add(16)
                .cast::<[u8; 16]>()
                .write_unaligned(*from[16..].first_chunk().expect("16 bytes"));
        }
        if length > 32 {
            to.add(32)
                .cast::<[u8; 32]>()
                .write_unaligned(*from[32..].first_chunk().expect("32 bytes"));
        }
        to.add(length)
    }
}
