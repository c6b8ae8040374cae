//! The same bytes from every engine, at every block size, depth and number of threads: those of the
//! reference.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;

use proptest::prelude::*;
use ringfold::query::{Answer as Rows, OnError, Query, Sort};
use ringfold::{Config, Engine, Error, HugePages, Input, Knobs, MapAdvice, report};

use crate::catalogue::drawn;
use crate::probe::{Feature, skips};
use crate::reference::{self, Answer, Style};
use crate::support::{
    KEYS_10K, STATIONS, WAYS, Way, cached_ways, cold, dir, end, end_of, evict, feed, names,
    ringfold, start, str, write,
};

const LIMIT: usize = 1 << 20;

/// What the library answers in the style `1brc`, with the rows, empty lines and skipped records.
pub fn fold(
    paths: &[PathBuf],
    config: &Config,
    on_error: OnError,
) -> Result<(Vec<u8>, [u64; 3]), Error> {
    let (answer, text) = pairs(&Input::open(paths)?, config, on_error)?;
    Ok((text, [answer.rows, answer.empty_lines, answer.skipped]))
}

/// The answer of `key;value` records, and its text in the style `1brc`.
pub fn pairs(input: &Input, config: &Config, on_error: OnError) -> Result<(Rows, Vec<u8>), Error> {
    let plan = Query::pairs(b';').on_error(on_error).plan(input, config)?;
    let (mut answer, _) = ringfold::fold(input, config, &plan)?;
    answer.sort(&Sort::Bytes, None)?;
    answer.set_lines(report::Format::OneBrc)?;
    let mut text = Vec::new();
    report::write(&answer, report::Format::OneBrc, None, &mut text).unwrap();
    answer.check()?;
    Ok((answer, text))
}

/// Folds files in a way, and compares with the reference: the answer, or the lowest failure.
#[track_caller]
pub fn compare(paths: &[PathBuf], config: &Config, on_error: OnError, answer: &Answer) {
    let got = fold(paths, config, on_error);
    let lowest = match on_error {
        OnError::Fail => answer.lowest(),
        OnError::Skip | OnError::Null => None,
    };
    match (got, lowest) {
        (Ok((text, counts)), None) => {
            let want = answer.text(Style::OneBrc);
            let skipped = answer.malformed.len() as u64;
            assert_eq!(
                counts,
                [answer.rows, answer.empty_lines, skipped],
                "{config:?}"
            );
            assert!(
                text == want,
                "{config:?}\n got {}\nwant {}",
                shorten(&text),
                shorten(&want)
            );
        }
        (Err(error), Some(bad)) => {
            let (error, place) = (error.to_string(), bad.place(str(&paths[bad.file])));
            assert!(
                error.starts_with(&place),
                "{config:?}\n got {error}\nwant {place}…"
            );
        }
        (Ok(_), Some(bad)) => panic!("{config:?}: {bad:?} went unnoticed"),
        (Err(error), None) => panic!("{config:?}: {error}"),
    }
}

fn shorten(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(400)]).into_owned()
}

/// Depths and threads.
const SHAPES: [(usize, usize); 4] = [(1, 1), (7, 8), (2, 2), (64, 2)];

/// Every block size with two of the shapes.
fn configs(way: Way, blocks: &[usize]) -> impl Iterator<Item = Config> {
    let twice = blocks.iter().flat_map(|block| [block, block]);
    std::iter::zip(twice, SHAPES.iter().cycle()).map(move |(&block, &(depth, threads))| Config {
        block_size: Some(block),
        queue_depth: Some(depth),
        threads: Some(threads),
        ..way.config()
    })
}

struct Generated {
    _dir: tempfile::TempDir,
    paths: Vec<PathBuf>,
    answer: Answer,
}

/// 413 and 10,000 keys, in three files, the middle one without a newline at its end.
static GENERATED: LazyLock<Generated> = LazyLock::new(|| {
    let dir = dir();
    let stations = &STATIONS[..STATIONS.len() - 1];
    let some = &STATIONS[..STATIONS[..49_999]
        .iter()
        .rposition(|&b| b == b'\n')
        .unwrap()
        + 1];
    let files: [&[u8]; 3] = [&KEYS_10K, stations, some];
    let names = ["10k", "stations", "some"];
    let paths = std::iter::zip(names, files).map(|(name, text)| write(dir.path(), name, text));
    let paths = paths.collect();
    Generated {
        _dir: dir,
        paths,
        answer: reference::aggregate(&files, b';', LIMIT),
    }
});

