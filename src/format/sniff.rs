//! Finds the byte between fields in the first records of an input.

use std::sync::Arc;

use memchr::{memchr, memchr_iter, memmem, memrchr};
use ringfold_read::internals::{head::look_at_heads, nuls};
use ringfold_read::{Error, Input, Kind, Result, Source};

use crate::format::dialect::{Dialect, mark_len};
use crate::format::field::{Field, QUOTE, names_of};
use crate::format::hint::is_usual_null;
use crate::format::log;
use crate::refusal::{Hint, Refusal, Uneven};

/// Records that are looked at, and how many bytes of them at most. Both bound how long a pipe is waited for.
const RECORDS: usize = 20;
const BYTES: usize = 1 << 20;

/// Bytes that may be meant. A blank is only looked at where none of them is there.
const COMMON: [u8; 4] = [b',', b'\t', b'|', b';'];

/// How records are written, apart from the byte between fields.
#[derive(Debug, Clone, Default)]
pub(crate) struct Style {
    /// The byte that quotes fields, or none; where nobody says it, the first records do.
    pub(crate) quote: Option<Option<u8>>,
    pub(crate) escape: Option<u8>,
    pub(crate) is_trimmed: bool,
    pub(crate) has_header: bool,
    pub(crate) is_single_line: bool,
    pub(crate) is_squeezed: bool,
    pub(crate) is_ragged: bool,
    pub(crate) has_decimal_comma: bool,
    pub(crate) skip_lines: u64,
    /// What lines that are no records begin with.
    pub(crate) comment: Vec<u8>,
}

/// The byte between fields, as it is known before the first records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Delimiter {
    Named(u8),
    /// Named by the files' ending, which may be wrong.
    Likely(u8),
    /// To be found in the first records.
    #[default]
    Sniffed,
}

/// What the first records say of all.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    /// `None` where the input has no record.
    pub(crate) delimiter: Option<u8>,
    pub(crate) quote: Option<u8>,
    /// Each record has a field more than the header, and what may help.
    pub(crate) longer: Option<Hint>,
    /// The first line says which byte stands between fields.
    pub(crate) has_separator_line: bool,
    /// Empty lines come before the first record.
    pub(crate) has_empty_lines: bool,
    pub(crate) doubts: Vec<Doubt>,
}

impl Sample {
    pub(crate) fn has(&self, kind: DoubtKind) -> bool {
        self.doubts.iter().any(|doubt| doubt.kind == kind)
    }
}

/// What may be read otherwise, and where it is first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Doubt {
    /// What it is.
    pub kind: DoubtKind,
    /// The file's name.
    pub file: Arc<str>,
    /// The byte where it is first.
    pub byte: u64,
    /// The line of that byte, from 1.
    pub line: u64,
}

/// What may be read otherwise in the first records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DoubtKind {
    /// A field begins with a quote, but the first records can't be read as quoted fields, so quotes are bytes like others.
    Quotes,
    /// A field begins with blanks and a quote, which belong to it.
    BlanksBeforeQuotes,
    /// Several carriage returns stand before a newline; they are left out.
    CarriageReturns,
}

/// What the first records of an input say about a delimiter.
#[derive(Default)]
struct Trial {
    /// How many fields it makes of the first record.
    fields: usize,
    /// It makes several fields of each record, and as many of all; a header may have one less.
    is_even: bool,
    /// It is in some record.
    is_there: bool,
    /// Some field is quoted.
    is_quoted: bool,
    /// Some quote isn't closed, or not before its field's end.
    is_broken: bool,
    /// All records but the first have one field more, and the hint is what helps.
    longer: Option<Hint>,
    /// Where the first record with another number of fields begins, and how many it has.
    uneven: Option<(usize, usize)>,
    /// Every second field of all records is empty.
    is_doubled: bool,
    /// Where the first field begins with a quote and isn't quoted, and with blanks before a quote.
    first_quote: Option<usize>,
    first_blank: Option<usize>,
}

/// The byte that a spreadsheet says in a first line such as `sep=;`, and where that line ends.
pub(crate) fn separator_line(bytes: &[u8]) -> Option<(u8, usize)> {
    let mark = mark_len(bytes);
    match bytes[mark..].strip_prefix(b"sep=")? {
        [byte, b'\n', ..] => Some((*byte, mark + 6)),
        [byte, b'\r', b'\n', ..] => Some((*byte, mark + 7)),
        _ => None,
    }
}

