//! What is read: open files, and the spans of them.

#[cfg(feature = "decompress")]
pub(crate) mod ahead;
pub(crate) mod begin;
pub(crate) mod caching;
#[cfg(feature = "decompress")]
pub(crate) mod codec;
#[cfg(feature = "decompress")]
pub(crate) mod decode;
pub(crate) mod descriptors;
pub mod foreign;
#[cfg(feature = "decompress")]
mod frames;
pub mod head;
pub(crate) mod load;
#[cfg(feature = "decompress")]
mod members;
#[cfg(feature = "decompress")]
mod memory;
pub(crate) mod object;
pub(crate) mod peeked;
pub(crate) mod source;
pub(crate) mod spans;
mod text;
