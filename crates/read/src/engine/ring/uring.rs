//! The ring: one thread, a tokio-uring runtime with its LocalSet, reads into registered buffers.
//!
//! Before the runtime is built the ring is probed with the raw interface, because tokio-uring
//! panics where io_uring can't be set up and drops errors of `io_uring_enter`.
//!
//! # Invariant of this module
//! A queue entry names memory of a [`Slot`] and the descriptor of an open file. Both travel with the
//! entry as the operation's stable data: the driver owns them until the completion. The dispatcher
//! ends only when nothing is in flight, and [`run`] keeps the arena until the runtime is gone, so
//! that even a ring torn down by a panic writes into memory that is still ours.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use tokio_uring::buf::fixed::FixedBufRegistry;
use tokio_uring::buf::{IoBuf, IoBufMut};
use tokio_uring::{InFlightOneshot, OneshotOutputTransform, UnsubmittedOneshot};

use crate::engine::arena::Arena;
use crate::engine::knobs::{Knobs, TaskRun};
use crate::engine::ring::in_flight::InFlight;
use crate::engine::ring::seam::{Completion, Ring, Submission};
use crate::error::refusal::{Facility, Refusal, Refuser};
use crate::error::setting::Setting;
use crate::error::{Error, Result};
use crate::linux::{io_priority, proc, retry, threads};

/// The largest buffer that the kernel registers as one.
pub(crate) const MAX_REGISTERED: usize = 1 << 30;
/// How long a polling thread polls before it sleeps: longer than a read takes.
pub(crate) const SQPOLL_IDLE_MS: u32 = 100;
/// How often the thread parks at least, and so submits what a failed `io_uring_enter` has left.
const RESUBMIT: Duration = Duration::from_millis(100);

/// Why there is no ring.
pub(crate) fn unavailable(by: Refuser, why: impl Into<String>) -> Error {
    Error::from(Refusal::Unavailable {
        what: Facility::Ring,
        by,
        why: why.into(),
    })
}

/// How a ring is to be set up and used.
#[derive(Debug, Clone, Copy, Default)]
pub struct Setup {
    /// Entries of the submission queue, and whether the user named the number.
    entries: u32,
    entries_named: bool,
    register: Option<bool>,
    sqpoll: Option<Option<u32>>,
    punt: Option<Option<u32>>,
    coop: bool,
}

impl Setup {
    /// For `depth` reads in flight, unless the knobs say how many entries.
    pub(crate) fn new(knobs: &Knobs, depth: usize) -> Setup {
        Setup {
            entries: match knobs.entries {
                Some(entries) => entries.next_power_of_two(),
                None => depth.next_power_of_two().clamp(8, 4096) as u32,
            },
            entries_named: knobs.entries.is_some(),
            register: knobs.registered_buffers,
            sqpoll: knobs.sqpoll,
            punt: knobs.punt,
            coop: knobs.task_run == Some(TaskRun::Coop),
        }
    }

    /// The plainest ring.
    pub fn plain() -> Setup {
        Setup {
            entries: 8,
            ..Setup::default()
        }
    }

    fn builder(&self) -> io_uring::Builder {
        let mut builder = IoUring::builder();
        if let Some(cpu) = self.sqpoll {
            builder.setup_sqpoll(SQPOLL_IDLE_MS);
            if let Some(cpu) = cpu {
                builder.setup_sqpoll_cpu(cpu);
            }
        }
        if self.coop {
            builder.setup_coop_taskrun();
        }
        builder
    }

    fn build(&self) -> io::Result<IoUring> {
        retry_nomem(|| self.builder().build(self.entries))
    }

    /// Which knob it is that the kernel refuses; `None` when it refuses even the plainest ring.
    fn blame(&self) -> Option<Error> {
        let plain = Setup::plain();
        plain.build().ok()?;
        let knobs = [
            (
                self.entries_named,
                Setup {
                    entries: self.entries,
                    ..plain
                },
            ),
            (
                self.coop,
                Setup {
                    coop: true,
                    ..plain
                },
            ),
            (
                self.sqpoll.is_some(),
                Setup {
                    sqpoll: self.sqpoll,
                    ..plain
                },
            ),
        ];
        knobs.into_iter().find_map(|(named, alone)| {
            let error = match named {
                true => alone.build().err()?,
                false => return None,
            };
            Some(Error::from(alone.refusal(&error)).with_errno(&error))
        })
    }

