//! How a record is written: the byte between its fields, and the byte that quotes them.

use std::sync::Arc;

use memchr::{memchr, memchr2};
use ringfold_read::{Begin, Cause, Delimited, Framing, Quoted};

use crate::format::escape::Escape;
use crate::format::field::{Field, QUOTE, Record, Unreadable};
use crate::format::json::Paths;
use crate::format::log::Pattern;
use crate::format::sniff::Style;
use crate::refusal::{Hint, Refusal};

/// What may stand at a file's start and belongs to no field.
pub(crate) use ringfold_read::internals::foreign::BYTE_ORDER_MARK;

/// Bytes of the mark that a text begins with, if it does.
pub(crate) fn mark_len(bytes: &[u8]) -> usize {
    match bytes.starts_with(BYTE_ORDER_MARK) {
        true => BYTE_ORDER_MARK.len(),
        false => 0,
    }
}

/// Between fields one byte; with a quote, fields as RFC 4180 has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dialect {
    delimiter: u8,
    quote: Option<u8>,
    /// No quoted field holds a newline.
    single_line: bool,
    /// Delimiters side by side are one, and those at a record's start and end none.
    squeeze: bool,
    /// Lines that begin with it are no records; empty: there are no such lines.
    comment: Arc<[u8]>,
    /// Blanks around fields don't belong to them.
    trim: bool,
    /// The byte before a quote within quotes that closes nothing.
    escape: Option<u8>,
    /// All carriage returns before a newline belong to the line's end, however many.
    many_returns: bool,
    /// Lines of another form; delimiter and quote mean nothing then.
    form: Option<Form>,
}

/// How lines are written that aren't fields with a byte between.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Log(Arc<Pattern>),
    Json(Arc<Paths>),
}

