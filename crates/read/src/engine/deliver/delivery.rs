//! What every engine does with a block once it has it: the limit on records, the sink, and the
//! lowest of all failures.

use std::any::Any;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::engine::arena::Slot;
use crate::engine::cancellation::{CancellationToken, Unwound};
use crate::engine::config::Config;
use crate::engine::deliver::states::States;
use crate::engine::deliver::stream_lines::StreamLines;
use crate::engine::deliver::watch::Watchdog;
use crate::engine::sink::{BlockError, Ordered, Sink};
use crate::engine::window::Window;
use crate::error::refusal::Refusal;
use crate::error::{Error, Kind, OutOfMemory, Result};
use crate::input::spans::Input;
use crate::record::block::{Block, LongRecord, SharedPages};
use crate::record::framing::{Framing, State};
use crate::record::nuls;
use crate::record::stitch::Release;
use crate::sync::lock;

/// The way from an engine to its sink.
pub(crate) struct Delivery<'a> {
    pub(crate) input: &'a Input,
    sink: &'a dyn Sink,
    config: &'a Config,
    pub(crate) watch: &'a Watchdog,
    pub(crate) framing: &'a dyn Framing,
    pub(crate) max_record: usize,
    /// Of a record that is no more than this over the limit the sink takes the start.
    pub(crate) reach: Option<u64>,
    /// With a stateful framing: the states where files are cut.
    pub(crate) states: Option<States>,
    /// Whether blocks may lie in pages that other processes can write to.
    pub(crate) shared_pages: Option<SharedPages>,
    order: Option<(&'a dyn Ordered, Arc<Window>)>,
    /// The lines of streams.
    pub(crate) lines: Option<StreamLines>,
    failed: AtomicBool,
    cancelled: AtomicBool,
    lowest: Mutex<Option<Failure>>,
    blocks: AtomicU64,
}

/// A failure, and the file and byte from which on nothing counts any more.
struct Failure {
    place: (u32, u64),
    error: Error,
}

impl<'a> Delivery<'a> {
    pub(crate) fn new(
        input: &'a Input,
        sink: &'a dyn Sink,
        config: &'a Config,
        watch: &'a Watchdog,
    ) -> Self {
        let framing = sink.framing();
        let states = || States::new(input.states(framing));
        let ordered = sink.order();
        Delivery {
            input,
            sink,
            config,
            watch,
            framing,
            max_record: config.max_record,
            reach: sink.cut_reach().filter(|_| !framing.is_stateful()),
            states: framing.is_stateful().then(states),
            shared_pages: sink.shared_pages(),
            order: ordered.map(|ordered| (ordered, Window::new(ordered.window()))),
            lines: (framing.line_end()).and_then(|end| StreamLines::new(input, end)),
            failed: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            lowest: Mutex::new(None),
            blocks: AtomicU64::new(0),
        }
    }

    /// The window of a sink that wants order.
    pub(crate) fn window(&self) -> Option<&Arc<Window>> {
        self.order.as_ref().map(|(_, window)| window)
    }

    /// All blocks of a sequence number have been delivered.
    pub(crate) fn finish(&self, sequence: u64) {
        if let Some((ordered, window)) = &self.order {
            ordered.finished(window.finish(sequence));
        }
    }

    /// Hands a block to the sink, unless an earlier part of the input has failed already.
    pub(crate) fn deliver(&self, block: &Block<'_>) {
        self.deliver_if(block, || None);
    }

