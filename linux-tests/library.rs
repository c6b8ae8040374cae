//! The library from outside: a job of one's own over every engine, spans, order, panics, and files
//! that change while they are open.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use ringfold::{
    Block, BlockError, Config, Engine, Error, Fold, Input, Kind, Malformed, Sink, Span, Stats, fold,
};

use crate::answers::{any_config, fifo};
use crate::catalogue::drawn;
use crate::probe::{Feature, skip, skips};
use crate::support::{KEYS_10K, STATIONS, WAYS, Way, dir, write};

/// Keeps every block.
pub struct Keep;

/// The bytes of blocks by their places.
pub type Kept = BTreeMap<(u32, u64), Vec<u8>>;

impl Fold for Keep {
    type Partial = Kept;
    type Output = Kept;

    fn partial(&self) -> Kept {
        Kept::new()
    }

    fn block(&self, kept: &mut Kept, block: &Block<'_>) -> Result<(), BlockError> {
        let place = (block.file(), block.offset());
        assert!(!block.bytes().is_empty());
        assert!(
            kept.insert(place, block.bytes().to_vec()).is_none(),
            "{place:?} came twice"
        );
        Ok(())
    }

    fn merge(&self, into: &mut Kept, from: Kept) {
        for (place, bytes) in from {
            assert!(into.insert(place, bytes).is_none(), "{place:?} came twice");
        }
    }

    fn finish(&self, kept: Kept) -> Kept {
        kept
    }
}

/// Checks that blocks are whole records of the texts, each of those in `owned` once and no others.
pub fn check(
    kept: &Kept,
    texts: &[&[u8]],
    owned: impl Fn(u32, u64) -> bool,
    what: &dyn std::fmt::Debug,
) {
    // In order, as blocks are kept: what comes twice doesn't lie behind what came before it.
    let mut got: Vec<(u32, u64)> = Vec::new();
    for (&(file, offset), bytes) in kept {
        let (text, start) = (texts[file as usize], offset as usize);
        let end = start + bytes.len();
        assert!(
            text[start..end] == bytes[..],
            "{what:?}: other bytes at {offset}"
        );
        assert!(
            start == 0 || text[start - 1] == b'\n',
            "{what:?}: {offset} is within a record"
        );
        assert!(
            end == text.len() || bytes.ends_with(b"\n"),
            "{what:?}: {end} is within a record"
        );
        let mut at = offset;
        for record in bytes.split_inclusive(|&b| b == b'\n') {
            let is_next = got.last().is_none_or(|&last| last < (file, at));
            assert!(is_next, "{what:?}: {at} came twice");
            got.push((file, at));
            at += record.len() as u64;
        }
    }
    let mut want = Vec::new();
    for (file, text) in texts.iter().enumerate() {
        let mut at = 0;
        for record in text.split_inclusive(|&b| b == b'\n') {
            if owned(file as u32, at) {
                want.push((file as u32, at));
            }
            at += record.len() as u64;
        }
    }
    assert!(
        got == want,
        "{what:?}: {} records, not {}",
        got.len(),
        want.len()
    );
}

#[test]
fn a_job_of_ones_own_by_every_engine() {
    let dir = dir();
    let texts: [&[u8]; 3] = [
        &STATIONS,
        b"\n\nlast\n\nwithout its newline",
        &KEYS_10K[..300_000],
    ];
    let paths: Vec<PathBuf> = texts
        .iter()
        .enumerate()
        .map(|(n, text)| write(dir.path(), &n.to_string(), text))
        .collect();
    for way in WAYS.iter() {
        for (block, depth, threads) in [(4096, 7, 2), (65_536, 1, 1), (1 << 20, 64, 8)] {
            let config = Config {
                block_size: Some(block),
                queue_depth: Some(depth),
                threads: Some(threads),
                ..way.config()
            };
            let (kept, stats) = fold(&Input::open(&paths).unwrap(), &config, &Keep).unwrap();
            check(&kept, &texts, |_, _| true, &config);
            assert_eq!(stats.blocks, kept.len() as u64, "{config:?}");
        }
    }
}

#[test]
fn sources_in_memory_by_the_engine_for_them() {
    let texts: [&[u8]; 3] = [&STATIONS, b"", b"x"];
    let config = Config {
        engine: Engine::Memory,
        block_size: Some(1000),
        ..Config::default()
    };
    let (kept, _) = fold(&Input::memory(texts), &config, &Keep).unwrap();
    check(&kept, &texts, |_, _| true, &config);
}

fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![3 => 0..12usize, 2 => 0..200usize, 1 => 3_000..9_000usize];
    (prop::collection::vec(line, 1..40), any::<bool>()).prop_map(|(lens, cut)| {
        let mut text = Vec::new();
        for (n, len) in lens.into_iter().enumerate() {
            text.extend(vec![b'a' + (n % 26) as u8; len]);
            text.push(b'\n');
        }
        if cut && text.len() > 1 {
            text.pop();
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: drawn(100, 300), failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Any cuts share the files out, whatever the engine; and a part brings its own records only.
    #[test]
    fn spans_own_the_records_that_begin_in_them(
        texts in prop::collection::vec(any_text(), 1..3),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..9),
        config in any_config(),
    ) {
        let dir = dir();
        let paths: Vec<PathBuf> = texts
            .iter()
            .enumerate()
            .map(|(n, text)| write(dir.path(), &n.to_string(), text))
            .collect();
        let mut spans = Vec::new();
        for (source, text) in texts.iter().enumerate() {
            let len = text.len() as u64;
            let inner = cuts.iter().map(|(cut, _)| cut.index(text.len() + 1) as u64);
            let mut at: Vec<u64> = inner.chain([0, len]).collect();
            at.sort();
            let source = source as u32;
            spans.extend(at.windows(2).map(|pair| Span { source, from: pair[0], to: pair[1] }));
        }
        let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
        let run = |spans: &[Span]| {
            let input = Input::open(&paths).unwrap().with_spans(spans.to_vec()).unwrap();
            let (kept, _) = fold(&input, &config, &Keep).unwrap();
            let own = |file, at| {
                spans.iter().any(|span| span.source == file && (span.from..span.to).contains(&at))
            };
            check(&kept, &texts, own, &(&config, spans));
        };
        run(&spans);
        let some: Vec<Span> = std::iter::zip(spans, cuts.iter().cycle())
            .filter(|(_, (_, keep))| *keep)
            .map(|(span, _)| span)
            .collect();
        run(&some);
    }
}

#[test]
fn a_span_around_the_fourth_gibibyte() {
    use std::os::unix::fs::FileExt;
    let dir = dir();
    let path = dir.path().join("huge");
    let file = File::create(&path).unwrap();
    // A hole ended by a newline, and rows across 2^32.
    let far = (1 << 32) - 5_000;
    if file.set_len(far).is_err() {
        return skip("a_span_around_the_fourth_gibibyte", "no file of 4 GiB here");
    }
    let text = &STATIONS[..20_000];
    file.write_all_at(b"\n", far - 1).unwrap();
    file.write_all_at(text, far).unwrap();
    let to = far + text.len() as u64;
    for way in WAYS.iter().filter(|way| way.engine != Engine::Memory) {
        let span = Span {
            source: 0,
            from: far,
            to,
        };
        let input = Input::open([&path])
            .unwrap()
            .with_spans(vec![span])
            .unwrap();
        let config = Config {
            block_size: Some(4096),
            threads: Some(2),
            ..way.config()
        };
        let (kept, _) = fold(&input, &config, &Keep).unwrap();
        let kept = kept
            .into_iter()
            .map(|((file, at), bytes)| ((file, at - far), bytes))
            .collect();
        check(&kept, &[text], |_, _| true, way);
    }
}

#[test]
fn spans_outside_their_source_are_refused() {
    let span = |source, from, to| Span { source, from, to };
    for bad in [
        span(0, 0, 5),
        span(0, 3, 2),
        span(1, 0, 1),
        span(0, 5, 5),
        span(0, 0, u64::MAX),
    ] {
        let input = Input::memory([&b"four"[..]]);
        let error = input.with_spans(vec![bad]).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage, "{bad:?}");
    }
}

// Order.

/// Puts blocks into order, and notes who ran how far ahead.
struct Ordered {
    window: u64,
    slow: u64,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Sequence numbers as blocks began (true) and ended (false).
    events: Vec<(u64, bool)>,
    blocks: Vec<(u64, (u32, u64), Vec<u8>)>,
}

impl Ordered {
    fn new(window: u64, slow: u64) -> Ordered {
        Ordered {
            window,
            slow,
            seen: Mutex::default(),
        }
    }
}

