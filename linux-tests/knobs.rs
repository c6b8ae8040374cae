//! The kernel's switches: the same answer under all of them, one line where one is refused, and
//! proof that each reaches the kernel.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ringfold::job::Count;
use ringfold::{Engine, HugePages, Input, Knobs};
use serde_json::{Value, json};

use crate::probe::{self, Feature, skips};
use crate::reference::{self, Style};
use crate::support::{
    STATIONS, WAYS, Way, cold, dir, end, end_of, evict, feed, ringfold, start, str, write,
};
use crate::sys::{self, NOBODY, SETUP};

/// The first processor that this process may use, as on the command line.
fn some_cpu() -> String {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu));
    cpu.unwrap().to_string()
}

/// A knob, the engines that it is without effect on, and what this machine must have for it to be
/// granted; without that it may be refused.
struct Knob {
    flags: Vec<String>,
    idle_on: &'static [Engine],
    needs: Option<Feature>,
}

const NO_RING: &[Engine] = &[Engine::Read, Engine::Pread, Engine::Mmap, Engine::Memory];
const NO_MAP: &[Engine] = &[
    Engine::Uring,
    Engine::UringRaw,
    Engine::Read,
    Engine::Pread,
    Engine::Memory,
];
const NO_AHEAD: &[Engine] = &[Engine::Uring, Engine::UringRaw, Engine::Memory];

fn knobs() -> Vec<Knob> {
    let knob = |flags: &str, idle_on: &'static [Engine], needs: Option<Feature>| Knob {
        flags: flags.split(' ').map(String::from).collect(),
        idle_on,
        needs,
    };
    let cpu = some_cpu();
    vec![
        knob("--dontcache", &[], Some(Feature::DontCache)),
        knob("--huge-pages thp", &[], Some(Feature::TransparentHuge)),
        knob("--huge-pages hugetlb", &[], None),
        knob("--huge-pages off", &[], None),
        knob("--registered-buffers on", NO_RING, None),
        knob("--registered-buffers off", NO_RING, None),
        knob("--sqpoll", NO_RING, Some(Feature::SqPoll)),
        knob(&format!("--sqpoll={cpu}"), NO_RING, Some(Feature::SqPoll)),
        knob("--async", NO_RING, Some(Feature::IoUring)),
        knob("--async=2", NO_RING, Some(Feature::CoopTaskRun)),
        knob("--task-run coop", NO_RING, Some(Feature::CoopTaskRun)),
        knob("--task-run defer", &[], Some(Feature::DeferTaskRun)),
        knob("--registered-files", &[], Some(Feature::IoUring)),
        knob("--rings 3", &[], Some(Feature::IoUring)),
        knob("--iopoll", &[], None),
        knob("--entries 2", NO_RING, Some(Feature::IoUring)),
        knob("--entries 100", NO_RING, Some(Feature::IoUring)),
        knob("--fadvise sequential", &[], None),
        knob("--fadvise random", &[], None),
        knob("--fadvise noreuse", &[], None),
        knob("--fadvise willneed", &[], None),
        knob("--fadvise dontneed", &[], None),
        knob("--readahead 64K", NO_AHEAD, None),
        knob("--populate on", NO_MAP, None),
        knob("--populate off", NO_MAP, None),
        knob("--map-advice normal", NO_MAP, None),
        knob("--map-advice sequential", NO_MAP, None),
        knob("--map-advice random", NO_MAP, None),
        knob("--map-advice willneed", NO_MAP, None),
        knob("--map-advice hugepage", NO_MAP, None),
        knob("--map-advice collapse", NO_MAP, None),
        knob(&format!("--pin {cpu}"), &[], None),
    ]
}

/// What may be refused by kernel, file system or limits although the engine heeds it.
const MAY_BE_REFUSED: [&str; 5] = [
    "--iopoll",
    "--huge-pages hugetlb",
    "--registered-buffers on",
    "--map-advice hugepage",
    "--map-advice collapse",
];

/// Whether a knob and a way contradict each other.
fn contradictory(flags: &str, way: Way) -> bool {
    let reading = ["--fadvise", "--readahead", "--dontcache"];
    let raw_only = [
        "--task-run defer",
        "--registered-files",
        "--rings 3",
        "--iopoll",
    ];
    (way.direct && reading.iter().any(|flag| flags.starts_with(flag)))
        || (way.engine != Engine::UringRaw && raw_only.contains(&flags))
        || (flags == "--iopoll" && !way.direct)
        || (flags == "--dontcache" && matches!(way.engine, Engine::Mmap | Engine::Memory))
}

