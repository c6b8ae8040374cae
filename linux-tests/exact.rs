//! Percentiles, `distinct` and `mode` against what is found by sorting all values, in every engine and form of input.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use num_bigint::BigInt;

use crate::compressed::gzip;
use crate::support::{Random, dir, end, end_of, feed, ringfold, start, write};

/// What a column of numbers looks like.
#[derive(Debug, Clone, Copy)]
enum Numbers {
    Few,
    Prices,
    Nanoseconds,
    MixedDecimals,
    Nearly,
}

impl Numbers {
    fn one(self, random: &mut Random) -> String {
        let sign = ["", "-"][random.below(2) as usize];
        match self {
            Numbers::Few => format!("{sign}{}", random.below(5)),
            Numbers::Prices => format!("{sign}{}.{:02}", random.below(1000), random.below(100)),
            Numbers::Nanoseconds => format!("17000000001234{:05}", random.below(100_000)),
            Numbers::MixedDecimals => match random.below(5) {
                0 => format!("{sign}{}.{:018}", random.below(500), random.below(1 << 30)),
                1 => format!("{sign}{}.5", random.below(3)),
                2 => format!("{sign}{}.500000000000000000", random.below(3)),
                3 => format!("{sign}431.97882547"),
                _ => format!("{sign}{}", random.below(1000)),
            },
            // About the greatest numbers of 64 bits, and more.
            Numbers::Nearly => match random.below(3) {
                0 => format!("{sign}9223372036854775{:03}", 700 + random.below(200)),
                1 => format!("{sign}99999999999999999999{}", random.below(9)),
                _ => format!("{sign}{}.25", random.below(9)),
            },
        }
    }
}

fn texts(random: &mut Random) -> String {
    match random.below(7) {
        0 => String::new(),
        1 => ["a", "b", "seven77"][random.below(3) as usize].into(),
        2 => format!("eight{:03}", random.below(20)),
        3 => format!("a longer text, number {}", random.below(300)).replace(',', ";"),
        4 => format!("{}.{:02}", random.below(10), random.below(100)),
        5 => "\u{e9}\u{1}".into(),
        _ => format!("{}", random.below(1000)),
    }
}

/// A number as an integer at `scale`.
fn at(number: &str, scale: usize) -> BigInt {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    format!("{whole}{decimals:0<scale$}").parse().unwrap()
}

/// A number of `scale` decimals as it is printed.
fn printed(number: &BigInt, scale: usize) -> String {
    let digits = format!("{:0>1$}", number.magnitude().to_string(), scale + 1);
    let (whole, decimals) = digits.split_at(digits.len() - scale);
    let sign = if number.sign() == num_bigint::Sign::Minus {
        "-"
    } else {
        ""
    };
    // Three digits from the first that isn't zero.
    let known = digits.trim_start_matches('0').len();
    let zeros = if known == 0 {
        0
    } else {
        3_usize.saturating_sub(known)
    };
    format!("{sign}{whole}.{decimals}{}", "0".repeat(zeros))
}

/// The answer to `-k1 -a median:2,p99:2,p0:2,p100:2,distinct:3,mode:3,distinct:2,mode:2,count`.
fn expected(text: &str) -> String {
    let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let mut groups = BTreeMap::<&str, Vec<(&str, &str)>>::new();
    for row in rows {
        groups.entry(row[0]).or_default().push((row[1], row[2]));
    }
    let all = groups.values().flatten();
    let decimals = |number: &str| {
        number
            .split_once('.')
            .map_or(0, |(_, decimals)| decimals.len())
    };
    let scale = all.map(|(number, _)| decimals(number)).max().unwrap();
    let mut answer =
        "key1,median_2,p99_2,p0_2,p100_2,distinct_3,mode_3,distinct_2,mode_2,count\n".to_string();
    for (key, rows) in groups {
        let mut numbers: Vec<BigInt> = (rows.iter().filter(|row| !row.0.is_empty()))
            .map(|row| at(row.0, scale))
            .collect();
        numbers.sort();
        answer += key;
        for share in [50, 99, 0, 100] {
            answer.push(',');
            if numbers.is_empty() {
                continue;
            }
            let place = (numbers.len() - 1) * share;
            let (low, rest) = (place / 100, place % 100);
            let high = &numbers[(low + 1).min(numbers.len() - 1)];
            let between = &numbers[low] * (100 - rest) + high * rest;
            answer += &printed(&between, scale + 2);
        }
        for column in [
            |row: &(&str, &str)| row.1.to_string(),
            |row: &(&str, &str)| row.0.to_string(),
        ] {
            let mut counts = BTreeMap::<String, usize>::new();
            for value in rows.iter().map(column).filter(|value| !value.is_empty()) {
                *counts.entry(value).or_default() += 1;
            }
            let most = counts.values().max();
            let mode = counts.iter().find(|(_, count)| Some(*count) == most);
            answer += &format!(",{},{}", counts.len(), mode.map_or("", |(value, _)| value));
        }
        answer += &format!(",{}\n", rows.len());
    }
    answer
}

