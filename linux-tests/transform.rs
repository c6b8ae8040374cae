//! Jobs whose output is in the input's order: every byte once and in its place, in bounded memory, whatever the consumer
//! does, and whole records before a failure.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use ringfold::{
    Block, BlockError, Config, Finished, Fold, Input, Kind, Malformed, Ordered, Sink, Transform,
    fold, transform,
};

use crate::answers::fifo;
use crate::support::{KEYS_10K, PATIENCE, STATIONS, WAYS, Way, cached_ways, dir, write};

/// Upper case; a line that begins with `!` is malformed.
#[derive(Default)]
struct Upper {
    blocks: AtomicU64,
}

impl Transform for Upper {
    fn block(&self, block: &Block<'_>, out: &mut Vec<u8>) -> Result<(), BlockError> {
        self.blocks.fetch_add(1, Relaxed);
        let mut start = 0;
        for line in block.bytes().split_inclusive(|&byte| byte == b'\n') {
            let end = start + line.len();
            if line.starts_with(b"!") {
                let cause = "no shouting".into();
                return Err(BlockError::Malformed(Malformed { start, end, cause }));
            }
            out.extend(line.iter().map(u8::to_ascii_uppercase));
            start = end;
        }
        Ok(())
    }
}

fn config(way: Way, block: usize, threads: usize) -> Config {
    Config {
        block_size: Some(block),
        threads: Some(threads),
        knobs: way.rings(3),
        ..way.config()
    }
}

#[test]
fn every_engine_and_size_gives_the_same_bytes() {
    let dir = dir();
    let long = [&b"x".repeat(70_000)[..], b"\nshort\n"].concat();
    let texts = [&STATIONS[..], b"", &long, b"no end", &KEYS_10K];
    let paths: Vec<_> = (0..)
        .zip(texts)
        .map(|(n, text)| write(dir.path(), &format!("{n}"), text))
        .collect();
    let want = texts.concat().to_ascii_uppercase();
    for way in WAYS.iter() {
        for block in [4096, 65_536, 1 << 20] {
            for threads in [1, 2, 8] {
                let config = config(*way, block, threads);
                let mut out = Vec::new();
                let input = Input::open(&paths).unwrap();
                transform(&input, &config, &Upper::default(), &mut out).unwrap();
                assert!(out == want, "{config:?}");
            }
        }
    }
    for way in cached_ways() {
        for block in [1, 3, 64] {
            let text = &STATIONS[..3_001];
            let path = write(dir.path(), "small", text);
            let mut out = Vec::new();
            let input = Input::open([path]).unwrap();
            transform(&input, &config(way, block, 3), &Upper::default(), &mut out).unwrap();
            assert!(out == text.to_ascii_uppercase(), "{way:?} {block}");
        }
    }
}

#[test]
fn a_stream_between_files() {
    let dir = dir();
    let (first, last) = (
        write(dir.path(), "first", &STATIONS),
        write(dir.path(), "last", &KEYS_10K),
    );
    for way in cached_ways() {
        let pipe = fifo(dir.path(), &format!("{way:?}"));
        let to = pipe.clone();
        let writer = std::thread::spawn(move || std::fs::write(to, &*STATIONS).unwrap());
        let mut out = Vec::new();
        let input = Input::open([&first, &pipe, &last]).unwrap();
        transform(&input, &config(way, 4096, 4), &Upper::default(), &mut out).unwrap();
        let want = [&STATIONS[..], &STATIONS, &KEYS_10K]
            .concat()
            .to_ascii_uppercase();
        assert!(out == want, "{way:?}");
        writer.join().unwrap();
    }
}

#[test]
fn a_failure_leaves_all_records_before_it() {
    let dir = dir();
    let mut text = STATIONS.to_vec();
    let middle = text.len() / 2;
    let at = middle + text[middle..].iter().position(|&b| b == b'\n').unwrap() + 1;
    text.splice(at..at, *b"!no\n");
    text.extend(b"!nor this\n");
    let path = write(dir.path(), "text", &text);
    for way in WAYS.iter() {
        for block in [4096, 65_536] {
            for threads in [1, 2, 8] {
                let config = config(*way, block, threads);
                let mut out = Vec::new();
                let input = Input::open([&path]).unwrap();
                let error = transform(&input, &config, &Upper::default(), &mut out).unwrap_err();
                let bytes = Some(at as u64..at as u64 + 4);
                assert_eq!((error.kind(), error.bytes()), (Kind::Data, bytes));
                assert!(out == text[..at].to_ascii_uppercase(), "{config:?}");
            }
        }
    }
}

/// A record over the limit is the engine's own finding: what stands before it is written, what stands behind isn't.
#[test]
fn a_record_over_the_limit_ends_the_output() {
    let dir = dir();
    let before = &STATIONS[..100_000];
    let at = before.iter().rposition(|&b| b == b'\n').unwrap() + 1;
    let text = [&before[..at], &b"x".repeat(9_000), b"\n", &STATIONS].concat();
    let path = write(dir.path(), "text", &text);
    for way in WAYS.iter() {
        for block in [4096, 65_536] {
            let config = Config {
                max_record: 5_000,
                ..config(*way, block, 4)
            };
            let mut out = Vec::new();
            let input = Input::open([&path]).unwrap();
            let error = transform(&input, &config, &Upper::default(), &mut out).unwrap_err();
            assert_eq!(error.bytes().map(|bytes| bytes.start), Some(at as u64));
            assert!(out == before[..at].to_ascii_uppercase(), "{config:?}");
        }
    }
}

/// Takes nothing until it may go on.
struct Stopped {
    go_on: mpsc::Receiver<()>,
    out: Vec<u8>,
}

