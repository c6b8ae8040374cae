//! Blocks, records, and where records end: pure code, without I/O or threads.

pub(crate) mod block;
pub(crate) mod bytes;
pub(crate) mod framing;
pub(crate) mod lines;
pub(crate) mod nuls;
pub(crate) mod quoted;
pub(crate) mod stitch;
