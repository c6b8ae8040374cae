//! Any text as one block, through the hot loop at every level that this processor has: each answers
//! as the reference does, or reports the malformed record that the reference finds first.
#![no_main]

#[path = "../../linux-tests/reference.rs"]
#[allow(dead_code)]
mod reference;

use libfuzzer_sys::fuzz_target;
use reference::Style;
use ringfold::PaddedBuf;
use ringfold::fold::Fold;
use ringfold::fold::aggregate::{Aggregate, Level, OnError};
use ringfold::report::{self, Format};

fuzz_target!(|text: &[u8]| {
    let expected = reference::aggregate(&[text], b';', usize::MAX);
    let buffer = PaddedBuf::from(text);
    for level in Level::available() {
        let strict = Aggregate::new().level(level);
        let done = strict.block(&mut strict.partial(), &buffer.block(0, 0, 0));
        match (&done, expected.lowest()) {
            (Ok(()), None) => {}
            (Err(bad), Some(first)) => {
                assert_eq!(bad.start as u64..bad.end as u64, first.bytes, "{level:?}");
            }
            _ => panic!(
                "{level:?}: {done:?}, but the reference says {:?}",
                expected.lowest()
            ),
        }
        let job = strict.on_error(OnError::Skip);
        let mut partial = job.partial();
        job.block(&mut partial, &buffer.block(0, 0, 0))
            .expect("skips");
        let summary = job.finish(partial);
        assert_eq!(
            (
                summary.rows,
                summary.empty_lines,
                summary.skipped,
                summary.len()
            ),
            (
                expected.rows,
                expected.empty_lines,
                expected.malformed.len() as u64,
                expected.keys()
            ),
            "{level:?}"
        );
        let mut out = Vec::new();
        report::write(&summary, Format::OneBrc, &mut out).expect("memory takes everything");
        assert_eq!(out, expected.text(Style::OneBrc), "{level:?}");
    }
});
