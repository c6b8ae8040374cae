//! Sequential `read()`, one after the other on the dispatcher's thread: the plainest way there is, and the only one for
//! pipes, terminals and procfs.
//!
//! A file is read while it is waited on. A stream is read when it has something: until then the runtime waits for its
//! descriptor beside all else. So `read()` keeps nobody waiting, whatever pace the stream has, and what has come is
//! handed on soon. The descriptor's flags aren't changed, since `O_NONBLOCK` would be set for all processes that share it.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::cache::advice::ReadAhead;
use crate::engine::ring::readable::{Readable, wait_for};
use crate::engine::ring::seam::{Completion, Ring, Submission};
use crate::input::caching::Caching;
use crate::input::source::Source;
use crate::linux::reads::read_at;
use crate::linux::retry;

/// A stream that brings nothing for so long has paused: a block isn't filled any further. Writers that are only slower
/// than this process pause for less, so their blocks stay large.
const PAUSE: Duration = Duration::from_millis(1);

/// A block's first byte waits no longer than this for its last one, where bytes trickle in without a pause. A stream
/// that fills no block in this time is so slow that smaller blocks cost nothing.
const PATIENCE: Duration = Duration::from_millis(10);

/// Reads when it is waited on.
pub(crate) struct ReadRing<'a> {
    queue: VecDeque<Submission>,
    ahead: Option<&'a ReadAhead>,
    /// Where the last read of a source has left its position.
    position: Option<(u32, Caching, u64)>,
    /// Whether the runtime can wait for descriptors.
    watches: bool,
    stream: Option<Stream>,
}

impl<'a> ReadRing<'a> {
    /// A ring for files.
    pub(crate) fn new(ahead: Option<&'a ReadAhead>) -> ReadRing<'a> {
        ReadRing {
            queue: VecDeque::new(),
            ahead,
            position: None,
            watches: false,
            stream: None,
        }
    }

    /// A ring for streams; `watches` says whether it runs in a runtime that can wait for descriptors.
    pub(crate) fn of_streams(watches: bool) -> ReadRing<'a> {
        ReadRing {
            watches,
            ..ReadRing::new(None)
        }
    }

    /// Reads once from a file.
    fn read(&mut self, submission: &mut Submission) -> io::Result<usize> {
        let source = submission.source.clone();
        let caching = submission.caching;
        let file = source.file_for(caching)?;
        let offset = submission.offset + submission.filled as u64;
        let here = (source.index(), caching, offset);
        let wanted = submission.len - submission.filled;
        let elsewhere = self.position != Some(here);
        if let Some(ahead) = self.ahead {
            ahead.of(&source, offset..offset + wanted as u64, elsewhere);
        }
        let target = &mut submission.slot.target_bytes(submission.filled)[..wanted];
        if caching == Caching::Uncached || source.opens_in_turn() {
            // The flag needs a call with an offset, and what was opened anew stands at its start.
            self.position = Some((here.0, here.1, offset + wanted as u64));
            return Ok(read_at(&file, target, offset, caching.flags())?);
        }
        if elsewhere {
            rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(offset))?;
        }
        let n = rustix::io::read(&file, target)?;
        self.position = Some((here.0, here.1, offset + n as u64));
        Ok(n)
    }

    /// The stream that the next read is of.
    fn stream(&mut self, source: &Arc<Source>) -> &mut Stream {
        let is_another = |stream: &mut Stream| stream.source.index() != source.index();
        if self.stream.as_mut().is_none_or(is_another) {
            self.stream = Some(Stream::new(source, self.watches));
        }
        self.stream.as_mut().expect("just set")
    }
}

impl Ring for ReadRing<'_> {
    fn submit(&mut self, submission: Submission) {
        self.queue.push_back(submission);
    }

    async fn completion(&mut self) -> Completion {
        let Some(mut submission) = self.queue.pop_front() else {
            return std::future::pending().await;
        };
        if submission.source.len().is_some() {
            let result = self.read(&mut submission);
            return Completion { submission, result };
        }
        // While a stream is waited for, the submission is in the queue and what has come of it in the stream: this
        // future may be dropped.
        let source = Arc::clone(&submission.source);
        loop {
            let stream = self.stream(&source);
            if let Some(result) = stream.read(&mut submission) {
                return Completion { submission, result };
            }
            self.queue.push_front(submission);
            let stream = self.stream.as_mut().expect("it was just read");
            let has_more = stream.wait().await;
            submission = self.queue.pop_front().expect("it was just put there");
            if !has_more {
                let result = Ok(stream.take());
                return Completion { submission, result };
            }
        }
    }

    fn try_completion(&mut self) -> Option<Completion> {
        // Every read may block.
        None
    }

    fn max_depth(&self) -> usize {
        1
    }
}

