//! Keys and values of a megabyte, and many short keys: a run takes no more memory than it may, and the answer is the same.

use std::fs;

use crate::probe::{Feature, skips};
use crate::support::{Ended, dir, end, ringfold, str, write};

/// Bytes of a long value.
const LONG: usize = 1_000_000;
const ROWS: usize = 64;
const THREADS: u64 = 4;
const MEMORY: u64 = 4 << 20;
/// What is promised: that, 64 MiB, and a record a thread.
const MOST_MIB: f64 = 4.0 + 64.0 + 4.0;

/// Long values, each with its own start.
fn long(number: usize) -> String {
    format!("{number:08}{}", "long value ".repeat(LONG / 11))
}

/// What `--stats` says of a run's memory.
fn own_mib(ended: &Ended) -> f64 {
    let own = ended.stderr.split_once("at most ").expect("of memory").1;
    let (own, _) = own.split_once(" MiB").expect("some MiB");
    own.parse().unwrap()
}

/// A table grows by copies, and tables of all threads are merged to one: neither where there is no room for it.
#[test]
fn tables_of_short_keys_stay_within_the_memory() {
    // A sanitizer takes memory of its own.
    if skips(
        "tables_of_short_keys_stay_within_the_memory",
        &[Feature::Plain],
    ) {
        return;
    }
    let dir = dir();
    let rows = (0..1_500_000_u64).map(|at| format!("key{},{}\n", at * 7919 % 1_500_000, at % 7));
    let text = rows.fold("k,n\n".to_string(), |all, row| all + &row);
    let path = write(dir.path(), "f.csv", text.as_bytes());
    let run = |memory: &str| {
        let mut command = ringfold(["aggregate", "-k", "k", "-a", "count,sum:n", "-f", "csv"]);
        command.args(["--stats", "-j", "2", "--memory", memory, str(&path)]);
        let ended = end(command.args(["--spill-dir", str(dir.path())]));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended
    };
    let want = run("2G").stdout;
    for mib in [64, 256] {
        let ended = run(&format!("{mib}M"));
        assert!(ended.stdout == want, "{mib} MiB");
        let peak = own_mib(&ended);
        assert!(peak <= f64::from(mib) + 64.0, "{peak} of {mib} MiB");
    }
}

#[test]
fn long_keys_and_texts_stay_within_the_memory() {
    // A sanitizer takes memory of its own.
    if skips(
        "long_keys_and_texts_stay_within_the_memory",
        &[Feature::Plain],
    ) {
        return;
    }
    let dir = dir();
    let row = |key: &str, text: &str, at: usize| format!("{key},{text},{}\n", at % 7);
    let header = "k,t,n\n".to_string();
    let all =
        |row: &dyn Fn(usize) -> String| (0..ROWS).map(row).fold(header.clone(), |a, b| a + &b);
    let keys = all(&|at| row(&long(at * 37 % ROWS), "x", at));
    let texts = all(&|at| row(&format!("g{}", at * 37 % ROWS), &long(at), at));
    let few = all(&|at| row(&format!("g{}", at % 5), &long(at * 37 % ROWS), at));
    let quoted = all(&|at| {
        row(
            &format!("g{at}"),
            &format!("\"a \"\"b\"\"\n{}\"", long(at)),
            at,
        )
    });
    let json = (0..ROWS).map(|at| {
        let text = long(at);
        format!("{{\"k\":\"g{at}\",\"t\":\"{text}\\n\",\"n\":{}}}\n", at % 7)
    });
    let json: String = json.collect();
    let ask = |aggregates: &'static str, more: &[&'static str]| {
        [&["-k", "k", "-a", aggregates][..], more].concat()
    };
    for (name, text, ask) in [
        ("keys", &keys, ask("count,sum:n", &[])),
        (
            "keys",
            &keys,
            ask("count,distinct:t,sum:n", &["--sort", "sum_n:desc"]),
        ),
        // In the order of a number after the key.
        ("keys", &keys, vec!["-k", "k,n", "-a", "last:t,distinct:t"]),
        ("texts", &texts, ask("first:t,last:t,lexmin:t", &[])),
        (
            "texts",
            &texts,
            ask("lexmax:t,sum:n", &["--sort", "sum_n", "-f", "json"]),
        ),
        (
            "texts",
            &texts,
            ask(
                "mode:t,distinct:t,first:t",
                &["--having", "first_t > 00000007"],
            ),
        ),
        ("few", &few, ask("first:t,last:t,mode:t", &[])),
        ("few", &few, vec!["-a", "distinct:t,mode:t,lexmin:t"]),
        ("quoted", &quoted, ask("last:t,mode:t", &[])),
        ("json", &json, ask("last:t,distinct:t", &["--jsonl"])),
    ] {
        let path = write(dir.path(), name, text.as_bytes());
        let (want, got) = (dir.path().join("want"), dir.path().join("got"));
        let run = |memory: u64, threads: u64, out| {
            let mut command = ringfold(["aggregate", "--engine", "pread"]);
            if !ask.contains(&"--jsonl") {
                command.args(["-d", ","]);
            }
            command.args(["--memory", &memory.to_string(), "-j", &threads.to_string()]);
            command
                .args(["--spill-dir", str(dir.path()), "-o", str(out)])
                .args(&ask)
                .arg(&path);
            if !ask.contains(&"-f") {
                command.args(["-f", "csv"]);
            }
            let ended = end(command.arg("--stats"));
            assert_eq!(ended.code, Some(0), "{name} {ask:?}: {}", ended.stderr);
            own_mib(&ended)
        };
        run(4 << 30, 1, &want);
        let peak = run(MEMORY, THREADS, &got);
        assert!(
            fs::read(&want).unwrap() == fs::read(&got).unwrap(),
            "{name} {ask:?}"
        );
        assert!(peak <= MOST_MIB, "{name} {ask:?}: {peak} MiB");
    }
}
