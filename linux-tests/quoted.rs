//! A framing with a state, in every engine: a newline between quotes ends no record, and where quotes are open follows
//! from all bytes before. The library, because no command has quotes yet.

use std::collections::BTreeMap;

use ringfold::{
    Block, BlockError, Config, Engine, Fold, Framing, Input, Kind, Malformed, Quoted, Span, fold,
};

use crate::answers::fifo;
use crate::probe::{Feature, skips};
use crate::support::{WAYS, Way, cached_ways, dir, evict, write};

/// Records by file and first byte.
type Records = BTreeMap<(u32, u64), Vec<u8>>;

/// Keeps every record; one that holds `bad` is malformed.
struct Keep;

impl Fold for Keep {
    type Partial = Records;
    type Output = Records;

    fn framing(&self) -> &dyn Framing {
        &Quoted::CSV
    }

    fn partial(&self) -> Records {
        Records::new()
    }

    fn block(&self, kept: &mut Records, block: &Block<'_>) -> Result<(), BlockError> {
        for (at, record) in records(block.bytes(), block.offset() == 0) {
            if let Some(bad) = record.windows(3).position(|bytes| bytes == b"bad") {
                let start = at as usize + bad;
                return Err(BlockError::Malformed(Malformed {
                    start,
                    end: start + 3,
                    cause: "bad".into(),
                }));
            }
            let place = (block.file(), block.offset() + at);
            let before = kept.insert(place, record.to_vec());
            assert_eq!(before, None, "{place:?} came twice");
        }
        Ok(())
    }

    fn merge(&self, into: &mut Records, mut from: Records) {
        into.append(&mut from);
    }

    fn finish(&self, kept: Records) -> Records {
        kept
    }
}

/// The records of a text with their first bytes, by the rules of RFC 4180: byte by byte, and by no code of ringfold's.
fn records(text: &[u8], is_file_start: bool) -> Vec<(u64, &[u8])> {
    let marked = is_file_start && text.starts_with(b"\xef\xbb\xbf");
    let (mut records, mut from) = (Vec::new(), 0);
    let (mut in_quotes, mut at_field) = (false, true);
    let mut at = if marked { 3 } else { 0 };
    while at < text.len() {
        match text[at] {
            b'"' if in_quotes && text.get(at + 1) == Some(&b'"') => at += 1,
            b'"' if in_quotes => in_quotes = false,
            b'"' if at_field => in_quotes = true,
            b'\n' if !in_quotes => {
                records.push((from as u64, &text[from..=at]));
                from = at + 1;
            }
            _ => {}
        }
        at_field = !in_quotes && matches!(text.get(at), Some(b',' | b'\n'));
        at += 1;
    }
    if from < text.len() {
        records.push((from as u64, &text[from..]));
    }
    records
}

/// A text of about so many bytes with everything that quotes can do.
fn csv(bytes: usize, seed: u64, marked: bool) -> Vec<u8> {
    let fields: [&[u8]; 10] = [
        b"plain",
        b"",
        b"\"quoted\"",
        b"\"with, comma\"",
        b"\"two\nlines\"",
        b"\"a \"\"word\"\" doubled\"",
        b"5\" plain",
        b"\"\n\n\"",
        b"\"\"",
        b"\"a line's end\r\n\"",
    ];
    let mut text = if marked {
        b"\xef\xbb\xbf".to_vec()
    } else {
        Vec::new()
    };
    let mut random = seed;
    while text.len() < bytes {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        text.extend(fields[(random >> 33) as usize % fields.len()]);
        text.extend(match (random >> 45) % 4 {
            0 => &b"\n"[..],
            1 => b"\r\n",
            _ => b",",
        });
    }
    text
}

/// The records of several files.
fn expected(texts: &[&[u8]]) -> Records {
    let of = |(file, text)| {
        let place = move |(at, record): (u64, &[u8])| ((file, at), record.to_vec());
        records(text, true).into_iter().map(place)
    };
    (0..).zip(texts.iter().copied()).flat_map(of).collect()
}

fn sizes(way: Way) -> &'static [usize] {
    match way.direct {
        true => &[4096, 8192],
        false => &[1, 2, 3, 7, 64, 1000, 65_536],
    }
}

#[test]
fn every_engine_and_size_gives_the_same_records() {
    let dir = dir();
    let texts = [
        csv(3_000, 1, true),
        csv(1, 2, false),
        csv(9_000, 3, false),
        Vec::new(),
        b"\"open\nto the\nend".to_vec(),
    ];
    let paths: Vec<_> = (0..)
        .zip(&texts)
        .map(|(n, text)| write(dir.path(), &format!("{n}"), text))
        .collect();
    let want = expected(&texts.each_ref().map(Vec::as_slice));
    for way in WAYS.iter() {
        for &block in sizes(*way) {
            for (threads, depth, buffers) in [(1, 1, 2), (2, 4, 5), (8, 32, 48)] {
                let config = Config {
                    block_size: Some(block),
                    threads: Some(threads),
                    queue_depth: Some(depth),
                    buffers: Some(buffers),
                    knobs: way.rings(3),
                    ..way.config()
                };
                let input = Input::open(&paths).unwrap();
                let (got, _) = fold(&input, &config, &Keep).unwrap();
                assert!(got == want, "{config:?}");
            }
        }
    }
}

