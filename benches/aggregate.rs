//! What each stage costs, what the whole costs, and what another table would cost.
//!
//! Stages are cumulative: `decode` includes `index`, `table` and `hashbrown` include both. Every
//! benchmark checks its answer.

mod data;

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hashbrown::HashTable;
use ringfold::Fold;
use ringfold::Level;
use ringfold::PaddedBuf;
use ringfold::group::Aggregate;
use ringfold::internals::Stages;

struct Case {
    name: &'static str,
    keys: data::Keys,
    rows: usize,
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "413",
            keys: data::stations(),
            rows: 100_000,
        },
        Case {
            name: "10K",
            keys: data::names(10_000),
            rows: 100_000,
        },
        Case {
            name: "prefixed",
            keys: data::prefixed(413),
            rows: 50_000,
        },
        Case {
            name: "1M",
            keys: data::numbered(1_000_000),
            rows: 4_000_000,
        },
    ]
}

/// Statistics as a plain program would keep them.
#[derive(Default)]
struct Plain {
    count: u64,
    sum: i64,
    min: i32,
    max: i32,
}

fn aggregate(criterion: &mut Criterion) {
    for Case { name, keys, rows } in cases() {
        let buffer = PaddedBuf::from(&data::rows(&keys, rows, "\n", data::tenths)[..]);
        let block = buffer.block(0, 0, 0);
        let sum = naive_sum(block.bytes());
        let mut group = criterion.benchmark_group(name);
        group
            .throughput(Throughput::Elements(rows as u64))
            .sample_size(20);
        for level in Level::available() {
            let mut stages = Stages::new(level);
            group.bench_function(format!("index/{level:?}"), |bencher| {
                bencher.iter(|| assert_eq!(stages.index(&block), rows));
            });
            group.bench_function(format!("decode/{level:?}"), |bencher| {
                bencher.iter(|| assert_eq!(stages.decode(&block), rows));
            });
            group.bench_function(format!("table/{level:?}"), |bencher| {
                bencher.iter(|| assert_eq!(stages.fold(&block), rows));
            });
            let job = Aggregate::new().level(level);
            let mut partial = job.partial();
            let mut times = 0;
            group.bench_function(format!("whole/{level:?}"), |bencher| {
                bencher.iter(|| {
                    times += 1;
                    job.block(&mut partial, &block).expect("good rows");
                });
            });
            if times > 0 {
                let summary = job.finish(partial);
                assert_eq!(summary.rows, times * rows as u64);
                let sums: i128 = summary
                    .entries()
                    .map(|entry| entry.sum().round(1).units().expect("small"))
                    .sum();
                assert_eq!(sums, i128::from(sum) * i128::from(times));
            }
        }
        let state = ahash::RandomState::new();
        let mut table: HashTable<(Box<[u8]>, Plain)> = HashTable::new();
        let mut stages = Stages::new(Level::detect());
        let mut times = 0;
        group.bench_function("hashbrown", |bencher| {
            bencher.iter(|| {
                times += 1;
                stages.each(&block, |key, value| {
                    let hash = state.hash_one(key);
                    let entry = table.entry(
                        hash,
                        |(other, _)| **other == *key,
                        |(key, _)| state.hash_one(&**key),
                    );
                    let fresh = || {
                        (
                            key.into(),
                            Plain {
                                min: value,
                                max: value,
                                ..Plain::default()
                            },
                        )
                    };
                    let plain = &mut entry.or_insert_with(fresh).into_mut().1;
                    plain.count += 1;
                    plain.sum += i64::from(value);
                    plain.min = plain.min.min(value);
                    plain.max = plain.max.max(value);
                });
            });
        });
        assert_eq!(
            table.iter().map(|(_, plain)| plain.count).sum::<u64>(),
            times * rows as u64
        );
        assert_eq!(
            table.iter().map(|(_, plain)| plain.sum).sum::<i64>(),
            sum * times as i64
        );
        group.finish();
    }
}

