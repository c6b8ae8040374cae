//! The kernel's switches, one by one, as a run was asked to set them: what can be asked for, which
//! of it contradicts itself, and what of it a run had no use for.

use crate::error::setting::Setting;

/// An enumeration whose values have names.
macro_rules! named {
    ($(#[$of:meta])* $type:ident, $what:literal: $($(#[$is:meta])* $value:ident = $name:literal,)*) => {
        $(#[$of])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $type {
            $($(#[$is])* $value,)*
        }

        impl $type {
            /// All of them.
            pub const ALL: [$type; [$($type::$value),*].len()] = [$($type::$value),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$value => $name,)*
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(name: &str) -> $crate::Result<Self> {
                let found = $type::ALL.into_iter().find(|value| value.name() == name);
                found.ok_or_else(|| {
                    let cause = format!("{} is one of {}, not {name}", $what, $type::ALL.map(Self::name).join(", "));
                    $crate::Error::new($crate::Kind::Usage, cause)
                })
            }
        }
    };
}
pub(crate) use named;

named! {
    /// What the pages under the buffers are to be.
    #[derive(Default)]
    HugePages, "the kind of pages":
    /// Transparent huge pages, or small ones where there are none.
    #[default]
    Auto = "auto",
    /// Transparent huge pages, or an error.
    Thp = "thp",
    /// Pages of the hugetlb pool, or an error.
    Hugetlb = "hugetlb",
    /// Small pages.
    Off = "off",
}

named! {
    /// Whether `auto` leaves in the page cache what it reads.
    #[derive(Default)]
    CacheUse, "the use of the page cache":
    /// If the input fits comfortably into the memory that is available.
    Auto = "auto",
    /// It stays there, so that the next run finds it.
    Keep = "keep",
    /// It is read past the page cache.
    #[default]
    None = "none",
}

named! {
    /// When the kernel runs the completion work of a ring.
    TaskRun, "the mode":
    /// At the next transition to the kernel (COOP_TASKRUN, Linux 5.19).
    Coop = "coop",
    /// When the ring's thread asks for completions (DEFER_TASKRUN, Linux 6.1); `uring-raw` only.
    Defer = "defer",
}

named! {
    /// The advice that the kernel gets on how a file is going to be read (posix_fadvise), before the first
    /// read.
    FileAdvice, "the advice":
    /// The device's read-ahead, the kernel's default.
    Normal = "normal",
    /// Twice the read-ahead.
    Sequential = "sequential",
    /// No read-ahead.
    Random = "random",
    /// The pages are first to go (Linux 6.3; before that it does nothing).
    NoReuse = "noreuse",
    /// Reading may begin now; the kernel begins with one read-ahead's worth.
    WillNeed = "willneed",
    /// Clean pages are dropped from the page cache: the run begins cold.
    DontNeed = "dontneed",
}

named! {
    /// The advice that the kernel gets on each mapped window (madvise).
    MapAdvice, "the advice":
    /// The device's read-ahead, the kernel's default.
    Normal = "normal",
    /// More read-ahead.
    Sequential = "sequential",
    /// No read-ahead, not even around a fault.
    Random = "random",
    /// Reading may begin now.
    WillNeed = "willneed",
    /// What isn't cached comes in as large folios, where the file system has them.
    HugePage = "hugepage",
    /// What is cached is copied into huge pages before it is looked at (Linux 6.1).
    Collapse = "collapse",
}

/// What can be set of the kernel's I/O. The default leaves everything to the engine.
///
/// What is set here is never given up silently: what the kernel refuses is an error that names the
/// setting, and what the engine that ran had no use for is in [`Stats::without_effect`](crate::Stats::without_effect).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Knobs {
    /// Whether `auto` leaves in the page cache what it reads.
    pub cache: CacheUse,
    /// Buffered, but dropped from the page cache at once (RWF_DONTCACHE, Linux 6.14).
    pub dontcache: bool,
    /// Pages under the buffers.
    pub huge_pages: HugePages,
    /// Registered buffers: on, off, or where they can be had.
    pub registered_buffers: Option<bool>,
    /// Registered files (Linux 5.1); `uring-raw` only.
    pub registered_files: bool,
    /// A kernel thread polls for submissions (SQPOLL); on that processor, if one is named.
    pub sqpoll: Option<Option<u32>>,
    /// Reads go to the kernel's worker threads at once (IOSQE_ASYNC), at most so many of them, if a
    /// number is given.
    pub punt: Option<Option<u32>>,
    /// When completion work runs.
    pub task_run: Option<TaskRun>,
    /// Entries of the submission queue.
    pub entries: Option<u32>,
    /// Completions are polled for (IOPOLL); `uring-raw` with O_DIRECT on a device with poll queues.
    pub iopoll: bool,
    /// Rings, each with a thread and a dispatcher of its own; `uring-raw` only.
    pub rings: Option<usize>,
    /// Processors for the workers, in turn; whatever else the run does stays on them too. Empty:
    /// wherever the scheduler likes.
    pub pin: Vec<u32>,
    /// The advice on the files.
    pub fadvise: Option<FileAdvice>,
    /// How many bytes ahead of `read`, `pread` and `mmap` the kernel is to read.
    pub readahead: Option<u64>,
    /// Whether a window's pages are mapped at once (MADV_POPULATE_READ, Linux 5.14) or by faults,
    /// which is what is done unasked.
    pub populate: Option<bool>,
    /// The advice on mapped windows.
    pub map_advice: Option<MapAdvice>,
}

impl Knobs {
    /// The knobs that only a ring has, and which of them are set.
    pub(crate) fn of_rings(&self) -> [(Setting, bool); 7] {
        let buffers = self.registered_buffers.is_some();
        [
            (Setting::RegisteredBuffers, buffers),
            (Setting::RegisteredFiles, self.registered_files),
            (Setting::Sqpoll, self.sqpoll.is_some()),
            (Setting::Punt, self.punt.is_some()),
            (Setting::TaskRun, self.task_run.is_some()),
            (Setting::Entries, self.entries.is_some()),
            (Setting::Iopoll, self.iopoll),
        ]
    }

    /// The first knob that is set of those which need a ring: buffers can be left unregistered without one.
    pub(crate) fn needing_ring(&self) -> Option<Setting> {
        let set = self.of_rings().into_iter().filter(|(_, set)| *set);
        let mut set = set.map(|(setting, _)| setting);
        let unregistered = self.registered_buffers == Some(false);
        set.find(|setting| !(unregistered && *setting == Setting::RegisteredBuffers))
    }

    /// Whether anything was asked of mappings.
    pub(crate) fn of_mappings(&self) -> bool {
        self.populate.is_some() || self.map_advice.is_some()
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::knobs::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for advice in MapAdvice::ALL {
            assert_eq!(advice.to_string().parse(), Ok(advice));
        }
        let error = "warp".parse::<HugePages>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the kind of pages is one of auto, thp, hugetlb, off, not warp"
        );
    }
}