    /// The same for bytes that may turn out not to have been there: what `broken` says afterwards
    /// counts before what the sink made of them.
    pub(crate) fn deliver_if(&self, block: &Block<'_>, broken: impl FnOnce() -> Option<Error>) {
        let place = (block.file(), block.offset());
        if self.passed(place) {
            return;
        }
        let state = self.framing.at_record(block.offset());
        let over = match block.cut() {
            None => (self.framing).oversized(state, block.bytes(), self.max_record),
            Some(_) => None,
        };
        if let Some(over) = over.as_ref().filter(|_| self.reach.is_some()) {
            self.deliver_around(block, over.start);
            return broken().into_iter().for_each(|error| self.fail(error));
        }
        let fit = over
            .as_ref()
            .map_or(*block, |over| block.prefix(over.start));
        let done = match fit.bytes() {
            [] => Ok(Ok(())),
            _ => catch_unwind(AssertUnwindSafe(|| self.sink.block(&fit))),
        };
        if let Some(error) = broken() {
            return self.fail(error);
        }
        if let Some(lines) = &self.lines {
            let (malformed, length) = match &done {
                Ok(Err(BlockError::Malformed(malformed))) => {
                    (malformed.start, malformed.start as u64)
                }
                _ => (fit.bytes().len(), fit.length()),
            };
            let place = block.offset()..block.offset() + length;
            lines.add(block.file(), place, &block.bytes()[..malformed]);
        }
        match done {
            Ok(Ok(())) => {}
            Ok(Err(BlockError::Malformed(malformed))) => {
                let bytes = malformed.start as u64..malformed.end as u64;
                let bytes = block.offset() + bytes.start..block.offset() + bytes.end;
                let error = Error::new(Kind::Data, malformed.cause);
                self.fail_at(block.file(), bytes, error);
            }
            Ok(Err(BlockError::Sink(error))) => self.fail_from((0, 0), error),
            Err(panic) if panic.is::<Unwound>() => self.fail_from((0, 0), Error::cancelled()),
            Err(panic) => {
                if let Some(OutOfMemory(bytes)) = panic.downcast_ref() {
                    let error = format!("no memory for a table of {bytes} bytes");
                    let errno = io::Error::from_raw_os_error(libc::ENOMEM);
                    let error = Error::new(Kind::Engine, error).with_errno(&errno);
                    return self.fail_from((0, 0), error);
                }
                let cause = format!("a worker panicked over this block: {}", words(&*panic));
                let end = block.offset() + block.bytes().len() as u64;
                let error = Error::new(Kind::Panic, cause);
                self.fail_at(block.file(), block.offset()..end, error);
            }
        }
        if let Some(over) = over {
            let has_nuls = nuls::run(&block.bytes()[over.clone()]).is_some();
            self.oversized(block.file(), block.offset() + over.start as u64, has_nuls);
        }
        self.blocks.fetch_add(1, Relaxed);
        self.watch.count(block.length());
    }

    /// Hands over a block in which a record, the first at `over`, or several are over the limit: what is between them, and the
    /// start of each.
    #[cold]
    fn deliver_around(&self, block: &Block<'_>, over: usize) {
        let mut rest = *block;
        let mut next = Some(over);
        while let Some(over) = next {
            if over > 0 {
                self.deliver(&rest.prefix(over));
            }
            let long = rest.suffix(over);
            let end = self.framing.first_end(State::START, long.bytes());
            let end = end.unwrap_or(long.bytes().len());
            let mut record = self.gathered(long.offset());
            record.extend(&long.bytes()[..end]);
            self.deliver_cut(block.file(), block.sequence(), record);
            rest = long.suffix(end);
            let over = (self.framing).oversized(State::START, rest.bytes(), self.max_record);
            next = over.map(|over| over.start);
        }
        if !rest.bytes().is_empty() {
            self.deliver(&rest);
        }
    }

    /// A record to be gathered, which begins at `offset`.
    pub(crate) fn gathered(&self, offset: u64) -> LongRecord {
        LongRecord::new(offset, self.max_record, self.reach)
    }

    /// Hands over a record that was gathered.
    pub(crate) fn deliver_gathered(&self, file: u32, sequence: u64, record: LongRecord) {
        match record.cut.left_out {
            0 => self.deliver(&record.bytes.block(file, record.offset, sequence)),
            _ => self.deliver_cut(file, sequence, record),
        }
    }