/// The bytes that mean something to the passes over windows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks {
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
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
        Ok(Dialect {
            delimiter,
            quote,
            ..Dialect::of_form(None)
        })
    }

    /// Lines of a log.
    pub(crate) fn of_log(pattern: Arc<Pattern>) -> Dialect {
        Dialect::of_form(Some(Form::Log(pattern)))
    }

    /// JSON lines.
    pub(crate) fn of_json(paths: Paths) -> Dialect {
        Dialect::of_form(Some(Form::Json(Arc::new(paths))))
    }

    fn of_form(form: Option<Form>) -> Dialect {
        Dialect {
            delimiter: b' ',
            quote: None,
            single_line: false,
            squeeze: false,
            comment: Arc::new([]),
            trim: false,
            escape: None,
            many_returns: false,
            form,
        }
    }

    /// Whether records begin and end where they do in another dialect, and have the same fields.
    pub(crate) fn reads_as(&self, other: &Dialect) -> bool {
        let are_json = [self, other].iter().all(|dialect| dialect.is_json());
        let other = match are_json {
            true => &Dialect {
                form: self.form.clone(),
                ..other.clone()
            },
            false => other,
        };
        self == other
    }

    /// The names of the columns, where the form of the lines has them.
    pub(crate) fn names(&self) -> Option<&[Vec<u8>]> {
        match self.form.as_ref()? {
            Form::Log(pattern) => Some(&pattern.names),
            Form::Json(paths) => Some(&paths.names),
        }
    }

    /// Whether a column has nothing but times, as a log's pattern says.
    pub(crate) fn is_time(&self, column: usize) -> bool {
        matches!(&self.form, Some(Form::Log(pattern)) if pattern.is_time(column))
    }

    /// The pattern of a log in which each line counts.
    pub(crate) fn log_pattern(&self) -> Option<&Arc<Pattern>> {
        match &self.form {
            Some(Form::Log(pattern)) if self.comment.is_empty() => Some(pattern),
            _ => None,
        }
    }

    /// How long what stands after the last field of a log's line is.
    pub(crate) fn log_tail(&self) -> Option<usize> {
        match &self.form {
            Some(Form::Log(pattern)) => Some(pattern.tail.len()),
            _ => None,
        }
    }

    /// What is wrong with a line that a log's pattern doesn't read, where another one does.
    pub(crate) fn cause_of_log(&self, line: &[u8], why: &str) -> Option<Cause> {
        let pattern = match &self.form {
            Some(Form::Log(pattern)) => pattern.other(line)?,
            _ => return None,
        };
        let why = why.into();
        Some(Refusal::OtherLog { why, pattern }.into())
    }

    /// Whether a field's bytes are all its own.
    pub(crate) fn is_unquoted(&self) -> bool {
        self.quote.is_none() && self.form.is_none()
    }

    /// How many fields a record would have if they could be quoted, where they can't.
    pub(crate) fn fields_if_quoted(&self, record: &[u8]) -> Option<usize> {
        if !self.is_unquoted() || self.delimiter == QUOTE {
            return None;
        }
        let quoted = Dialect {
            quote: Some(QUOTE),
            ..self.clone()
        };
        let mut fields = Vec::new();
        let split = quoted.split(record, 0, &mut fields);
        split.is_ok().then_some(fields.len())
    }

    /// Whether lines are JSON.
    pub(crate) fn is_json(&self) -> bool {
        matches!(self.form, Some(Form::Json(_)))
    }

    /// The byte between fields.
    pub(crate) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// The same with what a style says beside delimiter and quote.
    ///
    /// # Errors
    /// Why that can't be.
    pub(crate) fn styled(self, style: &Style) -> Result<Dialect, &'static str> {
        let is_mark = |byte: u8| byte == self.delimiter || Some(byte) == self.quote;
        if style
            .comment
            .iter()
            .any(|byte| matches!(byte, b'\n' | b'\r'))
        {
            return Err("a comment's beginning can't hold a line's end");
        }
        if style.comment.first().is_some_and(|byte| is_mark(*byte)) {
            return Err("a comment can't begin with the delimiter or the quote");
        }
        match style.escape {
            Some(b'\n' | b'\r') => return Err("a line's end can't be the escape"),
            Some(byte) if byte == self.delimiter => {
                return Err("delimiter and escape are the same byte");
            }
            _ => {}
        }
        Ok(Dialect {
            single_line: style.is_single_line,
            squeeze: style.is_squeezed,
            comment: style.comment[..].into(),
            trim: style.is_trimmed,
            // An escape that is the quote is a doubled quote.
            escape: style.escape.filter(|byte| Some(*byte) != self.quote),
            ..self
        })
    }

    /// Whether some lines are no records.
    pub(crate) fn has_comments(&self) -> bool {
        !self.comment.is_empty()
    }

    /// The same where all carriage returns before a newline belong to the line's end.
    pub(crate) fn many_returns(self, many_returns: bool) -> Dialect {
        Dialect {
            many_returns,
            ..self
        }
    }

    /// The byte that quotes fields.
    pub(crate) fn quote(&self) -> Option<u8> {
        self.quote
    }

    /// Whether records end with their lines, though fields may be quoted.
    fn is_single_line(&self) -> bool {
        self.single_line || self.trim || self.escape.is_some()
    }

    /// What the passes over windows look for, if they can: between fields one delimiter, and a quote may be closed in
    /// another line. No window has [comments](Dialect::comment_in).
    pub(crate) fn marks(&self) -> Option<Marks> {
        let Dialect {
            delimiter, quote, ..
        } = *self;
        let is_plain = !(self.squeeze || self.trim || self.many_returns);
        let is_plain = is_plain && self.form.is_none();
        let is_plain = is_plain && !(self.is_single_line() && quote.is_some());
        is_plain.then_some(Marks { delimiter, quote })
    }

    /// Where the first comment begins in records.
    pub(crate) fn comment_in(&self, records: &[u8]) -> Option<usize> {
        if !self.has_comments() || records.starts_with(&self.comment) {
            return self.has_comments().then_some(0);
        }
        let ends = memchr::memmem::find_iter(records, &self.comment);
        { ends }.find(|&at| records[at - 1] == b'\n')
    }

    /// Whether a byte of zero may follow a field.
    pub(crate) fn has_zeros(&self) -> bool {
        self.delimiter == 0 || self.quote == Some(0)
    }

    /// Where records end.
    pub(crate) fn framing(&self) -> Box<dyn Framing> {
        self.framing_of(None)
    }

    /// Where records end in a part that begins so.
    pub(crate) fn framing_of(&self, begin: Option<Begin>) -> Box<dyn Framing> {
        match self.quote {
            Some(quote) if !self.is_single_line() => {
                let quoted = Quoted::new(self.delimiter, quote);
                Box::new(match begin {
                    Some(Begin::Quoted) => quoted.within_quotes_at_part(),
                    _ => quoted,
                })
            }
            _ => Box::new(Delimited::NEWLINE),
        }
    }

    /// After the record that begins at `at`, as engines cut it.
    #[cfg(test)]
    pub(crate) fn framed_end(&self, bytes: &[u8], at: usize) -> usize {
        use ringfold_read::State;
        let end = self.framing().first_end(State::START, &bytes[at..]);
        end.map_or(bytes.len(), |end| at + end)
    }

    /// After the comment that begins at `at`, if one does.
    pub(crate) fn after_comment(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let is_comment = self.has_comments() && bytes[at..].starts_with(&self.comment);
        is_comment.then(|| {
            let end = memchr(b'\n', &bytes[at..]);
            end.map_or(bytes.len(), |end| at + end + 1)
        })
    }

    /// Splits the record that begins at `at` into fields. `bytes` end with it or with one after it. An empty line has
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
        match &self.form {
            Some(Form::Log(pattern)) => return pattern.split(bytes, at, fields),
            Some(Form::Json(paths)) => return paths.split(bytes, at, fields),
            None => {}
        }
        let is_single_line = self.is_single_line();
        if !(is_single_line || self.squeeze) {
            return self.split_at(bytes, at, fields);
        }
        let end = match is_single_line {
            true => memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end + 1),
            false => bytes.len(),
        };
        let split = self.split_at(&bytes[..end], at, fields);
        if self.squeeze {
            let is_empty =
                |field: &Field| field.start == field.end && !field.is_quoted(at, bytes, self.quote);
            fields.retain(|field| !is_empty(field));
        }
        split.map_err(|bad| match is_single_line && bad.is_open {
            true => Unreadable {
                cause: "the quote that opens here isn't closed in its line".into(),
                is_open: false,
                ..bad
            },
            false => bad,
        })
    }

    fn split_at(
        &self,
        bytes: &[u8],
        at: usize,
        fields: &mut Vec<Field>,
    ) -> Result<Record, Unreadable> {
        fields.clear();
        let mut from = at;
        loop {
            let open = self.after_blanks(bytes, from);
            if let Some(quote) = self.quote
                && bytes.get(open) == Some(&quote)
            {
                let field = self.quoted(bytes, open, quote)?;
                fields.push(field);
                let after = self.after_blanks(bytes, field.end + 1);
                match self.line_end(bytes, after) {
                    Some(next) => return Ok(record(field.end + 1, next)),
                    None if bytes[after] == self.delimiter => from = after + 1,
                    None => {
                        let cause =
                            "the quote that opens here is closed, and the field goes on after it";
                        let hint = match bytes[..field.end].ends_with(b"\\") {
                            true => Hint::Escape,
                            false => Hint::Quote,
                        };
                        return Err(unreadable(bytes, open, cause, Some(hint)));
                    }
                }
                continue;
            }
            let end = memchr2(self.delimiter, b'\n', &bytes[from..]).map(|end| from + end);
            if let Some(end) = end
                && bytes[end] == self.delimiter
            {
                fields.push(self.plain(bytes, from, end));
                from = end + 1;
                continue;
            }
            let (line_end, next) = match end {
                Some(end) => (end, end + 1),
                None => (bytes.len(), bytes.len()),
            };
            let mut end = line_end - usize::from(bytes[from..line_end].ends_with(b"\r"));
            while self.many_returns && bytes[from..end].ends_with(b"\r") {
                end -= 1;
            }
            if !fields.is_empty() || end > from {
                fields.push(self.plain(bytes, from, end));
            }
            return Ok(record(end, next));
        }
    }

    /// After the blanks at `at`, if these don't belong to fields.
    fn after_blanks(&self, bytes: &[u8], at: usize) -> usize {
        if !self.trim {
            return at;
        }
        let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t') && **byte != self.delimiter;
        at + bytes[at..].iter().take_while(is_blank).count()
    }

    /// After the line's end at `at`, if there is one, or the bytes end there.
    fn line_end(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let returns = bytes[at..].iter().take_while(|byte| **byte == b'\r');
        let returns = returns.count();
        let is_end = returns <= 1 || self.many_returns;
        match bytes.get(at + returns) {
            Some(b'\n') if is_end => Some(at + returns + 1),
            None if is_end => Some(at + returns),
            _ => None,
        }
    }

    /// A field without quotes.
    #[inline(always)]
    fn plain(&self, bytes: &[u8], start: usize, end: usize) -> Field {
        // Ends are chosen, not fields: a field goes through memory where two ways to one meet, which took half of the time.
        let (start, end) = match self.trim {
            false => (start, end),
            true => self.trimmed(bytes, start, end),
        };
        Field::plain(start, end)
    }

    /// The ends of a field without the blanks around it.
    #[inline(never)]
    fn trimmed(&self, bytes: &[u8], start: usize, end: usize) -> (usize, usize) {
        let start = self.after_blanks(&bytes[..end], start);
        let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
        let blanks = bytes[start..end].iter().rev().take_while(is_blank);
        (start, end - blanks.count())
    }

    /// The field that the quote at `open` opens.
    fn quoted(&self, bytes: &[u8], open: usize, quote: u8) -> Result<Field, Unreadable> {
        let (mut at, mut escape) = (open + 1, None);
        loop {
            let found = match self.escape {
                Some(escape) => memchr2(quote, escape, &bytes[at..]),
                None => memchr(quote, &bytes[at..]),
            };
            let Some(found) = found else {
                let cause = "the quote that opens here is never closed";
                return Err(Unreadable {
                    is_open: true,
                    ..unreadable(bytes, open, cause, Some(Hint::Quote))
                });
            };
            at += found;
            if bytes[at] != quote {
                (at, escape) = ((at + 2).min(bytes.len()), self.escape.map(Escape::Before));
            } else if self.escape.is_none() && bytes.get(at + 1) == Some(&quote) {
                (at, escape) = (at + 2, Some(Escape::Doubled(quote)));
            } else {
                return Ok(Field {
                    start: open + 1,
                    end: at,
                    escape,
                });
            }
        }
    }
}

