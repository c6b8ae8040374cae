//! The parts, one by one, through the library's public face: framing, stitching, the dispatcher's
//! price for a block, and the jobs over memory. Each checks its answer.
//!
//! `cargo bench -p ringfold-benches --bench parts`. docs/benchmarks.md tells what the figures mean.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ringfold::internals::Generate;
use ringfold::internals::reads::ReadWatch;
use ringfold::internals::statistics::Interval;
use ringfold::internals::{Piece, Release, Stitcher};
use ringfold::job::{Count, Counted};
use ringfold::query::Query;
use ringfold::{
    Block, BlockError, Config, Delimited, Effect, Engine, Framing, Input, Observer, Sink, State,
    Stats, fold, run,
};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Sizes of a block: the price of one shows in the smallest, the copy of its bytes in the largest.
const BLOCKS: [usize; 3] = [4 * KIB, 64 * KIB, MIB];
const LINES: Delimited = Delimited::NEWLINE;
/// Reads in flight by default, and so how far the order of arrival is mixed.
const DEPTH: usize = 16;
/// What the dispatcher is to reach with blocks of 4 KiB.
const BLOCKS_PER_S_MIN: f64 = 500_000.0;

criterion_group!(parts, framing, stitch, dispatcher, observer, jobs);
criterion_main!(parts);

/// Measurements, whole rows in at most so many bytes, and how many rows.
fn measurements(bytes: usize) -> (Vec<u8>, u64) {
    let generate = Generate {
        bytes: Some(bytes as u64),
        seed: 1,
        ..Generate::default()
    };
    let mut text = Vec::with_capacity(bytes);
    let generated = generate
        .run(&mut text, &|_, _| {})
        .expect("memory takes everything");
    (text, generated.rows)
}

fn size(bytes: usize) -> String {
    match bytes {
        0..MIB => format!("{}K", bytes / KIB),
        _ => format!("{}M", bytes / MIB),
    }
}

/// Where records end in 1 MiB: in lines of 13.8 bytes, and in the worst there is, where the only
/// end lies at the other side.
fn framing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("framing");
    let (mut lines, _) = measurements(MIB);
    let mut ends_late = vec![b'x'; MIB];
    ends_late[MIB - 1] = b'\n';
    let mut ends_early = vec![b'x'; MIB];
    ends_early[0] = b'\n';
    let first = |text: &[u8]| LINES.first_end(State::START, text);
    let last = |text: &[u8]| LINES.last_end(State::START, text);
    let line = lines
        .split_inclusive(|&byte| byte == b'\n')
        .next()
        .map_or(0, <[u8]>::len);

    assert_eq!(first(&lines), Some(line));
    group.bench_function("first_end/lines", |b| b.iter(|| first(black_box(&lines))));
    assert_eq!(last(&lines), Some(lines.len()));
    group.bench_function("last_end/lines", |b| b.iter(|| last(black_box(&lines))));
    group.throughput(Throughput::Bytes(MIB as u64));
    assert_eq!(first(&ends_late), Some(MIB));
    group.bench_function("first_end/worst", |b| {
        b.iter(|| first(black_box(&ends_late)))
    });
    assert_eq!(last(&ends_early), Some(1));
    group.bench_function("last_end/worst", |b| {
        b.iter(|| last(black_box(&ends_early)))
    });

    // A last line that is a byte longer than all others, and longer than the lower limit.
    let longest = lines
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0);
    let start = lines.len();
    lines.resize(start + longest + 1, b'y');
    group.throughput(Throughput::Bytes(lines.len() as u64));
    for (max, over) in [(longest, true), (4 * KIB, false)] {
        let want = over.then(|| start..start + max);
        assert_eq!(LINES.oversized(State::START, &lines, max), want);
        group.bench_function(BenchmarkId::new("oversized", max), |b| {
            b.iter(|| LINES.oversized(State::START, black_box(&lines), max));
        });
    }
    group.finish();
}

/// A piece in memory of its own, with spare bytes behind it for the rest of a record.
struct Buffer(Vec<u8>);

impl Piece for Buffer {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    fn append(&mut self, more: &[u8]) -> bool {
        let fits = more.len() <= self.0.capacity() - self.0.len();
        if fits {
            self.0.extend_from_slice(more);
        }
        fits
    }
}

