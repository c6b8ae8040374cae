//! `ringfold probe` against the system's own files, and in the places where little can be known.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Resource, getrlimit};
use serde_json::Value;

use crate::disks::Loop;
use crate::group::Group;
use crate::probe::{Feature, has, skip, skips};
use crate::support::{cold, dir, end, end_of, feed, ringfold, rows, start, str, write};
use crate::sys::{self, ENTER, NOBODY, REGISTER, SETUP};

/// More than what is simply read, so that `auto` has a choice.
const LARGE: usize = 20 << 20;

/// What `probe --json` found.
struct Found(Value);

impl Found {
    #[track_caller]
    fn by(command: &mut Command) -> Found {
        let answer = end(command).answer();
        let found: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(found["schema"], 1);
        Found(found)
    }

    #[track_caller]
    fn of(path: &Path) -> Found {
        Found::by(ringfold(["probe", "--json"]).arg(path))
    }

    fn sections(&self) -> impl Iterator<Item = &Value> {
        self.0["sections"].as_array().unwrap().iter()
    }

    fn section(&self, name: &str) -> Option<&Value> {
        self.sections().find(|section| section["name"] == name)
    }

    /// The entry of a section.
    #[track_caller]
    fn entry(&self, section: &str, name: &str) -> &Value {
        let found = self.section(section);
        let found = found.and_then(|section| entries(section).find(|entry| entry["name"] == name));
        found.unwrap_or_else(|| panic!("no {section}: {name} in {:#}", self.0))
    }

    #[track_caller]
    fn value(&self, section: &str, name: &str) -> &Value {
        &self.entry(section, name)["value"]
    }

    #[track_caller]
    fn meaning(&self, section: &str, name: &str) -> &str {
        self.entry(section, name)["meaning"].as_str().unwrap()
    }

    fn summary(&self) -> String {
        let lines = self.0["summary"].as_array().unwrap().iter();
        let lines: Vec<_> = lines.map(|line| line.as_str().unwrap()).collect();
        lines.join("\n")
    }
}

fn entries(section: &Value) -> impl Iterator<Item = &Value> {
    section["entries"].as_array().unwrap().iter()
}

/// A small file of the system, trimmed.
fn system(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_string())
}

fn number(path: impl AsRef<Path>) -> Option<u64> {
    system(path)?.parse().ok()
}

/// A file whose pages are all written, and cached if nobody needs the memory.
fn large(dir: &Path) -> PathBuf {
    write(dir, "large", &b"key;1.0\n".repeat(LARGE / 8))
}

// What the probe says is true.

#[test]
fn the_machine_as_the_system_has_it() {
    let found = Found::by(&mut ringfold(["probe", "--json"]));
    let names: Vec<_> = found.sections().map(|s| s["name"].clone()).collect();
    assert_eq!(names, ["kernel", "user", "memory", "processor"]);

    let release = rustix::system::uname();
    assert_eq!(
        found.value("kernel", "release"),
        &*release.release().to_string_lossy()
    );
    assert_eq!(found.value("kernel", "io_uring"), has(Feature::IoUring));
    if let Some(sysctl) = number("/proc/sys/kernel/io_uring_disabled") {
        assert_eq!(found.value("kernel", "io_uring_disabled"), sysctl);
    }
    if has(Feature::IoUring) {
        let opcodes = found.value("kernel", "opcodes").as_str().unwrap();
        assert!(opcodes.contains("read"), "{opcodes}");
    }

    assert_eq!(
        found.value("user", "uid"),
        rustix::process::geteuid().as_raw()
    );
    for (name, resource) in [
        ("locked memory", Resource::Memlock),
        ("open files", Resource::Nofile),
    ] {
        let value = found.value("user", name);
        match getrlimit(resource).current {
            Some(limit) => assert_eq!(value, limit, "{name}"),
            None => assert_eq!(value, "no limit", "{name}"),
        }
    }

    if let Some(meminfo) = system("/proc/meminfo") {
        let field = |name: &str| {
            let line = meminfo.lines().find(|line| line.starts_with(name)).unwrap();
            let value = line.split_ascii_whitespace().nth(1).unwrap();
            value.parse::<u64>().unwrap()
        };
        let total = found.entry("memory", "total");
        assert_eq!(total["value"], field("MemTotal:") * 1024);
        assert_eq!(total["unit"], "bytes");
        let pool = found.value("memory", "hugetlb pool");
        assert_eq!(pool, field("HugePages_Total:"));
    }
    if let Some(thp) = system("/sys/kernel/mm/transparent_hugepage/enabled") {
        let chosen = found.value("memory", "THP").as_str().unwrap();
        assert!(thp.contains(&format!("[{chosen}]")), "{thp}: {chosen}");
        if chosen == "never" {
            assert_eq!(found.value("memory", "huge pages"), 0);
        }
    }
    if let Some(nodes) = system("/sys/devices/system/node/online") {
        assert_eq!(found.value("memory", "NUMA nodes"), &*nodes);
    }
}

