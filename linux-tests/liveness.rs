//! No run hangs for good without a word: storage that gives no answer, limits on how long a read may
//! take, signals and kills at any moment.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ringfold::job::Count;
use ringfold::{Config, Engine, Input, Kind, fold};
use rustix::process::{Pid, Signal, kill_process};

use crate::faults::started_to_read;
use crate::fuse::{At, Fault, Fuse, Pages, Rule};
use crate::probe::{Feature, skips};
use crate::support::{
    KEYS_10K, PATIENCE, STATIONS, WAYS, Way, dir, end, end_of, names, ringfold, rows, start, str,
    write,
};

/// All ways to read, over storage whose pages are cached, and past any cache where that can be.
pub fn ways() -> Vec<(Way, Pages)> {
    let cached = WAYS.iter().map(|&way| (way, Pages::Cached));
    let past = WAYS.iter().filter(|way| way.engine != Engine::Mmap);
    cached.chain(past.map(|&way| (way, Pages::None))).collect()
}

/// Does it for all at once: they do little but wait.
pub fn all_at_once<T: Send + Copy>(cases: &[T], test: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for &case in cases {
            let test = &test;
            scope.spawn(move || test(case));
        }
    });
}

fn text() -> Vec<u8> {
    // Enough that `auto` takes the ring.
    STATIONS.repeat(36)
}

/// The reads of this byte don't end well.
fn at(byte: u64, fault: Fault) -> [Rule; 1] {
    [Rule {
        at: At::Bytes(byte..byte + 1),
        forever: true,
        fault,
    }]
}

/// Whether a line names the file and bytes that touch what hangs.
#[track_caller]
fn tells_of(line: &str, fuse: &Fuse, byte: u64, rest: &str) -> bool {
    let path = fuse.path();
    let bytes = line
        .strip_prefix(&format!("{}: byte ", str(&path)))
        .and_then(|line| line.strip_suffix(rest))
        .and_then(|bytes| bytes.split_once('-'));
    let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
    let (from, to) = bytes.map_or_else(|| panic!("{line}"), |(a, b)| (number(a), number(b)));
    // The kernel asks for more than was asked of it: what comes with the byte hangs with it.
    let mut hung = fuse.reads().into_iter();
    hung.any(|range| range.contains(&byte) && from < range.end && range.start < to)
}

#[test]
fn storage_that_hangs_ends_the_run_at_the_limit() {
    if skips(
        "storage_that_hangs_ends_the_run_at_the_limit",
        &[Feature::Fuse],
    ) {
        return;
    }
    let text = text();
    let byte = text.len() as u64 / 2;
    let longest = Mutex::new(Duration::ZERO);
    all_at_once(&ways(), |(way, pages)| {
        let fuse = Fuse::serve("rows", &text[..], pages);
        fuse.plan(at(byte, Fault::Hang));
        let mut command = ringfold(["aggregate", "--io-timeout", "3s", str(&fuse.path())]);
        let started = Instant::now();
        let error = end(command.args(way.flags())).failure(1);
        let took = started.elapsed();
        let rest = ": no answer for 3 s [ETIMEDOUT]";
        assert!(tells_of(&error, &fuse, byte, rest), "{way:?}: {error}");
        // Without the limit it waits as long as the storage.
        assert!(took < 6 * PATIENCE, "{way:?} {pages:?}: {took:?}");
        let mut longest = longest.lock().unwrap();
        *longest = longest.max(took);
    });
    eprintln!("with a limit of 3 s: at most {:?}", longest.lock().unwrap());
}