#[test]
fn the_answer_is_the_same_under_every_knob() {
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let want = reference::aggregate(&[&*STATIONS], b';', 1 << 20).text(Style::OneBrc);
    for way in WAYS.iter() {
        for knob in knobs() {
            let flags = knob.flags.join(" ");
            let mut command = ringfold(["aggregate", "-b", "16K", "--stats=json"]);
            command.args(way.flags()).args(&knob.flags).arg(&path);
            if contradictory(&flags, *way) {
                let error = end(&mut command).failure(2);
                let flag = &*knob.flags[0];
                assert!(error.contains(flag), "{way:?} {flags}: {error}");
                continue;
            }
            let idle = knob.idle_on.contains(&way.engine);
            let granted = knob.needs.is_none_or(probe::has);
            let ended = end(&mut command);
            let refusable = MAY_BE_REFUSED.contains(&&*flags) || !granted;
            if ended.code == Some(1) && refusable && !idle {
                let error = ended.failure(1);
                assert!(error.contains(&knob.flags[0]), "{way:?} {flags}: {error}");
                continue;
            }
            let (answer, stats) = ended.answer_and_notices();
            assert!(answer == want, "{way:?} {flags}");
            let stats: Value = serde_json::from_str(&stats).unwrap();
            let listed = stats["without_effect"].as_array().unwrap();
            let flag = knob.flags[0].split('=').next().unwrap();
            // What auto does depends on what is cached.
            if way.engine != Engine::Auto {
                let expected = if idle { vec![json!(flag)] } else { Vec::new() };
                assert_eq!(listed, &expected, "{way:?} {flags}: {stats}");
            }
        }
    }
}

#[test]
fn several_knobs_at_once() {
    if skips(
        "several_knobs_at_once",
        &[Feature::SqPoll, Feature::CoopTaskRun],
    ) {
        return;
    }
    let dir = dir();
    let paths: Vec<PathBuf> = (0..3)
        .map(|n| write(dir.path(), &n.to_string(), &STATIONS[n * 1000..]))
        .collect();
    let plain = end(ringfold(["count", "--engine", "read"]).args(&paths)).answer();
    for flags in [
        "--sqpoll --async=1 --registered-buffers off --huge-pages off",
        "--task-run coop --async --entries 1 -b 4K",
        "--sqpoll --entries 32 --queue-depth 32 -b 4K --direct",
        "--task-run coop --async=3 --direct --huge-pages off",
    ] {
        if flags.contains("--direct") && !probe::has(Feature::Direct) {
            continue;
        }
        for _ in 0..10 {
            let mut command = ringfold(["count", "--engine", "uring"]);
            command.args(flags.split(' ')).args(&paths);
            assert!(end(&mut command).answer() == plain, "{flags}");
        }
    }
}

fn stats(flags: &str, path: &Path) -> Value {
    let mut command = ringfold(["count", "--stats=json"]);
    command.args(flags.split(' ')).arg(path);
    let (_, said) = end(&mut command).answer_and_notices();
    serde_json::from_str(&said).unwrap()
}

#[test]
fn stats_tell_what_was_granted() {
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS.repeat(16));
    let plain = stats("--engine pread", &path);
    assert_eq!(plain["entries"], 0);
    for name in ["sqpoll", "task_run", "fadvise", "map_advice"] {
        assert_eq!(plain[name], Value::Null, "{plain}");
    }
    let cpu = some_cpu();
    let pinned = stats(&format!("--engine pread --pin {cpu},{cpu}"), &path);
    let number: u32 = cpu.parse().unwrap();
    assert_eq!(pinned["pinned_cpus"], json!([number, number]));
    assert_eq!(pinned["threads"], 2, "a worker for each CPU of the list");
    let advised = stats("--engine pread --fadvise sequential --readahead 1M", &path);
    assert_eq!(advised["fadvise"], "sequential");
    let len = fs::metadata(&path).unwrap().len();
    assert_eq!(advised["readahead_bytes"], len, "each byte once");
    let mapped = stats("--engine mmap --map-advice random", &path);
    assert_eq!(mapped["map_advice"], "random");
    let small = stats("--engine read --huge-pages off", &path);
    assert_eq!(
        (&small["huge_page_bytes"], &small["huge_pages"]),
        (&json!(0), &json!(""))
    );
    if !skips("thp in stats", &[Feature::TransparentHuge]) {
        let mut command = ringfold(["count", "--stats=json", "--engine", "read"]);
        let ended = end(command.args(["--huge-pages", "thp"]).arg(&path));
        match ended.code {
            Some(0) => {
                let stats: Value = serde_json::from_str(&ended.stderr).unwrap();
                assert_eq!(stats["huge_page_bytes"], stats["buffer_bytes"]);
                assert_eq!(stats["huge_pages"], "thp");
            }
            _ => assert!(ended.failure(1).contains("--huge-pages thp")),
        }
    }
    if !skips("dontcache in stats", &[Feature::DontCache]) {
        assert_eq!(stats("--engine read --dontcache", &path)["dontcache"], true);
    }
    if skips(
        "the ring's in stats",
        &[Feature::SqPoll, Feature::CoopTaskRun],
    ) {
        return;
    }
    let polled = stats(
        &format!("--engine uring --sqpoll={cpu} --entries 20"),
        &path,
    );
    assert_eq!(polled["entries"], 32, "rounded up to a power of two");
    let thread = polled["sqpoll"].as_str().unwrap();
    assert!(
        thread.starts_with("iou-sqp-") && thread.ends_with(&format!(" on CPU {cpu}")),
        "{thread}"
    );
    let punted = stats("--engine uring --async=2 --task-run coop", &path);
    assert_eq!(punted["async_reads"], true);
    assert_eq!(punted["async_workers_allowed"], 2);
    let workers = punted["async_workers"].as_u64().unwrap();
    assert!((1..=2).contains(&workers), "{punted}");
    assert_eq!(punted["task_run"], "coop");
    let off = stats("--engine uring --registered-buffers off", &path);
    assert_eq!(off["registered_buffers"], false);
}