#[test]
fn a_file_and_its_device_as_the_system_has_them() {
    let dir = dir();
    let path = large(dir.path());
    let found = Found::of(&path);
    assert_eq!(found.section("file").unwrap()["subject"], str(&path));
    assert_eq!(found.value("file", "kind"), "regular file");
    assert_eq!(found.value("file", "size"), LARGE as u64);
    assert_eq!(found.value("file", "O_DIRECT"), has(Feature::Direct));

    for device in found.sections().filter(|s| s["name"] == "device") {
        let Some(number_of) = entries(device).find(|entry| entry["name"] == "number") else {
            continue;
        };
        let link = Path::new("/sys/dev/block").join(number_of["value"].as_str().unwrap());
        let link = link.canonicalize().unwrap();
        let disk = match link.join("partition").exists() {
            true => link.parent().unwrap().to_path_buf(),
            false => link.clone(),
        };
        assert_eq!(
            system(link.join("dev")).as_deref(),
            number_of["value"].as_str()
        );
        for entry in entries(device) {
            let name = entry["name"].as_str().unwrap();
            let file = disk.join("queue").join(name);
            let Some(text) = system(&file) else { continue };
            match &entry["value"] {
                Value::Number(value) => assert_eq!(value.to_string(), text, "{name}"),
                Value::Bool(value) => assert_eq!(u8::from(*value).to_string(), text, "{name}"),
                Value::String(value) => {
                    assert!(
                        text == *value || text.contains(&format!("[{value}]")),
                        "{name}"
                    );
                }
                other => panic!("{name}: {other}, but {} can be read", file.display()),
            }
        }
        let poll = entries(device)
            .find(|entry| entry["name"] == "poll queues")
            .unwrap();
        if let Some(polls) = number(disk.join("queue/io_poll")) {
            assert_eq!(poll["value"], polls != 0);
        }
    }

    let meta = fs::metadata(&path).unwrap();
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    if major != 0 && Path::new(&format!("/sys/dev/block/{major}:{minor}")).exists() {
        assert_eq!(
            found.value("device", "number"),
            &*format!("{major}:{minor}")
        );
    }
    let bdi = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    if let Some(kib) = number(bdi).filter(|_| major != 0) {
        assert_eq!(found.value("file", "read-ahead"), kib * 1024);
    }
}

/// The segments that the issue is about: the number of requests is the quotient, rounded up.
#[test]
fn what_follows_from_max_segments() {
    let dir = dir();
    let found = Found::of(&write(dir.path(), "file", b"a;1.0\n"));
    let Some(device) = found.section("device") else {
        return;
    };
    let entry = |name: &str| entries(device).find(|entry| entry["name"] == name);
    let Some(segments) = entry("max_segments").and_then(|entry| entry["value"].as_u64()) else {
        skip(
            "what_follows_from_max_segments",
            "no device below the tests' directory",
        );
        return;
    };
    let meaning = entry("max_segments").unwrap()["meaning"].as_str().unwrap();
    let want = match 128u64.div_ceil(segments) {
        1 => "one request".to_string(),
        n => format!("{n} requests: keep huge pages on"),
    };
    assert!(meaning.contains(&want), "{meaning}");
}