/// A thread whose read nothing can take back is gone only when the read is: nobody waits for it.
#[test]
fn a_read_that_not_even_a_kill_ends_keeps_nobody_waiting() {
    let test = "a_read_that_not_even_a_kill_ends_keeps_nobody_waiting";
    if skips(test, &[Feature::Fuse]) {
        return;
    }
    let text = text();
    let byte = text.len() as u64 / 2;
    all_at_once(&ways(), |(way, pages)| {
        let fuse = Fuse::serve("rows", &text[..], pages);
        fuse.plan(at(byte, Fault::Deaf));
        let mut command = ringfold(["aggregate", "--io-timeout", "3s", str(&fuse.path())]);
        let started = Instant::now();
        let error = end(command.args(way.flags())).failure(1);
        let took = started.elapsed();
        assert!(fuse.held() > 0, "{way:?} {pages:?}: something has answered");
        let rest = ": no answer for 3 s [ETIMEDOUT]";
        assert!(tells_of(&error, &fuse, byte, rest), "{way:?}: {error}");
        // Without the limit it waits as long as the storage.
        assert!(took < 6 * PATIENCE, "{way:?} {pages:?}: {took:?}");
    });
}

#[test]
fn storage_that_answers_before_the_limit_gives_the_answer() {
    let test = "storage_that_answers_before_the_limit_gives_the_answer";
    if skips(test, &[Feature::Fuse]) {
        return;
    }
    let text = text();
    let dir = dir();
    let want = end(&mut ringfold([
        "aggregate",
        str(&write(dir.path(), "rows", &text)),
    ]))
    .answer();
    all_at_once(&ways(), |(way, pages)| {
        let fuse = Fuse::serve("rows", &text[..], pages);
        let late = Rule {
            at: At::Bytes(text.len() as u64 / 2..text.len() as u64),
            forever: false,
            fault: Fault::Delay(Duration::from_secs(2)),
        };
        fuse.plan([late]);
        let mut command = ringfold(["aggregate", "--io-timeout", "40s", str(&fuse.path())]);
        assert!(end(command.args(way.flags())).answer() == want, "{way:?}");
    });
}

/// Everything is slow, but each read is faster than the limit; and so is a job that takes its time.
#[test]
fn only_the_time_of_one_read_counts() {
    if skips("only_the_time_of_one_read_counts", &[Feature::Fuse]) {
        return;
    }
    let text = &STATIONS[..];
    all_at_once(&ways(), |(way, pages)| {
        let fuse = Fuse::serve("rows", text, pages);
        let slow = Rule {
            at: At::Read(0),
            forever: true,
            // The page cache asks for a page at a time: one read of `memory` is 68 of these.
            fault: Fault::Delay(Duration::from_millis(match pages {
                Pages::None => 200,
                Pages::Cached => 10,
            })),
        };
        fuse.plan([slow]);
        let config = Config {
            block_size: Some(16 << 10),
            queue_depth: Some(1),
            threads: Some(2),
            io_timeout: Some(Duration::from_secs(4)),
            ..way.config()
        };
        let started = Instant::now();
        let slow = Slow(Duration::from_millis(100), Duration::from_secs(5));
        let (bytes, _) = fold(&Input::open([fuse.path()]).unwrap(), &config, &slow).unwrap();
        assert_eq!(bytes, text.len() as u64, "{way:?}");
        assert!(started.elapsed() > Duration::from_secs(5), "{way:?}");
    });
}

/// Takes so long for each block, and longer for the first one.
struct Slow(Duration, Duration);

impl ringfold::Fold for Slow {
    type Partial = u64;
    type Output = u64;

    fn partial(&self) -> u64 {
        0
    }

    fn block(
        &self,
        sum: &mut u64,
        block: &ringfold::Block<'_>,
    ) -> Result<(), ringfold::BlockError> {
        std::thread::sleep(if block.offset() == 0 { self.1 } else { self.0 });
        *sum += block.bytes().len() as u64;
        Ok(())
    }

    fn merge(&self, into: &mut u64, from: u64) {
        *into += from;
    }

    fn finish(&self, sum: u64) -> u64 {
        sum
    }
}

