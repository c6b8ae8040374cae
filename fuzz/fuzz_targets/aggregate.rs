//! Any files, any block size from one byte on, any depth, 1, 2 and 8 threads, any limit on records:
//! the whole way answers as the reference does, or fails as it does.
#![no_main]

#[path = "../../linux-tests/reference.rs"]
#[allow(dead_code)]
mod reference;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use reference::Style;
use ringfold::fold::aggregate::{Aggregate, OnError};
use ringfold::report::{self, Format};
use ringfold::{Config, Engine, Input, fold};

#[derive(Arbitrary, Debug)]
struct Case {
    block_size: u8,
    depth: u8,
    buffers: u8,
    threads: u8,
    max_record: u8,
    skip: bool,
    files: Vec<Vec<u8>>,
}

fuzz_target!(|case: Case| {
    let files = &case.files[..case.files.len().min(4)];
    let max_record = usize::from(case.max_record).max(1);
    let depth = usize::from(case.depth % 32) + 1;
    let config = Config {
        engine: Engine::Memory,
        block_size: Some(usize::from(case.block_size) + 1),
        queue_depth: Some(depth),
        buffers: Some(depth + 1 + usize::from(case.buffers % 32)),
        threads: Some([1, 2, 8][usize::from(case.threads % 3)]),
        max_record,
        ..Config::default()
    };
    let expected = reference::aggregate(files, b';', max_record);
    let on_error = if case.skip {
        OnError::Skip
    } else {
        OnError::Fail
    };
    let input = Input::memory(files.iter().map(|file| &file[..]));
    let folded = fold(&input, &config, &Aggregate::new().on_error(on_error));
    let fault = match case.skip {
        true => expected.oversized.as_ref(),
        false => expected.lowest(),
    };
    match (folded, fault) {
        (Ok((summary, _)), None) => {
            let mut out = Vec::new();
            report::write(&summary, Format::Lines, &mut out).expect("memory takes everything");
            assert_eq!(out, expected.text(Style::Lines));
            assert_eq!(summary.rows, expected.rows);
            assert_eq!(summary.skipped, expected.malformed.len() as u64);
        }
        (Err(error), Some(fault)) => {
            let place = fault.place(input.sources()[fault.file].name());
            assert!(
                error.to_string().starts_with(&place),
                "{error}, but expected {place}"
            );
        }
        (folded, fault) => panic!(
            "{:?}, but expected {fault:?}",
            folded.map(|(summary, _)| summary.rows)
        ),
    }
});
