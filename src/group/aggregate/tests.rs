//! The aggregate against an oracle that shares no code with it, on every level.
#![allow(unsafe_code)] // one test puts a block between guard pages

use crate::engine::sink::{BlockError, Malformed};
use crate::group::aggregate::{Aggregate, OnError, Partial};
use crate::group::summary::Summary;
use crate::job::fold::Fold;
use crate::level::Level;
use crate::record::block::PaddedBuf;
use crate::report::{self, Format};
use num_bigint::BigInt;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Debug, Default, PartialEq)]
struct Answer {
    /// Key: count, sum, least, greatest, in units of 10^-36.
    keys: BTreeMap<Vec<u8>, (u64, BigInt, BigInt, BigInt)>,
    rows: u64,
    empty: u64,
    bad: Vec<(usize, usize)>,
}

fn oracle_number(text: &[u8]) -> Option<BigInt> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (integer, fraction) = match digits.split_once('.') {
        Some((integer, fraction)) if !fraction.is_empty() => (integer, fraction),
        Some(_) => return None,
        None => (digits, ""),
    };
    if integer.is_empty()
        || ![integer, fraction]
            .concat()
            .bytes()
            .all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let integer = integer.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    if integer.len() > 36 || fraction.len() > 36 {
        return None;
    }
    let value: BigInt = format!("0{integer}{fraction:0<36}").parse().unwrap();
    Some(if text.starts_with('-') { -value } else { value })
}

fn oracle(bytes: &[u8], delimiter: u8, terminator: u8) -> Answer {
    let mut answer = Answer::default();
    let mut at = if bytes.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = rest
            .iter()
            .position(|&b| b == terminator)
            .unwrap_or(rest.len());
        let mut record = &rest[..length];
        if terminator == b'\n' {
            record = record.strip_suffix(b"\r").unwrap_or(record);
        }
        let fields: Vec<&[u8]> = record.split(|&b| b == delimiter).collect();
        let number = if fields.len() == 2 {
            oracle_number(fields[1])
        } else {
            None
        };
        match number {
            _ if record.is_empty() => answer.empty += 1,
            None => answer.bad.push((at, at + record.len())),
            Some(value) => {
                answer.rows += 1;
                let (count, sum, min, max) = answer
                    .keys
                    .entry(fields[0].to_vec())
                    .or_insert_with(|| (0, BigInt::ZERO, value.clone(), value.clone()));
                *count += 1;
                *sum += &value;
                *min = value.clone().min(min.clone());
                *max = value.max(max.clone());
            }
        }
        at += length + 1;
    }
    answer
}

/// `floor(x * 10^(decimals - 36) / n + 1/2)`.
fn oracle_round(sum: &BigInt, n: u64, decimals: u32) -> BigInt {
    let unit = BigInt::from(10).pow(36);
    let above = sum * BigInt::from(10).pow(decimals) * 2 + &unit * n;
    let below = unit * n * 2;
    let (mut quotient, product) = (&above / &below, BigInt::ZERO);
    if above < product && &quotient * &below != above {
        quotient -= 1;
    }
    quotient
}

fn text_of(units: &BigInt, decimals: u32) -> String {
    let digits = format!("{:0>1$}", units.magnitude(), decimals as usize + 1);
    let (integer, fraction) = digits.split_at(digits.len() - decimals as usize);
    let sign = if units < &BigInt::ZERO { "-" } else { "" };
    if decimals == 0 {
        format!("{sign}{integer}")
    } else {
        format!("{sign}{integer}.{fraction}")
    }
}

