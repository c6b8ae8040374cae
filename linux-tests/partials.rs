//! Partials: what is merged is what one run gives, what isn't whole is refused, and a state is never half.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use ringfold::query::{Partial, Query, SavedGroup, Shown};
use ringfold::{Config, Input};

use crate::catalogue::drawn;
use crate::probe::skip;
use crate::query::{NUMERIC, OF_BYTES};
use crate::support::{csv, dir, end, names, ringfold, start, str, write};

/// Two keys and every aggregate.
pub fn everything(is_exact: bool) -> Query {
    let mut query = Query::new(b',')
        .header(true)
        .approximate(!is_exact)
        .quote(None)
        .key("one")
        .key("two")
        .float(false);
    for name in NUMERIC.into_iter().chain(["median", "p99.9"]) {
        query = query.aggregate(name, Some("number".into())).unwrap();
    }
    for name in OF_BYTES.into_iter().chain(["distinct", "mode"]) {
        query = query.aggregate(name, Some("text".into())).unwrap();
    }
    query
}

/// The answer and the partial of an input.
fn run(query: &Query, input: &Input) -> (String, Vec<u8>) {
    let (partial, answer, _) = query.partial(input, &Config::default()).unwrap();
    partial.check().unwrap();
    (csv(&answer), partial.to_bytes().unwrap().into_owned())
}

fn read(bytes: Vec<u8>) -> Partial {
    Partial::read("a.part", bytes).unwrap()
}

fn merged(partials: &[Vec<u8>]) -> (String, Vec<u8>) {
    let partials: Vec<Partial> = partials.iter().cloned().map(read).collect();
    let merged = Partial::merge(&partials).unwrap();
    let mut saved = Vec::new();
    merged.save(&mut saved).unwrap();
    (csv(&merged.answer(&Shown::default()).unwrap()), saved)
}

pub fn records() -> impl Strategy<Value = Vec<String>> {
    let number = prop_oneof![
        6 => "-?[0-9]{1,4}(\\.[0-9]{0,2})?",
        1 => "-?[0-9]{15,38}",
        1 => "-?0?\\.[0-9]{20,38}",
        1 => Just(String::new()),
    ];
    let text = prop_oneof![4 => "[a-c]{0,2}", 1 => "[a-z]{0,60}"];
    let record = ("[ab]{0,2}", "[\\x00-\\x02a]{0,2}", number, text)
        .prop_map(|(one, two, number, text)| format!("{one},{two},{number},{text}"));
    prop::collection::vec(record, 0..60)
}

/// Random files, cut in random parts, merged in any order and grouping, give the answer of one run, and its partial to the
/// byte.
#[test]
fn merged_is_computed_at_once() {
    let strategy = (
        prop::collection::vec(records(), 1..4),
        1..9_u32,
        prop::collection::vec(any::<u32>(), 24),
        any::<bool>(),
    );
    let cases = Cases {
        cases: drawn(25, 80),
        failure_persistence: None,
        ..Cases::default()
    };
    let done = TestRunner::new(cases).run(&strategy, |(files, parts, random, is_exact)| {
        let dir = dir();
        let paths: Vec<PathBuf> = (0..)
            .zip(&files)
            .map(|(at, records)| {
                // Files that are the same would be taken for one.
                let name = format!("{at}.csv");
                let text = format!(
                    "one,two,number,text\n{}\nfile {at},,,\n",
                    records.join("\n")
                );
                write(dir.path(), &name, text.as_bytes())
            })
            .collect();
        let query = everything(is_exact);
        let (want, whole) = run(&query, &Input::open(&paths).unwrap());
        let mut random = random.into_iter().cycle();
        let mut pick = move |below: usize| random.next().unwrap() as usize % below;

        let mut saved: Vec<Vec<u8>> = (1..=parts)
            .map(|part| {
                let input = Input::open(&paths).unwrap().part(part, parts).unwrap();
                run(&query, &input).1
            })
            .collect();
        while saved.len() > 1 {
            let some: Vec<Vec<u8>> = (0..2 + pick(3).min(saved.len() - 2))
                .map(|_| saved.swap_remove(pick(saved.len())))
                .collect();
            saved.push(merged(&some).1);
        }
        prop_assert_eq!(&merged(&saved).0, &want);
        prop_assert!(saved[0] == whole);

        // File by file, and not in order: only the places of first and last go by that.
        let each: Vec<Vec<u8>> = paths
            .iter()
            .map(|path| run(&query, &Input::open([path]).unwrap()).1)
            .collect();
        let (got, again) = merged(&each);
        prop_assert_eq!(&got, &want);
        prop_assert!(again == whole);
        let turned: Vec<Vec<u8>> = each.iter().rev().cloned().collect();
        let turned_paths: Vec<&PathBuf> = paths.iter().rev().collect();
        let (want, _) = run(&query, &Input::open(turned_paths).unwrap());
        prop_assert_eq!(&merged(&turned).0, &want);
        Ok(())
    });
    done.unwrap();
}

/// With exponents, infinities and nan.
#[test]
fn floats_are_merged() {
    let dir = dir();
    let text =
        "k,v\na,1e300\nb,inf\na,-1e-300\nb,-inf\na,2.5\nc,nan\nd,inf\nd,3\ne,1e-320\ne,4e-320\n";
    let path = write(dir.path(), "a.csv", text.as_bytes());
    let mut query = Query::new(b',')
        .quote(None)
        .header(true)
        .float(true)
        .key("k");
    for name in [
        "count", "sum", "min", "max", "mean", "range", "var", "stddev",
    ] {
        query = query.aggregate(name, Some("v".into())).unwrap();
    }
    let (want, whole) = run(&query, &Input::open([&path]).unwrap());
    let parts = (1..=4).map(|part| {
        run(
            &query,
            &Input::open([&path]).unwrap().part(part, 4).unwrap(),
        )
        .1
    });
    let (got, saved) = merged(&parts.collect::<Vec<_>>());
    assert_eq!(got, want);
    assert!(saved == whole);
}

