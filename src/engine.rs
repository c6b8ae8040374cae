//! The contract of all engines, and the choice among them.
//!
//! An engine delivers every record of the input's spans exactly once, in blocks of whole records,
//! in any order and from any thread, to a [`Sink`] that knows nothing of the engine. No engine
//! knows a job.
//!
//! | engine | who reads | what lies between |
//! |---|---|---|
//! | `uring` | one thread, many reads in flight through a tokio-uring ring | dispatcher |
//! | `uring-raw` | a thread a ring, on the raw interface: for experiments | dispatchers |
//! | `read` | one thread, `read()` after `read()` | dispatcher |
//! | `memory` | nobody: the file lies in memory | dispatcher |
//! | `pread` | each worker its own blocks | nothing |
//! | `mmap` | each worker looks at its own blocks in the page cache | nothing |
//! | `auto` | the workers what is cached, the ring with O_DIRECT what isn't, at the same time | |

pub(crate) mod arena;
mod bell;
mod cache;
mod claims;
mod delivery;
mod dispatcher;
mod knobs;
mod local;
mod mapping;
mod memory;
mod pin;
mod priority;
mod read;
pub(crate) mod residency;
pub(crate) mod retry;
mod ring;
mod rings;
pub(crate) mod room;
pub(crate) mod run;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod simulated;
pub(crate) mod smaps;
#[cfg(test)]
mod tests;
pub(crate) mod uring;
mod uring_raw;
mod watch;
mod ways;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::block::Block;
use crate::error::{Error, Kind};
use crate::framing::Delimited;

pub use knobs::{FileAdvice, HugePages, Knobs, MapAdvice, TaskRun};
pub use run::run;
pub(crate) use run::run_then;

/// A page: what the kernel caches and maps by.
pub(crate) const PAGE: usize = 4096;
/// A huge page: what it takes to map much memory by few entries.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// How the input is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// Chooses by what is cached, falling back where something can't be had.
    #[default]
    Auto,
    /// Many reads in flight through io_uring.
    Uring,
    /// The same without tokio-uring: one ring or several, with every switch that the kernel has.
    UringRaw,
    /// `read()` after `read()`.
    Read,
    /// Each worker reads its own blocks.
    Pread,
    /// Each worker maps its own blocks.
    Mmap,
    /// Loads everything into memory first.
    Memory,
}

impl Engine {
    /// All engines.
    pub const ALL: [Engine; 7] = [
        Engine::Auto,
        Engine::Uring,
        Engine::UringRaw,
        Engine::Read,
        Engine::Pread,
        Engine::Mmap,
        Engine::Memory,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Auto => "auto",
            Engine::Uring => "uring",
            Engine::UringRaw => "uring-raw",
            Engine::Read => "read",
            Engine::Pread => "pread",
            Engine::Mmap => "mmap",
            Engine::Memory => "memory",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Engine::ALL.into_iter().find(|engine| engine.name() == name);
        found.ok_or_else(|| Error::new(Kind::Usage, format!("no engine is called {name}")))
    }
}

/// Receives blocks.
pub trait Sink: Sync {
    /// Takes a block, on any thread, in any order, several at the same time.
    ///
    /// # Errors
    /// The lowest record of the block that can't be taken. Blocks before it are still delivered,
    /// and of all failures of a run the lowest is reported.
    fn block(&self, block: &Block<'_>) -> Result<(), Malformed>;

    /// For a sink that puts its results into the input's order and must not hold too many of them:
    /// no block is handed out that is this many ahead of the first unfinished one, as long as no
    /// read has failed. With one, blocks come one at a time, in the input's order; `None` leaves
    /// the order free.
    fn window(&self) -> Option<u64> {
        None
    }
}

/// A record that can't be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Its first byte, from the block's start.
    pub start: usize,
    /// One past its last byte, the line's end not counted.
    pub end: usize,
    /// What is wrong with it.
    pub cause: String,
    /// Whether the record is innocent, because what failed is the sink's own, as a file that it
    /// writes: then the run ends with the cause alone, without file, bytes and line.
    pub innocent: bool,
}

