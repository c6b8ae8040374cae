//! How a query reads records, and what becomes of malformed ones, in every engine, against a naive reader that goes byte
//! by byte over the whole text.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use ringfold::query::{OnError, Query};
use ringfold::report::grid::{GridFormat, write_grid};
use ringfold::{Config, Error, Input, Kind, fold};

use crate::catalogue::drawn;
use crate::support::{
    STATIONS, WAYS, cached_ways, dir, end, end_of, feed, names, ringfold, start, str,
    ways_in_small_blocks, write,
};

/// How records are written, and what is done with malformed ones.
#[derive(Debug, Clone)]
struct Reader {
    quote: Option<u8>,
    delimiter: u8,
    header: bool,
    single_line: bool,
    ragged: bool,
    squeeze: bool,
    skip_lines: usize,
    comment: Option<u8>,
    max_record: usize,
}

const CSV: Reader = Reader {
    quote: Some(b'"'),
    delimiter: b',',
    header: false,
    single_line: false,
    ragged: false,
    squeeze: false,
    skip_lines: 0,
    comment: None,
    max_record: 1 << 20,
};

/// A record that is left out: its place, its line and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bad {
    byte: usize,
    line: usize,
    record: Vec<u8>,
}

/// What a file holds.
#[derive(Debug, Default)]
struct Read {
    header: Option<Vec<Vec<u8>>>,
    rows: Vec<Vec<Vec<u8>>>,
    bad: Vec<Bad>,
}

impl Reader {
    /// The fields of the record at `from`, whether each holds a newline and where it opens, and what follows; or where
    /// the quote stands that can't be understood.
    fn record(&self, text: &[u8], from: usize) -> Result<(Vec<Vec<u8>>, usize, usize), usize> {
        let (mut fields, mut at) = (Vec::new(), from);
        let mut opened = None;
        loop {
            let mut field = Vec::new();
            let is_quoted = self.quote.is_some() && text.get(at).copied() == self.quote;
            if is_quoted {
                let open = at;
                at += 1;
                loop {
                    match text.get(at) {
                        None => return Err(open),
                        Some(b'\n') if self.single_line => return Err(open),
                        Some(&byte) if Some(byte) == self.quote => {
                            if text.get(at + 1).copied() != self.quote {
                                break;
                            }
                            field.push(byte);
                            at += 2;
                        }
                        Some(&byte) => {
                            field.push(byte);
                            at += 1;
                        }
                    }
                    if at - from > self.max_record + 10 {
                        return Err(open);
                    }
                }
                at += 1;
                if field.contains(&b'\n') {
                    opened = Some(open);
                }
                match &text[at..] {
                    [] | [b'\n', ..] | [b'\r', b'\n', ..] | [b'\r'] => {}
                    [byte, ..] if *byte == self.delimiter => {}
                    _ => return Err(open),
                }
            } else {
                while at < text.len() && text[at] != self.delimiter && text[at] != b'\n' {
                    field.push(text[at]);
                    at += 1;
                }
                if field.last() == Some(&b'\r') && text.get(at) != Some(&self.delimiter) {
                    field.pop();
                    at -= 1;
                }
            }
            if is_quoted || !(self.squeeze && field.is_empty()) {
                fields.push(field);
            }
            if text.get(at) == Some(&self.delimiter) {
                at += 1;
                continue;
            }
            let end = at;
            at += usize::from(text.get(at) == Some(&b'\r'));
            at += usize::from(text.get(at) == Some(&b'\n'));
            if end == from {
                fields.clear();
            }
            if end - from > self.max_record {
                return Err(opened.expect("no line is that long"));
            }
            return Ok((fields, end, at));
        }
    }

