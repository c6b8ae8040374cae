//! Records that are left out: how many, which is the first, and on request all of them.
//!
//! A partial gathers them in a buffer of bounded size, which goes to a temporary file without a name when it is full. In
//! memory stay a buffer for each partial and a [`Part`] for each stretch of a file that a partial has seen in one go. The
//! numbers of lines come from the newlines of each block, which are counted once, and are put together at the end.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use rayon::prelude::*;
use ringfold_read::internals::{
    bytes,
    lines::{Counted, Lines, Mark},
    lines_before,
};
use ringfold_read::{Block, BlockError, Cause, Config, Error, Input, Malformed, Sink, run};

use crate::budget::default_directory;
use crate::reject::skipped::Skipped;
use crate::report::grid::push_csv_text;

/// Bytes that a partial gathers before they go to the file.
const BUFFER_BYTES: usize = 1 << 20;
/// The numbers before a record's texts: byte, newlines before it in its stretch, and the lengths of the texts.
const HEAD_BYTES: usize = 8 + 8 + 4 + 4;

/// What a query does about malformed records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnError {
    /// The first one ends the run.
    #[default]
    Fail,
    /// They are left out.
    Skip,
    /// A value that isn't a number is null where numbers are wanted. Other malformed records are left out.
    Null,
}

/// How a query's malformed records are dealt with, and what all partials of a run share of them.
#[derive(Debug, Default)]
pub(crate) struct Rejecting {
    pub(crate) on_error: OnError,
    /// So many may be left out.
    most: Option<u64>,
    /// Whether the records themselves are kept.
    keeps: bool,
    /// Lines are counted: a stream can't be read again to find that of a place.
    counts_lines: bool,
    seen: AtomicU64,
    spilled: Mutex<Option<Arc<Spilled>>>,
}

/// Where something is met that is told of.
#[derive(Clone, Copy)]
pub(crate) struct Met<'a> {
    pub(crate) rejecting: &'a Rejecting,
    pub(crate) block: Block<'a>,
    /// All records of the block before that are done.
    pub(crate) done: usize,
    /// Where the record begins in the block.
    pub(crate) at: usize,
}

impl Met<'_> {
    /// The file, and the record's first byte.
    pub(crate) fn place(&self) -> (u32, u64) {
        (self.block.file(), self.block.offset() + self.at as u64)
    }
}

/// A temporary file.
#[derive(Debug)]
struct Spilled {
    file: File,
    directory: PathBuf,
    len: AtomicU64,
}

impl Rejecting {
    pub(crate) fn new(
        on_error: OnError,
        most: Option<u64>,
        keeps: bool,
        has_streams: bool,
    ) -> Rejecting {
        Rejecting {
            on_error,
            most,
            keeps,
            counts_lines: on_error != OnError::Fail || has_streams,
            ..Rejecting::default()
        }
    }

    /// Whether malformed records don't end the run.
    pub(crate) fn leaves_out(&self) -> bool {
        self.on_error != OnError::Fail
    }

    /// How many may be left out, if there were more.
    pub(crate) fn exceeded(&self) -> Option<u64> {
        self.most.filter(|&most| self.seen.load(Relaxed) > most)
    }

    /// Forgets everything, for another run.
    pub(crate) fn restart(&self) {
        self.seen.store(0, Relaxed);
        self.spilled().take();
    }

    fn spilled(&self) -> std::sync::MutexGuard<'_, Option<Arc<Spilled>>> {
        self.spilled.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Writes a buffer to the temporary file; returns where it stands there.
    fn spill(&self, bytes: &[u8]) -> Result<u64, Error> {
        let mut open = self.spilled();
        let spilled = match &mut *open {
            Some(open) => Arc::clone(open),
            none => Arc::clone(none.insert(Arc::new(Spilled::open()?))),
        };
        drop(open);
        let at = spilled.len.fetch_add(bytes.len() as u64, Relaxed);
        let written = spilled.file.write_all_at(bytes, at);
        written.map_err(|error| spilled.failed("written", &error))?;
        Ok(at)
    }
}

impl Spilled {
    fn open() -> Result<Spilled, Error> {
        let directory = default_directory();
        match tempfile::tempfile_in(&directory) {
            Ok(file) => Ok(Spilled {
                file,
                directory,
                len: AtomicU64::new(0),
            }),
            Err(error) => Err(failed(&directory, "written", &error)),
        }
    }

    fn failed(&self, what: &str, error: &io::Error) -> Error {
        failed(&self.directory, what, error)
    }
}

fn failed(directory: &Path, what: &str, error: &io::Error) -> Error {
    let directory = directory.display();
    let why = ringfold_read::internals::describe(error);
    let cause = format!("rejected records can't be {what} in {directory}: {why}");
    Error::new(ringfold_read::Kind::Io, cause).with_errno(error)
}