#[test]
fn text_and_json_agree() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    let found = Found::of(&path);
    let all = end(ringfold(["probe", "--all"]).arg(&path)).answer();
    let text = String::from_utf8(all).unwrap();
    for line in text.lines().filter(|line| !line.starts_with("try: ")) {
        assert!(
            line.chars().count() <= 100 && line.trim_end() == line,
            "{line}"
        );
    }
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    let all = squeezed(&text);
    let mut lines = text.lines();
    for section in found.sections() {
        let name = section["name"].as_str().unwrap();
        let title = match &section["subject"] {
            Value::String(subject) => format!("{name} {subject}"),
            _ => name.to_string(),
        };
        assert!(lines.any(|line| line == title), "{title} in {text}");
        for entry in entries(section) {
            let name = entry["name"].as_str().unwrap();
            let begins = format!("  {name}  ");
            let line = lines.find(|line| line.starts_with(&begins));
            let line = line.unwrap_or_else(|| panic!("{name} in {text}"));
            let shown = line[begins.len()..].trim_start();
            let value = match (&entry["value"], entry["unit"].as_str()) {
                (Value::Null, _) => "?".to_string(),
                (Value::Bool(true), _) => "yes".into(),
                (Value::Bool(false), _) => "no".into(),
                (Value::String(value), _) => value[..value.len().min(40)].to_string(),
                (Value::Number(value), None) => value.to_string(),
                (Value::Number(value), _) if value.as_u64().is_some_and(|n| n < 1024) => {
                    format!("{value} bytes")
                }
                (value, unit) => {
                    assert!(value.is_number(), "{value} {unit:?}");
                    continue;
                }
            };
            assert!(shown.starts_with(&value), "{name}: {value} in {line}");
            // What may change between two runs.
            if !["total", "resident", "large folios"].contains(&name) {
                let meaning = squeezed(entry["meaning"].as_str().unwrap());
                assert!(all.contains(&meaning), "{meaning} in {text}");
            }
        }
    }
    for line in found.summary().lines() {
        assert!(all.contains(&squeezed(line)), "{line} in {text}");
    }
}

/// What auto does, what is in the way, and what to change: in a few lines, and more by `--all`.
#[test]
fn the_verdict_comes_first() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    let found = Found::of(&path);
    let text = String::from_utf8(end(ringfold(["probe"]).arg(&path)).answer()).unwrap();
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    let first = found.summary().lines().next().unwrap().to_string();
    assert!(squeezed(&text).starts_with(&squeezed(&first)), "{text}");
    let checks = found.0["checks"].as_array().unwrap();
    assert!(!checks.is_empty());
    for check in checks {
        let mark = match check["mark"].as_str().unwrap() {
            "good" => '+',
            "fair" => '~',
            "bad" => '!',
            other => panic!("{other}"),
        };
        let what = check["what"].as_str().unwrap();
        let begins = format!("  {mark} {}", &what[..what.len().min(30)]);
        assert!(
            text.lines().any(|line| line.starts_with(&begins)),
            "{begins} in {text}"
        );
        assert_eq!(check["advice"].is_null(), mark == '+', "{check}");
        let advice = squeezed(check["advice"].as_str().unwrap_or_default());
        assert!(squeezed(&text).contains(&advice), "{advice} in {text}");
    }
    assert!(
        text.ends_with("all details: --all\n") && !text.contains("release"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "colours where there is no terminal");
}