const QUERY: [&str; 4] = [
    "-d,",
    "-k1",
    "-amedian:2,p99:2,p0:2,p100:2,distinct:3,mode:3",
    "-adistinct:2,mode:2,count",
];

fn records(numbers: Numbers, rows: u64, groups: u64, seed: u64) -> String {
    let mut random = Random(seed);
    let mut text = String::new();
    for _ in 0..rows {
        let number = match random.below(9) {
            0 => String::new(),
            _ => numbers.one(&mut random),
        };
        let key = match random.below(groups) {
            3 => "a key that is longer than those of slots are by some bytes".to_string(),
            key => format!("k{key}"),
        };
        text += &format!("{key},{number},{}\n", texts(&mut random));
    }
    text
}

#[track_caller]
fn same(got: &[u8], want: &str, how: &str) {
    let got = String::from_utf8_lossy(got);
    let differs = got
        .lines()
        .zip(want.lines())
        .find(|(got, want)| got != want);
    assert!(got == want, "{how}: {differs:?}");
}

#[test]
fn as_sorted_values_have_it() {
    let dir = dir();
    let dir = dir.path();
    for (at, numbers) in (1..).zip([
        Numbers::Few,
        Numbers::Prices,
        Numbers::Nanoseconds,
        Numbers::MixedDecimals,
        Numbers::Nearly,
    ]) {
        for (rows, groups) in [(3_000, 40), (6_000, 1)] {
            let text = records(numbers, rows, groups, at);
            let want = expected(&text);
            write(dir, "a.txt", text.as_bytes());
            let run = |args: &[&str]| {
                let mut command = ringfold(["aggregate"]);
                end(command.args(QUERY).args(args).current_dir(dir))
            };
            for args in [
                &["a.txt"][..],
                &["--engine", "mmap", "--block-size", "4K", "a.txt"],
                &["--engine", "pread", "--block-size", "16K", "-j3", "a.txt"],
                &["--engine", "read", "--block-size", "64K", "a.txt"],
                &["--comment", "#", "a.txt"],
                // Records are added one by one.
                &["--quote", "'", "--max-record", "1K", "a.txt"],
            ] {
                same(&run(args).answer(), &want, &format!("{numbers:?} {args:?}"));
            }
            let mut command = ringfold(["aggregate"]);
            let mut child = start(command.args(QUERY).arg("-").stdin(Stdio::piped()));
            feed(&mut child, text.clone().into_bytes());
            same(
                &end_of(child).answer(),
                &want,
                &format!("{numbers:?} in a pipe"),
            );
            write(dir, "a.gz", &gzip(text.as_bytes()));
            same(
                &run(&["a.gz"]).answer(),
                &want,
                &format!("{numbers:?} compressed"),
            );
            for memory in ["0", "300K"] {
                let small = [
                    "--memory",
                    memory,
                    "--spill-dir",
                    ".",
                    "--block-size",
                    "16K",
                    "a.txt",
                ];
                let (got, _) = run(&small).answer_and_notices();
                same(&got, &want, &format!("{numbers:?} in {memory}"));
            }
            in_parts(dir, &text, &want);
        }
    }
}

/// Partials of parts, some of which were spilled, give the same bytes in any order.
fn in_parts(dir: &Path, text: &str, want: &str) {
    let cut = text.len() / 3;
    let cut = cut + text[cut..].find('\n').unwrap() + 1;
    write(dir, "1.txt", &text.as_bytes()[..cut]);
    write(dir, "2.txt", &text.as_bytes()[cut..]);
    let run = |args: &[&str]| {
        let mut command = ringfold(["aggregate"]);
        end(command.args(QUERY).args(args).current_dir(dir)).answer_and_notices()
    };
    run(&["--save-partial", "1.part", "1.txt"]);
    run(&[
        "--save-partial",
        "2.part",
        "--memory",
        "0",
        "--spill-dir",
        ".",
        "2.txt",
    ]);
    let merged = |args: &[&str]| {
        let mut command = ringfold(["merge"]);
        end(command.args(args).current_dir(dir))
            .answer_and_notices()
            .0
    };
    same(&merged(&["1.part", "2.part"]), want, "merged");
    same(
        &merged(&["2.part", "1.part"]),
        want,
        "merged the other way round",
    );
    let small = ["--memory", "0", "--spill-dir", ".", "1.part", "2.part"];
    same(&merged(&small), want, "merged in little memory");
    run(&[
        "--save-partial",
        "1s.part",
        "--memory",
        "0",
        "--spill-dir",
        ".",
        "1.txt",
    ]);
    let bytes = |name: &str| std::fs::read(dir.join(name)).unwrap();
    assert!(bytes("1.part") == bytes("1s.part"), "partials differ");
}
