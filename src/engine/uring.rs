//! The ring: one thread, a tokio-uring runtime with its LocalSet, reads into registered buffers.
//!
//! Before the runtime is built the ring is probed with the raw interface, because tokio-uring
//! panics where io_uring can't be set up and drops errors of `io_uring_enter`.
//!
//! # Invariant (`unsafe` room)
//! A queue entry names memory of a [`Slot`] and a descriptor of a [`Source`]. Both travel with the
//! entry as the operation's stable data: the driver owns them until the completion. The dispatcher
//! ends only when nothing is in flight, and [`run`] keeps the arena until the runtime is gone, so
//! that even a ring torn down by a panic writes into memory that is still ours.
#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, types};
use tokio::task::JoinSet;
use tokio_uring::buf::fixed::FixedBufRegistry;
use tokio_uring::buf::{IoBuf, IoBufMut};
use tokio_uring::{OneshotOutputTransform, UnsubmittedOneshot};

use super::arena::Arena;
use super::ring::{Completion, Ring, Submission};
use crate::error::{Error, Kind, Result};

/// The largest buffer that the kernel registers as one.
const MAX_REGISTERED: usize = 1 << 30;

/// Why there is no ring, in words for the user.
pub(crate) fn unavailable(cause: &str) -> Error {
    Error::new(Kind::Engine, format!("no io_uring: {cause}"))
}

/// Tries out a ring: set up, register a buffer, read. What it finds is what a run would find.
///
/// # Errors
/// The cause, in words for the user.
pub(crate) fn probe(entries: u32) -> Result<()> {
    let refused = |step: &str, error: &io::Error| {
        let cause = match error.raw_os_error() {
            Some(libc::ENOSYS) => "the kernel doesn't have it, or seccomp says so".to_string(),
            Some(libc::EPERM | libc::EACCES) => blocked_by(),
            Some(libc::ENOMEM) => {
                "the limit on locked memory is used up, see ulimit -l".to_string()
            }
            _ => "refused".to_string(),
        };
        unavailable(&format!("{step}: {cause}")).with_errno(error)
    };
    let mut ring =
        retry_nomem(|| IoUring::new(entries)).map_err(|e| refused("io_uring_setup", &e))?;

    let mut buffer = [0u8; 8];
    let iovec = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: the buffer outlives the registration, which is taken back below.
    match unsafe { ring.submitter().register_buffers(&[iovec]) } {
        Ok(()) => drop(ring.submitter().unregister_buffers()),
        // The run goes on with plain reads then.
        Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {}
        Err(error) => return Err(refused("io_uring_register", &error)),
    }

    let zero = std::fs::File::open("/dev/zero").map_err(|e| refused("open /dev/zero", &e))?;
    let fd = types::Fd(std::os::fd::AsRawFd::as_raw_fd(&zero));
    buffer.fill(1);
    let read = opcode::Read::new(fd, buffer.as_mut_ptr(), buffer.len() as u32).build();
    // SAFETY: buffer and file live until the completion has been waited for.
    unsafe { ring.submission().push(&read) }.expect("a new queue has room");
    let waited = loop {
        match ring.submit_and_wait(1) {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            waited => break waited,
        }
    };
    waited.map_err(|e| refused("io_uring_enter", &e))?;
    let result = ring
        .completion()
        .next()
        .map(|completion| completion.result());
    match result {
        Some(8) if buffer == [0; 8] => Ok(()),
        Some(errno) if errno < 0 => Err(refused("a read", &io::Error::from_raw_os_error(-errno))),
        _ => Err(unavailable("a read through it brought the wrong bytes")),
    }
}

/// Names what forbids io_uring to this process.
fn blocked_by() -> String {
    let sysctl = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match sysctl.trim() {
        "1" => "sysctl kernel.io_uring_disabled is 1: only its group and root may use it".into(),
        "2" => "sysctl kernel.io_uring_disabled is 2: nobody may use it".into(),
        _ => "blocked by seccomp or the container".into(),
    }
}

/// Locked memory of a process that has just ended is given back late: a moment's patience helps.
pub(crate) fn retry_nomem<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
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
fn locked_limit() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock);
    limit.current.unwrap_or(u64::MAX)
}

/// What [`run`] found out about the ring it made.
#[derive(Debug, Default, Clone)]
pub(crate) struct Facts {
    /// Why the buffers aren't registered; `None` when they are.
    pub unregistered: Option<String>,
}

