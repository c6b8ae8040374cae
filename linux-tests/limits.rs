//! Limits of the machine and its administrator: descriptors, processes, memory, locked memory, and
//! what a container's seccomp filter leaves.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use ringfold::Engine;

use crate::disks::Held;
use crate::group::Group;
use crate::probe::{Feature, skip, skips};
use crate::support::{
    STATIONS, WAYS, dir, end, end_of, evict, names, ringfold, rows, start, str, write,
};
use crate::sys::{self, NOBODY, SETUP};

// Control groups.

#[test]
fn few_processes_in_the_control_group() {
    let test = "few_processes_in_the_control_group";
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let want = end(&mut ringfold(["aggregate", str(&path)])).answer();
    let (mut answers, mut lines) = (0, 0);
    for most in [1, 2, 3, 4, 5, 6, 8] {
        let group = match Group::new("pids", most) {
            Ok(group) => group,
            Err(reason) => return skip(test, reason.to_string()),
        };
        for way in WAYS.iter() {
            let mut command = ringfold(["aggregate", "-j", "4"]);
            group.take_in(command.args(way.flags()).arg(&path));
            let ended = end(&mut command);
            if ended.code == Some(0) {
                assert!(ended.answer() == want, "{way:?}");
                answers += 1;
            } else {
                let error = ended.failure(1);
                let told = error.contains("thread");
                assert!(told, "{way:?}, {most} processes: {error}");
                lines += 1;
            }
        }
    }
    eprintln!("{answers} answers, {lines} lines");
    assert!(answers > 0 && lines > 0);
}

/// To put an output in an old one's place takes a process for a moment, but not if there is none.
#[test]
fn an_old_output_is_replaced_with_few_processes() {
    let test = "an_old_output_is_replaced_with_few_processes";
    if skips(test, &[Feature::OtherUser]) {
        return;
    }
    let user = NOBODY - 22;
    let (inputs, dir) = (dir(), dir());
    let path = write(inputs.path(), "file", &STATIONS);
    let want = end(&mut ringfold(["aggregate", str(&path)])).answer();
    let (mut answers, mut lines) = (0, 0);
    for most in 1..8 {
        let target = write(dir.path(), "out", b"the old answer");
        std::os::unix::fs::chown(&target, Some(user), Some(user)).unwrap();
        let mut command = ringfold(["aggregate", "-j", "2", "-o", str(&target), str(&path)]);
        command.uid(user).gid(user);
        sys::limit(&mut command, libc::RLIMIT_NPROC, most);
        let ended = end(&mut command);
        let found = fs::read(&target).unwrap();
        if ended.code == Some(0) {
            assert_eq!(ended.answer(), b"");
            assert!(found == want, "{most}");
            answers += 1;
        } else {
            let error = ended.failure(1);
            assert!(error.contains("thread"), "{most}: {error}");
            assert_eq!(found, b"the old answer");
            lines += 1;
        }
        assert_eq!(names(dir.path()), ["out"], "{most}");
    }
    eprintln!("{answers} answers, {lines} lines");
    assert!(answers > 0);
}

/// Who ignores SIGCHLD never learns how a child ended.
#[test]
fn an_old_output_is_replaced_where_sigchld_is_ignored() {
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let want = end(&mut ringfold(["aggregate", str(&path)])).answer();
    let out = tempfile::tempdir_in(dir.path()).unwrap();
    let target = write(out.path(), "out", b"the old answer");
    let run = |target: &Path| {
        let mut command = ringfold(["aggregate", "-o", str(target), str(&path)]);
        sys::ignore_signal(&mut command, libc::SIGCHLD);
        end(&mut command)
    };
    assert_eq!(run(&target).answer(), b"");
    assert!(fs::read(&target).unwrap() == want);
    assert_eq!(names(out.path()), ["out"]);
}

#[test]
fn little_memory_in_the_control_group() {
    let test = "little_memory_in_the_control_group";
    let text = rows(2_000_000, None, 33);
    let dir = dir();
    let path = write(dir.path(), "file", &text);
    let want = end(&mut ringfold(["aggregate", str(&path)])).answer();
    for mib in [16, 32, 64] {
        let group = match Group::new("memory", mib << 20) {
            Ok(group) => group,
            Err(reason) => return skip(test, reason.to_string()),
        };
        for way in WAYS.iter() {
            // Sixteen reads through the page cache at once hold more pages than so small a group has
            // room for, whatever the buffers: who names a ring there has to name --direct too.
            let ring = matches!(way.engine, Engine::Uring | Engine::UringRaw);
            if mib == 16 && ring && !way.direct {
                continue;
            }
            evict(&path, 0..text.len() as u64);
            let mut command = ringfold(["aggregate", "--threads", "2"]);
            group.take_in(command.args(way.flags()).arg(&path));
            let ended = end(&mut command);
            if ended.code == Some(0) {
                assert!(ended.answer() == want, "{mib} MiB {way:?}");
            } else {
                // Whoever named it wanted all of it there.
                assert_eq!(way.engine, Engine::Memory, "{mib} MiB: {ended:?}");
                let error = ended.failure(1);
                assert!(error.contains("the control group allows"), "{error}");
            }
        }
    }
}

