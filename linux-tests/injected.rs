//! System calls that fail at the N-th time, once and for good, by strace: the answer or one line,
//! never a hang, never a wrong answer.
//!
//! Left out: `io_uring_enter` that fails for good under tokio-uring, which drops such errors (see
//! ARCHITECTURE.md); the call of the probe before it, and all of them with `uring-raw`, are here.
//! And an `open` that is interrupted for ever: the standard library tries again for as long.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::probe::{Feature, skips};
use crate::support::{Ended, STATIONS, dir, end, evict, names, ringfold, str, write};

/// What fails, with what, and how.
#[derive(Debug, Clone)]
struct Fault {
    call: &'static str,
    errno: &'static str,
    /// The number of the call in its thread.
    nth: u32,
    for_good: bool,
    /// Only where the call concerns the input.
    on_input: bool,
}

/// The program under strace; both end when it hangs.
fn strace(options: &[&str], args: &[&str], input: &Path) -> Command {
    let program = ringfold([""; 0]);
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "50", "strace", "-f", "-qq"]);
    command.args(options).arg(program.get_program());
    command.args(args).arg(input);
    command.stdin(Stdio::null()).env("RUST_BACKTRACE", "0");
    command
}

/// The program with a fault. Calls are counted by thread, and `before` are the loader's.
fn under(fault: &Fault, before: u32, args: &[&str], input: &Path) -> Command {
    let more = if fault.for_good { "+" } else { "" };
    let when = format!("{}{more}", before + fault.nth);
    tampered(fault.call, fault.errno, &when, fault.on_input, args, input)
}

/// The program with calls that fail, as strace's `when` counts them: all calls of a name, or those on the input.
fn tampered(
    call: &str,
    errno: &str,
    when: &str,
    on_input: bool,
    args: &[&str],
    input: &Path,
) -> Command {
    let trace = format!("trace={call}");
    let inject = format!("inject={call}:error={errno}:when={when}");
    let options = ["-o", "/dev/null", "-e", &trace, "-e", &inject];
    let concerned = ["-P", str(input)];
    let options = match on_input {
        true => [&options[..], &concerned].concat(),
        false => options.to_vec(),
    };
    strace(&options, args, input)
}

/// How many of these calls the loader makes, before the program's first line.
fn before_main(call: &str, input: &Path) -> u32 {
    let dir = dir();
    let log = dir.path().join("log");
    // The language's runtime begins with a poll of the standard streams.
    let trace = format!("trace={call},poll");
    let options = ["-o", str(&log), "-e", &trace];
    end(&mut strace(&options, &["count"], input)).answer();
    let log = fs::read_to_string(log).unwrap();
    let calls = log
        .lines()
        .map(|line| line.split_whitespace().nth(1).unwrap_or(""));
    let before: Vec<_> = calls
        .take_while(|what| !what.starts_with("poll("))
        .collect();
    assert!(before.len() < log.lines().count(), "no poll: {log}");
    before.iter().filter(|what| what.starts_with(call)).count() as u32
}

/// How a run under a fault may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Answer,
    AnswerAndNotice,
    Line,
    /// Memory for the language's runtime, which has the say then.
    NotOurs,
}

fn outcome(fault: &Fault, ended: &Ended, want: &[u8]) -> Result<Outcome, String> {
    // Now and then strace tells that a thread has ended before it could be tampered with.
    let lines = ended.stderr.lines();
    let said: Vec<&str> = lines.filter(|line| !line.starts_with("strace: ")).collect();
    let not_ours = [
        "memory allocation of ",
        "failed to allocate an alternative stack",
        "failed to set up alternative stack guard page",
        "failed to allocate a guard page",
    ];
    match ended.code {
        Some(0) if ended.stdout != want => Err("a wrong answer".into()),
        Some(0) if said.is_empty() => Ok(Outcome::Answer),
        Some(0) if said.len() == 1 && said[0].starts_with("ringfold: notice: ") => {
            Ok(Outcome::AnswerAndNotice)
        }
        _ if not_ours.iter().any(|words| ended.stderr.contains(words)) => Ok(Outcome::NotOurs),
        Some(1) if ended.stdout.is_empty() => match &said[..] {
            [line] if line.starts_with("ringfold: ") => Ok(Outcome::Line),
            // What auto fell back to failed too.
            [notice, line]
                if notice.starts_with("ringfold: notice: ") && line.starts_with("ringfold: ") =>
            {
                Ok(Outcome::Line)
            }
            // The line can't be written either.
            [] if fault.call == "write" && fault.for_good => Ok(Outcome::Line),
            _ => Err(format!("{ended:?}")),
        },
        _ => Err(format!("{ended:?}")),
    }
}

