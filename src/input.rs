//! What is read: open files, and the spans of them.

pub(crate) mod descriptors;
pub(crate) mod load;
pub mod source;
pub mod spans;
