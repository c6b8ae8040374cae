//! The dispatcher over a ring in memory: every order of completion, every fault at every read.

mod failures;
mod streams;

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use crate::engine::arena::{Arena, Layout};
use crate::engine::config::Config;
use crate::engine::deliver::delivery::{Delivery, Ready};
use crate::engine::deliver::watch::Watchdog;
use crate::engine::notice::Notice;
use crate::engine::plan::buffers::{CachingPlan, Plan};
use crate::engine::ring::dispatcher::{Counters, Dispatcher};
use crate::engine::ring::memory::{MemoryRing, Order};
use crate::engine::ring::read::ReadRing;
use crate::engine::ring::seam::{Completion, Ring, Submission};
use crate::engine::sink::{BlockError, Malformed, Ordered, Sink};
use crate::engine::window::Finished;
use crate::error::{Kind, Result};
use crate::input::caching::Caching;
use crate::input::spans::{Input, Span};
use crate::record::block::Block;
use crate::record::framing::{Delimited, Framing};
use crate::record::quoted::Quoted;

/// Keeps the bytes of every block by place.
struct Keep {
    framing: &'static dyn Framing,
    window: Option<u64>,
    blocks: Mutex<BTreeMap<(u32, u64), Vec<u8>>>,
    finished: Mutex<Vec<u64>>,
    notices: Mutex<Vec<String>>,
}

impl Sink for Keep {
    fn framing(&self) -> &dyn Framing {
        self.framing
    }

    fn order(&self) -> Option<&dyn Ordered> {
        self.window.map(|_| self as &dyn Ordered)
    }

    fn block(&self, block: &Block<'_>) -> Result<(), BlockError> {
        assert!(!block.bytes().is_empty());
        let mut blocks = self.blocks.lock().unwrap();
        let before = blocks.insert((block.file(), block.offset()), block.bytes().to_vec());
        assert_eq!(before, None, "delivered twice");
        match block.bytes().windows(3).position(|bytes| bytes == b"bad") {
            Some(at) => Err(BlockError::Malformed(Malformed {
                start: at,
                end: at + 3,
                cause: "bad".into(),
            })),
            None => Ok(()),
        }
    }
}

impl Ordered for Keep {
    fn window(&self) -> u64 {
        self.window.unwrap_or(u64::MAX)
    }

    fn finished(&self, finished: Finished) {
        self.finished.lock().unwrap().push(finished.sequence());
    }
}

impl Keep {
    /// All blocks of a file, one after the other without gap or overlap.
    fn joined(&self, file: u32) -> Vec<u8> {
        let mut all = Vec::new();
        let mut next = None;
        for ((_, offset), bytes) in self.blocks.lock().unwrap().range((file, 0)..(file + 1, 0)) {
            assert_eq!(next.unwrap_or(*offset), *offset, "a gap or an overlap");
            next = Some(offset + bytes.len() as u64);
            all.extend_from_slice(bytes);
        }
        all
    }
}

/// What a faulty ring does to a read.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Errno(i32),
    /// At most so many bytes.
    Short(usize),
    /// Nothing, as at the end of the file.
    Zero,
}

/// A ring that fails its `nth` read, once or from then on.
struct Faulty {
    ring: MemoryRing,
    nth: u64,
    forever: bool,
    fault: Fault,
    reads: u64,
    failed: Vec<Completion>,
    shortened: BTreeMap<u32, usize>,
}

impl Ring for Faulty {
    fn submit(&mut self, mut submission: Submission) {
        let n = self.reads;
        self.reads += 1;
        if n != self.nth && !(self.forever && n > self.nth) {
            return self.ring.submit(submission);
        }
        match self.fault {
            Fault::Errno(errno) => {
                let result = Err(io::Error::from_raw_os_error(errno));
                self.failed.push(Completion { submission, result });
            }
            Fault::Zero => self.failed.push(Completion {
                submission,
                result: Ok(0),
            }),
            Fault::Short(most) => {
                self.shortened
                    .insert(submission.slot.index(), submission.len);
                submission.len = submission.len.min(submission.filled + most);
                self.ring.submit(submission);
            }
        }
    }

    async fn completion(&mut self) -> Completion {
        if let Some(completion) = self.failed.pop() {
            return completion;
        }
        let mut completion = self.ring.completion().await;
        if let Some(len) = self.shortened.remove(&completion.submission.slot.index()) {
            completion.submission.len = len;
        }
        completion
    }

    fn try_completion(&mut self) -> Option<Completion> {
        // One at a time, so that faults stay where they were put.
        None
    }

    fn max_depth(&self) -> usize {
        usize::MAX
    }
}

struct Case {
    framing: &'static dyn Framing,
    block: usize,
    depth: usize,
    slots: usize,
    window: Option<u64>,
    /// Blocks that are held back, as by busy workers.
    backlog: usize,
    max_record: usize,
    caching: CachingPlan,
}

