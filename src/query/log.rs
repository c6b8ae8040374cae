//! Lines of a log: fields between the literals of a pattern, with names.
//!
//! A pattern is one of nginx (`$host [$time_local] "$request"`) or of Apache (`%h [%t] "%r"`).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use memchr::{memchr, memrchr};

use crate::query::field::{Field, Record, Unreadable};
use crate::query::sixteen::first_of;

/// What web servers write by default, as Apache calls it.
const COMMON: &str = r#"%h %l %u %t "%r" %>s %b"#;
const COMBINED: &str = r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i""#;

/// The columns of a request line.
const REQUEST: [&str; 3] = ["method", "path", "protocol"];

/// How the lines of a log are written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// As it is written.
    pub(crate) text: String,
    /// The names of all columns.
    pub(crate) names: Vec<Vec<u8>>,
    pieces: Vec<Piece>,
    /// What stands behind the last field.
    tail: Vec<u8>,
}

/// A field, and what stands before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    before: Vec<u8>,
    /// It is a request line, which makes three columns.
    pub(crate) is_request: bool,
}

/// The pattern of a name, `combined` or `common`, or as it is written. Each is made once and stays.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn pattern(text: &str) -> Result<&'static Pattern, String> {
    static KNOWN: Mutex<BTreeMap<String, &'static Pattern>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pattern) = known.get(text) {
        return Ok(pattern);
    }
    let pattern: &'static Pattern = Box::leak(Box::new(Pattern::read(match text {
        "common" => COMMON,
        "combined" => COMBINED,
        other => other,
    })?));
    known.insert(text.into(), pattern);
    Ok(pattern)
}

impl Pattern {
    fn read(text: &str) -> Result<Pattern, String> {
        let mut pattern = Pattern {
            text: text.into(),
            names: Vec::new(),
            pieces: Vec::new(),
            tail: Vec::new(),
        };
        // As quotes stand in the configuration of a server.
        let text = text.replace("\\\"", "\"");
        let mut rest = text.as_str();
        while let Some(letter) = rest.chars().next() {
            let (name, len) = match letter {
                '$' => nginx(rest)?,
                '%' if rest.starts_with("%%") => {
                    pattern.tail.push(b'%');
                    rest = &rest[2..];
                    continue;
                }
                '%' => apache(rest)?,
                _ => {
                    pattern
                        .tail
                        .extend_from_slice(&rest.as_bytes()[..letter.len_utf8()]);
                    rest = &rest[letter.len_utf8()..];
                    continue;
                }
            };
            let is_bracketed = rest.starts_with("%t");
            rest = &rest[len..];
            if is_bracketed && !pattern.tail.ends_with(b"[") {
                pattern.tail.push(b'[');
            }
            pattern.push(&name)?;
            if is_bracketed && !rest.starts_with(']') {
                pattern.tail.push(b']');
            }
        }
        match pattern.pieces.is_empty() {
            true => Err(
                "a pattern has fields such as $status or %s, or is called combined or common"
                    .into(),
            ),
            false => Ok(pattern),
        }
    }

    /// Adds a field behind what was read of literals.
    fn push(&mut self, name: &str) -> Result<(), String> {
        let before = std::mem::take(&mut self.tail);
        if before.is_empty() && !self.pieces.is_empty() {
            return Err(format!(
                "nothing stands between `{name}` and the field before it"
            ));
        }
        let is_request = name == "request";
        let columns: &[&str] = if is_request { &REQUEST } else { &[name] };
        for column in columns {
            let column = column.as_bytes().to_vec();
            if self.names.contains(&column) {
                return Err(format!(
                    "`{}` is there twice",
                    String::from_utf8_lossy(&column)
                ));
            }
            self.names.push(column);
        }
        self.pieces.push(Piece { before, is_request });
        Ok(())
    }

    /// Splits the line that begins at `at` into fields; an empty one has none.
    ///
    /// # Errors
    /// It hasn't the pattern's form.
    pub(crate) fn split(
        &self,
        bytes: &[u8],
        at: usize,
        fields: &mut Vec<Field>,
    ) -> Result<Record, Unreadable> {
        fields.clear();
        let newline = memchr(b'\n', &bytes[at..]).map(|end| at + end);
        let (end, next) = newline.map_or((bytes.len(), bytes.len()), |end| (end, end + 1));
        let end = end - usize::from(bytes[at..end].ends_with(b"\r"));
        if end > at && self.fields(&bytes[..end], at, fields).is_none() {
            return Err(Unreadable {
                bytes: at..end,
                cause: "the line hasn't the form of the log's pattern",
                hint: None,
                next,
                is_open: false,
            });
        }
        Ok(Record { end, next })
    }