#[test]
fn the_table_tells_it_too() {
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let table = |flags: &str| {
        let mut command = ringfold(["count", "--stats=full"]);
        command.args(flags.split(' ')).arg(&path);
        end(&mut command).answer_and_notices().1
    };
    let cpu = some_cpu();
    let said = table(&format!(
        "--engine pread --pin {cpu} --fadvise random --readahead 64K"
    ));
    for words in [
        &format!("pinned to CPU {cpu} in turn"),
        "fadvise random",
        "read ahead",
    ] {
        assert!(said.contains(words), "{said}");
    }
    let said = table("--engine mmap --map-advice normal --sqpoll");
    for words in ["madvise normal", "without effect  --sqpoll"] {
        assert!(said.contains(words), "{said}");
    }
    if skips("the_table_tells_it_too", &[Feature::SqPoll]) {
        return;
    }
    let said = table("--engine uring --sqpoll --async --entries 8");
    for words in ["8 entries", "polled by iou-sqp-", "kernel workers"] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn contradictions_are_usage_errors() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    for (flags, words) in [
        ("--direct --dontcache", &["--direct", "--dontcache"][..]),
        ("--direct --fadvise random", &["--direct", "--fadvise"]),
        ("--direct --readahead 1M", &["--direct", "--readahead"]),
        (
            "--dontcache --readahead 1M",
            &["--dontcache", "--readahead"],
        ),
        (
            "--dontcache --fadvise willneed",
            &["--dontcache", "--fadvise willneed"],
        ),
        ("--dontcache --engine mmap", &["--dontcache", "mmap"]),
        ("--dontcache --engine memory", &["--dontcache", "memory"]),
        ("--sqpoll --task-run coop", &["--sqpoll", "--task-run"]),
        (
            "--entries 8 --queue-depth 9",
            &["--entries 8", "--queue-depth 9"],
        ),
        ("--entries 0", &["--entries 0", "1 to"]),
        ("--entries 32769", &["--entries 32769", "32768"]),
        ("--async=0", &["--async 0", "1 to"]),
        (
            "--task-run defer",
            &["--task-run defer", "--engine auto", "uring-raw"],
        ),
        (
            "--task-run defer --engine uring",
            &["--task-run defer", "--engine uring:", "uring-raw"],
        ),
        (
            "--registered-files --engine uring",
            &["--registered-files", "uring-raw"],
        ),
    ] {
        for job in ["aggregate", "count"] {
            let mut command = ringfold([job]);
            let error = end(command.args(flags.split(' ')).arg(&path)).failure(2);
            for word in words {
                assert!(error.contains(word), "{flags}: {error} lacks {word}");
            }
        }
    }
    for flags in [
        "--huge-pages many",
        "--fadvise often",
        "--map-advice fold",
        "--populate maybe",
        "--registered-buffers yes",
        "--task-run late",
        "--pin x",
        "--pin 3-1",
        "--sqpoll=x",
        "--readahead 1Q",
    ] {
        let ended = end(ringfold(["count"]).args(flags.split(' ')).arg(&path));
        assert_eq!(ended.code, Some(2), "{flags}: {}", ended.stderr);
        let flag = flags.split([' ', '=']).next().unwrap();
        assert!(
            ended.stdout.is_empty() && ended.stderr.contains(flag),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn help_groups_them_and_names_kernels() {
    let help = end(&mut ringfold(["aggregate", "--help-io"])).answer();
    let help = String::from_utf8(help).unwrap();
    let (_, kernel) = help.split_once("I/O: the ring").expect(&help);
    for flag in [
        "--registered-buffers",
        "--registered-files",
        "--sqpoll",
        "--async",
        "--task-run",
        "--entries",
        "--dontcache",
        "--fadvise",
        "--readahead",
        "--populate",
        "--map-advice",
        "--huge-pages",
        "--pin",
    ] {
        assert!(kernel.contains(flag), "no {flag} in {kernel}");
    }
    assert!(kernel.contains("Linux 6.14") && kernel.contains("Helps"));
}

// Refusals.

#[test]
fn processors_that_are_not_there() {
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    for cpus in ["1023", "60000", &format!("{},1023", some_cpu())] {
        for way in WAYS.iter() {
            let mut command = ringfold(["count", "--pin", cpus]);
            let error = end(command.args(way.flags()).arg(&path)).failure(1);
            assert!(
                error.starts_with("--pin ") && error.ends_with("[EINVAL]"),
                "{error}"
            );
        }
    }
    if skips("processors_that_are_not_there", &[Feature::SqPoll]) {
        return;
    }
    let error = end(ringfold(["count", "--engine", "uring", "--sqpoll=60000"]).arg(&path));
    let error = error.failure(1);
    assert!(
        error.starts_with("--sqpoll=60000: ") && error.ends_with("[EINVAL]"),
        "{error}"
    );
}

#[test]
fn a_file_system_that_refuses_dontcache() {
    if skips("a_file_system_that_refuses_dontcache", &[Feature::Tmpfs]) {
        return;
    }
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = write(dir.path(), "file", &STATIONS);
    for engine in ["auto", "uring", "read", "pread"] {
        if engine == "uring" && !probe::has(Feature::IoUring) {
            continue;
        }
        let mut command = ringfold(["aggregate", "--engine", engine, "--dontcache"]);
        let ended = end(command.arg(&path));
        // A later kernel may grant it.
        if ended.code == Some(0) {
            let test = "a_file_system_that_refuses_dontcache";
            return probe::skip(test, "tmpfs grants it here");
        }
        let error = ended.failure(1);
        assert!(error.starts_with(&format!("{}: ", str(&path))), "{error}");
        assert!(error.contains("(--dontcache)"), "{error}");
        assert!(error.ends_with("[EOPNOTSUPP]"), "{error}");
    }
}

#[test]
fn huge_pages_that_are_not_granted() {
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS.repeat(40));
    for engine in ["uring", "read", "pread", "memory"] {
        if engine == "uring" && !probe::has(Feature::IoUring) {
            continue;
        }
        let run = |pages: &str| {
            let mut command = ringfold(["count", "--stats=json", "--huge-pages", pages]);
            sys::deny_huge_pages(command.args(["--engine", engine]).arg(&path));
            end(&mut command)
        };
        let error = run("thp").failure(1);
        assert!(error.starts_with("--huge-pages thp: "), "{error}");
        assert!(error.contains("leave it out"), "{error}");
        let (_, stats) = run("auto").answer_and_notices();
        let stats: Value = serde_json::from_str(&stats).unwrap();
        assert_eq!(stats["huge_page_bytes"], 0, "{engine}");
        assert_eq!(stats["huge_pages"], "", "{engine}");
    }
}

#[test]
fn an_empty_pool_of_huge_pages() {
    let free = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    let free: u64 = fs::read_to_string(free).map_or(0, |free| free.trim().parse().unwrap());
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS.repeat(40));
    for engine in ["uring", "read", "pread", "memory"] {
        if engine == "uring" && !probe::has(Feature::IoUring) {
            continue;
        }
        let mut command = ringfold(["count", "--stats=json", "--huge-pages", "hugetlb"]);
        let ended = end(command.args(["--engine", engine]).arg(&path));
        if free >= 64 {
            let (_, stats) = ended.answer_and_notices();
            let stats: Value = serde_json::from_str(&stats).unwrap();
            assert_eq!(stats["huge_pages"], "hugetlb");
            assert_eq!(stats["huge_page_bytes"], stats["buffer_bytes"]);
        } else if free == 0 {
            let error = ended.failure(1);
            assert!(error.starts_with("--huge-pages hugetlb: "), "{error}");
            assert!(error.contains("vm.nr_hugepages"), "{error}");
        }
    }
}

#[test]
fn buffers_that_may_not_be_locked() {
    let test = "buffers_that_may_not_be_locked";
    if skips(test, &[Feature::IoUring, Feature::OtherUser]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS.repeat(8));
    let run = |flags: &str, kib: u64| {
        let mut command = ringfold(["count", "--engine", "uring", "--stats=json"]);
        command.args(flags.split(' ')).arg(&path);
        command.uid(NOBODY - 3).gid(NOBODY);
        sys::limit(&mut command, libc::RLIMIT_MEMLOCK, kib << 10);
        end(&mut command)
    };
    let error = run("--registered-buffers on", 512).failure(1);
    assert!(error.starts_with("--registered-buffers on: "), "{error}");
    assert!(error.contains("ulimit -l"), "{error}");
    assert!(error.ends_with("[ENOMEM]"), "{error}");
    let (_, stats) = run("--registered-buffers auto", 512).answer_and_notices();
    assert!(stats.contains("\"registered_buffers\":false"), "{stats}");
    // The way out that the error names.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock);
    if limit.maximum.is_none_or(|limit| limit >= 8 << 20) {
        let (_, stats) = run("--registered-buffers on -b 64K", 8 << 10).answer_and_notices();
        assert!(stats.contains("\"registered_buffers\":true"), "{stats}");
    }
}

/// `auto` gives up the ring with a notice, but not a knob that only the ring has.
#[test]
fn a_knob_of_a_ring_that_is_blocked() {
    let test = "a_knob_of_a_ring_that_is_blocked";
    if skips(test, &[Feature::Seccomp, Feature::Eviction]) {
        return;
    }
    let dir = dir();
    let rows = STATIONS.repeat(48);
    for flags in [
        "--sqpoll",
        "--async",
        "--entries 8",
        "--registered-buffers on",
    ] {
        for engine in ["auto", "uring"] {
            let path = cold(dir.path(), "file", &rows);
            let mut command = ringfold(["count", "--engine", engine]);
            command.args(flags.split(' ')).arg(&path);
            sys::deny_calls(&mut command, &[SETUP], libc::EPERM);
            let error = end(&mut command).failure(1);
            assert!(error.contains("no io_uring: "), "{error}");
            assert!(error.ends_with("[EPERM]"), "{error}");
            if engine == "auto" {
                let flag = flags.split(' ').next().unwrap();
                assert!(error.starts_with(&format!("{flag}: ")), "{error}");
            }
        }
    }
}

#[test]
fn pipes_have_no_such_knobs() {
    for (flags, words) in [
        ("--dontcache", "--dontcache"),
        ("--readahead 1M", "--readahead"),
        ("--fadvise sequential", "--fadvise sequential"),
    ] {
        let mut command = ringfold(["count"]);
        let mut child = start(command.args(flags.split(' ')).stdin(Stdio::piped()));
        feed(&mut child, STATIONS.clone());
        let error = end_of(child).failure(1);
        assert!(error.starts_with("-: ") && error.contains(words), "{error}");
    }
    // These are about what a pipe has no part in.
    let mut command = ringfold(["count", "--stats=json", "--async", "--populate", "off"]);
    let mut child = start(command.stdin(Stdio::piped()));
    feed(&mut child, STATIONS.clone());
    let (_, said) = end_of(child).answer_and_notices();
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["without_effect"], json!(["--async", "--populate"]));
}

