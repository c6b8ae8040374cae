//! The hot loop of quoting: copies the bytes of a block, and puts words in place of those that don't stand for themselves.
//!
//! 64 bytes at a time become a mask of special bytes. Between two of them bytes are copied by whole vectors, and a word
//! is copied as 16 bytes, of any length: what is too much is overwritten by what follows.
//!
//! # Invariant (`unsafe` module)
//! Before 64 bytes are expanded the output has room for as many of the longest words and 64 bytes more, so stores that
//! begin within those words stay in it.
#![allow(unsafe_code)]

use ringfold_read::Block;
use ringfold_read::internals::{
    Level, Padded,
    isa::{Isa, dispatch},
};

use crate::quote::words::Words;

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
    let mut written = out.len();
    for at in (0..length).step_by(WINDOW) {
        if out.capacity() - written < room {
            // SAFETY: so many bytes have been written.
            unsafe { out.set_len(written) };
            out.reserve(room);
        }
        let mut mask = isa.special(text.from(at), special.up_to, special.others);
        if length - at < WINDOW {
            mask &= !(!0 << (length - at));
        }
        // SAFETY: there is as much room as the module's invariant says; `at` and the bytes of the mask are in the text,
        // whose padding is readable.
        let expanded = unsafe {
            let to = out.as_mut_ptr().add(written);
            window(isa, words, text.pointer().add(at), mask, to)
        };
        written += expanded.map_err(|place| at + place)?;
    }
    // The last window goes on after the text.
    written -= length.next_multiple_of(WINDOW) - length;
    // SAFETY: so many bytes have been written.
    unsafe { out.set_len(written) };
    Ok(())
}

/// Expands 64 bytes, of which those of `mask` are special; returns how many were written, or the place of the first that
/// is refused.
///
/// # Safety
/// 64 bytes can be read from `from` and from after every byte of the mask, and at `to` there is room for 64 of the
/// longest words and 64 bytes more.
#[inline(always)]
unsafe fn window<I: Isa>(
    isa: I,
    words: &Words,
    from: *const u8,
    mut mask: u64,
    to: *mut u8,
) -> Result<usize, usize> {
    // SAFETY: as the caller's; a run or a word begins within the bytes that were written or follow them, and what is
    // stored past its end still lies in the room.
    unsafe {
        if mask == 0 {
            to.cast::<[u8; WINDOW]>().write(*from.cast());
            return Ok(WINDOW);
        }
        let (mut read, mut write) = (0, to);
        while mask != 0 {
            let place = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            write = run(isa, from.add(read), place - read, write);
            let word = words.of(*from.add(place));
            if word.len() == 0 {
                return Err(place);
            }
            isa.copy_sixteen(&word.0, &mut *write.cast());
            write = write.add(word.len());
            read = place + 1;
        }
        write = run(isa, from.add(read), WINDOW - read, write);
        Ok(write.offset_from_unsigned(to))
    }
}

/// Copies `length` bytes, at most 64, and what follows them; returns where the copy of what follows begins. Most runs
/// are short, and a store across the end of a cache line costs two: so vectors are small ones.
///
/// # Safety
/// 64 bytes can be read and written.
#[inline(always)]
unsafe fn run<I: Isa>(isa: I, from: *const u8, length: usize, to: *mut u8) -> *mut u8 {
    // SAFETY: as the caller's.
    unsafe {
        for at in (0..WINDOW).step_by(16) {
            if length <= at {
                break;
            }
            isa.copy_sixteen(&*from.add(at).cast(), &mut *to.add(at).cast());
        }
        to.add(length)
    }
}
