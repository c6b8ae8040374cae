//! How a record is written: the byte between its fields, and the byte that quotes them.

use std::ops::Range;

use memchr::{memchr, memchr2};

use crate::record::framing::{Delimited, Framing, State};
use crate::record::quoted::Quoted;

/// Between fields one byte; with a quote, fields as RFC 4180 has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    delimiter: u8,
    quote: Option<u8>,
}

/// The bytes that mean something to the passes over windows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks {
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
}

/// A field's bytes, without the quotes around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    start: usize,
    end: usize,
    /// The quote, where doubled ones stand in the field.
    doubled: Option<u8>,
}

/// A record whose quotes can't be understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// From the quote that opens the field to the end of that line.
    pub(crate) bytes: Range<usize>,
    pub(crate) cause: &'static str,
    /// Behind that line.
    pub(crate) next: usize,
}

/// Where a record stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Behind its last byte, the line's end not counted.
    pub(crate) end: usize,
    /// Behind its line's end.
    pub(crate) next: usize,
}

impl Dialect {
    /// # Errors
    /// Why that can't be.
    pub(crate) fn new(delimiter: u8, quote: Option<u8>) -> Result<Dialect, &'static str> {
        let ends_line = |byte| byte == b'\n' || byte == b'\r';
        if ends_line(delimiter) || quote.is_some_and(ends_line) {
            return Err("a line's end can't be the delimiter or the quote");
        }
        if quote == Some(delimiter) {
            return Err("delimiter and quote are the same byte");
        }
        Ok(Dialect { delimiter, quote })
    }

    /// What the passes over windows look for, if they can.
    pub(crate) fn marks(&self) -> Option<Marks> {
        let Dialect { delimiter, quote } = *self;
        // A key's last byte isn't zero.
        (delimiter != 0 && quote != Some(0)).then_some(Marks { delimiter, quote })
    }

    /// Where records end.
    pub(crate) fn framing(&self) -> Box<dyn Framing> {
        match self.quote {
            Some(quote) => Box::new(Quoted::new(self.delimiter, quote)),
            None => Box::new(Delimited::NEWLINE),
        }
    }

    /// Behind the record that begins at `at`, as engines cut it.
    pub(crate) fn framed_end(&self, bytes: &[u8], at: usize) -> usize {
        let end = self.framing().first_end(State::START, &bytes[at..]);
        end.map_or(bytes.len(), |end| at + end)
    }

    /// Splits the record that begins at `at` into fields. `bytes` end with it or with one behind it. An empty line has
    /// no field.
    ///
    /// # Errors
    /// Something follows a closing quote, or none closes.
    pub(crate) fn split(
        &self,
        bytes: &[u8],
        at: usize,
        fields: &mut Vec<Field>,
    ) -> Result<Record, Unreadable> {
        fields.clear();
        let mut from = at;
        loop {
            if let Some(quote) = self.quote
                && bytes.get(from) == Some(&quote)
            {
                let field = quoted(bytes, from, quote)?;
                fields.push(field);
                let behind = field.end + 1;
                match &bytes[behind..] {
                    [byte, ..] if *byte == self.delimiter => from = behind + 1,
                    [b'\n', ..] => return Ok(record(behind, behind + 1)),
                    [b'\r', b'\n', ..] => return Ok(record(behind, behind + 2)),
                    [] => return Ok(record(behind, behind)),
                    [b'\r'] => return Ok(record(behind, behind + 1)),
                    _ => {
                        let cause =
                            "the quote that opens here is closed, and the field goes on behind it";
                        return Err(unreadable(bytes, from, cause));
                    }
                }
                continue;
            }
            let end = memchr2(self.delimiter, b'\n', &bytes[from..]).map(|end| from + end);
            if let Some(end) = end
                && bytes[end] == self.delimiter
            {
                fields.push(Field::plain(from, end));
                from = end + 1;
                continue;
            }
            let (line_end, next) = match end {
                Some(end) => (end, end + 1),
                None => (bytes.len(), bytes.len()),
            };
            let end = line_end - usize::from(bytes[from..line_end].ends_with(b"\r"));
            if !fields.is_empty() || end > from {
                fields.push(Field::plain(from, end));
            }
            return Ok(record(end, next));
        }
    }
}

fn record(end: usize, next: usize) -> Record {
    Record { end, next }
}