/// A stream, and how far its current read has come.
struct Stream {
    source: Arc<Source>,
    /// `None` where nobody can wait for it but `read()`.
    readable: Option<Readable>,
    /// How many bytes have come.
    got: usize,
    /// When the first of them came, and the last.
    came: Option<(Instant, Instant)>,
    /// Retries without progress.
    tries: u32,
    /// It has brought nothing more. A terminal would go on after its end.
    ended: bool,
    /// What has gone wrong after the bytes that have come.
    error: Option<io::Error>,
}

impl Stream {
    fn new(source: &Arc<Source>, watches: bool) -> Stream {
        Stream {
            source: Arc::clone(source),
            // A decoder is never waited for: it works while it is read.
            readable: (watches && !source.is_compressed())
                .then(|| Readable::new(source))
                .flatten(),
            got: 0,
            came: None,
            tries: 0,
            ended: false,
            error: None,
        }
    }

    /// Reads on as long as something is there; `None` where more has to be waited for. Where the stream can't be
    /// watched this waits itself.
    fn read(&mut self, submission: &mut Submission) -> Option<io::Result<usize>> {
        let source = Arc::clone(&submission.source);
        let wanted = submission.len - submission.filled;
        loop {
            if self.got > 0 {
                let is_late = self
                    .came
                    .is_some_and(|(first, last)| last - first >= PATIENCE);
                if self.got == wanted || self.ended || self.error.is_some() || is_late {
                    return Some(Ok(self.take()));
                }
            } else if self.ended {
                return Some(Ok(0));
            } else if let Some(error) = self.error.take() {
                return Some(Err(error));
            }
            let was_peeked = source.peeked.has_something();
            let waits = |readable: &Readable| !readable.has_something();
            if !was_peeked && self.readable.as_ref().is_some_and(waits) {
                return None;
            }
            let target = &mut submission.slot.target_bytes(submission.filled)[self.got..wanted];
            let read = match source.peeked.give(target) {
                Some(n) => Ok(n),
                None => source.read_stream(target),
            };
            match read {
                Ok(0) => self.ended = true,
                Ok(n) => {
                    (self.got, self.tries) = (self.got + n, 0);
                    let now = Instant::now();
                    self.came = Some((self.came.map_or(now, |(first, _)| first), now));
                }
                Err(error) => self.failed(error),
            }
        }
    }

    /// A read has failed. What the stream has brought before can't be read once more, so it is tried again here.
    fn failed(&mut self, error: io::Error) {
        if !retry::is_transient(&error) || self.tries >= retry::MOST {
            self.tries = 0;
            self.error = Some(error);
            return;
        }
        // A stream that somebody made non-blocking: wait as if it weren't.
        if error.kind() == io::ErrorKind::WouldBlock && self.readable.is_none() {
            wait_for(&self.source);
        }
        // The first time there is no need for patience.
        if self.tries > 0 {
            retry::pause(self.tries - 1);
        }
        self.tries += 1;
    }

    /// Waits for more; `false` when what has come has waited long enough.
    async fn wait(&mut self) -> bool {
        let Some(readable) = &mut self.readable else {
            return true;
        };
        let ready = readable.wait();
        let Some((first, last)) = self.came else {
            ready.await;
            return true;
        };
        let end = (last + PAUSE).min(first + PATIENCE);
        tokio::time::timeout_at(end.into(), ready).await.is_ok()
    }