const ORDERS: &str = "city,price,qty\nBern,1.50,2\nOslo,20,1\nBern,2.25,\nRom,3,4\n";
const QUERY: [&str; 7] = [
    "aggregate",
    "-H",
    "-kcity",
    "-d,",
    "--quote=none",
    "-acount,sum:price",
    "-q",
];

/// Keeps a part of a file.
fn keep(dir: &Path, file: &str, range: &str, to: &str, more: &[&str]) {
    let mut command = ringfold(QUERY);
    command
        .current_dir(dir)
        .args(["--range", range, "--save-partial", to, file]);
    let out = end(command.args(more)).answer();
    assert!(out.is_empty());
}

fn merge(dir: &Path, args: &[&str]) -> crate::support::Ended {
    end(ringfold(["merge"]).args(args).current_dir(dir))
}

#[test]
fn parts_that_are_missing_or_come_twice_are_told() {
    let dir = dir();
    let dir = dir.path();
    write(dir, "a.txt", ORDERS.as_bytes());
    for part in 1..=4 {
        keep(
            dir,
            "a.txt",
            &format!("{part}/4"),
            &format!("{part}.part"),
            &[],
        );
    }
    let want = end(ringfold(QUERY).arg("a.txt").current_dir(dir)).answer();
    assert_eq!(
        merge(dir, &["4.part", "2.part", "1.part", "3.part"]).answer(),
        want
    );

    let error = merge(dir, &["1.part", "2.part", "4.part"]).failure(1);
    assert_eq!(
        error,
        "part 3 of 4 is missing: a.txt byte 28-42: --allow-gaps reports without it"
    );
    let error = merge(dir, &["1.part", "4.part"]).failure(1);
    assert!(
        error.starts_with("parts 2, 3 of 4 are missing: a.txt byte 14-42"),
        "{error}"
    );
    let (_, said) = merge(dir, &["--allow-gaps", "1.part", "4.part"]).answer_and_notices();
    assert_eq!(
        said,
        "ringfold: notice: parts 2, 3 of 4 are missing: a.txt byte 14-42\n"
    );
    let error = merge(dir, &["1.part", "2.part", "3.part", "2.part", "4.part"]).failure(1);
    assert_eq!(
        error,
        "2.part: part 2 of 4 of a.txt comes twice: 2.part has it too"
    );
    // Also below several merges, which say at once what isn't there yet.
    let (_, said) =
        merge(dir, &["--save-partial", "13.part", "1.part", "3.part"]).answer_and_notices();
    assert!(said.contains("parts 2, 4 of 4 are missing"), "{said}");
    let error = merge(dir, &["13.part", "3.part"]).failure(1);
    assert!(
        error.contains("part 3 of 4 of a.txt comes twice"),
        "{error}"
    );
    assert_eq!(merge(dir, &["13.part", "4.part", "2.part"]).answer(), want);

    // Running one part again changes nothing.
    let before = std::fs::read(dir.join("2.part")).unwrap();
    keep(dir, "a.txt", "2/4", "2.part", &[]);
    assert_eq!(std::fs::read(dir.join("2.part")).unwrap(), before);

    keep(dir, "a.txt", "2/3", "2of3.part", &[]);
    let error = merge(dir, &["1.part", "2of3.part"]).failure(1);
    assert!(error.contains(" missing"), "{error}");
    let error = merge(dir, &["2.part", "2of3.part"]).failure(1);
    assert!(
        error.contains("divided into 4 parts") && error.contains("into 3"),
        "{error}"
    );

    // Under another name it is the same file, and with other bytes another one.
    std::fs::rename(dir.join("a.txt"), dir.join("b.txt")).unwrap();
    keep(dir, "b.txt", "3/4", "3b.part", &[]);
    assert_eq!(
        merge(dir, &["4.part", "2.part", "1.part", "3b.part"]).answer(),
        want
    );
    write(dir, "a.txt", ORDERS.replace("20,1", "21,1").as_bytes());
    keep(dir, "a.txt", "3/4", "3c.part", &[]);
    let error = merge(dir, &["4.part", "2.part", "1.part", "3c.part"]).failure(1);
    assert!(
        error.contains("a.txt has changed between this part and that of"),
        "{error}"
    );
}

#[test]
fn partials_of_other_queries_are_refused_by_name() {
    let dir = dir();
    let dir = dir.path();
    write(dir, "a.csv", ORDERS.as_bytes());
    write(dir, "b.csv", ORDERS.replace("Rom", "Ulm").as_bytes());
    let save = |to: &str, file: &str, args: &[&str]| {
        let mut command = ringfold(["aggregate", "-H", "--save-partial", to, file]);
        end(command.args(args).current_dir(dir)).answer();
    };
    let query = ["-k", "city", "-a", "sum:price"];
    save("a.part", "a.csv", &query);
    save("b.part", "b.csv", &query);
    merge(dir, &["a.part", "b.part"]).answer();
    for (args, want) in [
        (
            &["-k", "qty", "-a", "sum:price"][..],
            "key is `qty` here and `city` there",
        ),
        (
            &["-k", "city", "-a", "max:price"],
            "aggregate is `max:price` here and `sum:price` there",
        ),
        (
            &["-k", "city", "-a", "sum:qty"],
            "aggregate is `sum:qty` here",
        ),
        (
            &["-k", "city", "-a", "sum:price,count"],
            "aggregate is `sum:price, count` here and `sum:price` there",
        ),
        (
            &["-k", "city"],
            "aggregate is `count` here and `sum:price` there",
        ),
        (
            &["-k", "city", "-a", "sum:price", "--where", "qty > 1"],
            "where is `qty > 1` here",
        ),
        (
            &["-k", "city", "-a", "sum:price", "--null-value", "2"],
            "null value is `2` here",
        ),
    ] {
        save("c.part", "b.csv", args);
        let error = merge(dir, &["a.part", "c.part"]).failure(1);
        assert!(
            error.starts_with("c.part: this is a partial of another query than a.part: "),
            "{error}"
        );
        assert!(error.contains(want), "{error}");
    }
    // Without a record nothing is known of it, and everything fits.
    write(dir, "empty.csv", b"");
    save("c.part", "empty.csv", &["-k", "1", "-a", "sum:2"]);
    let want = merge(dir, &["a.part", "b.part"]).answer();
    assert_eq!(merge(dir, &["c.part", "a.part", "b.part"]).answer(), want);
    let error = merge(dir, &["a.csv"]).failure(1);
    assert_eq!(error, "a.csv: this isn't a partial of ringfold");
}