/// The stitching of 16 MiB, a piece after the other, the copy into the pieces not counted.
fn stitch(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stitch");
    let (text, _) = measurements(16 * MIB);
    for size_bytes in BLOCKS {
        let count = text.len().div_ceil(size_bytes);
        let in_order: Vec<usize> = (0..count).collect();
        for (name, order) in [("in order", &in_order), ("mixed", &mixed(&in_order))] {
            let pieces = || -> Vec<(usize, Buffer)> {
                let piece = |&index: &usize| {
                    let from = index * size_bytes;
                    let bytes = &text[from..text.len().min(from + size_bytes)];
                    let mut buffer = Vec::with_capacity(bytes.len() + 4 * KIB);
                    buffer.extend_from_slice(bytes);
                    (index, Buffer(buffer))
                };
                order.iter().map(piece).collect()
            };
            assert_joined(stitched(pieces(), size_bytes), &text);
            group.throughput(Throughput::Elements(count as u64));
            group.bench_function(BenchmarkId::new(name, size(size_bytes)), |b| {
                let stitched = |pieces| stitched(pieces, size_bytes);
                b.iter_batched(pieces, stitched, BatchSize::LargeInput);
            });
        }
    }
    group.finish();
}

/// Each number as far from its place as the queue of reads is long.
fn mixed(order: &[usize]) -> Vec<usize> {
    let mut order = order.to_vec();
    for (number, chunk) in order.chunks_mut(DEPTH).enumerate() {
        // Steps of 7 go through all places of a whole chunk, each from another start.
        let copy = chunk.to_vec();
        if copy.len() == DEPTH {
            for (place, index) in chunk.iter_mut().enumerate() {
                *index = copy[(place * 7 + number) % DEPTH];
            }
        }
    }
    order
}

fn stitched(pieces: Vec<(usize, Buffer)>, size_bytes: usize) -> Vec<Release<Buffer>> {
    let mut stitcher = Stitcher::new(&LINES, MIB, true);
    let mut released = Vec::with_capacity(pieces.len());
    let mut result = stitcher.finish(pieces.len() as u64, &mut released);
    for (index, piece) in pieces {
        let offset = (index * size_bytes) as u64;
        result = result.and(stitcher.arrive(
            index as u64,
            piece,
            offset,
            None,
            Effect::NONE,
            &mut released,
        ));
    }
    assert_eq!(result, Ok(()));
    assert!(stitcher.is_done());
    released
}

/// What was released is the text, in blocks of whole lines.
fn assert_joined(mut released: Vec<Release<Buffer>>, text: &[u8]) {
    released.sort_by_key(|release| release.offset);
    let mut joined = Vec::with_capacity(text.len());
    for release in &released {
        assert_eq!(release.offset, joined.len() as u64);
        joined.extend_from_slice(&release.piece.bytes()[release.range.clone()]);
        if let Some(record) = &release.gathered {
            assert_eq!(record.offset, joined.len() as u64);
            joined.extend_from_slice(record.bytes.bytes());
        }
        assert_eq!(joined.last(), Some(&b'\n'));
    }
    assert!(joined == text, "the text came out changed");
}

/// Does nothing with a block but what tells that all have come.
#[derive(Default)]
struct Empty {
    bytes: AtomicU64,
}

impl Sink for Empty {
    fn block(&self, block: &Block<'_>) -> Result<(), BlockError> {
        self.bytes.fetch_add(block.bytes().len() as u64, Relaxed);
        Ok(())
    }
}

/// The price of a block from submission to an empty sink, over a ring that completes at once by a
/// copy. An iteration is a block, so the time shown is the price.
fn dispatcher(criterion: &mut Criterion) {
    let (text, _) = measurements(64 * MIB);
    let input = Input::memory([text]);
    let config = |size_bytes, threads, buffers| Config {
        engine: Engine::Memory,
        block_size: Some(size_bytes),
        threads: Some(threads),
        buffers,
        ..Config::default()
    };
    let mut group = criterion.benchmark_group("dispatcher");
    group.throughput(Throughput::Elements(1));
    for size_bytes in BLOCKS {
        for threads in [1, 2] {
            let config = config(size_bytes, threads, None);
            let name = BenchmarkId::new(format!("threads {threads}"), size(size_bytes));
            group.bench_function(name, |b| {
                b.iter_custom(|iterations| {
                    let (mut elapsed, mut blocks) = (Duration::ZERO, 0);
                    while blocks < iterations {
                        let (more, stats) = dispatched(&input, &config);
                        elapsed += more;
                        blocks += stats.blocks;
                    }
                    // Whole runs only; of their time the share that was asked for.
                    elapsed.mul_f64(iterations as f64 / blocks as f64)
                });
            });
        }
    }
    group.finish();
    for threads in [1, 2] {
        for buffers in [None, Some(4 * DEPTH)] {
            verdict(&input, &config(4 * KIB, threads, buffers));
        }
    }
}

