//! Group-by over text at the speed of the drive, and any other job over the records of large files.
//!
//! An [`Input`] is read by an [`Engine`] in blocks of whole records, on all processors; a job folds them. Which
//! engine reads, and how, a [`Config`] says. By default, what is cached is read by the workers and the
//! rest through io_uring past the page cache. Several files are one input.
//!
//! A debug build of a program that uses this crate is slow: a query over 41 MB took 23 s. With these lines in the program's
//! `Cargo.toml` it took 0.7 s (two busy cores):
//!
//! ```toml
//! [profile.dev.package]
//! ringfold.opt-level = 3
//! ringfold-read.opt-level = 3
//! ```
//!
//! The reader alone, for a program that wants blocks of records and nothing else, is the crate `ringfold-read`.
//!
//! Count the lines of a file:
//!
//! ```
//! use ringfold::job::Count;
//! use ringfold::{Config, Input, fold};
//!
//! # let path = std::env::temp_dir().join(format!("ringfold-lines-{}", std::process::id()));
//! # std::fs::write(&path, "one\ntwo\n").unwrap();
//! let input = Input::open([&path])?;
//! let (counted, stats) = fold(&input, &Config::default(), &Count { delimiter: b'\n' })?;
//! assert_eq!(counted[0].records, 2);
//! println!("{} bytes in {:.3} s by {}", stats.bytes, stats.elapsed_s, stats.engine);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), ringfold::Error>(())
//! ```
//!
//! Group records by a column, exactly, and look at the rows:
//!
//! ```
//! use ringfold::query::Query;
//! use ringfold::report::grid::{Cell, Rows};
//! use ringfold::{Config, Input, fold};
//!
//! let input = Input::memory([&b"Bern;7.5\nOslo;-3.0\nBern;8.5\n"[..]]);
//! let config = Config::default();
//! let query = Query::new(b';').key(1).aggregate("mean", Some(2.into()))?;
//! let (answer, _) = fold(&input, &config, &query.plan(&input, &config)?)?;
//! let mut cells = Vec::new();
//! answer.row(0, &mut cells);
//! assert_eq!(cells, [Cell::Text(b"Bern"), Cell::Number("8.000".into())]);
//! # Ok::<(), ringfold::Error>(())
//! ```
//!
//! A job of one's own is a [`Fold`]: what one worker knows, how a block adds to it, how two of them merge:
//!
//! ```
//! use ringfold::{Block, BlockError, Config, Fold, Input, fold};
//!
//! /// How often a word stands in the text.
//! struct Find(&'static str);
//!
//! impl Fold for Find {
//!     type Partial = u64;
//!     type Output = u64;
//!
//!     fn partial(&self) -> u64 {
//!         0
//!     }
//!     fn block(&self, found: &mut u64, block: &Block<'_>) -> Result<(), BlockError> {
//!         // Whole lines: no word is cut.
//!         let text = String::from_utf8_lossy(block.bytes());
//!         *found += text.matches(self.0).count() as u64;
//!         Ok(())
//!     }
//!     fn merge(&self, into: &mut u64, from: u64) {
//!         *into += from;
//!     }
//!     fn finish(&self, found: u64) -> u64 {
//!         found
//!     }
//! }
//!
//! let input = Input::memory([&b"a ring\nno\n"[..], b"ring after ring\n"]);
//! let (found, _) = fold(&input, &Config::default(), &Find("ring"))?;
//! assert_eq!(found, 3);
//! # Ok::<(), ringfold::Error>(())
//! ```
//!
//! A job that makes bytes of records, written in the input's order, is a [`Transform`] for [`transform()`]. One that
//! wants the blocks themselves, in order if it likes, is a [`Sink`] for [`run`].
//!
//! What isn't available is an [`Error`] with a [`Refusal`] that a program can match. Nothing that was asked for is given up in
//! silence: [`Stats`] tell what a run did, and [`Config::notice`] gets what the user should know meanwhile.
//!
//! A run belongs to its caller: [`Config::cancellation`] ends it from another thread, [`Config::progress`] says how far it has
//! come. Of the process it changes nothing but the handler of SIGBUS, which [`decline_sigbus_handler`] says more of: no other
//! signal, no panic hook, no limit, no descriptor that it hasn't opened. Only [`query::Partial::open`] of `-` reads the standard
//! input.
//!
//! Without the feature `cli` (on by default) there is only the library.

// The modules in the order of the data's way, after what all of them stand on.

#[cfg(not(target_os = "linux"))]
compile_error!("ringfold reads through io_uring and other Linux calls: it builds for Linux only");

pub mod output;

mod refusal;

mod budget;

pub mod job;

pub mod quote;

pub mod report;

mod decimal;
mod partial;
mod sketch;

mod format;

mod aggregate;
mod expression;
mod lookup;
mod scan;
mod table;

mod spill;

mod reject;

mod answer;
mod plan;
mod run;

pub mod query;
mod saved;

#[cfg(feature = "cli")]
mod generate;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;

pub use job::transform::Transform;
pub use job::write::transform;
pub use partial::combine::Missing;
pub use partial::receipt::Receipt;
pub use ringfold_read::internals::Level;
#[doc(inline)]
pub use ringfold_read::{
    Begin, Block, BlockError, CacheUse, CancellationToken, Cause, Choice, Config, Delimited,
    Effect, Engine, Error, Facility, Fields, FileAdvice, Finished, Fold, Foreign, Framing,
    HugePages, Input, Kind, Knobs, Malformed, MapAdvice, Notice, Object, Observer, Ordered,
    Overdue, PADDING, PaddedBuf, Progress, Quoted, Refusal, Refuser, Result, RingDefaults,
    STATES_MAX, Setting, SharedPages, Sink, Source, Span, Speller, State, Stats, TaskRun,
    decline_sigbus_handler, fold, pool, run,
};

/// What benchmarks, fuzzing and the tests of the program look at. It may change at any time.
#[doc(hidden)]
pub mod internals {
    #[cfg(feature = "cli")]
    pub use crate::generate::Generate;
    pub use crate::partial::plain::PlainWriter;
    #[cfg(fuzzing)]
    pub use crate::scan::fuzzed;
    #[cfg(feature = "cli")]
    pub use ringfold_bench::measure::{cache, figures, machine, process, reads, statistics};
    #[cfg(fuzzing)]
    pub use ringfold_read::internals::simulated;
    pub use ringfold_read::internals::{Oversized, Piece, Release, Stitcher};
}
