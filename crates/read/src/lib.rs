//! Blocks of whole records from large files, on all processors.
//!
//! A program says **what to read**: an [`Input`] of files, pipes or texts in memory, whole or in [parts](Input::part), as
//! they are or [decompressed](Input::decompressed).
//!
//! It says **where records end**: a [`Framing`]. Lines are the default; [`Delimited`] has another byte, [`Quoted`] newlines
//! outside of quotes.
//!
//! It says **what becomes of the blocks**. A [`Block`] is whole records in one slice, with its place in the input. A
//! [`Fold`] makes one result of all of them, for [`fold()`]. A [`Sink`] takes the blocks themselves, for [`run`], in any
//! order or in [that of the input](Ordered).
//!
//! And, if it likes, **how to read**: a [`Config`] has the [`Engine`], sizes, limits, and the kernel's switches as
//! [`Knobs`]. By default what is cached is read by the workers, and the rest through io_uring past the page cache.
//!
//! Count the newlines of a file:
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//!
//! use ringfold_read::{Block, BlockError, Config, Input, Sink, run};
//!
//! /// Blocks come on many threads at the same time.
//! #[derive(Default)]
//! struct Newlines(AtomicU64);
//!
//! impl Sink for Newlines {
//!     fn block(&self, block: &Block<'_>) -> Result<(), BlockError> {
//!         let newlines = block.bytes().iter().filter(|&&byte| byte == b'\n');
//!         self.0.fetch_add(newlines.count() as u64, Relaxed);
//!         Ok(())
//!     }
//! }
//!
//! # let path = std::env::temp_dir().join(format!("ringfold-read-{}", std::process::id()));
//! # std::fs::write(&path, "one\ntwo\n").unwrap();
//! let newlines = Newlines::default();
//! let stats = run(&Input::open([&path])?, &Config::default(), &newlines)?;
//! assert_eq!(newlines.0.into_inner(), 2);
//! println!("{} bytes in {:.3} s by {}", stats.bytes, stats.elapsed_s, stats.engine);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), ringfold_read::Error>(())
//! ```
//!
//! **What can be relied on.** Every record is delivered exactly once, by every engine. Blocks come on any thread, several
//! at the same time. Of several failures the first in the input is reported: an [`Error`] with file, bytes and line. A
//! request that can't be met fails with a [`Refusal`] that a program can match; a job's own error is a [`Cause::Job`].
//! [`Stats`] say what a run did, and [`Config::notice`] gets what the user should know meanwhile.

#[cfg(not(target_os = "linux"))]
compile_error!("ringfold-read uses io_uring and other Linux calls: it builds for Linux only");

// The modules in the order of the data's way, after what all of them stand on.

mod isa;
mod level;
mod prefetch;
mod sync;
mod units;
mod visible;

mod error;
mod linux;

mod input;
mod record;

mod engine;

mod fold;
#[cfg(fuzzing)]
mod simulated;

#[doc(hidden)]
pub mod internals;

pub use engine::cancellation::CancellationToken;
pub use engine::config::{Config, Engine, Overdue, Progress, RingDefaults};
pub use engine::knobs::{CacheUse, FileAdvice, HugePages, Knobs, MapAdvice, TaskRun};
pub use engine::notice::Notice;
pub use engine::observer::Observer;
pub use engine::pool::pool;
pub use engine::run::run;
pub use engine::sink::{BlockError, Malformed, Ordered, Sink};
pub use engine::stats::Stats;
pub use engine::window::Finished;
pub use error::refusal::{Facility, Fields, Foreign, Refusal, Refuser, Speller};
pub use error::setting::{Choice, Setting};
pub use error::{Cause, Error, Kind, Result};
pub use fold::{Fold, fold};
pub use input::begin::Begin;
pub use input::object::Object;
pub use input::source::Source;
pub use input::spans::{Input, Span};
pub use linux::sigbus::decline_sigbus_handler;
pub use record::block::{Block, PADDING, PaddedBuf, SharedPages};
pub use record::framing::{Delimited, Effect, Framing, STATES_MAX, State};
pub use record::quoted::Quoted;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
