//! A ring on the raw io_uring interface, with all the kernel's switches that tokio-uring's driver doesn't
//! support, for experiments.
//!
//! It waits in `io_uring_enter` itself, because with DEFER_TASKRUN and IOPOLL completions come only to a
//! thread that waits there. A slot that is returned meanwhile wakes it by a [`Wakeup`]. All calls are made
//! by the thread that has set the ring up (SINGLE_ISSUER).
//!
//! # Invariant of this module
//! A queue entry names memory of a [`Slot`](crate::engine::arena::Slot) and a descriptor of a source. Both
//! stay in `in_flight` until the completion, under the slot's index, which no other read can have.
//! A ring that ends with reads in flight, by a panic or a failure of `io_uring_enter`, waits for them for a
//! second. If they don't complete, the arena is never freed.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use crate::engine::arena::{Arena, Slot};
use crate::engine::knobs::{Knobs, TaskRun};
use crate::engine::plan::buffers::Plan;
use crate::engine::ring::seam::{Completion, Ring, Submission};
use crate::engine::ring::setup::{
    Facts, MAX_REGISTERED, Setup, limit_workers, refused, unavailable,
};
use crate::engine::ring::uring::{ReadOptions, outcome};
use crate::engine::ring::wakeup::Wakeup;
use crate::error::refusal::{Refusal, Refuser};
use crate::error::setting::Setting;
use crate::error::{Error, Kind, Result, describe};
use crate::input::caching::Caching;
use crate::input::source::Source;
use crate::linux::retry;

/// The longest wait of one call, so that the runtime's timers run.
const PATIENCE: Duration = Duration::from_secs(1);
/// The user data of the poll on the wakeup's eventfd; all others are a slot's index.
const WAKEUP: u64 = u64::MAX;

/// A raw ring, with buffers and files registered as the knobs say.
pub(crate) struct RawRing {
    ring: IoUring,
    wakeup: Arc<Wakeup>,
    /// Whether a poll on the wakeup is active.
    armed: bool,
    /// Whether the kernel can poll the wakeup: not with IOPOLL, nor before Linux 5.13.
    can_poll_wakeup: bool,
    /// Entries that aren't in the kernel's submission queue yet.
    queue: VecDeque<Entry>,
    /// Reads in flight, by slot.
    in_flight: Vec<Option<Submission>>,
    /// Reads that failed before they reached the kernel.
    failed: VecDeque<Completion>,
    /// Why `io_uring_enter` failed for good.
    broken: Option<Error>,
    reads: ReadOptions,
    /// The numbers of the sources whose files are registered, ascending: a file's place in the table.
    files: Vec<u32>,
    entry_flags: Flags,
    sqpoll: bool,
    /// Calls without progress, one after the other.
    tries: u32,
    pub(crate) facts: Facts,
    /// Dropped after the ring.
    arena: Arc<Arena>,
}

impl RawRing {
    /// Sets up the ring that the knobs describe, for reads of `sources` into the arena's `slots`
    /// slots. From now on only this thread may use it.
    ///
    /// # Errors
    /// The kernel refuses something that was asked for: the error names it.
    pub(crate) fn new(
        knobs: &Knobs,
        plan: &Plan,
        arena: &Arc<Arena>,
        slots: usize,
        sources: &[Arc<Source>],
    ) -> Result<RawRing> {
        let setup = Setup::new(knobs, plan.depth).with_all_completions();
        let ring = setup.build()?;
        if !ring.params().is_feature_ext_arg() {
            return Err(unavailable(Refuser::Kernel, "uring-raw needs Linux 5.11"));
        }
        let entries = ring.params().sq_entries();
        let wakeup = Wakeup::new().map_err(|errno| refused("eventfd", &errno.into()))?;
        let mut ring = RawRing {
            ring,
            wakeup,
            armed: false,
            can_poll_wakeup: !knobs.iopoll,
            queue: VecDeque::new(),
            in_flight: (0..slots).map(|_| None).collect(),
            failed: VecDeque::new(),
            broken: None,
            reads: ReadOptions::new(),
            files: Vec::new(),
            entry_flags: Flags::empty(),
            sqpoll: knobs.sqpoll.is_some(),
            tries: 0,
            facts: Facts {
                flags: flags(knobs),
                entries,
                ..Facts::default()
            },
            arena: Arc::clone(arena),
        };
        if let Some(most) = knobs.punt {
            ring.entry_flags |= Flags::ASYNC;
            most.map(|most| limit_workers(&ring.ring, most))
                .transpose()?;
        }
        ring.register_buffers(&setup)?;
        if knobs.registered_files {
            ring.register_files(sources, plan)?;
        }
        Ok(ring)
    }

    /// The waker for the task that drives the ring.
    pub(crate) fn wakeup(&self) -> Arc<Wakeup> {
        Arc::clone(&self.wakeup)
    }