#[test]
fn all_engines_blocks_depths_and_threads_agree_with_the_reference() {
    let Generated { paths, answer, .. } = &*GENERATED;
    assert!(answer.keys() > 9_000);
    for (n, &way) in WAYS.iter().enumerate() {
        // Other shapes for other engines.
        let mut blocks = [4 << 10, 64 << 10, 1 << 20, 4 << 20];
        blocks.rotate_left(n % 4);
        for config in configs(way, &blocks) {
            compare(paths, &config, OnError::Fail, answer);
        }
        compare(paths, &way.config(), OnError::Fail, answer);
    }
}

#[test]
fn the_program_answers_in_every_style_by_every_engine() {
    let Generated { paths, answer, .. } = &*GENERATED;
    for way in WAYS.iter() {
        for style in Style::ALL {
            let mut command = ringfold(["aggregate", "-f", style.flag()]);
            command
                .args(way.flags())
                .args(["-b", "64K", "-j", "2"])
                .args(paths);
            let got = end(&mut command).answer();
            assert!(
                got == answer.text(style),
                "{way:?} {style:?}\n{}",
                shorten(&got)
            );
        }
    }
}

#[test]
fn an_output_file_holds_the_same_bytes() {
    let Generated { paths, answer, .. } = &*GENERATED;
    let dir = dir();
    for style in Style::ALL {
        let out = dir.path().join("out");
        let mut command = ringfold(["aggregate", "-f", style.flag(), "-o", str(&out)]);
        assert_eq!(end(command.args(paths)).answer(), b"");
        assert!(
            std::fs::read(&out).unwrap() == answer.text(style),
            "{style:?}"
        );
        assert_eq!(names(dir.path()), ["out"]);
    }
}

