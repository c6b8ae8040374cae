//! What goes wrong on an ordinary machine, and what the user sees of it.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::probe::{Feature, skips};
use crate::support::{
    KEYS_10K, PATIENCE, STATIONS, WAYS, cached_ways, cold, dir, end, end_of, evict, feed, names,
    ringfold, start, str, write,
};
use crate::sys::{self, ENTER, NOBODY, REGISTER, SETUP};

// Files.

#[test]
fn a_missing_file_a_directory_and_a_file_for_a_directory() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    let (missing, below) = (dir.path().join("missing"), path.join("below"));
    for way in WAYS.iter() {
        for (bad, cause) in [
            (missing.as_path(), "No such file or directory [ENOENT]"),
            (dir.path(), "Is a directory [EISDIR]"),
            (below.as_path(), "Not a directory [ENOTDIR]"),
        ] {
            let expected = format!("{}: {cause}", str(bad));
            let mut command = ringfold(["aggregate"]);
            let error = end(command.args(way.flags()).args([&path, bad])).failure(1);
            let again = |job: &str| match bad.is_dir() {
                true => {
                    let [flags, path, bad] = [&way.flags().join(" "), str(&path), str(bad)];
                    format!(": try `ringfold {job} {flags} {path} {bad}/*`")
                }
                false => String::new(),
            };
            assert_eq!(error, expected.clone() + &again("aggregate"), "{way:?}");
            // What can be counted is.
            let ended = end(ringfold(["count", "-l"])
                .args(way.flags())
                .args([&path, bad]));
            assert_eq!(ended.code, Some(1), "{way:?}");
            let counted = format!("1 {}\n1 total\n", str(&path));
            assert_eq!(String::from_utf8(ended.stdout).unwrap(), counted, "{way:?}");
            let again = again("count -l");
            assert_eq!(
                ended.stderr,
                format!("ringfold: {expected}{again}\n"),
                "{way:?}"
            );
        }
    }
}

#[test]
fn an_unreadable_file() {
    let dir = dir();
    let path = write(dir.path(), "secret", b"a;1.0\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = ringfold(["aggregate", str(&path)]);
    if sys::is_root() {
        if skips("an_unreadable_file", &[Feature::OtherUser]) {
            return;
        }
        as_user(&mut command, NOBODY);
    }
    let error = end(&mut command).failure(1);
    assert_eq!(error, format!("{}: Permission denied [EACCES]", str(&path)));
}

#[test]
fn names_that_are_no_utf8_or_look_like_flags() {
    use std::os::unix::ffi::OsStringExt;
    let dir = dir();
    for name in [&b"\xff\xfe"[..], b"-n", b"with space\n", b"a=b, c"] {
        let path = dir.path().join(std::ffi::OsString::from_vec(name.to_vec()));
        fs::write(&path, "a;1.0\n").unwrap();
        let mut command = ringfold(["aggregate"]);
        command
            .current_dir(dir.path())
            .arg("--")
            .arg(path.file_name().unwrap());
        assert_eq!(end(&mut command).answer(), b"{a=1.0/1.0/1.0}\n");
    }
}

// The output.

#[test]
fn a_closed_standard_output_is_a_quiet_end() {
    let dir = dir();
    let path = write(dir.path(), "file", &KEYS_10K);
    for job in [
        &["aggregate"][..],
        &["count"],
        &["aggregate", "-f", "lines"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = ringfold(job);
        command.arg(&path).stdout(writer).stderr(Stdio::piped());
        let ended = end_of(command.spawn().unwrap());
        assert_eq!((ended.code, &*ended.stderr), (Some(141), ""), "{job:?}");
    }
    // A reader that goes away in the middle.
    let mut child = start(&mut ringfold(["generate", "-o", "-", "--rows", "1e9"]));
    let mut beginning = [0; 1000];
    let mut out = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut out, &mut beginning).unwrap();
    drop(out);
    let ended = end_of(child);
    assert_eq!((ended.code, &*ended.stderr), (Some(141), ""));
}

#[test]
fn a_full_device() {
    if skips("a_full_device", &[Feature::DevFull]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    let words = "cannot write: No space left on device [ENOSPC]";
    for args in [
        &["aggregate", str(&path)][..],
        &["count", str(&path)],
        &["generate", "-q", "-o", "-", "--rows", "3"],
        &["--help"],
        &["completions", "bash"],
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = ringfold(args);
        command.stdout(full).stderr(Stdio::piped());
        let error = end_of(command.spawn().unwrap());
        // The words for --help are clap's.
        if args[0] != "--help" {
            assert_eq!(
                error.failure(1),
                format!("standard output: {words}"),
                "{args:?}"
            );
        }
    }
    for args in [
        &["aggregate", str(&path)][..],
        &["generate", "-q", "--rows", "3"],
    ] {
        let error = end(ringfold(args).args(["-o", "/dev/full"])).failure(1);
        assert_eq!(error, format!("/dev/full: {words}"));
    }
}

#[test]
fn streams_that_were_closed_from_the_start_are_told() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    let made = dir.path().join("made");
    let no_output = "standard output is closed: the answer can't be written";
    let no_input = "-: standard input is closed: name a FILE";
    for (closed, args, says) in [
        (">&-", &["aggregate", str(&path)][..], Some(no_output)),
        (">&-", &["count", str(&path)], Some(no_output)),
        (">&-", &["probe"], Some(no_output)),
        (">&-", &["generate", "--rows=3", "-o-"], Some(no_output)),
        (">&-", &["aggregate", str(&path), "-o", str(&made)], None),
        ("<&-", &["aggregate"], Some(no_input)),
        ("<&-", &["count", str(&path), "-"], Some(no_input)),
        ("<&-", &["aggregate", "--quiet", str(&path)], None),
    ] {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec \"$@\" {closed}"), "sh"]);
        command.arg(ringfold(["count"]).get_program()).args(args);
        let ended = end(&mut command);
        match says {
            Some(says) => assert_eq!(ended.failure(1), says, "{args:?}"),
            None => assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{args:?}"),
        }
    }
    assert_eq!(std::fs::read(made).unwrap(), b"{a=1.0/1.0/1.0}\n");
}

