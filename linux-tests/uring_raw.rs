//! `uring-raw`: the answer under every switch and any number of rings; what is refused, and how it is
//! said; what reaches the kernel.

use std::path::PathBuf;
use std::process::Command;

use ringfold::query::OnError;
use ringfold::{
    Block, BlockError, Config, Engine, Error, Fold, Input, Kind, Knobs, Refusal, Setting, Stats,
    TaskRun,
};

use crate::answers::{compare, fold};
use crate::probe::{Feature, skips};
use crate::reference;
use crate::support::{KEYS_10K, STATIONS, dir, end, ringfold, str, write};
use crate::sys;

const LIMIT: usize = 1 << 20;

fn raw(knobs: Knobs) -> Config {
    Config {
        engine: Engine::UringRaw,
        knobs,
        ..Config::default()
    }
}

fn counted(paths: &[PathBuf], config: &Config) -> Result<(u64, Stats), Error> {
    let job = ringfold::job::Count { delimiter: b'\n' };
    let (counted, stats) = ringfold::fold(&Input::open(paths)?, config, &job)?;
    Ok((counted.iter().map(|file| file.bytes).sum(), stats))
}

/// Each switch alone and with others that it bears, and the flag that an error would name.
fn switches() -> Vec<(Option<Setting>, Knobs)> {
    let none = Knobs::default;
    let defer = Some(TaskRun::Defer);
    vec![
        (None, none()),
        (
            None,
            Knobs {
                registered_buffers: Some(false),
                ..none()
            },
        ),
        (
            Some(Setting::RegisteredBuffers),
            Knobs {
                registered_buffers: Some(true),
                ..none()
            },
        ),
        (
            Some(Setting::RegisteredFiles),
            Knobs {
                registered_files: true,
                ..none()
            },
        ),
        (
            Some(Setting::Sqpoll),
            Knobs {
                sqpoll: Some(None),
                ..none()
            },
        ),
        (
            Some(Setting::Sqpoll),
            Knobs {
                sqpoll: Some(Some(0)),
                ..none()
            },
        ),
        (
            Some(Setting::Sqpoll),
            Knobs {
                sqpoll: Some(None),
                entries: Some(1),
                registered_files: true,
                ..none()
            },
        ),
        (
            Some(Setting::Punt),
            Knobs {
                punt: Some(None),
                ..none()
            },
        ),
        (
            Some(Setting::Punt),
            Knobs {
                punt: Some(Some(1)),
                ..none()
            },
        ),
        (
            Some(Setting::Punt),
            Knobs {
                punt: Some(Some(3)),
                task_run: defer,
                rings: Some(2),
                ..none()
            },
        ),
        (
            Some(Setting::TaskRun),
            Knobs {
                task_run: Some(TaskRun::Coop),
                ..none()
            },
        ),
        (
            Some(Setting::TaskRun),
            Knobs {
                task_run: defer,
                ..none()
            },
        ),
        (
            Some(Setting::TaskRun),
            Knobs {
                task_run: defer,
                entries: Some(1),
                rings: Some(3),
                ..none()
            },
        ),
        (
            Some(Setting::Entries),
            Knobs {
                entries: Some(1),
                ..none()
            },
        ),
        (
            Some(Setting::Entries),
            Knobs {
                entries: Some(3),
                ..none()
            },
        ),
        (
            Some(Setting::Entries),
            Knobs {
                entries: Some(4096),
                ..none()
            },
        ),
        (
            Some(Setting::Dontcache),
            Knobs {
                dontcache: true,
                ..none()
            },
        ),
        (
            Some(Setting::Dontcache),
            Knobs {
                dontcache: true,
                registered_files: true,
                rings: Some(2),
                ..none()
            },
        ),
        (
            Some(Setting::Iopoll),
            Knobs {
                iopoll: true,
                ..none()
            },
        ),
        (
            Some(Setting::Iopoll),
            Knobs {
                iopoll: true,
                task_run: defer,
                rings: Some(2),
                ..none()
            },
        ),
        (
            Some(Setting::Iopoll),
            Knobs {
                iopoll: true,
                sqpoll: Some(None),
                ..none()
            },
        ),
    ]
}