    /// How many bytes the read has brought, which is over.
    fn take(&mut self) -> usize {
        self.came = None;
        std::mem::take(&mut self.got)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::task::Poll;
    use std::time::Duration;

    use super::*;
    use crate::engine::arena::{Arena, Layout};
    use crate::engine::knobs::HugePages;
    use crate::input::spans::Input;
    use crate::record::stitch::Piece;

    /// A named pipe: the ring's source, and a writer.
    fn pipe(dir: &tempfile::TempDir) -> (Input, File) {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let path = dir.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let to = path.clone();
        let writer = std::thread::spawn(move || File::create(to).unwrap());
        (Input::open([path]).unwrap(), writer.join().unwrap())
    }

    fn submission(input: &Input, len: usize) -> Submission {
        let layout = Layout {
            block: len,
            slots: 1,
        };
        let arena = Arena::new(layout, HugePages::Off).unwrap();
        Submission {
            source: Arc::clone(&input.sources()[0]),
            offset: 0,
            len,
            filled: 0,
            slot: arena.slots().0.remove(0),
            caching: Caching::Cached,
            file: None,
            unmerged: false,
            tries: 0,
        }
    }

    fn bytes(completion: &mut Completion) -> Vec<u8> {
        let n = *completion.result.as_ref().unwrap();
        let filled = completion.submission.filled;
        completion.submission.slot.set_filled(filled, filled + n);
        completion.submission.slot.bytes().to_vec()
    }

    /// In a runtime that can wait for descriptors and in one that can't.
    fn in_both(test: impl AsyncFn(ReadRing<'_>)) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().build().unwrap();
        runtime.block_on(test(ReadRing::of_streams(false)));
        let runtime = builder.enable_all().build().unwrap();
        runtime.block_on(test(ReadRing::of_streams(true)));
    }

    #[test]
    fn a_stream_ends_once_even_where_it_goes_on() {
        in_both(async |mut ring| {
            let dir = tempfile::tempdir().unwrap();
            let (input, mut writer) = pipe(&dir);
            writer.write_all(b"abc").unwrap();
            drop(writer);
            ring.submit(submission(&input, 10));
            let mut completion = ring.completion().await;
            assert_eq!(bytes(&mut completion), b"abc");
            let path = dir.path().join("pipe");
            let mut again = File::options().write(true).open(path).unwrap();
            again.write_all(b"more").unwrap();
            ring.submit(completion.submission);
            assert_eq!(ring.completion().await.result.unwrap(), 0);
        });
    }

    /// Whoever waits for a completion may stop and wait anew: no byte is lost, and a block that is full needs no pause.
    #[test]
    fn a_wait_that_is_dropped_loses_nothing() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let (input, mut writer) = pipe(&dir);
            let mut ring = ReadRing::of_streams(true);
            let mut next = submission(&input, 5);
            let (mut came, mut drops) = (Vec::new(), 0);
            for byte in 0..100 {
                ring.submit(next);
                writer.write_all(&[byte, byte]).unwrap();
                let mut completion = loop {
                    let polled = {
                        let mut completion = std::pin::pin!(ring.completion());
                        std::future::poll_fn(|cx| Poll::Ready(completion.as_mut().poll(cx))).await
                    };
                    if let Poll::Ready(completion) = polled {
                        break completion;
                    }
                    drops += 1;
                    tokio::time::sleep(Duration::from_micros(100)).await;
                };
                came.extend(bytes(&mut completion));
                next = completion.submission;
            }
            let all: Vec<u8> = (0..100).flat_map(|byte| [byte, byte]).collect();
            assert_eq!(came, all);
            assert!(drops > 0, "two bytes of five are waited for");
            // A part of a block that waits already stays in its place.
            writer.write_all(b"12345").unwrap();
            next.filled = 0;
            ring.submit(next);
            assert_eq!(bytes(&mut ring.completion().await), b"12345");
        });
    }

    /// A named pipe that is closed and opened again between two looks is waited for as before.
    #[test]
    fn a_pipe_whose_writer_is_replaced_goes_on() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let (input, writer) = pipe(&dir);
            let source = &input.sources()[0];
            let mut readable = Readable::new(source).unwrap();
            drop(writer);
            // The end is reported.
            readable.wait().await;
            assert!(readable.has_something());
            let path = dir.path().join("pipe");
            let mut again = File::options().write(true).open(path).unwrap();
            assert!(!readable.has_something());
            // At most once more, for what was before.
            readable.wait().await;
            let wait = tokio::time::timeout(Duration::from_millis(20), readable.wait());
            assert!(wait.await.is_err(), "the loss is reported for ever");
            again.write_all(b"x").unwrap();
            readable.wait().await;
            assert!(readable.has_something());
        });
    }
}