/// Like the challenge's own samples, and what its programs stumble over.
fn samples() -> Vec<(&'static str, Vec<u8>, Option<&'static str>)> {
    let ten_thousand: String = (1..=10_000)
        .map(|n| format!("id{n};{}.{}\n", n % 100, n % 10))
        .collect();
    let long_key = "k".repeat(100);
    let long = format!("{long_key};-99.9\n{long_key};99.9\n");
    let all_tenths: String = (-999..=999)
        .map(|t: i32| {
            let sign = if t < 0 { "-" } else { "" };
            format!("t;{sign}{}.{}\n", t.abs() / 10, t.abs() % 10)
        })
        .collect();
    let utf8 = "B;8.9\nÅland;1.0\n東京;20.1\n🦀🦀;-0.5\nİzmir;3.4\nÅland;-1.0\ne\u{301};0.1\nA;1.1\n\
                \u{ffff};2.0\n\u{10000};3.0\n";
    let many_rows = "x;1.0\ny;-1.0\n".repeat(2_000);
    let windows = "a;1.0\r\nb;2.0\r\n\r\na;3.0\r\n";
    vec![
        ("one row", b"Kunming;19.8\n".to_vec(), Some("{Kunming=19.8/19.8/19.8}\n")),
        ("no newline at the end", b"a;1.0\nb;2.5".to_vec(), Some("{a=1.0/1.0/1.0, b=2.5/2.5/2.5}\n")),
        ("one row, no newline", b"a;-0.1".to_vec(), Some("{a=-0.1/-0.1/-0.1}\n")),
        ("one byte values", b"a;1\na;2\n".to_vec(), Some("{a=1.0/1.5/2.0}\n")),
        ("nothing", b"".to_vec(), Some("{}\n")),
        ("a newline", b"\n".to_vec(), Some("{}\n")),
        ("newlines", b"\n".repeat(9_000), Some("{}\n")),
        ("carriage returns", windows.as_bytes().to_vec(), Some("{a=1.0/2.0/3.0, b=2.0/2.0/2.0}\n")),
        ("a mark", b"\xef\xbb\xbfa;1.0\n".to_vec(), Some("{a=1.0/1.0/1.0}\n")),
        ("a mark alone", b"\xef\xbb\xbf".to_vec(), Some("{}\n")),
        ("half a mark", b"\xef\xbb;1.0\n".to_vec(), None),
        ("two marks", b"\xef\xbb\xbf\xef\xbb\xbfa;1.0\n\xef\xbb\xbfb;1.0\n".to_vec(), None),
        ("boundaries", b"a;-99.9\na;99.9\nb;-99.9\nc;99.9\n".to_vec(),
            Some("{a=-99.9/0.0/99.9, b=-99.9/-99.9/-99.9, c=99.9/99.9/99.9}\n")),
        ("rounding up", b"a;1.0\na;1.1\na;1.0\n".to_vec(), Some("{a=1.0/1.0/1.1}\n")),
        ("rounding to zero", b"a;-0.1\na;0.0\n".to_vec(), Some("{a=-0.1/0.0/0.0}\n")),
        ("rounding below zero", b"a;-2.5\na;-2.4\n".to_vec(), Some("{a=-2.5/-2.4/-2.4}\n")),
        ("33 tenths over 6", b"a;3.3\na;0.0\na;0.0\na;0.0\na;0.0\na;0.0\n".to_vec(),
            Some("{a=0.0/0.6/3.3}\n")),
        ("negative zero", b"a;-0.0\nb;-0\nb;-0.00000000\nc;-0.04\n".to_vec(),
            Some("{a=0.0/0.0/0.0, b=0.0/0.0/0.0, c=0.0/0.0/0.0}\n")),
        ("finer scales", b"a;0.05\nb;-0.05\nc;0.049999999999999999999\nd;-0.0500001\ne;12.25\ne;1.250\n".to_vec(),
            Some("{a=0.1/0.1/0.1, b=0.0/0.0/0.0, c=0.0/0.0/0.0, d=-0.1/-0.1/-0.1, e=1.3/6.8/12.3}\n")),
        ("leading zeros", b"a;007.5\na;-000000000000000000000000000000000000000000000000000000001.5\n".to_vec(),
            Some("{a=-1.5/3.0/7.5}\n")),
        ("36 digits", [
            b"big;999999999999999999999999999999999999.999999999999999999999999999999999999\n".to_vec(),
            b"big;-999999999999999999999999999999999999.9\nbig;0.1\n".to_vec(),
            b"tiny;0.000000000000000000000000000000000001\nmax;123456789012345678901234567890123456\n".to_vec(),
            b"max;9223372036854775807\nmax;9223372036854775808\nmax;18446744073709551616\n".to_vec(),
        ].concat(), None),
        ("sums past 64 bits", b"s;900000000000.999999\n".repeat(3_000), Some(
            "{s=900000000001.0/900000000001.0/900000000001.0}\n")),
        ("keys . and -", b".;1.0\n-;2.0\n-;-2.0\n.;0.9\n-1.0;3.0\n".to_vec(),
            Some("{-=-2.0/0.0/2.0, -1.0=3.0/3.0/3.0, .=0.9/1.0/1.0}\n")),
        ("an empty key", b";1.0\n;2.0\na;1.0\n".to_vec(), Some("{=1.0/1.5/2.0, a=1.0/1.0/1.0}\n")),
        ("keys like our output", b"a, b=1.0/2.0/3.0;1.0\n{};2.0\na/b;3.0\nx=y;4.0\n, ;5.0\n".to_vec(), Some(
            "{, =5.0/5.0/5.0, a, b=1.0/2.0/3.0=1.0/1.0/1.0, a/b=3.0/3.0/3.0, x=y=4.0/4.0/4.0, {}=2.0/2.0/2.0}\n")),
        ("blanks and tabs in keys", b" ;1.0\n\t;2.0\n a ;3.0\na\r;4.0\n".to_vec(), None),
        ("zero bytes", b"\0;1.0\n\0\0;2.0\na\0b;3.0\na;4.0\n\0;1.0\n".to_vec(), None),
        ("bad UTF-8", b"\xff\xfe;1.0\n\x80;2.0\n\xc3;3.0\n\xc3\xa9;4.0\n\xff\xfe;2.0\n".to_vec(), None),
        ("keys that begin alike", [
            b"abcdefgh;1.0\nabcdefg;2.0\nabcdefgh\0;3.0\nabcdefghi;4.0\n".to_vec(),
            b"abcdefghijklmnop;5.0\nabcdefghijklmno;6.0\nabcdefghijklmnopq;7.0\n".to_vec(),
            (1..140).flat_map(|n| format!("{};{n}\n", "z".repeat(n)).into_bytes()).collect(),
        ].concat(), None),
        ("all tenths", all_tenths.into_bytes(), Some("{t=-99.9/0.0/99.9}\n")),
        ("10,000 keys", ten_thousand.into_bytes(), None),
        ("the longest keys", long.into_bytes(), None),
        ("complex UTF-8", utf8.as_bytes().to_vec(), None),
        ("few keys, many rows", many_rows.into_bytes(), Some("{x=1.0/1.0/1.0, y=-1.0/-1.0/-1.0}\n")),
    ]
}

