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
pub(crate) mod cache;
pub(crate) mod cancellation;
pub(crate) mod changes;
#[cfg(feature = "decompress")]
pub(crate) mod compressed;
pub(crate) mod config;
pub(crate) mod deliver;
pub(crate) mod engines;
pub(crate) mod knobs;
pub(crate) mod lines;
pub(crate) mod local;
pub(crate) mod notice;
pub(crate) mod observer;
pub(crate) mod plan;
pub(crate) mod pool;
pub(crate) mod ring;
pub(crate) mod run;
pub(crate) mod sink;
pub(crate) mod stats;
pub(crate) mod strategy;
pub(crate) mod wakes;
pub(crate) mod window;