#[test]
fn every_switch_gives_the_answer_or_is_refused_by_its_name() {
    let test = "every_switch_gives_the_answer_or_is_refused_by_its_name";
    if skips(test, &[Feature::IoUring, Feature::Direct]) {
        return;
    }
    let dir = dir();
    let texts: [&[u8]; 3] = [&STATIONS, b"no end;1.5", &KEYS_10K];
    let paths: Vec<PathBuf> = std::iter::zip(["0", "1", "2"], texts)
        .map(|(name, text)| write(dir.path(), name, text))
        .collect();
    let answer = reference::aggregate(&texts, b';', LIMIT);
    let mut answers = 0;
    for (setting, knobs) in switches() {
        for direct in [false, true] {
            if direct && knobs.dontcache || !direct && knobs.iopoll {
                continue;
            }
            for (block, depth) in [(4096, 1), (4096, 64), (64 << 10, 7), (1 << 20, 16)] {
                let config = Config {
                    direct,
                    block_size: Some(block),
                    queue_depth: Some(depth),
                    threads: Some(2),
                    ..raw(knobs.clone())
                };
                if let Err(error) = counted(&paths, &config) {
                    // An older kernel, a file system or a device that doesn't bear it.
                    assert!(error.kind() == Kind::Engine, "{knobs:?}: {error}");
                    let refused = error.refusal().and_then(Refusal::setting);
                    assert!(setting.is_some(), "{knobs:?}: {error}");
                    assert_eq!(refused, setting, "{knobs:?}: {error}");
                    eprintln!("refused: {error}");
                    break;
                }
                compare(&paths, &config, OnError::Fail, &answer);
                answers += 1;
            }
        }
    }
    assert!(answers >= 4 * 8, "{answers}");
}

#[test]
fn any_number_of_rings_gives_the_answer() {
    if skips("any_number_of_rings_gives_the_answer", &[Feature::IoUring]) {
        return;
    }
    let dir = dir();
    let long = [
        b"a;1.0\n".repeat(40),
        vec![b'x'; 5000],
        b";2.0\nb;3.0".to_vec(),
    ]
    .concat();
    let broken = [
        b"a;1.0\n".repeat(99),
        b"bad\n".to_vec(),
        b"a;2.0\n".repeat(400),
        b"b".to_vec(),
    ]
    .concat();
    let inputs: [&[&[u8]]; 5] = [
        &[&STATIONS[..60_000]],
        &[&long, b"c;1", &long],
        &[b"a;1.0\n", &STATIONS[..9_999], &broken],
        &[&broken, &broken],
        &[b"one;1.0"],
    ];
    for texts in inputs {
        let name = |n: usize| n.to_string();
        let paths: Vec<PathBuf> = (0..texts.len())
            .map(|n| write(dir.path(), &name(n), texts[n]))
            .collect();
        let answer = reference::aggregate(texts, b';', LIMIT);
        for rings in [1, 2, 3, 8] {
            for block in [61, 512, 4096] {
                for (depth, buffers) in [(1, Some(2)), (3, Some(4)), (16, None)] {
                    let config = Config {
                        block_size: Some(block),
                        queue_depth: Some(depth),
                        buffers,
                        threads: Some(2),
                        ..raw(Knobs {
                            rings: Some(rings),
                            ..Knobs::default()
                        })
                    };
                    compare(&paths, &config, OnError::Fail, &answer);
                    compare(&paths, &config, OnError::Skip, &answer);
                }
            }
        }
    }
}

#[test]
fn a_limit_on_records_is_the_same_at_the_rings_edges() {
    let test = "a_limit_on_records_is_the_same_at_the_rings_edges";
    if skips(test, &[Feature::IoUring]) {
        return;
    }
    let dir = dir();
    for at in [0, 4000, 4095, 4096, 8191, 12_000] {
        for len in [99, 100, 101, 6000] {
            let row = |n: usize| [vec![b'k'; n - 4], b";1.0".to_vec()].concat();
            let mut text = Vec::new();
            while text.len() + 20 < at {
                text.extend(b"a;1.0\n");
            }
            text.extend([&row(len)[..], b"\n"].concat());
            while text.len() < 16_384 {
                text.extend(b"b;2.0\n");
            }
            let paths = [write(dir.path(), "text", &text)];
            let answer = reference::aggregate(&[&text], b';', 100);
            for rings in [1, 2, 3, 8] {
                let config = Config {
                    block_size: Some(512),
                    max_record: 100,
                    ..raw(Knobs {
                        rings: Some(rings),
                        ..Knobs::default()
                    })
                };
                compare(&paths, &config, OnError::Fail, &answer);
            }
        }
    }
}

