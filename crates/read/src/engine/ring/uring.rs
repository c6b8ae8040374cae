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
use crate::engine::ring::in_flight::InFlight;
use crate::engine::ring::seam::{Completion, Ring, Submission};
use crate::engine::ring::setup::{
    Facts, MAX_REGISTERED, Setup, limit_workers, refused, retry_nomem, unavailable,
};
use crate::error::Result;
use crate::error::refusal::Refuser;
use crate::linux::{io_priority, proc, retry, threads};

/// How often the thread parks at least, and so submits what a failed `io_uring_enter` has left.
const RESUBMIT: Duration = Duration::from_millis(100);

/// Tests a ring as a run would use it: sets it up, registers a buffer, reads.
///
/// # Errors
/// The cause, in words for the user; of several knobs the one that is refused.
pub fn probe(setup: &Setup) -> Result<IoUring> {
    let mut ring = setup.build()?;
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
            Err(error) if retry::again(&error, &mut tries) => {}
            waited => break waited,
        }
    };
    waited.map_err(|e| refused("io_uring_enter", &e))?;
    let completion = ring.completion().next();
    match completion.map(|completion| completion.result()) {
        Some(8) if buffer == [0; 8] => Ok(ring),
        Some(errno) if errno < 0 => Err(refused("a read", &io::Error::from_raw_os_error(-errno))),
        _ => Err(unavailable(
            Refuser::Kernel,
            "a read through it brought the wrong bytes",
        )),
    }
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
        let workers = setup.punt.flatten();
        let before = workers.map(|workers| limit_workers(&ring, workers));
        let before = before.transpose()?;
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
        builder.entries(setup.entries()).uring_builder(&flags);
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
        ..Facts::default()
    };
    let parts = parts
        .into_iter()
        .map(|(start, len)| ArenaPart { start, len });
    let registry = FixedBufRegistry::new(parts);
    facts.registered = setup.register(arena.bytes(), || registry.register())?;
    let mut reads = ReadOptions::new();
    reads.slots_per_buffer = facts.registered.then_some(per_part);
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
    if facts.registered {
        let _ = registry.unregister();
    }
    Ok((done, facts, false))
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
    let release = proc::release();
    match proc::version(&release) {
        Some(version) if version < (6, 1) => {
            let why = format!("kernel {release} is older than 6.1");
            Err(unavailable(Refuser::Kernel, why))
        }
        _ => Ok(()),
    }
}
