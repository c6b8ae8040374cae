//! Sparse files: holes are counted without being read, and offsets of 15 TiB, more than 2^32 blocks
//! of 2 KiB from the beginning, are as exact as any.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ringfold::query::OnError;
use ringfold::{Config, Engine, Input, Span};

use crate::answers::pairs;
use crate::probe::skip;
use crate::support::{WAYS, dir, end, ringfold, str, write};

/// A file of `len` bytes that holds only these pieces; `None` where the file system has no such.
fn sparse(dir: &Path, len: u64, pieces: &[(u64, &[u8])]) -> Option<PathBuf> {
    let path = dir.join("sparse");
    let file = File::create(&path).unwrap();
    file.set_len(len).ok()?;
    for (at, bytes) in pieces {
        file.write_all_at(bytes, *at).unwrap();
    }
    Some(path)
}

#[test]
fn holes_are_counted_as_if_they_were_read() {
    let dir = dir();
    let lines = b"one\ntwo\n\0three\n".repeat(1000);
    for pieces in [
        &[][..],
        &[0],
        &[300_000],
        &[5, 100_000, 1_999_000],
        &[2_000_000 - 15_000],
    ] {
        let pieces: Vec<_> = pieces.iter().map(|&at| (at, &lines[..])).collect();
        let path = sparse(dir.path(), 2_000_000 + 15_000, &pieces).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let [newlines, zeros] = [b'\n', 0].map(|byte| memchr::memchr_iter(byte, &whole).count());
        // The same bytes without a hole beside it.
        let dense = write(dir.path(), "dense", &whole);
        for way in WAYS.iter() {
            for (flag, records) in [("-l", newlines), ("-lz", zeros)] {
                let mut command = ringfold(["count", flag, "-b", "64K", str(&path), str(&dense)]);
                let (answer, _) = end(command.args(way.flags())).answer_and_notices();
                let answer = String::from_utf8(answer).unwrap();
                let counts = answer
                    .lines()
                    .map(|line| line.split_whitespace().next().unwrap());
                let expected = [records, records, 2 * records].map(|n| n.to_string());
                assert!(counts.eq(expected), "{way:?} {flag}: {answer}");
            }
        }
    }
}

const TIB: u64 = 1 << 40;

#[test]
fn more_blocks_than_32_bits_can_number() {
    let dir = dir();
    let (rows, bad) = (b"\na;1.0\nb;2.0\n".repeat(500), b"\na;1.0\nb;x\n");
    let (middle, last) = (9 * TIB, 15 * TIB - bad.len() as u64);
    let pieces: [(u64, &[u8]); 3] = [(0, &rows), (middle, &rows), (last, bad)];
    let Some(path) = sparse(dir.path(), 15 * TIB, &pieces) else {
        return skip(
            "more_blocks_than_32_bits_can_number",
            "no file of 15 TiB here",
        );
    };
    for way in WAYS.iter().filter(|way| way.engine != Engine::Memory) {
        let small = ["-b", "2K", str(&path)];
        let flags = way.flags();
        let count = end(ringfold(["count", "-l"]).args(small).args(&flags)).answer_and_notices();
        let lines = String::from_utf8(count.0).unwrap();
        assert!(lines.starts_with("3003 "), "{way:?}: {lines}");
        let refused = end(ringfold(["aggregate", "-q"]).args(small).args(&flags)).failure(1);
        assert!(refused.contains("a record of more than"), "{refused}");
    }
    // Parts beyond the 2^32nd block, as a program can name them.
    for engine in Engine::ALL.into_iter().filter(|&e| e != Engine::Memory) {
        let config = Config {
            engine,
            block_size: Some(2048),
            ..Config::default()
        };
        let span = |from, to| Span {
            source: 0,
            from,
            to,
        };
        let input = Input::open([&path]).unwrap();
        let good = span(middle + 1, middle + rows.len() as u64);
        let input = input.with_spans(vec![good]).unwrap();
        let (answer, _) = pairs(&input, &config, OnError::Fail).unwrap();
        assert_eq!((answer.rows, answer.groups), (1000, 2), "{engine}");
        let input = input
            .with_spans(vec![good, span(last + 1, 15 * TIB)])
            .unwrap();
        let error = pairs(&input, &config, OnError::Fail).err().unwrap();
        let bad_row = last + b"\na;1.0\n".len() as u64;
        assert_eq!(
            error.bytes(),
            Some(bad_row..bad_row + 3),
            "{engine}: {error}"
        );
        // Two pieces of 1,500 lines each, the empty one, and the good row.
        assert!(
            error.to_string().contains("(line 3003)"),
            "{engine}: {error}"
        );
    }
}
