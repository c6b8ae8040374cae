//! The start of each file: where its records begin, and what the first one tells.

use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memchr_iter, memrchr};
use ringfold_read::internals::{
    head::{look_at_head, look_at_heads},
    nuls,
};
use ringfold_read::{Cause, Error, Input, Kind, Refusal, Result, Source};

use crate::decimal::number::Number;
use crate::format::dialect::{Dialect, last_multiline, mark_len, unreadable};
use crate::format::field::names_of;
use crate::format::sniff::separator_line;
use crate::plan::{Shape, hinted};
use crate::refusal::Hint;

/// How the first bytes of a file are read.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) dialect: Dialect,
    pub(crate) has_header: bool,
    /// The first record may be malformed.
    pub(crate) leaves_out: bool,
    pub(crate) skip_lines: u64,
    /// The first file begins with a line that says which byte stands between fields.
    pub(crate) has_separator_line: bool,
    pub(crate) max_record: usize,
}

/// The first record of a file.
struct First {
    fields: Vec<Vec<u8>>,
    /// Its bytes.
    line: Vec<u8>,
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
            let shape = found.map(|fields| fields.map(|first| self.shape_of(source, first)));
            Some(shape.transpose())
        };
        look_at_heads(input.sources(), look)?.transpose()
    }

    fn shape_of(&self, source: &Source, first: First) -> Shape {
        let is_header = self.has_header && self.dialect.names().is_none();
        Shape {
            width: first.fields.len(),
            header_line: is_header.then_some(first.line),
            header: match self.dialect.names() {
                Some(names) => Some(names.to_vec()),
                None => self.has_header.then_some(first.fields),
            },
            file: Arc::clone(source.name()),
        }
    }

    /// Where the header of each file or its first record begins, if that isn't at its start.
    pub(crate) fn begins(&self, input: &Input) -> Result<Vec<u64>> {
        let has_comments = self.has_header && self.dialect.has_comments();
        if self.skip_lines == 0 && !has_comments && !self.has_separator_line {
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
        let separator = separator_line(bytes).filter(|_| self.has_separator_line);
        let mut at = separator.map_or_else(|| mark_len(bytes), |(_, end)| end);
        for _ in 0..self.skip_lines {
            at += memchr(b'\n', bytes.get(at..)?)? + 1;
        }
        while at < bytes.len() {
            match self.dialect.after_comment(bytes, at) {
                Some(next) => at = next,
                None => return Some(at),
            }
        }
        None
    }

    /// The fields of the first record in the first bytes of a file; `Some(Ok(None))` where it has none, and `None` where
    /// more bytes are needed.
    fn first_record(&self, bytes: &[u8], ended: bool) -> Option<Result<Option<First>, Refused>> {
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
        let exceeded = |at: usize| match nuls::run(&bytes[at..at + max_record]) {
            Some(_) if !self.dialect.has_zeros() => nuls::endless(max_record),
            run => Refusal::Exceeded {
                max_record,
                has_nuls: run.is_some(),
            }
            .into(),
        };
        let ends = |next: usize| ended || bytes[..next].ends_with(b"\n");
        let Some(mut at) = self.begin(bytes) else {
            return ended.then_some(Ok(None));
        };
        let last_comment = self.last_comment(bytes, at);
        let mut fields = Vec::new();
        while at < bytes.len() {
            if let Some(next) = self.dialect.after_comment(bytes, at) {
                if !ends(next) {
                    return None;
                }
                at = next;
                continue;
            }
            match self.dialect.split(bytes, at, &mut fields) {
                Ok(record) if record.end - at > max_record => {
                    match last_multiline(bytes, &fields).filter(|_| self.leaves_out) {
                        Some(open) if !self.has_header => {
                            at = unreadable(bytes, open, "", None).next
                        }
                        _ => return refused(exceeded(at), at..at + max_record),
                    }
                }
                Ok(record) if !ends(record.next) => return None,
                Ok(record) if !fields.is_empty() => {
                    let first = First {
                        fields: names_of(&fields, bytes),
                        line: bytes[at..record.end].to_vec(),
                    };
                    let comment =
                        last_comment.filter(|line| self.is_header(&bytes[line.clone()], &first));
                    let Some(comment) = comment.filter(|_| self.has_header) else {
                        return Some(Ok(Some(first)));
                    };
                    let lines = memchr_iter(b'\n', &bytes[..comment.start]).count() as u64;
                    let why = "this comment has as many fields as the record behind it, and may be the header";
                    return refused(hinted(why, Hint::CommentedHeader(lines)), comment);
                }
                Ok(record) => at = record.next,
                Err(bad) => {
                    let is_long = bytes.len() - at > max_record;
                    if !ends(bad.next) && is_long {
                        return refused(exceeded(at), at..at + max_record);
                    }
                    if !ends(bad.next) || !ended && bad.is_open && !is_long {
                        return None;
                    }
                    if self.has_header || !self.leaves_out {
                        let of_log = || {
                            let line = &bytes[bad.bytes.clone()];
                            self.dialect.cause_of_log(line, &bad.cause)
                        };
                        let cause = match (bad.is_open && is_long, bad.hint) {
                            (true, _) => unclosed(max_record),
                            (false, Some(hint)) => hinted(bad.cause.into_owned(), hint),
                            (false, None) => {
                                of_log().unwrap_or_else(|| bad.cause.into_owned().into())
                            }
                        };
                        return refused(cause, bad.bytes);
                    }
                    at = bad.next;
                }
            }
        }
        ended.then_some(Ok(None))
    }

    /// The comment before the first record or header, which begins at `at`, without its line's end.
    fn last_comment(&self, bytes: &[u8], at: usize) -> Option<Range<usize>> {
        let before = bytes[..at].strip_suffix(b"\n")?;
        let before = before.strip_suffix(b"\r").unwrap_or(before);
        let start = memrchr(b'\n', before).map_or(0, |end| end + 1);
        let is_comment = self.dialect.after_comment(bytes, start).is_some();
        is_comment.then_some(start..before.len())
    }

    /// Whether a comment has the names of the columns, and not the first record: it has as many fields, and no blank behind
    /// its first byte, or no number where the record has one.
    fn is_header(&self, comment: &[u8], first: &First) -> bool {
        let mut fields = Vec::new();
        if self.dialect.split(comment, 0, &mut fields).is_err() {
            return false;
        }
        let names = names_of(&fields, comment);
        let is_number = |value: &Vec<u8>| Number::read(value).is_ok();
        let mut both = names.iter().zip(&first.fields);
        let has_number = both.any(|(name, value)| is_number(value) && !is_number(name));
        let is_name = comment
            .get(1)
            .is_some_and(|byte| !byte.is_ascii_whitespace());
        names.len() > 1 && names.len() == first.fields.len() && (is_name || has_number)
    }
}

/// What is wrong with a quote that isn't closed within the longest record.
pub(crate) fn unclosed(max_record: usize) -> Cause {
    let why = format!("the quote that opens here isn't closed within {max_record} bytes");
    hinted(why, Hint::MaxRecord(max_record.saturating_mul(4)))
}
