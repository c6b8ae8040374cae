//! What records of a key and a number cost, by numbers of keys and forms of numbers, and what the merge costs at the end.
//! Every benchmark checks its answer.

mod data;

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ringfold::query::{Answer, Plan, Query};
use ringfold::report::grid::{Cell, Rows};
use ringfold::{Config, Fold, Input, Level, PaddedBuf};

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

/// Counts and sums the numbers of each key.
fn plan(text: &[u8], level: Level) -> Plan {
    let query = Query::new(b';').quote(None).key(1).level(Some(level));
    let query = ["count", "sum", "min", "max"]
        .iter()
        .fold(query, |query, name| {
            query.aggregate(name, Some(2.into())).expect("it is one")
        });
    query
        .plan(&Input::memory([text]), &Config::default())
        .expect("there are columns")
}

/// The counts of all rows, and the sum of all sums without its point.
fn totals(answer: &Answer) -> (u64, i128) {
    let (mut count, mut sum, mut cells) = (0, 0, Vec::new());
    for at in 0..answer.len() {
        answer.row(at, &mut cells);
        if let [_, Cell::Number(rows), Cell::Number(total), ..] = &cells[..] {
            count += rows.as_decimal().expect("a count").0 as u64;
            sum += total.as_decimal().expect("a sum").0;
        }
    }
    (count, sum)
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
            let job = plan(block.bytes(), level);
            let mut partial = job.partial();
            let mut times = 0;
            group.bench_function(format!("{level:?}"), |bencher| {
                bencher.iter(|| {
                    times += 1;
                    job.block(&mut partial, &block).expect("good rows");
                });
            });
            if times > 0 {
                let want = (times * rows as u64, i128::from(sum) * i128::from(times));
                assert_eq!(totals(&job.finish(partial)), want);
            }
        }
        group.finish();
    }
}

/// Other numbers than the challenge's, and long keys.
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
            let job = plan(&text, level);
            let mut partial = job.partial();
            let mut times = 0;
            group.bench_function(format!("{name}/{level:?}"), |bencher| {
                bencher.iter(|| {
                    times += 1;
                    let block = buffer.block(0, 0, 0);
                    job.block(&mut partial, &block).expect("good rows");
                });
            });
            let sum = i128::from(naive_sum(&text)) * i128::from(times);
            let want = (times * rows as u64, sum);
            assert_eq!(totals(&job.finish(partial)), want);
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
    let job = plan(texts[0].block(0, 0, 0).bytes(), Level::detect());
    let new_partial = job.partials();
    let mut partials = texts.iter().map(|text| {
        let mut partial = new_partial();
        job.block(&mut partial, &text.block(0, 0, 0))
            .expect("good rows");
        partial
    });
    let mut into = partials.next().expect("some");
    let partials: Vec<_> = partials.collect();
    let started = Instant::now();
    let answer = pool.install(|| {
        let from = partials.into_iter();
        from.for_each(|from| job.merge(&mut into, from));
        job.finish(into)
    });
    let took = started.elapsed();
    assert_eq!(totals(&answer).0, answer.rows);
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
