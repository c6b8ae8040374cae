//! The contract of all jobs: a partial result per worker, blocks folded into it, partials merged,
//! the whole finished. Jobs know blocks and no engine.

use std::sync::{Arc, Mutex};

use rayon::prelude::*;

use crate::engine::config::Config;
use crate::engine::run::run_then;
use crate::engine::sink::{BlockError, Ordered, Sink};
use crate::engine::stats::Stats;
use crate::error::{Error, Kind, Result};
use crate::input::spans::Input;
use crate::record::block::{Block, SharedPages};
use crate::record::framing::{Delimited, Framing};
use crate::sync::lock;

/// A job.
///
/// Blocks reach a partial in any order, and any number of partials share them out, so `merge` must
/// be associative and commutative in its result.
///
/// ```
/// use ringfold_read::{Block, BlockError, Config, Fold, Input, fold};
///
/// /// The length of the longest line.
/// struct Longest;
///
/// impl Fold for Longest {
///     type Partial = usize;
///     type Output = usize;
///
///     fn partial(&self) -> usize {
///         0
///     }
///     fn block(&self, longest: &mut usize, block: &Block<'_>) -> Result<(), BlockError> {
///         let lines = block.bytes().split(|&byte| byte == b'\n');
///         *longest = lines.map(<[u8]>::len).fold(*longest, usize::max);
///         Ok(())
///     }
///     fn merge(&self, into: &mut usize, from: usize) {
///         *into = usize::max(*into, from);
///     }
///     fn finish(&self, longest: usize) -> usize {
///         longest
///     }
/// }
///
/// let input = Input::memory([&b"a\nabc\nab\n"[..]]);
/// let config = Config { engine: ringfold_read::Engine::Memory, ..Config::default() };
/// let (longest, _) = fold(&input, &config, &Longest)?;
/// assert_eq!(longest, 3);
/// # Ok::<(), ringfold_read::Error>(())
/// ```
pub trait Fold: Sync {
    /// What is known of some of the blocks.
    type Partial: Send;
    /// What is known in the end.
    type Output: Send;

    /// A partial that has seen nothing.
    fn partial(&self) -> Self::Partial;

    /// Makes the partials of a run. They may know of each other; unless a job says otherwise, they
    /// don't.
    fn partials(&self) -> impl Fn() -> Self::Partial + Sync {
        || self.partial()
    }

    /// Where records end: lines, unless a job says otherwise.
    fn framing(&self) -> &dyn Framing {
        &Delimited::NEWLINE
    }

    /// Whether blocks may lie in pages that other processes can write to. No, unless a job gives its word.
    fn shared_pages(&self) -> Option<SharedPages> {
        None
    }

    /// How many bytes over the limit a record may be for the job to refuse it or leave it out, see [`Sink::cut_reach`].
    #[doc(hidden)]
    fn cut_reach(&self) -> Option<u64> {
        None
    }

    /// Adds a block.
    ///
    /// # Errors
    /// The lowest malformed record of the block, or the job's own failure.
    fn block(&self, partial: &mut Self::Partial, block: &Block<'_>) -> Result<(), BlockError>;

    /// Whether blocks must come one at a time, in the input's order. Asked before each run.
    fn in_order(&self) -> bool {
        false
    }

    /// Adds one partial to another.
    fn merge(&self, into: &mut Self::Partial, from: Self::Partial);

    /// Does what is left to do once all blocks were added.
    ///
    /// # Errors
    /// Only now it is known that the job has failed. The run ends with this error.
    fn complete(&self, total: &mut Self::Partial) -> Result<()> {
        let _ = total;
        Ok(())
    }

    /// Called when a run has failed. The partials have seen all blocks before the failure, and perhaps some after it.
    /// With `Ok` the input is read once more.
    ///
    /// # Errors
    /// What the run ends with: `error` itself, unless the job knows better.
    fn failed(&self, error: Error, partials: Vec<Self::Partial>) -> Result<()> {
        let _ = partials;
        Err(error)
    }

    /// Makes the result of the partial that has seen everything.
    fn finish(&self, total: Self::Partial) -> Self::Output;
}

/// Folds an input through an engine.
///
/// # Errors
/// See [`run`](crate::run).
pub fn fold<F: Fold>(input: &Input, config: &Config, job: &F) -> Result<(F::Output, Stats)> {
    let mut repeated = None;
    let delivered = Arc::default();
    loop {
        let input = repeated.as_ref().unwrap_or(input);
        let partials = PartialPool {
            job,
            partial: job.partials(),
            idle: Mutex::new(Vec::new()),
            in_order: job.in_order(),
        };
        let ran = run_then(input, config, &partials, &delivered, || {
            let mut total = partials.total();
            job.complete(&mut total).map(|()| job.finish(total))
        });
        match ran {
            Ok((stats, output)) => return Ok((output?, stats)),
            Err(error) if error.kind() == Kind::Cancelled => return Err(error),
            Err(error) => job.failed(error, partials.returned())?,
        }
        repeated = Some(input.repeated()?);
    }
}

/// Lends a partial to each buffer for as long as it is worked on: it has one owner at any time,
/// needs no lock while it grows, and as the last one returned is the next one lent there are never
/// more than workers, and the one lent is the one whose memory is still in the cache.
struct PartialPool<'a, F: Fold, P> {
    job: &'a F,
    partial: P,
    idle: Mutex<Vec<F::Partial>>,
    in_order: bool,
}

impl<F: Fold, P: Fn() -> F::Partial + Sync> PartialPool<'_, F, P> {
    /// All partials in one.
    fn total(&self) -> F::Partial {
        let merge = |mut a, b| {
            self.job.merge(&mut a, b);
            a
        };
        let total = self.returned().into_par_iter().reduce_with(merge);
        total.unwrap_or_else(&self.partial)
    }
}

impl<F: Fold, P> PartialPool<'_, F, P> {
    /// All partials.
    fn returned(&self) -> Vec<F::Partial> {
        std::mem::take(&mut *lock(&self.idle))
    }
}

impl<F: Fold, P: Fn() -> F::Partial + Sync> Sink for PartialPool<'_, F, P> {
    fn framing(&self) -> &dyn Framing {
        self.job.framing()
    }

    fn shared_pages(&self) -> Option<SharedPages> {
        self.job.shared_pages()
    }

    fn cut_reach(&self) -> Option<u64> {
        self.job.cut_reach()
    }

    fn block(&self, block: &Block<'_>) -> Result<(), BlockError> {
        let lent = lock(&self.idle).pop();
        let mut partial = lent.unwrap_or_else(&self.partial);
        let done = self.job.block(&mut partial, block);
        lock(&self.idle).push(partial);
        done
    }

    fn order(&self) -> Option<&dyn Ordered> {
        self.in_order.then_some(&OneAtATime)
    }
}

/// Blocks in the input's order, one after the other.
struct OneAtATime;

impl Ordered for OneAtATime {
    fn window(&self) -> u64 {
        1
    }
}
