//! The text of a compressed source: a source of its own, which is a stream.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::input::ahead::CompressedFile;
use crate::input::codec::{Codec, Compressed, Decoder, MAGIC_MAX, SharedBytes};
use crate::input::head::look_at_head;
use crate::input::source::{Shape, Source};
use crate::linux::pages::PAGE;

/// The text of a source, decoded by so many threads at most; `None` if it isn't compressed.
///
/// # Errors
/// It can't be read.
pub(crate) fn decompressed(source: &Arc<Source>, threads: usize) -> Result<Option<Source>> {
    let Some(codec) = codec_of(source)? else {
        return Ok(None);
    };
    let compressed = bytes_of(source);
    let compressed =
        compressed.map_err(|error| Error::io(&error).in_file(source.index, &source.name))?;
    let decoder = Decoder::new(codec, compressed, threads);
    Ok(Some(Source::decoded(source, decoder)))
}

/// The text of a decompressed source once more from its start; `None` where a pipe was decompressed.
pub(crate) fn reopened(text: &Source) -> Option<Source> {
    let origin = text.origin().filter(|origin| origin.len().is_some())?;
    decompressed(origin, text.decoder()?.threads).ok().flatten()
}

/// The format of a source by its first bytes.
fn codec_of(source: &Source) -> Result<Option<Codec>> {
    if let Shape::Seekable(_) = &source.shape {
        let mut head = [0; MAGIC_MAX];
        let head = source.file().and_then(|file| first_bytes(&file, &mut head));
        let head = head.map_err(|error| Error::io(&error).in_file(source.index, &source.name))?;
        return Ok(Codec::of(head, true).flatten());
    }
    look_at_head(source, Codec::of)
}

/// The first bytes of a file. What isn't in the page cache before isn't there afterwards.
fn first_bytes<'a>(file: &File, to: &'a mut [u8]) -> io::Result<&'a [u8]> {
    use rustix::fs::{Advice, fadvise};
    use rustix::io::{ReadWriteFlags, preadv2};
    // Advice; its failure is harmless. It comes first, because a read that may not wait prepares for more of the file, too.
    let _ = fadvise(file, 0, None, Advice::Random);
    let cached = {
        let mut buffers = [io::IoSliceMut::new(to)];
        preadv2(file, &mut buffers, 0, ReadWriteFlags::NOWAIT)
    };
    let read = match cached {
        Ok(n) => Ok(n),
        Err(_) => {
            let read = file.read_at(to, 0);
            // Only the page that was read: others may have been cached before.
            let _ = fadvise(file, 0, NonZeroU64::new(PAGE as u64), Advice::DontNeed);
            read
        }
    };
    let _ = fadvise(file, 0, None, Advice::Normal);
    Ok(&to[..read?])
}

/// The bytes of a source from its start.
fn bytes_of(source: &Arc<Source>) -> io::Result<Compressed> {
    Ok(match &source.shape {
        Shape::Memory(bytes) => {
            Compressed::Stream(Box::new(Cursor::new(SharedBytes(Arc::clone(bytes)))))
        }
        Shape::Seekable(_) => {
            let source = Arc::clone(source);
            Compressed::File(CompressedFile::new(move || source.file()))
        }
        Shape::Stream => {
            let file = File::from(source.as_fd().try_clone_to_owned()?);
            let seen = std::mem::take(&mut source.peeked.lock().bytes);
            Compressed::Stream(Box::new(Cursor::new(seen).chain(file)))
        }
    })
}