/// How to read. `None` lets the engine choose.
#[derive(Clone)]
pub struct Config {
    /// Which engine.
    pub engine: Engine,
    /// Past the page cache, with O_DIRECT.
    pub direct: bool,
    /// Bytes that one read brings.
    pub block_size: Option<usize>,
    /// Reads in flight.
    pub queue_depth: Option<usize>,
    /// Buffers of the ring; at least two.
    pub buffers: Option<usize>,
    /// Worker threads.
    pub threads: Option<usize>,
    /// The longest record in bytes, its delimiter not counted.
    pub max_record: usize,
    /// The kernel's switches.
    pub knobs: Knobs,
    /// Where records end.
    pub framing: Delimited,
    /// Counts the bytes delivered while the run goes on.
    pub progress: Option<Arc<AtomicU64>>,
    /// How long a read may take. When one takes longer, the run ends with an error that names its
    /// file and bytes (`ETIMEDOUT`). Pipes, terminals and other streams may take their time.
    ///
    /// A read that got no answer can't be taken back. With the engines `uring` and `uring-raw`, and
    /// what `auto` reads by a ring, the call returns without it, and the ring, its buffers and its
    /// descriptors stay behind for as long as the process lives, because the kernel may still write
    /// to them. With the others a thread of the run sits in the kernel: the call returns, with the
    /// error, only when the kernel lets that thread go. Who can't wait for that ends the process, see
    /// [`Config::overdue`].
    pub io_timeout: Option<Duration>,
    /// Is told, on a thread of its own, that a read has taken longer than `io_timeout`, before the
    /// call returns with this error, if it ever can. The program `ringfold` ends itself here.
    pub overdue: Option<Arc<Overdue>>,
    /// How long a read may take before there is a notice of it, and then after each such time.
    pub silence: Duration,
    /// Gets what the user should know while the run goes on: a fallback, a device that is silent.
    pub notice: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Is told of a read that has taken too long: [`Config::overdue`].
pub type Overdue = dyn Fn(&Error) + Send + Sync;

impl Default for Config {
    fn default() -> Self {
        Config {
            engine: Engine::Auto,
            direct: false,
            block_size: None,
            queue_depth: None,
            buffers: None,
            threads: None,
            max_record: 1 << 20,
            knobs: Knobs::default(),
            framing: Delimited::NEWLINE,
            progress: None,
            io_timeout: None,
            overdue: None,
            silence: Duration::from_secs(30),
            notice: Arc::new(|_| {}),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("engine", &self.engine)
            .field("direct", &self.direct)
            .field("block_size", &self.block_size)
            .field("queue_depth", &self.queue_depth)
            .field("buffers", &self.buffers)
            .field("threads", &self.threads)
            .field("max_record", &self.max_record)
            .field("knobs", &self.knobs)
            .field("framing", &self.framing)
            .field("io_timeout", &self.io_timeout)
            .finish_non_exhaustive()
    }
}

/// What a run did.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Stats {
    /// What read the input.
    pub engine: String,
    /// Why that, where there was a choice.
    pub engine_reason: String,
    /// Bytes of the input that the spans cover, or that came from streams.
    pub bytes: u64,
    /// Bytes read through the ring past the page cache or not, by `read` or from memory.
    pub dispatched_bytes: u64,
    /// Bytes that workers read into a buffer of their own.
    pub copied_bytes: u64,
    /// Bytes that workers looked at where they lie in the page cache.
    pub mapped_bytes: u64,
    /// Blocks delivered.
    pub blocks: u64,
    /// Reads done.
    pub reads: u64,
    /// Reads that brought less than was asked for and were gone on with.
    pub short_reads: u64,
    /// Reads that failed for a passing cause and were done again.
    pub retries: u64,
    /// The time from the first read to the last block, in seconds.
    pub elapsed_s: f64,
    /// Time in which a read could have been submitted, but all buffers were with workers.
    pub starved_s: f64,
    /// Worker threads.
    pub threads: usize,
    /// Bytes a read.
    pub block_size: usize,
    /// Reads in flight allowed, and the most there were.
    pub queue_depth: usize,
    /// The most reads that were in flight.
    pub max_in_flight: usize,
    /// Buffers.
    pub buffers: usize,
    /// Anonymous memory of all buffers, fixed before the first read.
    pub buffer_bytes: u64,
    /// How much of it the kernel has put into huge pages.
    pub huge_page_bytes: u64,
    /// Of which kind: `thp`, `hugetlb`, or empty where there are none.
    pub huge_pages: String,
    /// Whether the ring's buffers were registered with the kernel.
    pub registered_buffers: bool,
    /// Entries of the ring's submission queue; 0: there was no ring.
    pub entries: u32,
    /// The kernel thread that polled for submissions, and where it may run.
    pub sqpoll: Option<String>,
    /// Whether reads were punted to the kernel's worker threads.
    pub async_reads: bool,
    /// How many of those were allowed, where that was limited.
    pub async_workers_allowed: Option<u32>,
    /// How many of them there were when the last read was done.
    pub async_workers: usize,
    /// When the ring's completion work ran, where that was said.
    pub task_run: Option<String>,
    /// Whether reads left nothing in the page cache.
    pub dontcache: bool,
    /// What the kernel was told of the files: what was named, or `random` in a control group that has
    /// no room for the kernel's read-ahead.
    pub fadvise: Option<String>,
    /// Bytes that the kernel was asked to read ahead.
    pub readahead_bytes: u64,
    /// What the kernel was told of mapped windows.
    pub map_advice: Option<String>,
    /// The processors that the workers were held to, in turn.
    pub pinned_cpus: Vec<u32>,
    /// Rings of `uring-raw`; depth and in flight are those of each.
    pub rings: usize,
    /// The kernel's switches that were in force on them, by the kernel's names.
    pub ring_flags: Vec<String>,
    /// Their calls of `io_uring_enter`.
    pub enters: u64,
    /// How long a read was allowed to take, in seconds, where that was limited and there were reads
    /// that it holds for.
    pub io_timeout_s: Option<f64>,
    /// Flags that were given and have no effect on this engine.
    pub without_effect: Vec<String>,
}
