//! Sequential `read()`, one after the other on the dispatcher's thread: the plainest way there is,
//! and the only one for pipes, terminals and procfs.

use std::collections::VecDeque;
use std::io;

use crate::engine::cache::advice::{self, ReadAhead};
use crate::engine::ring::seam::{Completion, Ring, Submission};
use crate::linux::retry;

/// Reads when it is waited on.
pub(crate) struct ReadRing<'a> {
    queue: VecDeque<Submission>,
    /// Whether reads leave nothing in the page cache.
    dontcache: bool,
    ahead: Option<&'a ReadAhead>,
    /// Where the last read of a source has left its position.
    position: Option<(u32, bool, u64)>,
}

impl<'a> ReadRing<'a> {
    pub(crate) fn new(dontcache: bool, ahead: Option<&'a ReadAhead>) -> ReadRing<'a> {
        ReadRing {
            queue: VecDeque::new(),
            dontcache,
            ahead,
            position: None,
        }
    }

    fn read(&mut self, submission: &mut Submission) -> io::Result<usize> {
        let source = submission.source.clone();
        let file = match submission.direct {
            true => source
                .direct()
                .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?,
            false => source
                .file()
                .ok_or(io::Error::from_raw_os_error(libc::EBADF))?,
        };
        let offset = submission.offset + submission.filled as u64;
        let here = (source.index(), submission.direct, offset);
        let wanted = submission.len - submission.filled;
        let elsewhere = self.position != Some(here);
        if let Some(ahead) = self.ahead {
            ahead.of(&source, offset..offset + wanted as u64, elsewhere);
        }
        let target = &mut submission.slot.target_bytes(submission.filled)[..wanted];
        if self.dontcache && source.len().is_some() {
            // The flag needs a call with an offset.
            return Ok(advice::read_at(file, target, offset, true)?);
        }
        if source.len().is_some() && elsewhere {
            rustix::fs::seek(file, rustix::fs::SeekFrom::Start(offset))?;
        }
        let (mut n, mut tries) = (0, 0);
        // A pipe brings what it has; a stream has ended only when it brings nothing.
        while n < wanted {
            match rustix::io::read(file, &mut target[n..]) {
                Ok(0) => break,
                Ok(more) => (n, tries) = (n + more, 0),
                Err(errno) => {
                    let error = errno.into();
                    // What a stream has brought can't be read once more: it is tried again here.
                    if source.len().is_some() || !retry::may_pass(&error) || tries >= retry::MOST {
                        return Err(error);
                    }
                    // A pipe that somebody made non-blocking: wait as if it weren't.
                    if errno == rustix::io::Errno::AGAIN {
                        wait(file);
                    }
                    // The first time there is no need for patience.
                    if tries > 0 {
                        retry::pause(tries - 1);
                    }
                    tries += 1;
                    continue;
                }
            }
            if source.len().is_some() {
                break;
            }
        }
        self.position = Some((here.0, here.1, offset + n as u64));
        Ok(n)
    }
}

/// Waits until there is something to read, or the writer has gone.
fn wait(file: &std::fs::File) {
    use rustix::event::{PollFd, PollFlags, poll};
    // Where this fails the next read tells why.
    let _ = poll(&mut [PollFd::new(file, PollFlags::IN)], None);
}

impl Ring for ReadRing<'_> {
    fn submit(&mut self, submission: Submission) {
        self.queue.push_back(submission);
    }

    async fn completion(&mut self) -> Completion {
        let Some(mut submission) = self.queue.pop_front() else {
            return std::future::pending().await;
        };
        let result = self.read(&mut submission);
        Completion { submission, result }
    }

    fn try_completion(&mut self) -> Option<Completion> {
        // Every read may block.
        None
    }

    fn max_depth(&self) -> usize {
        1
    }
}
