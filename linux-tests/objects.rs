//! Objects, which a program reads in ringfold's place, by ranges.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringfold::query::{Partial, Query, Shown};
use ringfold::{Config, Engine, Input, Kind, Object, Result};

use crate::compressed::gzip;
use crate::support::{KEYS_10K, csv, dir, write};

/// Gives few bytes at a time, and none after some.
struct Store {
    bytes: Vec<u8>,
    fails_at: u64,
    given: AtomicU64,
}

impl Store {
    fn new(bytes: &[u8], fails_at: u64) -> Arc<Store> {
        Arc::new(Store {
            bytes: bytes.to_vec(),
            fails_at,
            given: AtomicU64::new(0),
        })
    }
}

impl Object for Store {
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn written(&self) -> Option<(i64, i64)> {
        Some((1_700_000_000, 5))
    }

    fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize> {
        if at >= self.fails_at {
            return Err(io::Error::other("the store has gone"));
        }
        let bytes = &self.bytes[at as usize..];
        let n = bytes.len().min(to.len()).min(7_001);
        to[..n].copy_from_slice(&bytes[..n]);
        self.given.fetch_add(n as u64, Relaxed);
        Ok(n)
    }
}

fn input(store: &Arc<Store>) -> Input {
    let mut input = Input::default();
    input.add_object("store://bucket/a", Arc::clone(store) as Arc<dyn Object>);
    input
}

fn query() -> Query {
    let query = Query::new(b';').key(1).aggregate("sum", Some(2.into()));
    query.unwrap().aggregate("first", Some(2.into())).unwrap()
}

fn partial(input: &Input, config: &Config) -> Result<Partial> {
    query().partial(input, config).map(|(partial, ..)| partial)
}

fn answer(partials: &[Partial]) -> String {
    let merged = Partial::merge(partials).unwrap();
    csv(&merged.answer(&Shown::default()).unwrap())
}

#[test]
fn objects_are_read_as_files_are() {
    let dir = dir();
    let path = write(dir.path(), "a", &KEYS_10K);
    let file = Input::open([path]).unwrap();
    let want = answer(&[partial(&file, &Config::default()).unwrap()]);
    let len = KEYS_10K.len() as u64;
    for engine in Engine::ALL {
        for block_size in [4096, 65_536] {
            let config = Config {
                engine,
                block_size: Some(block_size),
                threads: Some(3),
                ..Config::default()
            };
            let parts = (1..=4).map(|part| {
                let store = Store::new(&KEYS_10K, u64::MAX);
                let made = partial(&input(&store).part(part, 4).unwrap(), &config).unwrap();
                // Of the rest no more than what its receipt has a checksum of, and its head. One engine loads all.
                let given = store.given.load(Relaxed);
                assert!(
                    engine == Engine::Memory || given < len / 4 + 400_000,
                    "{given}"
                );
                made
            });
            let parts: Vec<Partial> = parts.collect();
            assert!(answer(&parts) == want, "{engine:?} {block_size}");
            let error = Partial::merge([&parts[1], &parts[1]]).err().unwrap();
            assert!(error.to_string().contains("store://bucket/a"), "{error}");
        }
    }
    let compressed = input(&Store::new(&gzip(&KEYS_10K), u64::MAX));
    let compressed = compressed.decompressed().unwrap();
    assert!(answer(&[partial(&compressed, &Config::default()).unwrap()]) == want);
}

#[test]
fn errors_name_the_object_and_the_place() {
    let bad = Store::new(b"a;1\nb;2\nc;x\n", u64::MAX);
    let error = partial(&input(&bad), &Config::default()).err().unwrap();
    assert_eq!(
        (error.file(), error.line()),
        (Some("store://bucket/a"), Some(3))
    );
    assert_eq!(error.bytes(), Some(8..11));

    for bytes in [KEYS_10K.clone(), gzip(&KEYS_10K)] {
        let gone = Store::new(&bytes, bytes.len() as u64 / 2);
        let read = input(&gone).decompressed().and_then(|input| {
            // Without a receipt, which has a checksum of the end.
            let plan = query().plan(&input, &Config::default())?;
            ringfold::fold(&input, &Config::default(), &plan).map(drop)
        });
        let error = read.err().unwrap();
        assert_eq!(error.kind(), Kind::Io, "{error}");
        let said = error.to_string();
        assert!(
            said.starts_with("store://bucket/a: ") && said.contains("the store has gone"),
            "{said}"
        );
    }
}
