//! The set-up of a ring, the same for tokio-uring and the raw interface; and what a kernel that refuses it says.

use std::io;
use std::time::Duration;

use io_uring::{Builder, IoUring};

use crate::engine::knobs::{Knobs, TaskRun};
use crate::error::refusal::{Facility, Refusal, Refuser};
use crate::error::setting::{Choice, Setting};
use crate::error::{Error, Result};
use crate::linux::proc;

/// The largest buffer that the kernel registers as one.
pub(crate) const MAX_REGISTERED: usize = 1 << 30;
/// How long a polling thread polls before it sleeps: longer than a read takes.
const SQPOLL_IDLE_MS: u32 = 100;

/// How a ring is to be set up and used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Setup {
    /// Reads in flight.
    depth: usize,
    /// Entries of the submission queue, if the user named the number.
    entries: Option<u32>,
    /// Whether completions of all reads in flight must fit into the ring, whatever its submission queue.
    has_all_completions: bool,
    pub(crate) register: Option<bool>,
    pub(crate) sqpoll: Option<Option<u32>>,
    pub(crate) punt: Option<Option<u32>>,
    task_run: Option<TaskRun>,
    iopoll: bool,
}

/// Each knob of a set-up alone, for the search for the one that the kernel refuses.
const KNOBS: [fn(&mut Setup, &Setup); 4] = [
    |alone, all| alone.entries = all.entries,
    |alone, all| alone.task_run = all.task_run,
    |alone, all| alone.sqpoll = all.sqpoll,
    |alone, all| alone.iopoll = all.iopoll,
];

impl Setup {
    /// For `depth` reads in flight, unless the knobs say how many entries.
    pub(crate) fn new(knobs: &Knobs, depth: usize) -> Setup {
        Setup {
            depth,
            entries: knobs.entries,
            has_all_completions: false,
            register: knobs.registered_buffers,
            sqpoll: knobs.sqpoll,
            punt: knobs.punt,
            task_run: knobs.task_run,
            iopoll: knobs.iopoll,
        }
    }

    /// The same with room for the completions of all reads in flight and of one more operation.
    pub(crate) fn with_all_completions(self) -> Setup {
        Setup {
            has_all_completions: true,
            ..self
        }
    }

    /// The plainest ring.
    pub fn plain() -> Setup {
        Setup::default()
    }

    /// Entries of the submission queue.
    pub(crate) fn entries(&self) -> u32 {
        match self.entries {
            Some(entries) => entries.next_power_of_two(),
            None => self.depth.next_power_of_two().clamp(8, 4096) as u32,
        }
    }

    pub(crate) fn builder(&self) -> Builder {
        let mut builder = IoUring::builder();
        if self.has_all_completions {
            let completions = (self.depth + 1).next_power_of_two() as u32;
            builder.setup_cqsize(completions.max(2 * self.entries()));
        }
        if let Some(cpu) = self.sqpoll {
            builder.setup_sqpoll(SQPOLL_IDLE_MS);
            if let Some(cpu) = cpu {
                builder.setup_sqpoll_cpu(cpu);
            }
        }
        match self.task_run {
            None => &mut builder,
            Some(TaskRun::Coop) => builder.setup_coop_taskrun(),
            Some(TaskRun::Defer) => builder.setup_single_issuer().setup_defer_taskrun(),
        };
        if self.iopoll {
            builder.setup_iopoll();
        }
        builder
    }

    /// Sets up the ring.
    ///
    /// # Errors
    /// The cause, in words for the user; of several knobs the one that is refused.
    pub(crate) fn build(&self) -> Result<IoUring> {
        self.try_build().map_err(|error| {
            let blamed = self.blame();
            blamed.unwrap_or_else(|| refused("io_uring_setup", &error))
        })
    }

    fn try_build(&self) -> io::Result<IoUring> {
        retry_nomem(|| self.builder().build(self.entries()))
    }

    /// Which knob it is that the kernel refuses; `None` when it refuses even the plainest ring.
    fn blame(&self) -> Option<Error> {
        let plain = Setup::plain();
        plain.try_build().ok()?;
        KNOBS.into_iter().find_map(|set| {
            let mut alone = plain;
            set(&mut alone, self);
            let error = (alone != plain).then(|| alone.try_build().err())??;
            Some(Error::from(alone.refusal(&error)).with_errno(&error))
        })
    }

    /// Why the kernel refuses this one knob.
    fn refusal(&self, error: &io::Error) -> Refusal {
        let errno = error.raw_os_error();
        let mut by = Refuser::Kernel;
        let (choice, why): (Choice, _) = if let Some(cpu) = self.sqpoll {
            match (cpu, errno) {
                (Some(cpu), Some(libc::EINVAL)) => {
                    by = Refuser::Processor;
                    let why = "there is no such processor, it is offline, or the cpuset forbids it to this process";
                    (Setting::Sqpoll.of(cpu), why)
                }
                (_, Some(libc::EPERM)) => (
                    Setting::Sqpoll.into(),
                    "the kernel refuses a polling thread; before Linux 5.13 that takes CAP_SYS_NICE",
                ),
                _ => (
                    Setting::Sqpoll.into(),
                    "the kernel refuses a polling thread",
                ),
            }
        } else if let Some(mode) = self.task_run {
            let why = match mode {
                TaskRun::Coop => "the kernel refuses it; it needs Linux 5.19",
                TaskRun::Defer => "the kernel refuses it; it needs Linux 6.1",
            };
            (Setting::TaskRun.of(mode), why)
        } else if self.iopoll {
            (Setting::Iopoll.into(), "the kernel refuses such a ring")
        } else {
            let choice = Setting::Entries.of(self.entries.unwrap_or(self.entries()));
            match errno {
                Some(libc::ENOMEM) => {
                    by = Refuser::LockedMemoryLimit;
                    let why =
                        "the kernel refuses so many; they count as locked memory, see ulimit -l";
                    (choice, why)
                }
                _ => (choice, "the kernel refuses so many; this one takes fewer"),
            }
        };
        Refusal::not_granted(choice, by, why)
    }