/// The field that the quote at `open` opens.
fn quoted(bytes: &[u8], open: usize, quote: u8) -> Result<Field, Unreadable> {
    let (mut at, mut doubled) = (open + 1, None);
    loop {
        let Some(found) = memchr(quote, &bytes[at..]) else {
            return Err(unreadable(
                bytes,
                open,
                "the quote that opens here is never closed",
            ));
        };
        at += found;
        if bytes.get(at + 1) != Some(&quote) {
            return Ok(Field {
                start: open + 1,
                end: at,
                doubled,
            });
        }
        (at, doubled) = (at + 2, Some(quote));
    }
}

fn unreadable(bytes: &[u8], open: usize, cause: &'static str) -> Unreadable {
    let line_end = memchr(b'\n', &bytes[open..]);
    let end = line_end.map_or(bytes.len(), |end| open + end);
    let trimmed = end - usize::from(bytes[open..end].ends_with(b"\r"));
    Unreadable {
        bytes: open..trimmed,
        cause,
        next: end + usize::from(line_end.is_some()),
    }
}

impl Field {
    fn plain(start: usize, end: usize) -> Field {
        Field {
            start,
            end,
            doubled: None,
        }
    }

    /// Its bytes; `scratch` takes them where they don't stand there as they are.
    pub(crate) fn value<'a>(&self, bytes: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let raw = &bytes[self.start..self.end];
        let Some(quote) = self.doubled else {
            return raw;
        };
        scratch.clear();
        let mut rest = raw;
        while let Some(at) = memchr(quote, rest) {
            scratch.extend_from_slice(&rest[..=at]);
            rest = &rest[at + 2..];
        }
        scratch.extend_from_slice(rest);
        scratch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::framing::texts;

    fn fields(dialect: Dialect, bytes: &[u8]) -> Vec<Result<Vec<Vec<u8>>, usize>> {
        let (mut all, mut at, mut fields) = (Vec::new(), 0, Vec::new());
        while at < bytes.len() {
            match dialect.split(bytes, at, &mut fields) {
                Ok(record) => {
                    assert!(record.next > at && record.end <= record.next);
                    at = record.next;
                    let value = |field: &Field| field.value(bytes, &mut Vec::new()).to_vec();
                    all.push(Ok(fields.iter().map(value).collect()));
                }
                Err(bad) => {
                    assert!(bad.next > at);
                    at = bad.next;
                    all.push(Err(bad.bytes.start));
                }
            }
        }
        all
    }

    #[test]
    fn records_of_csv() {
        let csv = Dialect::new(b',', Some(b'"')).unwrap();
        let row = |fields: &[&str]| Ok(fields.iter().map(|f| f.as_bytes().to_vec()).collect());
        let got = fields(
            csv,
            b"a,\"b,\"\"c\"\"\nd\"\r\n\n,\"\",\r\n5\" x,y\"\n\"q\"x\nz\n\"open\nend",
        );
        let want: Vec<Result<_, usize>> = vec![
            row(&["a", "b,\"c\"\nd"]),
            row(&[]),
            row(&["", "", ""]),
            row(&["5\" x", "y\""]),
            Err(30),
            row(&["z"]),
            Err(37),
            row(&["end"]),
        ];
        assert_eq!(got, want);
        let plain = Dialect::new(b'\t', None).unwrap();
        assert_eq!(
            fields(plain, b"\"a\tb\"\n\t\r\n\r\nx\r"),
            [row(&["\"a", "b\""]), row(&["", ""]), row(&[]), row(&["x"])]
        );
    }

    #[test]
    fn what_can_not_be_a_dialect() {
        for (delimiter, quote) in [(b'\n', None), (b',', Some(b',')), (b',', Some(b'\r'))] {
            assert!(Dialect::new(delimiter, quote).is_err());
        }
    }

    /// A record that can be read ends where the framing ends it.
    #[test]
    fn records_end_where_engines_cut_them() {
        let csv = Dialect::new(b',', Some(b'"')).unwrap();
        let mut found = Vec::new();
        for text in texts(b"a,\"\n\r", if cfg!(miri) { 3 } else { 6 }) {
            if text.is_empty() {
                continue;
            }
            if let Ok(record) = csv.split(&text, 0, &mut found) {
                assert_eq!(record.next, csv.framed_end(&text, 0), "{text:?}");
            }
        }
    }
}