// Descriptors.

#[test]
fn few_descriptors_give_the_answer_or_a_line() {
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let want = end(&mut ringfold(["aggregate", str(&path)])).answer();
    let (mut answers, mut lines) = (0, 0);
    // Fewer than four, and the loader can't open the libraries.
    for most in 4..20 {
        for way in WAYS.iter() {
            let mut command = ringfold(["aggregate"]);
            sys::limit(
                command.args(way.flags()).arg(&path),
                libc::RLIMIT_NOFILE,
                most,
            );
            let ended = end(&mut command);
            if ended.code == Some(0) {
                let (got, said) = ended.answer_and_notices();
                assert!(got == want && said.lines().count() <= 1, "{way:?}: {said}");
                answers += 1;
            } else {
                let error = ended.failure(1);
                assert!(error.ends_with("[EMFILE]"), "{way:?}, {most}: {error}");
                assert!(error.contains("ulimit -n"), "{way:?}, {most}: {error}");
                lines += 1;
            }
        }
    }
    eprintln!("{answers} answers, {lines} lines");
    assert!(answers > 0 && lines > 0);
}

#[test]
fn a_thousand_files() {
    if skips("a_thousand_files", &[Feature::Eviction]) {
        return;
    }
    let dir = dir();
    let paths: Vec<PathBuf> = (0..1000)
        .map(|n| write(dir.path(), &n.to_string(), &STATIONS[..9000 + n]))
        .collect();
    let evicted = || {
        for path in &paths {
            evict(path, 0..1 << 20);
        }
    };
    let want = end(ringfold(["count"]).args(&paths)).answer();
    for way in WAYS.iter() {
        evicted();
        let mut command = ringfold(["count"]);
        let got = end(command.args(way.flags()).args(&paths)).answer();
        assert!(got == want, "{way:?}");
    }
    // Enough to open them all, too few to open them a second time past the page cache.
    if !WAYS
        .iter()
        .any(|way| way.engine == Engine::Auto && way.direct)
    {
        return;
    }
    for (flag, most) in [("--engine=auto", 1100), ("--direct", 1100)] {
        evicted();
        let mut command = ringfold(["count", flag]);
        sys::limit(command.args(&paths), libc::RLIMIT_NOFILE, most);
        let ended = end(&mut command);
        if flag == "--direct" {
            let error = ended.failure(1);
            for words in ["--direct", "ulimit -n", "[EMFILE]"] {
                assert!(error.contains(words), "{error}");
            }
        } else {
            let (got, said) = ended.answer_and_notices();
            assert!(got == want);
            assert_eq!(said.lines().count(), 1, "{said}");
            for words in ["ulimit -n", "[EMFILE]", " more; reading through it"] {
                assert!(said.contains(words), "{said}");
            }
        }
    }
}

// Ordinary users.

/// A hundred runs one after the other and eight at once, of somebody who may lock so much.
fn runs_of_a_user(test: &str, user: u32, locked: u64) {
    if skips(
        test,
        &[Feature::IoUring, Feature::OtherUser, Feature::Direct],
    ) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let want = end(&mut ringfold(["aggregate", str(&path)])).answer();
    // Small files are simply read by auto, unless it is told to go past the page cache.
    for flags in [
        &["--direct"][..],
        &["--engine", "uring"],
        &["--engine", "uring-raw"],
    ] {
        let started = || {
            let mut command = ringfold(["aggregate"]);
            command.args(flags).arg(&path).uid(user).gid(user);
            sys::limit(&mut command, libc::RLIMIT_MEMLOCK, locked);
            start(&mut command)
        };
        for n in 0..100 {
            let ended = end_of(started());
            assert!(
                ended.clone().answer() == want,
                "run {n}, {flags:?}: {ended:?}"
            );
        }
        for _ in 0..4 {
            let children: Vec<Child> = (0..8).map(|_| started()).collect();
            for child in children {
                assert!(end_of(child).answer() == want, "{flags:?}");
            }
        }
    }
}

#[test]
fn a_hundred_runs_and_eight_at_once_with_8_mib_of_locked_memory() {
    let test = "a_hundred_runs_and_eight_at_once_with_8_mib_of_locked_memory";
    runs_of_a_user(test, NOBODY - 20, 8 << 20);
}

