//! Queries of more groups than memory: they go to files, in every engine, and the answer is the same to the byte.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use ringfold::query::{Query, Sort};
use ringfold::report::grid::{GridFormat, write_grid};
use ringfold::{Config, Input, fold};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::answers::fifo;
use crate::catalogue::are_all_wanted;
use crate::group::Group;
use crate::memory::outgrows;
use crate::probe::{self, Feature, skips};
use crate::support::{WAYS, dir, end, end_of, evict, names, ringfold, start, str, write};

/// So many rows of about so many groups: keys of two parts, long ones and none, numbers of different scales, quotes.
fn text(rows: u64, groups: u64) -> Vec<u8> {
    let mut text = b"one,two,number,text\n".to_vec();
    for row in 0..rows {
        let mixed = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let group = mixed % groups;
        let long = "x".repeat(if group.is_multiple_of(5) { 40 } else { 0 });
        let two = if group.is_multiple_of(11) {
            String::new()
        } else {
            format!("\"{},{}\"", group % 7, group % 13)
        };
        let number = match row % 9 {
            0 => String::new(),
            1 => format!("-{}.{:03}", mixed % 1000, mixed % 997),
            2 => format!("{mixed}{mixed}.5"),
            _ => format!("{}.{}", mixed % 10_000, mixed % 10),
        };
        writeln!(
            text,
            "k{group}{long},{two},{number},\"a \"\"{}\"\"\nb\"",
            mixed % 100
        )
        .unwrap();
    }
    text
}

const ASKED: [&str; 5] = [
    "-H",
    "-k",
    "one,two",
    "-a",
    "count,sum:number,mean:number,stddev:number,first:text,lexmax:text,max:number",
];

fn query() -> Query {
    let mut query = Query::new(b',')
        .quote(Some(b'"'))
        .header(true)
        .key("one")
        .key("two");
    query = query.aggregate("count", None).unwrap();
    for (name, column) in [
        ("sum", "number"),
        ("mean", "number"),
        ("first", "text"),
        ("last", "text"),
    ] {
        query = query.aggregate(name, Some(column.into())).unwrap();
    }
    query
}

/// The answer as CSV, and whether groups went to files.
fn answer(query: &Query, input: &Input, config: &Config, sort: &Sort) -> (Vec<u8>, bool) {
    let (mut answer, _) = fold(input, config, &query.plan(input, config).unwrap()).unwrap();
    answer.sort(sort, None).unwrap();
    let mut csv = Vec::new();
    write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
    answer.check().unwrap();
    (csv, answer.spilled_bytes > 0)
}

#[test]
fn any_memory_gives_the_same_answer_in_every_engine() {
    let dir = dir();
    let paths = [
        write(dir.path(), "first.csv", &text(8_000, 3_000)),
        write(dir.path(), "second.csv", &text(4_000, 2_000)),
    ];
    let spill = tempfile::tempdir_in(dir.path()).unwrap();
    let by_value = Sort::read("sum_number:desc,count").unwrap();
    let input = Input::open(&paths).unwrap();
    let want = [Sort::Key, by_value.clone()].map(|sort| {
        let (want, is_outgrown) = answer(&query(), &input, &Config::default(), &sort);
        assert!(!is_outgrown && want.len() > 100_000);
        want
    });
    for way in WAYS.iter() {
        for (threads, block) in [(1, 4096), (4, 4096), (4, 1 << 16)] {
            // A half of the second file is read from the device.
            if probe::has(Feature::Eviction) {
                evict(&paths[1], 0..1 << 16);
            }
            let config = Config {
                threads: Some(threads),
                block_size: Some(block),
                ..way.config()
            };
            for (memory, sort, want) in [(0, &Sort::Key, &want[0]), (200_000, &by_value, &want[1])]
            {
                let query = query().memory(memory).spill_directory(spill.path());
                let input = Input::open(&paths).unwrap();
                let (got, is_outgrown) = answer(&query, &input, &config, sort);
                assert!(
                    is_outgrown && got == *want,
                    "{way:?} {threads} {block} {memory}"
                );
            }
        }
    }
    assert_eq!(names(spill.path()), [""; 0]);
}

const KEYS: u64 = 700_000;

/// A file of so many groups, two rows each, and its answers in the order of keys and by value.
fn many() -> &'static (TempDir, PathBuf, [Vec<u8>; 2]) {
    static MANY: LazyLock<(TempDir, PathBuf, [Vec<u8>; 2])> = LazyLock::new(|| {
        let dir = dir();
        let mut text = Vec::new();
        for row in 0..2 * KEYS {
            let mixed = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            writeln!(
                text,
                "key{},{}.{},{}",
                row % KEYS,
                mixed % 10_000,
                mixed % 100,
                row % 3
            )
            .unwrap();
        }
        let path = write(dir.path(), "many.csv", &text);
        let answers = [&[][..], &["--sort", "max_2:desc"]]
            .map(|sort| end(ringfold(MANY_ASKED).args(sort).arg(&path)).answer());
        (dir, path, answers)
    });
    &MANY
}