/// A job that panics somewhere.
struct Panics;

impl Fold for Panics {
    type Partial = ();
    type Output = ();

    fn partial(&self) {}

    fn block(&self, (): &mut (), block: &Block<'_>) -> Result<(), BlockError> {
        assert!(block.offset() < 100_000, "a job's own fault");
        Ok(())
    }

    fn merge(&self, (): &mut (), (): ()) {}

    fn finish(&self, (): ()) {}
}

#[test]
fn a_panic_on_any_ring_is_an_error_and_the_next_run_works() {
    let test = "a_panic_on_any_ring_is_an_error_and_the_next_run_works";
    if skips(test, &[Feature::IoUring]) {
        return;
    }
    let dir = dir();
    let paths = [write(dir.path(), "file", &STATIONS)];
    for rings in [1, 3] {
        let config = Config {
            block_size: Some(4096),
            ..raw(Knobs {
                rings: Some(rings),
                ..Knobs::default()
            })
        };
        let error = ringfold::fold(&Input::open(&paths).unwrap(), &config, &Panics).unwrap_err();
        assert_eq!(error.kind(), Kind::Panic, "{error}");
        assert_eq!(counted(&paths, &config).unwrap().0, STATIONS.len() as u64);
    }
}

#[test]
fn statistics_tell_of_the_rings() {
    if skips("statistics_tell_of_the_rings", &[Feature::IoUring]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let stats = |flags: &[&str]| {
        let mut command = ringfold(["count", "--engine", "uring-raw", "-b", "4K"]);
        let (_, stats) = end(command.args(flags).arg(&path)).answer_and_notices();
        stats
    };
    let json = |flags: &[&str]| -> serde_json::Value {
        serde_json::from_str(&stats(&[flags, &["--stats=json"]].concat())).unwrap()
    };
    let three = json(&["--rings", "3"]);
    assert_eq!(three["engine"], "uring-raw");
    assert_eq!(three["rings"], 3);
    assert!(three["enters"].as_u64().unwrap() >= 3, "{three}");
    assert_eq!(three["ring_flags"], serde_json::json!([]));
    assert_eq!(three["without_effect"], serde_json::json!([]));
    let coop = json(&["--task-run", "coop"]);
    assert_eq!(
        (&coop["rings"], &coop["ring_flags"][0]),
        (&1.into(), &"COOP_TASKRUN".into())
    );
    assert!(stats(&["--rings", "2", "--stats=full"]).contains("calls of io_uring_enter"));
    // A file of one block has no work for a second ring.
    let small = write(dir.path(), "small", b"a;1.0\n");
    let mut command = ringfold([
        "count",
        "--engine",
        "uring-raw",
        "--rings",
        "2",
        "--stats=json",
    ]);
    let (_, small) = end(command.arg(&small)).answer_and_notices();
    let small: serde_json::Value = serde_json::from_str(&small).unwrap();
    assert_eq!(
        (&small["rings"], &small["without_effect"][0]),
        (&1.into(), &"--rings".into())
    );
}

#[test]
fn a_polling_thread_is_told_in_the_statistics() {
    let test = "a_polling_thread_is_told_in_the_statistics";
    if skips(test, &[Feature::IoUring]) {
        return;
    }
    let dir = dir();
    let paths = [write(dir.path(), "file", &STATIONS)];
    let config = Config {
        block_size: Some(4096),
        ..raw(Knobs {
            sqpoll: Some(None),
            ..Knobs::default()
        })
    };
    match counted(&paths, &config) {
        Ok((_, stats)) => assert_eq!(stats.ring_flags, ["SQPOLL"]),
        Err(error) => assert!(error.to_string().contains("sqpoll"), "{error}"),
    }
}

// Refusals.

#[test]
fn a_processor_that_is_not_there() {
    if skips("a_processor_that_is_not_there", &[Feature::IoUring]) {
        return;
    }
    let dir = dir();
    let paths = [write(dir.path(), "file", &STATIONS)];
    for rings in [1, 3] {
        let knobs = Knobs {
            sqpoll: Some(Some(99_999)),
            rings: Some(rings),
            ..Knobs::default()
        };
        let error = counted(&paths, &raw(knobs)).unwrap_err().to_string();
        assert!(error.starts_with("sqpoll 99999: "), "{error}");
        assert!(error.ends_with("[EINVAL]"), "{error}");
    }
}

#[test]
fn a_file_system_without_uncached_reads_or_polling() {
    let test = "a_file_system_without_uncached_reads_or_polling";
    if skips(test, &[Feature::IoUring, Feature::Tmpfs]) {
        return;
    }
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let paths = [write(dir.path(), "file", &STATIONS)];
    let dontcache = Knobs {
        dontcache: true,
        ..Knobs::default()
    };
    let iopoll = Knobs {
        iopoll: true,
        ..Knobs::default()
    };
    for (knobs, direct, setting) in [
        (dontcache, false, Setting::Dontcache),
        (iopoll, true, Setting::Iopoll),
    ] {
        let config = Config {
            direct,
            ..raw(knobs)
        };
        match counted(&paths, &config) {
            // A later kernel may do it there too.
            Ok((bytes, _)) => assert_eq!(bytes, STATIONS.len() as u64),
            Err(error) => {
                let refused = error.refusal().and_then(Refusal::setting);
                let error = error.to_string();
                let file = str(&paths[0]);
                // An older one has no O_DIRECT there.
                let named = refused == Some(setting) || direct && error.contains("O_DIRECT");
                assert!(
                    error.starts_with(file) && named && error.ends_with(']'),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn contradictions_are_usage_errors_that_name_the_way_out() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    let raw_flags = ["--engine", "uring-raw"];
    for (flags, words) in [
        (&["--iopoll"][..], &["--iopoll", "--direct"][..]),
        (&["--rings", "0"], &["--rings 0", "1 to"]),
        (&["--rings", "100000"], &["--rings 100000"]),
        (&["--task-run", "never"], &["never"]),
    ] {
        let ended = end(ringfold(["count"]).args(raw_flags).args(flags).arg(&path));
        assert_eq!(ended.code, Some(2), "{flags:?}: {}", ended.stderr);
        for word in words {
            assert!(ended.stderr.contains(word), "{flags:?}: {}", ended.stderr);
        }
    }
    for engine in Engine::ALL.into_iter().filter(|&e| e != Engine::UringRaw) {
        for flags in [
            &["--rings", "2"][..],
            &["--iopoll"],
            &["--task-run", "defer"],
        ] {
            let mut command = ringfold(["count", "--engine", engine.name()]);
            let ended = end(command.args(flags).arg(&path));
            let error = ended.failure(2);
            assert!(error.contains(flags[0]), "{engine} {flags:?}: {error}");
        }
    }
    for knobs in [
        Knobs {
            sqpoll: Some(None),
            task_run: Some(TaskRun::Defer),
            ..Knobs::default()
        },
        Knobs {
            sqpoll: Some(None),
            task_run: Some(TaskRun::Coop),
            ..Knobs::default()
        },
        Knobs {
            entries: Some(0),
            ..Knobs::default()
        },
        Knobs {
            entries: Some(1 << 20),
            ..Knobs::default()
        },
    ] {
        let error = counted(std::slice::from_ref(&path), &raw(knobs)).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage, "{error}");
    }
    let both = Config {
        direct: true,
        ..raw(Knobs {
            dontcache: true,
            ..Knobs::default()
        })
    };
    assert_eq!(
        fold(&[path], &both, OnError::Fail).unwrap_err().kind(),
        Kind::Usage
    );
}

// What reaches the kernel, and what it may answer there.

/// The program under strace with these options; what strace saw goes to a file.
fn traced(options: &[&str], log: &str, args: &[&str]) -> Command {
    let program = ringfold(args);
    let mut command = Command::new("strace");
    command.args(["-f", "-o", log]).args(options);
    command.arg(program.get_program()).args(program.get_args());
    command.stdin(std::process::Stdio::null());
    command
}

#[test]
fn flags_reach_the_kernel() {
    if skips(
        "flags_reach_the_kernel",
        &[Feature::IoUring, Feature::Strace],
    ) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let log = dir.path().join("log");
    // Bits of the set-up, and what is registered beside the buffers: files (2), the kernel's workers
    // (19).
    for (flags, bits, registers, rings) in [
        (&["--rings", "3"][..], 0, None, 3),
        (&["--task-run", "coop"], 1 << 8, None, 1),
        (
            &["--task-run", "defer", "--rings", "2"],
            1 << 12 | 1 << 13,
            None,
            2,
        ),
        (&["--sqpoll"], 1 << 1, None, 1),
        (&["--registered-files"], 0, Some("0x2"), 1),
        (&["--async=2"], 0, Some("0x13"), 1),
    ] {
        // Numbers, because an older strace doesn't know younger flags.
        let options = ["-X", "raw", "-e", "trace=io_uring_setup,io_uring_register"];
        let args = [
            &["count", "--engine", "uring-raw", "-b", "4K"],
            flags,
            &[str(&path)],
        ]
        .concat();
        let ended = end(&mut traced(&options, str(&log), &args));
        if ended.code != Some(0) {
            let flag = flags[0].split('=').next().unwrap();
            assert!(ended.clone().failure(1).contains(flag), "{ended:?}");
            continue;
        }
        let seen = std::fs::read_to_string(&log).unwrap();
        let setups = seen.lines().filter_map(|line| {
            let flags = line.split_once("{flags=")?.1;
            let flags = flags.split(',').next()?.trim_start_matches("0x");
            u32::from_str_radix(flags, 16).ok()
        });
        // IORING_SETUP_CQSIZE is on all but the probe.
        let set = setups.filter(|flags| *flags == 1 << 3 | bits).count();
        assert_eq!(set, rings, "{flags:?}: {seen}");
        let registered = |what: &str| {
            let calls = seen
                .lines()
                .filter_map(|line| line.split_once("io_uring_register("));
            calls
                .filter(|call| call.1.split(", ").nth(1) == Some(what))
                .count()
        };
        // IORING_UNREGISTER_BUFFERS: the probe and each ring.
        assert_eq!(registered("0x1"), rings + 1, "{flags:?}: {seen}");
        if let Some(what) = registers {
            assert_eq!(registered(what), rings, "{flags:?}: {seen}");
        }
    }
}

#[test]
fn calls_that_fail_for_good_end_the_run_and_passing_failures_do_not() {
    let test = "calls_that_fail_for_good_end_the_run_and_passing_failures_do_not";
    if skips(test, &[Feature::IoUring, Feature::Strace]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let want = end(&mut ringfold(["count", str(&path)])).answer();
    for rings in ["1", "3"] {
        let run = |fault: &str| {
            let inject = format!("inject=io_uring_enter:error={fault}");
            let args = [
                "count",
                "--engine",
                "uring-raw",
                "-b",
                "4K",
                "--rings",
                rings,
                str(&path),
            ];
            end(&mut traced(&["-e", &inject], "/dev/null", &args))
        };
        // Calls are counted by thread, and the probe makes the first of its own.
        for errno in ["EPERM", "ENOMEM", "EAGAIN", "EINTR", "EBADR"] {
            let error = run(&format!("{errno}:when=2+")).failure(1);
            assert!(error.contains(": io_uring_enter: "), "{error}");
        }
        for errno in ["EAGAIN", "EINTR", "EBUSY"] {
            assert!(
                run(&format!("{errno}:when=2..5")).answer() == want,
                "{errno}"
            );
        }
    }
}

/// Each ring takes descriptors, and a limit on them is reported as such.
#[test]
fn too_few_descriptors_are_told() {
    if skips("too_few_descriptors_are_told", &[Feature::IoUring]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", &STATIONS);
    let mut command = ringfold([
        "count",
        "--engine",
        "uring-raw",
        "-b",
        "4K",
        "--rings",
        "16",
    ]);
    sys::limit(&mut command, libc::RLIMIT_NOFILE, 16);
    let error = end(command.arg(&path)).failure(1);
    for words in ["EMFILE", "ulimit -n"] {
        assert!(error.contains(words), "{error}");
    }
}
