//! Compressed members one after the other, and what stands between and after them: frames to be skipped, and bytes that
//! the formats' own programs leave out with a warning.

use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bzip2::bufread::BzDecoder;
use liblzma::stream::{Action, Status, Stream};
use lz4_flex::frame::FrameDecoder;
use memchr::memmem;
use rapidgzip_core::{DecodeError, GzipErrorKind};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use crate::error::{Error, Kind};
use crate::input::ahead::{AheadReader, Compressed, CompressedFile, InOrder};
use crate::input::memory::Share;
use crate::sync::lock;

/// What members of gzip and bzip2 begin with.
const GZIP: &[u8; 3] = b"\x1f\x8b\x08";
const BZIP2: &[u8; 3] = b"BZh";
/// What frames of lz4 begin with, and those of its first format.
pub(super) const LZ4: u32 = 0x184d_2204;
pub(super) const LZ4_LEGACY: u32 = 0x184c_2102;

/// Text of a whole block of legacy lz4, and the most bytes that one is compressed to.
const LEGACY_BLOCK: usize = 8 << 20;
const LEGACY_MOST: usize = LEGACY_BLOCK + LEGACY_BLOCK / 255 + 16;

/// How much is looked at at once of what stands after the last member.
const STEP: usize = 64 << 10;

/// Whether a number at a frame's start says that the frame is to be skipped, in zstd and lz4.
pub(super) fn is_skippable(magic: u32) -> bool {
    matches!(magic, 0x184d_2a50..=0x184d_2a5f)
}

/// How many bytes after the last member were left out.
#[derive(Debug, Default)]
pub(crate) struct LeftOut(AtomicU64);

