//! Any files and spans, any block size from one byte on, any order of completion, short reads, any
//! number of workers, any limit on records: the whole way answers as the reference does, or fails
//! where it does. One case in 128 runs on real threads too: 1, 2 or 8 of them.
#![no_main]

mod case;
#[path = "../../linux-tests/reference.rs"]
#[allow(dead_code)]
mod reference;

use case::Case;
use libfuzzer_sys::fuzz_target;
use reference::{Answer, Style};
use ringfold::internals::simulated;
use ringfold::group::{Aggregate, OnError, Summary};
use ringfold::report::{self, Format};
use ringfold::{Error, fold};

fuzz_target!(|data: &[u8]| {
    let case = Case::new(data);
    let expected = reference::aggregate(&case.files, b';', case.max_record());
    let skip = case.spare() % 2 == 1;
    let on_error = if skip { OnError::Skip } else { OnError::Fail };
    let job = Aggregate::new().on_error(on_error);
    let (input, config) = (case.input(), case.config());
    let fault = expected.lowest().filter(|_| !skip);
    let place = |error: &Error| (error.file_index() as usize, error.bytes());
    let known = fault.map(|fault| (fault.file, Some(fault.bytes.clone())));
    match (
        simulated::fold(&input, &config, &case.schedule(), &job),
        &known,
    ) {
        (Ok(summary), None) => check(&summary, &expected),
        (Err(error), Some(known)) => assert_eq!(&place(&error), known, "{error}"),
        (Ok(summary), _) => panic!("{} rows, but expected {fault:?}", summary.rows),
        (Err(error), None) => panic!("{error}"),
    }
    if case.threads().is_none() {
        return;
    }
    match (fold(&input, &config, &job), fault) {
        (Ok((summary, _)), None) => check(&summary, &expected),
        (Err(error), Some(fault)) => {
            let place = fault.place(input.sources()[fault.file].name());
            assert!(
                error.to_string().starts_with(&place),
                "{error}, but expected {place}"
            );
        }
        (Ok((summary, _)), _) => panic!("{} rows, but expected {fault:?}", summary.rows),
        (Err(error), None) => panic!("{error}"),
    }
});

fn check(summary: &Summary, expected: &Answer) {
    let mut out = Vec::new();
    report::write(summary, Format::Lines, &mut out).expect("memory takes everything");
    assert_eq!(out, expected.text(Style::Lines));
    assert_eq!(summary.rows, expected.rows);
    assert_eq!(summary.empty_lines, expected.empty_lines);
    assert_eq!(summary.skipped, expected.malformed.len() as u64);
}