impl Style {
    /// Looks at the first records of an input.
    ///
    /// # Errors
    /// They don't tell the delimiter, or say that it is another one.
    pub(crate) fn look(&self, input: &Input, delimiter: Delimiter) -> Result<Sample> {
        let sample = self.first_text(input, |source, text, preamble, separator| {
            let named = match delimiter {
                Delimiter::Named(byte) | Delimiter::Likely(byte) => Some(byte),
                Delimiter::Sniffed => separator,
            };
            if let Some(mark) = named.and_then(|byte| self.below_comments(text, &[byte])) {
                return Err(refused(source, Refusal::LooksLikeComments { mark }));
            }
            let found = match (delimiter, separator) {
                (Delimiter::Named(byte), _) | (_, Some(byte)) => byte,
                (Delimiter::Likely(byte), None) => {
                    self.check(source, text, byte)?;
                    byte
                }
                (Delimiter::Sniffed, None) => self.sniff(source, preamble, text)?,
            };
            let quote = self.quote_of(text, found);
            let trial = self.trial(text, found, quote);
            if trial.is_doubled && !matches!(delimiter, Delimiter::Named(_)) {
                let why = "every second field of the first records is empty";
                let (why, hint) = (why.into(), Hint::DoubledDelimiter(found));
                return Err(refused(source, Refusal::Malformed { why, hint }));
            }
            let returns = memmem::find(text, b"\r\r\n");
            let is_undecided = self.quote.is_none() && quote.is_none();
            let doubts = [
                (
                    DoubtKind::Quotes,
                    trial.first_quote.filter(|_| is_undecided),
                ),
                (DoubtKind::BlanksBeforeQuotes, trial.first_blank),
                (DoubtKind::CarriageReturns, returns),
            ];
            let doubts = doubts.iter().filter_map(|(kind, at)| {
                let ends = |bytes: &[u8]| memchr_iter(b'\n', bytes).count() as u64;
                Some(Doubt {
                    kind: *kind,
                    file: Arc::clone(source.name()),
                    byte: (preamble.len() + (*at)?) as u64,
                    line: 1 + ends(preamble) + ends(&text[..(*at)?]),
                })
            });
            Ok(Sample {
                delimiter: Some(found),
                quote,
                longer: trial.longer,
                has_separator_line: separator.is_some(),
                has_empty_lines: matches!(text.first(), Some(b'\n' | b'\r')),
                doubts: doubts.collect(),
            })
        })?;
        Ok(sample.unwrap_or_else(|| match delimiter {
            Delimiter::Named(byte) | Delimiter::Likely(byte) => Sample {
                delimiter: Some(byte),
                quote: self.quote_of(b"", byte),
                ..Sample::default()
            },
            Delimiter::Sniffed => Sample::default(),
        }))
    }

    /// The byte that quotes fields between such delimiters.
    fn quote_of(&self, text: &[u8], delimiter: u8) -> Option<u8> {
        if let Some(quote) = self.quote {
            return quote;
        }
        match delimiter {
            QUOTE => None,
            b',' => Some(QUOTE),
            _ if self.comment.starts_with(&[QUOTE]) => None,
            _ => {
                let quoted = self.trial(text, delimiter, Some(QUOTE));
                let is_sound = quoted.is_quoted && !quoted.is_broken;
                let is_even = || quoted.is_even || !self.trial(text, delimiter, None).is_even;
                (is_sound && is_even()).then_some(QUOTE)
            }
        }
    }