impl LeftOut {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Leaves out what follows a member, unless it is a member, or may have been one before it was damaged. Zeros are
    /// padding, which isn't worth a word.
    fn take(&self, magic: &[u8; 3], mut rest: impl Read) -> io::Result<bool> {
        let find = memmem::Finder::new(magic);
        let (mut bytes, mut is_padding, mut kept) = (vec![0; STEP], true, 0);
        let (mut all, mut is_first) = (0, true);
        loop {
            let mut end = kept;
            while end < bytes.len() {
                match rest.read(&mut bytes[end..]) {
                    Ok(0) => break,
                    Ok(n) => end += n,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            let seen = &bytes[..end];
            if is_first {
                let same = seen.iter().zip(magic).filter(|(a, b)| a == b).count();
                if same >= 2.min(seen.len()) && end > 0 {
                    return Ok(false);
                }
                is_first = false;
            }
            if find.find(seen).is_some() {
                return Ok(false);
            }
            is_padding &= seen.iter().all(|&byte| byte == 0);
            all += (end - kept) as u64;
            if end < bytes.len() {
                break;
            }
            // A member's start may be cut.
            kept = magic.len() - 1;
            bytes.copy_within(end - kept.., 0);
        }
        self.0.store(if is_padding { 0 } else { all }, Relaxed);
        Ok(true)
    }
}

/// A reader whose next bytes can be looked at, and that remembers whether it was read past its end.
pub(super) struct Peek<R> {
    ahead: Vec<u8>,
    from: R,
    was_short: bool,
}

impl<R: BufRead> Peek<R> {
    pub(super) fn new(from: R) -> Peek<R> {
        Peek {
            ahead: Vec::new(),
            from,
            was_short: false,
        }
    }

    /// The next bytes, fewer only at the end.
    fn peek(&mut self, wanted: usize) -> io::Result<&[u8]> {
        let lies_there = self.ahead.is_empty() && self.from.fill_buf()?.len() >= wanted;
        if lies_there {
            return Ok(&self.from.fill_buf()?[..wanted]);
        }
        while self.ahead.len() < wanted {
            let more = self.from.fill_buf()?;
            let n = more.len().min(wanted - self.ahead.len());
            if n == 0 {
                break;
            }
            self.ahead.extend_from_slice(&more[..n]);
            self.from.consume(n);
        }
        Ok(&self.ahead[..wanted.min(self.ahead.len())])
    }

    /// The number that the next frame begins with; nothing at the end.
    ///
    /// # Errors
    /// There are fewer bytes.
    fn magic(&mut self) -> io::Result<Option<u32>> {
        match *self.peek(4)? {
            [] => Ok(None),
            [a, b, c, d] => Ok(Some(u32::from_le_bytes([a, b, c, d]))),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The same after all frames that are to be skipped.
    pub(super) fn magic_of_data(&mut self) -> io::Result<Option<u32>> {
        loop {
            let magic = self.magic()?;
            if !magic.is_some_and(is_skippable) {
                return Ok(magic);
            }
            let mut head = [0; 8];
            self.read_exact(&mut head)?;
            let [.., a, b, c, d] = head;
            let size = u64::from(u32::from_le_bytes([a, b, c, d]));
            if io::copy(&mut self.by_ref().take(size), &mut io::sink())? < size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl<R: BufRead> BufRead for Peek<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.ahead.is_empty() {
            true => self.from.fill_buf(),
            false => Ok(&self.ahead),
        }
    }

    fn consume(&mut self, n: usize) {
        match self.ahead.is_empty() {
            true => self.from.consume(n),
            false => drop(self.ahead.drain(..n)),
        }
    }
}

impl<R: BufRead> Read for Peek<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let from = self.fill_buf()?;
        let n = from.len().min(to.len());
        to[..n].copy_from_slice(&from[..n]);
        self.consume(n);
        self.was_short |= n == 0 && !to.is_empty();
        Ok(n)
    }
}

/// Streams of bzip2. What stands after the last one is left out where that is allowed.
pub(super) struct Bzip2<R> {
    stream: Option<BzDecoder<Peek<R>>>,
    left_out: Option<Arc<LeftOut>>,
}

impl<R: BufRead> Bzip2<R> {
    pub(super) fn new(from: R, left_out: Option<Arc<LeftOut>>) -> Bzip2<R> {
        Bzip2 {
            stream: Some(BzDecoder::new(Peek::new(from))),
            left_out,
        }
    }
}

impl<R: BufRead> Read for Bzip2<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while let Some(stream) = &mut self.stream {
            let n = stream.read(to)?;
            if n > 0 || to.is_empty() {
                return Ok(n);
            }
            let mut from = self.stream.take().expect("just read").into_inner();
            match (from.peek(BZIP2.len())?, &self.left_out) {
                ([], _) => {}
                (next, Some(left_out)) if next != BZIP2 => {
                    if !left_out.take(BZIP2, from)? {
                        return Err(io::Error::other("what follows a stream is none"));
                    }
                }
                _ => self.stream = Some(BzDecoder::new(from)),
            }
        }
        Ok(0)
    }
}

/// The most bytes of a zstd frame's header.
pub(super) const ZSTD_HEADER: usize = 18;
/// The largest window that zstd's library takes, as a power of two.
const ZSTD_WINDOW_LOG: u32 = 29 + usize::BITS / 32;

/// The memory that a zstd frame's header makes a decoder take; nothing if these are other bytes, or the library refuses them.
pub(super) fn zstd_memory(head: &[u8]) -> Option<u64> {
    /// The decoder without its window, and blocks on either side.
    const REST: u64 = 1 << 20;
    let (flags, mut rest) = head.strip_prefix(b"\x28\xb5\x2f\xfd")?.split_first()?;
    let mut window = None;
    if flags >> 5 & 1 == 0 {
        let (byte, more) = rest.split_first()?;
        let base = 1 << (10 + (byte >> 3));
        (window, rest) = (Some(base + base / 8 * u64::from(byte & 7)), more);
    }
    let size = match (flags >> 6, window) {
        (0, None) => 1,
        (0, Some(_)) => 0,
        (power, _) => 1 << power,
    };
    let dictionary = [0, 1, 2, 4][usize::from(flags & 3)];
    let bytes = rest.get(dictionary..dictionary + size)?;
    let length = bytes
        .iter()
        .rev()
        .fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    let length = match size {
        0 => u64::MAX,
        2 => length + 256,
        _ => length,
    };
    let window = window.unwrap_or(length);
    (window <= 1 << ZSTD_WINDOW_LOG).then(|| window.min(length) + REST)
}

/// Frames of zstd, and frames to be skipped. What a frame makes the decoder take is known before it takes it.
pub(super) struct Zstd<R> {
    decoder: Decoder<'static>,
    from: Peek<R>,
    is_in_frame: bool,
    /// Given back after the decoder.
    share: Share,
}

impl<R: BufRead> Zstd<R> {
    pub(super) fn new(from: Peek<R>, share: Share) -> io::Result<Zstd<R>> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))?;
        Ok(Zstd {
            decoder,
            from,
            is_in_frame: false,
            share,
        })
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while !to.is_empty() {
            if !self.is_in_frame {
                let head = self.from.peek(ZSTD_HEADER)?;
                if head.is_empty() {
                    return Ok(0);
                }
                if let Some(bytes) = zstd_memory(head) {
                    self.share.need(bytes)?;
                }
                self.decoder.reinit()?;
                self.is_in_frame = true;
            }
            let bytes = self.from.fill_buf()?;
            let ended = bytes.is_empty();
            let (mut input, mut output) = (InBuffer::around(bytes), OutBuffer::around(&mut *to));
            let ran = self.decoder.run(&mut input, &mut output);
            let (seen, n) = (input.pos(), output.pos());
            self.is_in_frame = ran.map_err(of_zstd)? != 0;
            self.from.consume(seen);
            if n > 0 {
                return Ok(n);
            }
            if ended && self.is_in_frame {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}

/// What its library says, with what is a limit called one.
fn of_zstd(error: io::Error) -> io::Error {
    if error.to_string() == "Allocation error : not enough memory" {
        return io::ErrorKind::OutOfMemory.into();
    }
    if error.to_string() != "Frame requires too much memory for decoding" {
        return error;
    }
    let why = "the zstd data needs a window of more than 2 GiB, which its library refuses";
    io::Error::other(Error::new(Kind::Data, why))
}

/// Streams of xz, or one of .lzma, after whose end nothing may stand.
pub(super) struct Xz<R> {
    stream: Stream,
    from: R,
    is_alone: bool,
    has_ended: bool,
    /// Given back after the decoder.
    share: Share,
}

impl<R: BufRead> Xz<R> {
    /// Its first limit, so low that it is asked for all that the data takes.
    const LIMIT: u64 = 1;

    pub(super) fn new(from: R, share: Share) -> io::Result<Xz<R>> {
        let stream = Stream::new_stream_decoder(Self::LIMIT, liblzma::stream::CONCATENATED)?;
        Ok(Xz::of(stream, from, false, share))
    }

    pub(super) fn alone(from: R, share: Share) -> io::Result<Xz<R>> {
        let stream = Stream::new_lzma_decoder(Self::LIMIT)?;
        Ok(Xz::of(stream, from, true, share))
    }

    fn of(stream: Stream, from: R, is_alone: bool, share: Share) -> Xz<R> {
        Xz {
            stream,
            from,
            is_alone,
            has_ended: false,
            share,
        }
    }

    /// Takes the memory that the decoder has asked for. The least limit that it accepts tells how much.
    fn grow(&mut self) -> io::Result<()> {
        let (mut low, mut high) = (self.stream.memlimit(), u64::MAX >> 1);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            match self.stream.set_memlimit(middle) {
                Ok(()) => high = middle,
                Err(_) => low = middle,
            }
        }
        self.share.need(high)?;
        self.stream.set_memlimit(high)?;
        Ok(())
    }
}