    fn read(&self, text: &[u8], width: &mut Option<usize>) -> Read {
        let mut read = Read::default();
        let newlines: Vec<usize> = memchr::memchr_iter(b'\n', text).collect();
        let line = |place: usize| 1 + newlines.partition_point(|&at| at < place);
        let behind_line = |place: usize| {
            let end = text[place..].iter().position(|&byte| byte == b'\n');
            end.map_or(text.len(), |end| place + end + 1)
        };
        let mut at = if text.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        };
        for _ in 0..self.skip_lines {
            at = behind_line(at);
        }
        while at < text.len() {
            if self.comment == Some(text[at]) {
                at = behind_line(at);
                continue;
            }
            match self.record(text, at) {
                Ok((fields, end, next)) => {
                    let is_header = self.header && read.header.is_none();
                    if is_header {
                        read.header = Some(fields.clone());
                        width.get_or_insert(fields.len());
                    } else if !fields.is_empty() {
                        let width = *width.get_or_insert(fields.len());
                        if fields.len() == width || self.ragged {
                            let mut fields = fields;
                            fields.resize(width, Vec::new());
                            read.rows.push(fields);
                        } else {
                            read.bad.push(Bad {
                                byte: at,
                                line: line(at),
                                record: text[at..end].to_vec(),
                            });
                        }
                    }
                    at = next;
                }
                Err(open) => {
                    let next = behind_line(open);
                    let mut record = &text[at..next];
                    record = record.strip_suffix(b"\n").unwrap_or(record);
                    record = record.strip_suffix(b"\r").unwrap_or(record);
                    read.bad.push(Bad {
                        byte: open,
                        line: line(open),
                        record: record.to_vec(),
                    });
                    at = next;
                }
            }
        }
        read
    }

    fn query(&self) -> Query {
        Query::new(self.delimiter)
            .quote(self.quote)
            .header(self.header)
            .single_line(self.single_line)
            .ragged(self.ragged)
            .squeeze(self.squeeze)
            .skip_lines(self.skip_lines as u64)
            .comment(self.comment.into_iter().collect::<Vec<u8>>())
            .keep_repeated_headers(true)
            .key(1)
    }
}

/// Counts by the first column.
fn counts(rows: &[Vec<Vec<u8>>]) -> BTreeMap<Vec<u8>, u64> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(row[0].clone()).or_insert(0) += 1;
    }
    counts
}

/// What a query answers, and the records that it left out as CSV, without the reasons.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    counts: BTreeMap<Vec<u8>, u64>,
    rows: u64,
    rejects: Vec<(String, Bad)>,
    first: Option<(u32, u64, Option<u64>)>,
}

/// The records of what [`ringfold::query::Rejects`] writes.
fn rejects(csv: &[u8]) -> Vec<(String, Bad)> {
    let reader = Reader {
        header: true,
        ..CSV
    };
    let read = reader.read(csv, &mut None);
    assert_eq!(
        read.header.unwrap().join(&b','),
        b"file,byte,line,reason,record"
    );
    assert!(read.bad.is_empty(), "{}", String::from_utf8_lossy(csv));
    let number = |field: &[u8]| std::str::from_utf8(field).unwrap().parse().unwrap();
    let rows = read.rows.into_iter();
    rows.map(|row| {
        let bad = Bad {
            byte: number(&row[1]),
            line: number(&row[2]),
            record: row[4].clone(),
        };
        assert!(row[3].len() > 5);
        (String::from_utf8(row[0].clone()).unwrap(), bad)
    })
    .collect()
}

fn told(query: &Query, input: &Input, config: &Config) -> Result<Told, Error> {
    let plan = query.plan(input, config)?;
    let (answer, _) = fold(input, config, &plan)?;
    let mut csv = Vec::new();
    write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
    let read = CSV.read(&csv, &mut None);
    let number = |field: &[u8]| std::str::from_utf8(field).unwrap().parse().unwrap();
    let mut out = Vec::new();
    let kept = answer.rejects.as_ref().unwrap();
    kept.write(input, &mut out).unwrap();
    let rejects = rejects(&out);
    assert_eq!(answer.skipped, rejects.len() as u64);
    Ok(Told {
        counts: read.rows[1..]
            .iter()
            .map(|row| (row[0].clone(), number(&row[1])))
            .collect(),
        rows: answer.rows,
        rejects,
        first: answer
            .first_skipped
            .map(|first| (first.file, first.bytes.start, first.line)),
    })
}

