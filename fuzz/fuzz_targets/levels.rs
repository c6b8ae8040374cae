//! Any text as one block or two, through the hot loop at any level that this processor has: it
//! answers as the reference does, or reports the malformed record that the reference finds first.
#![no_main]

#[path = "../../linux-tests/reference.rs"]
#[allow(dead_code)]
mod reference;
mod text;

use libfuzzer_sys::fuzz_target;
use reference::Style;
use ringfold::{BlockError, Config, Input, PaddedBuf};
use ringfold::Fold;
use ringfold::Level;
use ringfold::query::{OnError, Query};
use ringfold::report::Format;
use text::text_of;

fuzz_target!(|data: &[u8]| {
    // The first byte chooses; the rest is text.
    let Some((&choice, text)) = data.split_first() else {
        return;
    };
    let levels = Level::available();
    let level = levels[usize::from(choice) % levels.len()];
    let (input, config) = (Input::memory([text]), Config::default());
    let query = Query::pairs(b';').level(Some(level));
    let choice = usize::from(choice) / levels.len();
    let expected = reference::aggregate(&[text], b';', usize::MAX);
    let skip = choice % 2 == 1;
    if !skip && let Some(first) = expected.lowest() {
        let job = query.plan(&input, &config).expect("it is one");
        let buffer = PaddedBuf::from(text);
        let done = job.block(&mut job.partial(), &buffer.block(0, 0, 0));
        let Err(BlockError::Malformed(bad)) = done else {
            panic!("the reference finds a malformed record: {done:?}");
        };
        assert_eq!(bad.start as u64..bad.end as u64, first.bytes);
        return;
    }
    let query = query.on_error(if skip { OnError::Skip } else { OnError::Fail });
    let job = query.plan(&input, &config).expect("it is one");
    let new_partial = job.partials();
    // One block, or two and a partial each.
    let line_end = |half: &[u8]| half.iter().rposition(|&byte| byte == b'\n');
    let cut = match choice / 2 % 2 {
        0 => 0,
        _ => line_end(&text[..text.len() / 2]).map_or(0, |end| end + 1),
    };
    let partial = |from: usize, to: usize| {
        let mut partial = new_partial();
        let buffer = PaddedBuf::from(&text[from..to]);
        job.block(&mut partial, &buffer.block(0, from as u64, 0))
            .expect("nothing is malformed, or it is skipped");
        partial
    };
    let mut whole = partial(cut, text.len());
    if cut > 0 {
        job.merge(&mut whole, partial(0, cut));
    }
    let mut answer = job.finish(whole);
    assert_eq!(
        (answer.rows, answer.empty_lines, answer.skipped, answer.groups),
        (
            expected.rows,
            expected.empty_lines,
            expected.malformed.len() as u64,
            expected.keys() as u64
        ),
    );
    let (format, style) = [
        (Format::OneBrc, Style::OneBrc),
        (Format::Hovinen, Style::Hovinen),
        (Format::Lines, Style::Lines),
    ][choice / 4 % 3];
    assert_eq!(text_of(&mut answer, format), expected.text(style));
});