/// What the summary says of `auto` is what a run says that it did.
#[test]
fn auto_does_what_the_summary_says() {
    let dir = dir();
    let mut paths = vec![
        write(dir.path(), "small", b"a;1.0\n"),
        large(dir.path()),
        PathBuf::from("/proc/version"),
    ];
    if has(Feature::Eviction) && has(Feature::IoUring) {
        paths.push(cold(dir.path(), "cold", &b"key;1.0\n".repeat(LARGE / 8)));
    }
    for path in paths.iter().filter(|path| path.exists()) {
        // Somebody else may need the memory in between: what is cached changes then.
        let agrees = || {
            let summary = Found::of(path).summary();
            let mut count = ringfold(["count", "--stats=json"]);
            let (_, stats) = end(count.arg(path)).answer_and_notices();
            let json = stats.lines().find(|line| line.starts_with('{')).unwrap();
            let stats: Value = serde_json::from_str(json).unwrap();
            let reason = stats["engine_reason"].as_str().unwrap();
            summary.contains(&format!(": auto: {reason}"))
        };
        assert!((0..4).any(|_| agrees()), "{}", path.display());
    }
}

#[test]
fn a_look_brings_next_to_nothing_into_the_page_cache() {
    if skips(
        "a_look_brings_next_to_nothing_into_the_page_cache",
        &[Feature::Eviction],
    ) {
        return;
    }
    let dir = dir();
    let path = cold(dir.path(), "cold", &b"key;1.0\n".repeat(LARGE / 8));
    let before = Found::of(&path);
    if has(Feature::OtherUser) {
        Found::by(
            ringfold(["probe", "--json"])
                .arg(&path)
                .uid(NOBODY)
                .gid(NOBODY),
        );
    }
    let after = Found::of(&path);
    if let Some(share) = before.value("file", "resident").as_f64() {
        assert_eq!(share, 0.0);
        assert!(after.value("file", "resident").as_f64().unwrap() < 2.0);
    }
}

#[test]
fn a_cached_file_stays_so() {
    let dir = dir();
    let path = large(dir.path());
    let share = || Found::of(&path).value("file", "resident").as_f64();
    // Somebody else may need the memory in between.
    let stays = || match (share(), share()) {
        (Some(first), Some(second)) => second >= first,
        _ => true,
    };
    assert!((0..4).any(|_| stays()));
}

// Where little can be known.

#[test]
fn a_blocked_ring_is_told_with_its_cause() {
    if skips("a_blocked_ring_is_told_with_its_cause", &[Feature::Seccomp]) {
        return;
    }
    let dir = dir();
    let path = dir.path().join("sparse");
    // More than stays in the page cache.
    File::create(&path).unwrap().set_len(1 << 40).unwrap();
    for (calls, errno, words) in [
        (&[SETUP, ENTER, REGISTER][..], libc::EPERM, "EPERM"),
        (&[SETUP], libc::ENOSYS, "ENOSYS"),
        (&[REGISTER], libc::EPERM, "io_uring_register"),
        (&[ENTER], libc::EPERM, "io_uring_enter"),
    ] {
        let mut command = ringfold(["probe", "--json"]);
        sys::deny_calls(command.arg(&path), calls, errno);
        let found = Found::by(&mut command);
        assert_eq!(found.value("kernel", "io_uring"), false);
        let worst = &found.0["checks"][0];
        assert_eq!(worst["mark"], "bad");
        assert!(worst["what"].as_str().unwrap().contains(words), "{worst}");
        let meaning = found.meaning("kernel", "io_uring");
        assert!(
            meaning.contains(words) && meaning.contains("pread"),
            "{meaning}"
        );
        for name in [
            "features",
            "opcodes",
            "COOP_TASKRUN",
            "DEFER_TASKRUN",
            "SQPOLL",
            "IOPOLL",
        ] {
            assert!(found.value("kernel", name).is_null(), "{name}");
            assert!(found.meaning("kernel", name).starts_with("unknown: "));
        }
        let summary = found.summary();
        assert!(
            summary.contains("pread, because there is no io_uring"),
            "{summary}"
        );
        assert!(
            summary.contains("try: ringfold count --engine pread"),
            "{summary}"
        );
    }
}

