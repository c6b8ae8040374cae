//! What is read: open files, and the spans of them.

#[cfg(feature = "cli")]
pub(crate) mod descriptors;
pub(crate) mod load;
pub(crate) mod source;
pub(crate) mod spans;
