//! Limits of the machine and its administrator: descriptors, processes, memory, locked memory, and
//! what a container's seccomp filter leaves.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use ringfold::Engine;

use crate::compressed::zstandard;
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
                let names_threads = error.contains("thread");
                assert!(names_threads, "{way:?}, {most} processes: {error}");
                lines += 1;
            }
        }
    }
    eprintln!("{answers} answers, {lines} lines");
    assert!(answers > 0 && lines > 0);
}

#[test]
fn little_memory_in_the_control_group() {
    let test = "little_memory_in_the_control_group";
    if skips(test, &[Feature::Plain]) {
        return;
    }
    let text = rows(2_000_000, None, 33);
    let dir = dir();
    let path = write(dir.path(), "file", &text);
    let want = end(&mut ringfold(["aggregate", str(&path)])).answer();
    let lines = end(&mut ringfold(["count", "-l", str(&path)])).answer();
    for mib in [16, 32, 64] {
        let group = match Group::new("memory", mib << 20) {
            Ok(group) => group,
            Err(reason) => return skip(test, reason.to_string()),
        };
        let is_promised = mib >= 64;
        if !is_promised {
            let mut command = ringfold(["aggregate", str(&path)]);
            group.take_in(&mut command);
            let error = end(&mut command).failure(1);
            let words =
                format!("the control group allows {mib} MiB of memory, and aggregate needs 64 MiB");
            assert!(error.starts_with(&words), "{error}");
        }
        for way in WAYS.iter() {
            evict(&path, 0..text.len() as u64);
            let mut command = match is_promised {
                true => ringfold(["aggregate"]),
                false => ringfold(["count", "-l"]),
            };
            group.take_in(command.args(way.flags()).arg(&path));
            let ended = end(&mut command);
            if ended.code == Some(0) {
                let want = if is_promised { &want } else { &lines };
                assert!(ended.answer() == *want, "{mib} MiB {way:?}");
            } else {
                // Whoever named it wanted all of it there.
                assert_eq!(way.engine, Engine::Memory, "{mib} MiB: {ended:?}");
                let error = ended.failure(1);
                assert!(error.contains("the control group allows"), "{error}");
            }
        }
    }
}

