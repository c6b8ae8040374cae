//! The text of a compressed source: a source of its own, which is a stream.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::fd::AsFd;
use std::sync::Arc;

use crate::error::Result;
use crate::input::ahead::{Compressed, CompressedFile};
use crate::input::codec::{Codec, Decoder, HEAD, Means, SharedBytes};
use crate::input::foreign;
use crate::input::head::{first_bytes, look_at_head};
use crate::input::source::{Shape, Source};

/// The text of a source, if it is compressed.
///
/// # Errors
/// It can't be read.
pub(crate) fn decompressed(source: &Arc<Source>, means: &Means) -> Result<Option<Source>> {
    let Some(codec) = codec_of(source)? else {
        return Ok(None);
    };
    let compressed = bytes_of(source).map_err(|error| source.error(&error))?;
    let decoder = Decoder::new(codec, compressed, means);
    Ok(Some(Source::decoded(source, decoder)))
}

/// The text of a decompressed source once more from its start; `None` where a pipe was decompressed.
pub fn reopened(text: &Source) -> Option<Source> {
    let origin = text.origin().filter(|origin| origin.len().is_some())?;
    decompressed(origin, &text.decoder()?.means).ok().flatten()
}

/// The format of a source by its first bytes.
fn codec_of(source: &Source) -> Result<Option<Codec>> {
    if let Shape::Seekable(_) = &source.shape {
        let codec = source.file().and_then(|file| codec_of_file(source, &file));
        return codec.map_err(|error| source.error(&error));
    }
    look_at_head(source, Codec::of)
}

/// The format of a file. Frames to be skipped tell nothing of it, so the first one after them is looked at.
fn codec_of_file(source: &Source, file: &File) -> io::Result<Option<Codec>> {
    let mut head = vec![0; HEAD];
    let mut at = 0;
    loop {
        let head = first_bytes(file, &mut head, at)?;
        match (Codec::of(head, head.len() < HEAD).flatten(), head) {
            (Some(Codec::Skippable), &[_, _, _, _, a, b, c, d, ..]) => {
                at += 8 + u64::from(u32::from_le_bytes([a, b, c, d]));
            }
            (Some(Codec::Lz4), _) if at > 0 => return Ok(Some(Codec::Lz4)),
            (None, head) if at == 0 => {
                if let Some(what) = foreign::recognise(head) {
                    source.set_foreign(what);
                }
                return Ok(None);
            }
            (codec, _) if at == 0 => return Ok(codec),
            _ => return Ok(Some(Codec::Zstd)),
        }
    }
}

/// The bytes of a source from its start.
fn bytes_of(source: &Arc<Source>) -> io::Result<Compressed> {
    Ok(match &source.shape {
        Shape::Memory(bytes) => {
            Compressed::Stream(Box::new(Cursor::new(SharedBytes(Arc::clone(bytes)))))
        }
        Shape::Object(_) => Compressed::Stream(Box::new(FromStart::new(source))),
        Shape::Seekable(_) => {
            let source = Arc::clone(source);
            Compressed::File(CompressedFile::new(move || source.file()))
        }
        Shape::Stream => {
            let file = File::from(source.as_fd().try_clone_to_owned()?);
            let prefix = std::mem::take(&mut source.peeked.lock().bytes);
            Compressed::Stream(Box::new(Cursor::new(prefix).chain(file)))
        }
    })
}

/// Reads a source from its start.
struct FromStart {
    source: Arc<Source>,
    at: u64,
}

impl FromStart {
    fn new(source: &Arc<Source>) -> FromStart {
        FromStart {
            source: Arc::clone(source),
            at: 0,
        }
    }
}

impl Read for FromStart {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read_at(to, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}
