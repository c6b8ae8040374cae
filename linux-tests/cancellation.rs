//! Runs that are ended from another thread, and what they tell of their progress.

use std::fs::OpenOptions;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringfold::query::{Layout, OnError, Partial, Query, Shown, Sort};
use ringfold::{
    Block, BlockError, CancellationToken, Config, Fold, Input, Kind, Quoted, Result, fold,
};

use crate::answers::fifo;
use crate::support::{KEYS_10K, Random, csv, dir, names, rows, ways_in_small_blocks, write};

/// Counts bytes, and cancels its run from another thread after the first block.
struct Cancelling {
    token: CancellationToken,
    bytes: AtomicU64,
    framing: Option<Quoted>,
}

impl Fold for Cancelling {
    type Partial = ();
    type Output = ();

    fn partial(&self) {}

    fn framing(&self) -> &dyn ringfold::Framing {
        match &self.framing {
            Some(quoted) => quoted,
            None => &ringfold::Delimited::NEWLINE,
        }
    }

    fn block(&self, (): &mut (), block: &Block<'_>) -> Result<(), BlockError> {
        self.bytes.fetch_add(block.bytes().len() as u64, Relaxed);
        let token = self.token.clone();
        std::thread::spawn(move || token.cancel()).join().unwrap();
        Ok(())
    }

    fn merge(&self, (): &mut (), (): ()) {}

    fn finish(&self, (): ()) {}
}

#[test]
fn every_way_of_reading_can_be_left() {
    let dir = dir();
    let path = write(dir.path(), "rows", &KEYS_10K);
    for (way, config) in ways_in_small_blocks() {
        for is_quoted in [false, true] {
            let job = Cancelling {
                token: CancellationToken::default(),
                bytes: AtomicU64::new(0),
                framing: is_quoted.then(|| Quoted::new(b';', b'"')),
            };
            let config = Config {
                cancellation: Some(job.token.clone()),
                ..config.clone()
            };
            let error = fold(&Input::open([&path]).unwrap(), &config, &job).unwrap_err();
            let told = (error.kind(), error.to_string());
            let want = (Kind::Cancelled, "the run was cancelled".to_string());
            assert_eq!(told, want, "{way:?} {is_quoted}");
            let bytes = job.bytes.into_inner();
            assert!(
                bytes < KEYS_10K.len() as u64,
                "{way:?} {is_quoted}: {bytes}"
            );
        }
    }
}

/// Nobody writes to it.
#[test]
fn a_pipe_that_brings_nothing_can_be_left() {
    let dir = dir();
    let path = fifo(dir.path(), "fifo");
    let mut open = OpenOptions::new();
    let _writer = open.read(true).write(true).open(&path).unwrap();
    let token = CancellationToken::default();
    let config = Config {
        cancellation: Some(token.clone()),
        // Called while the run waits.
        progress: Some(Arc::new(move |_, _| token.cancel())),
        ..Config::default()
    };
    let job = ringfold::job::Count { delimiter: b'\n' };
    let error = fold(&Input::open([&path]).unwrap(), &config, &job).unwrap_err();
    assert_eq!(error.kind(), Kind::Cancelled);
}

/// Whenever it comes, the answer is right or isn't there, and the threads and the directory are as before.
#[test]
fn groups_can_be_left_at_any_moment() {
    let (dir, spill) = (dir(), dir());
    let text = rows(8_000, Some(5_000), 5);
    let path = write(dir.path(), "rows", &text);
    let query = |memory: u64, aggregate: &str| {
        let query = Query::new(b';').key(1).aggregate("mean", Some(2.into()));
        let query = query.unwrap().aggregate(aggregate, Some(2.into())).unwrap();
        query.memory(memory).spill_directory(spill.path())
    };
    let layout = Layout::default().sort(Sort::read("-mean_2,key1").unwrap());
    let pool = ringfold::pool(&Input::default(), &Config::default()).unwrap();
    let mut random = Random(7);
    let mut cancelled = 0;
    for query in [
        query(1 << 30, "max"),
        query(1 << 17, "max"),
        query(1 << 30, "median"),
        query(1 << 17, "median"),
    ] {
        let ran = |token: CancellationToken| -> Result<(String, String)> {
            let config = Config {
                cancellation: Some(token.clone()),
                pool: Some(Arc::clone(&pool)),
                ..Config::default()
            };
            let input = Input::open([&path])?;
            let (partial, mut answer, _) = query.partial(&input, &config)?;
            answer.lay_out(&layout)?;
            let own = csv(&answer);
            answer.check()?;
            let merged = Partial::merge([&partial])?.cancellation(token);
            merged
                .save(&mut Vec::new())
                .map_err(|error| ringfold::Error::output(&error))?;
            let shown = Shown::default()
                .memory(1 << 20)
                .spill_directory(spill.path());
            let mut answer = merged.answer(&shown)?;
            answer.lay_out(&layout)?;
            let merged = csv(&answer);
            answer.check()?;
            Ok((own, merged))
        };
        let started = std::time::Instant::now();
        let want = ran(CancellationToken::default()).unwrap();
        assert_eq!(want.0, want.1);
        let most = started.elapsed().as_micros() as u64;
        for _ in 0..6 {
            let token = CancellationToken::default();
            let (other, delay) = (token.clone(), Duration::from_micros(random.below(most)));
            let canceller = std::thread::spawn(move || {
                std::thread::sleep(delay);
                other.cancel();
            });
            match ran(token) {
                Ok(got) => assert!(got == want),
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Cancelled, "{error}");
                    cancelled += 1;
                }
            }
            canceller.join().unwrap();
        }
    }
    assert!(cancelled > 0);
    assert_eq!(names(spill.path()), [""; 0]);
}

#[test]
fn what_is_cancelled_before_it_begins() {
    let token = CancellationToken::default();
    token.cancel();
    let config = Config {
        cancellation: Some(token.clone()),
        ..Config::default()
    };
    let query = Query::new(b',').key(1);
    let input = Input::memory([&b"a,1\nb,2\n"[..]]);
    let error = query.partial(&input, &config).err().unwrap();
    assert_eq!(error.kind(), Kind::Cancelled);
    let (partial, ..) = query.partial(&input, &Config::default()).unwrap();
    let merged = Partial::merge([&partial]).unwrap().cancellation(token);
    let error = merged.answer(&Shown::default()).err().unwrap();
    assert_eq!(error.kind(), Kind::Cancelled);
    let error = merged.save(&mut Vec::new()).unwrap_err();
    assert_eq!(ringfold::Error::output(&error).kind(), Kind::Cancelled);
}

/// A quote that isn't closed has the input read once more.
#[test]
fn progress_grows_over_a_second_reading() {
    let text = format!("a,1\nb,\"2\n{}", "c,3\n".repeat(40_000));
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = Arc::clone(&told);
    let config = Config {
        progress: Some(Arc::new(move |done, all| {
            telling.lock().unwrap().push((done, all));
        })),
        max_record: 1000,
        ..Config::default()
    };
    let query = Query::new(b',').key(1).on_error(OnError::Skip);
    let input = Input::memory([text.as_bytes().to_vec()]);
    let (_, answer, _) = query.partial(&input, &config).unwrap();
    assert!(answer.skipped > 0);
    let told = told.lock().unwrap();
    assert!(told.is_sorted(), "{told:?}");
    let (done, all) = told.last().unwrap();
    assert_eq!(Some(*done), *all);
    assert!(*done > text.len() as u64, "it was read once: {told:?}");
}