/// Runs every `step`th case, several at a time, and tells how they ended.
fn sweep(test: &str, cases: &[(Fault, &[&str])], step: usize, input: &Path, want: &[u8]) {
    let cases: Vec<_> = cases.iter().step_by(step).collect();
    let calls = ANYWHERE.iter().map(|(call, _)| *call);
    let before: BTreeMap<_, _> = calls.map(|call| (call, before_main(call, input))).collect();
    let (next, seen, wrong) = (
        AtomicUsize::new(0),
        Mutex::new(BTreeMap::<Outcome, usize>::new()),
        Mutex::new(Vec::new()),
    );
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some((fault, args)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // For those that read what isn't cached.
                    evict(input, 0..fs::metadata(input).unwrap().len());
                    let before = if fault.on_input {
                        0
                    } else {
                        before[fault.call]
                    };
                    let ended = end(&mut under(fault, before, args, input));
                    match outcome(fault, &ended, want) {
                        Ok(outcome) => *seen.lock().unwrap().entry(outcome).or_default() += 1,
                        Err(what) => wrong
                            .lock()
                            .unwrap()
                            .push(format!("{fault:?} {args:?}: {what}")),
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let seen = seen.into_inner().unwrap();
    println!("{test}: {} cases: {seen:?}", cases.len());
    let lines = seen.get(&Outcome::Line).copied().unwrap_or(0);
    assert!(
        lines * 20 > cases.len(),
        "few faults had any effect: {seen:?}"
    );
}

const ENGINES: [&[&str]; 7] = [
    &["count", "-l", "--engine", "auto", "--cache", "none"],
    &["count", "-l", "--engine", "uring"],
    &["count", "-l", "--engine", "uring-raw"],
    &["count", "-l", "--engine", "read"],
    &["count", "-l", "--engine", "pread"],
    &["count", "-l", "--engine", "mmap"],
    &["count", "-l", "--engine", "memory"],
];

/// Which calls fail with what: those that concern the input, and those of any kind.
const ON_INPUT: [(&str, &[&str]); 7] = [
    (
        "openat",
        &["EINTR", "EMFILE", "ENFILE", "EIO", "EACCES", "ENOMEM"],
    ),
    (
        "pread64",
        &[
            "EINTR",
            "EAGAIN",
            "EIO",
            "ENODATA",
            "ENOMEM",
            "EBUSY",
            "ECANCELED",
        ],
    ),
    (
        "preadv2",
        &["EINTR", "EAGAIN", "EIO", "EOPNOTSUPP", "ENOMEM"],
    ),
    (
        "read",
        &["EINTR", "EAGAIN", "EIO", "ENODATA", "ENOMEM", "EBUSY"],
    ),
    ("mmap", &["ENOMEM", "EAGAIN", "ENODEV", "EACCES"]),
    ("statx", &["EIO", "ENOMEM", "ENOSYS"]),
    ("lseek", &["EIO", "ESPIPE"]),
];
const ANYWHERE: [(&str, &[&str]); 11] = [
    (
        "io_uring_setup",
        &[
            "EPERM", "ENOSYS", "ENOMEM", "EINVAL", "EMFILE", "EAGAIN", "EINTR",
        ],
    ),
    (
        "io_uring_register",
        &[
            "EPERM",
            "ENOMEM",
            "EINVAL",
            "EBUSY",
            "EINTR",
            "EAGAIN",
            "EOPNOTSUPP",
        ],
    ),
    (
        "io_uring_enter",
        &["EPERM", "ENOMEM", "EAGAIN", "EINTR", "EBUSY", "EIO"],
    ),
    ("madvise", &["EINVAL", "EAGAIN", "ENOMEM", "EFAULT", "EIO"]),
    ("mmap", &["ENOMEM"]),
    ("mprotect", &["ENOMEM"]),
    ("clone3", &["EAGAIN", "ENOSYS"]),
    ("mincore", &["ENOMEM", "EAGAIN"]),
    ("eventfd2", &["EMFILE"]),
    ("epoll_create1", &["EMFILE"]),
    ("sched_getaffinity", &["EPERM"]),
];

/// See the head of this file.
fn left_out(fault: &Fault, engine: &str) -> bool {
    match (fault.call, fault.errno) {
        ("io_uring_enter", _) => fault.nth > 1 && fault.for_good && engine != "uring-raw",
        ("openat", "EINTR") => fault.for_good,
        _ => false,
    }
}

fn cases() -> Vec<(Fault, &'static [&'static str])> {
    let mut cases = Vec::new();
    let calls = ON_INPUT.map(|call| (call, true)).into_iter();
    for ((call, errnos), on_input) in calls.chain(ANYWHERE.map(|call| (call, false))) {
        for &errno in errnos {
            for (nth, for_good) in [
                (1, false),
                (1, true),
                (2, false),
                (2, true),
                (5, false),
                (5, true),
                (12, true),
            ] {
                for engine in ENGINES {
                    let fault = Fault {
                        call,
                        errno,
                        nth,
                        for_good,
                        on_input,
                    };
                    if !left_out(&fault, engine[3]) {
                        cases.push((fault, engine));
                    }
                }
            }
        }
    }
    cases
}

fn calls_that_fail(test: &str, step: usize) {
    if skips(
        test,
        &[
            Feature::Strace,
            Feature::IoUring,
            Feature::Eviction,
            Feature::Plain,
        ],
    ) {
        return;
    }
    let dir = dir();
    // More than `auto` simply reads.
    let path = write(dir.path(), "file", &STATIONS.repeat(40));
    let want = end(&mut ringfold(["count", "-l", str(&path)])).answer();
    sweep(test, &cases(), step, &path, &want);
}

#[test]
fn calls_that_fail_end_in_the_answer_or_one_line() {
    // A number that divides none of the lists, so that all of them have their turn.
    calls_that_fail("calls_that_fail_end_in_the_answer_or_one_line", 23);
}

#[test]
#[ignore = "takes minutes: make test-all"]
fn every_call_that_fails_ends_in_the_answer_or_one_line() {
    calls_that_fail("every_call_that_fails_ends_in_the_answer_or_one_line", 1);
}

/// With one read in flight no other completion makes the ring's thread submit again.
#[test]
fn a_submission_that_fails_now_and_then_is_made_again() {
    let test = "a_submission_that_fails_now_and_then_is_made_again";
    if skips(test, &[Feature::Strace, Feature::IoUring, Feature::Plain]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS.repeat(40));
    let args = ["count", "-l", "--engine", "uring", "--queue-depth", "1"];
    let want = end(&mut ringfold([&args[..], &[str(&path)]].concat())).answer();
    // The first call is the probe's. About every other one submits nothing, so some of these steps hit those that do.
    for (first, step) in [(2, 2), (3, 2), (3, 3), (4, 3), (5, 3)] {
        for errno in ["ENOMEM", "EBUSY"] {
            let when = format!("{first}+{step}");
            let mut run = tampered("io_uring_enter", errno, &when, false, &args, &path);
            let ended = end(&mut run);
            assert_eq!(ended.code, Some(0), "{errno} {when}: {ended:?}");
            assert!(ended.stdout == want, "{errno} {when}");
        }
    }
}

/// The old file or the whole new one stands at the target, and nothing beside it.
#[test]
fn an_output_file_that_can_not_be_written_is_told() {
    let test = "an_output_file_that_can_not_be_written_is_told";
    if skips(test, &[Feature::Strace]) {
        return;
    }
    let inputs = dir();
    let input = write(inputs.path(), "file", &crate::support::KEYS_10K);
    let want = end(&mut ringfold(["aggregate", str(&input)])).answer();
    let dir = dir();
    let (mut cases, mut lines) = (0, 0);
    for (call, errnos) in [
        ("write", &["EINTR", "EIO", "ENOSPC", "EDQUOT", "EAGAIN"][..]),
        ("linkat", &["EIO", "ENOSPC", "EPERM", "EEXIST"]),
        ("renameat", &["EIO", "ENOSPC", "EINTR"]),
        ("fchmod", &["EPERM", "EIO"]),
        ("fstatfs", &["EIO", "ENOSYS"]),
        // What puts it in the old one's place is a fork where there can be one.
        ("clone", &["EAGAIN", "ENOMEM", "EPERM"]),
        ("pipe2", &["EMFILE"]),
    ] {
        for &errno in errnos {
            for (nth, for_good) in [(1, false), (2, false), (1, true)] {
                // The language's own loop goes on for ever; no kernel answers so for ever.
                if (errno, for_good) == ("EINTR", true) {
                    continue;
                }
                let target = write(dir.path(), "out", b"the old answer");
                let fault = Fault {
                    call,
                    errno,
                    nth,
                    for_good,
                    on_input: false,
                };
                let args = ["aggregate", "--engine", "pread", "-o", str(&target)];
                let ended = end(&mut under(&fault, 0, &args, &input));
                let done =
                    outcome(&fault, &ended, b"").unwrap_or_else(|what| panic!("{fault:?}: {what}"));
                let found = fs::read(&target).unwrap();
                match done {
                    Outcome::Line => assert!(found == b"the old answer", "{fault:?}"),
                    _ => assert!(found == want, "{fault:?}"),
                }
                lines += usize::from(done == Outcome::Line);
                assert_eq!(names(dir.path()), ["out"], "{fault:?}");
                cases += 1;
            }
        }
    }
    println!("{test}: {cases} cases, {lines} of them ended with an error");
    assert!(lines > 10);
}
