//! What a run did, in figures.

use crate::error::setting::Setting;

/// What a run did.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Stats {
    /// What read the input.
    pub engine: String,
    /// Why that, where there was a choice.
    pub engine_reason: String,
    /// Bytes of the input that the spans cover, or that came from streams.
    pub bytes: u64,
    /// Bytes read through the ring past the page cache or not, by `read` or from memory.
    pub dispatched_bytes: u64,
    /// Bytes that workers read into a buffer of their own.
    pub copied_bytes: u64,
    /// Bytes that workers looked at where they lie in the page cache.
    pub mapped_bytes: u64,
    /// Bytes of compressed files that a ring read ahead of their decoders.
    pub compressed_bytes: u64,
    /// Blocks delivered.
    pub blocks: u64,
    /// Reads done.
    pub reads: u64,
    /// Reads that brought less than was asked for and were gone on with.
    pub short_reads: u64,
    /// Reads that failed for a passing cause and were done again.
    pub retries: u64,
    /// The time from the first read to the last block, in seconds.
    pub elapsed_s: f64,
    /// Time in which a read could have been submitted, but all buffers were with workers.
    pub starved_s: f64,
    /// Time in which workers waited for blocks of a ring or of `read()`, of all workers together.
    pub workers_waited_s: f64,
    /// Worker threads.
    pub threads: usize,
    /// Bytes a read.
    pub block_size: usize,
    /// Reads in flight allowed, and the most there were.
    pub queue_depth: usize,
    /// The most reads that were in flight.
    pub max_in_flight: usize,
    /// Buffers.
    pub buffers: usize,
    /// Anonymous memory of all buffers, fixed before the first read.
    pub buffer_bytes: u64,
    /// How much of it the kernel has put into huge pages.
    pub huge_page_bytes: u64,
    /// Of which kind: `thp`, `hugetlb`, or empty where there are none.
    pub huge_pages: String,
    /// Whether the ring's buffers were registered with the kernel.
    pub registered_buffers: bool,
    /// Entries of the ring's submission queue; 0: there was no ring.
    pub entries: u32,
    /// The kernel thread that polled for submissions, and where it may run.
    pub sqpoll: Option<String>,
    /// Whether reads were punted to the kernel's worker threads.
    pub async_reads: bool,
    /// How many of those were allowed, where that was limited.
    pub async_workers_allowed: Option<u32>,
    /// How many of them there were when the last read was done.
    pub async_workers: usize,
    /// When the ring's completion work ran, where that was said.
    pub task_run: Option<String>,
    /// Whether reads left nothing in the page cache.
    pub dontcache: bool,
    /// The advice on the files that the kernel got: what was named, or `random` in a control group that has
    /// too little memory for the kernel's read-ahead.
    pub fadvise: Option<String>,
    /// Bytes that the kernel was asked to read ahead.
    pub readahead_bytes: u64,
    /// The advice on mapped windows that the kernel got.
    pub map_advice: Option<String>,
    /// The processors that the workers were held to, in turn.
    pub pinned_cpus: Vec<u32>,
    /// Rings of `uring-raw`; depth and in flight are those of each.
    pub rings: usize,
    /// The kernel's switches that were in force on them, by the kernel's names.
    pub ring_flags: Vec<String>,
    /// Their calls of `io_uring_enter`.
    pub enters: u64,
    /// How long a read was allowed to take, in seconds, where that was limited and there were reads
    /// that it holds for.
    pub io_timeout_s: Option<f64>,
    /// Settings that were made and had no effect on this run.
    pub without_effect: Vec<Setting>,
}