    fn register_buffers(&mut self, setup: &Setup) -> Result<()> {
        let (per_part, parts) = self.arena.parts(MAX_REGISTERED);
        let parts: Vec<libc::iovec> = parts
            .into_iter()
            .map(|(start, len)| libc::iovec {
                iov_base: start.as_ptr().cast(),
                iov_len: len,
            })
            .collect();
        let submitter = self.ring.submitter();
        // SAFETY: the parts lie in the arena, which outlives the registration: it is taken back in
        // `drop`, or the arena is kept for good.
        let register = || unsafe { submitter.register_buffers(&parts) };
        self.facts.registered = setup.register(self.arena.bytes(), register)?;
        self.reads.slots_per_buffer = self.facts.registered.then_some(per_part);
        Ok(())
    }

    fn register_files(&mut self, sources: &[Arc<Source>], plan: &Plan) -> Result<()> {
        let refused = |error: io::Error| {
            let (choice, by) = (Setting::RegisteredFiles, Refuser::DescriptorLimit);
            let why = format!("{} files can't be registered", sources.len());
            Error::from(Refusal::not_granted(choice, by, why)).with_errno(&error)
        };
        if sources.iter().any(|source| source.opens_in_turn()) {
            return Err(refused(io::Error::from_raw_os_error(libc::EMFILE)));
        }
        let mut files: Vec<(u32, RawFd)> = sources
            .iter()
            .filter_map(|source| {
                let file = source.file_for(plan.caching_of(source)).ok()?;
                Some((source.index(), file.as_raw_fd()))
            })
            .collect();
        files.sort_unstable();
        files.dedup();
        let fds: Vec<RawFd> = files.iter().map(|file| file.1).collect();
        let done = self.ring.submitter().register_files(&fds);
        done.map_err(refused)?;
        self.files = files.into_iter().map(|file| file.0).collect();
        Ok(())
    }

    /// Reads the beginning of a source past the page cache, to find out whether its file system and device
    /// can be polled, because they refuse a read, not the set-up. Returns the slot.
    ///
    /// # Errors
    /// They can't be polled. Other failures are left to the run.
    pub(crate) fn try_polling(&mut self, source: &Arc<Source>, slot: Slot) -> Result<Slot> {
        let (len, caching) = (source.direct_align() as usize, Caching::Direct);
        self.submit(Submission::new(Arc::clone(source), 0, len, slot, caching));
        let completion = loop {
            if let Some(completion) = self.reap() {
                break completion;
            }
            self.call_for(1);
        };
        let slot = completion.submission.slot;
        let Err(error) = completion.result else {
            return Ok(slot);
        };
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        if !matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL)) {
            return Ok(slot);
        }
        let why = "file system or device can't be polled";
        let refusal = Refusal::not_granted(Setting::Iopoll, Refuser::FileSystem, why);
        Err(source.error(refusal).with_errno(&error))
    }

    /// The next completion, if there is one.
    fn reap(&mut self) -> Option<Completion> {
        while let Some(cqe) = self.ring.completion().next() {
            if cqe.user_data() == WAKEUP {
                self.armed &= cqueue::more(cqe.flags());
                self.can_poll_wakeup &= cqe.result() >= 0;
                continue;
            }
            let read = usize::try_from(cqe.user_data()).ok();
            let read = read.and_then(|slot| self.in_flight.get_mut(slot)?.take());
            if let Some(submission) = read {
                self.tries = 0;
                let result = outcome(&cqe);
                return Some(Completion { submission, result });
            }
        }
        self.failed.pop_front()
    }

    /// Submits the queued entries and waits for `want` completions, for [`PATIENCE`] at most. A failure that
    /// isn't transient fails all reads.
    ///
    /// Returns whether it timed out or is to be tried again, so that the runtime should check its timers.
    fn call_for(&mut self, want: usize) -> bool {
        let started = Instant::now();
        let error = match self.enter(want) {
            Ok(()) => return false,
            Err(error) => error,
        };
        match error.raw_os_error() {
            Some(libc::ETIME) => return true,
            // A signal during the wait is no failure.
            Some(libc::EINTR) if started.elapsed() > Duration::from_millis(1) => return true,
            Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) if self.tries < retry::MOST => {
                retry::pause(self.tries);
                self.tries += 1;
                return true;
            }
            _ => {}
        }
        let cause = format!("io_uring_enter: {}", describe(&error));
        let broken = Error::new(Kind::Io, cause).with_errno(&error);
        for read in &mut self.in_flight {
            if let Some(submission) = read.take() {
                self.failed.push_back(fail(submission, &broken));
            }
        }
        self.queue.clear();
        self.broken = Some(broken);
        false
    }

    fn enter(&mut self, want: usize) -> io::Result<()> {
        if want > 0 && self.can_poll_wakeup && !self.armed {
            let poll = opcode::PollAdd::new(Fd(self.wakeup.fd()), libc::POLLIN as u32).multi(true);
            self.queue.push_back(poll.build().user_data(WAKEUP));
            self.armed = true;
        }
        loop {
            let mut submission = self.ring.submission();
            let mut moved = false;
            while let Some(entry) = self.queue.front() {
                // SAFETY: memory and descriptor of the entry belong to the submission, which lies
                // in `in_flight` until the completion; the wakeup's entry names no memory.
                if unsafe { submission.push(entry) }.is_err() {
                    break;
                }
                self.queue.pop_front();
                moved = true;
            }
            drop(submission);
            // A submission queue shorter than the reads in flight is filled several times.
            let again = moved && !self.queue.is_empty();
            self.call(if again { 0 } else { want })?;
            if !again {
                return Ok(());
            }
        }
    }

    fn call(&mut self, want: usize) -> io::Result<()> {
        // The kernel's polling thread checks the queue, sets its flag to sleep, then checks again.
        fence(Ordering::SeqCst);
        let submission = self.ring.submission();
        let needed = match self.sqpoll {
            true => submission.need_wakeup(),
            false => !submission.is_empty(),
        };
        drop(submission);
        if want == 0 && !needed {
            return Ok(());
        }
        self.facts.enters += 1;
        let patience = Timespec::from(PATIENCE);
        let arguments = SubmitArgs::new().timespec(&patience);
        self.ring
            .submitter()
            .submit_with_args(want, &arguments)
            .map(drop)
    }

    fn poll(&mut self) -> Poll<Completion> {
        loop {
            let idle = self.failed.is_empty() && self.ring.completion().is_empty();
            let mut back = false;
            if idle && !self.wakeup.begin_sleep() {
                return self.wakeup.poll_again();
            }
            if idle || !self.queue.is_empty() {
                let in_vain = self.call_for(usize::from(idle));
                let woken = idle && self.wakeup.end_sleep();
                back = in_vain || woken;
            }
            if let Some(completion) = self.reap() {
                return Poll::Ready(completion);
            }
            if back {
                return self.wakeup.poll_again();
            }
        }
    }
}

