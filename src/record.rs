//! Blocks, records, and where records end: pure code, without I/O or threads.

pub(crate) mod block;
pub(crate) mod bytes;
pub(crate) mod framing;
pub(crate) mod lines;
pub(crate) mod masks;
pub(crate) mod nuls;
#[cfg(target_arch = "x86_64")]
pub(crate) mod places;
pub(crate) mod quoted;
pub(crate) mod stitch;