impl Sink for Ordered {
    fn block(&self, block: &Block<'_>) -> Result<(), BlockError> {
        let sequence = block.sequence();
        self.seen.lock().unwrap().events.push((sequence, true));
        if sequence % 8 == self.slow % 8 {
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut seen = self.seen.lock().unwrap();
        let place = (block.file(), block.offset());
        seen.blocks.push((sequence, place, block.bytes().to_vec()));
        seen.events.push((sequence, false));
        Ok(())
    }

    fn order(&self) -> Option<&dyn ringfold::Ordered> {
        Some(self)
    }
}

impl ringfold::Ordered for Ordered {
    fn window(&self) -> u64 {
        self.window
    }
}

impl Seen {
    /// The most that a block ran ahead of the first unfinished one.
    fn run_ahead(&self) -> u64 {
        let mut left: BTreeMap<u64, u32> = BTreeMap::new();
        for (sequence, _, _) in &self.blocks {
            *left.entry(*sequence).or_default() += 1;
        }
        let mut most = 0;
        for &(sequence, begins) in &self.events {
            if begins {
                let first = left.keys().next().copied().unwrap();
                most = most.max(sequence.saturating_sub(first));
            } else {
                let count = left.get_mut(&sequence).unwrap();
                *count -= 1;
                if *count == 0 {
                    left.remove(&sequence);
                }
            }
        }
        most
    }
}

#[test]
fn an_ordered_sink_sees_a_bounded_run_ahead_and_every_byte() {
    let dir = dir();
    let texts: [&[u8]; 2] = [&STATIONS[..250_001], &KEYS_10K[..250_000]];
    let paths = [
        write(dir.path(), "0", texts[0]),
        write(dir.path(), "1", texts[1]),
    ];
    for way in WAYS.iter() {
        for (window, depth, threads) in [(1, 4, 2), (2, 1, 2), (3, 16, 8), (8, 16, 2), (100, 4, 2)]
        {
            let config = Config {
                block_size: Some(4096),
                queue_depth: Some(depth),
                threads: Some(threads),
                knobs: way.rings(3),
                ..way.config()
            };
            let sink = Ordered::new(window, window);
            ringfold::run(&Input::open(&paths).unwrap(), &config, &sink).unwrap();
            let mut seen = sink.seen.into_inner().unwrap();
            let most = seen.run_ahead();
            assert!(most < window, "{config:?}: {most} ahead, window {window}");
            // By sequence alone, then by place: order and all bytes.
            seen.blocks.sort();
            let places: Vec<(u32, u64)> = seen.blocks.iter().map(|(_, place, _)| *place).collect();
            assert!(
                places.is_sorted(),
                "{config:?}: the sequence isn't the input's order"
            );
            let joined: Vec<u8> = seen
                .blocks
                .into_iter()
                .flat_map(|(_, _, bytes)| bytes)
                .collect();
            assert!(joined == texts.concat(), "{config:?}");
        }
    }
}

#[test]
fn a_window_and_records_longer_than_it_do_not_stall() {
    let dir = dir();
    let mut text = b"short\n".repeat(500);
    for len in [50_000, 3, 20_000, 4_096, 70_000] {
        text.extend(vec![b'x'; len]);
        text.push(b'\n');
    }
    text.extend(b"short\n".repeat(500));
    let path = write(dir.path(), "text", &text);
    for way in WAYS.iter() {
        for (window, depth) in [(1, 1), (1, 8), (2, 3), (5, 16)] {
            let config = Config {
                block_size: Some(4096),
                queue_depth: Some(depth),
                threads: Some(2),
                ..way.config()
            };
            let sink = Ordered::new(window, 1);
            ringfold::run(&Input::open([&path]).unwrap(), &config, &sink).unwrap();
            let mut blocks = sink.seen.into_inner().unwrap().blocks;
            blocks.sort_by_key(|(_, place, _)| *place);
            let joined: Vec<u8> = blocks.into_iter().flat_map(|(_, _, bytes)| bytes).collect();
            assert!(joined == text, "{config:?}");
        }
    }
}

/// "Counted over the whole run": streams among the files don't begin anew.
#[test]
fn the_sequence_goes_on_over_streams_and_files() {
    if skips(
        "the_sequence_goes_on_over_streams_and_files",
        &[Feature::Procfs],
    ) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "rows", &STATIONS[..20_000]);
    for way in WAYS.iter().filter(|way| !way.direct) {
        let config = Config {
            block_size: Some(4096),
            threads: Some(2),
            ..way.config()
        };
        let sink = Ordered::new(4, 1);
        let version = PathBuf::from("/proc/version");
        let input = Input::open([&path, &version, &path]).unwrap();
        ringfold::run(&input, &config, &sink).unwrap();
        let mut blocks = sink.seen.into_inner().unwrap().blocks;
        blocks.sort();
        let places: Vec<(u32, u64)> = blocks.iter().map(|(_, place, _)| *place).collect();
        assert!(places.is_sorted(), "{way:?}: {places:?}");
    }
}

