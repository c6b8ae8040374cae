//! Where bytes go.

pub(crate) mod file;
pub(crate) mod ordered;

pub use file::{Output, OutputError, is_closed_pipe};