#[test]
fn samples_at_any_block_size() {
    let dir = dir();
    let mut shape = 0;
    for (name, text, want) in samples() {
        let path = write(dir.path(), name, &text);
        let answer = reference::aggregate(&[&text], b';', LIMIT);
        assert_eq!(answer.lowest(), None, "{name}");
        if let Some(want) = want {
            assert_eq!(
                String::from_utf8(answer.text(Style::OneBrc)).unwrap(),
                want,
                "{name}"
            );
        }
        let paths = [path];
        // A block of one byte makes a read a byte.
        let small = text.len() < 2_000;
        for &way in WAYS.iter() {
            let blocks: &[usize] = match (way.direct, small) {
                // See the test of empty files.
                (true, _) if text.is_empty() => &[],
                (true, _) => &[4096],
                (false, true) => &[1, 2, 7, 61, 4096],
                (false, false) => &[61 * 61, 4096],
            };
            for &block_size in blocks {
                let (depth, threads) = SHAPES[shape % 4];
                shape += 1;
                let config = Config {
                    block_size: Some(block_size),
                    queue_depth: Some(depth),
                    threads: Some(threads),
                    ..way.config()
                };
                compare(&paths, &config, OnError::Fail, &answer);
            }
        }
    }
}

#[test]
fn samples_in_every_style() {
    let dir = dir();
    for (name, text, _) in samples() {
        let path = write(dir.path(), name, &text);
        let answer = reference::aggregate(&[&text], b';', LIMIT);
        for style in Style::ALL {
            let mut command = ringfold(["aggregate", "-f", style.flag(), str(&path)]);
            let (got, _) = end(&mut command).answer_and_notices();
            let want = answer.text(style);
            assert!(
                got == want,
                "{name} {style:?}\n{}\n{}",
                shorten(&got),
                shorten(&want)
            );
        }
    }
}

#[test]
fn another_delimiter() {
    let dir = dir();
    let path = write(dir.path(), "tsv", b"a;b\t1.0\n;\t2.0\na;b\t3\n");
    for flag in ["\t", "\\t"] {
        let got = end(&mut ringfold(["aggregate", "-d", flag, str(&path)])).answer();
        assert_eq!(got, b"{;=2.0/2.0/2.0, a;b=1.0/2.0/3.0}\n");
    }
    let path = write(dir.path(), "digits", b"a01.0\nb0-2.0\n");
    let error = end(&mut ringfold([
        "aggregate",
        "-f",
        "1brc",
        "-d",
        "0",
        str(&path),
    ]))
    .failure(1);
    assert!(
        error.starts_with(&format!("{}: byte 0-5 (line 1): ", str(&path))),
        "{error}"
    );
}

#[test]
fn files_never_join_and_share_their_keys() {
    let dir = dir();
    let texts = [
        "a;1.0\nb;2",
        "a;3.0",
        "\u{feff}b;4.0\n",
        "",
        "\r\n",
        "a;5.5\n",
    ];
    let paths: Vec<PathBuf> = texts
        .iter()
        .enumerate()
        .map(|(n, text)| write(dir.path(), &n.to_string(), text.as_bytes()))
        .collect();
    let answer = reference::aggregate(&texts, b';', LIMIT);
    assert_eq!(
        answer.text(Style::OneBrc),
        b"{a=1.0/3.2/5.5, b=2.0/3.0/4.0}\n"
    );
    for way in cached_ways() {
        for config in configs(way, &[1, 3, 4096]) {
            compare(&paths, &config, OnError::Fail, &answer);
        }
    }
}

