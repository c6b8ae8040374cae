//! An answer as text, for the targets that compare it with the reference's.

use ringfold::query::{Answer, Sort};
use ringfold::report::{self, Format};

/// The answer in a style.
pub fn text_of(answer: &mut Answer, format: Format) -> Vec<u8> {
    answer.sort(&Sort::Bytes, None).expect("it is in memory");
    answer.set_lines(format).expect("it has the columns");
    let mut out = Vec::new();
    report::write(answer, format, None, &mut out).expect("memory takes everything");
    out
}
