//! Formats of compressed data: which one the first bytes tell, and what reads the text in it.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::{Arc, Mutex};

use rapidgzip_core::Format;

use crate::error::Error;
use crate::input::ahead::{AheadReader, Compressed, CompressedFile, InOrder};
use crate::input::frames::{Format as FrameFormat, Frames, Part, Text};
use crate::input::members::{Bzip2, Deflate, LZ4, LZ4_LEGACY, LeftOut, Lz4, Peek, Xz, Zstd};
use crate::input::memory::{DecoderMemory, Restart, Share, Subject};
use crate::sync::lock;

/// Bytes of compressed data that are read at once.
const STEP: usize = 1 << 20;
/// How a source is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Gzip,
    Zlib,
    Zstd,
    Bzip2,
    Xz,
    /// The format before xz.
    Lzma,
    Lz4,
    /// It begins with frames to be skipped: zstd or lz4.
    Skippable,
}

/// What each format begins with: the least and the greatest byte of each place.
static MAGIC: &[(Codec, &[u8], &[u8])] = &[
    (Codec::Gzip, b"\x1f\x8b\x08", b"\x1f\x8b\x08"),
    (Codec::Zstd, b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd"),
    (Codec::Skippable, b"\x50\x2a\x4d\x18", b"\x5f\x2a\x4d\x18"),
    (Codec::Xz, b"\xfd7zXZ\0", b"\xfd7zXZ\0"),
    (Codec::Lz4, b"\x04\x22\x4d\x18", b"\x04\x22\x4d\x18"),
    // Its first format.
    (Codec::Lz4, b"\x02\x21\x4c\x18", b"\x02\x21\x4c\x18"),
    // A text may begin with the first four of them.
    (Codec::Bzip2, b"BZh11AY&SY", b"BZh91AY&SY"),
    // Of nothing.
    (Codec::Bzip2, b"BZh1\x17rE8P\x90", b"BZh9\x17rE8P\x90"),
];
/// Bytes of the header of .lzma.
const LZMA_HEADER: usize = 13;
/// As many bytes as decide. Of zlib they must be sound data, because it begins with two bytes that a text may begin with.
pub(crate) const HEAD: usize = 4096;

impl Codec {
    fn name(self) -> &'static str {
        match self {
            Codec::Gzip => "gzip",
            Codec::Zlib => "zlib",
            Codec::Zstd => "zstd",
            Codec::Bzip2 => "bzip2",
            Codec::Xz => "xz",
            Codec::Lzma => "lzma",
            Codec::Lz4 => "lz4",
            Codec::Skippable => "zstd or lz4",
        }
    }

    /// The format that bytes begin with, or that there is none; nothing if more bytes must be seen.
    pub(crate) fn of(head: &[u8], is_whole: bool) -> Option<Option<Codec>> {
        let agrees = |least: &[u8], greatest: &[u8]| {
            let mut places = least.iter().zip(greatest).zip(head);
            places.all(|((least, greatest), byte)| (least..=greatest).contains(&byte))
        };
        let found = (MAGIC.iter()).find(|(_, least, greatest)| agrees(least, greatest));
        match found {
            None => without_magic(head, is_whole),
            Some((codec, magic, _)) if head.len() >= magic.len() => Some(Some(*codec)),
            Some(_) if is_whole => Some(None),
            Some(_) => None,
        }
    }

    /// Whether its decoder takes memory as the data says.
    fn has_window(self) -> bool {
        matches!(
            self,
            Codec::Zstd | Codec::Skippable | Codec::Xz | Codec::Lzma
        )
    }

    /// What reads the text in `compressed`, with at least `least` bytes of memory once it takes some.
    fn reader(
        self,
        compressed: Compressed,
        means: &Means,
        least: u64,
        left_out: &Arc<LeftOut>,
    ) -> io::Result<Text> {
        let share = |of| Share::new(&means.memory, of, least);
        let left_out = Arc::clone(left_out);
        let deflate = match self {
            Codec::Gzip => Some(Format::Gzip),
            Codec::Zlib => Some(Format::Zlib),
            _ => None,
        };
        if let Some(format) = deflate {
            let decoder = rapidgzip_core::Decoder::builder().decoder_threads(means.threads);
            let decoder = decoder.format(format).build();
            let decoder = decoder.map_err(io::Error::other)?;
            return Ok(Box::new(Deflate::new(&decoder, compressed, left_out)?));
        }
        Ok(match compressed {
            Compressed::File(file) => match self.frames(file.file()?, means, &left_out)? {
                Some(frames) => Box::new(frames),
                None => {
                    self.sequential(InOrder::new(file), Some(left_out), share(Subject::File))?
                }
            },
            Compressed::Stream(stream) => {
                self.sequential(stream, Some(left_out), share(Subject::Stream))?
            }
        })
    }

    /// What decodes frames side by side, where the format has such and the file more than one.
    fn frames(
        self,
        file: Arc<File>,
        means: &Means,
        left_out: &Arc<LeftOut>,
    ) -> io::Result<Option<Frames>> {
        let format = match self {
            Codec::Zstd => FrameFormat::ZSTD,
            Codec::Lz4 => FrameFormat::LZ4,
            Codec::Bzip2 => FrameFormat::BZIP2,
            _ => return Ok(None),
        };
        let (left_out, memory) = (Arc::clone(left_out), Arc::clone(&means.memory));
        let decoder = move |part: Part| {
            // What stands between frames is for the last one alone.
            let left_out = part.is_last().then(|| Arc::clone(&left_out));
            // Part after part, because the text of the first is wanted first.
            let mut share = Share::new(&memory, Subject::Part, 0);
            share.need(part.memory())?;
            self.sequential(part, left_out, share)
        };
        Frames::of(file, format, decoder, means.threads)
    }

    /// What reads one frame, member or stream after the other.
    fn sequential(
        self,
        from: impl Read + Send + 'static,
        left_out: Option<Arc<LeftOut>>,
        share: Share,
    ) -> io::Result<Text> {
        let from = BufReader::with_capacity(STEP, from);
        Ok(match self {
            Codec::Gzip | Codec::Zlib => unreachable!("they have another one"),
            Codec::Zstd => Box::new(Zstd::new(Peek::new(from), share)?),
            Codec::Bzip2 => Box::new(Bzip2::new(from, left_out)),
            Codec::Xz => Box::new(Xz::new(from, share)?),
            Codec::Lzma => Box::new(Xz::alone(from, share)?),
            Codec::Lz4 => Box::new(Lz4::new(Peek::new(from))),
            Codec::Skippable => {
                let mut from = Peek::new(from);
                match from.magic_of_data()? {
                    Some(LZ4 | LZ4_LEGACY) => Box::new(Lz4::new(from)),
                    _ => Box::new(Zstd::new(from, share)?),
                }
            }
        })
    }
}

