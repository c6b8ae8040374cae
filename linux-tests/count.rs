//! `count`: what `wc -l` and `wc -c` say.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::support::{
    STATIONS, WAYS, cached_ways, dir, end, end_of, feed, ringfold, start, str, write,
};

fn texts() -> Vec<Vec<u8>> {
    vec![
        b"a".to_vec(),
        b"a\n".to_vec(),
        b"\n\n\n".to_vec(),
        b"a\0b\0\nc".to_vec(),
        b"\xef\xbb\xbfa\r\n\r\n".to_vec(),
        vec![b'x'; 100_000],
        b"\n".repeat(70_000),
        b"\0".repeat(5_000),
        STATIONS.clone(),
    ]
}

fn count(text: &[u8], byte: u8) -> usize {
    text.iter().filter(|&&b| b == byte).count()
}

fn figures(out: Vec<u8>) -> Vec<Vec<String>> {
    let out = String::from_utf8(out).unwrap();
    out.lines()
        .map(|line| line.split_ascii_whitespace().map(String::from).collect())
        .collect()
}

#[test]
fn lines_and_bytes_by_every_engine() {
    let dir = dir();
    for (n, text) in texts().iter().enumerate() {
        let path = write(dir.path(), &n.to_string(), text);
        let (lines, zeros, bytes) = (count(text, b'\n'), count(text, 0), text.len());
        for way in WAYS.iter() {
            for block in ["4K", "64K"] {
                let run = |flags: &[&str]| {
                    let mut command = ringfold(["count", "-b", block]);
                    end(command.args(way.flags()).args(flags).arg(&path)).answer()
                };
                let name = str(&path);
                let said = |out| String::from_utf8(out).unwrap();
                assert_eq!(
                    said(run(&[])),
                    format!("{lines} {bytes} {name}\n"),
                    "{way:?}"
                );
                if block == "4K" {
                    assert_eq!(said(run(&["-l"])), format!("{lines} {name}\n"), "{way:?}");
                    assert_eq!(said(run(&["-c"])), format!("{bytes} {name}\n"), "{way:?}");
                    assert_eq!(
                        said(run(&["-z"])),
                        format!("{zeros} {bytes} {name}\n"),
                        "{way:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn several_files_and_their_total() {
    let dir = dir();
    let texts = [&b"a\nb\n"[..], b"", b"\n\n\nx", &STATIONS, b""];
    let mut paths = Vec::new();
    let mut want = Vec::new();
    let (mut lines, mut bytes) = (0, 0);
    for (n, text) in texts.iter().enumerate() {
        let path = write(dir.path(), &n.to_string(), text);
        let row = [
            count(text, b'\n').to_string(),
            text.len().to_string(),
            str(&path).to_string(),
        ];
        want.push(row.to_vec());
        paths.push(path);
        lines += count(text, b'\n');
        bytes += text.len();
    }
    want.push([lines.to_string(), bytes.to_string(), "total".to_string()].to_vec());
    for way in cached_ways() {
        let out = end(ringfold(["count"]).args(way.flags()).args(&paths)).answer();
        let ends: Vec<usize> = std::str::from_utf8(&out)
            .unwrap()
            .lines()
            .map(|line| line.len() - line.split(' ').next_back().unwrap().len())
            .collect();
        assert!(
            ends.iter().all(|&end| end == ends[0]),
            "the figures stand in columns"
        );
        assert_eq!(figures(out), want, "{way:?}");
    }
}

/// As wc has them: any bytes but a newline, which would make two rows of one.
#[test]
fn names_are_printed_as_they_are() {
    let dir = dir();
    for (name, printed) in [
        (&b"\xff\xfe"[..], &b"\xff\xfe"[..]),
        (b"tab\t", b"tab\t"),
        (b"two\nrows", b"two\\nrows"),
    ] {
        let path = dir.path().join(OsStr::from_bytes(name));
        std::fs::write(&path, "a\n").unwrap();
        let want = [
            b"1 ",
            dir.path().as_os_str().as_bytes(),
            b"/",
            printed,
            b"\n",
        ]
        .concat();
        let mut command = ringfold([OsStr::new("count"), OsStr::new("-l"), path.as_os_str()]);
        assert_eq!(end(&mut command).answer(), want);
    }
}

#[test]
fn standard_input_is_counted_too() {
    for way in cached_ways() {
        let mut child = start(
            ringfold(["count", "-"])
                .args(way.flags())
                .stdin(Stdio::piped()),
        );
        feed(&mut child, STATIONS.clone());
        let want = format!("{} {} -\n", count(&STATIONS, b'\n'), STATIONS.len());
        assert_eq!(
            String::from_utf8(end_of(child).answer()).unwrap(),
            want,
            "{way:?}"
        );
    }
}

#[test]
fn what_is_piped_in_has_no_name() {
    let mut child = start(ringfold(["count", "-l"]).stdin(Stdio::piped()));
    feed(&mut child, b"a\nb\n".to_vec());
    assert_eq!(end_of(child).answer(), b"2\n");
}

/// As wc does: what can't be opened is reported, the rest counted, and the exit code 1.
#[test]
fn a_missing_file_is_told_and_the_others_are_counted() {
    let dir = dir();
    let (one, two) = (
        write(dir.path(), "one", b"a\n"),
        write(dir.path(), "two", b"b\nc\n"),
    );
    let missing = dir.path().join("missing");
    let (one, two, missing) = (str(&one), str(&two), str(&missing));
    let not_there = format!("ringfold: {missing}: No such file or directory [ENOENT]\n");
    let is_directory = format!("ringfold: {}: Is a directory [EISDIR]\n", str(dir.path()));
    for (files, counted, reported) in [
        (
            &[one, missing, two][..],
            format!("1 {one}\n2 {two}\n3 total\n"),
            &not_there,
        ),
        (&[missing, two], format!("2 {two}\n2 total\n"), &not_there),
        (
            &[str(dir.path()), two],
            format!("2 {two}\n2 total\n"),
            &is_directory,
        ),
        (&[missing], String::new(), &not_there),
    ] {
        for way in cached_ways() {
            let mut command = ringfold(["count", "-l"]);
            let ended = end(command.args(way.flags()).args(files));
            assert_eq!(ended.code, Some(1), "{way:?}");
            assert_eq!(String::from_utf8(ended.stdout).unwrap(), counted, "{way:?}");
            let mut reported = reported.clone();
            if reported == is_directory {
                let [dir, flags] = [str(dir.path()), &way.flags().join(" ")];
                let again = format!(": try `ringfold count -l {flags} {dir}/* {two}`\n");
                reported = reported.trim_end().to_string() + &again;
            }
            assert_eq!(ended.stderr, reported, "{way:?}");
        }
    }
}

/// It answers what `wc` answers, whatever lies in the file.
#[test]
fn a_line_may_be_as_long_as_it_likes() {
    let dir = dir();
    let path = write(dir.path(), "long", &vec![b'x'; 3 << 20]);
    for way in WAYS.iter() {
        let out = end(ringfold(["count"]).args(way.flags()).arg(&path)).answer();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!("0 {} {}\n", 3 << 20, str(&path))
        );
    }
}