/// What must be told of these files.
fn wanted(reader: &Reader, files: &[(&Path, &[u8])]) -> Told {
    let (mut width, mut rows, mut rejects, mut first) = (None, Vec::new(), Vec::new(), None);
    for (at, (path, text)) in files.iter().enumerate() {
        let read = reader.read(text, &mut width);
        rows.extend(read.rows);
        for bad in read.bad {
            first.get_or_insert((at as u32, bad.byte as u64, Some(bad.line as u64)));
            rejects.push((str(path).to_string(), bad));
        }
    }
    Told {
        counts: counts(&rows),
        rows: rows.len() as u64,
        rejects,
        first,
    }
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just("a"), 4 => Just(","), 4 => Just("\n"), 2 => Just("b,c\n"), 2 => Just("\""),
        1 => Just("\"\""), 1 => Just("\"x,y\""), 1 => Just("\"p\nq\""), 1 => Just("\r\n"), 1 => Just("#"),
        1 => Just("#,\"\n"), 1 => Just(" "), 2 => Just("a,\"7\n"), 2 => Just("a,\"1\n2\"\n"),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat().into_bytes())
}

fn readers() -> impl Strategy<Value = Reader> {
    let delimiter = prop_oneof![4 => Just(b','), 1 => Just(b' ')];
    let comment = prop_oneof![Just(None), Just(Some(b'#'))];
    let skip = prop_oneof![2 => Just(0_usize), 1 => 1..4_usize];
    (
        any::<[bool; 3]>(),
        delimiter,
        comment,
        skip,
        prop::bool::weighted(0.8),
    )
        .prop_map(
            |([single_line, ragged, squeeze], delimiter, comment, skip_lines, is_quoted)| Reader {
                quote: is_quoted.then_some(b'"'),
                delimiter,
                single_line,
                ragged,
                squeeze,
                comment,
                skip_lines,
                ..CSV
            },
        )
}

/// Any text is read in the same way by every engine, whatever the blocks.
#[test]
fn any_text_in_every_engine() {
    let dir = dir();
    let cases = Cases {
        cases: drawn(15, 40),
        failure_persistence: None,
        ..Cases::default()
    };
    let tested =
        TestRunner::new(cases).run(&(readers(), pieces(), pieces()), |(reader, one, two)| {
            let paths = [
                write(dir.path(), "one", &one),
                write(dir.path(), "two", &two),
            ];
            let files = [(&*paths[0], &*one), (&*paths[1], &*two)];
            let want = wanted(&reader, &files);
            let query = reader.query().on_error(OnError::Skip).keep_rejects(true);
            for (way, config) in ways_in_small_blocks() {
                let input = Input::open(&paths).unwrap();
                let got = told(&query, &input, &config).unwrap();
                let (block, threads) = (config.block_size, config.threads);
                prop_assert_eq!(&got, &want, "{:?} {:?} {:?}", way, block, threads);
            }
            Ok(())
        });
    tested.unwrap();
}

/// Rows with a quoted field over two lines now and then, and `lone` records whose last field begins with a quote that
/// nobody closes.
fn with_lone_quotes(rows: usize, lone: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for row in 0..rows {
        let field = match row % 1000 {
            11 if row / 1000 < lone => format!("\"{row}"),
            12 if row % 3000 == 1012 => "\"1\n2\"".to_string(),
            9 if row % 5000 == 9 => "\"a, b\"".to_string(),
            _ => format!("{row}"),
        };
        text.extend(format!("k{},{field}\n", row % 3).bytes());
    }
    text
}

#[test]
fn a_lone_quote_costs_one_record() {
    let dir = dir();
    let text = with_lone_quotes(100_000, 100);
    let path = write(dir.path(), "lone.csv", &text);
    let want = wanted(&CSV, &[(&path, &text)]);
    assert_eq!((want.rows, want.rejects.len()), (99_900, 100));
    let query = CSV.query().on_error(OnError::Skip).keep_rejects(true);
    for way in WAYS.iter() {
        for block in [Some(4096), Some(1 << 16), None] {
            let config = Config {
                block_size: block,
                threads: Some(3),
                ..way.config()
            };
            let input = Input::open([&path]).unwrap();
            let got = told(&query, &input, &config).unwrap();
            assert!(got == want, "{way:?} {block:?}");
        }
    }
    let single = query.single_line(true);
    let input = Input::open([&path]).unwrap();
    let got = told(&single, &input, &Config::default()).unwrap();
    let reader = Reader {
        single_line: true,
        ..CSV
    };
    assert!(got == wanted(&reader, &[(&path, &text)]));
}

