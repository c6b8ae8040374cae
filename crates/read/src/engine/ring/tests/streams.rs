//! Of pipes: records however they come, and failures.

use super::*;

/// Streams in memory. Each read brings what the script says, at most; the last size goes on for ever.
struct Streams<'a> {
    /// By source.
    texts: &'a [Vec<u8>],
    sizes: Vec<usize>,
    reads: usize,
    ended: Vec<bool>,
    /// Source and byte of a read that fails.
    fails: Option<(u32, u64)>,
    queue: Option<Submission>,
    /// When it is asked for a completion: how far each stream was read.
    brought: &'a Mutex<Vec<usize>>,
}

impl Ring for Streams<'_> {
    fn submit(&mut self, submission: Submission) {
        assert!(self.queue.is_none(), "a stream is read once at a time");
        self.queue = Some(submission);
    }

    async fn completion(&mut self) -> Completion {
        let mut submission = self.queue.take().expect("something is in flight");
        let source = submission.source.index();
        assert!(!self.ended[source as usize], "read behind its end");
        let at = submission.offset + submission.filled as u64;
        let brought = &mut self.brought.lock().unwrap()[source as usize];
        assert_eq!(*brought as u64, at, "a byte is skipped or read twice");
        let room = submission.len - submission.filled;
        assert!(room > 0);
        let size = self.sizes[self.reads.min(self.sizes.len() - 1)];
        self.reads += 1;
        let mut left = &self.texts[source as usize][at as usize..];
        if let Some((failing, byte)) = self.fails
            && failing == source
        {
            left = &left[..(byte - at) as usize];
            if left.is_empty() {
                let result = Err(io::Error::from_raw_os_error(libc::EIO));
                return Completion { submission, result };
            }
        }
        let n = size.min(room).min(left.len());
        submission.slot.target_bytes(submission.filled)[..n].copy_from_slice(&left[..n]);
        self.ended[source as usize] = n == 0;
        *brought += n;
        let result = Ok(n);
        Completion { submission, result }
    }

    fn try_completion(&mut self) -> Option<Completion> {
        None
    }

    fn max_depth(&self) -> usize {
        usize::MAX
    }
}

/// An input of streams with these texts, which a ring brings.
fn streams(texts: &[Vec<u8>]) -> Input {
    let mut input = Input::memory(texts.to_vec());
    for source in &mut input.sources {
        let source = std::sync::Arc::get_mut(source).unwrap();
        source.shape = crate::input::source::Shape::Stream;
    }
    for span in &mut input.spans {
        span.to = u64::MAX;
    }
    input
}

fn flow(
    texts: &[Vec<u8>],
    case: &Case,
    sizes: &[usize],
    fails: Option<(u32, u64)>,
) -> (Keep, Result<()>) {
    let brought = Mutex::new(vec![0; texts.len()]);
    let input = streams(texts);
    let ring = Streams {
        texts,
        sizes: sizes.to_vec(),
        reads: 0,
        ended: vec![false; texts.len()],
        fails,
        queue: None,
        brought: &brought,
    };
    dispatch(&input, input.spans(), case, ring)
}

/// Every way in which a stream may come, for both kinds of framing: all records, each in one block, and each number
/// finished once.
#[test]
fn streams_give_the_same_records_however_they_come() {
    let mut cases = 0;
    for (framing, texts) in [
        (&Delimited::NEWLINE as &'static dyn Framing, texts()),
        (&Quoted::CSV, quoted_texts()),
        (&Delimited::EVERY_BYTE, texts()),
    ] {
        let scripts: [&[usize]; 8] = [
            &[usize::MAX],
            &[1],
            &[2],
            &[3, 1, 7, 2],
            &[5],
            &[1, usize::MAX],
            &[13, 1, 1, 20],
            &[0x10, 2, 1],
        ];
        for sizes in scripts {
            for block in [1, 2, 3, 4, 5, 8, 16, 64, 4096] {
                for (depth, more, window, backlog) in [
                    (1, 1, None, 0),
                    (1, 3, Some(1), 0),
                    (2, 2, Some(3), 0),
                    (1, 4, None, 2),
                ] {
                    let case = Case {
                        framing,
                        block,
                        depth,
                        slots: depth + more,
                        window,
                        backlog,
                        ..CASE
                    };
                    let (keep, outcome) = flow(&texts, &case, sizes, None);
                    outcome.unwrap();
                    let what = format!("{framing:?} {block} {sizes:?} {window:?}");
                    for (file, text) in (0..).zip(&texts) {
                        assert_eq!(&keep.joined(file), text, "{what}");
                        let blocks = keep.blocks.lock().unwrap();
                        let of_file = blocks.range((file, 0)..(file + 1, 0));
                        let starts = starts(framing, text);
                        for ((_, at), bytes) in of_file {
                            let end = at + bytes.len() as u64;
                            let ends = starts.contains(&end) || end == text.len() as u64;
                            assert!(starts.contains(at) && ends, "torn: {what} {at} {bytes:?}");
                        }
                    }
                    if window.is_some() {
                        let mut finished = keep.finished.into_inner().unwrap();
                        finished.sort_unstable();
                        let dense: Vec<_> = (0..finished.len() as u64).collect();
                        assert_eq!(finished, dense, "{what}");
                    }
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, 3 * 8 * 9 * 4);
}

/// What has come whole is with the sink before the stream is asked for more.
#[test]
fn whole_records_wait_for_nothing_that_comes_behind_them() {
    let texts = [
        b"a\nbc\n\"d\ne\",f\nghijk\n\n\nl\nmn".repeat(3),
        b"x\ny".to_vec(),
    ];
    for framing in [&Delimited::NEWLINE as &'static dyn Framing, &Quoted::CSV] {
        for size in 1..9 {
            for block in [1, 2, 5, 8, 64, 4096] {
                let brought = Mutex::new(vec![0; texts.len()]);
                let input = streams(&texts);
                let seen = Seen {
                    framing,
                    brought: &brought,
                    delivered: Mutex::new(vec![0; texts.len()]),
                };
                let ring = Asks {
                    ring: Streams {
                        texts: &texts,
                        sizes: vec![size],
                        reads: 0,
                        ended: vec![false; texts.len()],
                        fails: None,
                        queue: None,
                        brought: &brought,
                    },
                    asked: |source: u32| seen.check(&texts, source as usize),
                };
                let case = Case {
                    framing,
                    block,
                    depth: 1,
                    slots: 3,
                    ..CASE
                };
                drive(&input, input.spans(), &case, &seen, ring, |_| ())
                    .0
                    .unwrap();
                let all: Vec<_> = texts.iter().map(Vec::len).collect();
                assert_eq!(*seen.delivered.lock().unwrap(), all);
            }
        }
    }
}

/// How far each stream was delivered.
struct Seen<'a> {
    framing: &'static dyn Framing,
    brought: &'a Mutex<Vec<usize>>,
    delivered: Mutex<Vec<usize>>,
}

impl Seen<'_> {
    fn check(&self, texts: &[Vec<u8>], source: usize) {
        let came = self.brought.lock().unwrap()[source];
        let text = &texts[source][..came];
        let whole = self.framing.last_end(self.framing.initial(), text);
        let delivered = self.delivered.lock().unwrap()[source];
        assert_eq!(delivered, whole.unwrap_or(0), "of {came} bytes");
    }
}

impl Sink for Seen<'_> {
    fn framing(&self) -> &dyn Framing {
        self.framing
    }

    fn block(&self, block: &Block<'_>) -> Result<(), BlockError> {
        let delivered = &mut self.delivered.lock().unwrap()[block.file() as usize];
        assert_eq!(*delivered as u64, block.offset());
        *delivered += block.bytes().len();
        Ok(())
    }
}

/// Calls somebody before each read.
struct Asks<'a, F> {
    ring: Streams<'a>,
    asked: F,
}

