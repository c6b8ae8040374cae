//! Finds the byte between fields in the first records of an input.

use memchr::{memchr, memchr_iter};

use crate::error::refusal::Refusal;
use crate::error::{Error, Kind, Result};
use crate::input::head::look_at_heads;
use crate::input::source::Source;
use crate::input::spans::Input;
use crate::query::dialect::Dialect;
use crate::query::field::QUOTE;
use crate::query::plan::BYTE_ORDER_MARK;

/// Records that are looked at, and how many bytes of them at most. Both bound how long a pipe is waited for.
const RECORDS: usize = 20;
const BYTES: usize = 1 << 20;

/// Bytes that may be meant. A blank is only looked at where none of them is there.
const COMMON: [u8; 4] = [b',', b'\t', b'|', b';'];

/// How records are written, apart from the byte between fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) quote: Option<u8>,
    pub(crate) is_single_line: bool,
    pub(crate) is_squeezed: bool,
    pub(crate) is_ragged: bool,
    pub(crate) has_decimal_comma: bool,
    pub(crate) skip_lines: u64,
    pub(crate) comment: Option<u8>,
}

/// What the first records of an input say about a delimiter.
struct Seen {
    /// How many fields it makes of the first record.
    fields: usize,
    /// It makes several fields of each record, and as many of all.
    is_even: bool,
    /// It is in some record.
    is_there: bool,
}

impl Style {
    /// The byte between the fields of an input; `None` where it has no record.
    ///
    /// # Errors
    /// The first records don't tell it.
    pub(crate) fn sniff(&self, input: &Input) -> Result<Option<u8>> {
        self.first_text(input, |source, text| {
            if is_object(text) {
                return Err(refused(source, Refusal::LooksLikeJson));
            }
            let seen = COMMON.map(|byte| (byte, self.seen(text, byte)));
            let is_none_there = seen.iter().all(|(_, seen)| !seen.is_there);
            let is_meant = |byte: u8| !(byte == b',' && self.has_decimal_comma);
            let mut even: Vec<(u8, usize)> = (seen.iter())
                .filter(|(byte, seen)| seen.is_even && is_meant(*byte))
                .map(|(byte, seen)| (*byte, seen.fields))
                .collect();
            if is_none_there {
                let blank = self.seen(text, b' ');
                even.extend(blank.is_even.then_some((b' ', blank.fields)));
            }
            let quoted = Style {
                quote: Some(QUOTE),
                ..*self
            };
            let is_even_quoted = || COMMON.iter().any(|&byte| quoted.seen(text, byte).is_even);
            match &*even {
                [(byte, _)] => Ok(*byte),
                _ => {
                    let is_even_quoted =
                        even.is_empty() && self.quote.is_none() && is_even_quoted();
                    let what = Refusal::Undelimited {
                        candidates: even,
                        is_even_quoted,
                    };
                    Err(refused(source, what))
                }
            }
        })
    }

    /// Checks a delimiter that a file's name tells.
    ///
    /// # Errors
    /// The first records are plainly separated by semicolons: not all have the same number of fields, more than one, with
    /// the delimiter, and all have with semicolons.
    pub(crate) fn check(&self, input: &Input, delimiter: u8) -> Result<()> {
        let checked = self.first_text(input, |source, text| {
            let (named, other) = (self.seen(text, delimiter), self.seen(text, b';'));
            if delimiter == b';' || named.is_even || !other.is_even {
                return Ok(delimiter);
            }
            let what = Refusal::OtherDelimiter {
                delimiter,
                found: b';',
                fields: other.fields,
            };
            Err(refused(source, what))
        });
        checked.map(|_| ())
    }

    /// Shows the first records of the first file that has one.
    fn first_text(
        &self,
        input: &Input,
        decide: impl Fn(&Source, &[u8]) -> Result<u8>,
    ) -> Result<Option<u8>> {
        let look = |source: &Source, bytes: &[u8], ended: bool| {
            let text = match bytes.len() > BYTES {
                true => &bytes[..BYTES],
                false => bytes,
            };
            let is_enough = ended || text.len() == BYTES;
            let (mut end, mut count, mut lines) = (0, 0, 0);
            for at in memchr_iter(b'\n', text) {
                let is_blank = matches!(&text[end..at], [] | [b'\r']);
                let is_comment = self.comment.is_some() && self.comment == text.get(end).copied();
                let is_skipped = lines < self.skip_lines;
                count += usize::from(!(is_blank || is_comment || is_skipped));
                (end, lines) = (at + 1, lines + 1);
                if count == RECORDS {
                    break;
                }
            }
            let text = match count {
                RECORDS => &text[..end],
                _ if is_enough => text,
                _ => return None,
            };
            let text = self.without_preamble(text);
            let has_record = text.iter().any(|byte| !matches!(byte, b'\r' | b'\n'));
            Some(has_record.then(|| decide(source, text)))
        };
        look_at_heads(input.sources(), look)?.transpose()
    }