    /// Whether a column has times.
    pub(crate) fn is_time(&self, column: usize) -> bool {
        let name = self.names.get(column);
        name.is_some_and(|name| matches!(&name[..], b"time" | b"time_local" | b"time_iso8601"))
    }

    /// What each line begins with.
    pub(crate) fn start(&self) -> &[u8] {
        &self.pieces[0].before
    }

    /// The fields, each with what stands behind it.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&Piece, &[u8])> {
        let behind = self.pieces[1..].iter().map(|next| &*next.before);
        self.pieces.iter().zip(behind.chain([&*self.tail]))
    }

    fn fields(&self, line: &[u8], mut at: usize, fields: &mut Vec<Field>) -> Option<()> {
        let first = self.start();
        at += line[at..].starts_with(first).then_some(first.len())?;
        for (piece, next) in self.steps() {
            let end = end_of(line, at, next)?;
            match piece.is_request {
                true => request(line, at, end, fields),
                false => fields.push(Field::plain(at, end)),
            }
            at = end + next.len();
        }
        // Servers write more behind what everybody knows.
        (at == line.len() || line[at] == b' ').then_some(())
    }
}

/// Where a field ends that begins at `at`, and that a literal follows.
fn end_of(line: &[u8], mut at: usize, literal: &[u8]) -> Option<usize> {
    let Some((&first, rest)) = literal.split_first() else {
        return Some(first_of(b' ', b' ', line, at).unwrap_or(line.len()));
    };
    let stop = if first == b'"' { b'\\' } else { first };
    loop {
        let found = first_of(first, stop, line, at)?;
        // Literals are short.
        let follows = |(at, byte): (usize, &u8)| line.get(found + 1 + at) == Some(byte);
        if line[found] != first {
            // A backslash takes the next byte's meaning.
            at = found + 2;
        } else if rest.iter().enumerate().all(follows) {
            return Some(found);
        } else {
            at = found + 1;
        }
    }
}

/// The parts of a request line. What isn't one is a path.
pub(crate) fn request(line: &[u8], start: usize, end: usize, fields: &mut Vec<Field>) {
    let text = &line[start..end];
    let protocol = memrchr(b' ', text).filter(|at| text[at + 1..].starts_with(b"HTTP/"));
    let behind_path = protocol.map_or(end, |at| start + at);
    let method = first_of(b' ', b' ', &line[..behind_path], start);
    let (method_end, path) = method.map_or((start, start), |at| (at, at + 1));
    fields.push(Field::plain(start, method_end));
    fields.push(Field::plain(path, behind_path));
    fields.push(Field::plain((behind_path + 1).min(end), end));
}

/// The name of a variable such as `$status` or `${status}`, and its length.
fn nginx(text: &str) -> Result<(String, usize), String> {
    let (name, len) = match text.strip_prefix("${") {
        Some(rest) => {
            let len = rest.find('}').ok_or("a `${` isn't closed by `}`")?;
            (&rest[..len], len + 3)
        }
        None => {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            let len = text
                .bytes()
                .skip(1)
                .take_while(|byte| is_name(*byte))
                .count();
            (&text[1..=len], len + 1)
        }
    };
    if name.is_empty() {
        return Err("a name is missing behind `$`".into());
    }
    let ours = match name {
        "remote_addr" => "host",
        "remote_user" => "user",
        "time_local" | "time_iso8601" => "time",
        "body_bytes_sent" => "bytes",
        "http_referer" => "referer",
        "http_user_agent" => "agent",
        other => other,
    };
    Ok((ours.into(), len))
}