    /// The byte between the fields of a text.
    ///
    /// # Errors
    /// The first records don't tell it.
    fn sniff(&self, source: &Source, preamble: &[u8], text: &[u8]) -> Result<u8> {
        if is_object(text) {
            return Err(refused(source, Refusal::LooksLikeJson));
        }
        let trial = |byte: u8| self.usual_trial(text, byte);
        let all = COMMON.map(|byte| (byte, trial(byte)));
        let is_none_there = all.iter().all(|(_, trial)| !trial.is_there);
        let is_meant = |byte: u8| !(byte == b',' && self.has_decimal_comma);
        let mut even: Vec<(u8, usize)> = (all.iter())
            .filter(|(byte, trial)| trial.is_even && is_meant(*byte))
            .map(|(byte, trial)| (*byte, trial.fields))
            .collect();
        if is_none_there {
            let blank = trial(b' ');
            even.extend(blank.is_even.then_some((b' ', blank.fields)));
        }
        let is_quoted = |byte: &u8| self.trial(text, *byte, Some(QUOTE)).is_even;
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        match (&*even, log::named(line.trim_ascii_end())) {
            // Some of a log's blanks are in quotes and brackets.
            ([] | [(b' ', _)] | [_, _, ..], Some(pattern)) => {
                Err(refused(source, Refusal::LooksLikeLog { pattern }))
            }
            ([(byte, _)], _) => Ok(*byte),
            _ => {
                if let Some(delimiter) = self.below_directives(text) {
                    return Err(refused(source, Refusal::LooksLikeFields { delimiter }));
                }
                let bytes = [&COMMON[..], b" "].concat();
                if let Some(mark) = self.below_comments(text, &bytes) {
                    return Err(refused(source, Refusal::LooksLikeComments { mark }));
                }
                let is_unquoted = self.quote == Some(None) && even.is_empty();
                let lines = |text: &[u8]| memchr_iter(b'\n', text).count() as u64;
                let mut uneven = all.iter().filter_map(|(byte, trial)| {
                    let (at, found) = trial.uneven.filter(|_| trial.fields > 1)?;
                    Some(Uneven {
                        delimiter: *byte,
                        fields: trial.fields,
                        found,
                        line: 1 + lines(preamble) + lines(&text[..at]),
                    })
                });
                let uneven = (uneven.next(), uneven.next());
                let what = Refusal::Undelimited {
                    candidates: even,
                    is_even_quoted: is_unquoted && COMMON.iter().any(is_quoted),
                    uneven: uneven.0.filter(|_| uneven.1.is_none()),
                };
                Err(refused(source, what))
            }
        }
    }

    /// Checks a delimiter that a file's name tells.
    ///
    /// # Errors
    /// The first records are plainly separated by semicolons: not all have the same number of fields, more than one, with
    /// the delimiter, and all have with semicolons.
    fn check(&self, source: &Source, text: &[u8], delimiter: u8) -> Result<()> {
        let trial = |byte: u8| self.usual_trial(text, byte);
        let (named, other) = (trial(delimiter), trial(b';'));
        if delimiter == b';' || named.is_even || !other.is_even {
            return Ok(());
        }
        let what = Refusal::OtherDelimiter {
            delimiter,
            found: b';',
            fields: other.fields,
        };
        Err(refused(source, what))
    }

    /// The values of the first record, where they look like the names of columns: no value where the following records
    /// have numbers, dates and the like, and at least one there that isn't.
    pub(crate) fn names(&self, input: &Input, dialect: &Dialect) -> Result<Option<Vec<Vec<u8>>>> {
        let found = self.first_text(input, |_, text, _, _| Ok(names_in(text, dialect)))?;
        Ok(found.flatten())
    }

