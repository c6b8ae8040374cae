//! Engines with a dispatcher: the trait `Ring`, and its implementations.

#[cfg(feature = "decompress")]
pub(crate) mod ahead;
pub(crate) mod dispatcher;
mod in_flight;
pub(crate) mod memory;
pub(crate) mod observed;
pub(crate) mod raw;
pub(crate) mod read;
mod readable;
pub(crate) mod rings;
pub(crate) mod seam;
pub(crate) mod setup;
#[cfg(test)]
mod tests;
pub(crate) mod uring;
mod wakeup;