/// Builds the runtime, registers the arena and drives `body` with the ring.
///
/// # Errors
/// The ring can't be set up.
pub(crate) fn run<T>(
    arena: &Arc<Arena>,
    depth: usize,
    register: bool,
    body: impl AsyncFnOnce(&mut TokioUring) -> T,
) -> Result<(T, Facts)> {
    let entries = depth.next_power_of_two().clamp(8, 4096) as u32;
    probe(entries)?;
    // Dropped after the runtime: see the invariant.
    let arena = Arc::clone(arena);
    let runtime = retry_nomem(|| {
        let mut builder = tokio_uring::builder();
        builder.entries(entries);
        tokio_uring::Runtime::new(&builder)
    })
    .map_err(|error| unavailable("the runtime can't set up its ring").with_errno(&error))?;
    let done = runtime.block_on(async {
        let (per_part, parts) = arena.parts(MAX_REGISTERED);
        let mut facts = Facts::default();
        let parts = parts
            .into_iter()
            .map(|(start, len)| ArenaPart { start, len });
        let registry = FixedBufRegistry::new(parts);
        let registered = match register {
            false => Err("not asked for".to_string()),
            true => {
                // Only where the limit would do is it worth waiting for memory to come back.
                let patient = locked_limit() >= arena.bytes() as u64;
                let done = match patient {
                    true => retry_nomem(|| registry.register()),
                    false => registry.register(),
                };
                done.map_err(|error| crate::error::describe(&error))
            }
        };
        facts.unregistered = registered.as_ref().err().cloned();
        let mut ring = TokioUring {
            slots_per_buffer: registered.is_ok().then_some(per_part),
            in_flight: JoinSet::new(),
            entries: entries as usize,
        };
        let done = body(&mut ring).await;
        // Before the process ends: the kernel gives locked memory back late, and the next run of
        // an ordinary user needs it.
        if registered.is_ok() {
            let _ = registry.unregister();
        }
        (done, facts)
    });
    drop(runtime);
    drop(arena);
    Ok(done)
}

/// The tokio-uring runtime's ring.
pub(crate) struct TokioUring {
    /// How many slots one registered buffer covers; `None`: nothing is registered.
    slots_per_buffer: Option<usize>,
    in_flight: JoinSet<Completion>,
    entries: usize,
}

impl Ring for TokioUring {
    fn submit(&mut self, mut submission: Submission) {
        let Some(fd) = submission.source.raw_fd(submission.direct) else {
            let result = Err(io::Error::from_raw_os_error(libc::EBADF));
            self.in_flight
                .spawn_local(async move { Completion { submission, result } });
            return;
        };
        let fd = types::Fd(fd);
        let filled = submission.filled;
        let (target, room) = submission.slot.target(filled);
        let len = (submission.len - filled).min(room) as u32;
        let offset = submission.offset + filled as u64;
        let entry = match self.slots_per_buffer {
            Some(per_buffer) => {
                let buffer = submission.slot.index() as usize / per_buffer;
                opcode::ReadFixed::new(fd, target.as_ptr(), len, buffer as u16)
                    .offset(offset)
                    .build()
            }
            None => opcode::Read::new(fd, target.as_ptr(), len)
                .offset(offset)
                .build(),
        };
        // Memory and descriptor of the entry belong to the submission, which the driver keeps
        // until the completion; the slot's owner is the submission alone.
        let op = UnsubmittedOneshot::new(submission, Collect, entry).submit();
        self.in_flight.spawn_local(op);
    }

    async fn completion(&mut self) -> Completion {
        match self.in_flight.join_next().await {
            Some(joined) => done(joined),
            None => std::future::pending().await,
        }
    }

    fn try_completion(&mut self) -> Option<Completion> {
        self.in_flight.try_join_next().map(done)
    }

    fn max_depth(&self) -> usize {
        self.entries
    }
}

/// Operations aren't aborted; only a panic ends one without its completion.
fn done(joined: std::result::Result<Completion, tokio::task::JoinError>) -> Completion {
    joined.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Gives the submission back with the count or the errno.
struct Collect;

impl OneshotOutputTransform for Collect {
    type Output = Completion;
    type StoredData = Submission;

    fn transform_oneshot_output(self, submission: Submission, cqe: cqueue::Entry) -> Completion {
        let result = match cqe.result() {
            n @ 0.. => Ok(n as usize),
            errno => Err(io::Error::from_raw_os_error(-errno)),
        };
        Completion { submission, result }
    }
}

/// A part of the arena as the kernel registers it.
struct ArenaPart {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the address stays where it is as long as the arena does, and `run` keeps that until the
// runtime, with its registration, is gone.
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

// SAFETY: as above. tokio-uring itself never writes here: no buffer is ever checked out of the
// registry, reads name slots.
unsafe impl IoBufMut for ArenaPart {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    unsafe fn set_init(&mut self, _: usize) {}
}

/// Whether the kernel is one on which the ring is used without being asked for: before 6.1 a
/// buffered read over a bad sector never completes.
pub(crate) fn kernel_is_trusted() -> Result<()> {
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
            Err(unavailable(&format!("kernel {release} is older than 6.1")))
        }
        _ => Ok(()),
    }
}