/// The last quote of a file, and one that is further than the longest record before the next.
#[test]
fn a_lone_quote_ends_with_the_longest_record() {
    let dir = dir();
    let mut text = with_lone_quotes(20_000, 3);
    text.extend_from_slice(b"k0,\"never\nk1,2\nk1,3\n");
    let path = write(dir.path(), "lone.csv", &text);
    let query = CSV.query().on_error(OnError::Skip).keep_rejects(true);
    for max_record in [60, 5_000, 1 << 20] {
        let reader = Reader { max_record, ..CSV };
        let want = wanted(&reader, &[(&path, &text)]);
        assert_eq!((want.rows, want.rejects.len()), (19_999, 4), "{max_record}");
        for way in cached_ways() {
            for block in [100, 4096] {
                let config = Config {
                    block_size: Some(block),
                    threads: Some(3),
                    max_record,
                    ..way.config()
                };
                let input = Input::open([&path]).unwrap();
                let got = told(&query, &input, &config).unwrap();
                assert!(got == want, "{way:?} {block} {max_record}");
            }
        }
    }
    // By default the place of the quote is told.
    let opens = text
        .windows(4)
        .position(|bytes| bytes == b"\"11\n")
        .unwrap() as u64;
    for (max_record, words) in [(60, "within 60 bytes"), (1 << 20, "goes on after it")] {
        for way in cached_ways() {
            let config = Config {
                block_size: Some(4096),
                max_record,
                ..way.config()
            };
            let input = Input::open([&path]).unwrap();
            let plan = CSV.query().plan(&input, &config).unwrap();
            let error = fold(&input, &config, &plan).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), Kind::Data, "{error}");
            assert_eq!(error.bytes().unwrap().start, opens, "{error}");
            assert_eq!(error.line(), Some(12), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}

/// A pipe is read once.
#[test]
fn records_of_a_pipe() {
    let dir = dir();
    let text = [
        &b"# a\n\"b\n"[..],
        b"k,v\n# c\n",
        &with_lone_quotes(30_000, 5),
    ]
    .concat();
    let reader = Reader {
        header: true,
        skip_lines: 2,
        comment: Some(b'#'),
        ..CSV
    };
    let want = wanted(&reader, &[(Path::new("-"), &text)]);
    assert_eq!((want.rows, want.rejects.len()), (29_995, 5));
    let target = dir.path().join("rejects.csv");
    for way in cached_ways() {
        for block in ["64", "64K"] {
            let mut command = ringfold([
                "aggregate",
                "-k1",
                "-d,",
                "--quote",
                "\"",
                "-H",
                "-b",
                block,
            ]);
            command
                .args([
                    "--skip-lines",
                    "2",
                    "--comment",
                    "#",
                    "--rejects",
                    str(&target),
                ])
                .args(way.flags())
                .stdin(Stdio::piped());
            let mut child = start(&mut command);
            feed(&mut child, text.clone());
            let (out, said) = end_of(child).answer_and_notices();
            let read = CSV.read(&out, &mut None);
            let counts: BTreeMap<_, u64> = read.rows[1..]
                .iter()
                .map(|row| {
                    (
                        row[0].clone(),
                        String::from_utf8_lossy(&row[1]).parse().unwrap(),
                    )
                })
                .collect();
            assert_eq!(counts, want.counts, "{way:?} {block}");
            assert_eq!(rejects(&std::fs::read(&target).unwrap()), want.rejects);
            let first = &want.rejects[0].1;
            let told = format!(
                "ringfold: 5 records skipped, the first at - byte {} line {}: the quote that opens here is closed, and the field goes on after it\n",
                first.byte, first.line
            );
            assert_eq!(said, told, "{way:?} {block}");
        }
    }
}

/// Numbers that aren't any, among others that are.
fn with_words(rows: usize, every: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for row in 0..rows {
        match row % every {
            3 => text.extend(format!("k{},x{row}\n", row % 3).bytes()),
            5 => text.extend(format!("k{},1,2\n", row % 3).bytes()),
            _ => text.extend(format!("k{},{}\n", row % 3, row % 100).bytes()),
        }
    }
    text
}

#[test]
fn values_that_are_not_numbers() {
    let dir = dir();
    let text = with_words(9_000, 100);
    let path = write(dir.path(), "words.csv", &text);
    let query = Query::new(b',').aggregate("count", None).unwrap();
    let query = query.aggregate("count", Some(2.into())).unwrap();
    let query = query.aggregate("sum", Some(2.into())).unwrap();
    let sum: usize = (0..9_000_usize)
        .filter(|row| ![3, 5].contains(&(row % 100)))
        .map(|row| row % 100)
        .sum();
    for (on_error, want) in [
        (OnError::Skip, [8_820, 8_820, 180, 0]),
        (OnError::Null, [8_910, 8_820, 90, 90]),
    ] {
        for way in cached_ways() {
            let config = Config {
                block_size: Some(100),
                ..way.config()
            };
            let input = Input::open([&path]).unwrap();
            let plan = query.clone().on_error(on_error).plan(&input, &config);
            let (answer, _) = fold(&input, &config, &plan.unwrap()).unwrap();
            let mut csv = Vec::new();
            write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
            let [rows, values, skipped, nulled] = want;
            assert_eq!(
                String::from_utf8_lossy(&csv),
                format!("count,count_2,sum_2\n{rows},{values},{sum}\n"),
            );
            assert_eq!((answer.skipped, answer.nulled), (skipped, nulled));
        }
    }
}

/// The record that is told doesn't hang on which one was one too many.
#[test]
fn too_many_errors() {
    let dir = dir();
    let text = with_words(30_000, 1000);
    let path = write(dir.path(), "words.csv", &text);
    let sum = Query::new(b',').aggregate("sum", Some(2.into())).unwrap();
    let place = |most: u64| {
        format!(
            "words.csv: byte 15-20 (line 4): more than {most} records are malformed, this one first: \
             `x3` is not a number (column 2)"
        )
    };
    for way in WAYS.iter() {
        for block in [4096, 1 << 16] {
            for threads in [1, 4] {
                let config = Config {
                    block_size: Some(block),
                    threads: Some(threads),
                    ..way.config()
                };
                for (most, is_error) in [(0, true), (59, true), (60, false)] {
                    let input = Input::open([&path]).unwrap();
                    let query = sum.clone().on_error(OnError::Skip).max_errors(most);
                    let plan = query.plan(&input, &config).unwrap();
                    match fold(&input, &config, &plan) {
                        Ok((answer, _)) => assert!(!is_error && answer.skipped == 60),
                        Err(error) => {
                            assert!(is_error, "{error}");
                            assert!(error.to_string().ends_with(&place(most)), "{error}");
                        }
                    }
                }
            }
        }
    }
    for args in [
        &["--max-errors", "59"][..],
        &["--max-errors", "5", "--on-error", "null", "-a", "count:1"],
    ] {
        let target = dir.path().join("rejects.csv");
        let mut command = ringfold(["aggregate", "-a", "sum:2", "--rejects", str(&target)]);
        let error = end(command.args(args).arg("words.csv").current_dir(dir.path())).failure(1);
        let want = match args.len() {
            2 => place(59),
            _ => "words.csv: byte 26-32 (line 6): more than 5 records are malformed, this one first: \
                  3 fields where the first record has 2"
                .to_string(),
        };
        assert_eq!(error, want);
        assert_eq!(names(dir.path()), ["words.csv"]);
    }
}

/// More rejects than the buffers hold, from many threads.
#[test]
fn rejects_in_the_order_of_the_input() {
    let dir = dir();
    let long = "x".repeat(200);
    let mut text = Vec::new();
    for row in 0..60_000 {
        match row % 2 {
            0 => text.extend(format!("k{},\"{long},{row}\n", row % 3).bytes()),
            _ => text.extend(format!("k,{row}\n").bytes()),
        }
    }
    let paths = [
        write(dir.path(), "one, two.csv", &text),
        write(dir.path(), "two.csv", &text),
    ];
    let files = [(&*paths[0], &*text), (&*paths[1], &*text)];
    let reader = Reader {
        single_line: true,
        ..CSV
    };
    let want = wanted(&reader, &files);
    assert_eq!(want.rejects.len(), 60_000);
    let query = reader.query().on_error(OnError::Skip).keep_rejects(true);
    for way in WAYS.iter() {
        let config = Config {
            block_size: Some(1 << 16),
            threads: Some(4),
            ..way.config()
        };
        let input = Input::open(&paths).unwrap();
        assert!(told(&query, &input, &config).unwrap() == want, "{way:?}");
    }
}

/// The answer of the program over files of a directory.
fn printed(dir: &Path, args: &[&str]) -> String {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    String::from_utf8(ended.answer()).unwrap()
}

#[test]
fn what_the_program_prints() {
    let dir = dir();
    write(dir.path(), "ragged.csv", b"a,1,x\nb,2\na,3,y,z\n");
    write(
        dir.path(),
        "preamble.csv",
        b"Report \"of\nyesterday\n\n# n\nk,v\na,1\n# \"c\na,2\n",
    );
    write(dir.path(), "blanks.txt", b"  a   1\nb 2  \n\n   \na  3\n");
    write(dir.path(), "comma.tsv", b"a\t1,5\na\t-,25\nb\t7\n");
    for (args, want) in [
        (
            &["--ragged", "-k", "1", "-a", "count:3,sum:2", "ragged.csv"][..],
            "key1,count_3,sum_2\na,2,4\nb,0,2\n",
        ),
        (
            &[
                "--skip-lines",
                "3",
                "--comment",
                "#",
                "-H",
                "-k",
                "k",
                "-a",
                "sum:v",
                "preamble.csv",
            ],
            "k,sum_v\na,3\n",
        ),
        (
            &[
                "-d",
                " ",
                "--squeeze",
                "-k",
                "1",
                "-a",
                "sum:2",
                "blanks.txt",
            ],
            "key1,sum_2\na,4\nb,2\n",
        ),
        (
            &["--decimal-comma", "-k", "1", "-a", "sum:2", "comma.tsv"],
            "key1,sum_2\na,1.25\nb,7.00\n",
        ),
    ] {
        assert_eq!(printed(dir.path(), args), want, "{args:?}");
    }
}

#[test]
fn what_is_told_of_skipped_records() {
    let dir = dir();
    write(dir.path(), "a.csv", b"k,v\na,1\nb,\"2\nc,3\nd,x\n");
    let rejects = dir.path().join("rejects.csv");
    let args = ["-H", "-a", "sum:v", "a.csv", "--rejects", "rejects.csv"];
    let (out, said) =
        end(ringfold(["aggregate"]).args(args).current_dir(dir.path())).answer_and_notices();
    assert_eq!(String::from_utf8_lossy(&out), "sum_v\n4\n");
    assert_eq!(
        said,
        "ringfold: 2 records skipped, the first at a.csv byte 10 line 3: the quote that opens here is never closed\n"
    );
    assert_eq!(
        std::fs::read_to_string(&rejects).unwrap(),
        "file,byte,line,reason,record\n\
         a.csv,10,3,the quote that opens here is never closed,\"b,\"\"2\"\n\
         a.csv,17,5,`x` is not a number (column `v`),\"d,x\"\n"
    );
    // Without a malformed record there is a header, and nothing is said.
    write(dir.path(), "good.csv", b"k,v\na,1\n");
    let args = ["-H", "-a", "sum:v", "good.csv", "--rejects", "rejects.csv"];
    assert_eq!(printed(dir.path(), &args), "sum_v\n1\n");
    assert_eq!(
        std::fs::read_to_string(&rejects).unwrap(),
        "file,byte,line,reason,record\n"
    );
    std::fs::remove_file(&rejects).unwrap();
    let error = end(ringfold(["aggregate", "-H", "-k", "k", "a.csv"]).current_dir(dir.path()));
    assert_eq!(
        error.failure(1),
        "a.csv: byte 10-12 (line 3): the quote that opens here is never closed: `--on-error skip` leaves out such records, `--quote none` takes quotes for bytes like others"
    );
    for (args, code, words) in [
        (
            &["-k1", "a.csv", "--on-error", "fail", "--rejects", "r"][..],
            2,
            "--rejects",
        ),
        (
            &["-k1", "a.csv", "--on-error", "fail", "--max-errors", "1"],
            2,
            "--max-errors",
        ),
        (&["-k1", "a.csv", "--rejects", "-"], 2, "standard output"),
        (&["-k1", "a.csv", "--rejects", "a.csv"], 2, "a.csv"),
        (
            &["-k1", "a.csv", "--rejects", "r", "-o", "r"],
            2,
            "--output",
        ),
        (&["-k1", "a.csv", "--comment", ","], 2, "comment"),
        (&["-k1", "a.csv", "--rejects", "no/r"], 1, "no/r"),
    ] {
        let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir.path()));
        let error = ended.failure(code);
        assert!(error.contains(words), "{args:?}: {error}");
        assert_eq!(names(dir.path()), ["a.csv", "good.csv"], "{args:?}");
    }
}

