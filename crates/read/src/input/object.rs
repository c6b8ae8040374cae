//! Bytes that lie elsewhere, such as an object of a store, and are fetched by ranges.

use std::fmt;
use std::io;
use std::sync::Arc;

/// Bytes that lie elsewhere, such as an object of a store. A thread of the run asks for them from the first to the last; where they
/// take long, an object fetches them ahead.
pub trait Object: Send + Sync {
    /// How many bytes there are.
    fn bytes(&self) -> u64;

    /// When they were last written to, in seconds and nanoseconds since 1970.
    fn written(&self) -> Option<(i64, i64)> {
        None
    }

    /// Reads some bytes from a place on: 0 only where there are none.
    ///
    /// # Errors
    /// They can't be read. What the error says is shown with the name and the bytes.
    fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize>;
}

/// An object of a source.
#[derive(Clone)]
pub(crate) struct SharedObject(pub(crate) Arc<dyn Object>);

impl PartialEq for SharedObject {
    fn eq(&self, other: &SharedObject) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedObject {}

impl fmt::Debug for SharedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Object")
    }
}
