//! Another process writes to a file while it is read: each answer is made of some version of each record, or it is one
//! clear error. Nothing else comes out, and nothing panics.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::support::{Ended, WAYS, dir, end, ringfold, str, write};
use crate::sys::Mapped;

const RECORDS: usize = 6_000;

/// Runs the program in every way while a byte of each record flips between two values.
fn while_flipping(
    record: &[u8],
    at: usize,
    to: u8,
    args: &[&str],
    check: impl Fn(Ended, &str) + Sync,
) {
    let dir = dir();
    let path = write(dir.path(), "file", &record.repeat(RECORDS));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let pages = Mapped::writable(&file, record.len() * RECORDS);
    let done = AtomicBool::new(false);
    let flip = |from: usize| {
        for byte in [to, record[at]].into_iter().cycle() {
            if done.load(Relaxed) {
                break;
            }
            (from..RECORDS)
                .step_by(2)
                .for_each(|place| pages.set(place * record.len() + at, byte));
        }
    };
    std::thread::scope(|scope| {
        for from in 0..2 {
            let flip = &flip;
            scope.spawn(move || flip(from));
        }
        let _ending = Ending(&done);
        for way in WAYS.iter() {
            for block in [&["-b", "4096"][..], &[]] {
                let what = format!("{args:?} {way:?} {block:?}");
                check(run(args, &way.flags(), block, &path), &what);
            }
        }
    });
}

/// Ends the writers, also where a check fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn run(args: &[&str], way: &[&str], block: &[&str], path: &Path) -> Ended {
    end(ringfold(args)
        .args(way)
        .args(block)
        .arg("-q")
        .arg(str(path)))
}

/// The answer, or nothing after one clear error.
#[track_caller]
fn answer(ended: Ended, what: &str) -> Option<String> {
    if ended.code == Some(0) {
        return Some(String::from_utf8(ended.stdout).unwrap());
    }
    let error = ended.failure(1);
    assert!(
        !error.contains("panicked") && !error.contains("worker"),
        "{what}: {error}"
    );
    None
}

/// What is printed is read by a shell: a quote that was missed would end the word.
#[test]
fn words_for_a_shell_are_those_of_some_version() {
    for (record, at, to) in [(&b"ab'cdef\n"[..], 2, b'x'), (b"a'b\tc'd\n", 3, b'x')] {
        let dir = dir();
        let mut other = record.to_vec();
        other[at] = to;
        let words = [record, &other].map(|text| {
            let path = write(dir.path(), "one", text);
            String::from_utf8(run(&["quote"], &[], &[], &path).answer()).unwrap()
        });
        while_flipping(record, at, to, &["quote"], |ended, what| {
            let text = answer(ended, what).expect("any bytes can be quoted");
            assert_eq!(text.lines().count(), RECORDS, "{what}");
            for line in text.lines() {
                let is_one = words.iter().any(|word| word.trim_end() == line);
                assert!(is_one, "{what}: {line}");
            }
        });
    }
}

#[test]
fn groups_are_those_of_some_version() {
    let count = |text: &str| -> usize {
        let rows = text.lines().skip(1);
        rows.map(|row| row.rsplit(',').next().unwrap().parse::<usize>().unwrap())
            .sum()
    };
    for (record, at, args) in [
        (
            &b"a;1.5\n"[..],
            0,
            &["aggregate", "-d;", "-k1", "-acount"][..],
        ),
        (b"a;1.5\n", 2, &["aggregate", "-d;", "-k2", "-acount"]),
        (
            b"\"a,b\",1\n",
            2,
            &["aggregate", "-d,", "--quote=\"", "-k1", "-acount"],
        ),
    ] {
        let to = if record[at].is_ascii_digit() {
            b'7'
        } else {
            b'x'
        };
        while_flipping(record, at, to, args, |ended, what| {
            let text =
                answer(ended, what).unwrap_or_else(|| panic!("{what}: both versions are sound"));
            assert_eq!(count(&text), RECORDS, "{what}: {text}");
            assert!(text.lines().count() <= 3, "{what}: {text}");
        });
    }
    while_flipping(b"a;1.5\n", 2, b'7', &["aggregate"], |ended, what| {
        let text = answer(ended, what).expect("both versions are sound");
        let inner = text
            .trim()
            .strip_prefix("{a=")
            .unwrap()
            .strip_suffix('}')
            .unwrap();
        let numbers: Vec<f64> = inner
            .split('/')
            .map(|number| number.parse().unwrap())
            .collect();
        let is_between = |number: &f64| (1.5..=7.5).contains(number);
        assert!(
            numbers.len() == 3 && numbers.iter().all(is_between),
            "{what}: {text}"
        );
    });
}

/// What divides records and fields changes: any cut may come out, but the run ends in order.
#[test]
fn whatever_changes_a_run_ends_in_order() {
    for (record, at, to, args) in [
        (&b"ab;1.5\n"[..], 6, b'0', &["aggregate"][..]),
        (b"ab;1.5\n", 2, b'0', &["aggregate"]),
        (b"ab;1.5\n", 4, b'x', &["aggregate", "--on-error=skip"]),
        (b"a,1.5\n", 5, b'0', &["aggregate", "-d,", "-k1", "-asum:2"]),
        (
            b"\"a\",1\n",
            2,
            b'x',
            &["aggregate", "-d,", "--quote=\"", "-k1", "-asum:2"],
        ),
        (
            b"\"a\",1\n",
            0,
            b'x',
            &[
                "aggregate",
                "-d,",
                "--quote=\"",
                "-k1",
                "-acount",
                "--on-error=skip",
            ],
        ),
        (
            b"{\"a\":1,\"b\":2}\n",
            1,
            b'x',
            &["aggregate", "--jsonl", "-ka", "-asum:b"],
        ),
        (b"ab\n", 2, b'x', &["quote"]),
        (b"ab\n", 2, b'x', &["count"]),
    ] {
        while_flipping(record, at, to, args, |ended, what| {
            answer(ended, what);
        });
    }
}