/// The main job tells the same of its skipped records.
#[test]
fn the_first_skipped_record_of_the_main_job() {
    let dir = dir();
    let mut text = STATIONS.to_vec();
    let at = 200_000 + text[200_000..].iter().position(|&b| b == b'\n').unwrap() + 1;
    text.splice(at..at, *b"broken\nagain\n");
    let path = write(dir.path(), "rows", &text);
    let line = 1 + text[..at].iter().filter(|&&b| b == b'\n').count();
    let want = format!(
        "ringfold: 2 records skipped, the first at {} byte {at} line {line}: 1 field where 2 are expected\n",
        str(&path)
    );
    for way in WAYS.iter() {
        let mut command = ringfold(["aggregate", "--on-error", "skip", "-b", "32K", "-j", "3"]);
        let (_, said) = end(command.args(way.flags()).arg(&path)).answer_and_notices();
        assert_eq!(said, want, "{way:?}");
    }
}

/// Exponents, infinities and nan are numbers where they are asked for.
#[test]
fn floats() {
    let dir = dir();
    let text = b"a,0.25\nb,1e300\nc,inf\nd,nan\na,1.0e-8\nc,-inf\nc,7\n";
    write(dir.path(), "floats.csv", text);
    for (args, want) in [
        (
            &[
                "-k",
                "1",
                "-a",
                "sum:2,max:2,var:2",
                "--float",
                "floats.csv",
            ][..],
            "key1,sum_2,max_2,var_2\na,0.25000001,0.25,0.03124999750000005\nb,1e300,1e300,\nc,nan,inf,nan\nd,nan,nan,\n",
        ),
        (
            &[
                "-k",
                "1",
                "-a",
                "min:2",
                "--float",
                "-f",
                "json",
                "floats.csv",
            ],
            "[\n{\"key1\":\"a\",\"min_2\":1e-8},\n{\"key1\":\"b\",\"min_2\":1e300},\n{\"key1\":\"c\",\"min_2\":\"-inf\"},\n{\"key1\":\"d\",\"min_2\":\"nan\"}\n]\n",
        ),
        (
            &[
                "-a",
                "count",
                "--float",
                "--where",
                "$2 < 2e-8 and $2 > -1e+5",
                "floats.csv",
            ],
            "count\n1\n",
        ),
    ] {
        assert_eq!(printed(dir.path(), args), want, "{args:?}");
    }
    let said =
        end(ringfold(["aggregate", "-k", "1", "-a", "sum:2"]).arg(dir.path().join("floats.csv")))
            .failure(1);
    assert!(said.contains("`1e300` has more than 38 digits"), "{said}");
}