#[test]
fn files_that_are_empty_are_no_reason_to_refuse() {
    let dir = dir();
    let path = write(dir.path(), "empty", b"");
    for engine in ["auto", "read", "pread"] {
        for flags in ["--readahead 1M", "--fadvise noreuse", "--huge-pages off"] {
            let mut command = ringfold(["count", "--engine", engine]);
            end(command.args(flags.split(' ')).arg(&path)).answer();
        }
    }
}

// What a knob does.

/// Whether a byte is in the page cache.
fn is_cached(path: &Path, at: u64) -> bool {
    let file = fs::File::open(path).unwrap();
    let mut byte = [0];
    let nowait = rustix::io::ReadWriteFlags::NOWAIT;
    rustix::io::preadv2(
        &file,
        &mut [std::io::IoSliceMut::new(&mut byte)],
        at,
        nowait,
    )
    .is_ok()
}

#[test]
fn dontcache_leaves_nothing_in_the_page_cache() {
    let test = "dontcache_leaves_nothing_in_the_page_cache";
    if skips(test, &[Feature::DontCache, Feature::Eviction]) {
        return;
    }
    let dir = dir();
    let rows = STATIONS.repeat(48);
    let middle = rows.len() as u64 / 2;
    for engine in ["auto", "uring", "read", "pread"] {
        if engine == "uring" && !probe::has(Feature::IoUring) {
            continue;
        }
        for (flags, stays) in [("--dontcache", false), ("--fadvise normal", true)] {
            // auto without it would read past the page cache.
            if engine == "auto" && stays {
                continue;
            }
            let is_left = || {
                let path = cold(dir.path(), "file", &rows);
                let mut command = ringfold(["count", "-l", "--engine", engine]);
                let out = end(command.args(flags.split(' ')).arg(&path)).answer();
                let lines = rows.iter().filter(|&&byte| byte == b'\n').count();
                assert_eq!(
                    String::from_utf8(out).unwrap(),
                    format!("{lines} {}\n", str(&path))
                );
                is_cached(&path, middle)
            };
            // Others may need the memory in between; or the kernel has a page in its hands, as where
            // it looks for memory, and then it neither evicts it before nor drops it behind the read.
            let as_told = (0..8).any(|_| is_left() == stays);
            assert!(as_told, "{engine} {flags}");
        }
    }
}

