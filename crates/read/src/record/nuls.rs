//! Runs of NUL bytes in text: a log was cut while a program went on writing to it, or a machine went down.

use std::ops::Range;

use crate::error::Cause;
use crate::error::refusal::{Foreign, Refusal};

/// So many bytes of zero side by side are no text.
const RUN: usize = 128;

/// The first run of `RUN` or more bytes of zero.
#[inline]
pub fn run(bytes: &[u8]) -> Option<Range<usize>> {
    // Each run has one of these places.
    let (pieces, _) = bytes.as_chunks::<RUN>();
    let may_be = pieces
        .iter()
        .fold(false, |any, piece| any | (piece[RUN - 1] == 0));
    may_be.then(|| first(bytes)).flatten()
}

#[cold]
fn first(bytes: &[u8]) -> Option<Range<usize>> {
    let mut at = RUN - 1;
    while let Some(byte) = bytes.get(at) {
        let is_zero = |byte: &&u8| **byte == 0;
        if *byte == 0 {
            let start = at - bytes[..at].iter().rev().take_while(is_zero).count();
            let end = at + bytes[at..].iter().take_while(is_zero).count();
            if end - start >= RUN {
                return Some(start..end);
            }
        }
        at += RUN;
    }
    None
}

/// The error of a record that has a run of this length.
pub(crate) fn cause(bytes: u64, is_hinted: bool) -> Cause {
    let why = format!("{bytes} NUL bytes stand in the record");
    match is_hinted {
        true => hole(why),
        false => why.into(),
    }
}

/// What is wrong with a record over the limit that has a run whose end isn't known.
pub fn endless(max_record: usize) -> Cause {
    let why = format!("a record of more than {max_record} bytes, with NUL bytes side by side");
    hole(why)
}

fn hole(why: String) -> Cause {
    let what = Foreign::NulRun;
    Refusal::NotText { why, what }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_wherever_they_begin() {
        for before in 0..300 {
            for zeros in [0, 1, RUN - 1, RUN, RUN + 1, 1000] {
                let text = [
                    vec![b'a'; before],
                    vec![0; zeros],
                    vec![b'b'; 200],
                    vec![0; 50],
                ];
                let want = (zeros >= RUN).then_some(before..before + zeros);
                assert_eq!(run(&text.concat()), want, "{before} {zeros}");
            }
        }
    }
}