/// What a partial knows of records that were left out.
#[derive(Debug, Default)]
pub(crate) struct Rejected {
    pub(crate) count: u64,
    first: Option<(Skipped, Mark)>,
    lines: Lines,
    /// The block's bytes whose lines were counted.
    counted: usize,
    parts: Vec<Part>,
    buffers: Vec<Vec<u8>>,
}

/// Records of one stretch, one behind the other.
#[derive(Debug)]
struct Part {
    file: u32,
    /// Where the first of them stands.
    first: u64,
    /// Where their stretch begins.
    stretch: u64,
    /// The buffer that they are in; `None`: the temporary file.
    buffer: Option<usize>,
    at: u64,
    len: usize,
}

impl Rejected {
    /// Leaves out a record of a block. `record` is the whole of it, and `malformed` says what is wrong where.
    ///
    /// # Errors
    /// It ends the run: because it is malformed, because there are too many, or because it can't be kept.
    pub(crate) fn add(
        &mut self,
        rejecting: &Rejecting,
        block: &Block<'_>,
        record: Range<usize>,
        malformed: Malformed,
    ) -> Result<(), BlockError> {
        if !rejecting.leaves_out() {
            return Err(malformed.into());
        }
        self.count_lines(block, malformed.start);
        let mark = self.lines.mark();
        self.count += 1;
        if rejecting.keeps {
            let record = &block.bytes()[record];
            self.keep(rejecting, block, record, &malformed, mark)?;
        }
        let place = (block.file(), block.offset() + malformed.start as u64);
        let is_first =
            (self.first.as_ref()).is_none_or(|(first, _)| place < (first.file, first.bytes.start));
        let limited = rejecting.most.is_some();
        let kept = (is_first && limited).then(|| malformed.clone());
        let malformed = match is_first {
            true => {
                self.first = Some((Skipped::new(malformed, block), mark));
                kept
            }
            false => Some(malformed),
        };
        if let Some(most) = rejecting.most
            && rejecting.seen.fetch_add(1, Relaxed) >= most
        {
            return Err(malformed.expect("it was kept").into());
        }
        Ok(())
    }

    /// The mark of a place, where lines are counted.
    pub(crate) fn mark(&mut self, met: Met<'_>) -> Option<Mark> {
        if !met.rejecting.counts_lines {
            return None;
        }
        self.count_lines(&met.block, met.done.max(self.counted));
        let mut mark = self.lines.mark();
        let lines = |range: Range<usize>| bytes::count(b'\n', &met.block.bytes()[range]) as u64;
        match met.at < self.counted {
            true => mark.ends -= lines(met.at..self.counted),
            false => mark.ends += lines(self.counted..met.at),
        }
        Some(mark)
    }

    fn keep(
        &mut self,
        rejecting: &Rejecting,
        block: &Block<'_>,
        record: &[u8],
        malformed: &Malformed,
        mark: Mark,
    ) -> Result<(), BlockError> {
        if self.buffers.is_empty() {
            self.buffers.push(Vec::new());
        }
        let place = block.offset() + malformed.start as u64;
        let continues = self.parts.last().is_some_and(|part| {
            (part.file, part.stretch, part.buffer) == (block.file(), mark.from, Some(0))
        });
        let buffer = &mut self.buffers[0];
        if !continues {
            self.parts.push(Part {
                file: block.file(),
                first: place,
                stretch: mark.from,
                buffer: Some(0),
                at: buffer.len() as u64,
                len: 0,
            });
        }
        let before = buffer.len();
        let reason = reason(&malformed.cause);
        buffer.extend(place.to_le_bytes());
        buffer.extend(mark.ends.to_le_bytes());
        for text in [reason.as_bytes(), record] {
            let len = u32::try_from(text.len()).expect("a record of less than 4 GiB");
            buffer.extend(len.to_le_bytes());
        }
        buffer.extend(reason.as_bytes());
        buffer.extend(record);
        self.parts.last_mut().expect("one is open").len += buffer.len() - before;
        if buffer.len() >= BUFFER_BYTES {
            self.spill(rejecting)?;
        }
        Ok(())
    }

    /// Moves the buffer to the file.
    fn spill(&mut self, rejecting: &Rejecting) -> Result<(), Error> {
        let at = rejecting.spill(&self.buffers[0])?;
        let own = self.parts.iter_mut().rev();
        for part in own.take_while(|part| part.buffer == Some(0)) {
            (part.buffer, part.at) = (None, at + part.at);
        }
        self.buffers[0].clear();
        Ok(())
    }

    /// Counts the lines of a block up to `to`.
    fn count_lines(&mut self, block: &Block<'_>, to: usize) {
        let text = &block.bytes()[self.counted..to];
        let offset = block.offset() + self.counted as u64;
        self.lines.add(block.file(), offset, text);
        self.counted = to;
    }

