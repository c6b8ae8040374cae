//! Reads whole files into memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::input::source::{Shape, Source};
use crate::input::spans::{Input, Span};
use crate::linux::retry;

/// What a file is loaded by: little enough that a read of it is a matter of moments.
const LOAD: usize = 8 << 20;

/// Reads whole files into memory, for the memory engine. `reads` gets each read before it
/// begins.
pub(crate) fn load(input: &Input, reads: &dyn Fn(&Source, Range<u64>)) -> Result<Input> {
    let mut loaded = Input::default();
    for source in &input.sources {
        let bytes = match (&source.shape, &source.file) {
            (Shape::Memory(bytes), _) => Arc::clone(bytes),
            (shape, Some(file)) => {
                // What was added since it was opened isn't asked for.
                let most = match shape {
                    Shape::Seekable(len) => *len,
                    _ => u64::MAX,
                };
                let tell = |range| reads(source, range);
                let bytes = read_all(source, file, most, &tell).map_err(|(error, seen)| {
                    let error = Error::io(&error).in_file(source.index, &source.name);
                    match shape {
                        Shape::Seekable(len) => error.at_bytes(seen..*len),
                        _ => error,
                    }
                })?;
                let seen = bytes.len() as u64;
                if source.len().is_some_and(|len| seen < len) {
                    return Err(source
                        .ended(seen)
                        .at_bytes(seen..source.len().unwrap_or(seen)));
                }
                bytes.into()
            }
            (_, None) => unreachable!("a source has a file or lies in memory"),
        };
        let memory = Source::memory(source.index, &source.name, bytes);
        loaded.sources.push(Arc::new(memory));
    }
    for span in &input.spans {
        let len = loaded.source(span).len().unwrap_or(0);
        loaded.spans.push(Span {
            to: span.to.min(len),
            ..*span
        });
    }
    Ok(loaded)
}

/// A stream to its end, or the first `most` bytes of a file, wherever its position stands. A failure
/// comes with the number of bytes before it.
fn read_all(
    source: &Source,
    mut file: &File,
    most: u64,
    reads: &dyn Fn(Range<u64>),
) -> Result<Vec<u8>, (io::Error, u64)> {
    let mut bytes = Vec::new();
    if most == u64::MAX {
        let mut part = [0; 4096];
        while let Some(n) = source.peeked.give(&mut part) {
            if n == 0 {
                return Ok(bytes);
            }
            bytes.extend(&part[..n]);
        }
        io::Read::read_to_end(&mut file, &mut bytes).map_err(|error| (error, 0))?;
        return Ok(bytes);
    }
    let len = usize::try_from(most).map_err(|_| (io::ErrorKind::OutOfMemory.into(), 0))?;
    if bytes.try_reserve_exact(len).is_err() {
        return Err((io::ErrorKind::OutOfMemory.into(), 0));
    }
    bytes.resize(len, 0);
    let (mut filled, mut tries) = (0, 0);
    while filled < bytes.len() {
        let end = bytes.len().min(filled + LOAD);
        reads(filled as u64..end as u64);
        match rustix::io::pread(file, &mut bytes[filled..end], filled as u64) {
            Ok(0) => break,
            Ok(n) => (filled, tries) = (filled + n, 0),
            Err(errno) => {
                let error = errno.into();
                if !retry::may_pass(&error) || tries >= retry::MOST {
                    return Err((error, filled as u64));
                }
                retry::pause(tries);
                tries += 1;
            }
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