fn record(end: usize, next: usize) -> Record {
    Record { end, next }
}

/// Where the last field opens that holds a newline.
pub(crate) fn last_multiline(bytes: &[u8], fields: &[Field]) -> Option<usize> {
    let is_multiline = |field: &&Field| memchr(b'\n', &bytes[field.start..field.end]).is_some();
    let field = fields.iter().rev().find(is_multiline);
    field.map(|field| field.start - 1)
}

/// The line of the quote at `open`.
pub(crate) fn unreadable(
    bytes: &[u8],
    open: usize,
    cause: &'static str,
    hint: Option<Hint>,
) -> Unreadable {
    let Record { end, next } = Record::line(bytes, open);
    Unreadable {
        hint,
        ..Unreadable::new(open..end, cause, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfold_read::State;
    use ringfold_read::internals::texts;

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

    #[test]
    fn squeezed_and_single_lines() {
        let styled = |delimiter, style| {
            let plain = Dialect::new(delimiter, Some(b'"')).unwrap();
            plain.styled(&style).unwrap()
        };
        let squeezed = Style {
            is_squeezed: true,
            ..Style::default()
        };
        let blanks = styled(b' ', squeezed);
        let row = |fields: &[&str]| Ok(fields.iter().map(|f| f.as_bytes().to_vec()).collect());
        let want: Vec<Result<_, usize>> =
            vec![row(&["a", "b c", "", "d\"e"]), row(&[]), row(&["x"])];
        let text = b"  a   \"b c\" \"\"   d\"e  \r\n   \nx";
        assert_eq!(fields(blanks, text), want);
        let single_line = Style {
            is_single_line: true,
            ..Style::default()
        };
        let lines = styled(b',', single_line);
        let want: Vec<Result<_, usize>> = vec![
            row(&["a", "b"]),
            Err(7),
            row(&["c\"", ""]),
            Err(14),
            row(&["z"]),
        ];
        assert_eq!(fields(lines, b"a,\"b\"\n,\"x\nc\",\n\"\"y\nz\n"), want);
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
                let end = csv.framing().first_end(State::START, &text);
                assert_eq!(record.next, end.unwrap_or(text.len()), "{text:?}");
            }
        }
    }
}
