//! Lines of a log: fields between the literals of a pattern, with names.
//!
//! A pattern is one of nginx (`$host [$time_local] "$request"`) or of Apache (`%h [%t] "%r"`).
//!
//! **How a line is read.** Where each field ends at the first byte of the literal after it, and the literal stands there,
//! the reading is *plain*; the passes over windows find these alone. In any other line a value holds such a byte: blanks in a
//! list, or a quote in a quoted text. Then all readings are tried in which each value has the [`Form`] of its variable. The
//! line is malformed if there is none, or more than one.

mod directive;
mod form;
mod variable;

use std::sync::Arc;

use memchr::memrchr;

use crate::decimal::number::shown;
use crate::format::field::{Field, Record, Unreadable};
#[cfg(feature = "cli")]
pub(crate) use crate::format::log::directive::directives;
pub(crate) use crate::format::log::form::Form;
use crate::format::log::variable::{Variable, apache, nginx};
use crate::format::sixteen::first_of;

/// What web servers write by default, as Apache calls it.
const COMMON: &str = r#"%h %l %u %t "%r" %>s %b"#;
const COMBINED: &str = r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i""#;
const VHOST_COMBINED: &str = r#"%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i""#;
/// nginx has no name for what identd says.
const NGINX: &str = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#;

/// Patterns with names.
pub(crate) const NAMED: [(&str, &str); 5] = [
    ("common", COMMON),
    ("combined", COMBINED),
    ("vhost_combined", VHOST_COMBINED),
    ("apache", COMBINED),
    ("nginx", NGINX),
];

/// The columns of a request line, and their names where other variables have these.
const REQUEST: [(&str, &str); 3] = [
    ("method", "request_method"),
    ("path", "request_path"),
    ("protocol", "request_protocol"),
];

/// Ends of fields that are tried for one line.
const TRIES: usize = 10_000;

/// How the lines of a log are written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// As it is written, or its name.
    pub(crate) text: String,
    /// The names of all columns.
    pub(crate) names: Vec<Vec<u8>>,
    pieces: Vec<Piece>,
    /// What stands after the last field.
    pub(crate) tail: Vec<u8>,
}

/// A field, and what stands before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    before: Vec<u8>,
    /// How it is called in errors.
    name: String,
    pub(crate) form: Form,
    /// A blank stands before it and another byte after it. So a blank in it may be the one that ends the field before.
    pub(crate) is_open: bool,
    /// It is a request line, which makes three columns.
    pub(crate) is_request: bool,
}

/// The pattern of a name such as `combined`, or as it is written.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn pattern(text: &str) -> Result<Arc<Pattern>, String> {
    let mut named = NAMED.iter();
    Ok(Arc::new(
        match named.find(|(name, _)| name.eq_ignore_ascii_case(text)) {
            Some((name, pattern)) => Pattern {
                // `apache` means the same.
                text: (if *name == "apache" { "combined" } else { name }).into(),
                ..Pattern::read(pattern)?
            },
            None => Pattern::read(&directive::pattern(text)?)?,
        },
    ))
}

