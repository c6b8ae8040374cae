//! Group-by over text at the speed of the drive.
//!
//! The data's way, and the order of the modules: an [`input`] is cut into spans; an [`engine`] reads them into blocks
//! of whole [`record`]s; a [`job`] folds the blocks, as [`group`] does; a [`report`] goes to an [`output`].

#[cfg(not(target_os = "linux"))]
compile_error!("ringfold reads through io_uring and other Linux calls: it builds for Linux only");

pub(crate) mod units;

pub mod error;
pub(crate) mod linux;

pub mod output;

pub mod input;
pub mod record;

pub mod engine;

pub mod job;

pub mod group;

pub mod report;

#[cfg(feature = "cli")]
pub mod generate;

#[cfg(feature = "cli")]
pub mod probe;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;

pub use engine::config::{Config, Engine};
pub use engine::notice::Notice;
pub use engine::pool::pool;
pub use engine::run::run;
pub use engine::sink::{BlockError, Malformed, Ordered, Sink};
pub use engine::stats::Stats;
pub use engine::window::Finished;
pub use error::refusal::{Facility, Hint, Refusal, Refuser, Speller};
pub use error::setting::{Choice, Setting};
pub use error::{Cause, Error, Kind, Result};
pub use input::source::Source;
pub use input::spans::{Input, Span};
pub use job::fold::{Fold, fold};
pub use job::transform::{Transform, transform};
pub use record::block::{Block, PADDING, PaddedBuf};
pub use record::framing::{Delimited, Effect, Framing, Quoted, STATES_MAX, State};
