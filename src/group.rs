//! Group-by: count, sum, least and greatest of the numbers under each key, exactly.
//!
//! `aggregate` is the job. The data goes through `scan` (bytes to rows) and `table` (rows to statistics
//! by key, as `accumulate` keeps them) to the `summary`; `spill` bounds the memory.

pub(crate) mod accumulate;
pub(crate) mod aggregate;
pub(crate) mod hint;
pub(crate) mod scan;
pub(crate) mod spill;
pub(crate) mod stages;
pub(crate) mod summary;
pub(crate) mod table;

pub use accumulate::decimal::{DIGITS_MAX, Exact, Fixed};
pub use aggregate::{Aggregate, OnError, Partial};
pub use summary::{Entry, Skipped, Summary};