#[test]
fn a_run_can_begin_cold() {
    let test = "a_run_can_begin_cold";
    if skips(
        test,
        &[Feature::Eviction, Feature::IoUring, Feature::Direct],
    ) {
        return;
    }
    let dir = dir();
    let path = cold(dir.path(), "file", &STATIONS.repeat(48));
    // Others may need the memory in between.
    let is_warm = || {
        fs::read(&path).unwrap();
        stats("--engine auto", &path)["dispatched_bytes"] == 0
    };
    assert!((0..8).any(|_| is_warm()));
    fs::read(&path).unwrap();
    let cold = stats("--engine auto --fadvise dontneed --entries 32", &path);
    assert!(cold["dispatched_bytes"].as_u64() > Some(10 << 20), "{cold}");
    assert_eq!(cold["entries"], 32);
    assert_eq!(cold["without_effect"], json!([]));
}

/// The library runs on its caller's thread, and leaves it as it was.
#[test]
fn the_callers_thread_is_given_back_as_it_was() {
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS.repeat(16));
    let before = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu: u32 = some_cpu().parse().unwrap();
    for way in WAYS.iter() {
        for pin in [vec![cpu], vec![cpu, 1023]] {
            let refused = pin.len() > 1;
            let config = ringfold::Config {
                knobs: Knobs {
                    pin,
                    huge_pages: HugePages::Off,
                    ..Knobs::default()
                },
                ..way.config()
            };
            let input = Input::open([&path]).unwrap();
            let ran = ringfold::fold(&input, &config, &Count { delimiter: b'\n' });
            assert_eq!(ran.is_err(), refused, "{way:?}");
            assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), before);
        }
    }
}

