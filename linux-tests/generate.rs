//! `generate`: the same bytes for the same seed, as many as were asked for, keys all distinct.

use std::collections::HashSet;

use crate::reference;
use crate::support::{dir, end, names, ringfold, str};

fn generated(flags: &[&str]) -> Vec<u8> {
    let ended = end(ringfold(["generate", "-q", "-o", "-"]).args(flags));
    ended.answer()
}

#[test]
fn a_seed_decides_whatever_the_threads() {
    for keys in [&[][..], &["--keys", "1000"]] {
        let run = |seed: &str, threads: &str| {
            generated(&[&["--rows", "80_000", "--seed", seed, "-j", threads], keys].concat())
        };
        let first = run("5", "1");
        assert_eq!(first.iter().filter(|&&b| b == b'\n').count(), 80_000);
        for threads in ["2", "3", "8"] {
            assert!(run("5", threads) == first, "{threads} threads");
        }
        assert!(run("6", "2") != first);
        // Fewer rows are the beginning of more.
        let fewer = generated(&[&["--rows", "1000", "--seed", "5"], keys].concat());
        assert!(first.starts_with(&fewer));
    }
}

#[test]
fn rows_keep_the_rules_of_the_challenge() {
    for (flags, keys) in [
        (&[][..], 413),
        (&["--keys", "500"], 500),
        (&["--keys", "1"], 1),
    ] {
        let text = generated(&[&["--rows", "20000"], flags].concat());
        let mut seen = HashSet::new();
        assert!(text.ends_with(b"\n"));
        for row in text.split(|&b| b == b'\n').filter(|row| !row.is_empty()) {
            let row = std::str::from_utf8(row).unwrap();
            let (key, value) = row.split_once(';').unwrap();
            assert!((1..=100).contains(&key.len()), "{row}");
            let digits = value.strip_prefix('-').unwrap_or(value);
            let (whole, tenth) = digits.split_once('.').unwrap();
            assert!((1..=2).contains(&whole.len()) && tenth.len() == 1, "{row}");
            assert!(whole == "0" || !whole.starts_with('0'), "{row}");
            assert_ne!(value, "-0.0");
            assert!(value.parse::<f64>().unwrap().abs() <= 99.9);
            seen.insert(key.to_string());
        }
        assert_eq!(seen.len(), keys, "all keys appear in 20,000 rows");
        let answer = reference::aggregate(&[&text], b';', 1 << 20);
        assert_eq!(
            (answer.rows, answer.keys(), answer.lowest()),
            (20_000, keys, None)
        );
    }
}

#[test]
fn ten_thousand_keys_are_distinct() {
    let text = generated(&["--rows", "150000", "--keys", "10000"]);
    let keys: HashSet<&[u8]> = text
        .split(|&b| b == b'\n')
        .filter_map(|row| row.split(|&b| b == b';').next())
        .filter(|key| !key.is_empty())
        .collect();
    // Each is left out with a chance of 3 in 10 million.
    assert_eq!(keys.len(), 10_000);
}

#[test]
fn as_many_rows_as_fit_into_so_many_bytes() {
    let all = generated(&["--rows", "100000", "--seed", "9"]);
    for bytes in [0, 1, 5, 6, 20, 99, 1 << 10, 100_000, 1 << 20] {
        for threads in ["1", "2"] {
            let flags = ["--bytes", &bytes.to_string(), "--seed", "9", "-j", threads];
            let text = generated(&flags);
            assert!(text.len() <= bytes, "{bytes}");
            assert!(all.starts_with(&text));
            assert!(text.is_empty() || text.ends_with(b"\n"));
            let next = all[text.len()..].iter().position(|&b| b == b'\n').unwrap() + 1;
            assert!(text.len() + next > bytes, "one more row fits into {bytes}");
        }
    }
    // Of rows and bytes the tighter one counts.
    assert!(generated(&["--rows", "3", "--bytes", "1M", "--seed", "9"]).len() < 400);
    assert!(generated(&["--rows", "1e9", "--bytes", "1K", "--seed", "9"]).len() <= 1024);
}

#[test]
fn a_file_and_what_is_said_of_it() {
    let dir = dir();
    let path = dir.path().join("rows");
    let flags = ["generate", "--rows", "1k", "-o", str(&path)];
    let (out, said) = end(&mut ringfold(flags)).answer_and_notices();
    assert!(out.is_empty());
    let text = std::fs::read(&path).unwrap();
    assert!(text == generated(&["--rows", "1000"]));
    let bytes = text.len().to_string();
    let (thousands, rest) = bytes.split_at(bytes.len() - 3);
    let want = format!(
        "ringfold: 1,000 rows, {thousands},{rest} bytes in {}\n",
        str(&path)
    );
    assert_eq!(said, want);
    assert_eq!(names(dir.path()), ["rows"]);
    // Over an old file.
    end(&mut ringfold([
        "generate",
        "-q",
        "--rows",
        "3",
        "-o",
        str(&path),
    ]))
    .answer();
    assert!(text.starts_with(&std::fs::read(&path).unwrap()));
    assert_eq!(
        end(&mut ringfold(["generate", "-q", "--rows", "0", "-o", "-"])).answer(),
        b""
    );
}
