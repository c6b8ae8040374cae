//! Ends a run from another thread.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::sync::watch::Sender;

use crate::error::{Error, Kind, Result};

/// Ends runs from another thread: [`Config::cancellation`](crate::Config::cancellation). Clones are one token. What it has
/// ended stays ended.
///
/// ```
/// use ringfold_read::{CancellationToken, Config, Input, Kind};
/// # use ringfold_read::{Block, BlockError, Sink, run};
/// # struct Nothing;
/// # impl Sink for Nothing {
/// #     fn block(&self, _: &Block<'_>) -> Result<(), BlockError> { Ok(()) }
/// # }
///
/// let token = CancellationToken::default();
/// let config = Config { cancellation: Some(token.clone()), ..Config::default() };
/// std::thread::spawn(move || token.cancel()).join().unwrap();
/// let error = run(&Input::memory([&b"a\n"[..]]), &config, &Nothing).unwrap_err();
/// assert_eq!(error.kind(), Kind::Cancelled);
/// ```
#[derive(Debug, Clone, Default)]
pub struct CancellationToken(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_cancelled: AtomicBool,
    /// The same for tasks that await it.
    sender: Sender<bool>,
}

impl CancellationToken {
    /// Ends the runs that have it, with an error of [`Kind::Cancelled`].
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Relaxed);
        self.0.sender.send_replace(true);
    }

    /// Whether the runs are ended.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Relaxed)
    }

    /// # Errors
    /// The runs are ended.
    pub fn check(&self) -> Result<()> {
        match self.is_cancelled() {
            true => Err(Error::cancelled()),
            false => Ok(()),
        }
    }

    /// Waits until the runs are ended.
    pub(crate) async fn cancelled(&self) {
        let mut receiver = self.0.sender.subscribe();
        // The sender lives as long as the token.
        let _ = receiver.wait_for(|&is_cancelled| is_cancelled).await;
    }

    /// Leaves work that can't return an error, up to [`cancellable`]. It is no panic: no hook is called.
    #[doc(hidden)]
    #[inline]
    pub fn unwind(&self) {
        if self.is_cancelled() {
            resume_unwind(Box::new(Unwound));
        }
    }
}

/// What a thread unwinds with that leaves its work.
pub(crate) struct Unwound;

/// Does what may [unwind](CancellationToken::unwind).
///
/// # Errors
/// It has.
pub fn cancellable<T>(work: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| match panic.is::<Unwound>() {
        true => Error::cancelled(),
        false => resume_unwind(panic),
    })
}

impl Error {
    /// The run was cancelled.
    #[doc(hidden)]
    pub fn cancelled() -> Error {
        Error::new(Kind::Cancelled, "the run was cancelled")
    }
}
