//! What is read: open files, and the spans of them.

pub(crate) mod caching;
#[cfg(feature = "cli")]
pub(crate) mod descriptors;
pub(crate) mod head;
pub(crate) mod load;
pub(crate) mod peeked;
pub(crate) mod source;
pub(crate) mod spans;
