//! The contract between an engine and what takes its blocks.

use std::ops::Range;

use crate::engine::window::Finished;
use crate::error::refusal::Refusal;
use crate::error::{Cause, Error};
use crate::record::block::{Block, Cut, SharedPages};
use crate::record::framing::{Delimited, Framing};
use crate::record::nuls;

/// Receives blocks.
pub trait Sink: Sync {
    /// Where records end. Engines cut by it, and the record limit and the line numbers of errors go by it. It is the
    /// same for the whole of a run. Lines, unless a sink says otherwise.
    fn framing(&self) -> &dyn Framing {
        &Delimited::NEWLINE
    }

    /// Whether blocks may lie in pages that other processes can write to, which saves a copy of what is cached. No, unless
    /// a sink gives its word.
    fn shared_pages(&self) -> Option<SharedPages> {
        None
    }

    /// How many bytes over the limit a record may be for the sink to refuse it or leave it out: it comes alone in a block,
    /// without what is after its start. Otherwise it ends the run. It has no effect where the framing has a state.
    #[doc(hidden)]
    fn cut_reach(&self) -> Option<u64> {
        None
    }

    /// Takes a block, on any thread, in any order, several at the same time.
    ///
    /// # Errors
    /// The lowest record of the block that can't be taken, or the sink's own failure. Blocks before it are still
    /// delivered, and of all failures of a run the lowest is reported; a failure of the sink's own is lower than all.
    fn block(&self, block: &Block<'_>) -> Result<(), BlockError>;

    /// For a sink that puts its results into the input's order. `None` leaves the order free.
    fn order(&self) -> Option<&dyn Ordered> {
        None
    }
}

/// A sink that wants order. Blocks still come on any thread and at the same time, but not far ahead of each other:
/// blocks carry a [`sequence`](Block::sequence) number, which grows with their place in the input, and the sink learns
/// when all blocks of a number have come.
pub trait Ordered: Sync {
    /// How many sequence numbers the window has. No block is handed out that is so many numbers or more ahead of the
    /// first number that isn't retired. With 1, blocks come one at a time, in the input's order.
    fn window(&self) -> u64;

    /// Called when all blocks of a sequence number have been taken. There may have been none, or several. Numbers begin
    /// at 0. Each finishes once, in any order. Dropping a [`Finished`] retires its number, and the window moves on when
    /// its first number is retired. A sink that holds results keeps the [`Finished`] with them.
    fn finished(&self, finished: Finished) {
        drop(finished);
    }

    /// Called when something has failed at this byte of this file. The answer ends there: blocks after it don't count,
    /// even if they have been taken. It may be called several times; the lowest place counts.
    fn failed(&self, file: u32, offset: u64) {
        let _ = (file, offset);
    }
}

/// Why a block can't be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockError {
    /// A record of it is malformed.
    Malformed(Malformed),
    /// The sink itself has failed, for example to write a file. The run ends with this error, which names no record.
    Sink(Error),
}

/// A record that can't be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Its first byte, from the block's start.
    pub start: usize,
    /// One past its last byte, the line's end not counted.
    pub end: usize,
    /// What is wrong with it.
    pub cause: Cause,
}

impl Malformed {
    /// A run of bytes of zero in a record at `at` of a block.
    #[doc(hidden)]
    pub fn hole(run: Range<usize>, at: usize, is_hinted: bool) -> Malformed {
        Malformed {
            start: at + run.start,
            end: at + run.end,
            cause: nuls::cause(run.len() as u64, is_hinted),
        }
    }

    /// What is wrong with a record at `at` of a block, which is over the limit and was cut.
    #[doc(hidden)]
    pub fn too_long(record: &[u8], at: usize, cut: Cut, is_hinted: bool) -> Malformed {
        match nuls::run(record) {
            Some(run) if run.end == record.len() => {
                let end = run.end + cut.nuls as usize;
                Malformed::hole(run.start..end, at, is_hinted)
            }
            Some(run) => Malformed::hole(run, at, is_hinted),
            None => {
                let max_record = cut.max_record;
                Malformed {
                    start: at,
                    end: at + max_record,
                    cause: Refusal::Exceeded {
                        max_record,
                        has_nuls: false,
                    }
                    .into(),
                }
            }
        }
    }
}

impl From<Malformed> for BlockError {
    fn from(malformed: Malformed) -> Self {
        BlockError::Malformed(malformed)
    }
}

impl From<Error> for BlockError {
    fn from(error: Error) -> Self {
        BlockError::Sink(error)
    }
}
