//! Cases that only a close reading of the engines shows: odd pipes, odd block sizes, records that
//! go on past the border between what is cached and what isn't.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use ringfold::job::Count;
use ringfold::{Config, Input, Kind, Span, fold};

use crate::probe::{Feature, skips};
use crate::support::{cold, dir, end, end_of, evict, ringfold, str, write};

/// A writer that made its pipe non-blocking, and pauses, loses nothing.
#[test]
fn a_pipe_that_does_not_block_is_waited_for() {
    // The child must not hold the writing end itself.
    let closed = rustix::pipe::PipeFlags::CLOEXEC;
    let (reader, writer) = rustix::pipe::pipe_with(closed).unwrap();
    rustix::io::ioctl_fionbio(&reader, true).unwrap();
    let mut command = ringfold(["count"]);
    let child = command
        .stdin(Stdio::from(reader))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command keeps its end of the pipe until it is dropped.
    drop(command);
    let mut writer = std::fs::File::from(writer);
    for _ in 0..4 {
        writer.write_all(&b"a;1.0\nbb".repeat(100)).unwrap();
        std::thread::sleep(Duration::from_millis(60));
    }
    drop(writer);
    assert_eq!(end_of(child).answer(), b"400 3200\n");
}

/// `auto` reads a cold file at any block size, those included that O_DIRECT can't take.
#[test]
fn auto_takes_any_block_size_cold() {
    if skips("auto_takes_any_block_size_cold", &[Feature::Eviction]) {
        return;
    }
    let dir = dir();
    let text = b"key;1.5\n".repeat(1_300_000);
    for block in ["1000", "5000", "100000", "12K", "3M", "1G"] {
        let path = cold(dir.path(), "cold", &text);
        let answer = end(&mut ringfold(["aggregate", "-q", "-b", block, str(&path)])).answer();
        assert_eq!(answer, b"{key=1.5/1.5/1.5}\n", "{block}");
    }
}

/// One record over cached and cold parts: found whole, or refused at once when it is too long.
#[test]
fn a_record_goes_on_past_what_is_cached() {
    if skips("a_record_goes_on_past_what_is_cached", &[Feature::Eviction]) {
        return;
    }
    let dir = dir();
    let size = 48 << 20;
    let mut text = b"first;1.0\n".to_vec();
    text.resize(size, b'x');
    text.extend(b";2.0\nlast;3.0\n");
    let path = write(dir.path(), "long", &text);
    let patches = [(0, 4), (8, 12), (17, 18), (30, 40)];
    let run = |max: &str| {
        std::fs::read(&path).unwrap();
        for (from, to) in patches {
            evict(&path, from << 20..to << 20);
        }
        end(&mut ringfold([
            "aggregate",
            "-q",
            "--cache=none",
            "--max-record",
            max,
            str(&path),
        ]))
    };
    let failure = run("1M").failure(1);
    assert!(
        failure.contains("byte 10-1048586 (line 2): a record of more than"),
        "{failure}"
    );
    let answer = run("64M").answer();
    let long = format!(
        "first=1.0/1.0/1.0, last=3.0/3.0/3.0, {}",
        "x".repeat(size - 10)
    );
    assert_eq!(answer, format!("{{{long}=2.0/2.0/2.0}}\n").as_bytes());
}

/// Spans are read in the input's order; others are refused rather than half obeyed.
#[test]
fn spans_out_of_order_are_refused() {
    let input = || Input::memory([&b"a\nb\n"[..], b"c\n"]);
    let span = |source, from, to| Span { source, from, to };
    let wrong = [
        vec![span(1, 0, 2), span(0, 0, 4)],
        vec![span(0, 2, 4), span(0, 0, 2)],
        vec![span(0, 0, 3), span(0, 2, 4)],
    ];
    for spans in wrong {
        assert_eq!(input().with_spans(spans).unwrap_err().kind(), Kind::Usage);
    }
    let right = vec![span(0, 0, 2), span(0, 2, 4), span(1, 0, 2)];
    assert!(input().with_spans(right).is_ok());
}

/// Text in memory needs no engine to be named, and bytes can be counted without records.
#[test]
fn memory_is_read_whatever_the_engine() {
    let input = Input::memory([&b"a\nb\n"[..], b"c"]);
    for engine in ringfold::Engine::ALL {
        let config = Config {
            engine,
            max_record: 1,
            ..Config::default()
        };
        let (counted, stats) = fold(&input, &config, &Count { delimiter: b'\n' }).unwrap();
        let seen: Vec<_> = counted.iter().map(|c| (c.records, c.bytes)).collect();
        assert_eq!(seen, [(2, 4), (0, 1)], "{engine}");
        assert_eq!(stats.bytes, 5);
    }
}

/// A bad record keeps its line's number, whatever can't be done with the files behind it.
#[test]
fn a_bad_record_counts_before_a_file_that_can_not_be_read() {
    if skips(
        "a_bad_record_counts_before_a_file_that_can_not_be_read",
        &[Feature::Direct, Feature::Procfs],
    ) {
        return;
    }
    let dir = dir();
    let bad = write(dir.path(), "bad", b"a;1.0\nb\n");
    let mut command = ringfold(["aggregate", "--direct", str(&bad), "/proc/version"]);
    let cause = "1 field where 2 are expected";
    let line = format!("{}: byte 6-7 (line 2): {cause}", str(&bad));
    assert_eq!(end(&mut command).failure(1), line);
}