fn check_summary(summary: &Summary, expected: &Answer) {
    assert_eq!(summary.rows, expected.rows);
    assert_eq!(summary.empty_lines, expected.empty);
    assert_eq!(summary.skipped, expected.bad.len() as u64);
    assert_eq!(summary.len(), expected.keys.len());
    assert_eq!(summary.is_empty(), expected.keys.is_empty());
    assert_eq!(summary.entries().count(), expected.keys.len());
    for (entry, (key, (count, sum, min, max))) in summary.entries().zip(&expected.keys) {
        assert_eq!(entry.key(), key);
        assert_eq!(entry.count(), *count);
        // Miri takes a thousand times as long.
        let decimals: &[u32] = if cfg!(miri) { &[1] } else { &[0, 1, 2, 6, 36] };
        for &decimals in decimals {
            let text = |n, x| text_of(&oracle_round(x, n, decimals), decimals);
            assert_eq!(entry.mean(decimals).to_string(), text(*count, sum));
            assert_eq!(entry.sum().round(decimals).to_string(), text(1, sum));
            assert_eq!(entry.min().round(decimals).to_string(), text(1, min));
            assert_eq!(entry.max().round(decimals).to_string(), text(1, max));
        }
    }
}

/// Every level, whole and in blocks cut after records, merged in both orders.
fn check(bytes: &[u8], delimiter: u8, terminator: u8) {
    let expected = oracle(bytes, delimiter, terminator);
    for level in Level::available() {
        let job = Aggregate::new()
            .delimiter(delimiter)
            .terminator(terminator)
            .level(level);
        for fill in [0, delimiter, terminator, b'\r', b'7'] {
            let buffer = PaddedBuf::with_fill(bytes, fill);
            let skip = job.clone().on_error(OnError::Skip);
            let mut partial = skip.partial();
            skip.block(&mut partial, &buffer.block(0, 0, 0)).unwrap();
            let summary = skip.finish(partial);
            check_summary(&summary, &expected);

            let mut partial = job.partial();
            let result = job.block(&mut partial, &buffer.block(0, 0, 0));
            match (result, expected.bad.first()) {
                (Ok(()), None) => {}
                (Err(BlockError::Malformed(Malformed { start, end, .. })), Some(&first)) => {
                    assert_eq!((start, end), first)
                }
                (result, first) => panic!("{level:?}: {result:?} where {first:?} is expected"),
            }
        }
        for pieces in [2, 3, 7] {
            let mut skip = job.clone().on_error(OnError::Skip);
            if pieces == 7 {
                // A run of its own for each block.
                skip = skip.memory(0);
            }
            let mut partials = [skip.partial(), skip.partial()];
            let (mut at, mut turn) = (0, 0);
            while at < bytes.len() {
                let goal = (at + bytes.len() / pieces).min(bytes.len() - 1);
                let end = bytes[goal..]
                    .iter()
                    .position(|&b| b == terminator)
                    .map_or(bytes.len(), |more| goal + more + 1);
                let buffer = PaddedBuf::from(&bytes[at..end]);
                skip.block(&mut partials[turn], &buffer.block(0, at as u64, 0))
                    .unwrap();
                at = end;
                turn = 1 - turn;
            }
            let [mut into, mut from] = partials;
            if pieces == 3 {
                std::mem::swap(&mut into, &mut from);
            }
            skip.merge(&mut into, from);
            let summary = skip.finish(into);
            check_summary(&summary, &expected);
            assert_eq!(
                summary.spilled_bytes > 0,
                pieces == 7 && !expected.keys.is_empty()
            );
        }
    }
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        20 => "-?[0-9]{1,2}\\.[0-9]",
        2 => "-?[0-9]{1,4}",
        2 => "-?[0-9]{1,3}\\.[0-9]{1,8}",
        1 => "-?[0-9]{1,40}(\\.[0-9]{1,40})?",
        1 => "0{0,40}[0-9]{1,30}\\.[0-9]{1,20}0{0,40}",
        1 => "[-+.0-9e ]{0,6}",
        1 => Just("-0.0".to_string()),
    ]
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => "[a-d]{0,3}".prop_map(String::into_bytes),
        3 => "https://[a-b]{20,30}".prop_map(String::into_bytes),
        2 => "https://[a-b]{50,125}".prop_map(String::into_bytes),
        1 => (0..300_usize, "[ab]?").prop_map(|(n, end)| ["x".repeat(n), end].concat().into_bytes()),
        2 => prop::collection::vec(any::<u8>(), 0..70),
        1 => prop::collection::vec(prop_oneof![Just(0_u8), Just(b'a'), Just(b'\r')], 0..40),
        1 => "\\PC{0,30}".prop_map(String::into_bytes),
    ]
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        60 => (key(), number(), prop_oneof![9 => Just("\n"), 1 => Just("\r\n")])
            .prop_map(|(key, number, end)| [&key[..], b";", number.as_bytes(), end.as_bytes()].concat()),
        1 => Just(b"\n".to_vec()),
        1 => Just(b"\r\n".to_vec()),
        1 => key().prop_map(|key| [&key[..], b"\n"].concat()),
        1 => (key(), number(), number()).prop_map(|(key, a, b)| {
            [&key[..], b";", a.as_bytes(), b";", b.as_bytes(), b"\n"].concat()
        }),
    ]
}

