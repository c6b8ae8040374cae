//! Formats of compressed data: which one the first bytes tell, and what reads the text in it.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use crate::input::ahead::{AheadReader, CompressedFile, InOrder};
use crate::input::frames::{self, EndOfFrame, Frames};

/// Bytes of compressed data that are read at once.
const STEP: usize = 1 << 20;
/// The most memory that an xz stream may ask for; `xz -9` asks for 65 MiB.
const XZ_MEMORY: u64 = 1 << 30;

/// How a source is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
    Lz4,
}

/// A byte that must be there, as a range.
const fn is(byte: u8) -> RangeInclusive<u8> {
    byte..=byte
}

/// What each format begins with.
static MAGIC: &[(Codec, &[RangeInclusive<u8>])] = &[
    (Codec::Gzip, &[is(0x1f), is(0x8b), is(8)]),
    (Codec::Zstd, &[is(0x28), is(0xb5), is(0x2f), is(0xfd)]),
    // A frame to be skipped.
    (Codec::Zstd, &[0x50..=0x5f, is(0x2a), is(0x4d), is(0x18)]),
    (
        Codec::Xz,
        &[is(0xfd), is(b'7'), is(b'z'), is(b'X'), is(b'Z'), is(0)],
    ),
    (Codec::Lz4, &[is(4), is(0x22), is(0x4d), is(0x18)]),
    // A text may begin with the first four of them.
    (
        Codec::Bzip2,
        &[
            is(b'B'),
            is(b'Z'),
            is(b'h'),
            b'1'..=b'9',
            is(0x31),
            is(0x41),
            is(0x59),
            is(0x26),
            is(0x53),
            is(0x59),
        ],
    ),
    // Of nothing.
    (
        Codec::Bzip2,
        &[
            is(b'B'),
            is(b'Z'),
            is(b'h'),
            b'1'..=b'9',
            is(0x17),
            is(0x72),
            is(0x45),
            is(0x38),
            is(0x50),
            is(0x90),
        ],
    ),
];
/// As many bytes as decide.
pub(crate) const MAGIC_MAX: usize = 10;

impl Codec {
    fn name(self) -> &'static str {
        match self {
            Codec::Gzip => "gzip",
            Codec::Zstd => "zstd",
            Codec::Bzip2 => "bzip2",
            Codec::Xz => "xz",
            Codec::Lz4 => "lz4",
        }
    }

    /// The format that bytes begin with, or that there is none; nothing if more bytes must be seen.
    pub(crate) fn of(head: &[u8], is_whole: bool) -> Option<Option<Codec>> {
        let agrees = |magic: &[RangeInclusive<u8>]| {
            let mut pairs = magic.iter().zip(head);
            pairs.all(|(wanted, byte)| wanted.contains(byte))
        };
        let found = MAGIC.iter().find(|(_, magic)| agrees(magic));
        match found {
            None => Some(None),
            Some((codec, magic)) if head.len() >= magic.len() => Some(Some(*codec)),
            Some(_) if is_whole => Some(None),
            Some(_) => None,
        }
    }

    /// What reads the text in `compressed`, by so many threads at most.
    fn reader(self, compressed: Compressed, threads: usize) -> io::Result<Box<dyn Read + Send>> {
        let gzip = || {
            let decoder = rapidgzip_core::Decoder::builder().decoder_threads(threads);
            decoder.build().map_err(io::Error::other)
        };
        Ok(match (self, compressed) {
            (Codec::Gzip, Compressed::File(file)) => {
                let file = AheadReader::new(file);
                Box::new(gzip()?.reader(file).map_err(io::Error::other)?)
            }
            (Codec::Gzip, Compressed::Stream(stream)) => {
                Box::new(gzip()?.stream_reader(stream).map_err(io::Error::other)?)
            }
            (_, Compressed::File(file)) => match self.frames(file.file()?, threads)? {
                Some(frames) => Box::new(frames),
                None => self.sequential(InOrder::new(file))?,
            },
            (_, Compressed::Stream(stream)) => self.sequential(stream)?,
        })
    }

    /// What decodes frames side by side, where the format has such and the file more than one.
    fn frames(self, file: Arc<File>, threads: usize) -> io::Result<Option<Frames>> {
        let end_of_frame = match self {
            Codec::Zstd => frames::zstd as EndOfFrame,
            Codec::Lz4 => frames::lz4,
            Codec::Bzip2 => frames::bzip2,
            Codec::Gzip | Codec::Xz => return Ok(None),
        };
        let decoder = move |part| self.sequential(part);
        Frames::of(file, end_of_frame, decoder, threads)
    }

    /// What reads one frame, member or stream after the other.
    fn sequential(self, from: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
        let from = BufReader::with_capacity(STEP, from);
        Ok(match self {
            Codec::Gzip => unreachable!("it has a parallel one"),
            Codec::Zstd => Box::new(zstd::Decoder::with_buffer(from)?),
            Codec::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(from)),
            Codec::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(
                    XZ_MEMORY,
                    liblzma::stream::CONCATENATED,
                );
                Box::new(liblzma::bufread::XzDecoder::new_stream(from, stream?))
            }
            Codec::Lz4 => {
                let tracked = Tracked {
                    reader: from,
                    was_short: false,
                };
                Box::new(Lz4(lz4_flex::frame::FrameDecoder::new(tracked)))
            }
        })
    }
}

