//! From bytes to rows: the fields of a window, and the numbers in them.

pub(crate) mod decode;
pub(crate) mod index;
pub(crate) mod millionths;
pub(crate) mod prefetch;
pub(crate) mod scalar;
pub(crate) mod window;
