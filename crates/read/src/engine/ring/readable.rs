//! Waiting until a stream has something, by the runtime's `epoll`.
//!
//! # Invariant (`unsafe` module)
//! What is registered holds its [`Source`]. A source never changes its file, and closes it only when it is dropped
//! itself. So the descriptor stays open and means the same file as long as it is registered.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::input::source::Source;

/// Bytes, the end, or a failure.
const SOMETHING: Interest = Interest::READABLE.add(Interest::ERROR);

/// A stream that the runtime watches.
pub(crate) struct Readable {
    source: Arc<Source>,
    /// `None` when it couldn't be registered a second time.
    watched: Option<AsyncFd<Descriptor>>,
}

/// The descriptor of a source.
struct Descriptor(Arc<Source>);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Readable {
    /// Has the runtime that this is called in watch a stream. `None` where that can't be: `epoll` refuses regular files,
    /// procfs and some devices.
    pub(crate) fn new(source: &Arc<Source>) -> Option<Readable> {
        Some(Readable {
            source: Arc::clone(source),
            watched: Some(register(source)?),
        })
    }

    /// Waits until there may be something. Ask [`Readable::has_something`] before a read: another process may have
    /// taken it.
    pub(crate) async fn wait(&mut self) {
        let Some(watched) = &self.watched else {
            return wait_for(&self.source);
        };
        let Ok(mut guard) = watched.ready(SOMETHING).await else {
            // The runtime ends, and this task with it.
            return std::future::pending().await;
        };
        let is_closed = guard.ready().is_read_closed();
        // The stream is asked before each read. What happens to it from now on is reported anew.
        guard.clear_ready();
        if is_closed && !self.has_something() {
            // A named pipe has lost its last writer and got another one. The loss would be reported for ever.
            self.watched = None;
            self.watched = register(&self.source);
        }
    }

    /// Whether a read wouldn't wait: there are bytes, the end or a failure.
    pub(crate) fn has_something(&self) -> bool {
        let at_once = Timespec::default();
        let mut asked = [PollFd::new(&*self.source, PollFlags::IN)];
        // Where this fails the read reports why.
        !matches!(poll(&mut asked, Some(&at_once)), Ok(0))
    }
}

fn register(source: &Arc<Source>) -> Option<AsyncFd<Descriptor>> {
    let descriptor = Descriptor(Arc::clone(source));
    // SAFETY: the descriptor holds its source, and so stays open and the same, as said at the head.
    unsafe { AsyncFd::register_with_interest(descriptor, SOMETHING) }.ok()
}

/// Blocks until there is something.
pub(crate) fn wait_for(source: &Source) {
    // Where this fails the next read reports why.
    let _ = poll(&mut [PollFd::new(source, PollFlags::IN)], None);
}