    fn without_preamble<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let mut rest = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        for _ in 0..self.skip_lines {
            rest = memchr(b'\n', rest).map_or(&[], |end| &rest[end + 1..]);
        }
        rest
    }

    /// What the records of a text say. The last one may be cut.
    fn seen(&self, text: &[u8], delimiter: u8) -> Seen {
        let mut seen = Seen {
            fields: 0,
            is_even: false,
            is_there: memchr(delimiter, text).is_some(),
        };
        let quote = self.quote.filter(|quote| *quote != delimiter);
        let comment = self.comment.filter(|comment| *comment != delimiter);
        let dialect = Dialect::new(delimiter, quote).and_then(|dialect| dialect.comment(comment));
        let Ok(dialect) = dialect else {
            return seen;
        };
        let dialect = (dialect.single_line(self.is_single_line)).squeeze(self.is_squeezed);
        let (mut fields, mut at, mut counts) = (Vec::new(), 0, Vec::new());
        while at < text.len() {
            if let Some(next) = dialect.behind_comment(text, at) {
                at = next;
                continue;
            }
            match dialect.split(text, at, &mut fields) {
                Ok(record) => {
                    if !fields.is_empty() {
                        counts.push(fields.len());
                    }
                    at = record.next;
                }
                // The text may end within a record.
                Err(bad) if bad.is_open => break,
                Err(bad) => {
                    counts.push(0);
                    at = bad.next;
                }
            }
        }
        let Some(&first) = counts.first() else {
            return seen;
        };
        seen.fields = first;
        seen.is_even = first > 1
            && counts.iter().all(|&count| match self.is_ragged {
                true => count > 1,
                false => count == first,
            });
        seen
    }
}

/// Whether a text begins as an object of JSON does.
fn is_object(text: &[u8]) -> bool {
    let text = text.trim_ascii_start().strip_prefix(b"{");
    let key = text.and_then(|text| text.trim_ascii_start().strip_prefix(b"\""));
    let end = key.and_then(|key| Some((key, memchr(b'"', key)?)));
    end.is_some_and(|(key, end)| key[end + 1..].trim_ascii_start().starts_with(b":"))
}

fn refused(source: &Source, what: Refusal) -> Error {
    let index = source.index();
    Error::new(Kind::Usage, what).in_file(index, source.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style {
        quote: None,
        is_single_line: false,
        is_squeezed: false,
        is_ragged: false,
        has_decimal_comma: false,
        skip_lines: 0,
        comment: None,
    };

    fn sniffed(style: Style, text: &str) -> Result<Option<u8>, Vec<(u8, usize)>> {
        let sniffed = style.sniff(&Input::memory([text.as_bytes()]));
        sniffed.map_err(|error| match error.refusal() {
            Some(Refusal::Undelimited { candidates, .. }) => candidates.clone(),
            _ => panic!("{error}"),
        })
    }

    #[test]
    fn the_only_even_one_is_meant() {
        let quoted = Style {
            quote: Some(b'"'),
            ..PLAIN
        };
        let comma = Style {
            has_decimal_comma: true,
            ..PLAIN
        };
        let ragged = Style {
            is_ragged: true,
            ..PLAIN
        };
        let skipping = Style {
            skip_lines: 2,
            comment: Some(b'#'),
            ..PLAIN
        };
        for (style, text, want) in [
            (PLAIN, "a,b\nc,d;e\n", Ok(Some(b','))),
            (PLAIN, "a\tb c\nd\te f,g", Ok(Some(b'\t'))),
            (PLAIN, "a|b|c\r\n\r\nd|e|f\r\n", Ok(Some(b'|'))),
            (PLAIN, "city;price\nBern;1,5\n", Ok(Some(b';'))),
            (
                PLAIN,
                "Bern;1,5;x\nOslo;2,5;y\n",
                Err(vec![(b',', 2), (b';', 3)]),
            ),
            (comma, "Bern;1,5;x\nOslo;2,5;y\n", Ok(Some(b';'))),
            (PLAIN, "a b\nc d\n", Ok(Some(b' '))),
            (PLAIN, "a b\nc d,e\n", Err(vec![])),
            (PLAIN, "a\nb\n", Err(vec![])),
            (PLAIN, "a,b\nc,d,e\n", Err(vec![])),
            (ragged, "a,b\nc,d,e\n", Ok(Some(b','))),
            (PLAIN, "\"a,b\";c\n\"d\";e\n", Ok(Some(b';'))),
            (quoted, "\"a\n,b\",c;d\n\"d,\"\"\",e\n", Ok(Some(b','))),
            (skipping, "x;y\nx;y\n#\na,b\n#;\n", Ok(Some(b','))),
            (PLAIN, "\u{feff}\n\n", Ok(None)),
            (PLAIN, "", Ok(None)),
        ] {
            assert_eq!(sniffed(style, text), want, "{text}");
        }
        for (text, is_json) in [
            ("\n {\"a,b\" :1}\n", true),
            ("{\"a\",1}\n", false),
            ("{a,b\n{c,d\n", false),
        ] {
            let sniffed = PLAIN.sniff(&Input::memory([text.as_bytes()]));
            let refusal = sniffed.err().and_then(|error| error.refusal().cloned());
            assert_eq!(refusal == Some(Refusal::LooksLikeJson), is_json, "{text}");
        }
        // What comes behind the first records says nothing.
        let text = ["a,b\n".repeat(RECORDS), "a,b,c\n".into()].concat();
        assert_eq!(sniffed(PLAIN, &text), Ok(Some(b',')));
        let long = format!("a,b\nc,\"{}\n", "\n".repeat(2 * BYTES));
        assert_eq!(sniffed(quoted, &long), Ok(Some(b',')));
    }

    #[test]
    fn semicolons_under_another_name() {
        let checked = |text: &str| PLAIN.check(&Input::memory([text.as_bytes()]), b',');
        for text in ["a,b\n1;2,3\n", "a\nb\n", "a;b\nc\n", "1,2;3\n1,2;3\n", ""] {
            assert!(checked(text).is_ok(), "{text}");
        }
        for text in ["a;b\n1;2\n", "a;b\n1,5;2\n", "a;b\n"] {
            assert!(checked(text).is_err(), "{text}");
        }
    }
}