#[test]
fn silence_is_told_of_with_file_and_bytes_again_and_again() {
    let test = "silence_is_told_of_with_file_and_bytes_again_and_again";
    if skips(test, &[Feature::Fuse]) {
        return;
    }
    let text = text();
    let byte = text.len() as u64 / 2;
    all_at_once(&ways(), |(way, pages)| {
        let fuse = Fuse::serve("rows", &text[..], pages);
        let late = Rule {
            at: At::Bytes(byte..byte + 1),
            forever: false,
            // The kernel reads ahead of a fault: of a mapping's silence not all is waited for.
            fault: Fault::Delay(Duration::from_secs(8)),
        };
        fuse.plan([late]);
        let notices = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&notices);
        let config = Config {
            silence: Duration::from_secs(1),
            notice: Arc::new(move |notice| tell.lock().unwrap().push(notice.to_string())),
            ..way.config()
        };
        let job = Count { delimiter: b'\n' };
        let started = Instant::now();
        let (counted, _) = fold(&Input::open([fuse.path()]).unwrap(), &config, &job).unwrap();
        assert_eq!(counted[0].bytes, text.len() as u64, "{way:?}");
        let seconds = started.elapsed().as_secs() as usize;
        let notices = notices.lock().unwrap();
        // Where the machine is busy, other reads may get notices too.
        let of_it = notices.iter().filter(|notice| {
            let rest = notice
                .find(": no answer for ")
                .map(|at| notice.split_at(at).1);
            rest.is_some_and(|rest| {
                rest.ends_with(" s, still waiting") && tells_of(notice, &fuse, byte, rest)
            })
        });
        assert!(
            (2..=seconds).contains(&of_it.count()),
            "{way:?} {pages:?}: {notices:?}"
        );
    });
}

/// The promise as the user has it: half a minute.
#[test]
fn after_half_a_minute_of_silence_there_is_one_notice() {
    let test = "after_half_a_minute_of_silence_there_is_one_notice";
    if skips(test, &[Feature::Fuse]) {
        return;
    }
    let text = text();
    let byte = text.len() as u64 / 2;
    let dir = dir();
    let want = end(&mut ringfold([
        "aggregate",
        str(&write(dir.path(), "rows", &text)),
    ]))
    .answer();
    all_at_once(&ways(), |(way, pages)| {
        let fuse = Fuse::serve("rows", &text[..], pages);
        let late = Rule {
            at: At::Bytes(byte..byte + 1),
            forever: false,
            fault: Fault::Delay(Duration::from_secs(38)),
        };
        fuse.plan([late]);
        let mut command = ringfold(["aggregate", str(&fuse.path())]);
        let (got, said) = end(command.args(way.flags())).answer_and_notices();
        assert!(got == want, "{way:?}");
        let notice = said
            .strip_prefix("ringfold: notice: ")
            .unwrap_or_else(|| panic!("{way:?} {pages:?}: {said}"));
        let notice = notice.trim_end();
        assert!(!notice.contains('\n'), "{said}");
        let (_, rest) = notice.split_at(notice.find(": no answer for 3").unwrap());
        assert!(rest.ends_with(" s, still waiting"), "{notice}");
        assert!(tells_of(notice, &fuse, byte, rest), "{way:?}: {notice}");
    });
}

/// A pipe that nobody writes to is no device that hangs.
#[test]
fn a_pipe_may_take_its_time() {
    for way in WAYS.iter().filter(|way| !way.direct) {
        let mut command = ringfold(["aggregate", "--io-timeout", "100ms", "--stats", "-"]);
        let mut child = start(command.args(way.flags()).stdin(Stdio::piped()));
        let mut stdin = child.stdin.take().unwrap();
        std::thread::sleep(Duration::from_millis(600));
        std::io::Write::write_all(&mut stdin, b"a;1.0\n").unwrap();
        drop(stdin);
        let (answer, said) = end_of(child).answer_and_notices();
        assert_eq!(answer, b"{a=1.0/1.0/1.0}\n", "{way:?}");
        let ineffective = said.lines().find(|line| line.starts_with("without effect"));
        assert!(
            ineffective.is_some_and(|line| line.contains("--io-timeout")),
            "{said}"
        );
    }
}

