//! Where bytes go.

pub mod file;

pub use file::{Output, OutputError, is_closed_pipe};
