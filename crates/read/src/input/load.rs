//! Reads whole files into memory.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Kind, Result};
use crate::input::source::{Shape, Source};
use crate::input::spans::{Input, Span};
use crate::linux::{heap, retry};
use crate::units::size;

/// What a file is loaded by: little enough that a read of it is a matter of moments.
const LOAD: usize = 8 << 20;

/// Reads whole files into memory, each of at most `most` bytes. `reads` gets each read before it begins.
///
/// # Errors
/// A file can't be read, or is larger.
pub fn load(input: &Input, most: u64, reads: &dyn Fn(&Source, Range<u64>)) -> Result<Input> {
    let mut loaded = Input::default();
    for source in &input.sources {
        let failed = |error: io::Error| source.error(&error);
        let too_large = || {
            let most = size(most);
            let why = format!("it has more than {most}, the most that is read into memory");
            source.error(Error::new(Kind::Data, why))
        };
        let bytes = match &source.shape {
            Shape::Memory(bytes) => Arc::clone(bytes),
            Shape::Stream => {
                let bytes = read_stream(source, most).map_err(failed)?;
                bytes.ok_or_else(too_large)?.into()
            }
            _ if source.len().is_some_and(|len| len > most) => return Err(too_large()),
            Shape::Object(object) => {
                let mut bytes = vec![0; object.0.bytes() as usize];
                source.read_exact_at(&mut bytes, 0).map_err(failed)?;
                bytes.into()
            }
            &Shape::Seekable(len) => {
                // What was added since it was opened isn't asked for.
                let tell = |range| reads(source, range);
                let file = source.file().map_err(failed)?;
                let bytes = read_all(&file, len, &tell)
                    .map_err(|(error, loaded_len)| failed(error).at_bytes(loaded_len..len))?;
                let loaded_len = bytes.len() as u64;
                if loaded_len < len {
                    return Err(source.ended(loaded_len).at_bytes(loaded_len..len));
                }
                bytes.into()
            }
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
    (loaded.part, loaded.begin) = (input.part, input.begin);
    Ok(loaded)
}

/// A stream to its end, unless it is longer than that.
fn read_stream(source: &Source, most: u64) -> io::Result<Option<Vec<u8>>> {
    struct Stream<'a>(&'a Source);
    impl Read for Stream<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            match self.0.peeked.give(to) {
                Some(n) => Ok(n),
                None => self.0.read_stream(to),
            }
        }
    }
    let mut bytes = Vec::new();
    let mut stream = Stream(source).take(most.saturating_add(1));
    stream.read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// The first `most` bytes of a file, wherever its position stands. A failure comes with the number of bytes before it.
fn read_all(
    file: &File,
    most: u64,
    reads: &dyn Fn(Range<u64>),
) -> Result<Vec<u8>, (io::Error, u64)> {
    let mut bytes = Vec::new();
    let len = usize::try_from(most).map_err(|_| (io::ErrorKind::OutOfMemory.into(), 0))?;
    if heap::attempt(|| bytes.try_reserve_exact(len)).is_err() {
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
                if !retry::again(&error, &mut tries) {
                    return Err((error, filled as u64));
                }
            }
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