#[test]
fn the_statistics_tell_the_limit() {
    let dir = dir();
    let path = write(dir.path(), "rows", b"a;1.0\n");
    let stats = [
        "count",
        "--io-timeout",
        "1500ms",
        "--stats=json",
        str(&path),
    ];
    let (_, said) = end(&mut ringfold(stats)).answer_and_notices();
    let stats: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(stats["io_timeout_s"], 1.5);
    assert_eq!(stats["without_effect"].as_array().unwrap().len(), 0);
    let error = end(&mut ringfold(["count", "--io-timeout", "0s", str(&path)])).failure(2);
    assert!(error.contains("--io-timeout"), "{error}");
}

/// tokio-uring drops the errors of `io_uring_enter`: its reads never begin.
#[test]
fn a_ring_whose_calls_all_fail_ends_at_the_limit() {
    let test = "a_ring_whose_calls_all_fail_ends_at_the_limit";
    if skips(test, &[Feature::IoUring, Feature::Strace]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "rows", &STATIONS);
    for errno in ["EAGAIN", "ENOMEM", "EBADF"] {
        let inject = format!("inject=io_uring_enter:error={errno}:when=2+");
        let mut command = Command::new("strace");
        command
            .args([
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                "trace=io_uring_enter",
                "-e",
                &inject,
            ])
            .arg(env!("CARGO_BIN_EXE_ringfold"))
            .args([
                "aggregate",
                "--engine",
                "uring",
                "--io-timeout",
                "1s",
                str(&path),
            ]);
        let error = end(&mut command).failure(1);
        let want = format!("{}: byte 0-", str(&path));
        assert!(error.starts_with(&want), "{error}");
        assert!(
            error.ends_with(": no answer for 1 s [ETIMEDOUT]"),
            "{error}"
        );
    }
}

// The library.

/// Where the child of [`the_library_returns_without_the_read_where_a_ring_reads`] finds its file.
const FILE: &str = "RINGFOLD_TEST_FILE";

/// Its child: only a process that can be thrown away may wait for what never comes.
#[test]
#[ignore = "a part of the_library_returns_without_the_read_where_a_ring_reads"]
fn the_library_in_a_child() {
    let path = std::env::var_os(FILE).expect("the test that starts this one says where");
    let engines = [Engine::Uring, Engine::UringRaw];
    for way in WAYS.iter().filter(|way| engines.contains(&way.engine)) {
        let reported = Arc::new(Mutex::new(None));
        let tell = Arc::clone(&reported);
        let config = Config {
            io_timeout: Some(Duration::from_secs(1)),
            overdue: Some(Arc::new(move |error| {
                *tell.lock().unwrap() = Some(error.clone())
            })),
            block_size: Some(64 << 10),
            ..way.config()
        };
        let input = Input::open([&path]).unwrap();
        let started = Instant::now();
        let job = Count { delimiter: b'\n' };
        let error = fold(&input, &config, &job).unwrap_err();
        assert_eq!(error.kind(), Kind::Io, "{way:?}: {error}");
        assert!(
            error
                .to_string()
                .ends_with(": no answer for 1 s [ETIMEDOUT]"),
            "{error}"
        );
        assert_eq!(reported.lock().unwrap().as_ref(), Some(&error), "{way:?}");
        eprintln!("{way:?}: back after {:?}", started.elapsed());
        // The process is none the worse.
        let sound = Input::memory([&b"a\n"[..]]);
        fold(&sound, &Config::default(), &job).unwrap();
    }
    println!("all came back");
}

