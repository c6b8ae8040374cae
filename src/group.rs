//! Group-by: count, sum, least and greatest of the numbers under each key, exactly.

pub(crate) mod aggregate;
pub(crate) mod decimal;
pub(crate) mod hint;
pub(crate) mod level;
pub(crate) mod memory;
#[doc(hidden)]
pub mod passes;
pub(crate) mod scan;
pub(crate) mod summary;
pub(crate) mod table;

pub use aggregate::{Aggregate, OnError, Partial};
pub use decimal::{DIGITS_MAX, Exact, Fixed};
pub use level::Level;
pub use summary::{Entry, Summary};
