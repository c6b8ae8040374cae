//! The memory of decoders: one account for all of an input. A decoder asks it before it allocates, and waits while others
//! have the memory.
//!
//! Nobody waits for ever. What decodes a file has nothing while it waits, so all that have something go on: one that needs
//! more gives back what it has and begins anew. A stream can't begin anew. What it has is taken off the limit for the
//! others until it ends, and it waits for files alone.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::error::refusal::Refusal;
use crate::error::{Error, Kind};
use crate::sync::lock;

/// The memory that all decoders of an input may have together.
#[derive(Debug)]
pub(crate) struct DecoderMemory {
    limit: AtomicU64,
    in_use: Mutex<InUse>,
    freed: Condvar,
}

/// Bytes that decoders have.
#[derive(Debug, Clone, Copy, Default)]
struct InUse {
    streams: u64,
    files: u64,
}

impl InUse {
    fn of(&mut self, of: Subject) -> &mut u64 {
        match of {
            Subject::Stream => &mut self.streams,
            Subject::File | Subject::Part => &mut self.files,
        }
    }
}

impl DecoderMemory {
    pub(crate) fn new(limit: u64) -> Arc<DecoderMemory> {
        Arc::new(DecoderMemory {
            limit: AtomicU64::new(limit),
            in_use: Mutex::default(),
            freed: Condvar::new(),
        })
    }

    /// Another limit, for those that begin from now on.
    pub(crate) fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Relaxed);
    }
}

/// What a decoder decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Stream,
    File,
    /// A part of a file, whose need is known before it begins.
    Part,
}

/// A decoder has to begin anew with this much memory.
#[derive(Debug)]
pub(crate) struct Restart(pub(crate) u64);

impl fmt::Display for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "decoding goes on with {} bytes of memory", self.0)
    }
}

impl std::error::Error for Restart {}

/// What one decoder has of the memory; given back on drop.
#[derive(Debug)]
pub(crate) struct Share {
    account: Arc<DecoderMemory>,
    of: Subject,
    /// The least that it takes at once.
    least: u64,
    bytes: u64,
}

impl Share {
    pub(crate) fn new(account: &Arc<DecoderMemory>, of: Subject, least: u64) -> Share {
        Share {
            account: Arc::clone(account),
            of,
            least,
            bytes: 0,
        }
    }

    /// Takes this much memory, unless it has more. Waits while others have them.
    ///
    /// # Errors
    /// That is more than the limit; or [`Restart`].
    pub(crate) fn need(&mut self, bytes: u64) -> io::Result<()> {
        let bytes = bytes.max(self.least);
        if bytes <= self.bytes {
            return Ok(());
        }
        let account = &self.account;
        let limit = account.limit.load(Relaxed);
        let mut in_use = lock(&account.in_use);
        loop {
            let mut others = *in_use;
            *others.of(self.of) -= self.bytes;
            let needed = bytes.saturating_add(others.streams);
            if needed > limit {
                let refusal = Refusal::DecoderMemory { needed, limit };
                return Err(io::Error::other(Error::new(Kind::Data, refusal)));
            }
            if needed + others.files <= limit {
                break;
            }
            match self.of {
                Subject::File if self.bytes > 0 => return Err(io::Error::other(Restart(bytes))),
                Subject::Part if self.bytes > 0 => {
                    return Err(io::Error::other("the file has changed meanwhile"));
                }
                _ => {}
            }
            in_use = (account.freed.wait(in_use)).unwrap_or_else(PoisonError::into_inner);
        }
        *in_use.of(self.of) += bytes - self.bytes;
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut in_use = lock(&self.account.in_use);
        *in_use.of(self.of) -= self.bytes;
        drop(in_use);
        self.account.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_something_goes_on() {
        let account = DecoderMemory::new(100);
        let share = |of| Share::new(&account, of, 0);
        let (mut first, mut second) = (share(Subject::File), share(Subject::File));
        first.need(60).unwrap();
        second.need(40).unwrap();
        // It would wait for the other, which might wait for it.
        let again = second.need(50).unwrap_err();
        assert_eq!(
            again
                .get_ref()
                .unwrap()
                .downcast_ref::<Restart>()
                .unwrap()
                .0,
            50
        );
        assert!(share(Subject::Part).need(101).is_err(), "over the limit");
        drop(second);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let mut stream = share(Subject::Stream);
                stream.need(50).unwrap();
                stream.need(70).unwrap();
                stream
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            drop(first);
            let stream = waits.join().unwrap();
            // Who waited for a stream might keep its thread from it.
            assert!(share(Subject::File).need(31).is_err());
            share(Subject::File).need(30).unwrap();
            drop(stream);
        });
        share(Subject::File).need(100).unwrap();
    }
}