/// Without -d the first records tell the delimiter, and what a file's name tells is checked.
#[test]
fn the_delimiter_is_found() {
    let dir = dir();
    write(dir.path(), "rows", b"a;1\nb;2\n");
    write(dir.path(), "both", b"a;1,5;x\nb;2,5;y\n");
    write(dir.path(), "words", b"a\nb\n");
    write(dir.path(), "sheet.csv", b"city;price\nBern;1,5\n");
    write(dir.path(), "tabs", b"a\t1\nb\t2\n");
    for (args, want) in [
        (&["-a", "sum:2", "rows"][..], "sum_2\n3\n"),
        (&["-a", "sum:2", "tabs"], "sum_2\n3\n"),
        (
            &["-a", "sum:2", "tabs", "rows", "-d", "\\x09", "--ragged"],
            "sum_2\n3\n",
        ),
        (&["-a", "sum:2", "--decimal-comma", "both"], "sum_2\n4.0\n"),
        (
            &[
                "-a",
                "sum:2",
                "-d",
                ";",
                "--decimal-comma",
                "-H",
                "sheet.csv",
            ],
            "sum_price\n1.5\n",
        ),
        (
            &["-k", "1", "-d", ",", "--quote", "none", "words"],
            "key1,count\na,1\nb,1\n",
        ),
    ] {
        assert_eq!(printed(dir.path(), args), want, "{args:?}");
    }
    for (args, want) in [
        (
            &["-k", "1", "both"][..],
            "both: several bytes may stand between the fields of the first records: `,` makes 2 of each, `;` makes 3 of each: name it by `-d ','` or `-d ';'`",
        ),
        (
            &["-k", "1", "words"],
            "words: can't tell the delimiter from the first records: name it, as `-d ','`; any byte that is in no record makes each line one field",
        ),
        (
            &["-H", "-k", "1", "sheet.csv"],
            "sheet.csv: its name says `,`, but `;` makes 2 fields of each of the first records: try `-d ';'`, or say `-d ','` if that is right",
        ),
    ] {
        let error = end(ringfold(["aggregate"]).args(args).current_dir(dir.path())).failure(2);
        assert_eq!(error, want, "{args:?}");
    }
    // A pipe that pauses behind its first bytes.
    for way in cached_ways() {
        let mut command = ringfold(["aggregate", "-k", "1", "-a", "sum:2", "--stats=json"]);
        let mut child = start(command.args(way.flags()).stdin(Stdio::piped()));
        feed(&mut child, b"a|1\nb|2\na|3\n".repeat(20_000));
        let (out, said) = end_of(child).answer_and_notices();
        assert_eq!(
            String::from_utf8_lossy(&out),
            "key1,sum_2\na,80000\nb,40000\n"
        );
        let stats: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(stats["job"]["delimiter"], "|", "{way:?}");
    }
    for format in ["text", "full"] {
        let format = format!("--stats={format}");
        let args = ["aggregate", "-k", "1", "tabs", &format];
        let (_, said) = end(ringfold(args).current_dir(dir.path())).answer_and_notices();
        let row = said
            .lines()
            .find(|line| line.starts_with("delimiter"))
            .unwrap();
        assert!(row.ends_with("  \\t"), "{said}");
    }
}

