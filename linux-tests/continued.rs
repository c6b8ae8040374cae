//! `--continue` knows files again by their bytes.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use crate::compressed::{bzip, gzip, lz4, xz, zstandard};
use crate::support::{Ended, STATIONS, dir, end, end_of, feed, ringfold, start, str, write};

fn add(state: &Path, file: &Path) -> Ended {
    let mut command = ringfold(["aggregate", "-d;", "-k1", "-acount", "--continue"]);
    end(command.arg(state).arg(file))
}

/// After `cp`, `touch` and compression a file is refused, and the state stays as it was.
#[test]
fn copies_are_refused() {
    for text in [&STATIONS[..], b"a;1\nb;2\na;3\n"] {
        let dir = dir();
        let log = write(dir.path(), "u.log", text);
        let state = dir.path().join("state");
        add(&state, &log).answer();
        let before = fs::read(&state).unwrap();
        let members = |text: &[u8]| {
            let half = text.len() / 2;
            [zstandard(&text[..half]), zstandard(&text[half..])].concat()
        };
        let touched = write(dir.path(), "touched", text);
        let later = SystemTime::now() + Duration::from_secs(5);
        File::options()
            .write(true)
            .open(&touched)
            .and_then(|file| file.set_modified(later))
            .unwrap();
        let mut copies = vec![touched];
        for (name, compress) in [
            ("u.log.gz", gzip as fn(&[u8]) -> Vec<u8>),
            ("u.log.zst", zstandard),
            ("u.log.bz2", bzip),
            ("u.log.xz", xz),
            ("u.log.lz4", lz4),
        ] {
            copies.push(write(dir.path(), name, &compress(text)));
        }
        copies.push(write(dir.path(), "frames", &members(text)));
        for copy in &copies {
            let error = add(&state, copy).failure(1);
            let want = format!(
                "{}: the same bytes are in the partial, as {}",
                str(copy),
                str(&log)
            );
            assert_eq!(error, want);
            assert!(fs::read(&state).unwrap() == before);
        }
        // Compressed files are known again, too, and another text isn't one of them.
        let compressed = dir.path().join("compressed");
        add(&compressed, &copies[1]).answer();
        let again = write(dir.path(), "again.gz", &gzip(text));
        fs::File::options()
            .write(true)
            .open(&again)
            .and_then(|file| file.set_modified(later))
            .unwrap();
        add(&compressed, &again).failure(1);
        let mut other = text.to_vec();
        other[0] ^= 1;
        for (name, bytes) in [("other", other.clone()), ("other.gz", gzip(&other))] {
            let fresh = dir.path().join(format!("state of {name}"));
            add(&fresh, &log).answer();
            add(&fresh, &write(dir.path(), name, &bytes)).answer();
        }
        // Who means it merges partials.
        let own = dir.path().join("own");
        let mut save = ringfold(["aggregate", "-d;", "-k1", "-acount", "--save-partial"]);
        end(save.arg(&own).arg(&copies[0])).answer();
        let merged = end(ringfold(["merge"]).args([&state, &own])).answer();
        let rows = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count();
        assert!(rows(&merged) > 0);
    }
}

/// What comes through a pipe leaves nothing to know it by, and the run says so.
#[test]
fn a_stream_is_told() {
    let dir = dir();
    let state = dir.path().join("state");
    for rows in [3, 6] {
        let mut command = ringfold([
            "aggregate",
            "-d;",
            "-k1",
            "-acount",
            "--report-too",
            "--continue",
        ]);
        let mut child = start(command.arg(&state).stdin(Stdio::piped()));
        feed(&mut child, b"a;1\nb;2\na;3\n".to_vec());
        let ended = end_of(child);
        assert_eq!(
            ended.stderr.trim_end(),
            "ringfold: notice: -: a stream isn't known again: added a second time, it counts twice"
        );
        let want = format!("key1,count\na,{}\nb,{}\n", rows / 3 * 2, rows / 3);
        assert_eq!((ended.code, ended.stdout), (Some(0), want.into_bytes()));
    }
}

/// A file that has grown since is refused, also as a copy of it.
#[test]
fn a_copy_that_has_grown_is_refused() {
    let dir = dir();
    let text = b"a;1\nb;2\n".repeat(1000);
    let log = write(dir.path(), "u.log", &text);
    let state = dir.path().join("state");
    add(&state, &log).answer();
    let before = fs::read(&state).unwrap();
    let grown = [&text[..], b"c;3\n"].concat();
    for name in ["u.log", "copy.log"] {
        let path = write(dir.path(), name, &grown);
        assert_eq!(
            add(&state, &path).failure(1),
            format!(
                "{}: the file has grown since it was read: its first 8000 bytes are in the partial, as {}: begin the \
                 partial again, with files that have their last length",
                str(&path),
                str(&log)
            )
        );
        assert!(fs::read(&state).unwrap() == before);
    }
    // Few bytes may be the same by chance, as those of a header.
    let few = write(dir.path(), "few", b"a;1\n");
    add(&state, &few).answer();
    add(&state, &write(dir.path(), "more", b"a;1\nb;2\n")).answer();
}
