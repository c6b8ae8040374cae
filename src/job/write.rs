//! Runs a transforming job and writes what it makes: in the input's order, or as it comes.

mod ordered;
mod unordered;

use std::io::Write;

use ringfold_read::{Config, Input, Result, Stats};

use crate::job::transform::Transform;

/// Has a job make bytes of an input's records, and writes them in the input's order on a thread of its own.
///
/// Memory is bounded, however slow `out` is: no block is handed out that is more than a fixed number ahead of the first
/// that isn't written. `out` is flushed whenever there is nothing to be written yet.
///
/// For a job that doesn't keep order the workers write themselves, one at a time.
///
/// # Errors
/// See [`run`](crate::run), and what `out` fails with: [`Kind::ClosedPipe`](crate::Kind::ClosedPipe) where nobody reads it any more. After a
/// failure what was written is whole: all that becomes of the records before it. Without order it may also be of records
/// behind it.
pub fn transform<T: Transform>(
    input: &Input,
    config: &Config,
    job: &T,
    out: &mut (dyn Write + Send),
) -> Result<Stats> {
    match job.keeps_order() {
        true => ordered::transform(input, config, job, out),
        false => unordered::transform(input, config, job, out),
    }
}