// That each knob reaches the kernel.

/// The lines of strace for these calls.
fn trace(calls: &str, flags: &str, path: &Path) -> String {
    let dir = dir();
    let log = dir.path().join("log");
    let program = ringfold(["count"]);
    let mut command = Command::new("strace");
    command
        .args(["-f", "-s", "0", "-e", &format!("trace={calls}"), "-o"])
        .arg(&log)
        .arg(program.get_program())
        // The look for compressed files gives advice of its own.
        .args(["count", "--no-decompress"])
        .args(flags.split(' '))
        .arg(path);
    let ended = end(&mut command);
    assert_eq!(ended.code, Some(0), "{flags}: {}", ended.stderr);
    fs::read_to_string(log).unwrap()
}

#[test]
fn each_knob_reaches_the_kernel() {
    if skips("each_knob_reaches_the_kernel", &[Feature::Strace]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS.repeat(16));
    let cpu = some_cpu();
    let (ring, mem) = ("io_uring_setup,io_uring_register", "madvise,mmap");
    let pin = format!("--engine pread --pin {cpu}");
    let polled = format!("--engine uring --sqpoll={cpu}");
    let affinity = format!("[{cpu}]");
    let polled_by = format!("sq_thread_cpu={cpu}");
    for (needs, calls, flags, with, without) in [
        (None, "sched_setaffinity", &*pin, &[&*affinity][..], &[][..]),
        (
            None,
            "fadvise64",
            "--engine pread --fadvise sequential",
            &["POSIX_FADV_SEQUENTIAL"],
            &[],
        ),
        (
            None,
            "fadvise64",
            "--engine read --fadvise random",
            &["POSIX_FADV_RANDOM"],
            &[],
        ),
        (
            None,
            "fadvise64",
            "--engine pread --fadvise noreuse",
            &["POSIX_FADV_NOREUSE"],
            &[],
        ),
        (
            None,
            "fadvise64",
            "--engine read --fadvise willneed",
            &["POSIX_FADV_WILLNEED"],
            &[],
        ),
        (
            None,
            "fadvise64",
            "--engine mmap --fadvise dontneed",
            &["POSIX_FADV_DONTNEED"],
            &[],
        ),
        (
            None,
            "fadvise64",
            "--engine mmap --readahead 1M",
            &["POSIX_FADV_WILLNEED"],
            &[],
        ),
        (
            None,
            "fadvise64",
            "--engine read --readahead 1M",
            &["POSIX_FADV_WILLNEED"],
            &[],
        ),
        (
            None,
            "madvise",
            "--engine mmap --populate on",
            &["MADV_POPULATE_READ"],
            &[],
        ),
        (
            None,
            "madvise",
            "--engine mmap",
            &[],
            &["MADV_POPULATE_READ"],
        ),
        (
            None,
            "madvise",
            "--engine mmap --map-advice sequential",
            &["MADV_SEQUENTIAL"],
            &[],
        ),
        (
            None,
            "madvise",
            "--engine mmap --map-advice random",
            &["MADV_RANDOM"],
            &[],
        ),
        (
            None,
            "madvise",
            "--engine mmap --map-advice willneed",
            &["MADV_WILLNEED"],
            &[],
        ),
        (
            None,
            mem,
            "--engine read --huge-pages off",
            &["MADV_NOHUGEPAGE"],
            &["MAP_HUGETLB"],
        ),
        (
            Some(Feature::TransparentHuge),
            mem,
            "--engine read --huge-pages thp",
            &["MADV_HUGEPAGE", "MADV_POPULATE_WRITE"],
            &[],
        ),
        (
            Some(Feature::Direct),
            "openat",
            "--engine read --direct",
            &["O_DIRECT"],
            &[],
        ),
        (
            Some(Feature::Direct),
            "openat",
            "--engine pread --direct",
            &["O_DIRECT"],
            &[],
        ),
        (
            Some(Feature::DontCache),
            "preadv2",
            "--engine pread --dontcache",
            &["preadv2("],
            &[],
        ),
        (
            Some(Feature::DontCache),
            "preadv2,read",
            "--engine read --dontcache",
            &["preadv2("],
            &[],
        ),
        (
            Some(Feature::IoUring),
            ring,
            "--engine uring --entries 100",
            &["io_uring_setup(128,"],
            &["SQPOLL,"],
        ),
        (
            Some(Feature::IoUring),
            ring,
            "--engine uring",
            &["IORING_REGISTER_BUFFERS"],
            &["IOWQ"],
        ),
        (
            Some(Feature::CoopTaskRun),
            ring,
            "--engine uring --task-run coop",
            &["flags=IORING_SETUP_COOP_TASKRUN"],
            &[],
        ),
        (
            Some(Feature::CoopTaskRun),
            ring,
            "--engine uring --async=3",
            &["IORING_REGISTER_IOWQ_MAX_WORKERS"],
            &[],
        ),
        (
            Some(Feature::SqPoll),
            ring,
            &*polled,
            &[
                "IORING_SETUP_SQPOLL",
                "IORING_SETUP_SQ_AFF",
                &*polled_by,
                "IORING_SETUP_ATTACH_WQ",
            ],
            &[],
        ),
    ] {
        if needs.is_some_and(|feature| skips(flags, &[feature])) {
            continue;
        }
        let log = trace(calls, flags, &path);
        for words in with {
            assert!(log.contains(words), "{flags}: no {words} in\n{log}");
        }
        for words in without {
            assert!(!log.contains(words), "{flags}: {words} in\n{log}");
        }
    }
    if !skips("registered-buffers off", &[Feature::IoUring]) {
        // The probe registers eight bytes; the arena isn't.
        let log = trace(ring, "--engine uring --registered-buffers off", &path);
        assert_eq!(log.matches("IORING_REGISTER_BUFFERS,").count(), 1, "{log}");
    }
    if !skips("dontcache flags", &[Feature::DontCache]) {
        // strace may know 0x80 by name.
        let log = trace(
            "preadv2",
            "--engine pread --dontcache --no-decompress",
            &path,
        );
        let started = log.matches("preadv2(").count();
        let flagged = log.matches("0x80").count() + log.matches("RWF_DONTCACHE").count();
        assert!(started > 1 && flagged == started, "{log}");
    }
}

