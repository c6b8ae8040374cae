//! The first bytes of a source, before the run reads it.
//!
//! A file is read where it lies. What is taken out of a stream is kept in its source, and the run gets it again.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::ReadWriteFlags;

use crate::error::Result;
use crate::input::source::{Shape, Source};
use crate::linux::pages::PAGE;
use crate::linux::reads::read_at;
use crate::linux::retry;

/// Bytes of the first read; each further one doubles what is there.
pub const STEP: usize = 64 << 10;

/// Calls `look` with the first bytes of a source, more of them each time, until it returns something. `look` also learns
/// whether the bytes are the whole source; then it returns something.
///
/// # Errors
/// The source can't be read.
///
/// # Panics
/// If `look` returns nothing of a whole source.
pub fn look_at_head<T>(
    source: &Source,
    mut look: impl FnMut(&[u8], bool) -> Option<T>,
) -> Result<T> {
    if let Shape::Memory(bytes) = &source.shape {
        return Ok(look(bytes, true).expect("the whole source was shown"));
    }
    let mut state = source.peeked.lock();
    let mut bytes = std::mem::take(&mut state.bytes);
    let found = loop {
        // What was taken out of a stream before may be enough: the next read may wait, or fail.
        if state.ended || !bytes.is_empty() {
            if let Some(found) = look(&bytes, state.ended) {
                break found;
            }
            assert!(!state.ended, "the whole source was shown");
        }
        let wanted = bytes.len().max(STEP);
        let before = bytes.len();
        state.ended = read_on(source, &mut bytes, wanted).map_err(|error| {
            let error = source.error(&error);
            match source.len() {
                Some(len) => {
                    let end = len.min((before + wanted) as u64);
                    error.at_bytes(before as u64..end)
                }
                None => error,
            }
        })?;
        debug_assert!(state.ended || bytes.len() > before);
    };
    match source.shape {
        Shape::Stream => state.bytes = bytes,
        _ => state.ended = false,
    }
    // It may be a while until it is read on, and others wait for the memory.
    source.rest();
    Ok(found)
}

/// Calls `look` with the first bytes of each source until it finds something in one of them; of a source in which there is
/// nothing to be found it returns `Some(None)`.
///
/// # Errors
/// A source can't be read.
pub fn look_at_heads<T>(
    sources: &[Arc<Source>],
    mut look: impl FnMut(&Source, &[u8], bool) -> Option<Option<T>>,
) -> Result<Option<T>> {
    for source in sources {
        let found = look_at_head(source, |bytes, ended| look(source, bytes, ended))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The bytes of a file from a place on. What isn't in the page cache before isn't there afterwards.
pub fn first_bytes<'a>(file: &File, to: &'a mut [u8], at: u64) -> io::Result<&'a [u8]> {
    use rustix::fs::{Advice, fadvise};
    // Advice; its failure is harmless. It comes first, because a read that may not wait prepares for more of the file, too.
    let _ = fadvise(file, 0, None, Advice::Random);
    let read = read_at(file, to, at, ReadWriteFlags::NOWAIT).or_else(|_| {
        let read = file.read_at(to, at);
        // Only the pages that were read: others may have been cached before.
        let from = at / PAGE as u64 * PAGE as u64;
        let len = NonZeroU64::new(at + to.len() as u64 - from);
        let _ = fadvise(file, from, len, Advice::DontNeed);
        read
    });
    let _ = fadvise(file, 0, None, Advice::Normal);
    Ok(&to[..read?])
}

/// Reads up to `wanted` bytes more, at least one; `true` at the end.
fn read_on(source: &Source, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<bool> {
    let before = bytes.len();
    let len = source.len().unwrap_or(u64::MAX);
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    let end = before.saturating_add(wanted).min(len).max(before);
    bytes.resize(end, 0);
    let mut tries = 0;
    loop {
        let target = &mut bytes[before..];
        let read = match &source.shape {
            Shape::Stream => source.read_stream(target),
            _ => source.read_at(target, before as u64),
        };
        match read {
            Ok(n) => {
                bytes.truncate(before + n);
                return Ok(n == 0 || bytes.len() == len);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // Somebody made it non-blocking. Where the wait fails the next read reports why.
                let _ = poll(&mut [PollFd::new(source, PollFlags::IN)], None);
            }
            Err(error) if retry::again(&error, &mut tries) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::spans::Input;

    /// A pipe's first bytes are shown in steps, and the run gets them once.
    #[test]
    fn what_is_peeked_of_a_stream_comes_again() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let text: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        let (to, bytes) = (path.clone(), text.clone());
        let writer = std::thread::spawn(move || std::fs::write(to, bytes).unwrap());
        let input = Input::open([path]).unwrap();
        let source = &input.sources()[0];
        let seen = look_at_head(source, |bytes, _| {
            (bytes.len() >= 100_000).then(|| bytes.to_vec())
        });
        let seen = seen.unwrap();
        assert_eq!(seen, text[..seen.len()]);
        let all = look_at_head(source, |bytes, ended| ended.then(|| bytes.to_vec()));
        assert!(all.unwrap() == text);
        writer.join().unwrap();
        let mut got: Vec<u8> = Vec::new();
        let mut part = [0; 7001];
        loop {
            match source.peeked.give(&mut part) {
                Some(0) => break,
                Some(n) => got.extend(&part[..n]),
                None => panic!("the stream has ended"),
            }
        }
        assert!(got == text);
    }

    #[test]
    fn a_file_and_memory_are_shown_from_their_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let text = b"0123456789".repeat(20_000);
        std::fs::write(&path, &text).unwrap();
        for input in [
            Input::open([path]).unwrap(),
            Input::memory([text.as_slice()]),
        ] {
            let source = &input.sources()[0];
            for _ in 0..2 {
                let all = look_at_head(source, |bytes, ended| ended.then(|| bytes.to_vec()));
                assert!(all.unwrap() == text);
                let first = look_at_head(source, |bytes, _| bytes.first().copied());
                assert_eq!(first.unwrap(), b'0');
            }
            assert!(!source.peeked.has_something());
        }
    }
}
