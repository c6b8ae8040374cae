//! The threads of a run.

use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::engine::config::Config;
use crate::engine::plan::settings;
use crate::engine::plan::sizing::MemoryLimit;
use crate::error::refusal::Refusal;
use crate::error::setting::Setting;
use crate::error::{Error, Kind, Result};
use crate::input::spans::Input;
use crate::linux::affinity;

/// Bytes of an input for each thread, at least: a small input wakes few.
const BYTES_A_THREAD: u64 = 64 << 10;

/// Starts the threads that a run of this input would start for itself: as many as the configuration says, else one a
/// processor, but few for a small input, and one less for streams. With them in [`Config::pool`], whatever follows the run goes on with the same
/// threads.
///
/// # Errors
/// So many threads can't be started, or not on the processors that they are to be pinned to.
pub fn pool(input: &Input, config: &Config) -> Result<Arc<ThreadPool>> {
    settings::check(config)?;
    start(input, config, &MemoryLimit::of_this_process()).map(Arc::new)
}

/// The caller's threads, or new ones.
pub(crate) fn of_run(
    input: &Input,
    config: &Config,
    limit: &MemoryLimit,
) -> Result<Arc<ThreadPool>> {
    let Some(pool) = &config.pool else {
        return start(input, config, limit).map(Arc::new);
    };
    if pool.current_thread_index().is_some() {
        // The run would wait for work that only this thread could do.
        let cause = "a run can't be started on a thread of the pool that it is given";
        return Err(Error::new(Kind::Usage, cause));
    }
    Ok(Arc::clone(pool))
}

/// Whether there is nothing but streams to read.
fn is_streams(input: &Input) -> bool {
    let mut spans = input.spans().iter();
    !input.spans().is_empty() && spans.all(|span| input.source(span).len().is_none())
}

fn start(input: &Input, config: &Config, limit: &MemoryLimit) -> Result<ThreadPool> {
    let pin = &config.knobs.pin;
    let threads = config.threads.unwrap_or_else(|| match pin.is_empty() {
        // A stream is read by one thread, which is as busy as they are.
        true if is_streams(input) => limit.threads(pin).saturating_sub(1).max(1),
        _ => limit.threads(pin),
    });
    let most = match input.len() {
        // A fuzzer's inputs are all small; it gets what it asks for.
        Some(len) if !cfg!(fuzzing) => len / BYTES_A_THREAD + 1,
        _ => u64::MAX,
    };
    let threads = threads.min(usize::try_from(most).unwrap_or(usize::MAX));
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("worker-{index}"))
        .build()
        .map_err(|error| {
            let setting = Setting::Threads;
            let refused = Error::from(Refusal::NoThreads { setting, threads });
            let errno = std::error::Error::source(&error).and_then(|error| error.downcast_ref());
            errno.map_or(refused.clone(), |errno| refused.with_errno(errno))
        })?;
    if !pin.is_empty() {
        let held = pool.broadcast(|worker| affinity::to(pin[worker.index() % pin.len()]));
        held.into_iter().collect::<Result<()>>()?;
    }
    Ok(pool)
}