/// Kernels that lack a switch, and files that can't be read so, as strace plays them.
#[test]
fn what_other_kernels_refuse_is_named() {
    let test = "what_other_kernels_refuse_is_named";
    if skips(test, &[Feature::Strace, Feature::IoUring, Feature::Plain]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let log = dir.path().join("log");
    let pin = format!("--pin {}", some_cpu());
    for (inject, flags, words) in [
        // The plainest ring, tried second to tell who is to blame, is granted.
        (
            "io_uring_setup:error=EINVAL:when=1+2",
            "--engine uring --task-run coop",
            &["--task-run coop: ", "Linux 5.19", "[EINVAL]"][..],
        ),
        (
            "io_uring_setup:error=EPERM:when=1+2",
            "--engine uring --sqpoll",
            &["--sqpoll: ", "CAP_SYS_NICE", "[EPERM]"],
        ),
        (
            "io_uring_setup:error=EINVAL:when=1+2",
            "--engine uring --entries 4096",
            &["--entries 4096: ", "lower it", "[EINVAL]"],
        ),
        (
            "io_uring_setup:error=EINVAL",
            "--engine uring --sqpoll",
            &["no io_uring: ", "[EINVAL]"],
        ),
        (
            "io_uring_register:error=EINVAL:when=3",
            "--engine uring --async=2",
            &["--async=2: ", "Linux 5.15", "[EINVAL]"],
        ),
        (
            "madvise:error=EINVAL",
            "--engine mmap --populate on",
            &["--populate on", "Linux 5.14", "[EINVAL]"],
        ),
        (
            "madvise:error=EINVAL",
            "--engine mmap --map-advice collapse",
            &["--map-advice collapse", "leave it out", "[EINVAL]"],
        ),
        (
            "madvise:error=EINVAL",
            "--engine auto --map-advice hugepage",
            &["--map-advice hugepage", "[EINVAL]"],
        ),
        (
            "madvise:error=EINVAL",
            "--engine read --huge-pages thp",
            &["--huge-pages thp: ", "[EINVAL]"],
        ),
        (
            "fadvise64:error=EINVAL",
            "--engine read --fadvise noreuse",
            &["--fadvise noreuse", "[EINVAL]"],
        ),
        (
            "preadv2:error=EOPNOTSUPP",
            "--engine pread --dontcache",
            &["--dontcache", "6.14", "[EOPNOTSUPP]"],
        ),
        (
            "sched_setaffinity:error=EPERM",
            &*pin,
            &["--pin ", "[EPERM]"],
        ),
    ] {
        let mut command = Command::new("strace");
        command
            .args(["-f", "-e", &format!("inject={inject}"), "-o"])
            .arg(&log)
            .arg(ringfold(["count"]).get_program())
            .arg("count")
            .args(flags.split(' '))
            .arg(&path);
        let error = end(&mut command).failure(1);
        for word in words {
            assert!(error.contains(word), "{flags}: {error} lacks {word}");
        }
    }
}

/// Where O_DIRECT is refused, auto reads through the page cache and leaves nothing there.
#[test]
fn auto_leaves_nothing_where_o_direct_is_refused() {
    let needs = [
        Feature::Strace,
        Feature::IoUring,
        Feature::Direct,
        Feature::DontCache,
        Feature::Eviction,
    ];
    if probe::skips("auto_leaves_nothing_where_o_direct_is_refused", &needs) {
        return;
    }
    let dir = dir();
    let text = STATIONS.repeat((16 << 20) / STATIONS.len() + 1);
    let path = cold(dir.path(), "cold", &text);
    let log = dir.path().join("log");
    let traced = |options: &[&str]| {
        let program = ringfold([""; 0]);
        let mut command = std::process::Command::new("strace");
        command.args(["-o", log.to_str().unwrap(), "-e", "trace=openat"]);
        command.args(options).arg(program.get_program());
        command
            .args(["count", "--cache=none", "--stats=json"])
            .arg(&path);
        command
    };
    // strace fails calls by their number, so the call is looked for first. The second try fails too,
    // by the descriptor.
    end(&mut traced(&[])).answer_and_notices();
    let calls = std::fs::read_to_string(&log).unwrap();
    let mut opens = calls.lines().filter(|line| line.starts_with("openat("));
    let number = opens.position(|line| line.contains("O_DIRECT")).unwrap() + 1;
    evict(&path, 0..text.len() as u64);
    let fault = format!("inject=openat:error=EINVAL:when={number}..{}", number + 1);
    let (_, said) = end(&mut traced(&["-e", &fault])).answer_and_notices();
    let (notice, stats) = said.split_once('\n').unwrap();
    for words in ["O_DIRECT", "EINVAL", "leaving nothing there"] {
        assert!(notice.contains(words), "{notice}");
    }
    let stats: Value = serde_json::from_str(stats).unwrap();
    assert_eq!(stats["dontcache"], true, "{stats}");
}