    /// Shows the first records of the first file that has one.
    fn first_text<T>(
        &self,
        input: &Input,
        decide: impl Fn(&Source, &[u8], &[u8], Option<u8>) -> Result<T>,
    ) -> Result<Option<T>> {
        let look = |source: &Source, bytes: &[u8], ended: bool| {
            let text = match bytes.len() > BYTES {
                true => &bytes[..BYTES],
                false => bytes,
            };
            let is_enough = ended || text.len() == BYTES;
            let (mut end, mut count, mut lines) = (0, 0, 0);
            for at in memchr_iter(b'\n', text) {
                let is_blank = matches!(&text[end..at], [] | [b'\r']);
                let is_comment = !self.comment.is_empty() && text[end..].starts_with(&self.comment);
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
            // A log that was cut while a program went on writing to it tells enough before the hole.
            let hole = nuls::run(text).and_then(|run| memrchr(b'\n', &text[..run.start]));
            let text = hole.map_or(text, |end| &text[..=end]);
            let separator = separator_line(text);
            let begin = self.after_preamble(text);
            let (preamble, text) = text.split_at(begin);
            let separator = separator.map(|(byte, _)| byte);
            let has_record = text.iter().any(|byte| !matches!(byte, b'\r' | b'\n'));
            Some(has_record.then(|| decide(source, text, preamble, separator)))
        };
        look_at_heads(input.sources(), look)?.transpose()
    }

    /// What stands between the fields of a W3C log, whose first lines are directives.
    fn below_directives(&self, text: &[u8]) -> Option<u8> {
        let mut lines = text.split(|&byte| byte == b'\n');
        if !self.comment.is_empty() || !lines.any(|line| line.starts_with(b"#Fields:")) {
            return None;
        }
        let commented = self.commented(b"#");
        let is_even = |byte: &u8| commented.usual_trial(text, *byte).is_even;
        [b'\t', b' ', b','].into_iter().find(is_even)
    }

    /// What begins the first lines, if one of the delimiters makes as many fields of each other record only without them.
    fn below_comments(&self, text: &[u8], delimiters: &[u8]) -> Option<&'static str> {
        if !self.comment.is_empty() || !text.trim_ascii_start().starts_with(b"#") {
            return None;
        }
        let is_even = |comment: &[u8]| {
            let style = self.commented(comment);
            let is_even = |byte: &u8| style.usual_trial(text, *byte).is_even;
            delimiters.iter().any(is_even)
        };
        let begins = |mark: &&str| text.trim_ascii_start().starts_with(mark.as_bytes());
        let mut marks = ["##", "#"].into_iter().filter(begins);
        marks.find(|mark| !is_even(b"") && is_even(mark.as_bytes()))
    }

    fn after_preamble(&self, bytes: &[u8]) -> usize {
        let mut at = separator_line(bytes).map_or_else(|| mark_len(bytes), |(_, end)| end);
        let mut left = self.skip_lines;
        while left > 0 && at < bytes.len() {
            at = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end + 1);
            left -= 1;
        }
        at
    }

    /// The same where comments begin so.
    fn commented(&self, comment: &[u8]) -> Style {
        Style {
            comment: comment.to_vec(),
            ..self.clone()
        }
    }

    /// [`Style::trial`] with the quote that goes with a delimiter.
    fn usual_trial(&self, text: &[u8], delimiter: u8) -> Trial {
        self.trial(text, delimiter, self.quote_of(text, delimiter))
    }

    /// What the records of a text say. The last one may be cut.
    fn trial(&self, text: &[u8], delimiter: u8, quote: Option<u8>) -> Trial {
        let mut trial = Trial {
            is_there: memchr(delimiter, text).is_some(),
            ..Trial::default()
        };
        let quote = quote.filter(|quote| *quote != delimiter);
        let is_mark = |byte: &u8| *byte == delimiter || Some(*byte) == quote;
        let style = match self.comment.first().is_some_and(is_mark) {
            true => &self.commented(b""),
            false => self,
        };
        let dialect = Dialect::new(delimiter, quote).and_then(|plain| plain.styled(style));
        let Ok(dialect) = dialect.map(|dialect| dialect.many_returns(true)) else {
            return trial;
        };
        let (mut fields, mut at, mut counts) = (Vec::new(), 0, Vec::new());
        let (mut is_doubled, mut ends_empty) = (true, true);
        let mut broken = 0;
        while at < text.len() {
            if let Some(next) = dialect.after_comment(text, at) {
                at = next;
                continue;
            }
            match dialect.split(text, at, &mut fields) {
                Ok(record) => {
                    let is_plain = |field: &&Field| !field.is_quoted(at, text, quote);
                    let is_empty = |field: &Field| field.start == field.end && is_plain(&field);
                    trial.is_quoted |= fields.iter().any(|field| !is_plain(&field));
                    for field in fields.iter().filter(is_plain) {
                        let value = &text[field.start..field.end];
                        let blanks = value.iter().take_while(|byte| **byte == b' ').count();
                        let first = match (blanks, value.get(blanks)) {
                            (0, Some(&QUOTE)) if quote.is_none() => &mut trial.first_quote,
                            (1.., Some(byte)) if Some(*byte) == quote => &mut trial.first_blank,
                            _ => continue,
                        };
                        first.get_or_insert(field.start);
                    }
                    if !fields.is_empty() {
                        let every_second = fields.iter().skip(1).step_by(2);
                        is_doubled &= fields.len() % 2 == 1 && every_second.clone().all(is_empty);
                        is_doubled &= fields.len() > 1 && !is_empty(&fields[0]);
                        ends_empty &= counts.is_empty() || fields.last().is_some_and(is_empty);
                        if counts.first().is_some_and(|&first| first != fields.len()) {
                            trial.uneven.get_or_insert((at, fields.len()));
                        }
                        counts.push(fields.len());
                    }
                    at = record.next;
                }
                // The text may end within a record.
                Err(bad) if bad.is_open => break,
                Err(bad) => {
                    broken += 1;
                    trial.is_broken = true;
                    at = bad.next;
                }
            }
        }
        let Some(&first) = counts.first() else {
            return trial;
        };
        let is_longer = self.has_header && !self.is_ragged && counts.len() > 1;
        if is_longer && counts[1..].iter().all(|&count| count == first + 1) {
            trial.longer = Some(match ends_empty {
                true => Hint::LastDelimiter(delimiter),
                false => Hint::RowNames(delimiter),
            });
        }
        // One empty column is usual between commas.
        trial.is_doubled = is_doubled && counts.len() > 1 && (first > 3 || delimiter == b'|');
        trial.fields = first;
        // A record that can't be split says nothing, if few are like it: the run says what is wrong with it.
        trial.is_even = first > 1
            && broken < counts.len()
            && (trial.longer.is_some()
                || counts.iter().all(|&count| match self.is_ragged {
                    true => count > 1,
                    false => count == first,
                }));
        trial
    }
}

