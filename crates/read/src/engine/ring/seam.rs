//! The trait below the dispatcher: a read is submitted, and completes with its slot and a count or an errno. The
//! tokio-uring ring, the raw one, sequential reads, memory and fault injection implement it.

use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::engine::arena::Slot;
use crate::error::{Error, Kind};
use crate::input::caching::Caching;
use crate::input::source::Source;

/// A read to be done.
#[derive(Debug)]
pub(crate) struct Submission {
    /// What to read from.
    pub source: Arc<Source>,
    /// Where in the source the slot's block begins.
    pub offset: u64,
    /// How many bytes of the block are wanted.
    pub len: usize,
    /// How many of them are there already: earlier, short reads have brought them, or a stream's last block has left
    /// them over.
    pub filled: usize,
    /// Where they go.
    pub slot: Slot,
    /// How it uses the page cache.
    pub caching: Caching,
    /// What it reads from, open until it completes.
    pub file: Option<Arc<File>>,
    /// Whether it is to be no part of one request with its neighbours, which aren't to be kept apart.
    pub unmerged: bool,
    /// How often it has been tried again without progress.
    pub tries: u32,
}

impl Submission {
    /// A first read of `len` bytes from `offset` on.
    pub(crate) fn new(
        source: Arc<Source>,
        offset: u64,
        len: usize,
        slot: Slot,
        caching: Caching,
    ) -> Submission {
        Submission {
            source,
            offset,
            len,
            filled: 0,
            slot,
            caching,
            file: None,
            unmerged: false,
            tries: 0,
        }
    }
}

/// A read that is done.
#[derive(Debug)]
pub(crate) struct Completion {
    /// The read, with its slot.
    pub submission: Submission,
    /// How many bytes it brought, 0 at the end of the source. A stream brings what it has when that is worth a block.
    pub result: io::Result<usize>,
}

/// A failed read, in words for the user.
pub(crate) fn failure(error: &io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ECANCELED) => {
            let cause = "the kernel has canceled the read, as it does where it can start no thread \
                         for it: see ulimit -u and the control group's pids.max";
            Error::new(Kind::Io, cause).with_errno(error)
        }
        _ => Error::io(error),
    }
}

/// Something that reads.
pub(crate) trait Ring {
    /// Queues a read.
    fn submit(&mut self, submission: Submission);

    /// Waits for a completion, in whatever order. Called only while reads are in flight; a wait
    /// that is dropped loses none.
    fn completion(&mut self) -> impl Future<Output = Completion>;

    /// A completion that needs no waiting.
    fn try_completion(&mut self) -> Option<Completion>;

    /// How many reads it can have in flight.
    fn max_depth(&self) -> usize;
}
