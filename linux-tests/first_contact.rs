//! What people type first, before they have read anything.

use std::path::Path;

use crate::support::{dir, end, end_of, feed, ringfold, start};

fn aggregate(dir: &Path, args: &[&str]) -> std::process::Command {
    let mut command = ringfold([&["aggregate"], args].concat());
    command.current_dir(dir);
    command
}

/// A pipe can't be read again, so its lines are counted as they come.
#[test]
fn an_error_in_a_pipe_has_its_line() {
    let dir = dir();
    let rows = |delimiter: char| -> Vec<u8> {
        let row = |n: usize| format!("key{}{delimiter}{n}.5\n", n % 7);
        (0..40_000).map(row).collect::<String>().into_bytes()
    };
    let with =
        |delimiter, bad: &[u8]| [&rows(delimiter)[..], b"\n", bad, &rows(delimiter)].concat();
    let [plain, commas] = [with(';', b"key;free\n"), with(',', b"key,free\n")];
    let quoted = with(',', b"\"a\nb\"x,1\n");
    let json = [
        br#"{"k":"a","v":1}"#.as_slice(),
        b"\n\n",
        br#"{"k":"a","v":}"#,
    ]
    .concat();
    let log =
        [
            &b"192.0.2.1 - - [12/Mar/2026:06:25:01 +0000] \"GET / HTTP/1.1\" 200 1\n"
                .repeat(20_000)[..],
            b"no line\n",
        ]
        .concat();
    let long = [&rows(','), &vec![b'x'; 3 << 20][..]].concat();
    let query = |more: &[&'static str]| [&["-k", "1", "-a", "sum:2", "-d", ","], more].concat();
    for (args, text, line) in [
        (vec![], &plain, 40_002),
        (query(&[]), &commas, 40_002),
        (query(&["--quote", "\""]), &quoted, 40_002),
        (
            query(&["--quote", "\"", "--max-errors", "0"]),
            &quoted,
            40_002,
        ),
        (query(&["--skip-lines", "1"]), &commas, 40_002),
        (
            query(&["--comment", "#", "-H", "--quote", "\""]),
            &commas,
            40_002,
        ),
        (vec!["--jsonl", "-k", "k"], &json, 3),
        (vec!["--log", "common", "-k", "status"], &log, 20_001),
        (query(&[]), &long, 40_001),
    ] {
        let gzip = {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut gzip, text).unwrap();
            gzip.finish().unwrap()
        };
        for (piped, threads) in [(text, "1"), (text, "3"), (&gzip, "2")] {
            let args = [&args[..], &["-j", threads]].concat();
            let mut child = start(aggregate(dir.path(), &args).stdin(std::process::Stdio::piped()));
            feed(&mut child, piped.clone());
            let told = end_of(child).failure(1);
            assert!(
                told.contains(&format!(" (line {line})")),
                "{args:?}: {told}"
            );
        }
    }
    let told = end(&mut ringfold(["aggregate", "/proc/self/status"])).failure(1);
    assert!(
        told.starts_with("/proc/self/status: byte 0-") && told.contains("(line 1)"),
        "{told}"
    );
}
