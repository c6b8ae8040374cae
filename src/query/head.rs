//! The start of each file: where its records begin, and what the first one tells.

use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memchr_iter};

use crate::error::refusal::Refusal;
use crate::error::{Cause, Error, Kind, Result};
use crate::input::head::{look_at_head, look_at_heads};
use crate::input::source::Source;
use crate::input::spans::Input;
use crate::query::dialect::{Dialect, last_multiline, unreadable};
use crate::query::plan::{BYTE_ORDER_MARK, Shape, names_of, quote_cause};

/// How the first bytes of a file are read.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) dialect: Dialect,
    pub(crate) has_header: bool,
    /// The first record may be malformed.
    pub(crate) leaves_out: bool,
    pub(crate) skip_lines: u64,
    pub(crate) max_record: usize,
}

/// Why the first record of an input tells nothing.
struct Refused {
    cause: Cause,
    bytes: Range<usize>,
    /// Lines before it.
    lines: u64,
}

impl Head {
    /// What the first record of an input tells; `None` where there is no record.
    pub(crate) fn shape(&self, input: &Input) -> Result<Option<Shape>> {
        let look = |source: &Source, bytes: &[u8], ended: bool| {
            let refused = |refused: Refused| {
                let bytes = refused.bytes.start as u64..refused.bytes.end as u64;
                let error = Error::new(Kind::Data, refused.cause);
                let error = error.in_file(source.index(), source.name());
                error.at_bytes(bytes).at_line(1 + refused.lines)
            };
            let found = self.first_record(bytes, ended)?.map_err(refused);
            let shape = found.map(|fields| fields.map(|fields| self.shape_of(source, fields)));
            Some(shape.transpose())
        };
        look_at_heads(input.sources(), look)?.transpose()
    }

    fn shape_of(&self, source: &Source, fields: Vec<Vec<u8>>) -> Shape {
        Shape {
            width: fields.len(),
            header: match self.dialect.names() {
                Some(names) => Some(names.to_vec()),
                None => self.has_header.then_some(fields),
            },
            file: Arc::clone(source.name()),
        }
    }

    /// Where the header of each file or its first record begins, if that isn't at its start.
    pub(crate) fn begins(&self, input: &Input) -> Result<Vec<u64>> {
        let is_at_start = self.skip_lines == 0 && !(self.has_header && self.dialect.has_comments());
        if is_at_start {
            return Ok(Vec::new());
        }
        let begin = |source: &Arc<Source>| {
            // Its lines are counted when they come.
            if source.len().is_none() {
                return Ok(0);
            }
            let look = |bytes: &[u8], ended: bool| match self.begin(bytes) {
                None if ended => Some(bytes.len() as u64),
                at => at.map(|at| at as u64),
            };
            look_at_head(source, look)
        };
        input.sources().iter().map(begin).collect()
    }

    /// Behind what comes before the header or the first record; `None` where that isn't among the bytes.
    fn begin(&self, bytes: &[u8]) -> Option<usize> {
        let mut at = match bytes.starts_with(BYTE_ORDER_MARK) {
            true => BYTE_ORDER_MARK.len(),
            false => 0,
        };
        for _ in 0..self.skip_lines {
            at += memchr(b'\n', bytes.get(at..)?)? + 1;
        }
        while at < bytes.len() {
            match self.dialect.behind_comment(bytes, at) {
                Some(next) => at = next,
                None => return Some(at),
            }
        }
        None
    }

    /// The fields of the first record in the first bytes of a file; `Some(Ok(None))` where it has none, and `None` where
    /// more bytes are needed.
    fn first_record(
        &self,
        bytes: &[u8],
        ended: bool,
    ) -> Option<Result<Option<Vec<Vec<u8>>>, Refused>> {
        let refused = |cause: Cause, at: Range<usize>| {
            let lines = memchr_iter(b'\n', &bytes[..at.start]).count() as u64;
            let bytes = at;
            Some(Err(Refused {
                cause,
                bytes,
                lines,
            }))
        };
        let max_record = self.max_record;
        let exceeded = Cause::from(Refusal::Exceeded { max_record });
        let ends = |next: usize| ended || bytes[..next].ends_with(b"\n");
        let Some(mut at) = self.begin(bytes) else {
            return ended.then_some(Ok(None));
        };
        let mut fields = Vec::new();
        while at < bytes.len() {
            if let Some(next) = self.dialect.behind_comment(bytes, at) {
                if !ends(next) {
                    return None;
                }
                at = next;
                continue;
            }
            match self.dialect.split(bytes, at, &mut fields) {
                Ok(record) if record.end - at > max_record => {
                    match last_multiline(bytes, &fields).filter(|_| self.leaves_out) {
                        Some(open) if !self.has_header => at = unreadable(bytes, open, "").next,
                        _ => return refused(exceeded, at..at + max_record),
                    }
                }
                Ok(record) if !ends(record.next) => return None,
                Ok(_) if !fields.is_empty() => return Some(Ok(Some(names_of(&fields, bytes)))),
                Ok(record) if self.has_header => {
                    let cause = "an empty line where a header is expected";
                    return refused(cause.into(), at..record.end);
                }
                Ok(record) => at = record.next,
                Err(bad) => {
                    let is_long = bytes.len() - at > max_record;
                    if !ends(bad.next) && is_long {
                        return refused(exceeded, at..at + max_record);
                    }
                    if !ends(bad.next) || !ended && bad.is_open && !is_long {
                        return None;
                    }
                    if self.has_header || !self.leaves_out {
                        let why = match bad.is_open && is_long {
                            true => format!(
                                "the quote that opens here isn't closed within {max_record} bytes"
                            ),
                            false => bad.cause.into(),
                        };
                        return refused(quote_cause(&self.dialect, why), bad.bytes);
                    }
                    at = bad.next;
                }
            }
        }
        ended.then_some(Ok(None))
    }
}