impl Pattern {
    fn read(text: &str) -> Result<Pattern, String> {
        let (mut literals, mut variables) = (vec![Vec::new()], Vec::new());
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            let literal: &mut Vec<u8> = literals.last_mut().expect("there is one");
            let (variable, len) = match letter {
                '$' => nginx(rest)?,
                '%' if rest.starts_with("%%") => {
                    literal.push(b'%');
                    rest = &rest[2..];
                    continue;
                }
                '%' => apache(rest)?,
                '\n' | '\r' => return Err("a pattern is of one line".into()),
                _ => {
                    literal.extend_from_slice(&rest.as_bytes()[..letter.len_utf8()]);
                    rest = &rest[letter.len_utf8()..];
                    continue;
                }
            };
            let is_bracketed = rest.starts_with("%t");
            rest = &rest[len..];
            if is_bracketed && !literal.ends_with(b"[") {
                literal.push(b'[');
            }
            if literal.is_empty() && !variables.is_empty() {
                return Err(format!(
                    "nothing stands between `{}` and the field before it",
                    variable.short
                ));
            }
            variables.push(variable);
            literals.push(match is_bracketed && !rest.starts_with(']') {
                true => b"]".to_vec(),
                false => Vec::new(),
            });
        }
        if variables.is_empty() {
            let names = NAMED.map(|(name, _)| name).join(", ");
            return Err(format!(
                "a pattern has fields such as $status or %s, or is one of {names}"
            ));
        }
        let tail = literals.pop().expect("there is one");
        let names = names(&variables);
        let ends = literals[1..].iter().chain([&tail]);
        let places = literals.iter().zip(ends);
        let opens: Vec<bool> = (places.clone())
            .map(|(before, end)| {
                let is_blank = !before.is_empty() && before.iter().all(|byte| *byte == b' ');
                is_blank && !matches!(**end, [] | [b' ', ..])
            })
            .collect();
        let forms: Vec<Form> = (variables.iter().zip(places).zip(&opens))
            .map(|((variable, (_, end)), is_open)| {
                let is_between_blanks = *is_open || matches!(**end, [] | [b' ', ..]);
                variable.form.between_blanks(is_between_blanks)
            })
            .collect();
        let pieces = variables.into_iter().zip(literals).zip(forms).zip(opens);
        Ok(Pattern {
            text: text.into(),
            names,
            pieces: pieces
                .map(|(((variable, before), form), is_open)| Piece {
                    before,
                    name: variable.short,
                    form,
                    is_open,
                    is_request: variable.is_request,
                })
                .collect(),
            tail,
        })
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
        let Record { end, next } = Record::line(bytes, at);
        let line = &bytes[..end];
        if end > at && self.plain(line, at, fields).is_none() {
            let mut search = Search::new(self, line);
            match search.only_reading(at) {
                Ok(spans) => {
                    fields.clear();
                    for (piece, &(start, end)) in self.pieces.iter().zip(spans) {
                        piece.push(line, start, end, fields);
                    }
                }
                Err(why) => return Err(Unreadable::new(at..end, why, next)),
            }
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

    /// The fields, each with what stands after it.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&Piece, &[u8])> {
        let after = self.pieces[1..].iter().map(|next| &*next.before);
        self.pieces.iter().zip(after.chain([&*self.tail]))
    }

    /// The fields of a plain reading.
    fn plain(&self, line: &[u8], mut at: usize, fields: &mut Vec<Field>) -> Option<()> {
        let first = self.start();
        at += line[at..].starts_with(first).then_some(first.len())?;
        for (piece, next) in self.steps() {
            let end = match *next {
                [] if first_of(b' ', b' ', line, at).is_some() => return None,
                [] => line.len(),
                [first, ..] => stop(line, at, first)?,
            };
            let is_plain = line[end..].starts_with(next) && piece.is_plain(&line[at..end]);
            is_plain.then(|| piece.push(line, at, end, fields))?;
            at = end + next.len();
        }
        self.may_end(line, at).then_some(())
    }

    /// Whether what stands from `at` on may follow a line of the pattern: nothing, or a blank and more after a quote or
    /// bracket. Servers write more after what everybody knows. Quotes are pairs there, or else one of them would be of the
    /// last value.
    pub(crate) fn may_end(&self, line: &[u8], mut at: usize) -> bool {
        if at == line.len() || line[at] != b' ' || self.tail.is_empty() {
            return at == line.len();
        }
        let mut is_open = false;
        while let Some(found) = stop(line, at, b'"') {
            (is_open, at) = (!is_open, found + 1);
        }
        !is_open
    }

    /// The pattern that reads a line which this one doesn't, if there is one.
    pub(crate) fn other(&self, line: &[u8]) -> Option<String> {
        let named = NAMED.iter().find(|(name, _)| fits(name, line));
        if let Some((name, _)) = named {
            return Some((*name).into());
        }
        let known = NAMED.iter().find(|(name, _)| *name == self.text);
        let text = known.map_or(&*self.text, |(_, text)| text);
        let others = [
            text.replacen("%h", "%{X-Forwarded-For}i", 1),
            text.replacen("$remote_addr", "$http_x_forwarded_for", 1),
            format!("$prefix {text}"),
        ];
        others.into_iter().find(|other| fits(other, line))
    }
}

/// The name of a pattern that reads a line, if there is one.
pub(crate) fn named(line: &[u8]) -> Option<&'static str> {
    let names = ["combined", "common", "vhost_combined"];
    names.into_iter().find(|name| fits(name, line))
}

/// Whether a pattern, or that of a name, reads a line.
fn fits(text: &str, line: &[u8]) -> bool {
    pattern(text).is_ok_and(|pattern| pattern.split(line, 0, &mut Vec::new()).is_ok())
}

impl Piece {
    fn is_plain(&self, value: &[u8]) -> bool {
        self.form.is_plain(value) && !(self.is_open && value.contains(&b' '))
    }

    fn push(&self, line: &[u8], start: usize, end: usize, fields: &mut Vec<Field>) {
        match self.is_request {
            true => request(line, start, end, fields),
            false => fields.push(Field::plain(start, end)),
        }
    }
}

