//! The frames of one compressed file, decoded side by side: frames of zstd and lz4, and streams of bzip2, as parallel
//! compressors write them.
//!
//! A thread takes the next frames as soon as it is free, and hands on their text in pieces through a channel.
//! The reader empties one channel after the other. So memory is bounded whatever the frames are: for each thread the
//! pieces of a channel, and what a decoder needs.

use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use memchr::memmem;

use crate::input::members::{LZ4, ZSTD_HEADER, is_skippable, zstd_memory};
use crate::sync::lock;

/// Bytes of text that are handed on at once.
const PIECE: usize = 256 << 10;
/// Pieces that wait in a channel.
const WAITING: usize = 16;
/// The fewest compressed bytes that a thread takes, but for the last ones.
const PART_MIN: u64 = 256 << 10;
/// How far the file is read ahead from where a part begins.
const AHEAD: u64 = 8 << 20;
/// Bytes that the kernel reads ahead at a call, whatever the drive.
const AHEAD_AT_ONCE: u64 = 256 << 10;
/// A file whose first frame has more compressed bytes is decoded by one thread, because it may be the only one.
const FIRST_MAX: u64 = 16 << 20;

/// A piece of text, an empty one at the end of a part; or why there is no more.
type Piece = io::Result<Vec<u8>>;

/// Where the frame at a place ends, if one begins there and says so within the limit. Whether it is sound isn't looked at,
/// nor whether the file has as many bytes.
type EndOfFrame = fn(&FramePlace<'_>, u64) -> io::Result<Option<u64>>;

/// A format of frames.
#[derive(Clone, Copy)]
pub(super) struct Format {
    end: EndOfFrame,
    /// The bytes of memory that the frame at a place makes its decoder take.
    memory: fn(&FramePlace<'_>, u64) -> io::Result<u64>,
}

impl Format {
    pub(super) const ZSTD: Format = Format {
        end: zstd,
        memory: zstd_memory_at,
    };
    pub(super) const LZ4: Format = Format {
        end: lz4,
        memory: |_, _| Ok(0),
    };
    pub(super) const BZIP2: Format = Format {
        end: bzip2,
        memory: |_, _| Ok(0),
    };
}

/// What reads the text in compressed data.
pub(super) type Text = Box<dyn Read + Send>;

/// Makes the reader of the text in a part of a file.
type PartDecoder = Box<dyn Fn(Part) -> io::Result<Text> + Send>;

/// The text of all frames.
pub(super) struct Frames {
    /// Of each part the pieces, in order.
    parts: Receiver<Receiver<Piece>>,
    current: Option<Receiver<Piece>>,
    piece: Vec<u8>,
    /// How much of the piece was read.
    at: usize,
}

impl Frames {
    /// A reader of the frames of `file`, if there is more than one.
    pub(super) fn of(
        file: Arc<File>,
        format: Format,
        decoder: impl Fn(Part) -> io::Result<Text> + Send + 'static,
        threads: usize,
    ) -> io::Result<Option<Frames>> {
        if threads < 2 {
            return Ok(None);
        }
        let limit = FIRST_MAX;
        let first = (format.end)(&FramePlace { file: &file, limit }, 0)?;
        let more = match first {
            Some(end) => read_at(&file, &mut [0], end)? > 0,
            None => false,
        };
        if !more {
            return Ok(None);
        }
        let (send, parts) = sync_channel(threads);
        let walk = Arc::new(Mutex::new(Walk {
            format,
            decoder: Box::new(decoder),
            file,
            next: Some(0),
            ahead: 0,
            parts: send,
        }));
        for number in 0..threads {
            let walk = Arc::clone(&walk);
            let thread = std::thread::Builder::new().name(format!("decoder-{number}"));
            match thread.spawn(move || decode(&walk)) {
                Ok(_) => {}
                Err(_) if number == 0 => return Ok(None),
                // Fewer threads do as well.
                Err(_) => break,
            }
        }
        Ok(Some(Frames {
            parts,
            current: None,
            piece: Vec::new(),
            at: 0,
        }))
    }
}

impl Read for Frames {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() && !to.is_empty() {
            let Some(part) = &self.current else {
                match self.parts.recv() {
                    Ok(part) => self.current = Some(part),
                    Err(_) => return Ok(0),
                }
                continue;
            };
            // A part without an end is one whose thread has failed.
            let piece = part
                .recv()
                .unwrap_or_else(|_| Err(io::Error::other("a decoder has failed")));
            (self.piece, self.at) = (piece?, 0);
            if self.piece.is_empty() {
                self.current = None;
            }
        }
        let rest = &self.piece[self.at..];
        let n = rest.len().min(to.len());
        to[..n].copy_from_slice(&rest[..n]);
        self.at += n;
        Ok(n)
    }
}

/// What is left of a file.
struct Walk {
    format: Format,
    decoder: PartDecoder,
    file: Arc<File>,
    /// Where the next part begins, if there is one.
    next: Option<u64>,
    /// Up to where the kernel was asked to read ahead.
    ahead: u64,
    parts: SyncSender<Receiver<Piece>>,
}

impl Walk {
    /// What decodes the next part, and where its text goes; nothing where there is none, or nobody reads.
    fn next(&mut self) -> Option<(io::Result<Text>, SyncSender<Piece>)> {
        let start = self.next.take()?;
        let (send, receive) = sync_channel(WAITING);
        self.parts.send(receive).ok()?;
        Some((self.part(start), send))
    }

    /// Has the kernel read ahead from a place on. The walk and the decoders want the same bytes, in different steps.
    fn read_ahead(&mut self, start: u64) {
        use rustix::fs::{Advice, fadvise};
        self.ahead = self.ahead.max(start);
        while self.ahead < start + AHEAD {
            let len = NonZeroU64::new(AHEAD_AT_ONCE);
            // Advice; its failure is harmless.
            let _ = fadvise(&*self.file, self.ahead, len, Advice::WillNeed);
            self.ahead += AHEAD_AT_ONCE;
        }
    }

    fn part(&mut self, start: u64) -> io::Result<Text> {
        self.read_ahead(start);
        let mut end = start;
        let at = FramePlace {
            file: &self.file,
            limit: u64::MAX,
        };
        let mut memory = 0;
        self.next = loop {
            memory = memory.max((self.format.memory)(&at, end)?);
            match (self.format.end)(&at, end)? {
                Some(next) if read_at(&self.file, &mut [0], next)? > 0 => {
                    end = next;
                    if end - start >= PART_MIN {
                        break Some(end);
                    }
                }
                // The last frame, or what is none: it is for the decoder to judge.
                _ => {
                    end = u64::MAX;
                    break None;
                }
            }
        };
        (self.decoder)(Part {
            file: Arc::clone(&self.file),
            at: start,
            end,
            memory,
        })
    }
}

/// Decodes one part after the other.
fn decode(walk: &Mutex<Walk>) {
    loop {
        // A thread that has failed has left a part without an end.
        let next = lock(walk).next();
        let Some((reader, to)) = next else {
            return;
        };
        // Where nobody reads any more there is nothing to do.
        let done = reader.map_err(Some).and_then(|reader| hand_on(reader, &to));
        match done {
            Ok(()) => {}
            Err(Some(error)) => drop(to.send(Err(error))),
            Err(None) => return,
        }
    }
}

/// Sends a text in pieces, and an empty one after it.
///
/// # Errors
/// Why it can't be read on, or nothing if nobody wants it.
fn hand_on(mut from: impl Read, to: &SyncSender<Piece>) -> Result<(), Option<io::Error>> {
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        let read = (&mut from).take(PIECE as u64).read_to_end(&mut piece);
        // A decoder isn't read again after its end.
        let is_last = piece.len() < PIECE;
        // What stands before a damaged place is text, too.
        if !piece.is_empty() {
            to.send(Ok(piece)).map_err(|_| None)?;
        }
        read.map_err(Some)?;
        if is_last {
            return to.send(Ok(Vec::new())).map_err(|_| None);
        }
    }
}