#[test]
fn empty_files_are_fine_past_the_page_cache_too() {
    if skips(
        "empty_files_are_fine_past_the_page_cache_too",
        &[Feature::Direct],
    ) {
        return;
    }
    let dir = dir();
    let (empty, full) = (
        write(dir.path(), "empty", b""),
        write(dir.path(), "full", b"a;1.0\n"),
    );
    for way in WAYS.iter().filter(|way| way.direct) {
        let run = |files: &[&PathBuf]| {
            end(ringfold(["aggregate"]).args(way.flags()).args(files)).answer()
        };
        assert_eq!(run(&[&empty]), b"{}\n", "{way:?}");
        assert_eq!(
            run(&[&empty, &full, &empty]),
            b"{a=1.0/1.0/1.0}\n",
            "{way:?}"
        );
    }
}

#[test]
fn the_same_file_twice_counts_twice() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\nb;2.0\n");
    for way in WAYS.iter() {
        let mut command = ringfold(["aggregate", "-f", "lines"]);
        command.args(way.flags()).args([&path, &path]);
        let got = end(&mut command).answer();
        assert_eq!(
            got,
            b"City | a | 1.00 | 1.00 | 1.00\nCity | b | 2.00 | 2.00 | 2.00\n"
        );
    }
}

fn engines() -> impl Iterator<Item = Engine> {
    cached_ways().map(|way| way.engine)
}

#[test]
fn standard_input_as_a_pipe() {
    let answer = reference::aggregate(&[&*STATIONS], b';', LIMIT).text(Style::OneBrc);
    for engine in engines() {
        for block in ["61", "64K", "4M"] {
            let flags = ["aggregate", "--engine", engine.name(), "-b", block, "-"];
            // Small blocks are for pipes that bring little at a time.
            let (text, want) = match block {
                "61" => (
                    &b"a;1.0\nb;2.0\r\n\na;2.0"[..],
                    &b"{a=1.0/1.5/2.0, b=2.0/2.0/2.0}\n"[..],
                ),
                _ => (&STATIONS[..], &answer[..]),
            };
            let mut child = start(ringfold(flags).stdin(Stdio::piped()));
            feed(&mut child, text.to_vec());
            assert!(end_of(child).answer() == want, "{engine} {block}");
        }
    }
}

#[test]
fn a_pipe_that_brings_a_byte_at_a_time() {
    use std::io::Write;
    for engine in engines() {
        let flags = ["aggregate", "--engine", engine.name(), "-"];
        let mut child = start(ringfold(flags).stdin(Stdio::piped()));
        let mut stdin = child.stdin.take().unwrap();
        for byte in b"k\xc3\xa9y;-1.5\nk\xc3\xa9y;2.5" {
            stdin.write_all(&[*byte]).unwrap();
        }
        drop(stdin);
        let want = "{kéy=-1.5/0.5/2.5}\n".as_bytes();
        assert_eq!(end_of(child).answer(), want, "{engine}");
    }
}

#[test]
fn standard_input_as_a_file_from_where_it_stands() {
    let dir = dir();
    let path = write(dir.path(), "in", b"skip;9.0\na;1.0\na;2.0\n");
    for engine in engines() {
        for (at, want) in [
            (0, &b"{a=1.0/1.5/2.0, skip=9.0/9.0/9.0}\n"[..]),
            (9, b"{a=1.0/1.5/2.0}\n"),
            (22, b"{}\n"),
            (1 << 20, b"{}\n"),
        ] {
            let mut file = File::open(&path).unwrap();
            file.seek(SeekFrom::Start(at)).unwrap();
            let mut command = ringfold(["aggregate", "--engine", engine.name(), "-"]);
            assert_eq!(
                end(command.stdin(file)).answer(),
                want,
                "{engine} from {at}"
            );
        }
    }
}

#[test]
fn standard_input_among_files() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    for engine in engines() {
        let mut command = ringfold(["aggregate", "--engine", engine.name()]);
        command
            .args([str(&path), "-", str(&path)])
            .stdin(Stdio::piped());
        let mut child = start(&mut command);
        feed(&mut child, b"a;4.0\nb;1.0".to_vec());
        let want = &b"{a=1.0/2.0/4.0, b=1.0/1.0/1.0}\n"[..];
        assert_eq!(end_of(child).answer(), want, "{engine}");
    }
}