/// A name may hold anything but NUL and a slash; an error is one line that commands no terminal.
#[test]
fn a_name_of_control_characters_stays_in_its_line() {
    let dir = dir();
    let odd = "new\nline\u{1b}[31m\r\u{9b}";
    let spelled = "new\\nline\\x1b[31m\\r\\u{9b}";
    let path = dir.path().join(odd);
    let place = str(dir.path());
    for job in ["aggregate", "count", "probe"] {
        let error = end(&mut ringfold([job, str(&path)])).failure(1);
        let cause = "No such file or directory [ENOENT]";
        assert_eq!(error, format!("{place}/{spelled}: {cause}"));
    }
    write(dir.path(), odd, b"a;1.0\nbroken\n");
    let error = end(&mut ringfold(["aggregate", str(&path)])).failure(1);
    assert_eq!(
        error,
        format!("{place}/{spelled}: byte 6-12 (line 2): 1 field where 2 are expected")
    );
}

#[test]
fn standard_error_that_nobody_reads_harms_nothing() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\nbroken\n");
    let made = dir.path().join("made");
    for (args, code, want) in [
        (
            &["aggregate", "--on-error=skip", str(&path)][..],
            0,
            "{a=1.0/1.0/1.0}\n",
        ),
        (
            &["aggregate", "--on-error=skip", "--stats", str(&path)],
            0,
            "{a=1.0/1.0/1.0}\n",
        ),
        (
            &["count", "--stats=json", "-l", "/dev/null"],
            0,
            "0 /dev/null\n",
        ),
        (&["aggregate", str(&path)], 1, ""),
        (&["generate", "--rows", "3", "-o", str(&made)], 0, ""),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = ringfold(args);
        command.stdout(Stdio::piped()).stderr(writer);
        let ended = end_of(command.spawn().unwrap());
        assert_eq!(String::from_utf8(ended.stdout).unwrap(), want, "{args:?}");
        assert_eq!(ended.code, Some(code), "{args:?}");
    }
}

/// A directory with an old file, and what a run that fails must leave of it.
fn untouched(dir: &Path, run: impl FnOnce(&Path)) {
    let target = write(dir, "out", b"the old answer");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    run(&target);
    assert_eq!(names(dir), ["out"], "something was left behind");
    assert_eq!(fs::read(&target).unwrap(), b"the old answer");
    fs::remove_file(&target).unwrap();
}

