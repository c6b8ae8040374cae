//! Several queries of one run: each answer is what its query gives by itself.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::compressed::gzip;
use crate::support::{dir, end, end_of, feed, ringfold, start, write};

/// Flags for all queries, and those of each.
struct Case {
    file: &'static str,
    shared: &'static [&'static str],
    queries: &'static [&'static [&'static str]],
}

const CASES: &[Case] = &[
    Case {
        file: "plain.csv",
        shared: &["-H"],
        queries: &[
            &["-k", "city", "-a", "count,sum:price,p90:qty"],
            &[
                "-k",
                "2",
                "--where",
                "price > 20",
                "--sort",
                "-count",
                "--top",
                "5",
            ],
            &[
                "-a",
                "sum(price * qty) as revenue,distinct:city",
                "-f",
                "json",
            ],
            &[
                "-k",
                "day@month,city",
                "-a",
                "mode:qty",
                "--having",
                "mode_qty > 3",
                "-f",
                "table",
            ],
        ],
    },
    Case {
        file: "quoted.csv",
        shared: &["-H", "--on-error", "skip"],
        queries: &[
            &["-k", "1", "-a", "count"],
            &["-k", "city", "-a", "sum:qty,max:price"],
            &["-a", "lexmax:city,count_if(price > 3)"],
        ],
    },
    Case {
        file: "log",
        shared: &["--log", "common"],
        queries: &[
            &["-k", "status", "-a", "count,sum:bytes"],
            &["-k", "time@hour", "--where", "status >= 400"],
        ],
    },
    Case {
        file: "lines.jsonl",
        shared: &[],
        queries: &[
            &["-k", "a.b", "-a", "sum:n"],
            &["-k", "c", "-a", "max:n,count"],
            &["-a", "count:a.b"],
        ],
    },
];

fn files(dir: &Path) {
    let cities = ["Bern", "Oslo", "Rome", "a \"b\", c", "x\ny"];
    let (mut plain, mut quoted) = (
        "city,qty,price,day\n".to_string(),
        "city,qty,price\n".to_string(),
    );
    let (mut log, mut lines) = (String::new(), String::new());
    let mut seed = 7_u64;
    for row in 0..6000 {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let n = |bits: u32| seed >> 33 >> bits & 63;
        let city = cities[n(0) as usize % 3];
        let _ = writeln!(
            plain,
            "{city}{},{},{}.{:02},2026-{:02}-0{}",
            n(2),
            n(6),
            n(3),
            n(1),
            1 + n(4) % 12,
            1 + n(9) % 9
        );
        let city = cities[n(5) as usize % 5].replace('"', "\"\"");
        match row % 997 {
            // Such a quote makes a block end within a record.
            996 => quoted += "\"open,1,2\n",
            500 => quoted += "Bern,many,2\n",
            _ => {
                let _ = writeln!(quoted, "\"{city}\",{},{}.5", n(6), n(3));
            }
        }
        let _ = writeln!(
            log,
            "10.0.0.{} - - [25/Nov/2026:{:02}:45:10 +0000] \"GET /{} HTTP/1.1\" {} {}",
            n(1),
            n(2) % 24,
            n(3),
            200 + 4 * n(6),
            n(7)
        );
        let _ = writeln!(
            lines,
            "{{\"a\":{{\"b\":{}}},\"n\":{}.25,\"c\":\"{}\"}}",
            n(1) % 9,
            n(3),
            n(5) % 4
        );
    }
    for (name, text) in [
        ("plain.csv", plain),
        ("quoted.csv", quoted),
        ("log", log),
        ("lines.jsonl", lines),
    ] {
        write(dir, name, text.as_bytes());
    }
}

/// The answers of a case's queries, each asked by itself.
fn alone(dir: &Path, case: &Case, more: &[&str]) -> Vec<Vec<u8>> {
    let answers = case.queries.iter().map(|query| {
        let args = [&["aggregate", "-q"], case.shared, more, query, &[case.file]].concat();
        end(ringfold(args).current_dir(dir)).answer_and_notices().0
    });
    answers.collect()
}

/// The answers of all of them in one run, which go to files.
fn together(dir: &Path, case: &Case, more: &[&str]) -> Vec<Vec<u8>> {
    let mut args = [&["aggregate", "-q"], case.shared, more].concat();
    let names: Vec<String> = (0..case.queries.len())
        .map(|at| format!("answer{at}"))
        .collect();
    for (at, query) in case.queries.iter().enumerate() {
        args.extend((at > 0).then_some("--next"));
        args.extend_from_slice(query);
        // A file's name would say a format.
        args.extend(
            (!query.contains(&"-f"))
                .then_some(["-f", "csv"])
                .into_iter()
                .flatten(),
        );
        args.extend(["-o", &names[at]]);
    }
    args.push(case.file);
    end(ringfold(args).current_dir(dir)).answer_and_notices();
    let answers = names.iter().map(|name| fs::read(dir.join(name)).unwrap());
    answers.collect()
}