fn clean_line() -> impl Strategy<Value = Vec<u8>> {
    (key(), "-?[0-9]{1,2}\\.[0-9]").prop_map(|(mut key, number)| {
        key.retain(|b| !b";\n".contains(b));
        [&key[..], b";", number.as_bytes(), b"\n"].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(debug_assertions) { 16 } else { 64 }, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "too much for an interpreter")]
    fn nasty_lines(lines in prop::collection::vec(line(), 0..300), cut in any::<bool>()) {
        let mut bytes = lines.concat();
        if cut { bytes.pop(); }
        check(&bytes, b';', b'\n');
    }

    #[test]
    #[cfg_attr(miri, ignore = "too much for an interpreter")]
    fn clean_lines(lines in prop::collection::vec(clean_line(), 0..400)) {
        check(&lines.concat(), b';', b'\n');
    }

    #[test]
    #[cfg_attr(miri, ignore = "too much for an interpreter")]
    fn soup(bytes in prop::collection::vec(
        prop::sample::select(b";;;\n\n\r.-0123456789ab\0\xff".to_vec()), 0..300)) {
        check(&bytes, b';', b'\n');
        check(&bytes, b'\0', b'\n');
        check(&bytes, b'.', b'a');
        check(&bytes, b'-', b'\0');
        check(&bytes, b'\r', b'\n');
        check(&bytes, b'1', b'0');
    }
}

#[test]
#[cfg_attr(miri, ignore = "too much for an interpreter")]
fn nasty_by_hand() {
    for text in [
        "",
        "\n",
        "\r\n",
        "\r",
        ";",
        ";\n",
        "a",
        "a\n",
        "a;",
        "a;\n",
        "a;1",
        "a;1.0",
        "a;-",
        "a;-\n",
        "a;1.0\r",
        "a;1.0\r\n",
        "a;\r\n",
        "a\r;1.0\n",
        ";1.0\n",
        "a;1.0;\n",
        "a;;1.0\n",
        ";;\n",
        "a;1.0\n\nb;2.0\n",
        "\u{feff}a;1.0\n",
        "\u{feff}",
        "\u{feff}\n",
        "a;\u{feff}1.0\n",
        "a;+1.0\n",
        "a;.5\n",
        "a;5.\n",
        "a;1e3\n",
        "a; 1.0\n",
        "a;1.0 \n",
        "a;--1.0\n",
        "a;1-.0\n",
        "a;-0.0\n",
        "a;99.9\na;-99.9\n",
        "a;100.0\n",
        "a;-100.0\n",
        "a;0000001.0\n",
        "a;1:0\n",
        "a;1/.0\n",
        "a;:1.0\n",
        "a;1.:\n",
        "a;1./\n",
        "a;12345678\n",
        "a;1.0\r\r\n",
        "a;-1\n",
        "a;123456789012345678901234567890123456.123456789012345678901234567890123456\na;1.0\n",
        "a;1234567890123456789012345678901234567\n",
        "a;0.1234567890123456789012345678901234567\n",
        "a;00000000000000000000000000000000000000000000001\n",
        "a;0.10000000000000000000000000000000000000000\n",
        "a;999999999999.999999\na;-999999999999.999999\na;1000000000000\n",
        "a\0;1.0\na;2.0\na\0\0;3.0\n\0;1.0\n;5.0\n",
        "a;1.5\na;-1.5\nb;0.05\nb;-0.05\nc;-0.04\n",
    ] {
        check(text.as_bytes(), b';', b'\n');
    }
    for length in 0..300 {
        let key = "k".repeat(length);
        let text = format!("{key};1.0\n{key}x;2.5\n{key};-3.0\n{key};12.25\n");
        check(text.as_bytes(), b';', b'\n');
    }
    for length in [4000, 4090, 4095, 4096, 4097, 8192, 70_000, 1 << 20] {
        let key = "k".repeat(length);
        check(
            format!("a;1.0\n{key};1.0\nb;1.0\n{key};2\n\n{key}").as_bytes(),
            b';',
            b'\n',
        );
    }
    // More rows of long and wide keys in a window than a batch takes.
    for width in [33, 70] {
        let rows = (0..500).map(|number| format!("{number:0width$};1.0\n"));
        check(rows.collect::<String>().as_bytes(), b';', b'\n');
    }
    check(";\n".repeat(5000).as_bytes(), b';', b'\n');
    check(";;\n".repeat(5000).as_bytes(), b';', b'\n');
    check("\n".repeat(9000).as_bytes(), b';', b'\n');
    check(";".repeat(9000).as_bytes(), b';', b'\n');
    check(";0.0\n".repeat(9000).as_bytes(), b';', b'\n');
    // An empty key that NUL ends is all zeros, as an empty bucket is.
    check(b"\x006.2\n", 0, b'\n');
    check(&b"\x006.2\na\x001.0\n".repeat(5000), 0, b'\n');
}