#[test]
fn an_ordinary_user_learns_of_the_limits() {
    if skips(
        "an_ordinary_user_learns_of_the_limits",
        &[Feature::OtherUser],
    ) {
        return;
    }
    let dir = dir();
    let path = large(dir.path());
    let mut command = ringfold(["probe", "--json"]);
    command.arg(&path).uid(NOBODY).gid(NOBODY);
    sys::limit(&mut command, libc::RLIMIT_MEMLOCK, 3 << 20);
    sys::limit(&mut command, libc::RLIMIT_NOFILE, 100);
    let found = Found::by(&mut command);
    assert_eq!(found.value("user", "uid"), NOBODY);
    assert_eq!(found.value("user", "open files"), 100);
    assert_eq!(found.value("user", "locked memory"), 3 << 20);
    let meaning = found.meaning("user", "locked memory");
    assert!(
        meaning.starts_with("enough to register 3 buffers of 512 KiB; "),
        "{meaning}"
    );
    assert!(meaning.contains("ulimit -l"), "{meaning}");
    assert_eq!(found.value("file", "size"), LARGE as u64);
    assert_eq!(found.value("file", "O_DIRECT"), has(Feature::Direct));
}

/// Where the kernel allows no locked memory, the advice is about that.
#[test]
fn without_locked_memory_its_limit_is_named() {
    let test = "without_locked_memory_its_limit_is_named";
    if skips(test, &[Feature::OtherUser, Feature::IoUring]) {
        return;
    }
    let dir = dir();
    let path = large(dir.path());
    let mut command = ringfold(["probe"]);
    command.arg(&path).uid(NOBODY).gid(NOBODY);
    sys::limit(&mut command, libc::RLIMIT_MEMLOCK, 0);
    let told = String::from_utf8(end(&mut command).answer()).unwrap();
    assert!(told.contains("ulimit -l"), "{told}");
    assert!(!told.contains("seccomp"), "{told}");
}

/// As many buffers as are said to fit are registered, and one more isn't.
#[test]
fn what_is_said_to_fit_in_locked_memory_does() {
    let test = "what_is_said_to_fit_in_locked_memory_does";
    if skips(test, &[Feature::OtherUser, Feature::IoUring]) {
        return;
    }
    let dir = dir();
    let path = large(dir.path());
    const LIMIT: u64 = 8 << 20;
    // Somebody else's limit: what other tests lock as nobody counts together.
    let user = NOBODY - 7;
    let run = |args: &[&str]| {
        let mut command = ringfold(args);
        command.arg(&path).uid(user).gid(user);
        sys::limit(&mut command, libc::RLIMIT_MEMLOCK, LIMIT);
        command
    };
    let found = Found::by(&mut run(&["probe", "--json"]));
    let meaning = found.meaning("user", "locked memory");
    let words = meaning.strip_prefix("enough to register ").unwrap();
    let fit: u64 = words.split(' ').next().unwrap().parse().unwrap();
    let registered = |buffers: u64| {
        let buffers = buffers.to_string();
        let mut command = run(&["count", "--engine", "uring", "--stats=json"]);
        command.args(["--queue-depth", "2", "--buffers", &buffers]);
        let (_, stats) = end(&mut command).answer_and_notices();
        let stats: Value = serde_json::from_str(&stats).unwrap();
        let all_huge = stats["huge_page_bytes"] == stats["buffer_bytes"];
        (stats["registered_buffers"] == true, all_huge)
    };
    // Locked memory of a run that has just ended is given back late.
    assert!((0..20).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        registered(fit).0
    }));
    // Only huge pages are charged whole.
    let (more, all_huge) = registered(fit + 1);
    assert!(!more || !all_huge, "{meaning}");
}

