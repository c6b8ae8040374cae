//! What every engine does with a block once it has it: the limit on records, the sink, and the
//! lowest of all failures.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::engine::arena::Slot;
use crate::engine::config::Config;
use crate::engine::deliver::watch::Watch;
use crate::engine::sink::Sink;
use crate::error::{Error, Kind, Result};
use crate::input::spans::Input;
use crate::record::block::Block;
use crate::record::framing::Delimited;
use crate::record::stitch::Release;

/// The way from an engine to its sink.
pub(crate) struct Delivery<'a> {
    input: &'a Input,
    sink: &'a dyn Sink,
    config: &'a Config,
    pub(crate) watch: &'a Watch,
    pub(crate) framing: Delimited,
    pub(crate) max_record: usize,
    failed: AtomicBool,
    lowest: Mutex<Option<Error>>,
    blocks: AtomicU64,
}

impl<'a> Delivery<'a> {
    pub(crate) fn new(
        input: &'a Input,
        sink: &'a dyn Sink,
        config: &'a Config,
        watch: &'a Watch,
    ) -> Self {
        Delivery {
            input,
            sink,
            config,
            watch,
            framing: config.framing,
            max_record: config.max_record,
            failed: AtomicBool::new(false),
            lowest: Mutex::new(None),
            blocks: AtomicU64::new(0),
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
        let over = self.framing.oversized(block.bytes(), self.max_record);
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
        let source = &self.input.sources()[block.file() as usize];
        match done {
            Ok(Ok(())) => {}
            Ok(Err(malformed)) if malformed.innocent => {
                self.fail(Error::new(Kind::Io, malformed.cause));
            }
            Ok(Err(malformed)) => self.fail(
                Error::new(Kind::Data, malformed.cause)
                    .in_file(source.index(), source.name())
                    .at_bytes(
                        block.offset() + malformed.start as u64
                            ..block.offset() + malformed.end as u64,
                    ),
            ),
            Err(panic) => {
                let text = panic
                    .downcast_ref::<&str>()
                    .map(ToString::to_string)
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_default();
                let end = block.offset() + block.bytes().len() as u64;
                self.fail(
                    Error::new(
                        Kind::Panic,
                        format!("a worker panicked over this block: {text}"),
                    )
                    .in_file(source.index(), source.name())
                    .at_bytes(block.offset()..end),
                );
            }
        }
        if let Some(over) = over {
            self.oversized(block.file(), block.offset() + over.start as u64);
        }
        self.blocks.fetch_add(1, Relaxed);
        if let Some(progress) = &self.config.progress {
            progress.fetch_add(block.bytes().len() as u64, Relaxed);
        }
    }

    /// Works on a released buffer. It goes home when this returns.
    pub(crate) fn deliver_ready(&self, ready: Ready) {
        let Ready {
            file,
            sequence,
            release,
        } = ready;
        let Release {
            piece,
            range,
            offset,
            gathered,
            ..
        } = release;
        if !range.is_empty() {
            self.deliver(&piece.block(range, file, offset, sequence));
        }
        if let Some((bytes, offset)) = gathered {
            self.deliver(&bytes.block(file, offset, sequence));
        }
    }

    /// A record that begins at `offset` is over the limit.
    pub(crate) fn oversized(&self, file: u32, offset: u64) {
        let max = self.max_record;
        let cause = format!("a record of more than {max} bytes: raise --max-record");
        self.fail_at(
            file,
            offset..offset + max as u64,
            Error::new(Kind::Data, cause),
        );
    }

    /// Something failed at these bytes of a file.
    pub(crate) fn fail_at(&self, file: u32, bytes: std::ops::Range<u64>, error: Error) {
        let name = self.input.sources()[file as usize].name();
        self.fail(error.in_file(file, name).at_bytes(bytes));
    }

    /// Keeps the failure if it is the lowest so far.
    pub(crate) fn fail(&self, error: Error) {
        let mut lowest = self.lowest.lock().unwrap_or_else(|e| e.into_inner());
        if lowest
            .as_ref()
            .is_none_or(|known| error.place() < known.place())
        {
            *lowest = Some(error);
        }
        self.failed.store(true, Relaxed);
    }

    /// Whether something before this place has failed, or the whole run was given up, so that it
    /// doesn't matter any more.
    pub(crate) fn passed(&self, place: (u32, u64)) -> bool {
        let behind_a_failure = || {
            let lowest = self.lowest.lock().unwrap_or_else(|e| e.into_inner());
            lowest.as_ref().is_some_and(|error| error.place() <= place)
        };
        self.watch.overdue().is_some() || self.failed.load(Relaxed) && behind_a_failure()
    }

    /// How many blocks were delivered.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks.load(Relaxed)
    }

    /// The lowest failure, if there was one.
    pub(crate) fn outcome(&self) -> Result<()> {
        self.lowest
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .clone()
            .map_or(Ok(()), Err)
    }
}

/// A released buffer with its place in the input.
pub(crate) struct Ready {
    pub(crate) file: u32,
    pub(crate) sequence: u64,
    pub(crate) release: Release<Slot>,
}