#[test]
fn damage_is_one_line() {
    let dir = dir();
    let dir = dir.path();
    write(dir, "a.csv", ORDERS.as_bytes());
    keep(dir, "a.csv", "1/1", "a.part", &["--single-line"]);
    let good = std::fs::read(dir.join("a.part")).unwrap();
    for len in [0, 1, 7, 8, 39, 40, 100, good.len() - 64, good.len() - 1] {
        write(dir, "bad.part", &good[..len]);
        for command in ["merge", "inspect"] {
            let error = end(ringfold([command, "bad.part"]).current_dir(dir)).failure(1);
            assert!(error.starts_with("bad.part: "), "{error}");
        }
    }
    for at in (0..good.len()).step_by(5) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        write(dir, "bad.part", &bad);
        let error = merge(dir, &["bad.part"]).failure(1);
        assert!(error.starts_with("bad.part: "), "{error}");
    }
    let mut other = good.clone();
    other[8] = 3;
    write(dir, "bad.part", &other);
    let error = merge(dir, &["bad.part"]).failure(1);
    assert_eq!(
        error,
        "bad.part: this is a partial of version 3, and this ringfold knows versions up to 2"
    );
}

#[test]
fn answers_of_partials_are_shown_as_others() {
    let dir = dir();
    let dir = dir.path();
    write(dir, "a.csv", ORDERS.as_bytes());
    let query = ["-H", "-k", "city", "-a", "count,mean:price,first:qty"];
    end(ringfold(["aggregate", "--save-partial", "a.part", "a.csv"])
        .args(query)
        .current_dir(dir))
    .answer();
    for args in [
        &["-f", "table"][..],
        &["-f", "json", "--sort", "count:desc,city", "--top", "2"],
        &["-f", "markdown", "--precision", "1"],
        &[
            "--having",
            "price > 2 and n = 1",
            "--as",
            "city,n,price,qty",
        ],
        &["-f", "tsv", "--sort", "none", "--as", "a,b,c,d"],
        &["-f", "ndjson"],
    ] {
        let mut at_once = ringfold(["aggregate", "a.csv"]);
        // Rows in no order are in any order.
        let sort = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            let mut lines: Vec<String> = text.lines().map(String::from).collect();
            if args.contains(&"none") {
                lines.sort();
            }
            lines
        };
        let want = end(at_once.args(query).args(args).current_dir(dir)).answer();
        let got = end(ringfold(["merge", "a.part"]).args(args).current_dir(dir)).answer();
        assert_eq!(sort(got), sort(want), "{args:?}");
    }
    // Both at once.
    let mut both = ringfold([
        "aggregate",
        "--save-partial",
        "b.part",
        "--report-too",
        "a.csv",
    ]);
    let got = end(both
        .args(query)
        .args(["--having", "count > 1"])
        .current_dir(dir))
    .answer();
    assert_eq!(got, b"city,count,mean_price,first_qty\nBern,2,1.8750,2\n");
    let same =
        std::fs::read(dir.join("a.part")).unwrap() == std::fs::read(dir.join("b.part")).unwrap();
    assert!(
        same,
        "a condition on the rows of the answer is no part of a partial"
    );
    for (args, want) in [
        (
            &["--having", "count > 1"][..],
            "--having is about the answer",
        ),
        (&["--sort", "count"], "--sort is about the answer"),
        (&["-f", "csv"], "--format is about the answer"),
        (&["-o", "x"], "--output is about the answer"),
    ] {
        let mut command = ringfold(["aggregate", "--save-partial", "c.part", "a.csv"]);
        let error = end(command.args(query).args(args).current_dir(dir)).failure(2);
        assert!(error.starts_with(want), "{error}");
        assert!(!dir.join("c.part").exists());
    }
    let error = merge(dir, &["--sort", "nothing", "a.part"]).failure(2);
    assert!(error.contains("no column is called `nothing`"), "{error}");
}

#[test]
fn pipes_are_partials_too() {
    let dir = dir();
    let dir = dir.path();
    write(dir, "a.csv", ORDERS.as_bytes());
    let mut from_pipe = ringfold([
        "aggregate",
        "-H",
        "-d,",
        "-k",
        "city",
        "--save-partial",
        "-",
        "-",
    ]);
    from_pipe
        .stdin(std::process::Stdio::piped())
        .current_dir(dir);
    let mut child = start(&mut from_pipe);
    crate::support::feed(&mut child, ORDERS.into());
    let bytes = crate::support::end_of(child).answer();
    write(dir, "a.part", &bytes);
    let mut command = ringfold(["merge", "-"]);
    command.stdin(std::process::Stdio::piped());
    let mut child = start(&mut command);
    crate::support::feed(&mut child, bytes);
    let got = crate::support::end_of(child).answer();
    assert_eq!(got, b"city,count\nBern,2\nOslo,1\nRom,1\n");
    let error = merge(dir, &["a.part", "a.part"]).failure(1);
    assert_eq!(error, "a.part: - comes twice: a.part has it too");
    let mut command = ringfold([
        "aggregate",
        "-k1",
        "-d,",
        "--quote=none",
        "--range",
        "1/2",
        "-",
    ]);
    command.stdin(std::process::Stdio::piped());
    let mut child = start(&mut command);
    crate::support::feed(&mut child, ORDERS.into());
    let error = crate::support::end_of(child).failure(2);
    assert!(error.contains("can't be divided"), "{error}");
}