impl<R: BufRead> Read for Xz<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while !self.has_ended && !to.is_empty() {
            let bytes = self.from.fill_buf()?;
            let action = match bytes.is_empty() {
                true => Action::Finish,
                false => Action::Run,
            };
            let before = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.process(bytes, to, action);
            let seen = (self.stream.total_in() - before.0) as usize;
            let n = (self.stream.total_out() - before.1) as usize;
            let ended = bytes.is_empty();
            self.from.consume(seen);
            match status {
                Err(liblzma::stream::Error::MemLimit) => self.grow()?,
                Err(liblzma::stream::Error::Mem) => return Err(io::ErrorKind::OutOfMemory.into()),
                Err(error) => return Err(error.into()),
                Ok(Status::StreamEnd) => self.has_ended = true,
                Ok(_) if ended && n == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
            }
            if n > 0 {
                return Ok(n);
            }
        }
        if self.has_ended && self.is_alone && !self.from.fill_buf()?.is_empty() {
            return Err(io::Error::other("other bytes follow its end"));
        }
        Ok(0)
    }
}

/// Frames of lz4, also of its first format, and frames to be skipped.
pub(super) struct Lz4<R: BufRead> {
    frame: FrameDecoder<Peek<R>>,
    next: Next,
    /// The block of legacy lz4 that is being read, and how much of it was.
    text: Vec<u8>,
    read: usize,
    packed: Vec<u8>,
}

