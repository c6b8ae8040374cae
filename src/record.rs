//! Blocks, records, and where records end: pure code, without I/O or threads.

pub mod block;
pub mod framing;
pub mod stitch;