/// Columns that no record can have are refused, also where there is no record.
#[test]
fn columns_of_no_record() {
    let dir = dir();
    write(dir.path(), "empty.csv", b"");
    assert_eq!(
        printed(dir.path(), &["-k", "1-3", "empty.csv"]),
        "key1,key2,key3,count\n"
    );
    for (columns, words) in [
        ("1-999999999", "there is no column 999999999"),
        ("99999999999999999999", "there is no column"),
        ("3-2", "backwards"),
        ("0", "counted from 1"),
    ] {
        for flag in ["-k", "-acount:"] {
            let mut command = ringfold(["aggregate", "empty.csv", &format!("{flag}{columns}")]);
            let error = end(command.current_dir(dir.path())).failure(2);
            assert!(error.contains(words), "{error}");
        }
    }
}

/// Every file's header must have the first one's names.
#[test]
fn headers_agree() {
    let dir = dir();
    write(dir.path(), "a.csv", b"# one\nk,v\na,1\n");
    write(dir.path(), "b.csv", b"\"k\",v\r\na,2\r\n");
    write(dir.path(), "c.csv", b"# three\n# comments\nk,w\na,2\n");
    let args = ["--comment", "#", "-H", "-k", "k", "-a", "sum:v", "a.csv"];
    let mut both = args.to_vec();
    both.push("b.csv");
    assert_eq!(printed(dir.path(), &both), "k,sum_v\na,3\n");
    for way in cached_ways() {
        for block in ["1", "1M"] {
            let mut command = ringfold(["aggregate", "-b", block]);
            command.args(args).arg("c.csv").args(way.flags());
            let error = end(command.current_dir(dir.path())).failure(1);
            assert_eq!(
                error,
                "c.csv: byte 19-22 (line 3): the header isn't that of a.csv: column 2 is `w` here and `v` there"
            );
        }
    }
}
