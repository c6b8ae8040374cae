//! Pipes: each record goes to the job soon after it has come whole, whatever comes next and whenever; and the answer is
//! the same however the bytes come.
//!
//! The writers here wait for what the run makes of one record before they write the next one. A run that holds a record
//! back until more comes would never end.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use ringfold::{
    Block, BlockError, Config, Delimited, Engine, Fold, Framing, Input, Quoted, Transform, fold,
    transform,
};

use crate::answers::fifo;
use crate::support::{STATIONS, Way, cached_ways, dir, ringfold, start, write};

/// More than any of this takes on a busy machine.
const HANGS: Duration = Duration::from_secs(120);

/// Upper case, in the records of a framing.
struct Upper(&'static dyn Framing);

impl Transform for Upper {
    fn framing(&self) -> &dyn Framing {
        self.0
    }

    fn block(&self, block: &Block<'_>, out: &mut Vec<u8>) -> Result<(), BlockError> {
        out.extend(block.bytes().to_ascii_uppercase());
        Ok(())
    }
}

/// All ways but the one that loads everything first.
fn ways() -> impl Iterator<Item = Way> {
    cached_ways().filter(|way| way.engine != Engine::Memory)
}

/// Where the output of a run goes.
struct Sent(mpsc::Sender<Vec<u8>>);

impl Write for Sent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.send(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The output as far as it has come.
struct Came(mpsc::Receiver<Vec<u8>>);

impl Came {
    /// Waits for exactly these bytes.
    #[track_caller]
    fn expect(&self, want: &[u8]) {
        let mut got = Vec::new();
        while got.len() < want.len() {
            let more = self.0.recv_timeout(HANGS);
            got.extend(more.unwrap_or_else(|_| panic!("only {} has come", got.escape_ascii())));
        }
        assert_eq!(
            got.escape_ascii().to_string(),
            want.escape_ascii().to_string()
        );
    }

    /// Waits for the end: nothing more comes.
    #[track_caller]
    fn end(&self) {
        assert_eq!(
            self.0.recv_timeout(HANGS),
            Err(mpsc::RecvTimeoutError::Disconnected)
        );
    }
}

/// Runs a transforming job over these files, as `feed` feeds them.
fn upper(
    framing: &'static dyn Framing,
    config: &Config,
    paths: &[&Path],
    feed: impl FnOnce(&Came),
) {
    let (sender, came) = mpsc::channel();
    std::thread::scope(|scope| {
        let run = scope.spawn(move || {
            // It is flushed when there is nothing more to write.
            let mut out = BufWriter::with_capacity(1 << 20, Sent(sender));
            let input = Input::open(paths).unwrap();
            transform(&input, config, &Upper(framing), &mut out).unwrap();
        });
        feed(&Came(came));
        run.join().unwrap();
    });
}

#[test]
fn records_are_written_as_they_come() {
    let dir = dir();
    for way in ways() {
        for block in [None, Some(1), Some(3), Some(64)] {
            let pipe = fifo(dir.path(), &format!("{way:?} {block:?}"));
            let config = Config {
                block_size: block,
                ..way.config()
            };
            upper(&Delimited::NEWLINE, &config, &[&pipe], |came| {
                let mut to = File::create(&pipe).unwrap();
                for n in 0..20 {
                    writeln!(to, "record {n}").unwrap();
                    came.expect(format!("RECORD {n}\n").as_bytes());
                }
                // Half of one, and after a pause the other half.
                to.write_all(b"ha").unwrap();
                std::thread::sleep(Duration::from_millis(15));
                to.write_all(b"lf\n").unwrap();
                came.expect(b"HALF\n");
                to.write_all(b"several\n\nand a").unwrap();
                came.expect(b"SEVERAL\n\n");
                to.write_all(b" half\nand").unwrap();
                came.expect(b"AND A HALF\n");
                drop(to);
                came.expect(b"AND");
                came.end();
            });
        }
    }
}

/// A byte now and then without a pause that would end a block.
#[test]
fn records_that_trickle_are_written_too() {
    let dir = dir();
    let pipe = fifo(dir.path(), "pipe");
    upper(&Delimited::NUL, &Config::default(), &[&pipe], |came| {
        let mut to = File::create(&pipe).unwrap();
        to.write_all(b"first\0").unwrap();
        let mut got = Vec::new();
        let mut written = 0;
        while got.is_empty() {
            to.write_all(b"x").unwrap();
            written += 1;
            std::thread::sleep(Duration::from_micros(200));
            got.extend(came.0.try_iter().flatten());
        }
        assert_eq!(got, b"FIRST\0");
        drop(to);
        came.expect(&b"X".repeat(written));
        came.end();
    });
}

#[test]
fn a_newline_in_quotes_ends_no_record_across_a_pause() {
    let dir = dir();
    for way in ways() {
        for block in [None, Some(1), Some(2), Some(64)] {
            let pipe = fifo(dir.path(), &format!("{way:?} {block:?}"));
            let config = Config {
                block_size: block,
                ..way.config()
            };
            upper(&Quoted::CSV, &config, &[&pipe], |came| {
                let mut to = File::create(&pipe).unwrap();
                to.write_all(b"\xef\xbb\xbf\"a\n\"\nb,\"c\n").unwrap();
                came.expect(b"\xef\xbb\xbf\"A\n\"\n");
                std::thread::sleep(Duration::from_millis(5));
                to.write_all(b"d\n").unwrap();
                std::thread::sleep(Duration::from_millis(5));
                to.write_all(b"\"").unwrap();
                std::thread::sleep(Duration::from_millis(5));
                to.write_all(b"\"e\"\nf").unwrap();
                came.expect(b"B,\"C\nD\n\"\"E\"\n");
                to.write_all(b",\"\n").unwrap();
                drop(to);
                came.expect(b"F,\"\n");
                came.end();
            });
        }
    }
}

#[test]
fn streams_and_files_take_turns() {
    let dir = dir();
    let file = write(dir.path(), "file", b"in a file\n");
    let pipes = ["0", "1"].map(|name| fifo(dir.path(), name));
    // They can be opened in any order: the input opens all before it reads.
    let paths = [
        &*file,
        &pipes[0],
        &pipes[1],
        &file,
        "/proc/version".as_ref(),
    ];
    upper(&Delimited::NEWLINE, &Config::default(), &paths, |came| {
        let [mut first, mut second] = pipes.each_ref().map(|pipe| File::create(pipe).unwrap());
        came.expect(b"IN A FILE\n");
        second.write_all(b"early\n").unwrap();
        first.write_all(b"one\ntw").unwrap();
        came.expect(b"ONE\n");
        first.write_all(b"o").unwrap();
        drop(first);
        came.expect(b"TWOEARLY\n");
        second.write_all(b"late\n").unwrap();
        came.expect(b"LATE\n");
        drop(second);
        let version = std::fs::read("/proc/version").unwrap();
        came.expect(&[b"IN A FILE\n", &*version.to_ascii_uppercase()].concat());
        came.end();
    });
}

/// Records with their places, and word of each block.
struct Keep {
    framing: &'static dyn Framing,
    blocks: Mutex<mpsc::Sender<Vec<u8>>>,
}

impl Fold for Keep {
    type Partial = Vec<(u64, Vec<u8>)>;
    type Output = Vec<(u64, Vec<u8>)>;

    fn framing(&self) -> &dyn Framing {
        self.framing
    }

    fn partial(&self) -> Self::Partial {
        Vec::new()
    }

    fn block(&self, kept: &mut Self::Partial, block: &Block<'_>) -> Result<(), BlockError> {
        kept.push((block.offset(), block.bytes().to_vec()));
        let _ = self.blocks.lock().unwrap().send(block.bytes().to_vec());
        Ok(())
    }

    fn merge(&self, into: &mut Self::Partial, mut from: Self::Partial) {
        into.append(&mut from);
    }

    fn finish(&self, mut kept: Self::Partial) -> Self::Output {
        kept.sort();
        kept
    }
}

/// A job without an order gets its records as soon.
#[test]
fn a_job_that_folds_meets_records_as_they_come() {
    let dir = dir();
    let pipe = fifo(dir.path(), "pipe");
    let (sender, blocks) = mpsc::channel();
    let job = Keep {
        framing: &Delimited::NEWLINE,
        blocks: Mutex::new(sender),
    };
    std::thread::scope(|scope| {
        let path = &pipe;
        let run = scope.spawn(move || {
            let input = Input::open([path]).unwrap();
            let (kept, stats) = fold(&input, &Config::default(), &job).unwrap();
            assert_eq!((stats.bytes, stats.short_reads), (13, 0));
            kept
        });
        let came = Came(blocks);
        let mut to = File::create(&pipe).unwrap();
        to.write_all(b"one\ntw").unwrap();
        came.expect(b"one\n");
        to.write_all(b"o\n").unwrap();
        came.expect(b"two\n");
        to.write_all(b"three").unwrap();
        drop(to);
        let kept = run.join().unwrap();
        let want = [(0, &b"one\n"[..]), (4, b"two\n"), (8, b"three")];
        assert_eq!(kept, want.map(|(at, bytes)| (at, bytes.to_vec())));
    });
}

/// Where records end, byte by byte, by the rules of RFC 4180 or by the newline.
fn ends(text: &[u8], quotes: bool) -> Vec<u64> {
    let (mut within, mut at_field, mut ends) = (false, true, vec![0]);
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' if within && text.get(at + 1) == Some(&b'"') => at += 1,
            b'"' if within => within = false,
            b'"' if quotes && at_field => within = true,
            b'\n' if !within => ends.push(at as u64 + 1),
            _ => {}
        }
        at_field = !within && matches!(text.get(at), Some(b',' | b'\n'));
        at += 1;
    }
    ends.push(text.len() as u64);
    ends
}

