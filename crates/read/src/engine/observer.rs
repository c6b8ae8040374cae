//! Looks at a run from within: its reads, and the processor time of its threads.

use std::time::{Duration, Instant};

/// Is told of each read through a ring or by `read()`, and of the processor time of threads. The calls come from the
/// threads that read, so they should be short. See [`Config::observer`](crate::Config::observer).
pub trait Observer: Send + Sync {
    /// A read was submitted.
    fn submitted(&self, at: Instant);

    /// A read has completed, after so long.
    fn completed(&self, at: Instant, latency: Duration);

    /// A thread that submits reads has ended, and took this much processor time.
    fn ring_ended(&self, cpu: Duration);

    /// The kernel's own threads that do this process's reads have taken this much processor time so far.
    fn io_workers(&self, cpu: Duration);

    /// All workers together took this much processor time.
    fn workers_ended(&self, cpu: Duration);
}