    /// Hands over the start of a record, with an end after it.
    fn deliver_cut(&self, file: u32, sequence: u64, record: LongRecord) {
        if record.is_beyond() {
            return self.oversized(file, record.offset, record.has_nuls());
        }
        let (mut start, offset, mut cut) = (record.bytes, record.offset, record.cut);
        let end = self.framing.line_end().unwrap_or(b'\n');
        match start.bytes().last() {
            Some(last) if *last == end && cut.left_out == 0 => cut.left_out = 1,
            _ => start.extend(&[end]),
        }
        self.deliver(&start.block(file, offset, sequence).with_cut(Some(cut)));
    }

    /// Works on a released buffer. Its slot is returned when this is done.
    pub(crate) fn deliver_ready(&self, ready: Ready) {
        let (file, sequence, release) = (ready.file, ready.sequence, ready.release);
        if !release.range.is_empty() {
            let (range, offset) = (release.range, release.offset);
            self.deliver(&release.piece.block(range, file, offset, sequence));
        }
        if let Some(record) = release.gathered {
            self.deliver_gathered(file, sequence, record);
        }
    }

    /// A record that begins at `offset` is over the limit.
    pub(crate) fn oversized(&self, file: u32, offset: u64, has_nuls: bool) {
        let max_record = self.max_record;
        let error = Error::from(Refusal::Exceeded {
            max_record,
            has_nuls,
        });
        self.fail_at(file, offset..offset + max_record as u64, error);
    }

    /// Something failed at these bytes of a file.
    pub(crate) fn fail_at(&self, file: u32, bytes: Range<u64>, error: Error) {
        let name = self.input.sources()[file as usize].name();
        self.fail(error.in_file(file, name).at_bytes(bytes));
    }

    /// Keeps the failure if it is the lowest so far.
    pub(crate) fn fail(&self, error: Error) {
        self.fail_from(error.place(), error);
    }

    fn fail_from(&self, place: (u32, u64), error: Error) {
        let mut lowest = lock(&self.lowest);
        if lowest.as_ref().is_none_or(|known| place < known.place) {
            *lowest = Some(Failure { place, error });
        }
        drop(lowest);
        self.failed.store(true, Relaxed);
        if let Some((ordered, window)) = &self.order {
            ordered.failed(place.0, place.1);
            window.wakes.wake();
        }
        if let Some(states) = &self.states {
            states.wakes.wake();
        }
    }

    /// Whether something before this place has failed, or the whole run was given up, so that it
    /// doesn't matter any more.
    pub(crate) fn passed(&self, place: (u32, u64)) -> bool {
        let after_failure = || {
            let lowest = lock(&self.lowest);
            lowest.as_ref().is_some_and(|known| known.place <= place)
        };
        self.watch.overdue().is_some()
            || self.is_cancelled()
            || self.failed.load(Relaxed) && after_failure()
    }

    /// Whether the run was cancelled. The first to see it wakes all others.
    fn is_cancelled(&self) -> bool {
        let token = self.config.cancellation.as_ref();
        let is_cancelled = token.is_some_and(CancellationToken::is_cancelled);
        if is_cancelled && !self.cancelled.swap(true, Relaxed) {
            self.fail_from((0, 0), Error::cancelled());
        }
        is_cancelled
    }

    /// Waits until the run is cancelled, for ever if it never is.
    pub(crate) async fn cancelled(&self) {
        match &self.config.cancellation {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
        self.is_cancelled();
    }

    /// How many blocks were delivered.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks.load(Relaxed)
    }

    /// The lowest failure, if there was one.
    pub(crate) fn outcome(&self) -> Result<()> {
        let lowest = lock(&self.lowest);
        lowest
            .as_ref()
            .map_or(Ok(()), |known| Err(known.error.clone()))
    }
}

/// What a panic says.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let string = || panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(string).unwrap_or_default()
}

/// A released buffer with its place in the input.
pub(crate) struct Ready {
    pub(crate) file: u32,
    pub(crate) sequence: u64,
    pub(crate) release: Release<Slot>,
}