/// The name of a directive such as `%>s` or `%{Referer}i`, and its length.
fn apache(text: &str) -> Result<(String, usize), String> {
    let is_modifier = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'<' | b'>' | b'!' | b',');
    let mut at = 1 + text
        .bytes()
        .skip(1)
        .take_while(|byte| is_modifier(*byte))
        .count();
    let mut argument = None;
    if text[at..].starts_with('{') {
        let len = text[at..].find('}').ok_or("a `%{` isn't closed by `}`")?;
        argument = Some(
            text[at + 1..at + len]
                .to_ascii_lowercase()
                .replace('-', "_"),
        );
        at += len + 1;
    }
    let letter = text[at..]
        .chars()
        .next()
        .ok_or("a letter is missing behind `%`")?;
    let len = at + letter.len_utf8();
    let name = match (letter, argument) {
        ('i' | 'o' | 'e' | 'n' | 'C' | 'x' | 'T' | 'a' | 'p', Some(argument)) => match &*argument {
            "user_agent" => "agent".into(),
            _ => argument,
        },
        ('h' | 'a', None) => "host".into(),
        ('l', None) => "ident".into(),
        ('u', None) => "user".into(),
        ('t', None) => "time".into(),
        ('r', None) => "request".into(),
        ('s', None) => "status".into(),
        ('b' | 'B' | 'O', None) => "bytes".into(),
        ('D', None) => "duration_us".into(),
        ('T', None) => "duration_s".into(),
        ('v' | 'V', None) => "server".into(),
        ('p', None) => "port".into(),
        ('m', None) => "method".into(),
        ('U', None) => "path".into(),
        ('q', None) => "query".into(),
        ('H', None) => "protocol".into(),
        ('I', None) => "bytes_in".into(),
        ('P', None) => "process".into(),
        _ => return Err(format!("`{}` isn't known", &text[..len])),
    };
    Ok((name, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str, line: &str) -> Option<Vec<(String, String)>> {
        let pattern = pattern(text).unwrap();
        let mut found = Vec::new();
        let bytes = line.as_bytes();
        let record = pattern.split(bytes, 0, &mut found).ok()?;
        assert!(record.next == bytes.len());
        let mut scratch = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let values = found
            .iter()
            .map(|field| text(field.value(bytes, &mut scratch)));
        let values: Vec<String> = values.collect();
        assert_eq!(values.len(), pattern.names.len());
        Some(
            pattern
                .names
                .iter()
                .map(|name| text(name))
                .zip(values)
                .collect(),
        )
    }

    fn check(text: &str, line: &str, want: &[(&str, &str)]) {
        let got = fields(text, line).unwrap_or_else(|| panic!("{line} isn't {text}"));
        let want = want
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        assert_eq!(got, want.collect::<Vec<_>>(), "{line}");
    }

    const LINE: &str = "203.0.113.9 - ann [25/Nov/2026:13:45:10 +0000] \"GET /a?b=c d HTTP/1.1\" 200 512 \"-\" \"say \\\"hi\\\"\"\r\n";

    #[test]
    fn servers_default_patterns() {
        let common = [
            ("host", "203.0.113.9"),
            ("ident", "-"),
            ("user", "ann"),
            ("time", "25/Nov/2026:13:45:10 +0000"),
            ("method", "GET"),
            ("path", "/a?b=c d"),
            ("protocol", "HTTP/1.1"),
            ("status", "200"),
            ("bytes", "512"),
        ];
        check("common", LINE, &common);
        let more = [("referer", "-"), ("agent", "say \\\"hi\\\"")];
        check("combined", LINE, &[&common[..], &more].concat());
        let nginx = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";
        let mut named = [&common[..], &more].concat();
        named.remove(1);
        check(nginx, LINE, &named);
        // As it stands in a configuration, with more behind it.
        let line = LINE.replace("\r\n", " 0.004 upstream\n");
        let escaped = COMBINED.replace('"', "\\\"");
        check(&escaped, &line, &[&common[..], &more].concat());
        check(
            &format!("{nginx} $request_time"),
            &line,
            &[&named[..], &[("request_time", "0.004")]].concat(),
        );
    }

    #[test]
    fn requests_that_are_none() {
        for (request, want) in [
            ("-", ["", "-", ""]),
            ("", ["", "", ""]),
            ("\\x16\\x03", ["", "\\x16\\x03", ""]),
            ("GET /old", ["GET", "/old", ""]),
            ("GET  HTTP/1.0", ["GET", "", "HTTP/1.0"]),
            ("HTTP/1.1", ["", "HTTP/1.1", ""]),
        ] {
            let names = ["method", "path", "protocol"];
            let want: Vec<_> = names
                .into_iter()
                .zip(want)
                .chain([("status", "400")])
                .collect();
            check("\"%r\" %s", &format!("\"{request}\" 400\n"), &want);
        }
    }

    #[test]
    fn lines_of_another_form() {
        for line in [
            "a",
            "a b",
            "\"GET /\"",
            LINE,
            "\"open 200\n",
            "\"GET /\" \n x",
        ] {
            let is_last = line.ends_with("x");
            let got = is_last || fields("\"%r\" %s %b", line).is_none();
            assert!(got, "{line}");
        }
    }

    #[test]
    fn patterns_that_are_none() {
        for (text, why) in [
            (
                "",
                "a pattern has fields such as $status or %s, or is called combined or common",
            ),
            (
                "Combined",
                "a pattern has fields such as $status or %s, or is called combined or common",
            ),
            ("$a$b", "nothing stands between `b` and the field before it"),
            ("%s %s", "`status` is there twice"),
            ("$request $path", "`path` is there twice"),
            ("%{Referer", "a `%{` isn't closed by `}`"),
            ("${a", "a `${` isn't closed by `}`"),
            ("$ a", "a name is missing behind `$`"),
            ("%Z", "`%Z` isn't known"),
            ("100%", "a letter is missing behind `%`"),
        ] {
            assert_eq!(pattern(text).unwrap_err(), why, "{text}");
        }
    }
}
