//! Which settings contradict each other or themselves, and which of them a run had no use for.

use crate::engine::config::{Config, Engine};
use crate::engine::knobs::{FileAdvice, HugePages, TaskRun};
use crate::engine::plan::sizing::MAX_THREADS;
use crate::engine::stats::Stats;
use crate::error::{Error, Kind, Result};

/// The most entries that a submission queue may have.
const MAX_ENTRIES: u32 = 32768;
/// The most of the kernel's worker threads; beyond it a number is a slip.
const MAX_WORKERS: u32 = 65536;
/// Limits of what can be asked for; beyond them a number is a slip.
pub(crate) const MAX_BLOCK: usize = 1 << 30;
pub(crate) const MAX_DEPTH: usize = 4096;
const MAX_RINGS: usize = 256;

/// Refuses what can't be meant.
pub(crate) fn check(config: &Config) -> Result<()> {
    let usage = |cause: String| Err(Error::new(Kind::Usage, cause));
    let limits = [
        ("--block-size", config.block_size, 1, MAX_BLOCK),
        ("--queue-depth", config.queue_depth, 1, MAX_DEPTH),
        ("--buffers", config.buffers, 2, 2 * MAX_DEPTH),
        ("--threads", config.threads, 1, MAX_THREADS),
        ("--max-record", Some(config.max_record), 1, MAX_BLOCK),
        ("--rings", config.knobs.rings, 1, MAX_RINGS),
    ];
    for (flag, value, min, max) in limits {
        if let Some(value) = value.filter(|value| !(min..=max).contains(value)) {
            return usage(format!("{flag} {value} is out of range: {min} to {max}"));
        }
    }
    if let (Some(depth), Some(buffers)) = (config.queue_depth, config.buffers)
        && buffers <= depth
    {
        return usage(format!(
            "--buffers {buffers} is too few for --queue-depth {depth}: a block waits for its \
             neighbour, so at least {} are needed",
            depth + 1
        ));
    }
    if config.direct && matches!(config.engine, Engine::Mmap | Engine::Memory) {
        return usage(format!(
            "--direct reads past the page cache; --engine {} doesn't read: leave one of them out",
            config.engine
        ));
    }
    if config.io_timeout.is_some_and(|limit| limit.is_zero()) {
        return usage("--io-timeout 0: no read takes no time: raise it, or leave it out".into());
    }
    check_knobs(config)
}

/// Refuses knobs that contradict each other, the engine, or themselves.
pub(crate) fn check_knobs(config: &Config) -> Result<()> {
    let usage = |cause: String| Err(Error::new(Kind::Usage, cause));
    let knobs = &config.knobs;
    let raw = config.engine == Engine::UringRaw;
    let raw_only = [
        ("--task-run defer", knobs.task_run == Some(TaskRun::Defer)),
        ("--registered-files", knobs.registered_files),
        ("--iopoll", knobs.iopoll),
        ("--rings", knobs.rings.is_some()),
    ];
    if let Some((flag, _)) = raw_only.into_iter().find(|(_, set)| *set && !raw) {
        return usage(format!(
            "{flag} can't be had with --engine {}: name --engine uring-raw",
            config.engine
        ));
    }
    let limits = [
        ("--entries", knobs.entries, MAX_ENTRIES),
        ("--async", knobs.punt.flatten(), MAX_WORKERS),
    ];
    for (flag, value, max) in limits {
        if let Some(value) = value.filter(|value| !(1..=max).contains(value)) {
            return usage(format!("{flag} {value} is out of range: 1 to {max}"));
        }
    }
    if let (Some(entries), Some(depth)) = (knobs.entries, config.queue_depth)
        && (entries as usize) < depth
        && !raw
    {
        return usage(format!(
            "--entries {entries} is too few for --queue-depth {depth}: a read in flight takes an \
             entry"
        ));
    }
    if knobs.dontcache && matches!(config.engine, Engine::Mmap | Engine::Memory) {
        return usage(format!(
            "--dontcache is a way to read; --engine {} doesn't read that way: leave one of them out",
            config.engine
        ));
    }
    if knobs.iopoll && !config.direct {
        return usage(
            "--iopoll polls the device, which only reads past the page cache reach: add --direct"
                .to_string(),
        );
    }
    let brings = knobs.readahead.is_some() || knobs.fadvise == Some(FileAdvice::WillNeed);
    let ahead = match knobs.readahead {
        Some(_) => "--readahead",
        None => "--fadvise willneed",
    };
    let through_cache = "brings the file into the page cache";
    let contradictions = [
        (
            config.direct && knobs.dontcache,
            "--direct reads past the page cache, --dontcache through it".to_string(),
        ),
        (
            config.direct && brings,
            format!("--direct reads past the page cache, {ahead} {through_cache}"),
        ),
        (
            config.direct && knobs.fadvise.is_some(),
            "--direct reads past the page cache, --fadvise is about reading through it".to_string(),
        ),
        (
            knobs.dontcache && brings,
            format!("--dontcache leaves nothing in the page cache, {ahead} {through_cache}"),
        ),
        (
            knobs.sqpoll.is_some() && knobs.task_run.is_some(),
            "--task-run is about the thread that submits, which with --sqpoll is the kernel's"
                .to_string(),
        ),
    ];
    match contradictions.into_iter().find(|(meant, _)| *meant) {
        Some((_, cause)) => usage(format!("{cause}: leave one of them out")),
        None => Ok(()),
    }
}

/// The flags that were given although nothing in this run heeded them.
pub(crate) fn without_effect(config: &Config, stats: &Stats) -> Vec<String> {
    let knobs = &config.knobs;
    let dispatched = stats.dispatched_bytes > 0;
    let sequential = config.engine == Engine::Read;
    let (ring, mapped) = (stats.entries > 0, stats.mapped_bytes > 0);
    let flags = [
        (
            "--queue-depth",
            config.queue_depth.is_some(),
            dispatched && !sequential,
        ),
        ("--buffers", config.buffers.is_some(), dispatched),
        (
            "--io-timeout",
            config.io_timeout.is_some(),
            stats.io_timeout_s.is_some(),
        ),
        ("--dontcache", knobs.dontcache, stats.dontcache),
        (
            "--huge-pages",
            knobs.huge_pages != HugePages::Auto,
            stats.buffers > 0,
        ),
        (
            "--registered-buffers",
            knobs.registered_buffers.is_some(),
            ring,
        ),
        ("--registered-files", knobs.registered_files, ring),
        ("--sqpoll", knobs.sqpoll.is_some(), ring),
        ("--async", knobs.punt.is_some(), ring),
        ("--task-run", knobs.task_run.is_some(), ring),
        ("--entries", knobs.entries.is_some(), ring),
        ("--iopoll", knobs.iopoll, ring),
        (
            "--rings",
            knobs.rings.is_some_and(|rings| rings > 1),
            stats.rings > 1,
        ),
        (
            "--fadvise",
            knobs.fadvise.is_some(),
            stats.fadvise.is_some(),
        ),
        (
            "--readahead",
            knobs.readahead.is_some(),
            stats.readahead_bytes > 0,
        ),
        ("--populate", knobs.populate.is_some(), mapped),
        ("--map-advice", knobs.map_advice.is_some(), mapped),
    ];
    flags
        .into_iter()
        .filter(|(_, given, heeded)| *given && !heeded)
        .map(|(flag, ..)| flag.to_string())
        .collect()
}
