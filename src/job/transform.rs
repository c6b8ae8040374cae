//! The second kind of job: a block in, bytes out.

use ringfold_read::{Block, BlockError, Delimited, Framing};

/// A job that makes bytes of records.
///
/// ```
/// use ringfold::{Block, BlockError, Config, Input, Transform, transform};
///
/// /// A text in upper case.
/// struct Upper;
///
/// impl Transform for Upper {
///     fn block(&self, block: &Block<'_>, out: &mut Vec<u8>) -> Result<(), BlockError> {
///         out.extend(block.bytes().iter().map(u8::to_ascii_uppercase));
///         Ok(())
///     }
/// }
///
/// let input = Input::memory([&b"one\ntwo\n"[..], b"three\n"]);
/// let mut out = Vec::new();
/// transform(&input, &Config::default(), &Upper, &mut out)?;
/// assert_eq!(out, b"ONE\nTWO\nTHREE\n");
/// # Ok::<(), ringfold::Error>(())
/// ```
pub trait Transform: Sync {
    /// Where records end: lines, unless a job says otherwise.
    fn framing(&self) -> &dyn Framing {
        &Delimited::NEWLINE
    }

    /// Whether what becomes of the records is written in the input's order, as it is unless a job says otherwise. If not,
    /// each block's bytes are written as soon as they are made.
    fn keeps_order(&self) -> bool {
        true
    }

    /// Adds to `out`, which is empty, what becomes of the records of a block. Blocks come on any thread and in any
    /// order.
    ///
    /// # Errors
    /// The lowest malformed record of the block, or the job's own failure. Then `out` holds what becomes of the records
    /// before it, and nothing of it or of those behind it.
    fn block(&self, block: &Block<'_>, out: &mut Vec<u8>) -> Result<(), BlockError>;
}
