//! The kernel's switches, one by one, as a run was asked to set them.

/// What the pages under the buffers are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HugePages {
    /// Transparent huge pages, or small ones where there are none.
    #[default]
    Auto,
    /// Transparent huge pages, or an error.
    Thp,
    /// Pages of the hugetlb pool, or an error.
    Hugetlb,
    /// Small pages.
    Off,
}

/// When the kernel runs the completion work of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskRun {
    /// At the next transition to the kernel (COOP_TASKRUN, Linux 5.19).
    Coop,
    /// When the ring's thread asks for completions (DEFER_TASKRUN, Linux 6.1); `uring-raw` only.
    Defer,
}

/// What can be set of the kernel's I/O. The default leaves everything to the engine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Knobs {
    /// Buffered, but dropped from the page cache at once (RWF_DONTCACHE, Linux 6.14).
    pub dontcache: bool,
    /// Pages under the buffers.
    pub huge_pages: HugePages,
    /// Registered buffers: on, off, or where they can be had.
    pub registered_buffers: Option<bool>,
    /// Registered files (Linux 5.1).
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
}