    /// Registers buffers, of `bytes` bytes in all, unless the set-up says not to. Returns whether they are registered.
    ///
    /// # Errors
    /// The kernel refuses, and registered buffers were asked for.
    pub(crate) fn register(
        &self,
        bytes: usize,
        mut register: impl FnMut() -> io::Result<()>,
    ) -> Result<bool> {
        if self.register == Some(false) {
            return Ok(false);
        }
        let locked = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
        // Waiting for locked memory to be released helps only if the limit is large enough.
        let done = match locked.is_none_or(|limit| limit >= bytes as u64) {
            true => retry_nomem(register),
            false => register(),
        };
        let Err(error) = done else {
            return Ok(true);
        };
        if self.register != Some(true) {
            return Ok(false);
        }
        let limit = match locked {
            None => "not limited for this user".to_string(),
            Some(limit) => format!("limited to {limit} bytes (ulimit -l)"),
        };
        let why = format!(
            "the kernel refuses to register {bytes} bytes of buffers; locked memory is {limit}"
        );
        let choice = Setting::RegisteredBuffers.of("on");
        let refusal = Refusal::not_granted(choice, Refuser::LockedMemoryLimit, why);
        Err(Error::from(refusal).with_errno(&error))
    }
}

/// What a ring was granted, and what it did.
#[derive(Debug, Default, Clone)]
pub(crate) struct Facts {
    /// Whether the buffers are registered.
    pub registered: bool,
    /// Entries of the submission queue.
    pub entries: u32,
    /// The kernel's polling thread, and where it may run.
    pub sqpoll: Option<String>,
    /// The number of the kernel's worker threads at the end: idle ones stay for some seconds.
    pub workers: usize,
    /// The switches in force on a raw ring, as the kernel calls them.
    pub flags: Vec<String>,
    /// Calls of `io_uring_enter` on a raw ring.
    pub enters: u64,
}

/// Limits the kernel's worker threads for the submissions of this thread. Returns the limits before.
///
/// # Errors
/// The kernel can't.
pub(crate) fn limit_workers(ring: &IoUring, workers: u32) -> Result<[u32; 2]> {
    // The first limit is for work on files, the second for other work. But a read that is punted at once counts against the
    // second, because its file isn't looked up yet. The kernel writes the previous limits back.
    let mut most = [workers; 2];
    let limited = ring.submitter().register_iowq_max_workers(&mut most);
    limited.map_err(|error| {
        let why = "the kernel refuses to limit its workers; it needs Linux 5.15";
        let refusal = Refusal::not_granted(Setting::Punt.of(workers), Refuser::Kernel, why);
        Error::from(refusal).with_errno(&error)
    })?;
    Ok(most)
}

/// Why there is no ring.
pub(crate) fn unavailable(by: Refuser, why: impl Into<String>) -> Error {
    Refusal::unavailable(Facility::Ring, by, why).into()
}

/// What a refused step of setting up a ring means.
pub(crate) fn refused(step: &str, error: &io::Error) -> Error {
    let (by, why) = match error.raw_os_error() {
        Some(libc::ENOSYS) => (
            Refuser::Kernel,
            "the kernel doesn't have it, or seccomp says so",
        ),
        Some(libc::EPERM | libc::EACCES) => (Refuser::Administrator, blocked_by()),
        Some(libc::ENOMEM) => (
            Refuser::LockedMemoryLimit,
            "the limit on locked memory is used up, see ulimit -l",
        ),
        Some(libc::EMFILE) => (
            Refuser::DescriptorLimit,
            "no descriptor is left, see ulimit -n",
        ),
        _ => (Refuser::Kernel, "refused"),
    };
    unavailable(by, format!("{step}: {why}")).with_errno(error)
}

/// Why this process may not use io_uring.
fn blocked_by() -> &'static str {
    match proc::number("/proc/sys/kernel/io_uring_disabled") {
        Ok(1) => "sysctl kernel.io_uring_disabled is 1: only its group and root may use it",
        Ok(2) => "sysctl kernel.io_uring_disabled is 2: nobody may use it",
        _ => "blocked by seccomp or the container",
    }
}

/// Retries for a moment after ENOMEM, because the kernel releases locked memory of an ended process late.
pub fn retry_nomem<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for wait_ms in [1, 4, 15, 60] {
        match attempt() {
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {
                std::thread::sleep(Duration::from_millis(wait_ms));
            }
            done => return done,
        }
    }
    attempt()
}