/// What comes next.
enum Next {
    Start,
    Frame,
    Block,
}

impl<R: BufRead> Lz4<R> {
    pub(super) fn new(from: Peek<R>) -> Lz4<R> {
        Lz4 {
            frame: FrameDecoder::new(from),
            next: Next::Start,
            text: Vec::new(),
            read: 0,
            packed: Vec::new(),
        }
    }

    /// Decodes the next block of legacy lz4. Such a frame has no end: another one follows, or nothing.
    fn block(&mut self) -> io::Result<()> {
        let from = self.frame.get_mut();
        let size = from.magic()?.unwrap_or(u32::MAX) as usize;
        if size > LEGACY_MOST {
            self.next = Next::Start;
            return Ok(());
        }
        from.consume(4);
        self.packed.resize(size, 0);
        from.read_exact(&mut self.packed)?;
        self.text.resize(LEGACY_BLOCK, 0);
        let done = lz4_flex::block::decompress_into(&self.packed, &mut self.text);
        let n = done.map_err(|error| io::Error::other(error.to_string()))?;
        self.text.truncate(n);
        self.read = 0;
        Ok(())
    }
}

impl<R: BufRead> Read for Lz4<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = (self.text.len() - self.read).min(to.len());
            if n > 0 || to.is_empty() {
                to[..n].copy_from_slice(&self.text[self.read..][..n]);
                self.read += n;
                return Ok(n);
            }
            match self.next {
                Next::Start => {
                    let from = self.frame.get_mut();
                    match from.magic_of_data()? {
                        None => return Ok(0),
                        Some(LZ4_LEGACY) => {
                            from.consume(4);
                            self.next = Next::Block;
                        }
                        Some(_) => self.next = Next::Frame,
                    }
                }
                Next::Frame => {
                    // It pauses at the end of each frame, and takes the end of its input for one.
                    let n = self.frame.read(to)?;
                    if n == 0 && self.frame.get_ref().was_short {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    if n > 0 {
                        return Ok(n);
                    }
                    self.next = Next::Start;
                }
                Next::Block => self.block()?,
            }
        }
    }
}

/// Members of gzip, or data of zlib. What stands after the last member is left out.
pub(super) struct Deflate {
    members: rapidgzip_core::DecoderReader,
    rest: Rest,
    left_out: Arc<LeftOut>,
}

/// What stands from a place on.
enum Rest {
    File(Arc<CompressedFile>),
    Stream(Recent),
}