/// Continues a state with a file.
fn proceed(dir: &Path, file: &str) -> crate::support::Ended {
    end(ringfold(QUERY)
        .args(["--continue", "state", file])
        .current_dir(dir))
}

#[test]
fn a_state_is_continued() {
    let dir = dir();
    let dir = dir.path();
    let day = |day: u32| format!("city,price,qty\nBern,{day}.5,1\nDay {day},1,1\n");
    for at in 1..=3 {
        write(dir, &format!("{at}.txt"), day(at).as_bytes());
        assert!(proceed(dir, &format!("{at}.txt")).answer().is_empty());
    }
    let want = end(ringfold(QUERY)
        .args(["1.txt", "2.txt", "3.txt"])
        .current_dir(dir))
    .answer();
    assert_eq!(merge(dir, &["state"]).answer(), want);
    // It is what one run saves.
    keep(dir, "1.txt", "1/1", "whole", &["2.txt", "3.txt"]);
    let before = std::fs::read(dir.join("state")).unwrap();
    assert!(before == std::fs::read(dir.join("whole")).unwrap());

    let error = proceed(dir, "2.txt").failure(1);
    assert_eq!(error, "the input: 2.txt comes twice: state has it too");
    std::fs::rename(dir.join("2.txt"), dir.join("old.txt")).unwrap();
    let error = proceed(dir, "old.txt").failure(1);
    assert_eq!(error, "the input: 2.txt comes twice: state has it too");
    let grown = [day(3).as_bytes(), b"Bern,1,1\n"].concat();
    write(dir, "3.txt", &grown);
    let error = proceed(dir, "3.txt").failure(1);
    assert!(
        error.starts_with("3.txt: the file has grown since it was read"),
        "{error}"
    );
    let mut other = ringfold([
        "aggregate",
        "-H",
        "-d,",
        "-k",
        "qty",
        "--continue",
        "state",
        "new.txt",
    ]);
    write(dir, "new.txt", ORDERS.as_bytes());
    let error = end(other.current_dir(dir)).failure(1);
    assert!(error.contains("another query than state"), "{error}");
    write(dir, "bad.txt", b"city,price,qty\nBern,x,1\n");
    let error = proceed(dir, "bad.txt").failure(1);
    assert!(error.contains("`x` is not a number"), "{error}");
    assert!(std::fs::read(dir.join("state")).unwrap() == before);

    write(dir, "4.txt", day(4).as_bytes());
    let mut reported = ringfold(QUERY);
    reported.args([
        "--continue",
        "state",
        "--report-too",
        "--sort",
        "count:desc",
        "--top",
        "1",
        "4.txt",
    ]);
    let got = end(reported.current_dir(dir)).answer();
    assert_eq!(got, b"city,count,sum_price\nBern,4,12.0\n");
    let left = names(dir);
    assert!(!left.iter().any(|name| name.starts_with('.')), "{left:?}");
}

/// At every moment the state is the old or the new one.
#[test]
fn a_killed_run_leaves_the_old_or_the_new_state() {
    let dir = dir();
    let dir = dir.path();
    let day = |day: u32| -> String {
        let records = (0..20_000).map(|at| format!("city {},{at},1\n", (at * 7 + day) % 5_000));
        format!("city,price,qty\n{}", records.collect::<String>())
    };
    write(dir, "1.txt", day(1).as_bytes());
    write(dir, "2.txt", day(2).as_bytes());
    let started = std::time::Instant::now();
    proceed(dir, "1.txt").answer();
    let old = std::fs::read(dir.join("state")).unwrap();
    proceed(dir, "2.txt").answer();
    let took = started.elapsed();
    let new = std::fs::read(dir.join("state")).unwrap();
    assert!(old != new);
    let (mut olds, mut news) = (0, 0);
    let turns = drawn(20, 60);
    for turn in 0..turns {
        write(dir, "state", &old);
        let mut command = ringfold(QUERY);
        let mut child = start(
            command
                .args(["--continue", "state", "2.txt"])
                .current_dir(dir),
        );
        std::thread::sleep(Duration::from_nanos(
            took.as_nanos() as u64 * u64::from(3 * turn) / u64::from(4 * turns),
        ));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = std::fs::read(dir.join("state")).unwrap();
        assert!(now == old || now == new, "turn {turn}: {} bytes", now.len());
        match now == old {
            true => olds += 1,
            false => news += 1,
        }
        if now == old {
            // It can go on.
            proceed(dir, "2.txt").answer();
            assert!(std::fs::read(dir.join("state")).unwrap() == new);
        }
    }
    assert!(olds > 0, "{olds} old, {news} new");
}

