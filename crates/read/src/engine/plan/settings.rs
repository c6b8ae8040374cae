//! Which settings contradict each other or themselves, and which of them a run had no use for.

use crate::engine::config::{Config, Engine};
use crate::engine::knobs::{CacheUse, FileAdvice, HugePages, TaskRun};
use crate::engine::plan::sizing::MAX_THREADS;
use crate::engine::stats::Stats;
use crate::error::refusal::Refusal;
use crate::error::setting::{Choice, Setting};
use crate::error::{Error, Result};

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
    let limits = [
        (Setting::BlockSize, config.block_size, 1, MAX_BLOCK),
        (Setting::QueueDepth, config.queue_depth, 1, MAX_DEPTH),
        (Setting::Buffers, config.buffers, 2, 2 * MAX_DEPTH),
        (Setting::Threads, config.threads, 1, MAX_THREADS),
        (Setting::MaxRecord, Some(config.max_record), 1, MAX_BLOCK),
        (Setting::Rings, config.knobs.rings, 1, MAX_RINGS),
    ];
    for (setting, value, min, max) in limits {
        within(setting, value.map(|value| value as u64), min, max as u64)?;
    }
    if let (Some(depth), Some(buffers)) = (config.queue_depth, config.buffers) {
        let (few, other) = (Setting::Buffers, Setting::QueueDepth);
        enough(few, buffers as u64, other, depth as u64, depth as u64 + 1)?;
    }
    if config.direct && matches!(config.engine, Engine::Mmap | Engine::Memory) {
        return Err(Error::from(Refusal::Contradiction {
            choice: Setting::Direct.into(),
            asks: "reads past the page cache",
            other: Setting::Engine.of(config.engine),
            but: "doesn't read",
        }));
    }
    if config.io_timeout.is_some_and(|limit| limit.is_zero()) {
        let setting = Setting::IoTimeout;
        return Err(Error::from(Refusal::Zero { setting }));
    }
    check_knobs(config)
}

/// Refuses a value outside of its limits.
fn within(setting: Setting, value: Option<u64>, min: u64, max: u64) -> Result<()> {
    match value {
        Some(value) if !(min..=max).contains(&value) => Err(Error::from(Refusal::OutOfRange {
            setting,
            value,
            min,
            max,
        })),
        _ => Ok(()),
    }
}

/// Refuses a value that is too small for another one.
fn enough(
    setting: Setting,
    value: u64,
    other: Setting,
    other_value: u64,
    needed: u64,
) -> Result<()> {
    match value >= needed {
        true => Ok(()),
        false => Err(Error::from(Refusal::TooFew {
            setting,
            value,
            other,
            other_value,
            needed,
        })),
    }
}

/// Refuses knobs that contradict each other, the engine, or themselves.
pub(crate) fn check_knobs(config: &Config) -> Result<()> {
    check_engine_has_them(config)?;
    check_numbers(config)?;
    check_page_cache(config)?;
    check_pairs(config)
}

/// Refuses what only another engine has.
fn check_engine_has_them(config: &Config) -> Result<()> {
    let knobs = &config.knobs;
    let raw = config.engine == Engine::UringRaw;
    let raw_only = [
        (
            Setting::TaskRun.of(TaskRun::Defer),
            knobs.task_run == Some(TaskRun::Defer),
        ),
        (Setting::RegisteredFiles.into(), knobs.registered_files),
        (Setting::Iopoll.into(), knobs.iopoll),
        (Setting::Rings.into(), knobs.rings.is_some()),
    ];
    if let Some((choice, _)) = raw_only.into_iter().find(|(_, set)| *set && !raw) {
        return Err(Error::from(Refusal::NeedsEngine {
            choice,
            engine: config.engine.name(),
            needs: Engine::UringRaw.name(),
        }));
    }
    Ok(())
}

/// Refuses numbers out of range, and a queue with fewer entries than reads in flight.
fn check_numbers(config: &Config) -> Result<()> {
    let knobs = &config.knobs;
    for (setting, value, max) in [
        (Setting::Entries, knobs.entries, MAX_ENTRIES),
        (Setting::Punt, knobs.punt.flatten(), MAX_WORKERS),
    ] {
        within(setting, value.map(u64::from), 1, u64::from(max))?;
    }
    // A raw ring submits the rest when entries are free.
    let raw = config.engine == Engine::UringRaw;
    if let (Some(entries), Some(depth), false) = (knobs.entries, config.queue_depth, raw) {
        let (few, other) = (Setting::Entries, Setting::QueueDepth);
        enough(few, entries.into(), other, depth as u64, depth as u64)?;
    }
    Ok(())
}