#[test]
fn the_library_returns_without_the_read_where_a_ring_reads() {
    let test = "the_library_returns_without_the_read_where_a_ring_reads";
    if skips(test, &[Feature::Fuse, Feature::IoUring]) {
        return;
    }
    let text = STATIONS.repeat(4);
    let fuse = Fuse::serve("rows", &text[..], Pages::None);
    fuse.plan(at(500_000, Fault::Deaf));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(FILE, fuse.path()).args([
        "--exact",
        "liveness::the_library_in_a_child",
        "--ignored",
        "--nocapture",
    ]);
    let mut child = start(&mut command);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let back = lines.find(|line| {
        line.as_ref()
            .is_ok_and(|line| line.contains("all came back"))
    });
    // Before what it left behind is answered.
    let held = fuse.held();
    fuse.release();
    let ended = end_of(child);
    assert!(back.is_some() && ended.code == Some(0), "{ended:?}");
    assert!(held > 0, "nothing hung");
    eprint!("{}", ended.stderr);
}

// Signals.

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

const SIGNALS: [(Signal, i32); 2] = [(Signal::INT, 130), (Signal::TERM, 143)];

#[test]
fn signals_end_a_run_whose_storage_hangs() {
    if skips("signals_end_a_run_whose_storage_hangs", &[Feature::Fuse]) {
        return;
    }
    let text = text();
    let byte = text.len() as u64 / 2;
    let longest = Mutex::new(Duration::ZERO);
    all_at_once(&ways(), |(way, pages)| {
        for (sent, code) in SIGNALS {
            let fuse = Fuse::serve("rows", &text[..], pages);
            fuse.plan(at(byte, Fault::Hang));
            let mut command = ringfold(["aggregate", str(&fuse.path())]);
            command.args(way.flags());
            if way.direct || way.engine == Engine::Auto {
                // Past the cache this file system's reads aren't interrupted, not even by a kill; who
                // wants to be free of them names a limit.
                command.args(["--io-timeout", "1h"]);
            }
            let child = start(&mut command);
            let started = Instant::now();
            while fuse.held() == 0 {
                assert!(started.elapsed() < PATIENCE, "{way:?}: nothing hangs");
                std::thread::sleep(Duration::from_millis(1));
            }
            let sent_at = Instant::now();
            signal(&child, sent);
            let ended = end_of(child);
            let took = sent_at.elapsed();
            let what = (ended.code, &*ended.stdout, &*ended.stderr);
            assert_eq!(what, (Some(code), &b""[..], ""), "{way:?} {pages:?}");
            // Without the limit it waits as long as the storage.
            assert!(took < 6 * PATIENCE, "{way:?} {pages:?}: {took:?}");
            let mut longest = longest.lock().unwrap();
            *longest = longest.max(took);
        }
    });
    eprintln!(
        "at most {:?} from the signal to the end",
        longest.lock().unwrap()
    );
}

/// As of a script's job in the background: Ctrl-C at the terminal isn't meant for it.
#[test]
fn a_signal_that_was_ignored_from_the_start_stays_so() {
    for limit in [None, Some("1h")] {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' INT; exec \"$@\"", "sh"]);
        command.arg(ringfold(["count"]).get_program());
        // With a limit there is a guard before the run.
        command.args(["count", "-l"]);
        command.args(limit.map(|limit| format!("--io-timeout={limit}")));
        let mut child = start(command.arg("-").stdin(Stdio::piped()));
        let stdin = started_to_read(&mut child, b"a;1.0\n");
        signal(&child, Signal::INT);
        // Time to end for a run that would.
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(child.try_wait().unwrap(), None, "SIGINT has ended it");
        signal(&child, Signal::TERM);
        let ended = end_of(child);
        let what = (ended.code, &*ended.stdout, &*ended.stderr);
        assert_eq!(what, (Some(143), &b""[..], ""));
        drop(stdin);
    }
}