/// The buffers and workers that are shown are those of a run, in a small control group too.
#[test]
fn buffers_in_a_small_control_group() {
    let test = "buffers_in_a_small_control_group";
    if skips(
        test,
        &[Feature::MemoryGroup, Feature::IoUring, Feature::Plain],
    ) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "rows", &rows(3_000_000, None, 5));
    for (mib, block) in [(24, "64 KiB"), (64, "")] {
        let group = Group::new("memory", mib << 20).unwrap();
        let mut command = ringfold(["probe", "--json"]);
        group.take_in(command.arg(&path));
        let found = Found::by(&mut command);
        let worst = &found.0["checks"][0];
        let is_small =
            worst["mark"] == "bad" && worst["what"].as_str().unwrap().contains("group allows");
        assert_eq!(is_small, mib < 64, "{worst}");
        let mut command = ringfold(["count", "--engine=uring", "--stats=json"]);
        group.take_in(command.arg(&path));
        let (_, stats) = end(&mut command).answer_and_notices();
        let stats: Value = serde_json::from_str(&stats).unwrap();
        let said = match stats["block_size"].as_u64().unwrap() >> 10 {
            kib @ 0..1024 => format!("{kib} KiB"),
            kib => format!("{} MiB", kib >> 10),
        };
        assert!(block.is_empty() || said == block, "{stats}");
        let registers = format!("registers {} of {said} (", stats["buffers"]);
        let meaning = found.meaning("user", "locked memory");
        assert!(meaning.contains(&registers), "{meaning}: {stats}");
        let fits = format!("(threads: {}, buffers of {said})", stats["threads"]);
        let meaning = found.meaning("user", "cgroup memory");
        assert!(meaning.ends_with(&fits), "{meaning}: {stats}");
        let blocks = format!(" blocks of {said}");
        let meaning = found.meaning("file", "size");
        assert!(meaning.ends_with(&blocks), "{meaning}: {stats}");
    }
}

#[test]
fn a_file_in_memory() {
    if skips("a_file_in_memory", &[Feature::Tmpfs]) {
        return;
    }
    let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    fs::write(file.path(), b"a;1.0\n").unwrap();
    let found = Found::of(file.path());
    assert_eq!(found.value("file", "file system"), "tmpfs");
    assert_eq!(found.value("device", "device"), &Value::Null);
    assert!(found.meaning("device", "device").contains("in memory"));
}

#[test]
fn a_block_device_with_sectors_of_4_kib() {
    let test = "a_block_device_with_sectors_of_4_kib";
    if skips(test, &[Feature::OtherUser]) {
        return;
    }
    let dir = dir();
    let backing = dir.path().join("backing");
    File::create(&backing).unwrap().set_len(16 << 20).unwrap();
    let device = match Loop::with_sectors(&backing, 4096) {
        Ok(device) => device,
        Err(reason) => return skip(test, reason),
    };
    if !fs::metadata(&device.0).is_ok_and(|meta| meta.file_type().is_block_device()) {
        return skip(test, format_args!("{} doesn't show up", device.0.display()));
    }
    if let Err(error) = File::open(&device.0) {
        return skip(test, format_args!("{}: {error}", device.0.display()));
    }
    let found = Found::of(&device.0);
    assert_eq!(found.value("file", "kind"), "block device");
    assert_eq!(found.value("file", "size"), 16 << 20);
    assert_eq!(found.value("file", "O_DIRECT"), true);
    assert_eq!(found.value("file", "alignment"), 4096);
    assert_eq!(found.value("device", "logical_block_size"), 4096);
    assert_eq!(found.value("device", "stands on"), str(&backing));
    let name = device.0.file_name().unwrap().to_str().unwrap();
    if let Some(kib) = number(format!("/sys/block/{name}/queue/read_ahead_kb")) {
        assert_eq!(found.value("file", "read-ahead"), kib * 1024);
    }
}