/// One run: its time with all that is set up for it.
fn dispatched(input: &Input, config: &Config) -> (Duration, Stats) {
    let sink = Empty::default();
    let started = Instant::now();
    let stats = run(input, config, &sink).expect("memory can be read");
    let elapsed = started.elapsed();
    let len = input.len().expect("memory has a size");
    assert_eq!(sink.bytes.into_inner(), len);
    assert_eq!(stats.blocks, len.div_ceil(stats.block_size as u64));
    (elapsed, stats)
}

/// What it costs that reads are looked at, with a ring that only copies memory: a device takes longer. With and without
/// in turns, so this isn't one of criterion's figures. Over more bytes what a run costs once is less of the time.
fn observer(_: &mut Criterion) {
    const PAIRS: usize = 101;
    let text: Arc<[u8]> = measurements(64 * MIB).0.into();
    for size_bytes in [4 * KIB, 64 * KIB, 512 * KIB] {
        for times in [1, 8] {
            let input = Input::memory(std::iter::repeat_n(&text, times).cloned());
            let config = |observer| Config {
                engine: Engine::Memory,
                block_size: Some(size_bytes),
                threads: Some(1),
                observer,
                ..Config::default()
            };
            let time = |watched: bool| {
                let observer = watched.then(|| Arc::new(ReadWatch::default()) as Arc<dyn Observer>);
                dispatched(&input, &config(observer))
            };
            let mut reads = 0;
            let pairs: Vec<(f64, f64)> = (0..PAIRS)
                .map(|pair| {
                    let (first, last) =
                        (time(pair.is_multiple_of(2)), time(!pair.is_multiple_of(2)));
                    reads = first.1.reads;
                    let [first, last] = [first, last].map(|(elapsed, _)| elapsed.as_secs_f64());
                    match pair.is_multiple_of(2) {
                        true => (first, last),
                        false => (last, first),
                    }
                })
                .collect();
            let ratios: Vec<f64> = pairs.iter().map(|(with, without)| with / without).collect();
            let more: Vec<f64> = pairs.iter().map(|(with, without)| with - without).collect();
            let ratio = Interval::of(&ratios).expect("there are pairs");
            let more = Interval::of(&more).expect("there are pairs");
            println!(
                "observer, {} a block, {reads} reads: {:.4} times as long, 95% interval {:.4} - {:.4}; \
                 {:.0} us more, {:.0} - {:.0} ({PAIRS} pairs)",
                size(size_bytes),
                ratio.median,
                ratio.low,
                ratio.high,
                more.median * 1e6,
                more.low * 1e6,
                more.high * 1e6
            );
        }
    }
}

/// Says whether the dispatcher reaches what it is to reach, and what holds it up: the best run, and
/// the median one, for the threads fall into step or out of it by chance.
fn verdict(input: &Input, config: &Config) {
    let mut runs: Vec<_> = (0..9).map(|_| dispatched(input, config)).collect();
    runs.sort_by_key(|(elapsed, _)| *elapsed);
    for (which, (elapsed, stats)) in [("best", &runs[0]), ("median", &runs[4])] {
        let blocks_per_s = stats.blocks as f64 / elapsed.as_secs_f64();
        println!(
            "dispatcher, {} bytes a block, threads {}, buffers {}, {which} of 9: {:.0} ns a block, \
             {blocks_per_s:.0} blocks/s, goal {BLOCKS_PER_S_MIN:.0} {}; all buffers were with the \
             workers {:.0} % of the time",
            stats.block_size,
            stats.threads,
            stats.buffers,
            1e9 / blocks_per_s,
            if blocks_per_s >= BLOCKS_PER_S_MIN {
                "met"
            } else {
                "MISSED"
            },
            100.0 * stats.starved_s / elapsed.as_secs_f64()
        );
    }
}

/// The jobs over memory, on all cores: what is left when nothing has to be fetched.
fn jobs(criterion: &mut Criterion) {
    let (text, rows) = measurements(64 * MIB);
    let len = text.len() as u64;
    let input = Input::memory([text]);
    let config = Config {
        engine: Engine::Memory,
        ..Config::default()
    };
    let mut group = criterion.benchmark_group("jobs");
    group.throughput(Throughput::Bytes(len));
    let count = Count { delimiter: b'\n' };
    let want = [Counted {
        records: rows,
        bytes: len,
    }];
    group.bench_function("count", |b| {
        b.iter(|| {
            let (counted, _) = fold(&input, &config, &count).expect("memory can be read");
            assert_eq!(counted, want);
        });
    });
    let plan = Query::pairs(b';').plan(&input, &config).expect("it is one");
    group.bench_function("aggregate", |b| {
        b.iter(|| {
            let (answer, _) = fold(&input, &config, &plan).expect("all rows are good");
            assert_eq!((answer.rows, answer.groups), (rows, 413));
        });
    });
    group.finish();
}