/// More keys than the direct tables hold, with numbers in tenths and with others.
#[test]
#[cfg_attr(miri, ignore = "too much for an interpreter")]
fn many_keys() {
    for more_decimals in ["", "07"] {
        check_many_keys(more_decimals);
    }
}

fn check_many_keys(more_decimals: &str) {
    let mut text = String::new();
    for round in 0..2 {
        for key in 0..100_000 {
            // Of every class more than its direct table holds; the longest of a class and one byte more.
            let width = [1, 15, 16][key % 3];
            let (degrees, tenths) = (key % 100, (key + round) % 10);
            text += &format!("{key:0width$x};{degrees}.{tenths}{more_decimals}\n");
            let width = [55, 88, 87, 119][key % 4];
            text += &format!("https://{key:0width$};-{}.5{more_decimals}\n", key % 7);
        }
    }
    // A few of each once more, for another partial.
    let few = text.lines().take(20).map(|line| format!("{line}\n"));
    let few: String = few.collect();
    let expected = oracle((text.clone() + &few).as_bytes(), b';', b'\n');
    for level in Level::available() {
        let job = Aggregate::new().level(level);
        let mut partials = [&text, &few].map(|text| {
            let buffer = PaddedBuf::from(text.as_bytes());
            let mut partial = job.partial();
            job.block(&mut partial, &buffer.block(0, 0, 0)).unwrap();
            partial
        });
        if level == Level::Portable {
            partials.reverse();
        }
        let [mut into, from] = partials;
        job.merge(&mut into, from);
        let summary = job.finish(into);
        assert_eq!(summary.len(), expected.keys.len());
        for (entry, (key, (count, sum, min, max))) in summary.entries().zip(&expected.keys) {
            assert_eq!((entry.key(), entry.count()), (&key[..], *count));
            let text = |n, x| text_of(&oracle_round(x, n, 3), 3);
            assert_eq!(entry.mean(3).to_string(), text(*count, sum));
            assert_eq!(entry.min().round(3).to_string(), text(1, min));
            assert_eq!(entry.max().round(3).to_string(), text(1, max));
        }
    }
}

