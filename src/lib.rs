//! Group-by over text at the speed of the drive.
//!
//! The data's way, and the order of the modules: a [`source`] is cut into spans; an [`engine`]
//! reads them into [`block`]s of whole records, which [`stitch`] puts together by a [`framing`]; a
//! job [`mod@fold`]s the blocks.
//!
//! A [`report`] goes to an [`output`]; [`generate`] makes input to try it on;
//! [`mod@probe`] tells what the machine and a file allow.
//!
//! The binary does the jobs that come with it; a Rust program can fold its own with [`fold()`].

#[cfg(not(target_os = "linux"))]
compile_error!("ringfold reads through io_uring and other Linux calls: it builds for Linux only");

pub mod error;
pub mod source;

pub mod engine;

pub mod block;
pub mod framing;
pub mod stitch;

pub mod fold;

pub mod report;

pub mod generate;
pub mod output;

pub mod probe;
mod sigbus;
mod system;

pub use block::{Block, PADDING, PaddedBuf};
pub use engine::{Config, Engine, Malformed, Sink, Stats, run};
pub use error::{Error, Kind, Result};
pub use fold::{Fold, fold};
pub use framing::{Delimited, Framing};
pub use source::{Input, Source, Span};