/// A part of a file, from its start.
pub(super) struct Part {
    file: Arc<File>,
    at: u64,
    end: u64,
    memory: u64,
}

impl Part {
    /// The memory that its decoder takes at most.
    pub(super) fn memory(&self) -> u64 {
        self.memory
    }

    /// Whether no part follows it.
    pub(super) fn is_last(&self) -> bool {
        self.end == u64::MAX
    }
}

impl Read for Part {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let wanted = to.len().min(left);
        let n = self.file.read_at(&mut to[..wanted], self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

/// A file, and the place from which on frames aren't looked for.
pub(super) struct FramePlace<'a> {
    file: &'a File,
    limit: u64,
}

impl FramePlace<'_> {
    /// The bytes from `at` on, if there are as many.
    fn bytes<const N: usize>(&self, at: u64) -> io::Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        let is_whole = at < self.limit && read_at(self.file, &mut bytes, at)? == N;
        Ok(is_whole.then_some(bytes))
    }
}

/// The end of a frame to be skipped.
fn skipped(at: &FramePlace<'_>, start: u64) -> io::Result<Option<u64>> {
    let size = at.bytes::<4>(start + 4)?.map(u32::from_le_bytes);
    Ok(size.map(|size| start + 8 + u64::from(size)))
}

fn zstd_memory_at(at: &FramePlace<'_>, start: u64) -> io::Result<u64> {
    let mut head = [0; ZSTD_HEADER];
    let n = read_at(at.file, &mut head, start)?;
    Ok(zstd_memory(&head[..n]).unwrap_or(0))
}

