//! More files than descriptors: they are opened when their turn comes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringfold::Engine;

use crate::compressed::{gzip, zstandard};
use crate::probe::{Feature, skips};
use crate::support::{STATIONS, WAYS, Way, dir, end, end_of, evict, ringfold, start, str, write};
use crate::sys;

/// A command that may have so many descriptors.
fn limited(most: u64, mut command: Command) -> Command {
    sys::limit(&mut command, libc::RLIMIT_NOFILE, most);
    command
}

fn files(dir: &Path, count: usize, bytes: impl Fn(usize) -> Vec<u8>) -> Vec<PathBuf> {
    let file = |n: usize| write(dir, &format!("{n:04}"), &bytes(n));
    (0..count).map(file).collect()
}

#[test]
fn a_thousand_files() {
    if skips("a_thousand_files", &[Feature::Eviction]) {
        return;
    }
    let dir = dir();
    let paths = files(dir.path(), 1000, |n| STATIONS[..9000 + n].to_vec());
    let want = end(ringfold(["count"]).args(&paths)).answer();
    for most in [None, Some(48)] {
        for way in WAYS.iter() {
            for path in &paths {
                evict(path, 0..1 << 20);
            }
            let mut command = ringfold(["count"]);
            command.args(way.flags()).args(&paths);
            let mut command = match most {
                Some(most) => limited(most, command),
                None => command,
            };
            assert!(end(&mut command).answer() == want, "{way:?} {most:?}");
        }
    }
}

/// Jobs that keep order, hold states of quotes, or read several times; whole files and parts; files that lines and quoted
/// fields run to the end of.
#[test]
fn every_job_opens_files_in_turn() {
    let dir = dir();
    let text = |n: usize| {
        let record = |row: usize| format!("\"a;\n{}\";{row}.5\n", (n * row) % 7);
        let mut text: String = (0..40 + n % 50).map(record).collect();
        text.truncate(text.len() - n % 2);
        text.into_bytes()
    };
    let paths = files(dir.path(), 150, text);
    let jobs: &[&[&str]] = &[
        &["count"],
        &["quote"],
        &[
            "aggregate",
            "-d;",
            "--quote=\"",
            "-k1",
            "-asum:2,first:2,count",
        ],
        &["aggregate", "-d;", "-k2", "-acount", "--on-error=skip"],
        &["aggregate", "-d;", "-k1", "-acount", "--range=2/3"],
    ];
    for job in jobs {
        let command = |way: Way| {
            let mut command = ringfold(*job);
            command.args(way.flags()).args(&paths);
            command
        };
        let want = |way| {
            let ended = end(&mut command(way));
            (ended.code, ended.stdout, ended.stderr)
        };
        for &way in WAYS.iter() {
            let ended = end(&mut limited(40, command(way)));
            let got = (ended.code, ended.stdout, ended.stderr);
            assert!(got == want(way), "{way:?} {job:?}: {got:?}");
        }
    }
}

#[test]
fn compressed_files_are_opened_in_turn() {
    if skips("compressed_files_are_opened_in_turn", &[Feature::Eviction]) {
        return;
    }
    let dir = dir();
    for compress in [gzip, zstandard] {
        // Enough bytes for a ring beside the decoders.
        let text = |n: usize| {
            let text = &STATIONS[..100_000 + n * 7];
            let lines = text.iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
            compress(&text[..lines])
        };
        let mut paths = files(dir.path(), 150, text);
        paths.push(write(dir.path(), "large", &compress(&STATIONS.repeat(150))));
        for job in [
            &["count"][..],
            &["quote"],
            &["aggregate", "-d;", "-k1", "-acount", "-j3"],
        ] {
            let mut command = ringfold(job);
            let want = end(command.args(&paths)).answer();
            for engine in [Engine::Auto, Engine::Uring, Engine::Read, Engine::Memory] {
                for path in &paths {
                    evict(path, 0..1 << 30);
                }
                let mut command = ringfold(job);
                command
                    .args(["--cache", "none", "--engine", engine.name()])
                    .args(&paths);
                let got = end(&mut limited(48, command)).answer();
                assert!(got == want, "{engine:?} {job:?}");
            }
        }
    }
}

/// What is missing is found before anything is read, and the first of it is reported.
#[test]
fn missing_files_are_found_first() {
    let dir = dir();
    let mut paths = files(dir.path(), 200, |_| b"a;1.0\n".to_vec());
    paths[120] = dir.path().join("missing");
    paths[190] = dir.path().join("missing, too");
    let mut command = ringfold(["quote"]);
    command.args(&paths);
    let error = end(&mut limited(40, command)).failure(1);
    let want = format!("{}: No such file or directory [ENOENT]", str(&paths[120]));
    assert_eq!(error, want);
}

/// Files that are opened in turn are known again: one that was replaced meanwhile is an error, one that grew or was
/// written a notice, as with those that stay open.
#[test]
fn files_that_change_before_their_turn() {
    let dir = dir();
    let pipe = dir.path().join("pipe");
    for (name, notice, change) in [
        (
            "replaced",
            Err("another file has taken its place since the run began"),
            (|path: &Path| {
                fs::write(path.with_extension("new"), "a;2.0\n").unwrap();
                fs::rename(path.with_extension("new"), path).unwrap();
            }) as fn(&Path),
        ),
        ("removed", Err("[ENOENT]"), |path| {
            fs::remove_file(path).unwrap();
        }),
        ("grown", Ok("has grown from 6 to 12 bytes"), |path| {
            fs::write(path, "a;1.0\na;1.0\n").unwrap();
        }),
        ("cut", Err("the file ends at byte 3"), |path| {
            fs::write(path, "a;1").unwrap();
        }),
    ] {
        for engine in ["read", "pread", "mmap", "uring", "auto"] {
            let paths = files(dir.path(), 100, |_| b"a;1.0\n".to_vec());
            let _ = fs::remove_file(&pipe);
            use rustix::fs::{CWD, FileType, Mode, mknodat};
            mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            let mut command = ringfold(["aggregate", "--engine", engine]);
            // The run waits for the pipe, which is read first, with all files known.
            command.arg(&pipe).args(&paths);
            let child = start(&mut limited(40, command));
            let mut writer = fs::File::options().write(true).open(&pipe).unwrap();
            std::io::Write::write_all(&mut writer, b"a;1.0\n").unwrap();
            std::thread::sleep(Duration::from_millis(300));
            change(&paths[80]);
            drop(writer);
            let ended = end_of(child);
            match notice {
                Ok(words) => {
                    let (_, said) = ended.answer_and_notices();
                    assert!(said.contains(words), "{name} {engine}: {said}");
                }
                Err(words) => {
                    let error = ended.failure(1);
                    let begins = error.starts_with(str(&paths[80]));
                    assert!(begins && error.contains(words), "{name} {engine}: {error}");
                }
            }
        }
    }
}
