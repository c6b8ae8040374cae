//! Any text as the numbers of one key: each is read, or refused, as the reference reads or refuses
//! it, and their least, mean and greatest come out the same, however large they are.
#![no_main]

#[path = "../../linux-tests/reference.rs"]
#[allow(dead_code)]
mod reference;

use libfuzzer_sys::fuzz_target;
use reference::Style;
use ringfold::PaddedBuf;
use ringfold::Fold;
use ringfold::group::{Aggregate, OnError};
use ringfold::report::{self, Format};

fuzz_target!(|data: &[u8]| {
    let mut text = Vec::with_capacity(3 * data.len() + 2);
    for value in data.split(|&byte| byte == b'\n') {
        text.extend_from_slice(b"k;");
        text.extend_from_slice(value);
        text.push(b'\n');
    }
    let expected = reference::aggregate(&[&text], b';', usize::MAX);
    let job = Aggregate::new().on_error(OnError::Skip);
    let mut partial = job.partial();
    let buffer = PaddedBuf::from(&text[..]);
    job.block(&mut partial, &buffer.block(0, 0, 0))
        .expect("the malformed are skipped");
    let summary = job.finish(partial);
    assert_eq!(
        (summary.rows, summary.skipped),
        (expected.rows, expected.malformed.len() as u64)
    );
    for (format, style) in [
        (Format::Lines, Style::Lines),
        (Format::Hovinen, Style::Hovinen),
    ] {
        let mut out = Vec::new();
        report::write(&summary, format, &mut out).expect("memory takes everything");
        assert_eq!(out, expected.text(style));
    }
});