#[test]
fn answers_are_those_of_single_queries() {
    let dir = dir();
    files(dir.path());
    for case in CASES {
        let want = alone(dir.path(), case, &[]);
        assert!(want.iter().all(|answer| answer.len() > 4));
        for more in [
            &["-j", "1", "--engine", "memory"][..],
            &["-j", "3", "-b", "4K", "--engine", "pread"],
            &[
                "-j", "2", "-b", "16K", "--engine", "mmap", "--memory", "20K",
            ],
            &["-j", "4", "--memory", "64K"],
        ] {
            assert!(
                together(dir.path(), case, more) == want,
                "{} {more:?}",
                case.file
            );
        }
        // Of a pipe nothing can be read again.
        let mut args = [&["aggregate", "-q"], case.shared].concat();
        let is_json = case.file.ends_with("jsonl");
        let sniffed = ["-d", ",", "--quote", "\""];
        args.extend(if is_json { &["--jsonl"][..] } else { &[] });
        args.extend(if case.file.ends_with("csv") {
            &sniffed[..]
        } else {
            &[]
        });
        for query in case.queries {
            args.extend_from_slice(query);
            args.push("--next");
        }
        args.pop();
        let text = fs::read(dir.path().join(case.file)).unwrap();
        for bytes in [gzip(&text), text] {
            let mut child = start(ringfold(&args).stdin(Stdio::piped()));
            feed(&mut child, bytes);
            let (got, _) = end_of(child).answer_and_notices();
            assert!(got == want.join(&b"\n"[..]), "{}", case.file);
        }
    }
}

#[test]
fn a_file_of_queries() {
    let dir = dir();
    files(dir.path());
    let text = "# a comment\n\n-k city -a 'sum(price * qty) as revenue' -o 'one two.json'\n  -a count --where \"city = 'Bern1'\"\n";
    write(dir.path(), "queries", text.as_bytes());
    let ask = |args: &[&str]| end(ringfold(args).current_dir(dir.path()));
    let first = [
        "-k",
        "city",
        "-a",
        "sum(price * qty) as revenue",
        "-f",
        "json",
    ];
    let one = ask(&[&["aggregate"], &first[..], &["plain.csv"]].concat()).answer();
    let two = ask(&[
        "aggregate",
        "-a",
        "count",
        "--where",
        "city = 'Bern1'",
        "plain.csv",
    ])
    .answer();
    let got = ask(&["aggregate", "--queries", "queries", "plain.csv"]).answer();
    assert!(got == two);
    assert!(fs::read(dir.path().join("one two.json")).unwrap() == one);
    let got = ask(&[
        "aggregate",
        "-k",
        "qty",
        "--top",
        "1",
        "--queries",
        "queries",
        "plain.csv",
    ]);
    let top = ask(&["aggregate", "-k", "qty", "--top", "1", "plain.csv"]).answer();
    assert!(got.answer() == [&top[..], &two].join(&b"\n"[..]));
    for (line, why) in [
        ("-k 'city", "a quote isn't closed"),
        (
            "--where 1",
            "each query names columns to group by with -k, or what to compute with -a",
        ),
        (
            "-k city plain.csv",
            "`plain.csv` is no flag, and files to read stand on the command line",
        ),
        (
            "-k city -j 2",
            "-j isn't a flag of one query, as -k, -a, --where, --sort, -f and -o are: flags for all queries stand before the first --next",
        ),
    ] {
        write(dir.path(), "wrong", format!("-k qty\n{line}\n").as_bytes());
        let error = ask(&["aggregate", "--queries", "wrong", "plain.csv"]).failure(2);
        assert_eq!(error, format!("wrong line 2: {why}"));
    }
    write(dir.path(), "bytes", b"-k qty \xff\n");
    let error = ask(&["aggregate", "--queries", "bytes", "plain.csv"]).failure(2);
    assert_eq!(error, "bytes: byte 7 isn't UTF-8, and queries are");
    let error = ask(&["aggregate", "--queries", "missing", "plain.csv"]).failure(1);
    assert_eq!(error, "missing: No such file or directory [ENOENT]");
    write(dir.path(), "none", b"#\n");
    let error = ask(&["aggregate", "--queries", "none", "plain.csv"]).failure(2);
    assert_eq!(error, "the file of --queries has no query");
}

#[test]
fn partials_of_each_query() {
    let dir = dir();
    files(dir.path());
    let ask = |args: &[&str]| end(ringfold(args).current_dir(dir.path()));
    let sums = ["-k", "city", "-a", "sum:price"];
    let days = ["-k", "day@month"];
    let all = [
        &["aggregate"],
        &sums[..],
        &["--continue", "sums", "--next"],
        &days,
        &["--save-partial", "days", "plain.csv"],
    ];
    ask(&all.concat()).answer();
    for (partial, query) in [("sums", &sums[..]), ("days", &days)] {
        let want = ask(&[&["aggregate"], query, &["plain.csv"]].concat()).answer();
        assert!(ask(&["merge", partial]).answer() == want);
    }
    let again = ask(&all.concat()).failure(1);
    assert!(
        again.contains("plain.csv comes twice: sums has it too"),
        "{again}"
    );
}

