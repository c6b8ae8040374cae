//! Compressed files: every format, member by member, and damaged at every place.

use std::io::Write;
use std::process::Stdio;

use flate2::{Compression, GzBuilder};
use ringfold::job::Count;
use ringfold::query::OnError;
use ringfold::{Config, Engine, Error, Input, fold, pool};

use crate::answers::pairs;
use crate::catalogue::are_all_wanted;
use crate::probe::{Feature, skips};
use crate::stats::figure;
use crate::support::{dir, end, end_of, evict, feed, ringfold, rows, start, str, write};
use crate::sys;

/// A way to compress a text.
type Compress = fn(&[u8]) -> Vec<u8>;

const FORMATS: [(&str, Compress); 6] = [
    ("gz", gzip),
    ("bgz", bgzf),
    ("zst", zstandard),
    ("bz2", bzip),
    ("xz", xz),
    ("lz4", lz4),
];

pub fn gzip(text: &[u8]) -> Vec<u8> {
    member(GzBuilder::new().filename("text"), text)
}

fn member(builder: GzBuilder, text: &[u8]) -> Vec<u8> {
    let mut encoder = builder.write(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Members of up to 60,000 bytes that tell their sizes, and an empty one at the end.
fn bgzf(text: &[u8]) -> Vec<u8> {
    let block = |text: &[u8]| {
        let extra = [b'B', b'C', 2, 0, 0, 0];
        let mut block = member(GzBuilder::new().extra(extra), text);
        let size = u16::try_from(block.len() - 1).unwrap();
        block[16..18].copy_from_slice(&size.to_le_bytes());
        block
    };
    let chunks = text.chunks(60_000).chain([&[][..]]);
    chunks.flat_map(block).collect()
}

pub fn zstandard(text: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

pub fn bzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

pub fn xz(text: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

pub fn lz4(text: &[u8]) -> Vec<u8> {
    let info = lz4_flex::frame::FrameInfo::new()
        .content_checksum(true)
        .block_checksums(true);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// One worker, started once, and small buffers: to make large ones takes longer than all else of a small input.
fn one_thread() -> Config {
    let config = Config {
        threads: Some(1),
        block_size: Some(4096),
        ..Config::default()
    };
    let workers = pool(&Input::memory([&b""[..]]), &config).unwrap();
    Config {
        pool: Some(workers),
        ..config
    }
}

/// The answer over an input.
fn answer(input: &Input, config: &Config) -> Result<Vec<u8>, Error> {
    let (_, text) = pairs(input, config, OnError::Fail)?;
    Ok(text)
}

/// One member and two, from a file and from memory, in every engine that is asked for.
#[test]
fn every_format_in_every_engine() {
    let dir = dir();
    let text = rows(40_000, Some(300), 7);
    let (front, back) = text.split_at(text.len() / 3);
    let plain = write(dir.path(), "plain", &text);
    let want = answer(&Input::open([plain]).unwrap(), &Config::default()).unwrap();
    for (ending, compress) in FORMATS {
        for compressed in [compress(&text), [compress(front), compress(back)].concat()] {
            assert!(compressed.len() < text.len());
            let path = write(dir.path(), &format!("text.{ending}"), &compressed);
            for engine in Engine::ALL {
                for (block, threads) in [(64, 1), (4096, 4), (1 << 20, 2)] {
                    let config = Config {
                        engine,
                        block_size: Some(block),
                        threads: Some(threads),
                        ..Config::default()
                    };
                    let input = Input::open([&path]).unwrap().decompressed().unwrap();
                    let got = answer(&input, &config).unwrap();
                    assert!(got == want, "{ending} {engine} {block}");
                }
            }
            let input = Input::memory([compressed]).decompressed().unwrap();
            assert!(answer(&input, &Config::default()).unwrap() == want);
        }
    }
}

/// Many members, as parallel compressors write them. One that is damaged or missing is an error.
#[test]
fn frames_are_decoded_side_by_side() {
    let dir = dir();
    let text = rows(200_000, Some(300), 7);
    let plain = write(dir.path(), "plain", &text);
    let want = answer(&Input::open([plain]).unwrap(), &Config::default()).unwrap();
    for (ending, compress) in FORMATS {
        let frames: Vec<Vec<u8>> = text.chunks(50_000).map(compress).collect();
        let path = write(dir.path(), &format!("text.{ending}"), &frames.concat());
        let input = || Input::open([&path]).unwrap().decompressed().unwrap();
        assert!(
            answer(&input(), &Config::default()).unwrap() == want,
            "{ending}"
        );
        let half = frames.len() / 2;
        let before = frames[..half].concat().len();
        let mut damaged = frames.concat();
        damaged[before + frames[half].len() / 2] ^= 0x10;
        for bytes in [&damaged, &frames.concat()[..damaged.len() - 3]] {
            write(dir.path(), &format!("text.{ending}"), bytes);
            // Of a record that is cut it may be told first.
            answer(&input(), &Config::default()).unwrap_err();
        }
    }
}

/// Several files are decompressed side by side. The answer is that of their texts, and the lowest failure is told.
#[test]
fn several_files_at_once() {
    let dir = dir();
    let text = rows(60_000, Some(300), 9);
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let lines: Vec<&[u8]> = lines.collect();
    let (mut plain, mut compressed) = (Vec::new(), Vec::new());
    for (at, some) in lines.chunks(lines.len() / 11).enumerate() {
        let (ending, compress) = FORMATS[at % FORMATS.len()];
        let some = some.concat();
        plain.push(write(dir.path(), &format!("{at}"), &some));
        let name = format!("{at}.{ending}");
        compressed.push(write(dir.path(), &name, &compress(&some)));
    }
    let want = answer(&Input::open(&plain).unwrap(), &Config::default()).unwrap();
    for threads in [1, 2, 3, 16] {
        for block in [64, 5000, 1 << 20] {
            let config = Config {
                block_size: Some(block),
                threads: Some(threads),
                ..Config::default()
            };
            let input = Input::open(&compressed).unwrap().decompressed().unwrap();
            assert!(
                answer(&input, &config).unwrap() == want,
                "{threads} {block}"
            );
        }
    }
    // Two are cut off, and a record before them is bad in one of the runs.
    for at in [4, 8] {
        let whole = std::fs::read(&compressed[at]).unwrap();
        std::fs::write(&compressed[at], &whole[..whole.len() / 2]).unwrap();
    }
    let config = Config {
        threads: Some(4),
        ..Config::default()
    };
    let failure = || {
        let input = Input::open(&compressed).unwrap().decompressed().unwrap();
        answer(&input, &config).unwrap_err().to_string()
    };
    for _ in 0..10 {
        let error = failure();
        assert!(
            error.contains("4.xz") && error.contains("cut off"),
            "{error}"
        );
    }
    let bad = [b"a;1.0\nbad\n", &std::fs::read(&plain[2]).unwrap()[..]].concat();
    std::fs::write(&compressed[2], zstandard(&bad)).unwrap();
    for _ in 0..10 {
        let error = failure();
        assert!(error.contains("2.zst: byte 6-9 (line 2)"), "{error}");
    }
}

/// Memory is that of the files that are decoded at a time, however many there are.
#[test]
fn many_files_take_the_memory_of_few() {
    // A sanitizer takes memory of its own.
    if skips("many_files_take_the_memory_of_few", &[Feature::Plain]) {
        return;
    }
    let dir = dir();
    let compressed = gzip(&rows(600_000, Some(300), 7));
    let paths = (0..24).map(|n| write(dir.path(), &format!("{n}.gz"), &compressed));
    let paths: Vec<_> = paths.collect();
    let flags = ["aggregate", "--threads", "2", "--stats=json"];
    let (_, stats) = end(ringfold(flags).args(&paths)).answer_and_notices();
    let peak = figure(
        &serde_json::from_str(&stats).unwrap(),
        "peak_anonymous_bytes",
    );
    assert!(peak < 100 << 20, "{peak} bytes");
}

/// A frame of zstd, or a stream of xz, that makes its decoder keep so much.
fn wide(is_zstd: bool, window: u32, text: &[u8]) -> Vec<u8> {
    if is_zstd {
        use zstd::zstd_safe::CParameter::{EnableLongDistanceMatching, WindowLog};
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder
            .set_parameter(EnableLongDistanceMatching(true))
            .unwrap();
        encoder.set_parameter(WindowLog(window.ilog2())).unwrap();
        encoder.write_all(text).unwrap();
        return encoder.finish().unwrap();
    }
    let mut options = liblzma::stream::LzmaOptions::new_preset(0).unwrap();
    options.dict_size(window);
    let mut filters = liblzma::stream::Filters::new();
    filters.lzma2(&options);
    let check = liblzma::stream::Check::Crc64;
    let stream = liblzma::stream::Stream::new_stream_encoder(&filters, check).unwrap();
    let mut encoder = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// What decoders keep is bounded for all of them together: files wait for each other, and one that alone needs more is
/// refused by a limit that has a name.
#[test]
fn windows_of_decoders_are_bounded() {
    // A sanitizer takes memory of its own.
    if skips("windows_of_decoders_are_bounded", &[Feature::Plain]) {
        return;
    }
    const MIB: u32 = 1 << 20;
    let dir = dir();
    // More text than the windows have, of few compressed bytes.
    let text = rows(30_000, Some(300), 7).repeat(85);
    assert!(text.len() > 34 << 20);
    let plain = write(dir.path(), "plain", &text);
    let once = end(&mut ringfold(["count", str(&plain)])).answer();
    let once = String::from_utf8(once).unwrap();
    let counts: Vec<u64> = once
        .split_whitespace()
        .take(2)
        .map(|n| n.parse().unwrap())
        .collect();
    for is_zstd in [true, false] {
        let paths: Vec<_> = (0..4)
            .map(|n| {
                // The second begins with less than it needs later: what it has is given back in between.
                let small = wide(is_zstd, 4 * MIB, b"");
                let bytes = wide(is_zstd, 32 * MIB, &text);
                let all = if n == 1 {
                    [small, bytes].concat()
                } else {
                    bytes
                };
                write(dir.path(), &format!("{n}.{is_zstd}"), &all)
            })
            .collect();
        let run = |flags: &[&str]| {
            let command = ["count", "-j", "4", "--stats=json"];
            end(ringfold(command).args(flags).args(&paths))
        };
        let (total, stats) = run(&["--decoder-memory", "34M"]).answer_and_notices();
        let total = String::from_utf8(total).unwrap();
        let total = total.lines().last().unwrap().split_whitespace();
        let total: Vec<u64> = total.take(2).map(|n| n.parse().unwrap()).collect();
        assert_eq!(total, [4 * counts[0], 4 * counts[1]]);
        let stats = serde_json::from_str(&stats).unwrap();
        let peak = figure(&stats, "peak_anonymous_bytes");
        assert!(peak < (34 + 50) << 20, "{is_zstd}: {peak} bytes");
        // What a window may have counts, not what it holds. As much as is allowed is a quarter of `--memory`.
        let few = rows(3_000, Some(300), 7);
        let plain = write(dir.path(), "few", &few);
        let narrow: Vec<_> = (0..4)
            .map(|n| {
                write(
                    dir.path(),
                    &format!("few{n}"),
                    &wide(is_zstd, 32 * MIB, &few),
                )
            })
            .collect();
        let keys = ["aggregate", "-d", ";", "-k", "1", "--memory"];
        let refused = end(ringfold(keys).arg("64M").args(&narrow)).failure(1);
        let says = "and may have 16 MiB (--decoder-memory): `--decoder-memory 33M` allows it";
        assert!(
            refused.contains(says) && !refused.contains("damaged"),
            "{refused}"
        );
        let allowed = ["64M", "--decoder-memory", "33M"];
        let allowed = end(ringfold(keys).args(allowed).args(&narrow)).answer();
        assert!(allowed == end(ringfold(keys).arg("136M").args([&plain; 4])).answer());
        // Texts are read in order by one thread; and what comes first is looked for in all files before the run.
        let limit = ["--decoder-memory", "34M"];
        let quoted = end(ringfold(["quote"]).args(limit).args(&narrow)).answer();
        assert!(quoted == end(ringfold(["quote"]).args([&plain; 4])).answer());
        let skip = ["aggregate", "-d", ";", "-k", "1", "--skip-lines", "1"];
        let skipped = end(ringfold(skip).args(limit).args(&narrow)).answer();
        assert!(skipped == end(ringfold(skip).args([&plain; 4])).answer());
        // What comes through a pipe can't begin anew.
        let piped = std::fs::read(&paths[1]).unwrap();
        let count = ["count", "-q", "--decoder-memory", "34M"];
        let piped = {
            let mut child = start(ringfold(count).stdin(Stdio::piped()));
            feed(&mut child, piped);
            end_of(child).answer()
        };
        assert!(
            String::from_utf8(piped)
                .unwrap()
                .contains(&counts[0].to_string())
        );
    }
}

/// Frames side by side have the memory of one account, and a run that fails waits for nobody.
#[test]
fn parts_of_a_file_wait_for_memory_in_order() {
    let dir = dir();
    let text = rows(30_000, Some(300), 7);
    // Each is a part of its own, because it is long.
    let noise: Vec<u8> = rows(200_000, Some(100_000), 3);
    let frame = |text: &[u8]| wide(true, 8 << 20, text);
    let mut bytes = Vec::new();
    for n in 0..12 {
        bytes.extend(frame(if n % 3 == 0 { &text } else { &noise }));
    }
    let path = write(dir.path(), "frames", &bytes);
    let limited = ["count", "-q", "-j", "4", "--decoder-memory", "10M"];
    let few = end(ringfold(limited).arg(&path).arg(&path)).answer();
    assert!(few == end(ringfold(["count", "-q", "-j", "4"]).arg(&path).arg(&path)).answer());
    // One has a malformed record: the others give up.
    let bad = write(
        dir.path(),
        "bad",
        &frame(&[&text[..], b"a;x\n", &noise].concat()),
    );
    let job = ["aggregate", "-q", "-j", "4", "--decoder-memory", "10M"];
    let error = end(ringfold(job).args([&path, &bad, &path, &path])).failure(1);
    assert!(error.contains("bad: byte"), "{error}");
}

/// What a ring reads ahead is what decoders take: of files that aren't cached past the page cache, else through it. A file
/// that is damaged far behind is an error, whoever reads it.
#[test]
fn a_ring_reads_compressed_files_ahead() {
    let test = "a_ring_reads_compressed_files_ahead";
    if skips(
        test,
        &[Feature::IoUring, Feature::Eviction, Feature::Direct],
    ) {
        return;
    }
    let dir = dir();
    // Decoders begin before the run, and the kernel reads ahead for them: most of a file must be left.
    let text = rows(4_000_000, Some(100_000), 7);
    let lines = Count { delimiter: b'\n' };
    let records = text.iter().filter(|byte| **byte == b'\n').count();
    let want = (records as u64, text.len() as u64);
    for (ending, compress) in [("gz", gzip as Compress), ("zst", zstandard)] {
        let mut compressed = compress(&text);
        assert!(compressed.len() > 20 << 20, "{ending}");
        let path = write(dir.path(), &format!("text.{ending}"), &compressed);
        for (engine, is_cold) in [
            (Engine::Auto, true),
            (Engine::Auto, false),
            (Engine::Uring, false),
            (Engine::Pread, true),
        ] {
            if is_cold {
                evict(&path, 0..compressed.len() as u64);
            } else {
                std::fs::read(&path).unwrap();
            }
            let config = Config {
                engine,
                threads: Some(2),
                ..Config::default()
            };
            let input = Input::open([&path]).unwrap().decompressed_by(2).unwrap();
            let (counted, stats) = fold(&input, &config, &lines).unwrap();
            let counted = (counted[0].records, counted[0].bytes);
            assert_eq!(counted, want, "{ending} {engine}");
            let is_ring = is_cold && engine == Engine::Auto || engine == Engine::Uring;
            let read = stats.compressed_bytes;
            assert_eq!(read > 8 << 20, is_ring, "{ending} {engine}: {read}");
        }
        let at = compressed.len() - (1 << 20);
        compressed[at..at + 8]
            .iter_mut()
            .for_each(|byte| *byte ^= 0xff);
        let path = write(dir.path(), &format!("text.{ending}"), &compressed);
        evict(&path, 0..compressed.len() as u64);
        let input = Input::open([&path]).unwrap().decompressed().unwrap();
        let error = fold(&input, &Config::default(), &lines).unwrap_err();
        assert!(error.to_string().contains("damaged"), "{error}");
    }
}

/// Of a stream that is cut off nothing is answered, wherever that is.
#[test]
fn a_stream_that_is_cut_off_is_an_error() {
    let text = rows(100, Some(30), 3);
    let config = one_thread();
    let step = if are_all_wanted() { 1 } else { 7 };
    for (ending, compress) in FORMATS {
        let whole = compress(&text);
        // Shorter ones are no longer known to be compressed. A file of BGZF may end behind any of its members.
        let most = if ending == "bgz" {
            whole.len() - 29
        } else {
            whole.len()
        };
        for length in (10..most).step_by(step) {
            let input = Input::memory([&whole[..length]]).decompressed();
            let got = input.and_then(|input| answer(&input, &config));
            assert!(got.is_err(), "{ending}, {length} bytes of {}", whole.len());
        }
    }
}

/// A byte that has changed is found, or means nothing.
#[test]
fn damaged_bytes_never_change_an_answer() {
    let text = rows(100, Some(30), 5);
    let config = one_thread();
    let want = answer(&Input::memory([text.as_slice()]), &config).unwrap();
    let step = if are_all_wanted() { 1 } else { 7 };
    for (ending, compress) in FORMATS {
        let mut damaged = compress(&text);
        let mut errors = 0;
        for at in (0..damaged.len()).step_by(step) {
            damaged[at] ^= 0x41;
            let input = Input::memory([damaged.as_slice()]).decompressed();
            match input.and_then(|input| answer(&input, &config)) {
                Ok(got) => assert!(got == want, "{ending} at {at}"),
                Err(_) => errors += 1,
            }
            damaged[at] ^= 0x41;
        }
        assert!(errors > damaged.len() / step / 2, "{ending}: {errors}");
    }
}

/// The content tells, not the name; a flag leaves all files as they are; pipes are looked at too.
#[test]
fn what_the_program_reads() {
    let dir = dir();
    write(dir.path(), "text.gz", b"a;1.0\nb;2.0\n");
    let compressed = gzip(b"city,n\nBern,1\nBern,2\n");
    write(dir.path(), "orders.csv.gz", &compressed);
    write(dir.path(), "unnamed", &compressed);
    let run = |args: &[&str]| end(ringfold(args).current_dir(dir.path()));
    assert_eq!(
        run(&["aggregate", "text.gz"]).answer(),
        b"{a=1.0/1.0/1.0, b=2.0/2.0/2.0}\n"
    );
    let query = ["aggregate", "-H", "-k", "city", "-a", "sum:n"];
    let want = b"city,sum_n\nBern,3\n";
    for file in ["orders.csv.gz", "unnamed"] {
        assert_eq!(run(&[&query[..], &["-d,", file]].concat()).answer(), want);
    }
    // The ending before that of the compression tells the delimiter.
    assert_eq!(
        run(&[&query[..], &["orders.csv.gz"]].concat()).answer(),
        want
    );
    assert_eq!(
        run(&["count", "orders.csv.gz", "unnamed"]).answer(),
        b" 3 21 orders.csv.gz\n 3 21 unnamed\n 6 42 total\n"
    );
    let raw = format!("{}\n", compressed.len());
    assert_eq!(
        run(&["count", "--bytes", "--no-decompress", "orders.csv.gz"]).answer(),
        raw.trim_end()
            .as_bytes()
            .iter()
            .chain(b" orders.csv.gz\n")
            .copied()
            .collect::<Vec<_>>()
    );
    let mut piped = ringfold([&query[..], &["-d,"]].concat());
    let mut child = start(piped.stdin(Stdio::piped()));
    feed(&mut child, compressed.clone());
    assert_eq!(end_of(child).answer(), want);
    assert_eq!(
        run(&["quote", "unnamed"]).answer(),
        b"'city,n'\n'Bern,1'\n'Bern,2'\n"
    );
}

/// A bad record is told by its place in the text, and so is the end of what could be decompressed.
#[test]
fn errors_name_places_in_the_text() {
    let dir = dir();
    let mut text = rows(100_000, None, 1);
    let (byte, lines) = (text.len(), 100_001);
    text.extend_from_slice(b"bad\na;1.0\n");
    for (ending, compress) in FORMATS {
        let name = format!("text.{ending}");
        let compressed = compress(&text);
        write(dir.path(), &name, &compressed);
        let mut command = ringfold(["aggregate", &name]);
        let error = end(command.current_dir(dir.path())).failure(1);
        let want = format!(
            "{name}: byte {byte}-{} (line {lines}) of the decompressed text: 1 field where 2 are expected",
            byte + 3
        );
        assert_eq!(error, want);
        write(dir.path(), &name, &compressed[..compressed.len() / 2]);
        let mut command = ringfold(["aggregate", "--on-error", "skip", &name]);
        let error = end(command.current_dir(dir.path())).failure(1);
        let is_cut_off = error.ends_with("data is cut off");
        // A file of BGZF that ends within a member has a size that isn't true.
        assert!(
            is_cut_off || ending == "bgz" && error.contains("gzip data is"),
            "{error}"
        );
    }
}

/// Records are left out that only make sense once the input is read in order: the file is decompressed a second time.
#[test]
fn malformed_quotes_are_skipped_as_in_the_text() {
    let dir = dir();
    let mut text = Vec::new();
    for row in 0..30_000 {
        match row {
            7_000 => text.extend_from_slice(b"\"open,1\n"),
            12_000 => text.extend_from_slice(b"\"closed\"early,2\n"),
            _ => writeln!(text, "\"k {}\",{row}", row % 7).unwrap(),
        }
    }
    let plain = write(dir.path(), "plain.csv", &text);
    for on_error in ["skip", "null", "fail"] {
        let run = |path: &std::path::Path| {
            let mut command = ringfold(["aggregate", "-k", "1", "-a", "count,sum:2", "-b", "64k"]);
            let ended = end(command.args(["--on-error", on_error]).arg(path));
            // The place is one of the text.
            let errors = ended.stderr.replace(" of the decompressed text", "");
            let errors = errors.replace(path.to_str().unwrap(), "FILE");
            (ended.code, ended.stdout, errors)
        };
        let want = run(&plain);
        assert!(want.2.contains("line 7001"), "{want:?}");
        for (ending, compress) in FORMATS {
            let path = write(dir.path(), &format!("text.csv.{ending}"), &compress(&text));
            assert_eq!(run(&path), want, "{on_error} {ending}");
        }
    }
}

/// The look for compressed files leaves the page cache as it was. The kernel may take pages back at any time, and keep one
/// that somebody else looks at: one try of five is enough.
#[test]
fn a_half_cached_file_stays_as_it_was() {
    let dir = dir();
    let len: usize = 4 << 20;
    let path = write(dir.path(), "text", &rows(len as u64 / 10, None, 1)[..len]);
    let stays = (0..5).any(|_| {
        std::fs::read(&path).unwrap();
        evict(&path, 0..len as u64 / 2);
        let before = sys::residency(&path);
        if before[0] || !before[before.len() - 1] {
            let why = "this file system can't have half of a file in the page cache";
            crate::probe::skip("a_half_cached_file_stays_as_it_was", why);
            return true;
        }
        Input::open([&path]).unwrap().decompressed().unwrap();
        sys::residency(&path) == before
    });
    assert!(stays);
}