/// What the kernel would read ahead for one place in the file, where it tells.
fn read_ahead(path: &Path) -> Option<u64> {
    let device = fs::metadata(path).ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let kib = fs::read_to_string(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb")).ok()?;
    Some(kib.trim().parse::<u64>().ok()? << 10)
}

/// Whatever the machine has: workers, buffers and what is read ahead fit in, unless they were named.
#[test]
fn a_run_fits_itself_into_the_control_group() {
    let test = "a_run_fits_itself_into_the_control_group";
    if skips(test, &[Feature::MemoryGroup, Feature::Plain]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &rows(2_000_000, None, 33));
    let limit = 64 << 20;
    let group = Group::new("memory", limit).unwrap();
    let stats = |flags: &[&str]| -> serde_json::Value {
        let mut command = ringfold(["count", "--stats=json", "--engine", "read"]);
        group.take_in(command.args(flags).arg(&path));
        let (_, said) = end(&mut command).answer_and_notices();
        serde_json::from_str(&said).unwrap()
    };
    let own = stats(&[]);
    assert!(own["threads"].as_u64().unwrap() <= 8, "{own}");
    let buffers = own["buffers"].as_u64().unwrap() * own["block_size"].as_u64().unwrap();
    assert!((1..=limit / 8).contains(&buffers), "{own}");
    let file = fs::metadata(&path).unwrap().len();
    if let Some(ahead) = read_ahead(&path) {
        // One place, two windows, a quarter of the memory.
        let too_much = 2 * ahead.min(file) > limit / 4;
        let advised = own["fadvise"] == "random";
        assert_eq!(advised, too_much, "{own}");
        assert_eq!(own["readahead_bytes"].as_u64() > Some(0), too_much, "{own}");
    }
    // What was named holds.
    let named = stats(&["-j", "3", "-b", "128K", "--fadvise", "sequential"]);
    assert_eq!(named["threads"], 3);
    assert_eq!(named["block_size"], 128 << 10);
    assert_eq!(named["fadvise"], "sequential");
    assert_eq!(named["readahead_bytes"], 0);
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

/// The fewest KiB of addresses with which a run comes to its end. With fewer the program can't be loaded, or its allocator
/// has nothing.
fn least_address_space(path: &Path) -> u64 {
    let ends = |most: &u64| {
        let mut command = ringfold(["count", "-j", "2", "--engine", "read", str(path)]);
        command.env("MALLOC_ARENA_MAX", "1");
        sys::limit(&mut command, libc::RLIMIT_AS, most << 10);
        matches!(end(&mut command).code, Some(0 | 1))
    };
    let least = (8_000..200_000).step_by(140).find(ends);
    // Next to it the loader finds no memory now and then.
    least.expect("the program doesn't take 200 MB") + 700
}

/// As batch systems limit a job (`ulimit -v`).
#[test]
fn little_address_space_gives_the_answer_or_a_line() {
    let test = "little_address_space_gives_the_answer_or_a_line";
    if skips(test, &[Feature::Plain, Feature::Eviction]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &rows(3_000_000, None, 5));
    evict(&path, 0..1 << 30);
    let (want, how) = end(&mut ringfold(["count", "--stats", str(&path)])).answer_and_notices();
    let (mut answers, mut without_the_ring, mut lines) = (0, 0, 0);
    let least = least_address_space(&path).div_ceil(1 << 10);
    for most in (least..least + 76).step_by(4) {
        for way in WAYS.iter().filter(|way| way.engine != Engine::Memory) {
            evict(&path, 0..1 << 30);
            let mut command = ringfold(["count", "-j", "2"]);
            command.args(way.flags()).arg(&path);
            // The C library reserves addresses by the thread otherwise.
            command.env("MALLOC_ARENA_MAX", "1");
            sys::limit(&mut command, libc::RLIMIT_AS, most << 20);
            let ended = end(&mut command);
            match ended.code {
                Some(0) => {
                    let (got, said) = ended.answer_and_notices();
                    assert!(got == want && said.lines().count() <= 1, "{way:?}: {said}");
                    let by_pread = said.contains("no memory for 20 buffers");
                    without_the_ring += u32::from(way.engine == Engine::Auto && by_pread);
                    answers += 1;
                }
                Some(1) => {
                    let said = ended
                        .stderr
                        .lines()
                        .filter(|line| !line.contains("notice: "));
                    assert_eq!(said.count(), 1, "{way:?}: {}", ended.stderr);
                    assert!(ended.stdout.is_empty(), "{way:?}");
                    lines += 1;
                }
                _ => panic!("{way:?}: {ended:?}"),
            }
        }
    }
    eprintln!("{answers} answers, {without_the_ring} by pread, {lines} lines");
    assert!(lines > 0);
    assert!(without_the_ring > 0 || how.contains("no io_uring"), "{how}");
}

/// Tables, values and windows that find no memory end the run with a line, never by a signal.
#[test]
fn little_address_space_for_keys_gives_the_answer_or_a_line() {
    let test = "little_address_space_for_keys_gives_the_answer_or_a_line";
    if skips(test, &[Feature::Plain]) {
        return;
    }
    let dir = dir();
    let text = rows(150_000, Some(100_000), 5);
    let path = write(dir.path(), "file", &text);
    let packed = write(dir.path(), "file.zst", &zstandard(&text));
    let least = least_address_space(&path).div_ceil(1 << 10);
    let (mut answers, mut lines) = (0, 0);
    for job in [
        &["-d;", "-k1", "-amedian:2,distinct:2"][..],
        &["-d;", "-k1", "-asum:2"],
        &[],
    ] {
        for path in [&path, &packed] {
            let want = end(ringfold(["aggregate", "-q"]).args(job).arg(path)).answer();
            for most in (least + 8..least + 320).step_by(24) {
                let mut command = ringfold(["aggregate", "-q", "-j", "2"]);
                command.args(job).arg(path);
                sys::limit(&mut command, libc::RLIMIT_AS, most << 20);
                let ended = end(&mut command);
                match ended.code {
                    Some(0) => {
                        assert!(ended.answer() == want, "{job:?} {most} MiB");
                        answers += 1;
                    }
                    _ => {
                        let said = ended.failure(1);
                        let is_fault = said.contains("panicked") || said.contains("damaged");
                        assert!(!is_fault, "{job:?} {most} MiB: {said}");
                        lines += 1;
                    }
                }
            }
        }
    }
    assert!(answers > 0 && lines > 0, "{answers} answers, {lines} lines");
}

/// Where the limit falls between a thread's stack and the one for its signals the thread ends as it
/// begins, and by itself would take the program along.
#[test]
fn little_address_space_for_threads_gives_the_answer_or_a_line() {
    let test = "little_address_space_for_threads_gives_the_answer_or_a_line";
    if skips(test, &[Feature::Plain]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &rows(50_000, None, 5));
    let want = end(&mut ringfold(["count", str(&path)])).answer();
    // What a run with so many KiB of addresses comes to.
    let outcome = |most: u64| {
        let mut command = ringfold(["count", "-j", "2", "--engine", "read", str(&path)]);
        command.env("MALLOC_ARENA_MAX", "1");
        sys::limit(&mut command, libc::RLIMIT_AS, most << 10);
        let ended = end(&mut command);
        match ended.code {
            Some(0) => assert!(ended.stdout == want),
            Some(1) => assert_eq!(ended.stderr.lines().count(), 1, "{most} KiB: {ended:?}"),
            _ => panic!("{most} KiB: {ended:?}"),
        }
        ended.stderr
    };
    let (mut answers, mut lines, mut threads) = (0, 0, 0);
    let mut count = |said: &str| {
        answers += u32::from(said.is_empty());
        lines += u32::from(!said.is_empty());
        threads += u32::from(said.contains("no memory for one more thread"));
    };
    // From what the program itself takes up to where all fit. Where the outcome changes between two sizes it goes by
    // small steps.
    let least = least_address_space(&path);
    let mut before = outcome(least);
    let mut enough = 0;
    for most in (least..least + 78_000).step_by(140) {
        let said = outcome(most + 140);
        if said != before {
            for between in (most..most + 140).step_by(14) {
                count(&outcome(between));
            }
        }
        count(&said);
        enough += u32::from(said.is_empty());
        if enough == 20 {
            break;
        }
        before = said;
    }
    eprintln!(
        "{answers} answers, {lines} lines, {threads} of them by a thread that couldn't begin"
    );
    assert!(answers > 0 && lines > 0);
}

/// The lines of strace of such calls by a run.
fn calls_of(trace: &str, args: &[&str]) -> Vec<String> {
    let dir = dir();
    let to = dir.path().join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", trace, "-o", str(&to)]);
    let run = ringfold(args);
    end(command.arg(run.get_program()).args(run.get_args())).answer();
    let lines = fs::read_to_string(to).unwrap();
    lines.lines().map(str::to_string).collect()
}

/// Of many files on one device its read-ahead is looked up once.
#[test]
fn a_device_is_asked_once_for_its_read_ahead() {
    let test = "a_device_is_asked_once_for_its_read_ahead";
    if skips(test, &[Feature::Strace]) {
        return;
    }
    let dir = dir();
    let lookups = |files: usize| {
        let paths: Vec<PathBuf> = (0..files)
            .map(|n| write(dir.path(), &n.to_string(), b"a;1.0\n"))
            .collect();
        let mut args = vec!["count", "--engine=read", "--readahead=1M"];
        args.extend(paths.iter().map(|path| str(path)));
        let calls = calls_of("trace=openat", &args);
        let looks = calls.iter().filter(|call| call.contains("read_ahead_kb"));
        looks.count()
    };
    let one = lookups(1);
    assert!(one > 0);
    assert_eq!(lookups(100), one);
}

/// Each extent of a sparse file is read by itself, but the file's length is looked at once.
#[test]
fn a_file_of_many_extents_is_looked_at_once() {
    let test = "a_file_of_many_extents_is_looked_at_once";
    if skips(test, &[Feature::Strace]) {
        return;
    }
    let dir = dir();
    let looks = |extents: u64| {
        let path = dir.path().join("sparse");
        let file = fs::File::create(&path).unwrap();
        for n in 0..extents {
            std::os::unix::fs::FileExt::write_all_at(&file, b"a;1.0\n", n << 20).unwrap();
        }
        calls_of(
            "trace=fstat,newfstatat,statx",
            &["count", "--engine=pread", str(&path)],
        )
        .len()
    };
    assert_eq!(looks(2), looks(200));
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
    // Small files are simply read by auto, unless --direct is named.
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
    if skips(test, &[Feature::Seccomp, Feature::Eviction, Feature::Plain]) {
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

/// A file that grows beyond the limit on its size is an error with a line, and nothing of it is left.
#[test]
fn a_limit_on_the_size_of_files_is_an_error() {
    let dir = dir();
    let path = write(dir.path(), "f", &rows(30_000, Some(10_000), 7));
    let key = ["aggregate", "-d", ";", "-k", "1"];
    for flags in [
        &["-o", "answer"][..],
        &["--save-partial", "partial"],
        &["--memory", "0", "--spill-dir", "."],
        &["--continue", "state"],
    ] {
        let mut command = ringfold(key);
        command.args(flags).arg(&path).current_dir(dir.path());
        sys::limit(&mut command, libc::RLIMIT_FSIZE, 4096);
        let error = end(&mut command).failure(1);
        assert!(
            error.contains("File too large [EFBIG]"),
            "{flags:?}: {error}"
        );
        assert_eq!(names(dir.path()), ["f"], "{flags:?}");
    }
}
