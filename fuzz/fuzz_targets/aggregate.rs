//! Any files and spans, any block size from one byte on, any order of completion, short reads, any
//! number of workers, any limit on records: the whole way answers as the reference does, or fails
//! where it does. One case in 128 runs on real threads too: 1, 2 or 8 of them.
#![no_main]

mod case;
#[path = "../../linux-tests/reference.rs"]
#[allow(dead_code)]
mod reference;
mod text;

use case::Case;
use libfuzzer_sys::fuzz_target;
use reference::{Answer, Style};
use ringfold::internals::simulated;
use ringfold::query::{Answer as Rows, OnError, Query};
use ringfold::report::Format;
use ringfold::{Error, fold};
use text::text_of;

fuzz_target!(|data: &[u8]| {
    let case = Case::new(data);
    let expected = reference::aggregate(&case.files, b';', case.max_record());
    let skip = case.spare() % 2 == 1;
    let on_error = if skip { OnError::Skip } else { OnError::Fail };
    let (input, config) = (case.input(), case.config());
    let job = Query::pairs(b';').on_error(on_error).plan(&input, &config).expect("it is one");
    let fault = expected.lowest().filter(|_| !skip);
    let place = |error: &Error| (error.file_index() as usize, error.bytes());
    let known = fault.map(|fault| (fault.file, Some(fault.bytes.clone())));
    match (
        simulated::fold(&input, &config, &case.schedule(), &job),
        &known,
    ) {
        (Ok(answer), None) => check(answer, &expected),
        (Err(error), Some(known)) => assert_eq!(&place(&error), known, "{error}"),
        (Ok(answer), _) => panic!("{} rows, but expected {fault:?}", answer.rows),
        (Err(error), None) => panic!("{error}"),
    }
    if case.threads().is_none() {
        return;
    }
    match (fold(&input, &config, &job), fault) {
        (Ok((answer, _)), None) => check(answer, &expected),
        (Err(error), Some(fault)) => {
            let place = fault.place(input.sources()[fault.file].name());
            assert!(
                error.to_string().starts_with(&place),
                "{error}, but expected {place}"
            );
        }
        (Ok((answer, _)), _) => panic!("{} rows, but expected {fault:?}", answer.rows),
        (Err(error), None) => panic!("{error}"),
    }
});

fn check(mut answer: Rows, expected: &Answer) {
    assert_eq!(text_of(&mut answer, Format::Lines), expected.text(Style::Lines));
    assert_eq!(answer.rows, expected.rows);
    assert_eq!(answer.empty_lines, expected.empty_lines);
    assert_eq!(answer.skipped, expected.malformed.len() as u64);
}