/// Runs that are signalled at a fraction of their usual time: while they read, fold, merge, sort and
/// write, whichever comes then.
#[test]
fn signals_end_a_run_in_every_stage() {
    let dir = dir();
    // Many keys, so that merging, sorting and writing take their share.
    let text = rows(200_000, Some(150_000), 77);
    let path = write(dir.path(), "rows", &text);
    let target = dir.path().join("out");
    let (mut by_signal, mut done, mut longest) = (0, 0, Duration::ZERO);
    for way in WAYS.iter() {
        let run = || {
            let mut command = ringfold(["aggregate", "-o", str(&target), str(&path)]);
            start(command.args(way.flags()))
        };
        let started = Instant::now();
        end_of(run()).answer();
        let whole = started.elapsed();
        let want = fs::read(&target).unwrap();
        for (n, (sent, code)) in (0..10).zip(SIGNALS.into_iter().cycle()) {
            fs::remove_file(&target).unwrap();
            let child = run();
            std::thread::sleep(whole * (2 * n + 1) / 20);
            let sent_at = Instant::now();
            signal(&child, sent);
            let ended = end_of(child);
            longest = longest.max(sent_at.elapsed());
            if ended.code == Some(0) {
                done += 1;
            } else {
                // Before the program's first line the kernel ends it.
                let by_kernel = ended.signal == Some(sent.as_raw());
                assert!(ended.code == Some(code) || by_kernel, "{way:?}: {ended:?}");
                by_signal += 1;
            }
            assert!(
                ended.stdout.is_empty() && ended.stderr.is_empty(),
                "{ended:?}"
            );
            // Complete or not there at all.
            match fs::read(&target) {
                Ok(got) => assert!(got == want, "{way:?}"),
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
                    fs::write(&target, b"").unwrap();
                }
            }
        }
    }
    assert_eq!(names(dir.path()), ["out", "rows"]);
    assert!(longest < PATIENCE, "{longest:?}");
    assert!(by_signal > 0);
    eprintln!("{by_signal} ended by the signal within {longest:?}, {done} were done before");
}

/// An answer that nobody takes from the pipe.
#[test]
fn signals_end_a_run_whose_output_is_stuck() {
    let dir = dir();
    let path = write(dir.path(), "rows", &KEYS_10K);
    for way in WAYS.iter() {
        for (sent, code) in SIGNALS {
            let mut child = start(ringfold(["aggregate", str(&path)]).args(way.flags()));
            let started = Instant::now();
            let out = child.stdout.as_ref().unwrap();
            // Full: each write may leave a part of its last page empty.
            while rustix::io::ioctl_fionread(out).unwrap() < 15 * 4096 {
                assert!(started.elapsed() < PATIENCE, "{way:?}: nothing is written");
                std::thread::sleep(Duration::from_millis(1));
            }
            let sent_at = Instant::now();
            signal(&child, sent);
            // Nobody takes anything from the pipe until it is gone.
            let status = loop {
                match child.try_wait().unwrap() {
                    Some(status) => break status,
                    None => std::thread::sleep(Duration::from_millis(1)),
                }
                assert!(sent_at.elapsed() < PATIENCE, "{way:?}");
            };
            assert_eq!(status.code(), Some(code), "{way:?}");
            assert_eq!(end_of(child).stderr, "", "{way:?}");
        }
    }
}

/// The files of spilled keys have no names: nothing is left of them.
#[test]
fn signals_end_a_run_that_has_spilled_keys() {
    let keys = 0..1_000_000_u32;
    let text: Vec<u8> = keys
        .flat_map(|key| format!("key {key:060};{}.5\n", key % 100).into_bytes())
        .collect();
    let mut longest = Duration::ZERO;
    for (sent, code) in SIGNALS {
        let dir = dir();
        let mut command = ringfold(["aggregate", "--memory", "1M", "-j", "1", "--spill-dir"]);
        command.arg(dir.path());
        let mut child = start(command.stdin(Stdio::piped()));
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&text).unwrap();
        let started = Instant::now();
        while nameless(&child) < 80 << 20 {
            assert!(started.elapsed() < 5 * PATIENCE, "{}", nameless(&child));
            std::thread::sleep(Duration::from_millis(1));
        }
        let sent_at = Instant::now();
        signal(&child, sent);
        let ended = end_of(child);
        longest = longest.max(sent_at.elapsed());
        let what = (ended.code, &*ended.stdout, &*ended.stderr);
        assert_eq!(what, (Some(code), &b""[..], ""));
        assert_eq!(names(dir.path()), [""; 0]);
    }
    assert!(longest < PATIENCE, "{longest:?}");
    eprintln!("at most {longest:?} from the signal to the end");
}