    /// Says that the first `len` bytes of the block are done.
    pub(crate) fn end_block(&mut self, rejecting: &Rejecting, block: &Block<'_>, len: usize) {
        if rejecting.counts_lines {
            self.count_lines(block, len.max(self.counted));
            self.counted = 0;
        }
    }

    pub(crate) fn merge(&mut self, mut from: Rejected) {
        self.count += from.count;
        let both = self.first.take().into_iter().chain(from.first);
        self.first = both.min_by_key(|(first, _)| (first.file, first.bytes.start));
        self.lines.append(from.lines);
        let before = self.buffers.len();
        for part in &mut from.parts {
            part.buffer = part.buffer.map(|buffer| before + buffer);
        }
        self.parts.append(&mut from.parts);
        self.buffers.append(&mut from.buffers);
    }

    /// The first one with its line, and all that were kept. `see` is shown the lines.
    pub(crate) fn finish(
        mut self,
        rejecting: &Rejecting,
        see: impl FnOnce(&Counted),
    ) -> (Option<Skipped>, Option<Rejects>) {
        let lines = self.lines.sorted();
        see(&lines);
        let first = self.first.map(|(mut first, mark)| {
            first.line = lines.line(first.file, mark);
            first
        });
        self.parts.sort_by_key(|part| (part.file, part.first));
        let rejects = rejecting.keeps.then(|| Rejects {
            parts: self.parts,
            buffers: self.buffers,
            spilled: rejecting.spilled().clone(),
            lines,
        });
        (first, rejects)
    }
}

/// What is wrong with a record, without a hint.
fn reason(cause: &Cause) -> std::borrow::Cow<'_, str> {
    match cause {
        Cause::Words(words) => words.into(),
        refused => refused.to_string().into(),
    }
}

/// Records that were left out, in the order of the input.
#[derive(Debug)]
pub struct Rejects {
    parts: Vec<Part>,
    buffers: Vec<Vec<u8>>,
    spilled: Option<Arc<Spilled>>,
    lines: Counted,
}

impl Rejects {
    /// Writes them as CSV with a header: file, byte, line, what is wrong there, and the bytes of the record. The threads of
    /// the caller's rayon pool make the text.
    ///
    /// # Errors
    /// `out` can't be written, or the temporary file can't be read: an [`Error`] within the [`io::Error`].
    pub fn write(&self, input: &Input, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"file,byte,line,reason,record\n")?;
        let lines = self.lines_from_the_start(input);
        // Each is at most a buffer and a record.
        let at_once = 2 * rayon::current_num_threads();
        for parts in self.parts.chunks(at_once) {
            let texts = parts.par_iter().map(|part| self.text(part, input, &lines));
            for text in texts.collect::<Vec<_>>() {
                out.write_all(&text?)?;
            }
        }
        Ok(())
    }

    /// The numbers of lines, also in files of which only a part was read: what lies before it is read now.
    fn lines_from_the_start(&self, input: &Input) -> Counted {
        let mut lines = self.lines.clone();
        for part in &self.parts {
            let Some(from) = lines.begins_late(part.file) else {
                continue;
            };
            let all = |input: &Input, sink: &dyn Sink| run(input, &Config::default(), sink);
            if let Some(before) = lines_before(input, part.file, from, b'\n', all) {
                lines.begin(part.file, before);
            }
        }
        lines
    }

    /// The lines of a part.
    fn text(&self, part: &Part, input: &Input, lines: &Counted) -> io::Result<Vec<u8>> {
        let read;
        let mut records = match (part.buffer, &self.spilled) {
            (Some(buffer), _) => &self.buffers[buffer][part.at as usize..][..part.len],
            (None, Some(spilled)) => {
                let mut bytes = vec![0; part.len];
                let done = spilled.file.read_exact_at(&mut bytes, part.at);
                done.map_err(|error| io::Error::other(spilled.failed("read back", &error)))?;
                read = bytes;
                &read[..]
            }
            (None, None) => unreachable!("it was written to the file"),
        };
        let mut name = Vec::new();
        push_csv_text(
            input.sources()[part.file as usize].name().as_bytes(),
            &mut name,
        );
        let mut text = Vec::with_capacity(2 * part.len);
        while !records.is_empty() {
            let (head, rest) = records.split_at(HEAD_BYTES);
            let long = |at| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
            let short = |at| u32::from_le_bytes(head[at..at + 4].try_into().expect("4 bytes"));
            let (reason, rest) = rest.split_at(short(16) as usize);
            let (record, rest) = rest.split_at(short(20) as usize);
            let mark = Mark {
                from: part.stretch,
                ends: long(8),
            };
            text.extend_from_slice(&name);
            write!(text, ",{},", long(0))?;
            if let Some(line) = lines.line(part.file, mark) {
                write!(text, "{line}")?;
            }
            text.push(b',');
            push_csv_text(reason, &mut text);
            text.push(b',');
            push_csv_text(record, &mut text);
            text.push(b'\n');
            records = rest;
        }
        Ok(text)
    }
}