/// Wherever a file can't grow any more: nothing is there under a new name, and what was there stays as it was.
#[test]
fn a_partial_that_finds_no_room_is_not_there() {
    let dir = dir();
    let dir = dir.path();
    let day = |day: u32| -> String {
        let records = (0..20_000).map(|at| format!("city {},{at},1\n", (at * 7 + day) % 5_000));
        format!("city,price,qty\n{}", records.collect::<String>())
    };
    write(dir, "1.txt", day(1).as_bytes());
    write(dir, "2.txt", day(2).as_bytes());
    keep(dir, "1.txt", "1/1", "1.part", &[]);
    keep(dir, "2.txt", "1/1", "2.part", &[]);
    let save = [&QUERY[..], &["--save-partial", "new", "1.txt"]].concat();
    let state = [&QUERY[..], &["--continue", "state", "2.txt"]].concat();
    let both = ["merge", "--save-partial", "new", "1.part", "2.part"];
    let old = std::fs::read(dir.join("1.part")).unwrap();
    for (args, to) in [(&save[..], "new"), (&state, "state"), (&both, "new")] {
        let begin = || {
            let _ = std::fs::remove_file(dir.join("new"));
            write(dir, "state", &old);
        };
        begin();
        end(ringfold(args).current_dir(dir)).answer();
        let whole = std::fs::read(dir.join(to)).unwrap();
        let len = whole.len() as u64;
        for room in [
            0,
            1,
            100,
            100_000,
            len / 2,
            len - 65,
            len - 64,
            len - 1,
            len,
        ] {
            begin();
            let mut command = ringfold(args);
            crate::sys::limit(&mut command, libc::RLIMIT_FSIZE, room);
            crate::sys::ignore_signal(&mut command, libc::SIGXFSZ);
            let ended = end(command.current_dir(dir));
            if room == len {
                ended.answer();
                assert!(std::fs::read(dir.join(to)).unwrap() == whole);
                continue;
            }
            let error = ended.failure(1);
            assert_eq!(error, format!("{to}: cannot write: File too large [EFBIG]"));
            assert!(std::fs::read(dir.join("state")).unwrap() == old, "{room}");
            assert!(!dir.join("new").exists(), "{room}");
        }
    }

    let test = "a_partial_that_finds_no_room_is_not_there";
    if crate::probe::skips(test, &[crate::probe::Feature::Overlay]) {
        return;
    }
    // On a file system that is full.
    let place = crate::support::dir();
    let mount =
        "mount -t tmpfs -o size=64k none \"$0\" && \"$@\"; code=$?; ls -A \"$0\" >&2; exit $code";
    let target = place.path().join("new");
    let run = ringfold(["merge", "--save-partial", str(&target), "1.part", "2.part"]);
    let mut shell = std::process::Command::new("unshare");
    shell.args(["--mount", "sh", "-c", mount, str(place.path())]);
    shell.arg(run.get_program()).args(run.get_args());
    // No file's name is told behind it.
    let error = end(shell.current_dir(dir)).failure(1);
    let want = "cannot write: No space left on device [ENOSPC]";
    assert_eq!(error, format!("{}: {want}", str(&target)));
}

#[test]
fn only_one_run_continues_a_state() {
    let dir = dir();
    let dir = dir.path();
    write(dir, "1.txt", ORDERS.as_bytes());
    proceed(dir, "1.txt").answer();
    let fifo = crate::answers::fifo(dir, "fifo");
    let mut waits = ringfold(QUERY);
    let waits = start(
        waits
            .args(["--continue", "state", str(&fifo)])
            .current_dir(dir),
    );
    // It has opened the state once it opens the fifo.
    let mut writer = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    write(dir, "2.txt", ORDERS.replace("Rom", "Ulm").as_bytes());
    let error = proceed(dir, "2.txt").failure(1);
    assert_eq!(error, "state: another run continues it at this moment");
    std::io::Write::write_all(&mut writer, ORDERS.as_bytes()).unwrap();
    drop(writer);
    crate::support::end_of(waits).answer();
    proceed(dir, "2.txt").answer();
}

/// Groups that don't fit into the memory are kept, continued and shown as those that do.
#[test]
fn partials_hold_under_a_limit_of_memory() {
    let dir = dir();
    let dir = dir.path();
    let text = |seed: u64| {
        let record = |at: u64| {
            let key = (at * 7919 + seed) % 30_011;
            format!("key {key},{}.{:02},{}\n", at % 1000, at % 100, at % 7)
        };
        let records: String = (0..60_000).map(record).collect();
        format!("city,price,qty\n{records}")
    };
    write(dir, "1.txt", text(1).as_bytes());
    write(dir, "2.txt", text(2).as_bytes());
    let query = [
        "-H",
        "-d,",
        "-kcity",
        "-asum:price,count,first:qty,distinct:qty,median:price",
    ];
    let run = |args: &[&str]| {
        let mut command = ringfold(["aggregate"]);
        end(command.args(query).args(args).current_dir(dir))
    };
    let small = ["--memory", "1M", "--spill-dir", "."];
    let same = |one: &str, two: &str| {
        std::fs::read(dir.join(one)).unwrap() == std::fs::read(dir.join(two)).unwrap()
    };
    run(&["--save-partial", "1.part", "1.txt"]).answer();
    let spilled = run(&[&small[..], &["--save-partial", "1s.part", "1.txt"]].concat());
    let (_, said) = spilled.answer_and_notices();
    assert!(said.contains("went to temporary files"), "{said}");
    assert!(same("1.part", "1s.part"));

    run(&["--save-partial", "12.part", "1.txt", "2.txt"]).answer();
    let want = run(&["1.txt", "2.txt"]).answer();
    run(&[&small[..], &["--continue", "state", "1.txt"]].concat()).answer_and_notices();
    let both = ["--continue", "state", "--report-too", "2.txt"];
    let (got, _) = run(&[&small[..], &both].concat()).answer_and_notices();
    assert!(same("state", "12.part"));
    assert!(got == want);

    run(&["--save-partial", "2.part", "2.txt"]).answer();
    let files = ["1.part", "2.part"];
    for args in [
        &[][..],
        &["--having", "count > 3"],
        &["--sort", "count"],
        &["--sort", "sum_price:desc,city", "--top", "9"],
        &["-f", "json"],
    ] {
        let want = run(&[args, &["1.txt", "2.txt"]].concat()).answer();
        let merged = merge(dir, &[&files[..], &small, args].concat());
        let (got, said) = merged.answer_and_notices();
        assert!(got == want, "{args:?}");
        assert!(said.contains("went to temporary files"), "{said}");
    }
    let left = names(dir);
    assert!(!left.iter().any(|name| name.starts_with('.')), "{left:?}");
}