#[test]
fn an_output_file_of_a_failed_run_never_appears() {
    let inputs = dir();
    let bad = write(inputs.path(), "bad", b"a;1.0\nbroken\n");
    let dir = dir();
    for way in WAYS.iter() {
        let run = |target: &Path| {
            let mut command = ringfold(["aggregate", "-o", str(target), str(&bad)]);
            end(command.args(way.flags())).failure(1);
        };
        untouched(dir.path(), run);
        run(&dir.path().join("new"));
        assert!(names(dir.path()).is_empty());
    }
}

#[test]
fn an_output_file_that_grows_too_large_never_appears() {
    let dir = dir();
    let run = |target: &Path| {
        let mut command = ringfold(["generate", "--rows", "1e6", "-o", str(target)]);
        sys::limit(&mut command, libc::RLIMIT_FSIZE, 1 << 20);
        sys::ignore_signal(&mut command, libc::SIGXFSZ);
        let error = end(&mut command).failure(1);
        let want = format!("{}: cannot write: File too large [EFBIG]", str(target));
        assert_eq!(error, want);
    };
    untouched(dir.path(), run);
    run(&dir.path().join("new"));
    assert!(names(dir.path()).is_empty());
}

#[test]
fn an_output_that_cannot_be_opened() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    let (nowhere, below) = (dir.path().join("no/where"), path.join("below"));
    for (target, cause) in [
        (nowhere.as_path(), "No such file or directory [ENOENT]"),
        (dir.path(), "Is a directory [EISDIR]"),
        (below.as_path(), "Not a directory [ENOTDIR]"),
    ] {
        for args in [&["aggregate", str(&path)][..], &["generate", "--rows", "3"]] {
            let error = end(ringfold(args).args(["-o", str(target)])).failure(1);
            assert_eq!(
                error,
                format!("{}: cannot open for writing: {cause}", str(target))
            );
        }
    }
    assert_eq!(names(dir.path()), ["file"]);
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits until somebody has read all that a pipe held, so that the child is at work.
pub fn started_to_read(child: &mut Child, bytes: &[u8]) -> std::process::ChildStdin {
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, bytes).unwrap();
    let start = Instant::now();
    while rustix::io::ioctl_fionread(&stdin).unwrap() > 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "nobody reads");
        std::thread::sleep(Duration::from_millis(1));
    }
    stdin
}

#[test]
fn signals_end_a_run_that_waits_for_its_input() {
    for way in cached_ways() {
        for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            let mut command = ringfold(["aggregate", "-"]);
            let mut child = start(command.args(way.flags()).stdin(Stdio::piped()));
            let stdin = started_to_read(&mut child, b"a;1.0\n");
            let start = Instant::now();
            signal(&child, sent);
            let ended = end_of(child);
            assert!(start.elapsed() < PATIENCE, "{way:?}: {:?}", start.elapsed());
            assert_eq!(
                (ended.code, &*ended.stdout),
                (Some(code), &b""[..]),
                "{way:?}"
            );
            assert_eq!(ended.stderr, "", "{way:?}");
            drop(stdin);
        }
    }
}

#[test]
fn signals_at_any_time_leave_no_wrong_answer() {
    let dir = dir();
    let path = write(dir.path(), "file", &KEYS_10K.repeat(4));
    let whole = end(&mut ringfold(["aggregate", str(&path)])).answer();
    let (mut none, mut all) = (0, 0);
    for way in WAYS.iter() {
        for delay_ms in [0, 3, 15, 40, 100] {
            let child = start(ringfold(["aggregate", str(&path)]).args(way.flags()));
            std::thread::sleep(Duration::from_millis(delay_ms));
            let start = Instant::now();
            signal(
                &child,
                if delay_ms % 2 == 0 {
                    Signal::INT
                } else {
                    Signal::TERM
                },
            );
            let ended = end_of(child);
            assert!(start.elapsed() < PATIENCE, "{way:?}");
            match (ended.code, ended.signal) {
                (Some(0), _) => {
                    assert!(ended.stdout == whole, "{way:?}");
                    all += 1;
                }
                // Before the program's first line the kernel ends it.
                (Some(130 | 143), _) | (_, Some(libc::SIGINT | libc::SIGTERM)) => {
                    // What a pipe holds by then can't be taken back.
                    assert!(whole.starts_with(&ended.stdout), "{way:?}");
                    none += 1;
                }
                _ => panic!("{way:?} after {delay_ms} ms: {ended:?}"),
            }
        }
    }
    eprintln!("{none} were ended, {all} were done");
    assert!(none > 0);
}

