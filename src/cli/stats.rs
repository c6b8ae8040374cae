//! What a run did, on stderr: a table for people, JSON with units in its names for programs.

use std::io::Write;

use crate::Stats;
use crate::cli::spell;
use ringfold_bench::measure::memory::Peak;
use ringfold_bench::measure::reads::ReadFigures;
use ringfold_read::internals::units::{self, GIB, grouped, size};
use serde_json::{Value, json};

/// How to print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// Rows, time and memory.
    Text,
    /// All figures, a line each.
    Full,
    /// One object.
    Json,
}

/// The version of the JSON object's shape.
const SCHEMA: u32 = 1;

/// Prints the figures of a run, of its job and of its reads. `job` has what the job counted, the rows first; `found` what
/// it found that isn't a number.
pub(super) fn print(
    format: Format,
    stats: &Stats,
    job: &[(&str, u64)],
    found: &[(&str, String)],
    memory: Peak,
    reads: Option<&ReadFigures>,
) {
    let named = |rows: Rows<'_>| {
        let found = found.iter().map(|(name, text)| (*name, text.clone()));
        table(rows.into_iter().chain(found).collect())
    };
    let text = match format {
        Format::Json => {
            let mut object = serde_json::to_value(stats).unwrap_or_else(|_| json!({}));
            object["schema"] = json!(SCHEMA);
            object["without_effect"] = json!(without_effect(stats));
            object["gib_per_s"] = json!(stats.bytes as f64 / stats.elapsed_s.max(1e-9) / GIB);
            object["peak_memory_bytes"] = json!(memory.together);
            object["peak_anonymous_bytes"] = json!(memory.anonymous);
            object["peak_mapped_bytes"] = json!(memory.mapped);
            if let Some(reads) = reads {
                object["read_latency"] = json!(reads.read_latency);
                object["in_flight"] = json!(reads.in_flight);
                object["cpu_by_thread"] = json!(reads.cpu_by_thread);
            }
            let counted = job.iter().map(|(name, n)| (name.to_string(), json!(n)));
            object["job"] = counted.collect::<Value>();
            for (name, text) in found {
                object["job"][*name] = json!(text);
            }
            format!("{object}\n")
        }
        Format::Text => named(short(stats, job, memory)),
        Format::Full => {
            let mut rows = full(stats, job, memory);
            if let Some(reads) = reads {
                rows.extend(of_reads(reads));
            }
            named(rows)
        }
    };
    // The answer is written. Where stderr is closed, nobody reads this.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Names and values.
type Rows<'a> = Vec<(&'a str, String)>;

fn table(rows: Rows<'_>) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter()
        .map(|(name, value)| format!("{:width$}  {value}\n", name.replace('_', " ")))
        .collect()
}

/// Rows, time, memory, and flags that had no effect.
fn short<'a>(stats: &Stats, job: &[(&'a str, u64)], memory: Peak) -> Rows<'a> {
    let mut rows = Vec::new();
    if let Some((name, n)) = job.first() {
        let keys = job.iter().find(|(name, _)| *name == "keys");
        let keys = keys.map_or(String::new(), |(_, keys)| match keys {
            1 => " of 1 key".into(),
            keys => format!(" of {} keys", grouped(*keys)),
        });
        rows.push((*name, grouped(*n) + &keys));
    }
    let (rate, bytes) = (units::rate(stats.bytes, stats.elapsed_s), size(stats.bytes));
    let time = format!("{:.3} s for {bytes}, {rate}", stats.elapsed_s);
    rows.push(("time", time));
    if let (Some(anonymous), Some(mapped)) = (memory.anonymous, memory.mapped) {
        let (anonymous, mapped) = (size(anonymous), size(mapped));
        let most = format!("at most {anonymous}, and {mapped} of mapped files");
        rows.push(("memory", most));
    }
    if !stats.without_effect.is_empty() {
        rows.push(("without effect", without_effect(stats).join(" ")));
    }
    rows
}

/// All figures.
fn full<'a>(stats: &Stats, job: &[(&'a str, u64)], memory: Peak) -> Rows<'a> {
    let mut rows = short(stats, job, memory);
    let reason = in_brackets(&stats.engine_reason);
    rows.push(("engine", format!("{}{reason}", stats.engine)));
    rows.push(("bytes", grouped(stats.bytes)));
    for (name, n) in job.iter().skip(1) {
        rows.push((name, grouped(*n)));
    }
    let (blocks, largest) = (grouped(stats.blocks), size(stats.block_size as u64));
    rows.push(("blocks", format!("{blocks} of up to {largest}")));
    rows.push(("reads", reads(stats)));
    rows.push(("fetched", fetched(stats)));
    let parts = [
        ("buffers", stats.buffers > 0, buffers(stats)),
        ("ring", stats.entries > 0, ring(stats)),
        ("rings", stats.rings > 0, rings(stats)),
        ("page cache", !cache(stats).is_empty(), cache(stats)),
    ];
    let there = parts.into_iter().filter(|(_, is_there, _)| *is_there);
    rows.extend(there.map(|(name, _, text)| (name, text)));
    rows.push(("threads", threads(stats)));
    if let Some(limit) = stats.io_timeout_s {
        rows.push(("io timeout", format!("{limit} s a read")));
    }
    rows
}

