//! What a run is asked to do: the engine, sizes, limits, the kernel's switches.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rayon::ThreadPool;

use crate::engine::cancellation::CancellationToken;
use crate::engine::knobs::{Knobs, named};
use crate::engine::notice::Notice;
use crate::engine::observer::Observer;
use crate::error::Error;
use crate::input::caching::Caching;

named! {
    /// How the input is read.
    #[derive(Default)]
    Engine, "the engine":
    /// Chooses by what is cached, falling back where something isn't available.
    #[default]
    Auto = "auto",
    /// Many reads in flight through io_uring.
    Uring = "uring",
    /// The same without tokio-uring: one ring or several, with every switch that the kernel has.
    UringRaw = "uring-raw",
    /// `read()` after `read()`.
    Read = "read",
    /// Each worker reads its own blocks.
    Pread = "pread",
    /// Each worker maps its own blocks.
    Mmap = "mmap",
    /// Loads everything into memory first.
    Memory = "memory",
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
    /// What a ring takes where `block_size` and `queue_depth` say nothing: what was measured for a device.
    pub ring_defaults: RingDefaults,
    /// Buffers of the ring; at least two.
    pub buffers: Option<usize>,
    /// Worker threads.
    pub threads: Option<usize>,
    /// The longest record in bytes, its delimiter not counted.
    pub max_record: usize,
    /// The kernel's switches.
    pub knobs: Knobs,
    /// The threads of the run, which are the caller's own: the run starts none then, and `threads` and `pin` are the
    /// caller's matter. Who runs must not be one of them.
    pub pool: Option<Arc<ThreadPool>>,
    /// Ends the run from another thread, within 200 ms: while it reads, and while it spills, merges or sorts groups. What is in
    /// flight can't be taken back, so a device that doesn't answer, and a pipe of compressed data that brings nothing, are
    /// waited for.
    pub cancellation: Option<CancellationToken>,
    /// Called about every 100 ms, on a thread of its own, and once more when the run ends.
    pub progress: Option<Arc<Progress>>,
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
    /// Called, on a thread of its own, when a read has taken longer than `io_timeout`, before the
    /// call returns with this error, if it ever can. The program `ringfold` ends itself here.
    pub overdue: Option<Arc<Overdue>>,
    /// How long a read may take before there is a notice of it, and then after each such time.
    pub silence: Duration,
    /// Looks at the reads of rings and of `read()`, and at the threads' processor time.
    pub observer: Option<Arc<dyn Observer>>,
    /// Gets what the user should know while the run goes on: a fallback, a device that is silent.
    pub notice: Arc<dyn Fn(&Notice) + Send + Sync>,
}

/// Defaults of a ring other than the usual ones. They aren't named settings: what isn't available is given up, and workers
/// that fetch blocks by themselves don't follow them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingDefaults {
    /// Bytes that one read brings.
    pub block_size: Option<usize>,
    /// Reads in flight.
    pub queue_depth: Option<usize>,
}

/// Called with the bytes that the job has taken, and with how many there are, unless streams or compressed files are among
/// them: [`Config::progress`]. Both only grow; the latter does where an input has to be read once more. At the end of a run
/// that hasn't failed both are the same, but for a part: its records don't end where it does.
pub type Progress = dyn Fn(u64, Option<u64>) + Send + Sync;

/// Called with the error of a read that has taken too long: [`Config::overdue`].
pub type Overdue = dyn Fn(&Error) + Send + Sync;

impl Default for Config {
    fn default() -> Self {
        Config {
            engine: Engine::Auto,
            direct: false,
            block_size: None,
            queue_depth: None,
            ring_defaults: RingDefaults::default(),
            buffers: None,
            threads: None,
            max_record: 1 << 20,
            knobs: Knobs::default(),
            pool: None,
            cancellation: None,
            progress: None,
            io_timeout: None,
            overdue: None,
            silence: Duration::from_secs(30),
            observer: None,
            notice: Arc::new(|_| {}),
        }
    }
}

impl Config {
    /// How reads use the page cache where nothing else is planned. Two ways at once are refused before.
    pub(crate) fn caching(&self) -> Caching {
        match (self.direct, self.knobs.dontcache) {
            (true, _) => Caching::Direct,
            (false, true) => Caching::Uncached,
            (false, false) => Caching::Cached,
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
            .field("ring_defaults", &self.ring_defaults)
            .field("buffers", &self.buffers)
            .field("threads", &self.threads)
            .field("max_record", &self.max_record)
            .field("knobs", &self.knobs)
            .field("pool", &self.pool)
            .field("io_timeout", &self.io_timeout)
            .finish_non_exhaustive()
    }
}
