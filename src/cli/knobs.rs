//! The flags of the kernel's switches: what each sets, since which kernel, and when it helps.
//! docs/knobs.md has the rest.

use crate::engine::knobs::{FileAdvice, HugePages, Knobs, MapAdvice, TaskRun};
use clap::Args;

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
    /// Pin the buffers once, not for each read (Linux 5.1): auto, on or off. Helps with small
    /// blocks; counts as locked memory [default: auto]
    #[arg(long, value_name = "WHEN", value_parser = switch, hide_default_value = true, default_value = "auto")]
    registered_buffers: Switch,
    /// Look up the files once, not for each read (Linux 5.1). Helps with small blocks; uring-raw
    #[arg(long)]
    registered_files: bool,
    /// A kernel thread takes submissions, on this CPU if one is named (Linux 5.13 without root).
    /// Saves calls with small blocks; costs a core
    #[arg(long, value_name = "CPU", num_args = 0..=1, require_equals = true)]
    sqpoll: Option<Option<u32>>,
    /// Kernel workers do the reads (IOSQE_ASYNC, Linux 5.6), at most so many (Linux 5.15). Helps
    /// where the file is cached: copies run in parallel
    #[arg(long = "async", value_name = "WORKERS", num_args = 0..=1, require_equals = true)]
    punt: Option<Option<u32>>,
    /// When completions are worked on: coop, without interrupting the ring's thread (Linux 5.19),
    /// or defer, when it asks for them (6.1; uring-raw). Helps with small blocks
    #[arg(long, value_name = "MODE")]
    task_run: Option<TaskRun>,
    /// Entries of the submission queue, rounded up to a power of two [default: the queue depth]
    #[arg(long, value_name = "N")]
    entries: Option<u32>,
    /// Poll the device for completions (Linux 5.1; uring-raw with --direct, on a device with poll
    /// queues). Helps with small blocks on a fast drive; costs a core
    #[arg(long)]
    iopoll: bool,
    /// Rings, each with a thread, buffers and queue depth of its own over its share of the input;
    /// uring-raw. Helps with several drives or NUMA nodes, and small blocks [default: 1]
    #[arg(long, value_name = "N")]
    rings: Option<usize>,
}

#[derive(Args)]
#[command(next_help_heading = "I/O: the page cache")]
struct CacheFlags {
    /// Read through the page cache, but leave nothing there (RWF_DONTCACHE, Linux 6.14). Helps
    /// where memory is full; uring, read, pread, auto
    #[arg(long)]
    dontcache: bool,
    /// What the kernel is told of the files: normal, sequential, random, noreuse (Linux 6.3),
    /// willneed or dontneed (begin cold). Helps cold read and pread
    #[arg(long, value_name = "ADVICE")]
    fadvise: Option<FileAdvice>,
    /// Let the kernel read so far ahead, as 8M; read, pread, mmap, and auto where workers fetch.
    /// Helps mmap of cold files where the device reads little ahead by itself
    #[arg(long, value_name = "SIZE", value_parser = size)]
    readahead: Option<u64>,
    /// Map a window's pages at once (Linux 5.14): on, or off, a fault at a time, which is what auto
    /// does; mmap, and auto where it maps [default: auto]
    #[arg(long, value_name = "WHEN", value_parser = switch, hide_default_value = true, default_value = "auto")]
    populate: Switch,
    /// What the kernel is told of mapped windows: normal, sequential, random, willneed, hugepage
    /// (helps cold files: they come in as large folios) or collapse (Linux 6.1; helps files that
    /// are cached in small folios); mmap, and auto where it maps
    #[arg(long, value_name = "ADVICE")]
    map_advice: Option<MapAdvice>,
}

#[derive(Args)]
#[command(next_help_heading = "I/O: memory and processors")]
struct MemoryFlags {
    /// Pages under the buffers: auto (transparent huge pages where they can be had), thp, hugetlb
    /// (the pool of vm.nr_hugepages) or off. Huge ones help reads of 512K and more
    #[arg(
        long,
        value_name = "KIND",
        hide_default_value = true,
        default_value = "auto"
    )]
    huge_pages: HugePages,
    /// Hold each worker to one CPU of a list as 0,2-3, in turn; without --threads one a CPU. Helps
    /// where other work moves threads about, or to keep to one NUMA node
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

/// On, off, or as the engine likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Switch(Option<bool>);

fn switch(text: &str) -> Result<Switch, String> {
    match text {
        "auto" => Ok(Switch(None)),
        "on" => Ok(Switch(Some(true))),
        "off" => Ok(Switch(Some(false))),
        _ => Err("it is one of auto, on, off".into()),
    }
}

/// Processors by number, in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cpus(Vec<u32>);

impl std::str::FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is no list of CPUs as 0,2-3");
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