/// How long reads took, and the processor time of the threads.
fn of_reads<'a>(reads: &ReadFigures) -> Rows<'a> {
    let mut rows = Vec::new();
    let ms = |us: f64| format!("{:.3} ms", us / 1e3);
    if let Some(latency) = &reads.read_latency {
        let [half, most, longest] = [latency.p50_us, latency.p99_us, latency.max_us].map(ms);
        let text = format!("half within {half}, 99% within {most}, the longest {longest}");
        rows.push(("read latency", text));
    }
    if let Some(in_flight) = &reads.in_flight {
        rows.push(("in flight", format!("{:.1} on average", in_flight.mean)));
    }
    let cpu = &reads.cpu_by_thread;
    let mut parts = vec![format!("workers {:.3} s", cpu.workers_s)];
    for (name, seconds) in [
        ("ring", cpu.ring_s),
        ("the ring's kernel threads", cpu.io_workers_s),
    ] {
        if seconds > 0.0 {
            parts.push(format!("{name} {seconds:.3} s"));
        }
    }
    rows.push(("processor time", parts.join(", ")));
    rows
}

/// A text in brackets, after a blank, if there is any.
fn in_brackets(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!(" ({text})"),
    }
}

fn reads(stats: &Stats) -> String {
    let mut reads = grouped(stats.reads);
    if stats.dispatched_bytes > 0 {
        reads += &format!(
            ", at most {} of {} in flight, {:.3} s without a free buffer",
            stats.max_in_flight, stats.queue_depth, stats.starved_s
        );
    }
    if stats.workers_waited_s > 0.0 {
        reads += &format!(", workers waited {:.3} s in all", stats.workers_waited_s);
    }
    if stats.short_reads + stats.retries > 0 {
        reads += &format!(", {} short, {} retried", stats.short_reads, stats.retries);
    }
    reads
}

/// How many bytes came in which way.
fn fetched(stats: &Stats) -> String {
    let ways = [
        ("through the dispatcher", stats.dispatched_bytes),
        ("read by the workers", stats.copied_bytes),
        ("mapped", stats.mapped_bytes),
    ];
    let taken = ways.iter().filter(|(_, bytes)| *bytes > 0);
    let parts = taken.map(|(how, bytes)| format!("{} {how}", size(*bytes)));
    parts.collect::<Vec<_>>().join(", ")
}

fn buffers(stats: &Stats) -> String {
    let kind = in_brackets(&stats.huge_pages);
    let registered = if stats.registered_buffers {
        ", registered"
    } else {
        ""
    };
    format!(
        "{}: {} of anonymous memory, {} of it in huge pages{kind}{registered}",
        stats.buffers,
        size(stats.buffer_bytes),
        size(stats.huge_page_bytes)
    )
}

fn rings(stats: &Stats) -> String {
    let flags = match stats.ring_flags.as_slice() {
        [] => String::new(),
        flags => format!(", {}", flags.join(", ")),
    };
    let calls = grouped(stats.enters);
    format!("{}, {calls} calls of io_uring_enter{flags}", stats.rings)
}

fn threads(stats: &Stats) -> String {
    let pinned = match stats.pinned_cpus.as_slice() {
        [] => String::new(),
        cpus => {
            let cpus: Vec<_> = cpus.iter().map(u32::to_string).collect();
            format!(", pinned to CPU {} in turn", cpus.join(","))
        }
    };
    format!("{}{pinned}", stats.threads)
}

/// The flags that were given and had no effect.
fn without_effect(stats: &Stats) -> Vec<String> {
    let settings = stats.without_effect.iter();
    settings.map(|setting| spell::flag(*setting)).collect()
}

/// What the ring was.
fn ring(stats: &Stats) -> String {
    let mut ring = vec![format!("{} entries", stats.entries)];
    if let Some(thread) = &stats.sqpoll {
        ring.push(format!("polled by {thread}"));
    }
    if let Some(mode) = &stats.task_run {
        ring.push(format!("task-run {mode}"));
    }
    if stats.async_reads {
        let most = stats.async_workers_allowed;
        let most = most.map_or(String::new(), |most| format!(" of at most {most}"));
        let workers = stats.async_workers;
        ring.push(format!("reads punted to {workers}{most} kernel workers"));
    }
    ring.join(", ")
}

/// How the page cache was used.
fn cache(stats: &Stats) -> String {
    let mut cache = Vec::new();
    if stats.dontcache {
        cache.push("nothing new left in it (dontcache)".to_string());
    }
    if let Some(advice) = &stats.fadvise {
        cache.push(format!("fadvise {advice}"));
    }
    if stats.readahead_bytes > 0 {
        let ahead = size(stats.readahead_bytes);
        cache.push(format!("{ahead} read ahead"));
    }
    if let Some(advice) = &stats.map_advice {
        cache.push(format!("madvise {advice}"));
    }
    cache.join(", ")
}
