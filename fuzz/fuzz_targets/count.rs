//! Any files and any settings: lines and bytes are those of a plain count.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ringfold::fold::count::Count;
use ringfold::{Config, Delimited, Engine, Input, fold};

#[derive(Arbitrary, Debug)]
struct Case {
    block_size: u8,
    depth: u8,
    buffers: u8,
    threads: u8,
    nul: bool,
    files: Vec<Vec<u8>>,
}

fuzz_target!(|case: Case| {
    let files = &case.files[..case.files.len().min(4)];
    let depth = usize::from(case.depth % 32) + 1;
    let config = Config {
        engine: Engine::Memory,
        block_size: Some(usize::from(case.block_size) + 1),
        queue_depth: Some(depth),
        buffers: Some(depth + 1 + usize::from(case.buffers % 32)),
        threads: Some([1, 2, 8][usize::from(case.threads % 3)]),
        framing: Delimited::EVERY_BYTE,
        ..Config::default()
    };
    let byte = if case.nul { 0 } else { b'\n' };
    let input = Input::memory(files.iter().map(|file| &file[..]));
    let (counted, _) =
        fold(&input, &config, &Count { delimiter: byte }).expect("nothing can be wrong");
    for (file, text) in files.iter().enumerate() {
        let lines = text.iter().filter(|&&at| at == byte).count() as u64;
        let got = counted.get(file).copied().unwrap_or_default();
        assert_eq!((got.records, got.bytes), (lines, text.len() as u64));
    }
});