/// Other numbers than the challenge's, and keys so long that the scalar parser reads them too: the whole.
fn numbers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("numbers");
    let rows = 100_000;
    group
        .throughput(Throughput::Elements(rows as u64))
        .sample_size(20);
    let stations = data::stations();
    let long = stations
        .iter()
        .map(|(key, mean)| (format!("{key:x<130}"), *mean));
    let long: data::Keys = long.collect();
    for (name, keys, decimals) in [
        ("integers", &stations, 0),
        ("hundredths", &stations, 2),
        ("millionths", &stations, 6),
        ("8 decimals", &stations, 8),
        ("keys of 130 bytes", &long, 1),
    ] {
        let value = |value: f64| format!("{:.decimals$}", 1000.0 * value);
        let text = data::rows(keys, rows, "\n", value);
        let buffer = PaddedBuf::from(&text[..]);
        for level in Level::available() {
            let job = Aggregate::new().level(level);
            let mut partial = job.partial();
            let mut times = 0;
            group.bench_function(format!("{name}/{level:?}"), |bencher| {
                bencher.iter(|| {
                    times += 1;
                    let block = buffer.block(0, 0, 0);
                    job.block(&mut partial, &block).expect("good rows");
                });
            });
            let summary = job.finish(partial);
            let sums = summary
                .entries()
                .map(|entry| entry.sum().round(decimals as u32).units().expect("small"));
            let sum = i128::from(naive_sum(&text)) * i128::from(times);
            assert_eq!(
                (sums.sum::<i128>(), summary.rows),
                (sum, times * rows as u64)
            );
        }
    }
    group.finish();
}

/// The end of a job: the partials of several workers brought together and sorted, by one thread and by as
/// many as there are. Each has all of the keys, or none that another has.
fn merge(criterion: &mut Criterion) {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let keys = data::numbered(8_000_000);
    let text = |keys: &[_]| {
        let text = data::rows(&keys.to_vec(), 2 * keys.len(), "\n", data::tenths);
        PaddedBuf::from(&text[..])
    };
    let same = text(&keys[..500_000]);
    let other: Vec<PaddedBuf> = keys.chunks(4_000_000).map(text).collect();
    let mut group = criterion.benchmark_group("merge");
    group.sample_size(10);
    let cases = [
        ("4 of the same 500K", vec![&same; 4]),
        ("2 of other 4M", other.iter().collect()),
    ];
    for (name, texts) in cases {
        for threads in [1, all] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().expect("threads");
            group.bench_function(format!("{name}/{threads} threads"), |bencher| {
                bencher.iter_custom(|times| (0..times).map(|_| merged(&pool, &texts)).sum());
            });
        }
    }
    group.finish();
}

fn merged(pool: &rayon::ThreadPool, texts: &[&PaddedBuf]) -> Duration {
    let job = Aggregate::new();
    let mut partials = texts.iter().map(|text| {
        let mut partial = job.partial();
        job.block(&mut partial, &text.block(0, 0, 0))
            .expect("good rows");
        partial
    });
    let mut into = partials.next().expect("some");
    let partials: Vec<_> = partials.collect();
    let started = Instant::now();
    let summary = pool.install(|| {
        let from = partials.into_iter();
        from.for_each(|from| job.merge(&mut into, from));
        job.finish(into)
    });
    let took = started.elapsed();
    let rows: u64 = summary.entries().map(|entry| entry.count()).sum();
    assert_eq!(rows, summary.rows);
    took
}

/// The sum of all values in tenths, by the plainest means.
fn naive_sum(bytes: &[u8]) -> i64 {
    bytes
        .split(|&byte| byte == b'\n')
        .filter_map(|line| std::str::from_utf8(line).expect("text").split_once(';'))
        .map(|(_, value)| value.replace('.', "").parse::<i64>().expect("a number"))
        .sum()
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    targets = aggregate, numbers, merge
}
criterion_main!(benches);