/// RFC 8878, 3.1.
fn zstd(at: &FramePlace<'_>, start: u64) -> io::Result<Option<u64>> {
    let Some([head @ .., flags, _, _, _]) = at.bytes::<8>(start)? else {
        return Ok(None);
    };
    match u32::from_le_bytes(head) {
        magic if is_skippable(magic) => return skipped(at, start),
        0xfd2f_b528 => {}
        _ => return Ok(None),
    }
    let is_single = flags >> 5 & 1;
    let size = match flags >> 6 {
        0 => u64::from(is_single),
        power => 1 << power,
    };
    let dictionary = [0, 1, 2, 4][usize::from(flags & 3)];
    let mut block = start + 5 + u64::from(1 - is_single) + dictionary + size;
    loop {
        let Some([low, middle, high]) = at.bytes::<3>(block)? else {
            return Ok(None);
        };
        let head = u32::from_le_bytes([low, middle, high, 0]);
        block += 3 + match head >> 1 & 3 {
            // One byte that comes again and again.
            1 => 1,
            3 => return Ok(None),
            _ => u64::from(head >> 3),
        };
        if head & 1 == 1 {
            let has_checksum = flags >> 2 & 1;
            return Ok(Some(block + 4 * u64::from(has_checksum)));
        }
    }
}

/// The frame format of lz4, version 1.6.
fn lz4(at: &FramePlace<'_>, start: u64) -> io::Result<Option<u64>> {
    let Some([head @ .., flags]) = at.bytes::<5>(start)? else {
        return Ok(None);
    };
    match u32::from_le_bytes(head) {
        magic if is_skippable(magic) => return skipped(at, start),
        LZ4 if flags >> 6 == 1 => {}
        _ => return Ok(None),
    }
    let flag = |bit: u8| u64::from(flags >> bit & 1);
    let mut block = start + 7 + 8 * flag(3) + 4 * flag(0);
    loop {
        let Some(size) = at.bytes::<4>(block)?.map(u32::from_le_bytes) else {
            return Ok(None);
        };
        block += 4;
        if size == 0 {
            return Ok(Some(block + 4 * flag(2)));
        }
        block += u64::from(size & 0x7fff_ffff) + 4 * flag(4);
    }
}

/// A stream of bzip2 doesn't tell its length: it ends where the next one begins with what a stream's first bits are.
fn bzip2(at: &FramePlace<'_>, start: u64) -> io::Result<Option<u64>> {
    const FIRST: &[u8] = b"BZh";
    /// Behind them the size of blocks, and what a block or the stream's end begins with.
    const MORE: usize = 7;
    let find = memmem::Finder::new(FIRST);
    let mut bytes = vec![0; PIECE];
    let mut from = start + 1;
    while from < at.limit {
        let n = read_at(at.file, &mut bytes, from)?;
        for found in find.find_iter(&bytes[..n]) {
            let more = &bytes[found + FIRST.len()..n];
            if let Some((
                b'1'..=b'9',
                [0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] | [0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..],
            )) = more.split_first()
            {
                return Ok(Some(from + found as u64));
            }
        }
        if n < bytes.len() {
            return Ok(None);
        }
        // The first bytes may be cut.
        from += (n - FIRST.len() - MORE) as u64;
    }
    Ok(None)
}