/// Where compressed bytes come from.
pub(crate) enum Compressed {
    /// A file that can be read anywhere.
    File(Arc<CompressedFile>),
    Stream(Box<dyn Read + Send>),
}

impl rapidgzip_core::ReadAt for AheadReader {
    fn len(&self) -> io::Result<u64> {
        AheadReader::len(self)
    }

    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<usize> {
        AheadReader::read_at(self, to, offset)
    }
}

pub(crate) struct SharedBytes(pub(crate) Arc<[u8]>);

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Frames of lz4, one behind the other. Their decoder pauses behind each, and takes the end of its input for the end of
/// a frame.
struct Lz4<R: Read>(lz4_flex::frame::FrameDecoder<Tracked<R>>);

/// A reader that remembers whether it was read past its end.
struct Tracked<R> {
    reader: R,
    was_short: bool,
}

impl<R: Read> Read for Tracked<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(to)?;
        self.was_short |= n == 0 && !to.is_empty();
        Ok(n)
    }
}

impl<R: io::BufRead> Read for Lz4<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.0.read(to)?;
            let from = self.0.get_mut();
            if n == 0 && from.was_short {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if n > 0 || to.is_empty() || from.reader.fill_buf()?.is_empty() {
                return Ok(n);
            }
        }
    }
}

/// The text of a compressed source, from its start.
pub(crate) struct Decoder {
    codec: Codec,
    /// How many threads decode it at most.
    pub(crate) threads: usize,
    /// The file that is decoded, unless it is a stream.
    pub(crate) file: Option<Arc<CompressedFile>>,
    stage: Mutex<Stage>,
}

/// How far a decoder is. There may be thousands of them: only those that are being read have buffers and threads.
enum Stage {
    Before(Compressed),
    Reading(Box<dyn Read + Send>),
    /// All of the data was sound.
    Ended,
    Failed,
}

impl Stage {
    fn read(&mut self, codec: Codec, threads: usize, to: &mut [u8]) -> io::Result<usize> {
        *self = match std::mem::replace(self, Stage::Failed) {
            Stage::Before(compressed) => Stage::Reading(codec.reader(compressed, threads)?),
            stage => stage,
        };
        let read = match self {
            Stage::Reading(reader) => reader.read(to)?,
            Stage::Ended => 0,
            Stage::Before(_) | Stage::Failed => {
                return Err(io::Error::other("decoding has failed before"));
            }
        };
        if read == 0 && !to.is_empty() {
            *self = Stage::Ended;
        }
        Ok(read)
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Decoder").field(&self.codec).finish()
    }
}

impl Decoder {
    /// What decodes data of a format, by so many threads at most, from the first read on.
    pub(crate) fn new(codec: Codec, compressed: Compressed, threads: usize) -> Decoder {
        let file = match &compressed {
            Compressed::File(file) => Some(Arc::clone(file)),
            Compressed::Stream(_) => None,
        };
        Decoder {
            codec,
            threads,
            file,
            stage: Mutex::new(Stage::Before(compressed)),
        }
    }

    /// Reads on; 0 bytes at the end, when all of it is known to be sound.
    ///
    /// # Errors
    /// The compressed data is damaged or cut off, or can't be read.
    pub(crate) fn read(&self, to: &mut [u8]) -> io::Result<usize> {
        let mut stage = self.stage.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            match stage.read(self.codec, self.threads, to) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.map_err(|error| named(self.codec, &error)),
            }
        }
    }
}

/// A failure of a decoder, with its format. What the kernel says stays as it is.
fn named(codec: Codec, error: &io::Error) -> io::Error {
    if let Some(errno) = error.raw_os_error() {
        return io::Error::from_raw_os_error(errno);
    }
    let name = codec.name();
    let text = match error.kind() {
        io::ErrorKind::UnexpectedEof => format!("the {name} data is cut off"),
        _ => format!("the {name} data is damaged: {error}"),
    };
    io::Error::new(io::ErrorKind::InvalidData, text)
}