/// Bytes of the files without names that a process has mapped.
fn nameless(child: &Child) -> u64 {
    let files = fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
    let files = files.flatten().map(|file| file.path());
    let is_nameless = |file: &PathBuf| {
        fs::read_link(file).is_ok_and(|target| str(&target).ends_with(" (deleted)"))
    };
    let size = |file: PathBuf| fs::metadata(file).map_or(0, |file| file.len());
    files.filter(is_nameless).map(size).sum()
}

// Kills.

/// Kills runs at random moments: an old file stays whole, nothing is left behind but the temporary name of one
/// that was just being replaced, and the next run is right. Returns how many were killed before their end.
fn kill_at_random(kills: u32) -> u32 {
    let dir = dir();
    let path = write(dir.path(), "rows", &KEYS_10K.repeat(4));
    let out = tempfile::tempdir_in(dir.path()).unwrap();
    let target = out.path().join("out");
    let command = |way: Way, target: &Path| {
        let mut command = ringfold(["aggregate", "-o", str(target), str(&path)]);
        command.args(way.flags());
        command
    };
    let want = {
        end(&mut command(WAYS[0], &target)).answer();
        fs::read(&target).unwrap()
    };
    let whole: Vec<Duration> = WAYS
        .iter()
        .map(|&way| {
            let started = Instant::now();
            end(&mut command(way, &target)).answer();
            started.elapsed()
        })
        .collect();
    let mut random = 0x5eed_u64;
    let mut killed = 0;
    for n in 0..kills {
        let at = n as usize % WAYS.len();
        let way = WAYS[at];
        // Every other one replaces a file.
        let old = (n as usize / WAYS.len()).is_multiple_of(2);
        if old {
            fs::write(&target, "the old answer").unwrap();
        } else {
            let _ = fs::remove_file(&target);
        }
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let part = (random >> 33) as u32 % 1000;
        let child = start(&mut command(way, &target));
        std::thread::sleep(whole[at] * part / 1000);
        signal(&child, Signal::KILL);
        let ended = end_of(child);
        assert!(
            ended.stdout.is_empty() && ended.stderr.is_empty(),
            "{way:?}: {ended:?}"
        );
        killed += u32::from(ended.signal == Some(libc::SIGKILL));
        let left = names(out.path());
        match fs::read(&target) {
            Ok(got) => assert!(got == want || old && got == b"the old answer", "{way:?}"),
            Err(_) => assert!(!old, "{way:?}: the old file is gone"),
        }
        for name in left.iter().filter(|name| *name != "out") {
            assert!(old && name.starts_with(".ringfold-"), "{way:?}: {left:?}");
            fs::remove_file(out.path().join(name)).unwrap();
        }
        // The next run, at times by another way.
        if n % 10 == 0 {
            end(&mut command(
                WAYS[(at + n as usize / 10) % WAYS.len()],
                &target,
            ))
            .answer();
            assert!(fs::read(&target).unwrap() == want, "{way:?}");
        }
    }
    killed
}

#[test]
fn kills_at_random_moments_leave_no_file_behind() {
    let test = "kills_at_random_moments_leave_no_file_behind";
    if skips(test, &[Feature::Nameless]) {
        return;
    }
    let killed = kill_at_random(60);
    eprintln!("60 kills, {killed} of them before the end");
    assert!(killed > 10);
}

#[test]
#[ignore = "a thousand runs take minutes"]
fn a_thousand_kills_at_random_moments_leave_no_file_behind() {
    let test = "a_thousand_kills_at_random_moments_leave_no_file_behind";
    if skips(test, &[Feature::Nameless]) {
        return;
    }
    let killed = kill_at_random(1000);
    eprintln!("1000 kills, {killed} of them before the end");
    assert!(killed > 200);
}