    /// Why the kernel refuses this one knob.
    fn refusal(&self, error: &io::Error) -> Refusal {
        let errno = error.raw_os_error();
        let (choice, by, why) = match self.sqpoll {
            None if self.coop => (
                Setting::TaskRun.of(TaskRun::Coop),
                Refuser::Kernel,
                "the kernel refuses it; it needs Linux 5.19",
            ),
            None if errno == Some(libc::ENOMEM) => (
                Setting::Entries.of(self.entries),
                Refuser::LockedMemoryLimit,
                "the kernel refuses so many; they count as locked memory, see ulimit -l",
            ),
            None => (
                Setting::Entries.of(self.entries),
                Refuser::Kernel,
                "the kernel refuses so many; this one takes fewer",
            ),
            Some(Some(cpu)) if errno == Some(libc::EINVAL) => (
                Setting::Sqpoll.of(cpu),
                Refuser::Processor,
                "there is no such processor, it is offline, or the cpuset forbids it to this \
                 process",
            ),
            Some(_) if errno == Some(libc::EPERM) => (
                Setting::Sqpoll.into(),
                Refuser::Kernel,
                "the kernel refuses a polling thread; before Linux 5.13 that takes CAP_SYS_NICE",
            ),
            Some(_) => (
                Setting::Sqpoll.into(),
                Refuser::Kernel,
                "the kernel refuses a polling thread",
            ),
        };
        let why = why.to_string();
        Refusal::NotGranted { choice, by, why }
    }
}

/// Tests a ring as a run would use it: sets it up, registers a buffer, reads.
///
/// # Errors
/// The cause, in words for the user; of several knobs the one that is refused.
pub fn probe(setup: &Setup) -> Result<IoUring> {
    let built = setup.build();
    let mut ring = built.map_err(|error| {
        let blamed = setup.blame();
        blamed.unwrap_or_else(|| refused("io_uring_setup", &error))
    })?;

    let mut buffer = [0u8; 8];
    let iovec = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: the buffer outlives the registration, which is removed below.
    match unsafe { ring.submitter().register_buffers(&[iovec]) } {
        Ok(()) => drop(ring.submitter().unregister_buffers()),
        // The run uses plain reads then.
        Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {}
        Err(error) => return Err(refused("io_uring_register", &error)),
    }

    let zero = std::fs::File::open("/dev/zero").map_err(|e| refused("open /dev/zero", &e))?;
    let fd = types::Fd(zero.as_raw_fd());
    buffer.fill(1);
    let read = opcode::Read::new(fd, buffer.as_mut_ptr(), buffer.len() as u32).build();
    // SAFETY: buffer and file live until the completion has been waited for.
    unsafe { ring.submission().push(&read) }.expect("a new queue has room");
    let mut tries = 0;
    let waited = loop {
        match ring.submit_and_wait(1) {
            Err(error) if retry::may_pass(&error) && tries < retry::MOST => {
                retry::pause(tries);
                tries += 1;
            }
            waited => break waited,
        }
    };
    waited.map_err(|e| refused("io_uring_enter", &e))?;
    let result = ring
        .completion()
        .next()
        .map(|completion| completion.result());
    match result {
        Some(8) if buffer == [0; 8] => Ok(ring),
        Some(errno) if errno < 0 => Err(refused("a read", &io::Error::from_raw_os_error(-errno))),
        _ => Err(unavailable(
            Refuser::Kernel,
            "a read through it brought the wrong bytes",
        )),
    }
}

/// What a refused step of setting up a ring means.
pub(crate) fn refused(step: &str, error: &io::Error) -> Error {
    let (by, why) = match error.raw_os_error() {
        Some(libc::ENOSYS) => (
            Refuser::Kernel,
            "the kernel doesn't have it, or seccomp says so".to_string(),
        ),
        Some(libc::EPERM | libc::EACCES) => (Refuser::Administrator, blocked_by()),
        Some(libc::ENOMEM) => (
            Refuser::LockedMemoryLimit,
            "the limit on locked memory is used up, see ulimit -l".to_string(),
        ),
        Some(libc::EMFILE) => (
            Refuser::DescriptorLimit,
            "no descriptor is left, see ulimit -n".to_string(),
        ),
        _ => (Refuser::Kernel, "refused".to_string()),
    };
    unavailable(by, format!("{step}: {why}")).with_errno(error)
}

/// Why this process may not use io_uring.
fn blocked_by() -> String {
    let sysctl = proc::text("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match &*sysctl {
        "1" => "sysctl kernel.io_uring_disabled is 1: only its group and root may use it".into(),
        "2" => "sysctl kernel.io_uring_disabled is 2: nobody may use it".into(),
        _ => "blocked by seccomp or the container".into(),
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

/// How much memory this process may lock.
pub(crate) fn locked_limit() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock);
    limit.current.unwrap_or(u64::MAX)
}

