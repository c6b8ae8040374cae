//! Children, temporary files, and the ways to read.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Once, mpsc};
use std::time::Duration;

use ringfold::internals::Generate;
use ringfold::query::Answer;
use ringfold::report::grid::{GridFormat, write_grid};
use ringfold::{Config, Engine, Knobs};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::probe::{self, Feature};
use crate::sys;

/// No run here takes a hundredth of it, or under a sanitizer on a busy machine half: more is a hang.
const HANGS: Duration = Duration::from_secs(180);

/// More than what "within about a second" allows, for machines that are busy with other tests. So the
/// limits on sound reads are longer than a second, too.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The file of the program. `RINGFOLD_PROGRAM` names one that was built otherwise, or for another processor.
pub fn program() -> PathBuf {
    let other = std::env::var_os(PROGRAM);
    other.map_or_else(|| env!("CARGO_BIN_EXE_ringfold").into(), PathBuf::from)
}

/// See [`program`].
pub const PROGRAM: &str = "RINGFOLD_PROGRAM";

/// The program.
pub fn ringfold<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    static ONCE: Once = Once::new();
    ONCE.call_once(sys::heed_interrupts);
    let mut command = Command::new(program());
    command
        .args(args)
        .stdin(Stdio::null())
        .env("RUST_BACKTRACE", "0");
    command
}

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// `None`: by `signal`.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Ended {
    /// The answer of a run that went well and said nothing.
    #[track_caller]
    pub fn answer(self) -> Vec<u8> {
        assert_eq!((self.code, &*self.stderr), (Some(0), ""), "{}", self.what());
        self.stdout
    }

    /// The answer of a run that went well, whatever it said.
    #[track_caller]
    pub fn answer_and_notices(self) -> (Vec<u8>, String) {
        assert_eq!(self.code, Some(0), "{}", self.what());
        (self.stdout, self.stderr)
    }

    /// The one line of a run that failed with `code` and answered nothing, its prefix cut off.
    #[track_caller]
    pub fn failure(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}", self.what());
        assert!(
            self.stdout.is_empty(),
            "a failed run answered: {}",
            self.what()
        );
        let line = self
            .stderr
            .strip_prefix("ringfold: ")
            .and_then(|rest| rest.strip_suffix('\n'));
        let line = line.unwrap_or_else(|| panic!("not one line of ours: {}", self.what()));
        assert!(!line.contains('\n'), "several lines: {}", self.what());
        line.to_string()
    }

    fn what(&self) -> String {
        let shown = String::from_utf8_lossy(&self.stdout[..self.stdout.len().min(300)]);
        format!(
            "code {:?}, signal {:?}\nstdout: {shown}\nstderr: {}",
            self.code, self.signal, self.stderr
        )
    }
}

/// Runs a command to its end.
#[track_caller]
pub fn end(command: &mut Command) -> Ended {
    end_of(start(command))
}