const MANY_ASKED: [&str; 7] = [
    "aggregate",
    "--memory",
    "8G",
    "-k",
    "1",
    "-a",
    "count,sum:2,max:2",
];

/// The limit would have the kernel kill a run that keeps its groups in memory.
#[test]
fn millions_of_groups_under_a_control_group() {
    let test = "millions_of_groups_under_a_control_group";
    if skips(test, &[Feature::MemoryGroup, Feature::Plain]) {
        return;
    }
    let (_, path, [by_key, by_value]) = many();
    let asked = ["aggregate", "-k", "1", "-a", "count,sum:2,max:2"];
    let top: Vec<u8> = by_value
        .split_inclusive(|&byte| byte == b'\n')
        .take(301)
        .flatten()
        .copied()
        .collect();
    // 64 is the least that is promised. With more, less goes to files.
    let limits = if are_all_wanted() {
        &[64, 160][..]
    } else {
        &[64]
    };
    for mib in limits {
        let group = Group::new("memory", mib << 20).unwrap();
        for (engine, flags, want) in [
            ("auto", &[][..], by_key),
            ("uring", &["--sort", "max_2:desc"], by_value),
            ("pread", &["--sort", "max_2:desc", "--top", "300"], &top),
            ("mmap", &["--having", "count > 0"], by_key),
        ] {
            let mut run = ringfold(asked);
            run.args(flags).args(["--engine", engine, str(path)]);
            outgrows(&group, run, want, &format!("{mib} MiB, {engine}"));
        }
    }
}

#[test]
fn no_room_to_spill_is_told() {
    let dir = dir();
    let path = write(dir.path(), "rows.csv", &text(60_000, 30_000));
    let nowhere = dir.path().join("nowhere");
    let mut command = ringfold(["aggregate", "--memory", "1M", "--spill-dir", str(&nowhere)]);
    let want = format!(
        "the keys take more than 1 MiB of memory (--memory) and can't be written to {}: No such file or directory \
         [ENOENT]: name a directory with free space by --spill-dir",
        nowhere.display()
    );
    assert_eq!(end(command.args(ASKED).arg(&path)).failure(1), want);

    if skips("no_room_to_spill_is_told", &[Feature::Overlay]) {
        return;
    }
    // Full while groups are spilled, while they are merged, and while they are sorted: until there is room enough.
    let place = crate::support::dir();
    let (mut full, mut fit) = (0, 0);
    for kib in [64, 1_000, 4_000, 8_000, 11_000, 14_000, 60_000] {
        for sort in [&[][..], &["--sort", "sum_number"]] {
            let mut shell = Command::new("unshare");
            let mount = format!("mount -t tmpfs -o size={kib}k none \"$0\" && exec \"$@\"");
            shell.args(["--mount", "sh", "-c", &mount, str(place.path())]);
            let run = ringfold(["aggregate", "--memory", "1M"]);
            shell
                .arg(run.get_program())
                .args(run.get_args())
                .args(ASKED)
                .args(sort)
                .arg(&path);
            let ended = end(shell.arg("--spill-dir").arg(place.path()));
            match ended.code {
                Some(0) => fit += 1,
                _ => {
                    let said = ended.failure(1);
                    assert!(said.contains("No space left on device [ENOSPC]"), "{said}");
                    full += 1;
                }
            }
        }
    }
    assert!(full >= 4 && fit >= 2, "{full} {fit}");
}

/// An output that can't take the answer leaves nothing.
#[test]
fn a_full_output_is_told() {
    if skips(
        "a_full_output_is_told",
        &[Feature::Overlay, Feature::DevFull],
    ) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "rows.csv", &text(60_000, 30_000));
    let run = || {
        let mut run = ringfold(["aggregate", "-q", "--memory", "1M"]);
        run.args(ASKED).args(["--sort", "count"]).arg(&path);
        run
    };
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let child = run().stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let said = end_of(child).failure(1);
    assert!(said.contains("No space left on device [ENOSPC]"), "{said}");

    let place = crate::support::dir();
    let mut shell = Command::new("unshare");
    let mount =
        "mount -t tmpfs -o size=200k none \"$0\" && \"$@\"; code=$?; ls -A \"$0\" >&2; exit $code";
    shell.args(["--mount", "sh", "-c", mount, str(place.path())]);
    let run = run();
    shell.arg(run.get_program()).args(run.get_args());
    // Nothing else is told, no file's name either.
    let said = end(shell.arg("-o").arg(place.path().join("out.csv"))).failure(1);
    assert!(said.contains("No space left on device [ENOSPC]"), "{said}");
}

/// The files without names that a child has open in a directory, as they can be opened.
fn open_files(child: &Child, directory: &Path) -> Vec<PathBuf> {
    let files = format!("/proc/{}/fd", child.id());
    let directory = fs::canonicalize(directory).unwrap();
    let files = fs::read_dir(files)
        .unwrap()
        .flatten()
        .map(|file| file.path());
    let is_there = |file: &PathBuf| {
        let target = fs::read_link(file);
        target.is_ok_and(|target| {
            target.starts_with(&directory) && str(&target).ends_with(" (deleted)")
        })
    };
    files.filter(is_there).collect()
}