/// What the ring of [`run`] was granted.
#[derive(Debug, Default, Clone)]
pub(crate) struct Facts {
    /// Why the buffers aren't registered; `None` when they are.
    pub unregistered: Option<String>,
    /// Entries of the submission queue.
    pub entries: u32,
    /// The kernel's polling thread, and where it may run.
    pub sqpoll: Option<String>,
    /// The limit on the kernel's worker threads, where one was set.
    pub workers_allowed: Option<u32>,
    /// The number of these threads at the end: idle ones stay for some seconds.
    pub workers: usize,
}

/// The probe's ring, kept beside tokio-uring's, whose descriptor isn't accessible. Settings of this one apply
/// to both, because they share the polling thread (ATTACH_WQ), or because the kernel's worker threads belong
/// to the submitting thread.
struct Anchor {
    ring: IoUring,
    /// The limit on worker threads that the submitting thread had before.
    before: Option<[u32; 2]>,
}

impl Anchor {
    fn new(ring: IoUring, setup: &Setup) -> Result<Anchor> {
        let before = match setup.punt {
            Some(Some(workers)) => {
                // The first limit is for work on files, the second for other work. But a read that is
                // punted at once counts against the second, because its file isn't looked up yet. The
                // kernel writes the previous limits back.
                let mut most = [workers; 2];
                let limited = ring.submitter().register_iowq_max_workers(&mut most);
                limited.map_err(|error| Error::from(unlimited(workers)).with_errno(&error))?;
                Some(most)
            }
            _ => None,
        };
        Ok(Anchor { ring, before })
    }

    fn fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }

    /// The polling thread, if there is one. Several tries, because the kernel reports none while the ring is
    /// locked.
    fn polling_thread(&self) -> Option<i32> {
        self.ring.params().is_setup_sqpoll().then_some(())?;
        (0..10).find_map(|_| self.polling_thread_now())
    }

    fn polling_thread_now(&self) -> Option<i32> {
        let info = proc::text(format!("/proc/self/fdinfo/{}", self.fd())).ok()?;
        let id = proc::field(&info, "SqThread")?.parse().ok()?;
        (id > 0).then_some(id)
    }
}

impl Drop for Anchor {
    fn drop(&mut self) {
        if let Some(mut before) = self.before {
            // The thread is the caller's, and its next ring isn't ours.
            let _ = self.ring.submitter().register_iowq_max_workers(&mut before);
        }
    }
}

/// Builds the runtime, registers the arena and drives `body` with the ring.
///
/// # Errors
/// The ring can't be set up, or a knob is refused.
pub(crate) fn run<T>(
    arena: &Arc<Arena>,
    setup: &Setup,
    body: impl AsyncFnOnce(&mut TokioUring) -> T,
) -> Result<(T, Facts)> {
    let ring = probe(setup)?;
    let entries = ring.params().sq_entries();
    let anchor = anchor(ring, setup)?;
    // Dropped after the runtime: see the invariant.
    let arena = Arc::clone(arena);
    let runtime = runtime(setup, anchor.as_ref())?;
    let done = runtime.block_on(drive(&arena, setup, anchor.as_ref(), entries, body));
    let abandoned = matches!(done, Ok((.., true)));
    if abandoned {
        // The reads may never complete. The driver, which owns their slots, is leaked.
        std::mem::forget(runtime);
    } else {
        drop(runtime);
    }
    drop(anchor);
    drop(arena);
    done.map(|(done, facts, _)| (done, facts))
}

/// The probe's ring as an anchor, where the setup needs one.
fn anchor(ring: IoUring, setup: &Setup) -> Result<Option<Anchor>> {
    match setup.sqpoll.is_some() || setup.punt.flatten().is_some() {
        true => Ok(Some(Anchor::new(ring, setup)?)),
        false => Ok(None),
    }
}

fn runtime(setup: &Setup, anchor: Option<&Anchor>) -> Result<tokio_uring::Runtime> {
    let mut flags = setup.builder();
    if let (Some(anchor), Some(_)) = (anchor, setup.sqpoll) {
        flags.setup_attach_wq(anchor.fd());
    }
    retry_nomem(|| {
        let mut builder = tokio_uring::builder();
        builder.entries(setup.entries).uring_builder(&flags);
        tokio_uring::Runtime::new(&builder)
    })
    .map_err(|error| refused("the runtime can't set up its ring", &error))
}

