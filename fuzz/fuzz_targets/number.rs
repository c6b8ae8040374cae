//! Any text as the numbers of one key: each is read, or refused, as the reference reads or refuses
//! it, and their least, mean and greatest come out the same, however large they are.
#![no_main]

#[path = "../../linux-tests/reference.rs"]
#[allow(dead_code)]
mod reference;
mod text;

use libfuzzer_sys::fuzz_target;
use reference::Style;
use ringfold::{Config, Fold, Input, PaddedBuf};
use ringfold::query::{OnError, Query};
use ringfold::report::Format;
use text::text_of;

fuzz_target!(|data: &[u8]| {
    let mut text = Vec::with_capacity(3 * data.len() + 2);
    for value in data.split(|&byte| byte == b'\n') {
        text.extend_from_slice(b"k;");
        text.extend_from_slice(value);
        text.push(b'\n');
    }
    let expected = reference::aggregate(&[&text], b';', usize::MAX);
    let (input, config) = (Input::memory([&text[..]]), Config::default());
    let query = Query::pairs(b';').on_error(OnError::Skip);
    let job = query.plan(&input, &config).expect("it is one");
    let mut partial = job.partial();
    let buffer = PaddedBuf::from(&text[..]);
    job.block(&mut partial, &buffer.block(0, 0, 0))
        .expect("the malformed are skipped");
    let mut answer = job.finish(partial);
    assert_eq!(
        (answer.rows, answer.skipped),
        (expected.rows, expected.malformed.len() as u64)
    );
    for (format, style) in [
        (Format::Lines, Style::Lines),
        (Format::Hovinen, Style::Hovinen),
    ] {
        assert_eq!(text_of(&mut answer, format), expected.text(style));
    }
});