/// The format of bytes that begin with no magic number, but with a header that makes sense.
fn without_magic(head: &[u8], is_whole: bool) -> Option<Option<Codec>> {
    match *head {
        [b']'] | [b']', 0, ..] if !is_whole && head.len() < LZMA_HEADER => None,
        [b']', 0, 0, ..] if head.len() >= LZMA_HEADER => Some(is_lzma(head).then_some(Codec::Lzma)),
        [b'x'] if !is_whole => None,
        [b'x', 0x01 | 0x5e | 0x9c | 0xda, ..] => {
            is_zlib(head, is_whole).map(|is_it| is_it.then_some(Codec::Zlib))
        }
        _ => Some(None),
    }
}

/// Whether a header is one of .lzma: its dictionary has a size that encoders choose, and its text is shorter than a
/// tebibyte, or of unknown length.
fn is_lzma(head: &[u8]) -> bool {
    let number = |bytes: &[u8]| {
        let of_byte = |sum, &byte| sum << 8 | u64::from(byte);
        bytes.iter().rev().fold(0, of_byte)
    };
    let (dictionary, length) = (number(&head[1..5]), number(&head[5..LZMA_HEADER]));
    let is_power = |size: u64| {
        size.is_power_of_two() || (size / 3).is_power_of_two() && size.is_multiple_of(3)
    };
    let is_chosen = dictionary >= 4096 && is_power(dictionary) || dictionary == u64::from(u32::MAX);
    is_chosen && (length >> 40 == 0 || length == u64::MAX)
}

/// Whether bytes are sound zlib data, as far as they go; nothing if more must be seen.
fn is_zlib(head: &[u8], is_whole: bool) -> Option<bool> {
    let decoder = rapidgzip_core::Decoder::builder().format(Format::Zlib);
    let decoder = decoder.input_page_size(64).build().ok()?;
    let mut text = decoder.stream_reader(io::Cursor::new(head.to_vec())).ok()?;
    match io::copy(&mut text.by_ref().take(1 << 20), &mut io::sink()) {
        Ok(_) => Some(true),
        // A text has no such bytes.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => match is_whole {
            true => Some(head[2..].iter().any(|&byte| byte < b'\t')),
            false => (head.len() >= HEAD).then_some(true),
        },
        Err(_) => Some(false),
    }
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