impl<F: Fn(u32)> Ring for Asks<'_, F> {
    fn submit(&mut self, submission: Submission) {
        self.ring.submit(submission);
    }

    async fn completion(&mut self) -> Completion {
        let submission = self.ring.queue.as_ref().expect("something is in flight");
        (self.asked)(submission.source.index());
        self.ring.completion().await
    }

    fn try_completion(&mut self) -> Option<Completion> {
        None
    }

    fn max_depth(&self) -> usize {
        1
    }
}

/// A stream that fails at any byte: all whole records before it are delivered, and the failure is told where the
/// unfinished one begins, unless the sink has failed before that.
#[test]
fn a_stream_that_fails_gives_all_whole_records_before() {
    let text = b"a\nbc\ndef\nghij\nklmno\npqrstu\nbad1\n01\nthe last one".to_vec();
    let bad = text.windows(3).position(|bytes| bytes == b"bad").unwrap() as u64;
    let texts = [b"first\n".to_vec(), text.clone(), b"never read\n".to_vec()];
    for at in 0..=text.len() as u64 {
        for sizes in [&[1][..], &[3, 2], &[usize::MAX]] {
            for block in [1, 3, 8, 64] {
                for window in [None, Some(2)] {
                    let case = Case {
                        block,
                        window,
                        ..CASE
                    };
                    let (keep, outcome) = flow(&texts, &case, sizes, Some((1, at)));
                    let error = outcome.unwrap_err();
                    let what = format!("at {at}, {sizes:?}, block {block}: {error}");
                    assert_eq!(keep.joined(0), b"first\n", "{what}");
                    let whole = text[..at as usize].iter().rposition(|&byte| byte == b'\n');
                    let whole = whole.map_or(0, |at| at + 1);
                    if whole as u64 > bad {
                        assert_eq!(error.bytes(), Some(bad..bad + 3), "{what}");
                        continue;
                    }
                    assert_eq!((error.kind(), keep.joined(2)), (Kind::Io, vec![]), "{what}");
                    assert_eq!(keep.joined(1), &text[..whole], "{what}");
                    let told = error.bytes().unwrap();
                    assert!((whole as u64..=at).contains(&told.start), "{what}");
                }
            }
        }
    }
}

#[test]
fn a_record_over_the_limit_is_told_in_a_stream_too() {
    for len in 0..20 {
        let text = [&b"ok\n"[..], &vec![b'x'; len], b"\nend"].concat();
        for block in [1, 2, 3, 4, 7, 16, 64] {
            for size in [1, 2, 5, usize::MAX] {
                let case = Case {
                    block,
                    max_record: 6,
                    ..CASE
                };
                let (keep, outcome) = flow(std::slice::from_ref(&text), &case, &[size], None);
                match outcome {
                    Ok(()) => {
                        assert!(len <= 6, "{len} bytes, block {block}");
                        assert_eq!(keep.joined(0), text);
                    }
                    Err(error) => {
                        assert!(len > 6, "{len} bytes, block {block}: {error}");
                        assert_eq!(error.bytes(), Some(3..9));
                        assert!(keep.joined(0).starts_with(b"ok\n"));
                    }
                }
            }
        }
    }
}