/// Exact partials hold every value. They are merged in little memory, and with none that has estimates.
#[test]
fn exact_partials_are_merged() {
    let dir = dir();
    let dir = dir.path();
    let text = |seed: u64| {
        let record = |at: u64| {
            let value = (at * 7919 + seed) % 30_011;
            format!("{},{}.{:02}\n", at % 3, value, at % 100)
        };
        let records: String = (0..60_000).map(record).collect();
        format!("key,value\n{records}")
    };
    write(dir, "1.txt", text(1).as_bytes());
    write(dir, "2.txt", text(2).as_bytes());
    let query = [
        "-H",
        "-d,",
        "-kkey",
        "-ap50:value,p99:value,distinct:value,mode:value,mean:value",
    ];
    let run = |args: &[&str]| {
        let mut command = ringfold(["aggregate"]);
        end(command.args(query).args(args).current_dir(dir))
    };
    let approximate =
        |args: &[&str]| run(&[&["--approximate"], args].concat()).answer_and_notices();
    approximate(&["--save-partial", "estimate.part", "2.txt"]);
    let (estimates, said) = approximate(&["1.txt", "2.txt"]);
    let bounds = "p50_value, p99_value within 0.8% of the numbers next to it; distinct_value within 2% in 95 of 100 cases";
    assert!(said.contains(bounds), "{said}");
    let exact = |args: &[&str]| run(args);
    let want = exact(&["1.txt", "2.txt"]).answer();
    assert_ne!(want, estimates);
    let small = ["--memory", "1M", "--spill-dir", "."];
    for (name, file) in [("1.part", "1.txt"), ("2.part", "2.txt")] {
        exact(&["--save-partial", name, file]).answer();
        let spilled = format!("s{name}");
        let saved = exact(&[&small[..], &["--save-partial", &spilled, file]].concat());
        let (_, said) = saved.answer_and_notices();
        assert!(said.contains("went to temporary files"), "{said}");
        let bytes = |name: &str| std::fs::read(dir.join(name)).unwrap();
        assert!(bytes(name) == bytes(&spilled), "{name}");
    }
    assert_eq!(merge(dir, &["1.part", "2.part"]).answer(), want);
    let (got, _) = merge(dir, &[&["1.part", "2.part"], &small[..]].concat()).answer_and_notices();
    assert_eq!(got, want);
    let (got, _) = exact(&[&small[..], &["1.txt", "2.txt"]].concat()).answer_and_notices();
    assert_eq!(got, want);
    let error = merge(dir, &["1.part", "estimate.part"]).failure(1);
    assert!(
        error.contains("another query") && error.contains("exact"),
        "{error}"
    );
}

/// Parts of logs and of JSON lines leave out the records that one run leaves out, and give its answer together.
#[test]
fn parts_of_logs_and_json_lines_have_their_rejects() {
    let dir = dir();
    let dir = dir.path();
    let (mut json, mut log) = (String::new(), String::new());
    for at in 0..3_000 {
        let path = ["/", "/api", "/\u{e9}"][at % 3];
        json += &match at % 37 {
            5 => "{\"path\":\"/\",\"ms\":\n".to_string(),
            9 => format!("{{\"path\":\"{path}\",\"ms\":\"fast\"}}\n"),
            _ => format!(
                "{{\"path\":\"{path}\",\"http\":{{\"n\":{}}},\"ms\":{at}.5}}\n",
                at % 7
            ),
        };
        log += &match at % 41 {
            3 => "203.0.113.9 - - [no end\n".to_string(),
            8 => format!(
                "203.0.113.9 - - [25/Nov/2026:13:45:10 +0000] \"GET {path} HTTP/1.1\" 200 x\n"
            ),
            _ => format!(
                "203.0.113.{} - - [25/Nov/2026:13:{:02}:10 +0000] \"GET {path} HTTP/1.1\" 200 {at}\n",
                at % 5,
                at % 60
            ),
        };
    }
    write(dir, "a.jsonl", json.as_bytes());
    write(dir, "a.log", log.as_bytes());
    for (file, query) in [
        (
            "a.jsonl",
            &["--jsonl", "-kpath", "-asum:ms,p99:ms,distinct:http.n"][..],
        ),
        (
            "a.log",
            &[
                "--log",
                "common",
                "-kpath,host",
                "-asum:bytes,median:bytes,count",
            ],
        ),
        (
            "a.log",
            &[
                "--log",
                "common",
                "-ktime@minute",
                "-ap90:bytes,mode:host,count",
                "--exact",
            ],
        ),
    ] {
        let run = |args: &[&str], rejects: &str| {
            let mut command = ringfold(["aggregate", "--on-error", "skip", "--rejects", rejects]);
            let (answer, _) =
                end(command.args(query).args(args).arg(file).current_dir(dir)).answer_and_notices();
            let rejects = std::fs::read_to_string(dir.join(rejects)).unwrap();
            (
                answer,
                rejects
                    .lines()
                    .skip(1)
                    .map(String::from)
                    .collect::<Vec<_>>(),
            )
        };
        let (want, rejects) = run(&[], "all.csv");
        assert!(rejects.len() > 100, "{}", rejects.len());
        for parts in [1, 2, 7] {
            let (mut names, mut found) = (Vec::new(), Vec::new());
            for part in 1..=parts {
                let name = format!("{part}.part");
                let range = format!("{part}/{parts}");
                let (_, own) = run(&["--range", &range, "--save-partial", &name], "part.csv");
                found.extend(own);
                names.push(name);
            }
            // Which line it is may not be known in a part.
            let told = |reject: &String| {
                let fields: Vec<&str> = reject.splitn(4, ',').collect();
                [fields[0], fields[1], fields[3]].map(String::from)
            };
            let all = |rejects: &[String]| rejects.iter().map(told).collect::<Vec<_>>();
            assert_eq!(all(&found), all(&rejects), "{file} {parts}");
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (got, _) = merge(dir, &names).answer_and_notices();
            assert_eq!(got, want, "{file} {parts}");
        }
    }
}