#[test]
fn a_killed_run_leaves_no_output_file() {
    if skips("a_killed_run_leaves_no_output_file", &[Feature::Nameless]) {
        return;
    }
    let dir = dir();
    let generate = |target: &Path, sent: Signal, delay_ms: u64| {
        let child = start(&mut ringfold([
            "generate",
            "--rows",
            "1e10",
            "-o",
            str(target),
        ]));
        std::thread::sleep(Duration::from_millis(delay_ms));
        signal(&child, sent);
        let ended = end_of(child);
        assert_ne!(ended.code, Some(0));
        assert!(
            ended.stdout.is_empty() && ended.stderr.is_empty(),
            "{ended:?}"
        );
    };
    for sent in [Signal::KILL, Signal::INT, Signal::TERM] {
        for delay_ms in [2, 20, 60] {
            untouched(dir.path(), |target| generate(target, sent, delay_ms));
            generate(&dir.path().join("new"), sent, delay_ms);
            assert!(names(dir.path()).is_empty());
        }
    }
    untouched(dir.path(), |target| {
        let mut command = ringfold(["aggregate", "-o", str(target), "-"]);
        let mut child = start(command.stdin(Stdio::piped()));
        let stdin = started_to_read(&mut child, b"a;1.0\n");
        signal(&child, Signal::KILL);
        assert_eq!(end_of(child).signal, Some(libc::SIGKILL));
        drop(stdin);
    });
}