impl Deflate {
    pub(super) fn new(
        decoder: &rapidgzip_core::Decoder,
        compressed: Compressed,
        left_out: Arc<LeftOut>,
    ) -> io::Result<Deflate> {
        let (members, rest) = match compressed {
            Compressed::File(file) => {
                let reader = AheadReader::new(Arc::clone(&file));
                (decoder.reader(reader), Rest::File(file))
            }
            Compressed::Stream(stream) => {
                let recent = Recent::new(stream);
                let members = decoder.stream_reader(recent.clone());
                (members, Rest::Stream(recent))
            }
        };
        Ok(Deflate {
            members: members.map_err(io::Error::other)?,
            rest,
            left_out,
        })
    }

    /// Whether a failure is only that no member follows the last one.
    fn ends(&self, error: &io::Error) -> io::Result<bool> {
        let error = error.get_ref().and_then(|error| error.downcast_ref());
        let Some(DecodeError::InvalidGzip { offset, reason }) = error else {
            return Ok(false);
        };
        let is_one_byte = match reason {
            GzipErrorKind::TrailingGarbage => false,
            GzipErrorKind::Truncated => true,
            _ => return Ok(false),
        };
        match &self.rest {
            Rest::File(file) => {
                if is_one_byte && !ends_before_last_byte(file, *offset)? {
                    return Ok(false);
                }
                let rest = InOrder::from(Arc::clone(file), *offset);
                self.left_out.take(GZIP, rest)
            }
            // One byte is too few to tell the end of a member from one that is cut off.
            Rest::Stream(recent) => match recent.since(*offset).filter(|_| !is_one_byte) {
                Some(rest) => self.left_out.take(GZIP, rest),
                None => Ok(false),
            },
        }
    }
}

/// Whether a file is sound without its last byte. One byte is too few to tell the end of a member from one that is cut
/// off.
fn ends_before_last_byte(file: &Arc<CompressedFile>, offset: u64) -> io::Result<bool> {
    let reader = AheadReader::new(Arc::clone(file));
    if offset + 1 != reader.len()? {
        return Ok(false);
    }
    let all_but_one = InOrder::new(Arc::clone(file)).take(offset);
    let decoder = rapidgzip_core::Decoder::builder().build();
    let decoder = decoder.map_err(io::Error::other)?;
    Ok(decoder.decode_stream(all_but_one, &mut io::sink()).is_ok())
}

impl Read for Deflate {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self.members.read(to) {
            Err(error) => match self.ends(&error)? {
                true => Ok(0),
                false => Err(error),
            },
            read => read,
        }
    }
}

/// A stream that remembers what was last read of it, and goes on after it.
#[derive(Clone)]
struct Recent(Arc<Mutex<Remembered>>);

struct Remembered {
    stream: Box<dyn Read + Send>,
    /// The last bytes, and how many came before them.
    bytes: Vec<u8>,
    before: u64,
}

impl Recent {
    /// More than a decoder reads at once.
    const BYTES: usize = 4 << 20;

    fn new(stream: Box<dyn Read + Send>) -> Recent {
        Recent(Arc::new(Mutex::new(Remembered {
            stream,
            bytes: Vec::new(),
            before: 0,
        })))
    }

    /// All that comes from a place on, if that is remembered.
    fn since(&self, place: u64) -> Option<impl Read> {
        let mut state = lock(&self.0);
        let skip = usize::try_from(place.checked_sub(state.before)?).ok()?;
        let bytes = state.bytes.get(skip..)?.to_vec();
        let stream = std::mem::replace(&mut state.stream, Box::new(io::empty()));
        Some(io::Cursor::new(bytes).chain(stream))
    }
}

impl Read for Recent {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let mut state = lock(&self.0);
        let n = state.stream.read(to)?;
        if state.bytes.len() + n > Recent::BYTES {
            let half = state.bytes.len() / 2;
            state.before += half as u64;
            state.bytes.drain(..half);
        }
        state.bytes.extend_from_slice(&to[..n]);
        Ok(n)
    }
}