/// Registers the arena and drives `body` with the ring, on its runtime. The last result is whether `body`
/// left reads in flight.
async fn drive<T>(
    arena: &Arena,
    setup: &Setup,
    anchor: Option<&Anchor>,
    entries: u32,
    body: impl AsyncFnOnce(&mut TokioUring) -> T,
) -> Result<(T, Facts, bool)> {
    let (per_part, parts) = arena.parts(MAX_REGISTERED);
    let polling_thread = anchor.and_then(Anchor::polling_thread);
    let mut facts = Facts {
        entries,
        sqpoll: setup
            .sqpoll
            .map(|_| polling_thread.map_or("a kernel thread".to_string(), threads::placed)),
        workers_allowed: setup.punt.flatten(),
        ..Facts::default()
    };
    let parts = parts
        .into_iter()
        .map(|(start, len)| ArenaPart { start, len });
    let registry = FixedBufRegistry::new(parts);
    facts.unregistered = register(&registry, arena, setup)?;
    let registered = facts.unregistered.is_none();
    let mut reads = ReadOptions::new();
    reads.slots_per_buffer = registered.then_some(per_part);
    let mut ring = TokioUring {
        reads,
        in_flight: InFlight::new(arena.count()),
        entries: entries as usize,
        flags: match setup.punt {
            Some(_) => squeue::Flags::ASYNC,
            None => squeue::Flags::empty(),
        },
    };
    // tokio-uring drops the error of a submission and submits again when the thread parks. With no other
    // read in flight nothing would wake the thread.
    let waking = tokio_uring::spawn(async {
        loop {
            tokio::time::sleep(RESUBMIT).await;
        }
    });
    let done = body(&mut ring).await;
    waking.abort();
    if !ring.in_flight.is_empty() {
        return Ok((done, facts, true));
    }
    if setup.punt.is_some() {
        let submitter = rustix::thread::gettid().as_raw_nonzero().get();
        facts.workers = threads::io_workers_of(polling_thread.unwrap_or(submitter));
    }
    // Before the process ends, because the kernel releases locked memory late, and the next run of an
    // ordinary user needs it.
    if registered {
        let _ = registry.unregister();
    }
    Ok((done, facts, false))
}

/// Registers the buffers, unless the setup says not to. Returns why they aren't registered, if they aren't.
///
/// # Errors
/// The kernel refuses, and registered buffers were asked for.
fn register(
    registry: &FixedBufRegistry<ArenaPart>,
    arena: &Arena,
    setup: &Setup,
) -> Result<Option<String>> {
    if setup.register == Some(false) {
        return Ok(Some("not asked for".to_string()));
    }
    // Waiting for locked memory to be released helps only if the limit is large enough.
    let done = match locked_limit() >= arena.bytes() as u64 {
        true => retry_nomem(|| registry.register()),
        false => registry.register(),
    };
    match done {
        Ok(()) => Ok(None),
        Err(error) if setup.register == Some(true) => Err(unregistrable(arena.bytes(), &error)),
        Err(error) => Ok(Some(crate::error::describe(&error))),
    }
}

/// The error when the kernel's workers can't be limited to so many.
pub(crate) fn unlimited(workers: u32) -> Refusal {
    Refusal::NotGranted {
        choice: Setting::Punt.of(workers),
        by: Refuser::Kernel,
        why: "the kernel refuses to limit its workers; it needs Linux 5.15".into(),
    }
}

/// The error when registered buffers were asked for and are refused.
pub(crate) fn unregistrable(bytes: usize, error: &io::Error) -> Error {
    let limit = match locked_limit() {
        u64::MAX => "not limited for this user".to_string(),
        limit => format!("limited to {limit} bytes (ulimit -l)"),
    };
    let refusal = Refusal::NotGranted {
        choice: Setting::RegisteredBuffers.of("on"),
        by: Refuser::LockedMemoryLimit,
        why: format!(
            "the kernel refuses to register {bytes} bytes of buffers; locked memory is {limit}"
        ),
    };
    Error::from(refusal).with_errno(error)
}

/// The options that all reads of a ring have.
#[derive(Debug)]
pub(crate) struct ReadOptions {
    /// How many slots one registered buffer covers; `None`: nothing is registered.
    pub slots_per_buffer: Option<usize>,
    /// The I/O priority of reads that must not be merged with their neighbours.
    other_priority: u16,
}