#[test]
fn a_line_of_all_queries_is_said_once() {
    let dir = dir();
    write(
        dir.path(),
        "a.csv",
        b"city,price\nBern,1\nOslo\nBern,x\nRome,2\n",
    );
    let args = [
        "aggregate",
        "--on-error",
        "skip",
        "-k",
        "city",
        "--next",
        "-a",
        "sum:price",
        "--next",
        "-k",
        "price",
        "-a",
        "count",
        "a.csv",
    ];
    let (got, said) = end(ringfold(args).current_dir(dir.path())).answer_and_notices();
    assert_eq!(
        got,
        b"city,count\nBern,2\nRome,1\n\nsum_price\n3\n\nprice,count\n1,1\n2,1\nx,1\n"
    );
    let want = "ringfold: query 1: 1 record skipped, the first at a.csv byte 18 line 3: 1 field where the header has 2\n\
                ringfold: query 2: 2 records skipped, the first at a.csv byte 18 line 3: 1 field where the header has 2\n\
                ringfold: query 3: 1 record skipped, the first at a.csv byte 18 line 3: 1 field where the header has 2\n";
    assert_eq!(said.lines().count(), 3, "{said}");
    assert_eq!(said, want);
    let args = [
        "aggregate",
        "--on-error",
        "skip",
        "-k",
        "city",
        "--next",
        "-k",
        "price",
        "a.csv",
    ];
    let (_, said) = end(ringfold(args).current_dir(dir.path())).answer_and_notices();
    assert_eq!(said.lines().count(), 1, "{said}");
    let limit = ["--on-error", "skip", "--max-errors", "0"];
    let queries = [
        "-k",
        "city",
        "--where",
        "city != ''",
        "--next",
        "-a",
        "sum:price",
        "b.csv",
    ];
    write(dir.path(), "b.csv", b"city,price\nBern,1\nOslo,x\n");
    let args = [&["aggregate"], &limit[..], &queries].concat();
    let error = end(ringfold(args).current_dir(dir.path())).failure(1);
    assert!(
        error.contains("more than 0 records are malformed"),
        "{error}"
    );
    // The record that comes first in the input is the error, whichever query it is of.
    let args = [
        "aggregate",
        "-a",
        "sum:price",
        "--next",
        "-a",
        "sum:city",
        "a.csv",
    ];
    let error = end(ringfold(args).current_dir(dir.path())).failure(1);
    assert!(
        error.starts_with("a.csv: byte 11-17 (line 2)") && error.contains("`Bern`"),
        "{error}"
    );
}

#[test]
fn what_queries_of_a_run_share() {
    let dir = dir();
    files(dir.path());
    let ask = |args: &[&str]| end(ringfold(args).current_dir(dir.path())).failure(2);
    for (args, why) in [
        (
            &["-k", "city", "--next", "-k", "qty", "-d", ","][..],
            "-d isn't a flag of one query",
        ),
        (
            &["--next", "-k", "qty"],
            "the query before --next needs columns",
        ),
        (
            &["-k", "city", "--next", "--top", "3"],
            "each query names columns",
        ),
        (
            &["--where", "qty > 1", "--queries", "plain.csv"],
            "plain.csv line 1: each query names columns",
        ),
        (
            &["-k", "city", "--rejects", "r.csv", "--next", "-k", "qty"],
            "--rejects is about the records that one query leaves out",
        ),
        (
            &["-k", "city", "-o", "a", "--next", "-k", "qty", "-o", "./a"],
            "--output and --output are the same file",
        ),
        (&["-k", "city", "--next", "-k", "nothing"], "nothing"),
        (
            &[
                "-k", "city", "-f", "html", "--next", "-k", "qty", "-f", "csv",
            ],
            "answers in this format don't follow each other",
        ),
    ] {
        let error = ask(&[&["aggregate"], args, &["plain.csv"]].concat());
        assert!(error.contains(why), "{error}");
    }
    // A name in one query says that there is a header.
    let args = [
        "aggregate",
        "-k",
        "2",
        "--top",
        "1",
        "--next",
        "-k",
        "city",
        "--top",
        "1",
        "plain.csv",
    ];
    let (got, _) = end(ringfold(args).current_dir(dir.path())).answer_and_notices();
    assert!(
        got.starts_with(b"qty,count\n"),
        "{}",
        String::from_utf8_lossy(&got)
    );
    let args = [
        "aggregate",
        "--explain",
        "-k",
        "city",
        "--next",
        "-k",
        "qty",
        "plain.csv",
    ];
    let got = String::from_utf8(end(ringfold(args).current_dir(dir.path())).answer()).unwrap();
    assert_eq!(got.matches("instructions").count(), 2, "{got}");
}