/// The values of a text's first record, if they look like names.
fn names_in(text: &[u8], dialect: &Dialect) -> Option<Vec<Vec<u8>>> {
    let (mut fields, mut scratch, mut at) = (Vec::new(), Vec::new(), 0);
    let (mut names, mut line) = (Vec::new(), &text[..0]);
    // Whether a column has values in the records after, and each of them begins with a digit.
    let mut has_figures: Vec<Option<bool>> = Vec::new();
    while at < text.len() {
        if let Some(next) = dialect.after_comment(text, at) {
            at = next;
            continue;
        }
        // The last record may be cut.
        let start = at;
        match dialect.split(text, at, &mut fields) {
            Ok(record) => at = record.next,
            Err(bad) if bad.is_open => break,
            Err(bad) => {
                at = bad.next;
                continue;
            }
        }
        if !fields.is_empty() && names.is_empty() {
            names = names_of(&fields, text);
            line = &text[start..at];
            has_figures = vec![None; names.len()];
            continue;
        }
        // In joined files the header comes again.
        if text[start..at] == *line {
            continue;
        }
        for (field, has_figures) in fields.iter().zip(&mut has_figures) {
            let value = field.value(text, &mut scratch);
            if !(value.is_empty() || is_usual_null(value)) {
                *has_figures = Some(has_figures.unwrap_or(true) && begins_with_digit(value));
            }
        }
    }
    let with_figures = || {
        let columns = names.iter().zip(&has_figures);
        columns.filter(|(_, has_figures)| **has_figures == Some(true))
    };
    let is_name = |name: &[u8]| {
        let first = name.trim_ascii().first();
        let is_letter = first.is_some_and(|&byte| byte.is_ascii_alphabetic() || byte > 127);
        (is_letter || first == Some(&b'_')) && !is_usual_null(name)
    };
    let is_name = with_figures().any(|(name, _)| is_name(name))
        && !with_figures().any(|(name, _)| begins_with_digit(name));
    is_name.then_some(names)
}

/// Whether a value begins as numbers, dates and amounts do.
fn begins_with_digit(value: &[u8]) -> bool {
    let value = value.trim_ascii_start();
    let value = value.strip_prefix(b"-").unwrap_or(value);
    let value = value.strip_prefix(b"$").unwrap_or(value);
    let value = value.strip_prefix(b".").unwrap_or(value);
    value.first().is_some_and(u8::is_ascii_digit)
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
mod tests;