impl Ring for RawRing {
    fn submit(&mut self, mut submission: Submission) {
        if let Some(broken) = &self.broken {
            return self.failed.push_back(fail(submission, broken));
        }
        let file = match submission.source.file_for(submission.caching) {
            Ok(file) => file,
            Err(error) => {
                let result = Err(error);
                return self.failed.push_back(Completion { submission, result });
            }
        };
        let (fd, fixed) = match self.files.binary_search(&submission.source.index()) {
            Ok(place) => (Fd(place as RawFd), Flags::FIXED_FILE),
            Err(_) => (Fd(file.as_raw_fd()), Flags::empty()),
        };
        submission.file = Some(file);
        let entry = self.reads.entry(&mut submission, fd);
        let slot = submission.slot.index();
        self.queue
            .push_back(entry.flags(self.entry_flags | fixed).user_data(slot.into()));
        self.in_flight[slot as usize] = Some(submission);
    }

    async fn completion(&mut self) -> Completion {
        std::future::poll_fn(|_: &mut Context<'_>| self.poll()).await
    }

    fn try_completion(&mut self) -> Option<Completion> {
        self.reap()
    }

    fn max_depth(&self) -> usize {
        self.in_flight.len()
    }
}

impl Drop for RawRing {
    fn drop(&mut self) {
        let started = Instant::now();
        let reads = |ring: &Self| ring.in_flight.iter().any(Option::is_some);
        while reads(self) && started.elapsed() < PATIENCE {
            self.call_for(1);
            while self.reap().is_some() {}
        }
        if self.broken.is_some() || reads(self) {
            // The kernel may still write to the arena.
            std::mem::forget(Arc::clone(&self.arena));
        } else if self.facts.registered {
            // Before the process ends, because the kernel releases locked memory late, and the next run of
            // an ordinary user needs it.
            let _ = self.ring.submitter().unregister_buffers();
        }
    }
}

/// A read that can't be submitted any more. It has no errno, so that it isn't tried again.
fn fail(submission: Submission, broken: &Error) -> Completion {
    let result = Err(io::Error::other(broken.clone()));
    Completion { submission, result }
}

/// The switches by the kernel's names.
fn flags(knobs: &Knobs) -> Vec<String> {
    let sqpoll = match knobs.sqpoll {
        Some(Some(cpu)) => format!("SQPOLL on processor {cpu}"),
        _ => "SQPOLL".to_string(),
    };
    let punt = match knobs.punt {
        Some(Some(most)) => format!("IOSQE_ASYNC with {most} workers"),
        _ => "IOSQE_ASYNC".to_string(),
    };
    let coop = knobs.task_run == Some(TaskRun::Coop);
    let defer = knobs.task_run == Some(TaskRun::Defer);
    let all = [
        (knobs.sqpoll.is_some(), sqpoll),
        (coop, "COOP_TASKRUN".to_string()),
        (defer, "DEFER_TASKRUN".to_string()),
        (knobs.iopoll, "IOPOLL".to_string()),
        (knobs.punt.is_some(), punt),
        (knobs.registered_files, "registered files".to_string()),
        (knobs.dontcache, "RWF_DONTCACHE".to_string()),
    ];
    let set = all.into_iter().filter(|(set, _)| *set);
    set.map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests;