// Faults.

/// Panics over the block that holds a byte of the input.
struct Panics(u64);

impl Fold for Panics {
    type Partial = u64;
    type Output = u64;

    fn partial(&self) -> u64 {
        0
    }

    fn block(&self, sum: &mut u64, block: &Block<'_>) -> Result<(), BlockError> {
        let range = block.offset()..block.offset() + block.bytes().len() as u64;
        assert!(!range.contains(&self.0), "no block but this");
        *sum += block.bytes().len() as u64;
        Ok(())
    }

    fn merge(&self, into: &mut u64, from: u64) {
        *into += from;
    }

    fn finish(&self, sum: u64) -> u64 {
        sum
    }
}

#[test]
fn a_job_that_panics_is_an_error_and_the_process_goes_on() {
    let dir = dir();
    let path = write(dir.path(), "rows", &STATIONS);
    let len = STATIONS.len() as u64;
    let mut longest = Duration::ZERO;
    for way in WAYS.iter() {
        for at in [0, len / 2, len - 1] {
            let config = Config {
                block_size: Some(16_384),
                threads: Some(2),
                ..way.config()
            };
            let input = Input::open([&path]).unwrap();
            let start = Instant::now();
            let error = fold(&input, &config, &Panics(at)).unwrap_err();
            longest = longest.max(start.elapsed());
            assert_eq!(error.kind(), Kind::Panic, "{way:?}: {error}");
            assert!(error.bytes().unwrap().contains(&at), "{way:?}: {error}");
            assert!(
                error.to_string().contains("no block but this"),
                "{way:?}: {error}"
            );
            let input = Input::open([&path]).unwrap();
            assert_eq!(
                fold(&input, &config, &Panics(len)).unwrap().0,
                len,
                "{way:?}"
            );
        }
    }
    // Within a second, set-up included, where the machine has nothing else to do.
    assert!(longest < Duration::from_secs(10), "{longest:?}");
    eprintln!("a panic ends a run within {longest:?}");
}

/// Refuses every record that begins with an `A`.
struct Refuses;

impl Fold for Refuses {
    type Partial = ();
    type Output = ();

    fn partial(&self) {}

    fn block(&self, (): &mut (), block: &Block<'_>) -> Result<(), BlockError> {
        let mut start = 0;
        for line in block.bytes().split_inclusive(|&b| b == b'\n') {
            if line.starts_with(b"A") {
                return Err(BlockError::Malformed(Malformed {
                    start,
                    end: start + 1,
                    cause: "an A".into(),
                }));
            }
            start += line.len();
        }
        Ok(())
    }

    fn merge(&self, (): &mut (), (): ()) {}

    fn finish(&self, (): ()) {}
}

#[test]
fn the_lowest_record_that_a_job_refuses_is_told() {
    let dir = dir();
    let path = write(dir.path(), "rows", &STATIONS);
    let first = STATIONS.windows(2).position(|pair| pair == b"\nA").unwrap() as u64 + 1;
    for way in WAYS.iter() {
        for block in [4096, 65_536] {
            let config = Config {
                block_size: Some(block),
                threads: Some(8),
                ..way.config()
            };
            let input = Input::open([&path]).unwrap();
            let error = fold(&input, &config, &Refuses).unwrap_err();
            assert_eq!(
                (error.kind(), error.bytes()),
                (Kind::Data, Some(first..first + 1))
            );
            let line = STATIONS[..first as usize]
                .iter()
                .filter(|&&b| b == b'\n')
                .count()
                + 1;
            assert!(
                error.to_string().contains(&format!("(line {line}): an A")),
                "{error}"
            );
        }
    }
}

/// Runs a way over a file that changes between its opening and the run; fails if that hangs.
fn changed(
    way: Way,
    block: usize,
    text: &[u8],
    change: impl FnOnce(&mut File),
) -> Result<(Kept, Stats), Error> {
    let dir = dir();
    let path = write(dir.path(), "rows", text);
    let input = Input::open([&path]).unwrap();
    change(&mut OpenOptions::new().append(true).open(&path).unwrap());
    let config = Config {
        block_size: Some(block),
        threads: Some(2),
        ..way.config()
    };
    let (done, wait) = mpsc::channel();
    // Where nobody waits any more nobody wants it.
    std::thread::spawn(move || drop(done.send(fold(&input, &config, &Keep))));
    let outcome = wait.recv_timeout(Duration::from_secs(20));
    outcome.unwrap_or_else(|_| panic!("{way:?} hangs at blocks of {block}"))
}