/// Reads as many bytes as there are, or as wanted.
fn read_at(file: &File, to: &mut [u8], mut at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < to.len() {
        match file.read_at(&mut to[done..], at) {
            Ok(0) => break,
            Ok(n) => {
                done += n;
                at += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use lz4_flex::frame::{FrameEncoder, FrameInfo};

    use super::*;

    /// A text that is hard to compress.
    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let byte = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        (0..len).map(byte).collect()
    }

    fn texts() -> [Vec<u8>; 4] {
        [noise(5), Vec::new(), vec![b'a'; 300_000], noise(700_000)]
    }

    /// Each frame ends where the next one begins, however it is written. Cut short it has no end, or one after the file.
    fn check(end_of_frame: EndOfFrame, frames: &[Vec<u8>], is_told: bool) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&frames.concat()).unwrap();
        let (mut start, len) = (0, frames.concat().len() as u64);
        let at = |limit| FramePlace { file: &file, limit };
        for (number, frame) in frames.iter().enumerate() {
            let end = start + frame.len() as u64;
            let found = end_of_frame(&at(u64::MAX), start).unwrap();
            let is_known = is_told || number + 1 < frames.len();
            assert_eq!(found, is_known.then_some(end), "frame {number}");
            assert_eq!(end_of_frame(&at(start), start).unwrap(), None);
            start = end;
        }
        for less in (1..len.min(40)).chain([len / 2, len - 1]) {
            file.set_len(len - less).unwrap();
            let last = len - frames[frames.len() - 1].len() as u64;
            let found = end_of_frame(&at(u64::MAX), last).unwrap();
            assert!(found.is_none_or(|end| end == len), "{less}");
        }
    }

    #[test]
    fn ends_of_zstd_frames() {
        for (has_checksum, has_size, is_single) in [
            (false, false, false),
            (true, true, false),
            (true, true, true),
        ] {
            let frames = texts().map(|text| {
                let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
                encoder.include_checksum(has_checksum).unwrap();
                encoder.include_contentsize(has_size).unwrap();
                if has_size {
                    encoder
                        .set_pledged_src_size(Some(text.len() as u64))
                        .unwrap();
                }
                if is_single {
                    return zstd::bulk::compress(&text, 1).unwrap();
                }
                encoder.write_all(&text).unwrap();
                encoder.finish().unwrap()
            });
            let skipped = [
                &0x184d_2a53_u32.to_le_bytes()[..],
                &3_u32.to_le_bytes(),
                b"abc",
            ]
            .concat();
            let [one, two, three, four] = frames;
            check(zstd, &[one, skipped, two, three, four], true);
        }
    }

    #[test]
    fn ends_of_lz4_frames() {
        for (has_checksums, has_size) in [(false, false), (true, false), (true, true)] {
            let frames = texts().map(|text| {
                let info = FrameInfo::new()
                    .content_size(has_size.then_some(text.len() as u64))
                    .content_checksum(has_checksums)
                    .block_checksums(has_checksums);
                let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
                encoder.write_all(&text).unwrap();
                encoder.finish().unwrap()
            });
            check(lz4, &frames, true);
        }
    }

    #[test]
    fn ends_of_bzip2_streams() {
        let frames = texts().map(|text| {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(&text).unwrap();
            encoder.finish().unwrap()
        });
        check(bzip2, &frames, false);
    }

    #[test]
    fn other_bytes_have_no_frames() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&noise(100_000)).unwrap();
        let at = FramePlace {
            file: &file,
            limit: u64::MAX,
        };
        for end_of_frame in [zstd, lz4, bzip2] {
            assert_eq!(end_of_frame(&at, 0).unwrap(), None);
            assert_eq!(end_of_frame(&at, 99_998).unwrap(), None);
        }
    }

    fn plain(part: Part) -> io::Result<Text> {
        Ok(Box::new(part))
    }

    /// Of a file the parts that its bytes are divided into, of 300,000 bytes.
    const THIRDS: Format = Format {
        end: |_, start| Ok(Some(start + 300_000)),
        memory: |_, _| Ok(0),
    };

    #[test]
    fn parts_come_in_order() {
        let mut file = tempfile::tempfile().unwrap();
        let text = noise(5_000_001);
        file.write_all(&text).unwrap();
        let file = Arc::new(file);
        for threads in [2, 3, 16] {
            let mut frames = Frames::of(Arc::clone(&file), THIRDS, plain, threads)
                .unwrap()
                .unwrap();
            let mut got = Vec::new();
            frames.read_to_end(&mut got).unwrap();
            assert!(got == text);
            assert_eq!(frames.read(&mut [0; 9]).unwrap(), 0);
            // One that nobody reads to its end.
            let mut frames = Frames::of(Arc::clone(&file), THIRDS, plain, threads)
                .unwrap()
                .unwrap();
            frames.read_exact(&mut got[..1_000_000]).unwrap();
        }
        assert!(
            Frames::of(Arc::clone(&file), THIRDS, plain, 1)
                .unwrap()
                .is_none()
        );
    }

    /// A decoder that fails loses nothing that stands before, and what is after it isn't text.
    #[test]
    fn failures_come_in_order() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&noise(5_000_001)).unwrap();
        let file = Arc::new(file);
        let panics = |part: Part| match part.at {
            1_500_000 => panic!("a decoder that fails"),
            _ => plain(part),
        };
        let fails = |part: Part| match part.at {
            1_500_000 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => plain(part),
        };
        for decoder in [panics as fn(Part) -> io::Result<Text>, fails] {
            let mut frames = Frames::of(Arc::clone(&file), THIRDS, decoder, 3)
                .unwrap()
                .unwrap();
            let mut got = Vec::new();
            frames.read_to_end(&mut got).unwrap_err();
            assert_eq!(got.len(), 1_500_000);
        }
    }
}
