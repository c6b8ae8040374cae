//! Blocks, records, and where records end: pure code, without I/O or threads.

pub(crate) mod block;
pub mod bytes;
pub(crate) mod framing;
pub mod lines;
pub mod nuls;
pub(crate) mod quoted;
pub(crate) mod stitch;