#[test]
fn a_file_that_was_truncated_after_it_was_opened() {
    let mut wrong = String::new();
    for &way in WAYS.iter() {
        for left in [0, 5_000, 100_000, STATIONS.len() - 1] {
            for block in [4096, 1 << 20] {
                let what = format!("{way:?}, blocks of {block}, {left} bytes left");
                match changed(way, block, &STATIONS, |file| {
                    file.set_len(left as u64).unwrap()
                }) {
                    Ok((kept, _)) => {
                        let bytes: usize = kept.values().map(Vec::len).sum();
                        wrong += &format!("{what}: {bytes} bytes were taken for the whole\n");
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), Kind::Io, "{what}: {error}");
                        let says = |n: usize| error.to_string().contains(&format!("byte {n},"));
                        let whole = error.to_string().contains(&format!(" {} ", STATIONS.len()));
                        if !says(left) || !whole {
                            wrong += &format!("{what}: {error}\n");
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_file_that_has_grown_is_read_up_to_its_size_when_opened() {
    let mut wrong = String::new();
    for text in [&STATIONS[..], &STATIONS[..99_999]] {
        for &way in WAYS.iter() {
            for block in [4096, 65_536] {
                let grow = |file: &mut File| file.write_all(b"more;1.0\nand more;2.0\n").unwrap();
                let (kept, stats) = changed(way, block, text, grow).unwrap();
                let bytes: usize = kept.values().map(Vec::len).sum();
                if bytes != text.len() || stats.bytes != text.len() as u64 {
                    let (reported, had) = (stats.bytes, text.len());
                    wrong += &format!(
                        "{way:?}: {bytes} bytes, reported {reported}, of {had} when opened\n"
                    );
                    continue;
                }
                check(&kept, &[text], |_, _| true, &way);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_file_that_was_removed_or_replaced_after_it_was_opened() {
    let dir = dir();
    for way in WAYS.iter() {
        let path = write(dir.path(), "rows", &STATIONS);
        let input = Input::open([&path]).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (kept, _) = fold(&input, &way.config(), &Keep).unwrap();
        check(&kept, &[&STATIONS], |_, _| true, way);
        let path = write(dir.path(), "rows", &STATIONS);
        let input = Input::open([&path]).unwrap();
        std::fs::remove_file(&path).unwrap();
        write(dir.path(), "rows", b"another file");
        let (kept, _) = fold(&input, &way.config(), &Keep).unwrap();
        check(&kept, &[&STATIONS], |_, _| true, way);
        let path = write(dir.path(), "rows", &STATIONS);
        let input = Input::open([&path]).unwrap();
        std::fs::remove_file(&path).unwrap();
        fifo(dir.path(), "rows");
        let (kept, _) = fold(&input, &way.config(), &Keep).unwrap();
        check(&kept, &[&STATIONS], |_, _| true, way);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn contradictory_requests_are_refused() {
    let input = Input::memory([&b"a;1.0\n"[..]]);
    let base = Config {
        engine: Engine::Memory,
        ..Config::default()
    };
    for config in [
        Config {
            direct: true,
            ..base.clone()
        },
        Config {
            direct: true,
            engine: Engine::Mmap,
            ..base.clone()
        },
        Config {
            block_size: Some(0),
            ..base.clone()
        },
        Config {
            queue_depth: Some(0),
            ..base.clone()
        },
        Config {
            threads: Some(0),
            ..base.clone()
        },
        Config {
            queue_depth: Some(4),
            buffers: Some(4),
            ..base.clone()
        },
        Config {
            max_record: 0,
            ..base.clone()
        },
    ] {
        let error = fold(&input, &config, &Keep).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage, "{config:?}");
    }
    assert!("warp".parse::<Engine>().is_err());
    for engine in Engine::ALL {
        assert_eq!(engine.to_string().parse::<Engine>().unwrap(), engine);
    }
}

#[test]
fn runs_in_many_threads_at_once() {
    let dir = dir();
    let path = Arc::new(write(dir.path(), "rows", &STATIONS));
    std::thread::scope(|scope| {
        for way in WAYS.iter().chain(WAYS.iter()) {
            let path = Arc::clone(&path);
            scope.spawn(move || {
                let config = Config {
                    block_size: Some(8192),
                    threads: Some(2),
                    ..way.config()
                };
                let input = Input::open([&*path]).unwrap();
                let (kept, _) = fold(&input, &config, &Keep).unwrap();
                check(&kept, &[&STATIONS], |_, _| true, way);
            });
        }
    });
}