#[test]
fn a_hundred_runs_and_eight_at_once_with_64_kib_of_locked_memory() {
    let test = "a_hundred_runs_and_eight_at_once_with_64_kib_of_locked_memory";
    runs_of_a_user(test, NOBODY - 21, 64 << 10);
}

// What is forbidden.

const SYSCTL: &str = "/proc/sys/kernel/io_uring_disabled";

/// What a run says where the sysctl has this value.
fn told_by_sysctl(value: &str, path: &Path, want: &[u8], prepare: &dyn Fn(&mut Command)) {
    let words = format!("kernel.io_uring_disabled is {value}");
    let mut command = ringfold(["aggregate", "--direct", str(path)]);
    prepare(&mut command);
    let (got, said) = end(&mut command).answer_and_notices();
    assert!(got == want);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains(&words) && said.contains("pread instead"),
        "{said}"
    );
    for engine in ["uring", "uring-raw"] {
        let mut command = ringfold(["aggregate", "--engine", engine, str(path)]);
        prepare(&mut command);
        let error = end(&mut command).failure(1);
        assert!(
            error.starts_with("no io_uring: ") && error.contains(&words),
            "{error}"
        );
        assert!(error.ends_with("[EPERM]"), "{error}");
    }
}

/// As an administrator has it: for an ordinary user with 1, for root too with 2. It is the whole
/// machine's, so no other test may run.
#[test]
#[ignore = "forbids io_uring to the whole machine for a moment: make test-all runs it alone"]
fn io_uring_disabled_by_sysctl_for_real() {
    let test = "io_uring_disabled_by_sysctl_for_real";
    if skips(
        test,
        &[Feature::IoUring, Feature::OtherUser, Feature::Direct],
    ) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let want = end(&mut ringfold(["aggregate", str(&path)])).answer();
    for value in ["1", "2"] {
        let script = format!("before=$(cat {SYSCTL}) && echo {value} > {SYSCTL}");
        let held = match Held::new(dir.path(), &script, &format!("echo $before > {SYSCTL}")) {
            Ok(held) => held,
            Err(reason) => return skip(test, reason),
        };
        told_by_sysctl(value, &path, &want, &|command| {
            command.uid(NOBODY).gid(NOBODY);
        });
        if value == "2" {
            told_by_sysctl(value, &path, &want, &|_| ());
        }
        drop(held);
    }
}

/// The same for nobody else: a file in the sysctl's place, and a filter that refuses as it does.
#[test]
fn io_uring_disabled_by_sysctl() {
    let test = "io_uring_disabled_by_sysctl";
    if skips(test, &[Feature::IoUring, Feature::Seccomp, Feature::Direct]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let want = end(&mut ringfold(["aggregate", str(&path)])).answer();
    for value in ["1", "2"] {
        let script = format!("echo {value} > sysctl && mount --bind sysctl {SYSCTL}");
        let held = match Held::new(dir.path(), &script, ":") {
            Ok(held) => held,
            Err(reason) => return skip(test, reason),
        };
        let namespace = fs::File::open(held.namespace()).unwrap();
        told_by_sysctl(value, &path, &want, &|command| {
            sys::enter(command, namespace.try_clone().unwrap());
            sys::deny_calls(command, &[SETUP], libc::EPERM);
        });
    }
}

/// Filters know no younger calls than themselves: what they refuse has another way round.
#[test]
fn calls_that_a_container_lacks() {
    let test = "calls_that_a_container_lacks";
    if skips(test, &[Feature::Seccomp, Feature::Eviction]) {
        return;
    }
    let dir = dir();
    let text = STATIONS.repeat(40);
    let path = write(dir.path(), "file", &text);
    let want = end(&mut ringfold(["count", str(&path)])).answer();
    const CACHESTAT: libc::c_long = 451;
    for calls in [
        &[CACHESTAT][..],
        &[CACHESTAT, libc::SYS_mincore],
        &[libc::SYS_statx],
        &[libc::SYS_preadv2],
        &[libc::SYS_madvise],
        &[libc::SYS_clone3],
        &[libc::SYS_fadvise64, libc::SYS_sched_getaffinity],
        &[libc::SYS_renameat2, libc::SYS_linkat],
    ] {
        // Some C libraries take EPERM for the last word on clone3.
        let errnos = match calls {
            [libc::SYS_clone3] => &[libc::ENOSYS][..],
            _ => &[libc::ENOSYS, libc::EPERM],
        };
        for &errno in errnos {
            for way in WAYS.iter() {
                evict(&path, 0..text.len() as u64);
                let mut command = ringfold(["count"]);
                let numbers: Vec<u32> = calls.iter().map(|&call| call as u32).collect();
                sys::deny_calls(command.args(way.flags()).arg(&path), &numbers, errno);
                let got = end(&mut command).answer();
                assert!(got == want, "{calls:?} {errno} {way:?}");
            }
        }
    }
}
