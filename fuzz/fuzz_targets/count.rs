//! Any files and spans, any block size from one byte on, any order of completion, short reads, any
//! number of workers: lines and bytes are those of a plain count. One case in 128 runs on real
//! threads too: 1, 2 or 8 of them.
#![no_main]

mod case;

use case::Case;
use libfuzzer_sys::fuzz_target;
use ringfold::internals::simulated;
use ringfold::job::{Count, Counted};
use ringfold::{Config, fold};

fuzz_target!(|data: &[u8]| {
    let case = Case::new(data);
    let byte = if case.spare() % 2 == 1 { 0 } else { b'\n' };
    let config = Config {
        max_record: 1 << 20,
        ..case.config()
    };
    let (input, job) = (case.input(), Count { delimiter: byte });
    let check = |counted: &[Counted]| {
        for (file, text) in case.files.iter().enumerate() {
            let lines = text.iter().filter(|&&at| at == byte).count() as u64;
            let got = counted.get(file).copied().unwrap_or_default();
            assert_eq!((got.records, got.bytes), (lines, text.len() as u64));
        }
    };
    let counted = simulated::fold(&input, &config, &case.schedule(), &job);
    check(&counted.expect("nothing can be wrong"));
    if case.threads().is_some() {
        let (counted, _) = fold(&input, &config, &job).expect("nothing can be wrong");
        check(&counted);
    }
});