/// The names of columns. Those that several variables would have go to the one that is called so, or else to the first, the
/// standard ones first; the others keep their own.
fn names(variables: &[Variable]) -> Vec<Vec<u8>> {
    let columns = variables.iter().flat_map(|variable| {
        let one = [(&*variable.short, &*variable.own)];
        let (one, parts) = match variable.is_request {
            true => (&[][..], &REQUEST[..]),
            false => (&one[..], &[][..]),
        };
        let columns: Vec<_> = one.iter().chain(parts).copied().collect();
        columns
            .into_iter()
            .map(|column| (column, variable.gives_way))
    });
    let columns: Vec<_> = columns.collect();
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|&at| {
        let ((short, own), gives_way) = columns[at];
        (short != own, gives_way)
    });
    let mut names: Vec<String> = vec![String::new(); columns.len()];
    for at in order {
        let (short, own) = columns[at].0;
        let numbered = (2..).map(|number| format!("{own}_{number}"));
        let mut wanted = [short.to_string(), own.to_string()]
            .into_iter()
            .chain(numbered);
        let free = wanted.find(|name| !names.contains(name));
        names[at] = free.expect("numbers don't end");
    }
    names.into_iter().map(String::into_bytes).collect()
}

/// Where `first` stands from `at` on. A backslash takes a quote's meaning.
fn stop(line: &[u8], mut at: usize, first: u8) -> Option<usize> {
    let escape = if first == b'"' { b'\\' } else { first };
    loop {
        let found = first_of(first, escape, line, at)?;
        if line[found] == first {
            return Some(found);
        }
        at = found + 2;
    }
}

/// A look for all readings of a line.
struct Search<'a> {
    pattern: &'a Pattern,
    line: &'a [u8],
    /// Where the fields of the current try stand.
    spans: Vec<(usize, usize)>,
    found: Option<Vec<(usize, usize)>>,
    /// A field that another reading has otherwise, and where it ends there.
    other: Option<(usize, (usize, usize))>,
    tries: usize,
    /// Fields of the current try whose values hold quotes that aren't escaped.
    quotes: usize,
    /// The furthest place where a try without these ended, the field, and why.
    furthest: Option<(usize, usize, Misfit)>,
}

/// Why a line doesn't go on as the pattern does.
enum Misfit {
    /// The literal before the field isn't there.
    Before,
    /// The literal after the field isn't there.
    After,
    /// The value that ends here isn't one of the variable.
    Value(usize),
    /// The line goes on.
    Rest,
}

