//! What `ringfold`, which is made of this crate, uses of it beside the public face, with methods that the documentation
//! leaves out. It may change at any time.
//!
//! The job needs kernels over bytes and the lines of records, `probe` asks by the engines' own functions, and both share
//! words for numbers, names and the kernel's files.

pub use crate::engine::arena::{Arena, Layout, Slot};
pub use crate::engine::cache::residency;
pub use crate::engine::cancellation::cancellable;
pub use crate::engine::lines::before as lines_before;
pub use crate::engine::plan::sizing;
pub use crate::engine::run::line_of;
pub use crate::error::{OutOfMemory, describe, errno_name};
#[cfg(feature = "decompress")]
pub use crate::input::decode::reopened;
pub use crate::input::descriptors::raise_descriptor_limit;
pub use crate::input::foreign;
pub use crate::input::head;
pub use crate::input::load::load;
pub use crate::level::Level;
#[cfg(target_arch = "x86_64")]
pub use crate::level::{Avx2, Avx512};
pub use crate::linux::{calls, cgroups, heap, mounts, pages, proc, reads, smaps};
pub use crate::record::block::{Cut, Padded};
pub use crate::record::framing::texts;
pub use crate::record::stitch::{Oversized, Piece, Release, Stitcher};
pub use crate::record::{bytes, lines, nuls};
pub use crate::sync::lock;
pub use crate::visible::visible;

/// Vector instructions in safe code.
pub mod isa {
    pub use crate::isa::*;
}

/// Prefetch instructions.
pub mod prefetch {
    pub use crate::prefetch::{into_l1, into_l2};
}

/// Numbers in words.
pub mod units {
    pub use crate::units::{GIB, counted, grouped, rate, size};
}

/// Runs that a seed decides.
#[cfg(fuzzing)]
pub mod simulated {
    pub use crate::simulated::{Schedule, fold};
}

/// The ring as the probe asks for it.
pub mod uring {
    pub use crate::engine::ring::setup::{Setup, retry_nomem};
    pub use crate::engine::ring::uring::{kernel_is_trusted, probe};
}