#[test]
fn streams_are_not_opened() {
    let dir = dir();
    let fifo = dir.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    if made.is_ok_and(|status| status.success()) {
        // A reader that opened it would wait here for a writer.
        let found = Found::of(&fifo);
        assert_eq!(found.value("file", "kind"), "pipe");
        assert!(found.value("file", "size").is_null());
        assert!(found.summary().contains("streams are read by read()"));
    }
    let found = Found::of(Path::new("/dev/null"));
    assert_eq!(found.value("file", "kind"), "character device");
    if has(Feature::Procfs) {
        let found = Found::of(Path::new("/proc/version"));
        assert_eq!(found.value("file", "kind"), "unsized file");
        assert_eq!(found.value("file", "file system"), "proc");
    }
}

#[test]
fn standard_input() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    let mut command = ringfold(["probe", "--json", "-"]);
    let found = Found::by(command.stdin(File::open(&path).unwrap()));
    assert_eq!(found.value("file", "kind"), "regular file");
    assert_eq!(found.value("file", "size"), 6);

    let mut child = start(ringfold(["probe", "--json", "-"]).stdin(Stdio::piped()));
    feed(&mut child, b"a;1.0\n".to_vec());
    let found: Value = serde_json::from_slice(&end_of(child).answer()).unwrap();
    assert_eq!(Found(found).value("file", "kind"), "pipe");
}

/// Whoever reads standard input next finds it as it was.
#[test]
fn the_position_of_standard_input_stays() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    let stdin = File::open(&path).unwrap();
    let mut command = ringfold(["probe", "-"]);
    end(command.stdin(stdin.try_clone().unwrap())).answer();
    assert_eq!(rustix::fs::tell(&stdin).unwrap(), 0);
}

#[test]
fn an_empty_file_and_an_odd_name() {
    let dir = dir();
    let path = write(dir.path(), "it's\n$HOME", b"");
    let found = Found::of(&path);
    assert!(found.value("file", "size").is_null() || found.value("file", "size") == 0);
    let text = String::from_utf8(end(ringfold(["probe"]).arg(&path)).answer()).unwrap();
    assert!(text.contains(r"it\'s\x0a$HOME'"), "{text}");
}

#[test]
fn several_files() {
    let dir = dir();
    let (a, b) = (
        write(dir.path(), "a", b"a;1.0\n"),
        write(dir.path(), "b", b"b;22.0\n"),
    );
    let found = Found::by(ringfold(["probe", "--json"]).args([&a, &b]));
    let subjects = found.sections().filter(|section| section["name"] == "file");
    let subjects: Vec<_> = subjects.map(|section| section["subject"].clone()).collect();
    assert_eq!(subjects, [str(&a), str(&b)]);
}

// What can't be opened.

#[test]
fn a_file_that_cannot_be_opened_is_an_error() {
    let dir = dir();
    let good = write(dir.path(), "good", b"a;1.0\n");
    let missing = dir.path().join("missing");
    let below = good.join("below");
    for (bad, cause) in [
        (missing.as_path(), "No such file or directory [ENOENT]"),
        (dir.path(), "Is a directory [EISDIR]"),
        (below.as_path(), "Not a directory [ENOTDIR]"),
    ] {
        for flags in [&["probe"][..], &["probe", "--json"]] {
            let error = end(ringfold(flags).args([&good, bad])).failure(1);
            let again = match bad.is_dir() {
                true => {
                    let [good, bad] = [str(&good), str(bad)];
                    format!(": try `ringfold {} {good} {bad}/*`", flags.join(" "))
                }
                false => String::new(),
            };
            assert_eq!(error, format!("{}: {cause}{again}", str(bad)));
        }
    }
    let secret = write(dir.path(), "secret", b"a;1.0\n");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    if !skips(
        "a_file_that_cannot_be_opened_is_an_error",
        &[Feature::OtherUser],
    ) {
        let mut command = ringfold(["probe"]);
        let error = end(command.arg(&secret).uid(NOBODY).gid(NOBODY)).failure(1);
        assert_eq!(
            error,
            format!("{}: Permission denied [EACCES]", str(&secret))
        );
    }
}