/// What decoders of an input may use.
#[derive(Debug, Clone)]
pub(crate) struct Means {
    /// How many threads decode one file at most.
    pub(crate) threads: usize,
    pub(crate) memory: Arc<DecoderMemory>,
}

/// The text of a compressed source, from its start.
pub(crate) struct Decoder {
    codec: Codec,
    pub(crate) means: Means,
    /// The file that is decoded, unless it is a stream.
    pub(crate) file: Option<Arc<CompressedFile>>,
    /// What follows the data and isn't read.
    pub(crate) left_out: Arc<LeftOut>,
    progress: Mutex<Progress>,
}

struct Progress {
    stage: Stage,
    /// Bytes of text that were read.
    read: u64,
    /// The least memory that the decoder takes when it begins anew.
    least: u64,
}

/// How far a decoder is. There may be thousands of them: only those that are being read have buffers and threads.
enum Stage {
    Before(Compressed),
    Reading(Text),
    /// All of the data was sound.
    Ended,
    Failed,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Decoder").field(&self.codec).finish()
    }
}

impl Decoder {
    /// What decodes data of a format, from the first read on.
    pub(crate) fn new(codec: Codec, compressed: Compressed, means: &Means) -> Decoder {
        let file = match &compressed {
            Compressed::File(file) => Some(Arc::clone(file)),
            Compressed::Stream(_) => None,
        };
        Decoder {
            codec,
            means: means.clone(),
            file,
            left_out: Arc::default(),
            progress: Mutex::new(Progress {
                stage: Stage::Before(compressed),
                read: 0,
                least: 0,
            }),
        }
    }

    /// Whether it takes memory as the data says.
    pub(crate) fn has_window(&self) -> bool {
        self.codec.has_window()
    }

    /// Reads on; 0 bytes at the end, when all of it is known to be sound.
    ///
    /// # Errors
    /// The compressed data is damaged or cut off, takes more memory than it may, or can't be read.
    pub(crate) fn read(&self, to: &mut [u8]) -> io::Result<usize> {
        let mut progress = lock(&self.progress);
        loop {
            let error = match self.read_on(&mut progress, to) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
                read => return read,
            };
            let restart = (error.get_ref()).and_then(|error| error.downcast_ref::<Restart>());
            match (restart, &self.file) {
                (Some(restart), Some(file)) => {
                    progress.least = restart.0;
                    // What it has goes back first.
                    progress.stage = Stage::Before(Compressed::File(Arc::clone(file)));
                }
                _ => return Err(named(self.codec, error)),
            }
        }
    }

    fn read_on(&self, progress: &mut Progress, to: &mut [u8]) -> io::Result<usize> {
        progress.stage = match std::mem::replace(&mut progress.stage, Stage::Failed) {
            Stage::Before(compressed) => {
                let (codec, least) = (self.codec, progress.least);
                let mut text = codec.reader(compressed, &self.means, least, &self.left_out)?;
                let skipped = io::copy(&mut text.by_ref().take(progress.read), &mut io::sink())?;
                if skipped < progress.read {
                    return Err(io::Error::other("the file has changed meanwhile"));
                }
                Stage::Reading(text)
            }
            stage => stage,
        };
        let read = match &mut progress.stage {
            Stage::Reading(reader) => reader.read(to)?,
            Stage::Ended => 0,
            Stage::Before(_) | Stage::Failed => {
                return Err(io::Error::other("decoding has failed before"));
            }
        };
        if read == 0 && !to.is_empty() {
            progress.stage = Stage::Ended;
        }
        progress.read += read as u64;
        Ok(read)
    }

    /// Gives back the memory of a file's decoder until it is read on, which takes the time of all before once more.
    pub(crate) fn rest(&self) {
        let mut progress = lock(&self.progress);
        if let (Stage::Reading(_), Some(file), true) =
            (&progress.stage, &self.file, self.codec.has_window())
        {
            progress.stage = Stage::Before(Compressed::File(Arc::clone(file)));
        }
    }
}

/// A failure of a decoder, with its format. An error of the kernel isn't changed.
fn named(codec: Codec, error: io::Error) -> io::Error {
    let is_refused = |error: &(dyn std::error::Error + Send + Sync + 'static)| error.is::<Error>();
    if error.raw_os_error().is_some() || error.get_ref().is_some_and(is_refused) {
        return error;
    }
    let name = codec.name();
    let text = match error.kind() {
        io::ErrorKind::UnexpectedEof => format!("the {name} data is cut off"),
        io::ErrorKind::OutOfMemory => format!("there is no memory to decode the {name} data"),
        _ => format!("the {name} data is damaged: {error}"),
    };
    io::Error::new(io::ErrorKind::InvalidData, text)
}