impl ReadOptions {
    /// Options for memory that isn't registered.
    pub(crate) fn new() -> ReadOptions {
        ReadOptions {
            slots_per_buffer: None,
            other_priority: io_priority::other_than_own(),
        }
    }

    /// The queue entry of a read.
    pub(crate) fn entry(&self, submission: &mut Submission, fd: types::Fd) -> squeue::Entry {
        let filled = submission.filled;
        let (target, space) = submission.slot.target(filled);
        let len = (submission.len - filled).min(space) as u32;
        let offset = submission.offset + filled as u64;
        let flags = submission.caching.flags().bits() as types::RwFlags;
        // 0 is the thread's own.
        let priority = if submission.unmerged {
            self.other_priority
        } else {
            0
        };
        match self.slots_per_buffer {
            Some(per_buffer) => {
                let buffer = submission.slot.index() as usize / per_buffer;
                opcode::ReadFixed::new(fd, target.as_ptr(), len, buffer as u16)
                    .offset(offset)
                    .rw_flags(flags)
                    .ioprio(priority)
                    .build()
            }
            None => opcode::Read::new(fd, target.as_ptr(), len)
                .offset(offset)
                .rw_flags(flags)
                .ioprio(priority)
                .build(),
        }
    }
}

/// The tokio-uring runtime's ring.
pub(crate) struct TokioUring {
    reads: ReadOptions,
    in_flight: InFlight<Operation>,
    entries: usize,
    /// The flags of each entry: whether the kernel's workers do the read (ASYNC).
    flags: squeue::Flags,
}

impl Ring for TokioUring {
    fn submit(&mut self, mut submission: Submission) {
        let place = submission.slot.index() as usize;
        let operation = match submission.source.file_for(submission.caching) {
            Ok(file) => {
                let fd = types::Fd(file.as_raw_fd());
                submission.file = Some(file);
                let entry = self.reads.entry(&mut submission, fd);
                let entry = entry.flags(self.flags);
                // Memory and descriptor of the entry belong to the submission, which the driver keeps
                // until the completion; the slot's owner is the submission alone.
                Operation::Submitted(UnsubmittedOneshot::new(submission, Collect, entry).submit())
            }
            Err(error) => {
                let result = Err(error);
                Operation::Refused(Some(Completion { submission, result }))
            }
        };
        self.in_flight.insert(place, operation);
    }

    async fn completion(&mut self) -> Completion {
        self.in_flight.next().await
    }

    fn try_completion(&mut self) -> Option<Completion> {
        self.in_flight.try_next()
    }

    fn max_depth(&self) -> usize {
        self.entries
    }
}

/// A read that was submitted, or that can't be.
enum Operation {
    Submitted(InFlightOneshot<Submission, Collect>),
    Refused(Option<Completion>),
}

impl Future for Operation {
    type Output = Completion;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        match self.get_mut() {
            Operation::Submitted(submitted) => Pin::new(submitted).poll(context),
            Operation::Refused(completion) => {
                Poll::Ready(completion.take().expect("it completes once"))
            }
        }
    }
}

/// Returns the submission with the count or the errno.
struct Collect;

impl OneshotOutputTransform for Collect {
    type Output = Completion;
    type StoredData = Submission;

    fn transform_oneshot_output(self, submission: Submission, cqe: cqueue::Entry) -> Completion {
        let result = outcome(&cqe);
        Completion { submission, result }
    }
}

/// The count or the errno of a completion.
pub(crate) fn outcome(cqe: &cqueue::Entry) -> io::Result<usize> {
    match cqe.result() {
        n @ 0.. => Ok(n as usize),
        errno => Err(io::Error::from_raw_os_error(-errno)),
    }
}

/// A part of the arena as the kernel registers it.
struct ArenaPart {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the arena doesn't move, and `run` keeps it until the runtime, with its registration, is gone.
unsafe impl IoBuf for ArenaPart {
    fn stable_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len
    }

    fn bytes_total(&self) -> usize {
        self.len
    }
}

// SAFETY: as above. tokio-uring itself never writes here, because no buffer is checked out of the registry:
// reads name slots.
unsafe impl IoBufMut for ArenaPart {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    unsafe fn set_init(&mut self, _: usize) {}
}

/// Whether `auto` uses io_uring on this kernel: before 6.1 a buffered read of a bad sector never completes.
pub fn kernel_is_trusted() -> Result<()> {
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    let version = (numbers.next(), numbers.next());
    match version {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < (6, 1) => {
            let why = format!("kernel {release} is older than 6.1");
            Err(unavailable(Refuser::Kernel, why))
        }
        _ => Ok(()),
    }
}