/// Starts a command whose output is gathered.
#[track_caller]
pub fn start(command: &mut Command) -> Child {
    let started = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    started.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Waits for a child; kills one that hangs and fails.
#[track_caller]
pub fn end_of(child: Child) -> Ended {
    let pid = Pid::from_child(&child);
    let (ended, wait) = mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let hangs = wait.recv_timeout(HANGS) == Err(mpsc::RecvTimeoutError::Timeout);
        if hangs {
            let _ = kill_process(pid, Signal::KILL);
        }
        hangs
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    assert!(
        !watch.join().unwrap(),
        "it hung: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ended {
        code: output.status.code(),
        signal: output.status.signal(),
        stdout: output.stdout,
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

/// Writes all of it to a child's standard input, from a thread of its own, and closes it.
pub fn feed(child: &mut Child, bytes: Vec<u8>) {
    let mut stdin = child.stdin.take().unwrap();
    // A child that ends early breaks the pipe: its own business.
    std::thread::spawn(move || drop(stdin.write_all(&bytes)));
}

/// A directory that goes away; others may enter it.
pub fn dir() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    dir
}

pub fn write(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

pub fn str(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The names in a directory.
pub fn names(dir: &Path) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|e| name(e.unwrap()))
        .collect();
    names.sort();
    names
}

/// Generated rows.
pub fn rows(rows: u64, keys: Option<u64>, seed: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let generate = Generate {
        rows: Some(rows),
        bytes: None,
        keys,
        seed,
        threads: 1,
    };
    generate.run(&mut out, &|_, _| {}).unwrap();
    out
}

/// The 413 stations, 270 KB.
pub static STATIONS: LazyLock<Vec<u8>> = LazyLock::new(|| rows(20_000, None, 11));
/// Most of 10,000 keys of up to 100 bytes, 640 KB.
pub static KEYS_10K: LazyLock<Vec<u8>> = LazyLock::new(|| rows(25_000, Some(10_000), 12));

/// An engine, past the page cache or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub engine: Engine,
    pub direct: bool,
}

impl Way {
    pub fn config(self) -> Config {
        Config {
            engine: self.engine,
            direct: self.direct,
            ..Config::default()
        }
    }

    /// So many rings, where there can be several.
    pub fn rings(self, rings: usize) -> Knobs {
        Knobs {
            rings: (self.engine == Engine::UringRaw).then_some(rings),
            ..Knobs::default()
        }
    }

    pub fn flags(self) -> Vec<&'static str> {
        let mut flags = vec!["--engine", self.engine.name()];
        if self.engine == Engine::Auto {
            // With the ring, as it reads what doesn't fit into memory.
            flags.extend(["--cache", "none"]);
        }
        if self.direct {
            flags.push("--direct");
        }
        flags
    }

    /// Whether workers only look at what lies somewhere.
    fn refuses_direct(engine: Engine) -> bool {
        matches!(engine, Engine::Mmap | Engine::Memory)
    }
}

/// All ways of reading that this machine allows in the directory of the tests.
pub static WAYS: LazyLock<Vec<Way>> = LazyLock::new(|| {
    let mut ways = Vec::new();
    for engine in Engine::ALL {
        for direct in [false, true] {
            // Without a ring auto reads past the page cache all the same, but says so.
            let wants_ring = matches!(engine, Engine::Uring | Engine::UringRaw)
                || (engine == Engine::Auto && direct);
            let missing = (wants_ring && !probe::has(Feature::IoUring))
                || (direct && !probe::has(Feature::Direct));
            if !(missing || direct && Way::refuses_direct(engine)) {
                ways.push(Way { engine, direct });
            }
        }
    }
    assert!(ways.len() >= 5);
    ways
});

/// Every way of reading with small blocks, where they may be small, on one thread and on four.
pub fn ways_in_small_blocks() -> impl Iterator<Item = (Way, Config)> {
    WAYS.iter().flat_map(|&way| {
        let sizes: &[usize] = if way.direct {
            &[4096]
        } else {
            &[1, 7, 64, 4096]
        };
        sizes.iter().flat_map(move |&block| {
            [1, 4].map(|threads| {
                let config = Config {
                    block_size: Some(block),
                    threads: Some(threads),
                    ..way.config()
                };
                (way, config)
            })
        })
    })
}

/// The ways with these flags left out of the page cache's bypass: any block size will do.
pub fn cached_ways() -> impl Iterator<Item = Way> {
    WAYS.iter().copied().filter(|way| !way.direct)
}

/// A file of which nothing is in the page cache; call it where [`Feature::Eviction`] is there.
pub fn cold(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = write(dir, name, bytes);
    evict(&path, 0..bytes.len() as u64);
    path
}

/// Drops a part of a file from the page cache.
pub fn evict(path: &Path, range: std::ops::Range<u64>) {
    let file = File::open(path).unwrap();
    // Where nothing can be written there is nothing to sync.
    let _ = file.sync_all();
    let len = std::num::NonZeroU64::new(range.end - range.start);
    rustix::fs::fadvise(&file, range.start, len, rustix::fs::Advice::DontNeed).unwrap();
}

/// An answer as CSV.
pub fn csv(answer: &Answer) -> String {
    let mut csv = Vec::new();
    write_grid(answer.names(), answer, GridFormat::Csv, None, &mut csv).unwrap();
    String::from_utf8_lossy(&csv).into_owned()
}

/// Numbers in a sequence that looks random.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    pub fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}