impl<'a> Search<'a> {
    fn new(pattern: &'a Pattern, line: &'a [u8]) -> Search<'a> {
        Search {
            pattern,
            line,
            spans: Vec::new(),
            found: None,
            other: None,
            tries: 0,
            quotes: 0,
            furthest: None,
        }
    }

    /// Where the fields of the line at `at` stand.
    ///
    /// # Errors
    /// Why that can't be said.
    fn only_reading(&mut self, at: usize) -> Result<&[(usize, usize)], String> {
        let first = self.pattern.start();
        match self.line[at..].starts_with(first) {
            true => self.go(at + first.len()),
            false => self.note(at, 0, Misfit::Before),
        }
        let name = |piece: usize| &self.pattern.pieces[piece].name;
        let value = |(start, end): (usize, usize)| shown(&self.line[start..end]);
        match (&self.found, self.other) {
            (Some(found), Some((piece, other))) => Err(format!(
                "column {}: the line fits the log's pattern in several ways: `{}` may be `{}` or `{}`",
                found[piece].0 - at + 1,
                name(piece),
                value(found[piece]),
                value(other)
            )),
            _ if self.tries >= TRIES => {
                Err("the line may fit the log's pattern in too many ways".into())
            }
            (Some(found), None) => Ok(found),
            (None, _) => Err(self.misfit(at)),
        }
    }

    /// What is wrong with the line at `start`.
    fn misfit(&self, start: usize) -> String {
        let Some((at, piece, why)) = &self.furthest else {
            return "the line hasn't the form of the log's pattern".into();
        };
        let pieces = &self.pattern.pieces;
        let name = &pieces[*piece].name;
        let literal = |literal: &[u8]| String::from_utf8_lossy(literal).into_owned();
        let why = match why {
            Misfit::Before => format!(
                "`{}` is missing before `{name}`",
                literal(&pieces[*piece].before)
            ),
            Misfit::After => {
                let (_, after) = self.pattern.steps().nth(*piece).expect("a piece");
                format!("`{}` is missing after `{name}`", literal(after))
            }
            Misfit::Value(end) => format!(
                "`{name}` is {}, not `{}`",
                pieces[*piece].form.described(),
                shown(&self.line[*at..*end])
            ),
            Misfit::Rest => format!("the line goes on after `{name}`"),
        };
        format!("column {}: {why}", at - start + 1)
    }

    fn note(&mut self, at: usize, piece: usize, why: Misfit) {
        if self.quotes == 0 && self.furthest.as_ref().is_none_or(|(known, ..)| *known < at) {
            self.furthest = Some((at, piece, why));
        }
    }

    /// Tries all ends of the next field, which begins at `at`, until two readings are found.
    fn go(&mut self, at: usize) {
        let (pattern, piece) = (self.pattern, self.spans.len());
        let Some((&Piece { form, .. }, next)) = pattern.steps().nth(piece) else {
            return self.end(at);
        };
        let (mut from, mut is_there) = (at, false);
        let quotes = self.quotes;
        while self.other.is_none() && self.tries < TRIES {
            let end = match *next {
                [] if from > self.line.len() => None,
                [] => Some(self.line.len()),
                [first, ..] => stop(self.line, from, first),
            };
            let Some(end) = end else {
                break;
            };
            self.quotes = quotes + usize::from(from > at && next.starts_with(b"\""));
            from = end + 1;
            if !self.line[end..].starts_with(next) {
                continue;
            }
            (is_there, self.tries) = (true, self.tries + 1);
            match form.fits(&self.line[at..end]) {
                true => {
                    self.spans.push((at, end));
                    self.go(end + next.len());
                    self.spans.pop();
                }
                false => self.note(at, piece, Misfit::Value(end)),
            }
        }
        self.quotes = quotes;
        if !is_there {
            self.note(at, piece, Misfit::After);
        }
    }

    /// Ends a try at `at`.
    fn end(&mut self, at: usize) {
        if !self.pattern.may_end(self.line, at) {
            return self.note(at, self.spans.len() - 1, Misfit::Rest);
        }
        match &self.found {
            None => self.found = Some(self.spans.clone()),
            Some(found) => {
                let differs = (0..).find(|&piece| found[piece] != self.spans[piece]);
                self.other = differs.map(|piece| (piece, self.spans[piece]));
            }
        }
    }
}

/// The parts of a request line. What isn't one is a path.
pub(crate) fn request(line: &[u8], start: usize, end: usize, fields: &mut Vec<Field>) {
    let text = &line[start..end];
    let protocol = memrchr(b' ', text).filter(|at| text[at + 1..].starts_with(b"HTTP/"));
    let after_path = protocol.map_or(end, |at| start + at);
    let method = first_of(b' ', b' ', &line[..after_path], start);
    let (method_end, path) = method.map_or((start, start), |at| (at, at + 1));
    fields.push(Field::plain(start, method_end));
    fields.push(Field::plain(path, after_path));
    fields.push(Field::plain((after_path + 1).min(end), end));
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
        check(
            "common",
            &LINE.replace(" \"-\" \"say \\\"hi\\\"\"", ""),
            &common,
        );
        let more = [("referer", "-"), ("agent", "say \\\"hi\\\"")];
        check("combined", LINE, &[&common[..], &more].concat());
        let nginx = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";
        let mut named = [&common[..], &more].concat();
        named.remove(1);
        check(nginx, LINE, &named);
        // As it stands in a configuration, with more after it.
        let line = LINE.replace("\r\n", " 0.004 upstream\n");
        let escaped = COMBINED.replace('"', "\\\"");
        check(&escaped, &line, &[&common[..], &more].concat());
        check(
            &format!("{nginx} $request_time $x"),
            &line,
            &[&named[..], &[("request_time", "0.004"), ("x", "upstream")]].concat(),
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
                "a pattern has fields such as $status or %s, or is one of common, combined, vhost_combined, apache, nginx",
            ),
            ("$a$b", "nothing stands between `b` and the field before it"),
            ("%{Referer", "a `%{` isn't closed by `}`"),
            ("${a", "a `${` isn't closed by `}`"),
            ("$ a", "a name is missing after `$`"),
            (
                "%Z",
                "`%Z` isn't known: a name such as $field in its place reads any value",
            ),
            ("%s\n%h", "a pattern is of one line"),
            ("100%", "a letter is missing after `%`"),
        ] {
            assert_eq!(pattern(text).unwrap_err(), why, "{text}");
        }
    }
}