fn report(text: &str, format: Format) -> String {
    let job = Aggregate::new().memory(1 << 40);
    let mut partial = job.partial();
    job.block(
        &mut partial,
        &PaddedBuf::from(text.as_bytes()).block(0, 0, 0),
    )
    .unwrap();
    let mut out = Vec::new();
    report::write(&job.finish(partial), format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn styles() {
    let text = "b;28.9\nb;33.4\na;-2.5\na;-2.4\nAbha;-23.0\nAbha;59.2\nAbha;17.8\n";
    assert_eq!(
        report(text, Format::OneBrc),
        "{Abha=-23.0/18.0/59.2, a=-2.5/-2.4/-2.4, b=28.9/31.2/33.4}\n"
    );
    assert_eq!(
        report(text, Format::Hovinen),
        "{\n    Abha=-23.0/18.0/59.2,\n    a=-2.5/-2.5/-2.4,\n    b=28.9/31.1/33.4\n}"
    );
    assert_eq!(
        report(text, Format::Lines),
        "City | Abha | -23.00 | 18.00 | 59.20\nCity | a | -2.50 | -2.45 | -2.40\nCity | b | 28.90 | 31.15 | 33.40\n"
    );
    assert_eq!(report("", Format::OneBrc), "{}\n");
    assert_eq!(
        report("k;1.0\nk;1.1\nk;1.0\n", Format::OneBrc),
        "{k=1.0/1.0/1.1}\n"
    );
    assert_eq!(
        report("k;-0.1\nk;0.0\n", Format::OneBrc),
        "{k=-0.1/0.0/0.0}\n"
    );
    let six = "k;0.5\nk;0.5\nk;0.5\nk;0.6\nk;0.6\nk;0.6\n";
    assert_eq!(report(six, Format::OneBrc), "{k=0.5/0.6/0.6}\n");
}

/// Small enough for Miri: each kind of key and number, an unbalanced window, each fault, and a merge.
#[test]
fn every_way_at_once() {
    let mut text = String::from("\u{feff}");
    for length in [0, 1, 7, 15, 16, 30, 31, 32, 63, 64, 127, 128, 200] {
        let key = "k".repeat(length);
        text += &format!("{key};1.0\n{key};-12.3\r\n{key};7\n{key};0.25\n");
        text += &format!("{key}\n{key};1;2\n\n{key};x\n{key};123456789012345678901.5\n");
        text += &format!("{key};-98765432109876543210.0625\n");
    }
    text += "last;99.9";
    let expected = oracle(text.as_bytes(), b';', b'\n');
    let half = text.len() / 2 + text[text.len() / 2..].find('\n').unwrap() + 1;
    for level in Level::available() {
        // Named memory, so that Miri need not look into /proc for what is free.
        let job = Aggregate::new().memory(1 << 40).level(level);
        let job = job.on_error(OnError::Skip);
        let [mut into, from] = [(0, half), (half, text.len())].map(|(from, to)| {
            let mut partial = job.partial();
            let buffer = PaddedBuf::from(&text.as_bytes()[from..to]);
            job.block(&mut partial, &buffer.block(0, from as u64, 0))
                .unwrap();
            partial
        });
        job.merge(&mut into, from);
        check_summary(&job.finish(into), &expected);
    }
}

/// A record for each key, of every class; its value depends on its key.
fn text_of_keys(keys: std::ops::Range<usize>) -> String {
    let mut text = String::new();
    for key in keys {
        let name = match key % 5 {
            0 => format!("{key}"),
            1 => format!("a-middle-key-{key:08}"),
            2 => format!("a-long-key-of-a-line-{key:042}"),
            3 => format!("a-wide-key-that-takes-two-{key:0100}"),
            _ => format!("exactly-15-{key:04x}"),
        };
        text += &format!("{name};{}.5\n", key % 50);
    }
    text
}

/// Enough keys that the partials change their tables, at different times, and merge in every combination.
#[test]
#[cfg_attr(miri, ignore = "too much for an interpreter")]
fn few_and_many() {
    let ranges = [0..40_000, 30_000..75_000, 0..200_000, 150_000..160_000];
    let texts: Vec<String> = ranges.into_iter().map(text_of_keys).collect();
    for level in Level::available() {
        for [first, second] in [[0, 1], [1, 0], [0, 2], [2, 0], [2, 2], [2, 3], [3, 3]] {
            let job = Aggregate::new().level(level);
            let partial = |text: &str| {
                let mut partial = job.partial();
                job.block(
                    &mut partial,
                    &PaddedBuf::from(text.as_bytes()).block(0, 0, 0),
                )
                .unwrap();
                partial
            };
            let mut into = partial(&texts[first]);
            // One in memory, one spilled, in either order; and both in memory.
            if first + second == 2 {
                let small = job.clone().memory(0);
                let text = &PaddedBuf::from(texts[second].as_bytes());
                let mut spilled = small.partial();
                small.block(&mut spilled, &text.block(0, 0, 0)).unwrap();
                assert!(spilled.spilled_bytes > 0);
                job.merge(&mut into, spilled);
            } else {
                job.merge(&mut into, partial(&texts[second]));
            }
            let both = [&texts[first][..], &texts[second][..]].concat();
            let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
            both.lines().for_each(|line| {
                *expected.entry(line.split_once(';').unwrap().0).or_default() += 1
            });
            let summary = job.finish(into);
            assert_eq!(summary.len(), expected.len());
            assert!(
                summary
                    .entries()
                    .map(|e| (e.key().to_vec(), e.count()))
                    .eq(expected
                        .iter()
                        .map(|(key, count)| (key.as_bytes().to_vec(), *count)))
            );
        }
    }
}

/// Partials that exceed the budget together share their keys while others work on, and no row that is
/// buffered at the end is lost.
#[test]
#[cfg_attr(miri, ignore = "too much for an interpreter")]
fn shared_keys() {
    let texts = [0..200_000, 100_000..250_000].map(text_of_keys);
    let blocks = texts
        .each_ref()
        .map(|text| PaddedBuf::from(text.as_bytes()));
    let feed = |job: &Aggregate, partials: &mut [Partial], block: usize| {
        std::thread::scope(|scope| {
            for partial in partials {
                let block = blocks[block].block(0, 0, 0);
                scope.spawn(move || job.block(partial, &block).unwrap());
            }
        });
    };
    let mut alone = [Aggregate::new().partial()];
    feed(&Aggregate::new(), &mut alone, 0);
    let one = alone[0].bytes();
    // A partial that got all of its rows before the others began keeps its tables.
    for (level, memory, early) in [
        (Level::Portable, 2 * one, 0),
        (Level::detect(), 2 * one, 1),
        (Level::Portable, one / 2, 0),
        (Level::detect(), one / 2, 1),
        (Level::detect(), 0, 0),
    ] {
        for kept in [0, 1000] {
            let job = Aggregate::new().level(level).memory(memory);
            let job = job.sharing(kept, 3);
            let make = job.partials();
            let mut partials = [(); 3].map(|()| make());
            let (first, rest) = partials.split_at_mut(early);
            feed(&job, first, 0);
            feed(&job, rest, 0);
            feed(&job, rest, 1);
            let shares = |partial: &Partial| partial.tables.shares();
            assert!(rest.iter().all(shares));
            assert_eq!(first.iter().any(shares), early == 1 && memory < one);
            let spilled = partials.iter().map(|partial| partial.spilled_bytes);
            assert_eq!(spilled.sum::<u64>() > 0, memory < one);
            let summary = partials.into_iter().reduce(|mut into, from| {
                job.merge(&mut into, from);
                into
            });
            let summary = job.finish(summary.expect("three"));
            let private = u64::from(early == 1 && memory >= one);
            assert_eq!(summary.key_sharers, 3 - private);

            let mut expected: BTreeMap<&[u8], (u64, &str)> = BTreeMap::new();
            for (text, times) in texts.iter().zip([3, 3 - early as u64]) {
                for line in text.lines() {
                    let (key, value) = line.split_once(';').unwrap();
                    expected.entry(key.as_bytes()).or_insert((0, value)).0 += times;
                }
            }
            assert_eq!(
                summary.rows,
                expected.values().map(|(rows, _)| rows).sum::<u64>()
            );
            assert_eq!(summary.len(), expected.len());
            for (entry, (key, (rows, value))) in summary.entries().zip(expected) {
                assert_eq!((entry.key(), entry.count()), (key, rows));
                let values = [entry.min().round(1), entry.mean(1), entry.max().round(1)];
                assert!(values.iter().all(|number| number.to_string() == value));
            }
        }
    }
}

/// The text is made in parts, whatever tables the keys are in; some keys are in two.
#[test]
#[cfg_attr(miri, ignore = "too much for an interpreter")]
fn a_large_report_is_the_same_by_any_number_of_threads() {
    let mut text = String::new();
    for key in 0..30_000 {
        let key = (key * 7919) % 30_000;
        text += &match key % 7 {
            0 => format!("{key:05};{key}.5\n"),
            1 => format!("{key:05}-longer-than-half-a-line;-{key}.25\n"),
            2 => format!("{key:05}-whole;{key}\n{key:05}-whole;0.5\n"),
            3 => format!("{key:05}-{};0.1\n", "far".repeat(100)),
            _ => format!("{key:05}-{};-0.1\n", "x".repeat(key % 120)),
        };
    }
    let job = Aggregate::new().memory(1 << 40);
    let mut partial = job.partial();
    let buffer = PaddedBuf::from(text.as_bytes());
    job.block(&mut partial, &buffer.block(0, 0, 0)).unwrap();
    let summary = job.finish(partial);
    let parts = summary.parts();
    assert!(parts.len() > 30, "{}", parts.len());
    let whole = summary.entries().map(|entry| (entry.key(), entry.count()));
    let in_parts = parts.iter().flat_map(|part| {
        let entries: Vec<_> = part.entries().collect();
        assert!((1..20_000).contains(&entries.len()));
        entries
            .into_iter()
            .map(|entry| (entry.key(), entry.count()))
    });
    assert!(whole.eq(in_parts));
    assert_eq!(summary.len(), 30_000);
    for format in [Format::OneBrc, Format::Hovinen, Format::Lines] {
        let pool = |threads| {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
            builder.build().unwrap()
        };
        let written = |pool: Option<&rayon::ThreadPool>| {
            let mut out = Vec::new();
            report::write_with(&summary, format, 3, pool, &mut out).unwrap();
            out
        };
        let serial = written(None);
        for threads in [1, 2, 7] {
            assert_eq!(serial, written(Some(&pool(threads))));
        }
        // Nobody waits for ever where the writer fails, be it at once or late.
        for bytes in [0, 100_000, serial.len() - 1] {
            let mut short = vec![0; bytes];
            let pool = pool(3);
            let failed = report::write_with(&summary, format, 3, Some(&pool), &mut &mut short[..]);
            assert_eq!(failed.unwrap_err().kind(), std::io::ErrorKind::WriteZero);
            assert_eq!(short, serial[..bytes]);
        }
    }
}

/// Blocks whose padding ends where the address space does: a read past it would be fatal.
#[test]
#[cfg_attr(miri, ignore = "it protects pages")]
fn reads_stay_within_the_padding() {
    use crate::record::block::{Block, PADDING};
    const PAGE: usize = 4096;
    const INNER: usize = 32 * PAGE;
    // SAFETY: a fresh mapping, with a page at either end that can't be touched; blocks are cut from
    // its inner bytes, with PADDING on either side.
    unsafe {
        let map = libc::mmap(
            std::ptr::null_mut(),
            INNER + 2 * PAGE,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(map, libc::MAP_FAILED);
        let inner = map.cast::<u8>().add(PAGE);
        assert_eq!(
            libc::mprotect(inner.cast(), INNER, libc::PROT_READ | libc::PROT_WRITE),
            0
        );
        let row = |length: usize, value: &str| format!("{};{value}\n", "k".repeat(length));
        let mut texts = vec![
            ";\n".repeat(6000),
            "a".repeat(9000),
            ";0.0\n".into(),
            "\n".into(),
        ];
        for length in [
            0, 1, 15, 16, 30, 31, 32, 62, 63, 64, 65, 126, 127, 128, 129, 300,
        ] {
            for value in ["1.0", "-12.3", "7", "x"] {
                texts.push(row(length, value));
                texts.push(row(length, value).repeat(3) + &row(length, value).replace('\n', ""));
                texts.push((row(3, "1.0").repeat(400) + &row(length, value)).repeat(2));
            }
        }
        for text in texts {
            for at in [PADDING, INNER - PADDING - text.len()] {
                let bytes = std::slice::from_raw_parts_mut(inner.add(at), text.len());
                bytes.copy_from_slice(text.as_bytes());
                let block = Block::new(bytes, 0, 0, 0);
                for level in Level::available() {
                    let job = Aggregate::new().level(level).on_error(OnError::Skip);
                    let mut partial = job.partial();
                    job.block(&mut partial, &block).unwrap();
                    let summary = job.finish(partial);
                    let expected = oracle(text.as_bytes(), b';', b'\n');
                    assert_eq!(
                        (summary.rows, summary.len()),
                        (expected.rows, expected.keys.len())
                    );
                }
            }
        }
        libc::munmap(map, INNER + 2 * PAGE);
    }
}

/// The memory in use is reported for all classes of keys, few or many.
#[test]
#[cfg_attr(miri, ignore = "too much for an interpreter")]
fn tables_report_their_memory() {
    let job = Aggregate::new().memory(1 << 40);
    let taken = |widths: &[usize], keys: usize| {
        let rows = widths.iter().flat_map(|&width| {
            let row = move |number| format!("{number:0width$};1.0\n");
            (0..keys).map(row)
        });
        let text = PaddedBuf::from(rows.collect::<String>().as_bytes());
        let mut partial = job.partial();
        job.block(&mut partial, &text.block(0, 0, 0)).unwrap();
        partial.tables.bytes()
    };
    // While keys are few, each takes a page.
    assert_eq!(taken(&[8, 70, 100], 1), 3 * 4096);
    // The tables of numbers in millionths are counted too.
    let text = ["a", &"b".repeat(70), &"c".repeat(100)].map(|key| format!("{key};1\n"));
    let mut partial = job.partial();
    let text = PaddedBuf::from(text.concat().as_bytes());
    job.block(&mut partial, &text.block(0, 0, 0)).unwrap();
    assert_eq!((partial.tables.bytes(), partial.bytes()), (0, 3 * 4096));
    // Slots of a new table, and after growth.
    let (least, slots) = (8 << 13, 8 << 18);
    assert_eq!(taken(&[40], 40_000), slots + least + 40_000 * 96);
    assert_eq!(taken(&[70], 40_000), slots + least + 40_000 * 128);
    assert_eq!(taken(&[100], 40_000), slots + 40_000 * 160);
}

/// A directory that can't be used ends the run with an error that says what to do. Nothing is left in a
/// directory that was used.
#[test]
fn spilling() {
    let directory = tempfile::tempdir().unwrap();
    let buffer = PaddedBuf::from(&b"a;1.0\nb;2.0\n"[..]);
    let nowhere = directory.path().join("nowhere");
    let job = Aggregate::new().memory(0).spill_directory(&nowhere);
    let refused = job.block(&mut job.partial(), &buffer.block(0, 0, 0));
    let Err(BlockError::Sink(error)) = refused else {
        panic!("{refused:?}");
    };
    let cause = error.to_string();
    assert!(
        cause.ends_with("nowhere: No such file or directory [ENOENT]"),
        "{cause}"
    );

    let job = Aggregate::new().memory(0).spill_directory(directory.path());
    let mut partial = job.partial();
    for _ in 0..3 {
        job.block(&mut partial, &buffer.block(0, 0, 0)).unwrap();
    }
    // The spilled bytes of both add up.
    let mut other = job.partial();
    job.block(&mut other, &buffer.block(0, 0, 0)).unwrap();
    let (bytes, more) = (partial.spilled_bytes, other.spilled_bytes);
    let slot = 64;
    assert_eq!((bytes, more), (3 * 2 * slot, 2 * slot));
    job.merge(&mut partial, other);
    let summary = job.finish(partial);
    assert_eq!(summary.spilled_bytes, bytes + more);
    assert_eq!((summary.rows, summary.len()), (8, 2));
    assert!(summary.entries().all(|entry| entry.count() == 4));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