/// A child that waits for more of its input and has spilled some groups.
fn spilling(directory: &Path, flags: &[&str]) -> (Child, Vec<PathBuf>) {
    let mut command = ringfold([
        "aggregate",
        "--quote",
        "\"",
        "-d,",
        "--memory",
        "1M",
        "-j",
        "2",
        "-b",
        "64K",
    ]);
    command
        .args(ASKED)
        .args(["--spill-dir", str(directory)])
        .args(flags);
    let mut child = start(command.stdin(Stdio::piped()));
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(&text(120_000, 60_000))
        .unwrap();
    let started = Instant::now();
    loop {
        let files = open_files(&child, directory);
        if !files.is_empty() {
            return (child, files);
        }
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        assert!(started.elapsed() < Duration::from_secs(50), "no spill");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_signal_leaves_no_file() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let dir = dir();
        let target = dir.path().join("out");
        let spill = tempfile::tempdir_in(dir.path()).unwrap();
        let (child, _) = spilling(spill.path(), &["-o", str(&target)]);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ended = end_of(child);
        assert_eq!(
            (ended.code, &*ended.stdout),
            (Some(code), &b""[..]),
            "{}",
            ended.stderr
        );
        assert!(!target.exists());
        assert_eq!(names(spill.path()), [""; 0]);
        assert_eq!(names(dir.path()).len(), 1);
    }
}

/// Bytes that were changed behind its back, and a file that was cut.
#[test]
fn spilled_groups_that_are_damaged_are_told() {
    for (is_cut, flags) in [(true, &[][..]), (false, &[]), (false, &["--sort", "count"])] {
        let dir = dir();
        let target = dir.path().join("out");
        let spill = tempfile::tempdir_in(dir.path()).unwrap();
        let flags = [flags, &["-o", str(&target)]].concat();
        let (mut child, files) = spilling(spill.path(), &flags);
        // What has been written of it is whole once there is a second one.
        let started = Instant::now();
        while open_files(&child, spill.path()).len() < 4 {
            assert!(
                started.elapsed() < Duration::from_secs(50),
                "no more is spilled"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        let file = fs::File::options().write(true).open(&files[0]).unwrap();
        let len = file.metadata().unwrap().len();
        match is_cut {
            true => file.set_len(len / 2).unwrap(),
            false => {
                use std::os::unix::fs::FileExt;
                file.write_all_at(b"\xa5\x5a\xa5\x5a", len / 2).unwrap();
            }
        }
        drop(child.stdin.take());
        let said = end_of(child).failure(1);
        let want = format!(
            "keys that were written to {} can't be read back: ",
            str(spill.path())
        );
        assert!(said.starts_with(&want), "{said}");
        assert!(!target.exists());
        assert_eq!(names(spill.path()), [""; 0]);
    }
}

/// Pipes and files one behind the other, whatever the memory.
#[test]
fn streams() {
    let dir = dir();
    let (first, second) = (text(20_000, 9_000), text(20_000, 15_000));
    let plain = [
        write(dir.path(), "one.csv", &first),
        write(dir.path(), "two.csv", &second),
    ];
    let asked = || {
        let mut asked = ringfold(["aggregate", "-q"]);
        asked.args(ASKED).args(["--sort", "sum_number:desc"]);
        asked
    };
    let want = end(asked().args(&plain)).answer();
    for engine in ["auto", "pread"] {
        let pipe = fifo(dir.path(), &format!("{engine}.csv"));
        let (to, text) = (pipe.clone(), first.clone());
        let writer = std::thread::spawn(move || fs::write(to, text).unwrap());
        let mut command = asked();
        command
            .args(["--memory", "500K", "--engine", engine])
            .arg(&pipe)
            .arg(&plain[1]);
        assert!(end(&mut command).answer() == want, "{engine}");
        writer.join().unwrap();
    }
}

#[test]
fn what_is_told_of_it() {
    let dir = dir();
    let path = write(dir.path(), "rows.csv", &text(30_000, 20_000));
    let mut command = ringfold([
        "aggregate",
        "--stats=json",
        "--progress",
        "always",
        "--memory",
        "1M",
    ]);
    let (_, said) = end(command.args(ASKED).arg(&path)).answer_and_notices();
    assert!(
        said.contains("notice: the keys outgrew the memory (--memory): "),
        "{said}"
    );
    let stats = said
        .lines()
        .find_map(|line| line.find('{').map(|at| &line[at..]));
    let stats: serde_json::Value = serde_json::from_str(stats.unwrap()).unwrap();
    assert!(
        stats["job"]["spilled_bytes"].as_u64().unwrap() > 1 << 20,
        "{stats}"
    );
    assert_eq!(stats["job"]["rows"], 30_000, "{stats}");
    let groups = stats["job"]["keys"].as_u64().unwrap();
    let plain = end(ringfold(["aggregate"]).args(ASKED).arg(&path)).answer();
    // Each answer's text has a newline within.
    assert_eq!(
        plain.iter().filter(|&&byte| byte == b'\n').count() as u64,
        1 + 3 * groups
    );
}