/// Records far longer than a block, and a file that is one record.
#[test]
fn records_over_many_blocks() {
    let dir = dir();
    let mut text = b"a,b\n\"".to_vec();
    text.extend(b"a line, \"\"quoted\"\"\n".repeat(20_000));
    text.extend(b"\",c\nd,e\n");
    let path = write(dir.path(), "long", &text);
    let want = expected(&[&text]);
    assert_eq!(want.len(), 3);
    for way in WAYS.iter() {
        for block in [4096, 65_536] {
            let config = Config {
                block_size: Some(block),
                threads: Some(3),
                ..way.config()
            };
            let input = Input::open([&path]).unwrap();
            let (got, _) = fold(&input, &config, &Keep).unwrap();
            assert!(got == want, "{config:?}");
            let config = Config {
                max_record: 1000,
                ..config
            };
            let error = fold(&input, &config, &Keep).unwrap_err();
            assert_eq!(
                (error.kind(), error.bytes()),
                (Kind::Data, Some(4..1004)),
                "{config:?}"
            );
            assert!(error.to_string().contains("(line 2)"), "{error}");
        }
    }
}

#[test]
fn the_lowest_bad_record_is_told_with_its_line() {
    let dir = dir();
    let mut text = csv(40_000, 5, false);
    // Within quotes too a record is bad, and the line is the one that an editor shows.
    text.extend(b"\nx,\"\n\nbad\n\"\n");
    let first = text.windows(3).position(|bytes| bytes == b"bad").unwrap() as u64;
    text.extend(csv(20_000, 6, false));
    text.extend(b"\nbad again\n");
    let line = 1 + text[..first as usize]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count();
    let path = write(dir.path(), "bad", &text);
    for way in WAYS.iter() {
        for &block in sizes(*way).iter().filter(|&&block| block > 3) {
            let config = Config {
                block_size: Some(block),
                threads: Some(4),
                knobs: way.rings(2),
                ..way.config()
            };
            let input = Input::open([&path]).unwrap();
            let error = fold(&input, &config, &Keep).unwrap_err();
            assert_eq!(error.bytes(), Some(first..first + 3), "{config:?}");
            assert!(
                error.to_string().contains(&format!("(line {line})")),
                "{error}"
            );
        }
    }
}

/// What is cached is fetched by the workers and the rest by a ring: each waits for what the other finds out.
#[test]
fn a_file_that_is_half_cached() {
    let test = "a_file_that_is_half_cached";
    if skips(test, &[Feature::Eviction]) {
        return;
    }
    let dir = dir();
    let text = csv(24 << 20, 7, true);
    let path = write(dir.path(), "half", &text);
    let want = expected(&[&text]);
    let mib = |from: u64, to: u64| from << 20..to << 20;
    for cold in [
        vec![mib(0, 12)],
        vec![mib(12, 24)],
        vec![mib(2, 4), mib(8, 9), mib(13, 21)],
    ] {
        for threads in [1, 2, 5] {
            for range in &cold {
                evict(&path, range.clone());
            }
            let config = Config {
                threads: Some(threads),
                ..Config::default()
            };
            let input = Input::open([&path]).unwrap();
            let (got, stats) = fold(&input, &config, &Keep).unwrap();
            assert!(got == want, "{cold:?} {threads} {stats:?}");
        }
    }
}

#[test]
fn streams() {
    let dir = dir();
    let text = csv(300_000, 8, true);
    let want = expected(&[&text]);
    for engine in Engine::ALL {
        let path = fifo(dir.path(), engine.name());
        let (to, bytes) = (path.clone(), text.clone());
        let writer = std::thread::spawn(move || std::fs::write(to, bytes).unwrap());
        let config = Config {
            engine,
            block_size: Some(4096),
            ..Config::default()
        };
        let (got, _) = fold(&Input::open([&path]).unwrap(), &config, &Keep).unwrap();
        assert!(got == want, "{engine}");
        writer.join().unwrap();
    }
}

/// Spans that lie side by side from a file's start on know their states; one behind bytes that nobody reads doesn't.
#[test]
fn spans_know_the_state_or_are_refused() {
    let dir = dir();
    let text = csv(50_000, 9, false);
    let path = write(dir.path(), "spans", &text);
    let want = expected(&[&text]);
    let span = |from, to| Span {
        source: 0,
        from,
        to,
    };
    let len = text.len() as u64;
    for way in cached_ways() {
        for cuts in [vec![1], vec![777, 778, 20_000], vec![49_000]] {
            let mut spans = Vec::new();
            for pair in [vec![0], cuts, vec![len]].concat().windows(2) {
                spans.push(span(pair[0], pair[1]));
            }
            let input = Input::open([&path]).unwrap().with_spans(spans).unwrap();
            let config = Config {
                block_size: Some(1000),
                threads: Some(3),
                ..way.config()
            };
            let (got, _) = fold(&input, &config, &Keep).unwrap();
            assert!(got == want, "{config:?}");
        }
        for spans in [vec![span(1, len)], vec![span(0, 10), span(11, len)]] {
            let from = spans.last().unwrap().from;
            let input = Input::open([&path]).unwrap().with_spans(spans).unwrap();
            let error = fold(&input, &way.config(), &Keep).unwrap_err();
            assert_eq!(
                (error.kind(), error.bytes()),
                (Kind::Usage, Some(from..len)),
                "{way:?}"
            );
        }
    }
}