/// What was kept by version 1 of the format is read as then, and merged with what is kept now. The files in partials/v1 stay as
/// they are: another version gets a folder of its own.
#[test]
fn files_of_version_1_are_read() {
    let v1 = Path::new(env!("CARGO_MANIFEST_DIR")).join("linux-tests/partials/v1");
    let numbers = "sum:number,min:number,max:number,mean:number,range:number,var:number,stddev:number,var_pop:number,\
                   stddev_pop:number,median:number,p99.9:number";
    let texts = "count,first:text,last:text,lexmin:text,lexmax:text,distinct:text,mode:text";
    let all = format!("{numbers},{texts}");
    for (name, query) in [
        ("small", &["-kone,two", "-a", &all][..]),
        ("floats", &["-kkey", "--float", "-a", numbers]),
        (
            "many",
            &[
                "-kkey",
                "-asum:number,min:number,max:number,median:number,distinct:number",
            ],
        ),
    ] {
        let dir = dir();
        let dir = dir.path();
        let text = std::fs::read_to_string(v1.join(format!("{name}.csv"))).unwrap();
        write(dir, "old.csv", text.as_bytes());
        // The same keys and others, with other values.
        let (header, rows) = text.split_once('\n').unwrap();
        let rows = rows.replace("a,", "new,").replace('1', "2");
        write(dir, "new.csv", format!("{header}\n{rows}").as_bytes());
        let run = |args: &[&str]| {
            let mut command = ringfold(["aggregate", "-H", "-d,", "--approximate", "-q"]);
            end(command.args(query).args(args).current_dir(dir)).answer()
        };
        let merged = |args: &[&str]| merge(dir, args).answer_and_notices().0;
        let old = v1.join(format!("{name}.part"));
        assert_eq!(merged(&[str(&old)]), run(&["old.csv"]), "{name}");
        run(&["--save-partial", "now.part", "old.csv"]);
        if name == "small" {
            // Values of `mode` had no rows then.
            run(&["--save-partial", "new.part", "new.csv"]);
            let error = merge(dir, &[str(&old), "new.part"]).failure(1);
            assert!(error.contains("has other columns"), "{error}");
            continue;
        }
        let groups = |path: &Path| {
            let mut groups = Vec::new();
            let partial = Partial::open(path).unwrap();
            let each = |group: SavedGroup<'_>| {
                let values = (0..group.columns()).map(|at| format!("{:?}", group.value(at)));
                // Sketches of distinct values have how many were added since.
                let uncounted = |value: String| {
                    let mut bytes: Vec<&str> = value.split(", ").collect();
                    let len = bytes.len();
                    match bytes.last() {
                        Some(&"14])") if len == 16_393 => drop(bytes.drain(16_384..len - 1)),
                        Some(&"0])") if len % 8 == 1 => drop(bytes.drain(len - 9..)),
                        _ => {}
                    }
                    bytes.join(", ").trim_end_matches("])").to_string()
                };
                let values = values.map(uncounted);
                groups.push((group.key().to_vec(), values.collect::<Vec<_>>()));
                Ok(())
            };
            partial.groups().for_each(each).unwrap();
            groups
        };
        assert_eq!(groups(&old), groups(&dir.join("now.part")), "{name}");
        run(&["--save-partial", "new.part", "new.csv"]);
        assert_eq!(
            merged(&[str(&old), "new.part"]),
            run(&["old.csv", "new.csv"]),
            "{name}"
        );
        let inspected = end(&mut ringfold(["inspect", str(&old)])).answer();
        assert!(
            String::from_utf8(inspected)
                .unwrap()
                .contains("partial, version 1\n")
        );
    }
}

/// The commands of docs/partials.md give what stands there.
#[test]
fn the_page_is_true() {
    let dir = dir();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/partials.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut commands = 0;
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for command in format!("\n{block}").split("\n$ ").skip(1) {
            let (line, want) = command.split_once('\n').unwrap_or((command, ""));
            let want = want.trim_end_matches('\n');
            if let Some(name) = line.strip_prefix("cat ") {
                write(dir.path(), name, format!("{want}\n").as_bytes());
                continue;
            }
            let line = line.strip_prefix("ringfold ").unwrap();
            let (line, first) = match line.split_once(" | head -") {
                Some((line, first)) => (line, first.parse().unwrap()),
                None => (line, usize::MAX),
            };
            let mut command = ringfold(crate::query::words(line));
            let ended = end(command.current_dir(dir.path()));
            let got = String::from_utf8(ended.stdout).unwrap() + &ended.stderr;
            let got: Vec<&str> = got.lines().take(first).collect();
            assert_eq!(got.join("\n"), want, "{line}");
            commands += 1;
        }
    }
    assert!(commands >= 12);
}