const CASE: Case = Case {
    framing: &Delimited::NEWLINE,
    block: 4,
    depth: 3,
    slots: 5,
    window: None,
    backlog: 0,
    max_record: 1000,
    caching: CachingPlan::All(Caching::Cached),
};

/// Runs the dispatcher; checks that it ends and that every slot was returned.
fn dispatch(input: &Input, spans: &[Span], case: &Case, ring: impl Ring) -> (Keep, Result<()>) {
    let keep = Keep {
        framing: case.framing,
        window: case.window,
        blocks: Mutex::default(),
        finished: Mutex::default(),
        notices: Mutex::default(),
    };
    let notice = |notice: &Notice| keep.notices.lock().unwrap().push(notice.to_string());
    let (outcome, _) = drive(input, spans, case, &keep, ring, notice);
    (keep, outcome)
}

/// The same for any sink.
fn drive(
    input: &Input,
    spans: &[Span],
    case: &Case,
    sink: &dyn Sink,
    mut ring: impl Ring,
    notice: impl Fn(&Notice),
) -> (Result<()>, Counters) {
    let config = Config {
        max_record: case.max_record,
        ..Config::default()
    };
    let watch = Watchdog::new(input, &config, &std::sync::Arc::default()).unwrap();
    let delivery = Delivery::new(input, sink, &config, &watch);
    let arena = Arena::new(
        Layout {
            // A span that starts on the grid is read from a byte before it.
            block: case.block + 1,
            slots: case.slots,
        },
        crate::engine::knobs::HugePages::Off,
    )
    .unwrap();
    let plan = Plan {
        block: case.block as u64,
        depth: case.depth,
        caching: case.caching,
    };
    let (slots, mut returned) = arena.slots();
    let dispatcher = Dispatcher::new(spans, &delivery, plan, slots, 0);
    let mut backlog: Vec<Ready> = Vec::new();
    let release = |ready: &mut Vec<Ready>| {
        backlog.append(ready);
        if let Some(window) = case.window {
            let sequences = backlog.iter().map(|ready| ready.sequence);
            let (first, last) = (sequences.clone().min(), sequences.max());
            let ahead = last.unwrap_or(0) - first.unwrap_or(0);
            assert!(
                ahead < window || delivery.passed((u32::MAX, u64::MAX)),
                "{ahead} ahead of the first unfinished block"
            );
        }
        // The dispatcher must go on when so many slots are with workers.
        while backlog.len() > case.backlog {
            delivery.deliver_ready(backlog.remove(0));
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let counters = runtime.block_on(async {
        let run = dispatcher.run(&mut ring, &mut returned, release, &notice);
        let ended = tokio::time::timeout(Duration::from_secs(60), run).await;
        ended.expect("the dispatcher hangs")
    });
    backlog
        .into_iter()
        .for_each(|ready| delivery.deliver_ready(ready));
    drop(ring);
    drop(returned);
    assert_eq!(std::sync::Arc::strong_count(&arena), 1, "a slot is lost");
    (delivery.outcome(), counters)
}

fn texts() -> Vec<Vec<u8>> {
    let mut long = b"x\n".to_vec();
    long.extend([b'y'; 40]);
    long.extend(b"\nz\n\n\nab\ncd");
    vec![
        b"".to_vec(),
        b"\n".to_vec(),
        b"no end".to_vec(),
        b"a\nbc\ndef\nghij\nklmno\npqrstu\nvwxyz01\n".to_vec(),
        b"abc\ndef\nghi\njkl\n".to_vec(),
        long,
        b"\n\n\n\n\n\n\n\n\n".to_vec(),
    ]
}

#[test]
fn every_order_block_size_depth_and_backlog_gives_the_same_bytes() {
    let input = Input::memory(texts());
    let orders = [
        Order::First,
        Order::Last,
        Order::Shuffled(1),
        Order::Shuffled(2),
    ];
    for order in orders {
        for block in [1, 2, 3, 4, 5, 8, 16, 64, 4096] {
            for depth in [1, 2, 3, 8] {
                for slots in [depth + 1, depth + 4] {
                    for backlog in [0, slots - depth - 1] {
                        let case = Case {
                            block,
                            depth,
                            slots,
                            backlog,
                            ..CASE
                        };
                        let ring = MemoryRing::new(order);
                        let (keep, outcome) = dispatch(&input, input.spans(), &case, ring);
                        outcome.unwrap();
                        for (file, text) in (0..).zip(texts()) {
                            assert_eq!(
                                keep.joined(file),
                                text,
                                "{order:?} {block} {depth} {slots}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// Texts with quotes: newlines within them, quotes that stand for one, quotes that open nothing, and one that nobody
/// closes.
fn quoted_texts() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 6] = [
        b"",
        b"\"a\nb\",c\nd,\"e\"\"\n\"\nf\n",
        b"\xef\xbb\xbf\"a\n\"\n\"b\nc\"\n",
        b"a\"\nb,\"\",\"\n\"\n,\"\"\"\"\nlast",
        b"\"one record\n\n\n\n\n\n\n\n\n\n\n\nwith many lines\"\n\"and\n\"\nx\n",
        b"a\nb\n\"open\nto\nthe\nend",
    ];
    texts.map(Vec::from).into()
}

/// Where the records of a text begin.
fn starts(framing: &dyn Framing, text: &[u8]) -> Vec<u64> {
    let (mut at, mut starts) = (0, Vec::new());
    while at < text.len() {
        starts.push(at as u64);
        let end = framing.first_end(framing.at_record(at as u64), &text[at..]);
        at += end.unwrap_or(text.len() - at);
    }
    starts
}

#[test]
fn with_quotes_too_every_order_and_size_gives_the_same_records() {
    let input = Input::memory(quoted_texts());
    let orders = [
        Order::First,
        Order::Last,
        Order::Shuffled(1),
        Order::Shuffled(2),
    ];
    for order in orders {
        for block in [1, 2, 3, 4, 5, 8, 16, 64, 4096] {
            for (depth, more, window) in
                [(1, 1, None), (2, 1, Some(1)), (3, 4, None), (8, 2, Some(3))]
            {
                let case = Case {
                    framing: &Quoted::CSV,
                    block,
                    depth,
                    slots: depth + more,
                    window,
                    ..CASE
                };
                let (keep, outcome) =
                    dispatch(&input, input.spans(), &case, MemoryRing::new(order));
                outcome.unwrap();
                for (file, text) in (0..).zip(quoted_texts()) {
                    let what = format!("{order:?} {block} {depth} {window:?}");
                    assert_eq!(keep.joined(file), text, "{what}");
                    let blocks = keep.blocks.lock().unwrap();
                    let mut begin = blocks
                        .range((file, 0)..(file + 1, 0))
                        .map(|(place, _)| place.1);
                    let starts = starts(&Quoted::CSV, &text);
                    assert!(begin.all(|at| starts.contains(&at)), "{what}: {text:?}");
                }
            }
        }
    }
}

/// Cuts each text into three spans at any places: every byte comes once, in blocks that begin where records do.
fn share_out(framing: &'static dyn Framing, texts: Vec<Vec<u8>>) {
    for text in texts {
        let len = text.len() as u64;
        for cut in 0..=len {
            for second in cut..=len {
                let span = |from, to| Span {
                    source: 0,
                    from,
                    to,
                };
                let spans = vec![span(0, cut), span(cut, second), span(second, len)];
                let input = Input::memory([text.clone()]).with_spans(spans).unwrap();
                for (block, depth) in [(1, 1), (3, 2), (64, 1), (8, 4)] {
                    let case = Case {
                        framing,
                        block,
                        depth,
                        slots: depth + 1,
                        ..CASE
                    };
                    let ring = MemoryRing::new(Order::Shuffled(cut));
                    let (keep, outcome) = dispatch(&input, input.spans(), &case, ring);
                    outcome.unwrap();
                    let what = format!("cut at {cut} and {second}, block {block}");
                    assert_eq!(keep.joined(0), text, "{what}");
                    let starts = starts(framing, &text);
                    let blocks = keep.blocks.lock().unwrap();
                    assert!(
                        blocks.keys().all(|place| starts.contains(&place.1)),
                        "{what}"
                    );
                }
            }
        }
    }
}

#[test]
fn any_spans_share_a_file_out_exactly() {
    share_out(&Delimited::NEWLINE, texts());
}

/// The state at a span's start comes from the spans before it, in the same run.
#[test]
fn with_quotes_too_any_spans_share_a_file_out_exactly() {
    share_out(&Quoted::CSV, quoted_texts());
}

/// Spans of one piece each, whose last records end in the next span: each wants a read past its end, and all of them at
/// once where the first read completes last.
#[test]
fn with_quotes_too_many_small_spans_do_not_stall() {
    // In the last text a record goes on past the end of each span of three bytes.
    let staggered = [&b"a\n"[..], &b"bc\n".repeat(20)].concat();
    for text in quoted_texts().into_iter().chain([staggered]) {
        let len = text.len() as u64;
        for length in 1..4 {
            let span = |from: u64| Span {
                source: 0,
                from,
                to: len.min(from + length),
            };
            let spans = (0..len).step_by(length as usize).map(span).collect();
            let input = Input::memory([text.clone()]).with_spans(spans).unwrap();
            for order in [Order::First, Order::Last, Order::Shuffled(length)] {
                for depth in [1, 2, 3, 8] {
                    for more in [1, 2, 5] {
                        for backlog in [0, more - 1] {
                            let case = Case {
                                framing: &Quoted::CSV,
                                block: length as usize,
                                depth,
                                slots: depth + more,
                                backlog,
                                ..CASE
                            };
                            // One completion at a time, so that reads are submitted in between.
                            let ring = Faulty {
                                ring: MemoryRing::new(order),
                                nth: u64::MAX,
                                forever: false,
                                fault: Fault::Zero,
                                reads: 0,
                                failed: Vec::new(),
                                shortened: BTreeMap::new(),
                            };
                            let (keep, outcome) = dispatch(&input, input.spans(), &case, ring);
                            outcome.unwrap();
                            assert_eq!(keep.joined(0), text, "{length} {order:?} {depth} {more}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_window_bounds_how_far_blocks_run_ahead() {
    // The last piece of a file is released together with the one before it, and so are those that a
    // long record spans.
    let lines = b"a\nbc\ndef\nseventeen letters\n".repeat(20);
    for less in 0..27 {
        let text = &lines[..lines.len() - less];
        let input = Input::memory([text.to_vec(), text.to_vec()]);
        for window in [1, 2, 3, 7] {
            let case = Case {
                slots: 9,
                depth: 8,
                window: Some(window),
                ..CASE
            };
            let ring = MemoryRing::new(Order::Shuffled(window));
            let (keep, outcome) = dispatch(&input, input.spans(), &case, ring);
            outcome.unwrap();
            assert_eq!(keep.joined(0), text);
            assert_eq!(keep.joined(1), text);
            // Each number is finished once, also of pieces that brought no block.
            let mut finished = keep.finished.into_inner().unwrap();
            finished.sort_unstable();
            let pieces = 2 * text.len().div_ceil(CASE.block) as u64;
            assert_eq!(finished, (0..pieces).collect::<Vec<_>>());
        }
    }
}

/// Tells of each read where it begins, into which slot it goes and whether it is kept apart, in the
/// order of submission.
struct Told<'a> {
    ring: MemoryRing,
    reads: &'a Mutex<Vec<(u64, u32, bool)>>,
}

impl Ring for Told<'_> {
    fn submit(&mut self, submission: Submission) {
        let slot = submission.slot.index();
        let read = (submission.offset, slot, submission.unmerged);
        self.reads.lock().unwrap().push(read);
        self.ring.submit(submission);
    }

    async fn completion(&mut self) -> Completion {
        self.ring.completion().await
    }

    fn try_completion(&mut self) -> Option<Completion> {
        self.ring.try_completion()
    }

    fn max_depth(&self) -> usize {
        usize::MAX
    }
}

/// What a run tells of its reads; checks that it delivers all of `text`.
fn reads_of(text: &[u8], case: &Case) -> Vec<(u64, u32, bool)> {
    let input = Input::memory([text.to_vec()]);
    let reads = Mutex::default();
    let ring = Told {
        ring: MemoryRing::new(Order::First),
        reads: &reads,
    };
    let (keep, outcome) = dispatch(&input, input.spans(), case, ring);
    outcome.unwrap();
    assert_eq!(keep.joined(0), text);
    reads.into_inner().unwrap()
}

#[test]
fn a_read_goes_into_the_slot_that_has_been_free_for_longest() {
    let case = Case {
        depth: 1,
        slots: 6,
        ..CASE
    };
    let reads = reads_of(&b"abc\n".repeat(60), &case);
    let slots: Vec<u32> = reads.iter().map(|read| read.1).collect();
    assert_eq!(slots.len(), 60);
    for six in slots.windows(6) {
        let different: std::collections::BTreeSet<_> = six.iter().collect();
        assert_eq!(different.len(), 6, "{slots:?}");
    }
}

#[test]
fn past_the_page_cache_large_blocks_are_kept_apart_from_their_neighbours() {
    for (block, caching, apart) in [
        (64 << 10, Caching::Direct, false),
        (256 << 10, Caching::Direct, false),
        (512 << 10, Caching::Direct, true),
        (1 << 20, Caching::Direct, true),
        (512 << 10, Caching::Uncached, false),
        (512 << 10, Caching::Cached, false),
    ] {
        for depth in 4..=9 {
            let case = Case {
                block,
                depth,
                slots: depth + 1,
                caching: CachingPlan::All(caching),
                ..CASE
            };
            let reads = reads_of(&b"0123456\n".repeat(depth * block / 8), &case);
            let told: Vec<_> = reads.iter().map(|read| (read.0, read.2)).collect();
            let numbers = 0..depth as u64;
            let all: Vec<_> = numbers
                .map(|n| (n * block as u64, apart && n % 2 == 1))
                .collect();
            assert_eq!(told, all);
        }
    }
}