/// A text of lines of any length, some of them quoted.
fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut random = seed;
    let mut text = Vec::new();
    while text.len() < len {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let letters = match (random >> 33) % 16 {
            0 => 200,
            n => n as usize,
        };
        text.extend(b"x".repeat(letters));
        text.extend(match (random >> 45) % 6 {
            0 | 1 => &b"\n"[..],
            2 => b",",
            3 => b",\"a\n\"\"b\"\n",
            4 => b"\n\"\n\n\",",
            _ => b"\n\n",
        });
    }
    text
}

/// Writes of any length with pauses at any places, at every small block size.
#[test]
fn any_cuts_and_pauses_give_the_same_records() {
    let dir = dir();
    let sizes: Vec<usize> = (1..=64).collect();
    let sizes = &sizes;
    let dir = dir.path();
    std::thread::scope(|scope| {
        for quotes in [false, true] {
            for part in 0..4 {
                scope.spawn(move || {
                    for &block in sizes.iter().skip(part).step_by(4) {
                        cut(dir, block, quotes);
                    }
                });
            }
        }
    });
}

fn cut(dir: &Path, block: usize, quotes: bool) {
    let seed = block as u64 * 2 + u64::from(quotes);
    let text = text(seed, 3_000);
    let pipe = fifo(dir, &format!("{block} {quotes}"));
    let (to, bytes) = (pipe.clone(), text.clone());
    let writer = std::thread::spawn(move || {
        let mut to = File::create(to).unwrap();
        let (mut left, mut random) = (&bytes[..], seed);
        while !left.is_empty() {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let n = ((random >> 33) % 90) as usize + 1;
            let (now, later) = left.split_at(n.min(left.len()));
            to.write_all(now).unwrap();
            left = later;
            if (random >> 50).is_multiple_of(3) {
                std::thread::sleep(Duration::from_micros((random >> 40) % 4_000));
            }
        }
    });
    let config = Config {
        block_size: Some(block),
        threads: Some(2),
        ..Config::default()
    };
    let job = Keep {
        framing: match quotes {
            true => &Quoted::CSV,
            false => &Delimited::NEWLINE,
        },
        blocks: Mutex::new(mpsc::channel().0),
    };
    let (kept, stats) = fold(&Input::open([&pipe]).unwrap(), &config, &job).unwrap();
    writer.join().unwrap();
    assert_eq!(stats.bytes, text.len() as u64);
    let ends = ends(&text, quotes);
    let mut at = 0;
    for (offset, bytes) in kept {
        assert_eq!(offset, at, "block size {block}: a gap or an overlap");
        assert!(ends.contains(&at), "block size {block}: torn at {at}");
        at += bytes.len() as u64;
        assert!(text[offset as usize..].starts_with(&bytes));
    }
    assert_eq!(at, text.len() as u64, "block size {block}");
}

/// A fast stream still comes in large blocks.
#[test]
fn a_fast_stream_comes_in_large_blocks() {
    let mut child =
        start(ringfold(["count", "--stats=json", "-"]).stdin(std::process::Stdio::piped()));
    let text = STATIONS.repeat(100);
    let len = text.len() as u64;
    crate::support::feed(&mut child, text);
    let (_, said) = crate::support::end_of(child).answer_and_notices();
    let stats: serde_json::Value = serde_json::from_str(&said).unwrap();
    let (blocks, size) = (
        stats["blocks"].as_u64().unwrap(),
        stats["block_size"].as_u64().unwrap(),
    );
    // Pauses of a busy machine end a block early; each of 64 KiB would be eight times as many.
    assert!(
        blocks < 4 * len.div_ceil(size),
        "{blocks} blocks of {len} bytes"
    );
}