/// The commands of GNU parallel in docs/partials.md.
#[test]
fn gnu_parallel_gives_the_answer_of_one_run() {
    let version = std::process::Command::new("parallel")
        .arg("--version")
        .output();
    if !version.is_ok_and(|version| version.stdout.starts_with(b"GNU parallel")) {
        return skip(
            "gnu_parallel_gives_the_answer_of_one_run",
            "there is no GNU parallel",
        );
    }
    let dir = dir();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/partials.md");
    let page = std::fs::read_to_string(page).unwrap();
    let script = page.split("```sh\n").nth(1).unwrap();
    let script = script.split("```").next().unwrap();
    let text: String = (0..3000).map(|at| format!("k{},{at}\n", at % 97)).collect();
    write(dir.path(), "big.txt", text.as_bytes());
    let program = crate::support::program();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let mut bash = std::process::Command::new("bash");
    bash.args(["-ec", script]).env("PATH", path);
    let mut at_once = ringfold(["aggregate", "-k", "1", "-d", ",", "big.txt"]);
    assert_eq!(
        end(bash.current_dir(dir.path())).answer(),
        end(at_once.current_dir(dir.path())).answer()
    );
}

/// Estimates under a key are those of other hashes. Only partials of one key are merged.
#[test]
fn a_hash_key_belongs_to_a_partial() {
    let dir = dir();
    let dir = dir.path();
    let text: String = (0..20_000).map(|at| format!("a,{at}\n")).collect();
    write(dir, "1.txt", text.as_bytes());
    write(dir, "2.txt", text.replace(",", ",x").as_bytes());
    write(dir, "one.key", &[7; 32]);
    write(dir, "two.key", &[8; 32]);
    write(dir, "short.key", &[7; 15]);
    let run = |what: &str, args: &[&str]| {
        let mut command = ringfold(["aggregate", "-d,", "-k1", "-a", what]);
        end(command.args(args).current_dir(dir))
    };
    let counted = |args: &[&str]| {
        let (answer, _) = run("approx_distinct:2", args).answer_and_notices();
        let answer = String::from_utf8(answer).unwrap();
        let count = answer.lines().nth(1).unwrap().split_once(',').unwrap().1;
        (count.parse::<f64>().unwrap() / 20_000.0 - 1.0).abs()
    };
    let save = |args: &[&str]| {
        run("approx_distinct:2", args).answer_and_notices();
    };
    for key in ["one.key", "two.key"] {
        for file in ["1.txt", "2.txt"] {
            assert!(counted(&["--hash-key", key, file]) < 0.04);
            let part = format!("{file}.{key}");
            save(&["--hash-key", key, "--save-partial", &part, file]);
            // With each engine the same.
            let again = format!("{part}.again");
            let engine = ["--engine", "pread", "-b", "4K"];
            save(
                &[
                    &["--hash-key", key, "--save-partial", &again, file][..],
                    &engine,
                ]
                .concat(),
            );
            let saved = |name: &str| std::fs::read(dir.join(name)).unwrap();
            assert!(saved(&part) == saved(&again));
        }
    }
    save(&["--save-partial", "plain.part", "1.txt"]);
    merge(dir, &["1.txt.one.key", "2.txt.one.key"]).answer_and_notices();
    for other in ["2.txt.two.key", "plain.part"] {
        let error = merge(dir, &["1.txt.one.key", other]).failure(1);
        assert!(
            error.contains("another query") && error.contains("hash key"),
            "{error}"
        );
    }
    for (what, key, why) in [
        (
            "approx_distinct:2",
            "short.key",
            "a hash key has 16 to 4096 bytes",
        ),
        ("approx_distinct:2", "no.key", "No such file"),
        ("distinct:2", "one.key", "estimates of distinct values"),
    ] {
        let error = run(what, &["--hash-key", key, "1.txt"]).failure(2);
        assert!(error.contains(why), "{error}");
    }
}

/// Rows lie in the order of their keys where partials are merged: it is the one that is asked for, or not.
#[test]
fn any_rows_of_partials_are_those_of_one_run() {
    let dir = dir();
    let dir = dir.path();
    let mut text = String::from("name,id,class,x\n");
    for row in 0..40_000_u64 {
        let (id, x) = (row * row % 20_011, row % 977);
        writeln!(text, "n{id:07},{id},c{},{x}.5", id % 3).unwrap();
    }
    write(dir, "a.csv", text.as_bytes());
    for keys in [&["name"][..], &["id"], &["class", "id"]] {
        for (aggregates, first) in [
            ("count,sum:x,mean:x,max:x", "count"),
            ("sum:x,stddev:x", "sum_x"),
            ("count,median:x,lexmax:x", "count"),
        ] {
            let mut query: Vec<&str> = keys.iter().flat_map(|key| ["-k", key]).collect();
            query.extend(["-a", aggregates]);
            for part in ["1/2", "2/2"] {
                let to = format!("{}.part", &part[..1]);
                let args = [
                    &["aggregate"],
                    &query[..],
                    &["--range", part, "--save-partial", &to, "a.csv"],
                ];
                end(ringfold(args.concat()).current_dir(dir)).answer();
            }
            let (descending, more) = (format!("-{first}"), format!("{first} > 3"));
            let mut shown = vec![
                vec![],
                vec!["--top", "7"],
                vec!["--sort", &descending],
                vec!["--sort", &descending, "--top", "7", "--total"],
                vec!["--having", &more, "--total"],
            ];
            if keys.len() == 2 {
                shown.push(vec!["--top", "2", "--per", "class"]);
                shown.push(vec!["--pivot", "class", "--top", "50"]);
            }
            for flags in shown {
                let run = [&["aggregate", "-q"], &query[..], &flags, &["a.csv"]].concat();
                let want = end(ringfold(run).current_dir(dir)).answer();
                for memory in ["1G", "1M"] {
                    let args = [&flags[..], &["--memory", memory, "1.part", "2.part"]].concat();
                    let (got, _) = merge(dir, &args).answer_and_notices();
                    assert!(got == want, "{query:?} {flags:?} --memory {memory}");
                }
            }
            for part in ["1.part", "2.part"] {
                std::fs::remove_file(dir.join(part)).unwrap();
            }
        }
    }
}