pub(crate) fn fifo(dir: &Path, name: &str) -> PathBuf {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let path = dir.join(name);
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

#[test]
fn a_fifo() {
    let dir = dir();
    let path = fifo(dir.path(), "fifo");
    let answer = reference::aggregate(&[&*STATIONS], b';', LIMIT).text(Style::OneBrc);
    for engine in engines() {
        let child = start(&mut ringfold([
            "aggregate",
            "--engine",
            engine.name(),
            str(&path),
        ]));
        let to = path.clone();
        let writer = std::thread::spawn(move || {
            // The reader may fail early; then the pipe breaks.
            std::fs::write(to, &*STATIONS)
        });
        assert!(end_of(child).answer() == answer, "{engine}");
        writer.join().unwrap().unwrap();
    }
}

#[test]
fn files_of_procfs_have_no_size() {
    if skips("files_of_procfs_have_no_size", &[Feature::Procfs]) {
        return;
    }
    let text = std::fs::read("/proc/version").unwrap();
    let want = format!("{} {} /proc/version\n", 1, text.len());
    for engine in engines() {
        let mut command = ringfold(["count", "--engine", engine.name(), "/proc/version"]);
        assert_eq!(
            String::from_utf8(end(&mut command).answer()).unwrap(),
            want,
            "{engine}"
        );
        let mut command = ringfold(["aggregate", "--engine", engine.name(), "/dev/null"]);
        assert_eq!(end(&mut command).answer(), b"{}\n", "{engine}");
    }
}

#[test]
fn auto_reads_cached_parts_and_cold_ones_at_once() {
    let name = "auto_reads_cached_parts_and_cold_ones_at_once";
    if skips(name, &[Feature::IoUring, Feature::Eviction]) {
        return;
    }
    let dir = dir();
    let text = STATIONS.repeat(36);
    let answer = end(&mut ringfold([
        "aggregate",
        str(&write(dir.path(), "once", &STATIONS)),
    ]));
    // 36 times the same rows: the same minima, means and maxima.
    let want = answer.answer();
    let path = cold(dir.path(), "large", &text);
    let flags = [
        "aggregate",
        "--stats=json",
        "--cache=none",
        "-j",
        "2",
        str(&path),
    ];
    for cached in [
        0..0,
        0..3 << 20,
        (4 << 20) + 5..(6 << 20) + 5,
        0..text.len() as u64,
    ] {
        evict(&path, 0..text.len() as u64);
        let mut file = File::open(&path).unwrap();
        file.seek(SeekFrom::Start(cached.start)).unwrap();
        let advice = rustix::fs::Advice::Random;
        rustix::fs::fadvise(&file, 0, None, advice).unwrap();
        let mut warm = vec![0; (cached.end - cached.start) as usize];
        file.read_exact(&mut warm).unwrap();
        let (got, stats) = end(&mut ringfold(flags)).answer_and_notices();
        assert!(got == want, "cached {cached:?}\n{stats}");
        let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
        let [ring, copied, mapped] = ["dispatched_bytes", "copied_bytes", "mapped_bytes"]
            .map(|key| stats[key].as_u64().unwrap());
        // Other programs may drop or load pages: what lies between is not for us to say.
        if cached.is_empty() {
            assert!(ring > 0, "{stats}");
        }
        if cached.end == text.len() as u64 {
            assert!(copied + mapped > 0, "{stats}");
        }
        assert!(ring + copied + mapped >= text.len() as u64, "{stats}");
    }
}

/// Random knobs that every kernel with a ring has, none of them against reading past the page cache.
fn any_knobs() -> impl Strategy<Value = Knobs> {
    (
        prop_oneof![Just(HugePages::Auto), Just(HugePages::Off)],
        prop_oneof![2 => Just(None), 1 => Just(Some(false))],
        prop_oneof![2 => Just(None), 1 => Just(Some(None))],
        prop_oneof![Just(None), Just(Some(false))],
        prop_oneof![
            Just(None),
            Just(Some(MapAdvice::Sequential)),
            Just(Some(MapAdvice::Random))
        ],
    )
        .prop_map(
            |(huge_pages, registered_buffers, punt, populate, map_advice)| Knobs {
                huge_pages,
                registered_buffers,
                punt,
                populate,
                map_advice,
                ..Knobs::default()
            },
        )
}

/// A way with random settings that don't contradict each other.
pub fn any_config() -> impl Strategy<Value = Config> {
    let block = prop_oneof![1..64usize, 64..5_000usize, Just(4096), Just(65_536)];
    let most = WAYS.len();
    (
        0..most,
        block,
        1..65usize,
        1..33usize,
        prop_oneof![Just(1), Just(2), Just(8)],
        any_knobs(),
        prop_oneof![3 => Just(None), 1 => (0..100_000u64).prop_map(Some)],
    )
        .prop_map(|(way, block, depth, more, threads, knobs, readahead)| {
            let way = WAYS[way];
            let block = if way.direct {
                block.next_multiple_of(4096)
            } else {
                block
            };
            Config {
                block_size: Some(block),
                queue_depth: Some(depth),
                buffers: Some(depth + more),
                threads: Some(threads),
                knobs: Knobs {
                    readahead: readahead.filter(|_| !way.direct),
                    rings: way.rings(1 + more % 4).rings,
                    ..knobs
                },
                ..way.config()
            }
        })
}

/// Records that are malformed, or that a newline behind them saves.
const BROKEN: [&[u8]; 20] = [
    b"a",
    b";",
    b"a;",
    b"a;1;2",
    b";;",
    b"a;+1.0",
    b"a;.5",
    b"a;5.",
    b"a;1e3",
    b"a; 1.0",
    b"\0",
    b"a;1.0\r",
    b"a;1.0\r\r",
    b"\r\r",
    b"\xff",
    b"a;-",
    b"b;--1.0",
    b"b;1.-0",
    b"b;1-.0",
    b"a;1.0 ",
];

/// A text of rows, sometimes broken ones.
fn any_text(broken: u32) -> impl Strategy<Value = Vec<u8>> {
    let key = prop_oneof![
        4 => "[a-c]{1,2}",
        2 => "[ -:<-~]{0,40}",
        1 => "\\PC{0,12}".prop_map(|key| key.replace(';', "")),
    ];
    let value = prop_oneof![
        6 => "-?[0-9]{1,2}\\.[0-9]",
        1 => "-?[0-9]{1,20}",
        1 => "-?[0-9]{1,3}\\.[0-9]{1,25}",
    ];
    let row = (key, value).prop_map(|(key, value)| format!("{key};{value}").into_bytes());
    let bad = prop::sample::select(&BROKEN[..]).prop_map(<[u8]>::to_vec);
    let line = prop_oneof![20 => row, 1 => Just(Vec::new()), broken => bad];
    let ends = prop_oneof![12 => Just(&b"\n"[..]), 1 => Just(&b"\r\n"[..])];
    let mark = prop_oneof![4 => Just(&b""[..]), 1 => Just(&b"\xef\xbb\xbf"[..])];
    (
        mark,
        prop::collection::vec((line, ends), 0..60),
        any::<bool>(),
    )
        .prop_map(|(mark, lines, cut)| {
            let mut text = mark.to_vec();
            for (line, end) in &lines {
                text.extend(line);
                text.extend(*end);
            }
            if cut && text.ends_with(b"\n") {
                text.pop();
            }
            text
        })
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Checks files against the reference, as they are and with broken records skipped.
fn check(texts: &[Vec<u8>], config: &Config) {
    let dir = dir();
    let paths: Vec<PathBuf> = texts
        .iter()
        .enumerate()
        .map(|(n, text)| write(dir.path(), &n.to_string(), text))
        .collect();
    let answer = reference::aggregate(texts, b';', config.max_record);
    compare(&paths, config, OnError::Fail, &answer);
    compare(&paths, config, OnError::Skip, &answer);
}

/// Files that are empty are refused past the page cache: see the test that says so.
fn filled(texts: &[Vec<u8>], config: &Config) -> bool {
    !config.direct || texts.iter().all(|text| !text.is_empty())
}

proptest! {
    #![proptest_config(cases(drawn(80, 300)))]

    #[test]
    fn any_files_in_any_way(
        texts in prop::collection::vec(any_text(0), 1..4),
        config in any_config(),
    ) {
        prop_assume!(filled(&texts, &config));
        check(&texts, &config);
    }

    #[test]
    fn any_broken_files_in_any_way(
        texts in prop::collection::vec(any_text(1), 1..4),
        config in any_config(),
    ) {
        prop_assume!(filled(&texts, &config));
        check(&texts, &config);
    }

    #[test]
    fn any_limit_on_records_in_any_way(
        texts in prop::collection::vec(any_text(1), 1..3),
        config in any_config(),
        max_record in 3..70usize,
    ) {
        prop_assume!(filled(&texts, &config));
        check(&texts, &Config { max_record, ..config });
    }
}