#[test]
fn an_old_output_file_is_replaced_and_keeps_its_mode() {
    let dir = dir();
    let input = write(dir.path(), "in", b"a;1.0\n");
    let (target, link) = (write(dir.path(), "out", b"old"), dir.path().join("link"));
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    for out in [&target, &link] {
        fs::write(&target, "old").unwrap();
        end(&mut ringfold(["aggregate", "-o", str(out), str(&input)])).answer();
        assert_eq!(fs::read(&target).unwrap(), b"{a=1.0/1.0/1.0}\n");
        assert_eq!(
            target.metadata().unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert!(link.symlink_metadata().unwrap().is_symlink());
    }
    assert_eq!(names(dir.path()), ["in", "link", "out"]);
}

// No io_uring.

/// What is denied, with what, and a word that the user must read.
const DENIALS: [(&[u32], i32, &str); 7] = [
    (&[SETUP], libc::EPERM, "seccomp"),
    (&[SETUP], libc::ENOSYS, "seccomp"),
    (&[ENTER], libc::EPERM, "io_uring_enter"),
    (&[REGISTER], libc::EPERM, "io_uring_register"),
    (&[ENTER], libc::ENOSYS, "io_uring_enter"),
    (&[REGISTER], libc::ENOSYS, "io_uring_register"),
    (&[SETUP, ENTER, REGISTER], libc::ENOSYS, "io_uring_setup"),
];

fn one_notice(said: &str, word: &str) {
    assert_eq!(said.lines().count(), 1, "not one notice: {said}");
    assert!(
        said.starts_with("ringfold: notice: no io_uring: "),
        "{said}"
    );
    assert!(said.contains(word) && said.contains("pread"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn without_io_uring_auto_falls_back_with_one_notice() {
    let test = "without_io_uring_auto_falls_back_with_one_notice";
    if skips(test, &[Feature::IoUring, Feature::Seccomp, Feature::Direct]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let want = end(&mut ringfold(["aggregate", str(&path)])).answer();
    for (calls, errno, word) in DENIALS {
        let mut command = ringfold(["aggregate", "--direct", str(&path), str(&path)]);
        sys::deny_calls(&mut command, calls, errno);
        let (got, said) = end(&mut command).answer_and_notices();
        assert!(got == want);
        one_notice(&said, word);
        sys::deny_calls(command.arg("--quiet"), calls, errno);
        assert!(end(&mut command).answer() == want);
    }
}

#[test]
fn without_io_uring_cold_files_are_read_all_the_same() {
    let test = "without_io_uring_cold_files_are_read_all_the_same";
    if skips(
        test,
        &[Feature::IoUring, Feature::Seccomp, Feature::Eviction],
    ) {
        return;
    }
    let dir = dir();
    let text = STATIONS.repeat(36);
    let want = end(&mut ringfold([
        "count",
        "-l",
        str(&write(dir.path(), "x", &text)),
    ]))
    .answer();
    let lines = String::from_utf8(want)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_string();
    let path = cold(dir.path(), "cold", &text);
    // A part of it cached, too.
    for warm in [0, 3 << 20] {
        for (calls, errno, word) in &DENIALS[..4] {
            evict(&path, 0..text.len() as u64);
            let mut file = File::open(&path).unwrap();
            std::io::Read::read_exact(&mut file, &mut vec![0; warm]).unwrap();
            let mut command = ringfold(["count", "-l", "--cache=none", str(&path)]);
            sys::deny_calls(&mut command, calls, *errno);
            let (got, said) = end(&mut command).answer_and_notices();
            assert_eq!(
                String::from_utf8(got).unwrap(),
                format!("{lines} {}\n", str(&path))
            );
            one_notice(&said, word);
        }
    }
}

#[test]
fn there_is_one_notice_however_the_input_is_put_together() {
    let test = "there_is_one_notice_however_the_input_is_put_together";
    if skips(
        test,
        &[Feature::IoUring, Feature::Seccomp, Feature::Eviction],
    ) {
        return;
    }
    let dir = dir();
    let text = STATIONS.repeat(36);
    let (one, two) = (
        cold(dir.path(), "one", &text),
        cold(dir.path(), "two", &text),
    );
    let mut command = ringfold(["count", "--cache=none", str(&one), "/dev/null", str(&two)]);
    sys::deny_calls(&mut command, &[SETUP], libc::EPERM);
    let (_, said) = end(&mut command).answer_and_notices();
    one_notice(&said, "seccomp");
}

#[test]
fn the_ring_that_was_asked_for_is_never_given_up() {
    let test = "the_ring_that_was_asked_for_is_never_given_up";
    if skips(test, &[Feature::IoUring, Feature::Seccomp]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let engines = [
        &["uring"][..],
        &["uring-raw"],
        &["uring-raw", "--rings", "3"],
    ];
    for ((calls, errno, word), engine) in DENIALS
        .into_iter()
        .flat_map(|denial| engines.map(|engine| (denial, engine)))
    {
        let mut command = ringfold(["aggregate", str(&path), "--engine"]);
        command.args(engine);
        sys::deny_calls(&mut command, calls, errno);
        let error = end(&mut command).failure(1);
        assert!(
            error.starts_with("no io_uring: ") && error.contains(word),
            "{error}"
        );
        let name = if errno == libc::EPERM {
            "[EPERM]"
        } else {
            "[ENOSYS]"
        };
        assert!(error.ends_with(name), "{error}");
    }
}

// Limits of an ordinary user.

/// Locked memory and processes are counted by user: each test has one of its own.
fn as_user(command: &mut Command, user: u32) -> &mut Command {
    command.uid(user).gid(NOBODY)
}

#[test]
fn the_ring_works_with_little_locked_memory() {
    let test = "the_ring_works_with_little_locked_memory";
    if skips(test, &[Feature::IoUring, Feature::OtherUser]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS.repeat(3));
    let want = end(&mut ringfold(["aggregate", str(&path)])).answer();
    let limits = [(64, "16"), (64, "64"), (1 << 10, "8"), (8 << 10, "4")];
    for ((kib, depth), engine) in limits
        .into_iter()
        .flat_map(|limit| ["uring", "uring-raw"].map(|engine| (limit, engine)))
    {
        let flags = [
            "aggregate",
            "--engine",
            engine,
            "--queue-depth",
            depth,
            "-b",
            "64K",
        ];
        let mut command = ringfold(flags);
        sys::limit(
            as_user(&mut command, NOBODY),
            libc::RLIMIT_MEMLOCK,
            kib << 10,
        );
        let got = end(command.arg(&path));
        assert!(got.clone().answer() == want, "{kib} KiB: {got:?}");
    }
}

#[test]
fn the_ring_without_any_locked_memory_works_or_says_why_not() {
    let test = "the_ring_without_any_locked_memory_works_or_says_why_not";
    if skips(
        test,
        &[Feature::IoUring, Feature::OtherUser, Feature::Direct],
    ) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let want = end(&mut ringfold(["aggregate", str(&path)])).answer();
    for flags in [
        &["--engine", "uring"][..],
        &["--engine", "uring-raw"],
        &["--direct"],
    ] {
        let mut command = ringfold(["aggregate", str(&path)]);
        sys::limit(
            as_user(command.args(flags), NOBODY - 1),
            libc::RLIMIT_MEMLOCK,
            0,
        );
        let ended = end(&mut command);
        if ended.code == Some(0) {
            assert!(ended.stdout == want);
            assert!(
                ended.stderr.is_empty() || flags == ["--direct"],
                "{}",
                ended.stderr
            );
            if !ended.stderr.is_empty() {
                one_notice(&ended.stderr, "ulimit -l");
            }
        } else {
            assert!(
                flags != ["--direct"],
                "auto must fall back: {}",
                ended.stderr
            );
            let error = ended.failure(1);
            assert!(
                error.contains("ulimit -l") && error.ends_with("[ENOMEM]"),
                "{error}"
            );
        }
    }
}

#[test]
fn a_limit_on_processes_is_told_or_lived_with() {
    if skips(
        "a_limit_on_processes_is_told_or_lived_with",
        &[Feature::OtherUser],
    ) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let want = end(&mut ringfold(["aggregate", str(&path)])).answer();
    for way in WAYS.iter() {
        let mut command = ringfold(["aggregate", "-j", "4", str(&path)]);
        as_user(command.args(way.flags()), NOBODY - 3);
        sys::limit(&mut command, libc::RLIMIT_NPROC, 1);
        let ended = end(&mut command);
        if ended.code == Some(0) {
            assert!(ended.answer() == want, "{way:?}");
        } else {
            let error = ended.failure(1);
            assert!(error.contains("threads"), "{way:?}: {error}");
        }
    }
}

#[test]
fn a_limit_on_memory_is_told() {
    if skips("a_limit_on_memory_is_told", &[Feature::Plain]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    for way in WAYS
        .iter()
        .filter(|way| way.engine != ringfold::Engine::Mmap)
    {
        let mut command = ringfold(["count", "-b", "512M", "-j", "2", str(&path)]);
        command
            .args(way.flags())
            .args(["--queue-depth", "16", "--buffers", "64"]);
        sys::limit(&mut command, libc::RLIMIT_AS, 400 << 20);
        let ended = end(&mut command);
        assert!(
            !ended.stderr.contains("panicked"),
            "{way:?}: {}",
            ended.stderr
        );
        // What is small enough gets by.
        if ended.code != Some(0) {
            ended.failure(1);
        }
    }
}

// File systems.

#[test]
fn direct_reads_in_memory_work_or_say_why_not() {
    if skips(
        "direct_reads_in_memory_work_or_say_why_not",
        &[Feature::Tmpfs],
    ) {
        return;
    }
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = write(dir.path(), "file", &STATIONS);
    let want = end(&mut ringfold(["aggregate", str(&path)])).answer();
    for engine in ["auto", "uring", "uring-raw", "read", "pread"] {
        let ended = end(&mut ringfold([
            "aggregate",
            "--direct",
            "--engine",
            engine,
            str(&path),
        ]));
        if ended.code == Some(0) {
            let (got, said) = ended.answer_and_notices();
            assert!(got == want, "{engine}");
            assert!(said.lines().count() <= 1, "{said}");
        } else {
            let error = ended.failure(1);
            assert!(
                error.contains("--direct") || error.contains("io_uring"),
                "{engine}: {error}"
            );
        }
    }
}

#[test]
fn direct_needs_a_file() {
    if skips("direct_needs_a_file", &[Feature::Procfs]) {
        return;
    }
    for engine in ["auto", "uring", "uring-raw", "read", "pread"] {
        for path in ["/proc/version", "-"] {
            let mut command = ringfold(["aggregate", "--direct", "--engine", engine, path]);
            let mut child = start(command.stdin(Stdio::piped()));
            feed(&mut child, b"a;1.0\n".to_vec());
            let error = end_of(child).failure(1);
            assert!(
                error.starts_with(path) && error.contains("--direct"),
                "{engine}: {error}"
            );
        }
    }
}