impl Write for Stopped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Behind the sender's end it takes everything.
        let _ = self.go_on.recv();
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_stopped_consumer_bounds_what_is_in_memory() {
    let dir = dir();
    let text = STATIONS.repeat(8);
    let path = write(dir.path(), "text", &text);
    for way in WAYS.iter() {
        let (sender, go_on) = mpsc::channel();
        let mut out = Stopped {
            go_on,
            out: Vec::new(),
        };
        let job = Upper::default();
        std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let input = Input::open([&path]).unwrap();
                transform(&input, &config(*way, 4096, 4), &job, &mut out).map(drop)
            });
            let started = Instant::now();
            // All of the window is worked on, and no more. A ring's last block waits for the head of the next.
            while job.blocks.load(Relaxed) < 47 {
                assert!(started.elapsed() < PATIENCE, "{way:?}: {:?}", job.blocks);
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(20));
            assert!(job.blocks.load(Relaxed) <= 48, "{way:?}");
            drop(sender);
            run.join().unwrap().unwrap();
        });
        assert!(out.out == text.to_ascii_uppercase(), "{way:?}");
    }
}

/// Goes away after some bytes.
struct Closes(usize);

impl Write for Closes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_consumer_ends_the_run() {
    let dir = dir();
    let text = STATIONS.repeat(20);
    let path = write(dir.path(), "text", &text);
    for way in WAYS.iter() {
        for bytes in [0, 100_000] {
            let job = Upper::default();
            let input = Input::open([&path]).unwrap();
            let closed = transform(&input, &config(*way, 4096, 4), &job, &mut Closes(bytes));
            assert_eq!(closed.unwrap_err().kind(), Kind::ClosedPipe, "{way:?}");
            let blocks = text.len().div_ceil(4096) as u64;
            assert!(
                job.blocks.load(Relaxed) < blocks / 2,
                "{way:?}: {:?}",
                job.blocks
            );
        }
    }
}

/// Notes which sequence numbers are finished, and which brought blocks.
#[derive(Default)]
struct Numbers {
    blocks: Mutex<BTreeMap<u64, u32>>,
    finished: Mutex<Vec<u64>>,
}

impl Sink for Numbers {
    fn block(&self, block: &Block<'_>) -> Result<(), BlockError> {
        let finished = self.finished.lock().unwrap();
        assert!(
            !finished.contains(&block.sequence()),
            "a block of a finished number"
        );
        *self
            .blocks
            .lock()
            .unwrap()
            .entry(block.sequence())
            .or_default() += 1;
        Ok(())
    }

    fn order(&self) -> Option<&dyn Ordered> {
        Some(self)
    }
}

impl Ordered for Numbers {
    fn window(&self) -> u64 {
        5
    }

    fn finished(&self, finished: Finished) {
        self.finished.lock().unwrap().push(finished.sequence());
    }
}

#[test]
fn each_number_finishes_once_whatever_it_brought() {
    let dir = dir();
    // Records over many blocks: some numbers bring nothing, some two blocks.
    let mut text = b"a\n".to_vec();
    for len in [3, 20_000, 5, 4_095, 4_096, 9_000] {
        text.extend(b"x".repeat(len));
        text.extend(b"\ny\nz\n");
    }
    let paths = [write(dir.path(), "0", &text), write(dir.path(), "1", &text)];
    let (mut none, mut several) = (0, 0);
    for way in WAYS.iter() {
        for threads in [1, 4] {
            let numbers = Numbers::default();
            let input = Input::open(&paths).unwrap();
            let config = config(*way, 4096, threads);
            ringfold::run(&input, &config, &numbers).unwrap();
            let mut finished = numbers.finished.into_inner().unwrap();
            finished.sort_unstable();
            let dense: Vec<u64> = (0..finished.len() as u64).collect();
            assert_eq!(finished, dense, "{config:?}");
            let blocks = numbers.blocks.into_inner().unwrap();
            assert!(blocks.keys().all(|number| *number < dense.len() as u64));
            none += dense.len() - blocks.len();
            several += blocks.values().filter(|&&count| count > 1).count();
        }
    }
    assert!(none > 0 && several > 0, "{none} {several}");
}

/// How many bytes there are.
struct Bytes;

impl Fold for Bytes {
    type Partial = u64;
    type Output = u64;

    fn partial(&self) -> u64 {
        0
    }

    fn block(&self, sum: &mut u64, block: &Block<'_>) -> Result<(), BlockError> {
        let name = std::thread::current().name().map(str::to_string);
        assert_eq!(name.as_deref(), Some("the caller's"));
        *sum += block.bytes().len() as u64;
        Ok(())
    }

    fn merge(&self, into: &mut u64, from: u64) {
        *into += from;
    }

    fn finish(&self, sum: u64) -> u64 {
        sum
    }
}

#[test]
fn a_run_works_on_the_threads_that_it_is_given() {
    let dir = dir();
    let path = write(dir.path(), "text", &STATIONS);
    let named = || rayon::ThreadPoolBuilder::new().thread_name(|_| "the caller's".into());
    let pool = Arc::new(named().num_threads(2).build().unwrap());
    for way in WAYS.iter() {
        let config = Config {
            pool: Some(Arc::clone(&pool)),
            ..way.config()
        };
        let run = || fold(&Input::open([&path]).unwrap(), &config, &Bytes);
        let (bytes, stats) = run().unwrap();
        assert_eq!(
            (bytes, stats.threads),
            (STATIONS.len() as u64, 2),
            "{way:?}"
        );
        // One of its threads can't wait for the others and work too.
        assert_eq!(pool.install(run).unwrap_err().kind(), Kind::Usage);
    }
}
