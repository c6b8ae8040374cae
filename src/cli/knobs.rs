//! The flags of the kernel's switches: what each sets, since which kernel, and when it helps.
//! docs/knobs.md has the rest.

use clap::Args;
use ringfold_read::{CacheUse, FileAdvice, HugePages, Knobs, MapAdvice, TaskRun};

use crate::cli::size::size;

/// The kernel's switches, by what they are about.
#[derive(Args)]
pub(super) struct Switches {
    #[command(flatten)]
    ring: RingFlags,
    #[command(flatten)]
    cache: CacheFlags,
    #[command(flatten)]
    memory: MemoryFlags,
}

#[derive(Args)]
#[command(next_help_heading = "I/O: the ring (uring, uring-raw, and auto where it uses one)")]
struct RingFlags {
    /// Register the buffers once, so that no read looks up their pages (Linux 5.1): auto, on or off.
    /// Helps with small blocks; counts as locked memory [default: auto]
    #[arg(long, value_name = "WHEN", value_parser = switch, hide_default_value = true, default_value = "auto")]
    registered_buffers: Switch,
    /// Register the files once, so that no read looks them up (Linux 5.1). Helps with small blocks;
    /// only uring-raw
    #[arg(long)]
    registered_files: bool,
    /// A kernel thread takes submissions, on this CPU if one is named (Linux 5.13 without root).
    /// Saves system calls with small blocks; uses up a core
    #[arg(long, value_name = "CPU", num_args = 0..=1, require_equals = true)]
    sqpoll: Option<Option<u32>>,
    /// Kernel workers do the reads (IOSQE_ASYNC, Linux 5.6), at most this many (Linux 5.15). Helps
    /// if the file is cached: copies run in parallel
    #[arg(long = "async", value_name = "WORKERS", num_args = 0..=1, require_equals = true)]
    punt: Option<Option<u32>>,
    /// When completions are processed: coop, without interrupting the ring's thread (Linux 5.19), or
    /// defer, when that thread asks for them (Linux 6.1, only uring-raw). Helps with small blocks
    #[arg(long, value_name = "MODE")]
    task_run: Option<TaskRun>,
    /// Entries of the submission queue, rounded up to a power of two [default: the queue depth]
    #[arg(long, value_name = "N")]
    entries: Option<u32>,
    /// Poll the device for completions (Linux 5.1; only uring-raw with --direct, on a device with
    /// poll queues). Helps with small blocks on a fast drive; uses up a core
    #[arg(long)]
    iopoll: bool,
    /// Number of rings; each has its own thread, buffers, queue depth and share of the input. Only
    /// uring-raw. Helps with several drives or NUMA nodes, and with small blocks [default: 1]
    #[arg(long, value_name = "N")]
    rings: Option<usize>,
}

#[derive(Args)]
#[command(next_help_heading = "I/O: the page cache")]
struct CacheFlags {
    /// Whether auto leaves in the page cache what it reads: keep, so that the next run finds it; none; or auto, which keeps an
    /// input of at most a quarter of the available memory
    #[arg(
        long,
        value_name = "USE",
        hide_default_value = true,
        default_value = "auto"
    )]
    cache: CacheUse,
    /// Read through the page cache and leave nothing there (RWF_DONTCACHE, Linux 6.14). Helps if
    /// memory is full. For uring, uring-raw, read, pread and auto
    #[arg(long)]
    dontcache: bool,
    /// posix_fadvise on each file: normal, sequential, random, noreuse (Linux 6.3), willneed, or
    /// dontneed (drops its cached pages first). Helps read and pread of files that aren't cached
    #[arg(long, value_name = "ADVICE")]
    fadvise: Option<FileAdvice>,
    /// Have the kernel read this far ahead, such as 8M. For read, pread, mmap, and workers of auto.
    /// Helps mmap of files that aren't cached if the device itself reads little ahead
    #[arg(long, value_name = "SIZE", value_parser = size)]
    readahead: Option<u64>,
    /// Populate each mapped window by one call (on, Linux 5.14) or by page faults (off and auto). For
    /// mmap, and auto where it maps [default: auto]
    #[arg(long, value_name = "WHEN", value_parser = switch, hide_default_value = true, default_value = "auto")]
    populate: Switch,
    /// madvise on each mapped window: normal, sequential, random, willneed, hugepage (files that
    /// aren't cached come in as large folios) or collapse (Linux 6.1; small cached folios become
    /// large ones). For mmap, and auto where it maps
    #[arg(long, value_name = "ADVICE")]
    map_advice: Option<MapAdvice>,
}

#[derive(Args)]
#[command(next_help_heading = "I/O: memory and processors")]
struct MemoryFlags {
    /// Pages of the buffers: auto (transparent huge pages if available), thp, hugetlb (the pool of
    /// vm.nr_hugepages) or off. Huge pages help with reads of 512K and more
    #[arg(
        long,
        value_name = "KIND",
        hide_default_value = true,
        default_value = "auto"
    )]
    huge_pages: HugePages,
    /// Bind each worker to one CPU of a list such as 0,2-3, in turn; without --threads there is one
    /// worker for each CPU. Helps to keep to one NUMA node, or if other work moves threads
    #[arg(long, value_name = "CPUS")]
    pin: Option<Cpus>,
}

impl Switches {
    pub(super) fn knobs(&self) -> Knobs {
        let Switches {
            ring,
            cache,
            memory,
        } = self;
        Knobs {
            cache: cache.cache,
            dontcache: cache.dontcache,
            huge_pages: memory.huge_pages,
            registered_buffers: ring.registered_buffers.0,
            registered_files: ring.registered_files,
            sqpoll: ring.sqpoll,
            punt: ring.punt,
            task_run: ring.task_run,
            entries: ring.entries,
            iopoll: ring.iopoll,
            rings: ring.rings,
            pin: memory
                .pin
                .as_ref()
                .map_or(Vec::new(), |cpus| cpus.0.clone()),
            fadvise: cache.fadvise,
            readahead: cache.readahead,
            populate: cache.populate.0,
            map_advice: cache.map_advice,
        }
    }
}

/// On, off, or the engine's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Switch(Option<bool>);

fn switch(text: &str) -> Result<Switch, String> {
    match text {
        "auto" => Ok(Switch(None)),
        "on" => Ok(Switch(Some(true))),
        "off" => Ok(Switch(Some(false))),
        _ => Err("name auto, on or off".into()),
    }
}

/// Processors by number, in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cpus(Vec<u32>);

impl std::str::FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is not a list of CPUs such as 0,2-3");
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u16>().map_err(|_| wrong());
            let (from, to) = (number(from)?, number(to)?);
            if from > to {
                return Err(wrong());
            }
            cpus.extend((from..=to).map(u32::from));
        }
        Ok(Cpus(cpus))
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::knobs::Cpus;

    #[test]
    fn lists_of_cpus() {
        for (text, want) in [
            ("0", &[0][..]),
            ("0,2-3", &[0, 2, 3]),
            ("3,1,1", &[3, 1, 1]),
        ] {
            assert_eq!(text.parse(), Ok(Cpus(want.to_vec())), "{text}");
        }
        for wrong in ["", ",", "a", "3-1", "1-", "-1", "99999999"] {
            assert!(wrong.parse::<Cpus>().is_err(), "{wrong}");
        }
    }
}