/// Refuses ways to use the page cache that the engine doesn't have, or that want another.
fn check_page_cache(config: &Config) -> Result<()> {
    let knobs = &config.knobs;
    if knobs.dontcache && matches!(config.engine, Engine::Mmap | Engine::Memory) {
        return Err(Error::from(Refusal::Contradiction {
            choice: Setting::Dontcache.into(),
            asks: "is a way to read",
            other: Setting::Engine.of(config.engine),
            but: "doesn't read that way",
        }));
    }
    if knobs.iopoll && !config.direct {
        return Err(Error::from(Refusal::NeedsSetting {
            setting: Setting::Iopoll,
            other: Setting::Direct,
            why: "polls the device, which only reads past the page cache reach",
        }));
    }
    Ok(())
}

/// Refuses two settings of which each makes the other senseless.
fn check_pairs(config: &Config) -> Result<()> {
    let knobs = &config.knobs;
    let brings = match (knobs.readahead, knobs.fadvise) {
        (Some(_), _) => Some(Setting::Readahead.into()),
        (None, Some(FileAdvice::WillNeed)) => Some(Setting::Fadvise.of(FileAdvice::WillNeed)),
        _ => None,
    };
    let fadvise = knobs.fadvise.map(|_| Setting::Fadvise.into());
    let task_run = knobs.task_run.map(|_| Setting::TaskRun.into());
    let when = |set: bool, setting: Setting| set.then(|| Choice::from(setting));
    let direct = when(config.direct, Setting::Direct);
    let dontcache = when(knobs.dontcache, Setting::Dontcache);
    let past = "reads past the page cache";
    let (through, into) = ("reads through it", "brings the file into the page cache");
    for (choice, asks, other, but) in [
        (&direct, past, &dontcache, through),
        (&direct, past, &brings, into),
        (&direct, past, &fadvise, "is about reading through it"),
        (
            &dontcache,
            "leaves nothing in the page cache",
            &brings,
            into,
        ),
        (
            &task_run,
            "is about the thread that submits",
            &when(knobs.sqpoll.is_some(), Setting::Sqpoll),
            "has the kernel submit",
        ),
    ] {
        if let (Some(choice), Some(other)) = (choice.clone(), other.clone()) {
            return Err(Error::from(Refusal::Contradiction {
                choice,
                asks,
                other,
                but,
            }));
        }
    }
    Ok(())
}

/// The settings that were made although nothing in this run heeded them.
pub(crate) fn without_effect(config: &Config, stats: &Stats) -> Vec<Setting> {
    let knobs = &config.knobs;
    let of_reads = [
        (Setting::QueueDepth, config.queue_depth.is_some()),
        (Setting::Cache, knobs.cache != CacheUse::Auto),
        (Setting::Buffers, config.buffers.is_some()),
        (Setting::IoTimeout, config.io_timeout.is_some()),
        (Setting::Dontcache, knobs.dontcache),
        (Setting::HugePages, knobs.huge_pages != HugePages::Auto),
    ];
    let of_files = [
        (Setting::Rings, knobs.rings.is_some_and(|rings| rings > 1)),
        (Setting::Fadvise, knobs.fadvise.is_some()),
        (Setting::Readahead, knobs.readahead.is_some()),
        (Setting::Populate, knobs.populate.is_some()),
        (Setting::MapAdvice, knobs.map_advice.is_some()),
    ];
    let all = of_reads.into_iter().chain(knobs.of_rings()).chain(of_files);
    all.filter(|(setting, made)| *made && !was_heeded(*setting, config, stats))
        .map(|(setting, _)| setting)
        .collect()
}

/// Whether a setting, if it was made, had an effect on a run.
fn was_heeded(setting: Setting, config: &Config, stats: &Stats) -> bool {
    let dispatched = stats.dispatched_bytes > 0;
    match setting {
        Setting::QueueDepth => dispatched && config.engine != Engine::Read,
        Setting::Cache => config.engine == Engine::Auto,
        Setting::Buffers => dispatched,
        Setting::IoTimeout => stats.io_timeout_s.is_some(),
        Setting::Dontcache => stats.dontcache,
        Setting::HugePages => stats.buffers > 0,
        Setting::Rings => stats.rings > 1,
        Setting::Fadvise => stats.fadvise.is_some(),
        Setting::Readahead => stats.readahead_bytes > 0,
        Setting::Populate | Setting::MapAdvice => stats.mapped_bytes > 0,
        // All others are those of a ring.
        _ => stats.entries > 0,
    }
}
