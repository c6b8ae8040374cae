//! How the records of an input are written, as flags or the files' names say it, and which of them are taken.

use std::path::{Path, PathBuf};

use clap::Args;
use ringfold_read::internals::visible;

use crate::Result;
use crate::cli::answer_flags::first;
use crate::cli::console::usage;
use crate::cli::ending::is_compressed;
use crate::cli::log_pattern;
use crate::cli::records::RecordFlags;
use crate::query::Query;

/// The place of flags in help that come after those of an answer.
const LATER: usize = 20;

/// How records are written.
#[derive(Args)]
pub(super) struct InputFlags {
    /// The first line of each file names the columns [default: where a column is called by its name]
    #[arg(short = 'H', long, overrides_with = "no_header")]
    header: bool,
    /// Lines are those of a web server's log: combined, common, vhost_combined, nginx, or a pattern as in the configuration of
    /// nginx or Apache
    ///
    /// @FILE reads the pattern from a file or a server's configuration, @FILE:NAME the one of this name. logs.toml in
    /// ~/.config/ringfold names more of them (NAME = "PATTERN"). The columns of `combined` are host, ident, user, time,
    /// method, path, protocol, status, bytes, referer and agent; `-` is no value. `-k time@hour` cuts times down to their
    /// hour.
    #[arg(long, value_name = "PATTERN", display_order = LATER)]
    log: Option<String>,
    /// Lines are JSON objects; columns are called by their keys, with dots into objects: -k user.name [default: where all
    /// files are called .jsonl or .ndjson]
    #[arg(long, display_order = LATER)]
    jsonl: bool,
    /// The first line is a record like others, also where it looks like names
    #[arg(long, hide_short_help = true, overrides_with = "header", display_order = LATER)]
    no_header: bool,
    /// The byte that quotes fields, or none [default: '"' between commas, and between other bytes if the first records have
    /// such fields; none without -k and -a]
    #[arg(long, value_name = "BYTE", value_parser = quote, display_order = LATER)]
    quote: Option<Quote>,
    /// A value that stands for no value, as an empty field does; may be repeated
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, display_order = LATER)]
    null_value: Vec<String>,
    /// The byte between fields; \t is a tab, \x1f a byte by its number [default: by the file's ending, .csv, .tsv or .psv, else
    /// what the first records tell; of `key;value` lines ;]
    #[arg(short, long, value_name = "BYTE", value_parser = byte, display_order = LATER)]
    pub(super) delimiter: Option<u8>,
}

/// Which records are taken.
#[derive(Args)]
pub(super) struct FilterFlag {
    /// Take only records of which this is true: "price > 2.5 and city != 'Bern'"
    ///
    /// When repeated, all must be true. Columns are names of the header, or numbers such as $3. A number is compared as a
    /// number, a text in single quotes by its bytes. Operators are =, !=, <, <=, >, >=, ~ and !~ for regular expressions, like, between, in ('a', 'b'), is null, and, or,
    /// not, and those that compute: price * qty > 100. Nothing but `is null` is true of an empty field.
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true)]
    filter: Vec<String>,
}

impl FilterFlag {
    pub(super) fn is_set(&self) -> bool {
        !self.filter.is_empty()
    }

    pub(super) fn applied(&self, query: Query) -> Result<Query> {
        let mut conditions = self.filter.iter();
        conditions.try_fold(query, |query, condition| query.filter(condition))
    }
}

/// What stands between a key and its number, unless it is said.
pub(super) const DELIMITER: u8 = b';';

/// A byte, or none.
#[derive(Debug, Clone, Copy)]
struct Quote(Option<u8>);

fn quote(text: &str) -> Result<Quote, String> {
    match text.as_bytes() {
        b"none" => Ok(Quote(None)),
        [byte] => Ok(Quote(Some(*byte))),
        _ => Err("one byte, or none".into()),
    }
}

impl InputFlags {
    /// The flag that says that records are no fields between delimiters.
    pub(super) fn other_records(&self) -> Option<&'static str> {
        first(&[(self.log.is_some(), "--log"), (self.jsonl, "--jsonl")])
    }

    /// Whether a flag says how records are written.
    pub(super) fn has_form(&self, records: &RecordFlags) -> bool {
        let has_own = self.header || self.no_header || self.quote.is_some();
        has_own
            || self.other_records().is_some()
            || !self.null_value.is_empty()
            || first(&records.of_fields()).is_some()
    }

    /// The first flag that says how fields are written, which a log's pattern and JSON say, too.
    fn written_otherwise(&self, records: &RecordFlags) -> Option<&'static str> {
        let flags = [
            (self.delimiter.is_some(), "--delimiter"),
            (self.header, "--header"),
            (self.no_header, "--no-header"),
            (self.quote.is_some(), "--quote"),
        ];
        let records = records.of_fields();
        first(flags.iter().chain(&records))
    }

    /// The query of such records, which asks nothing of them yet.
    pub(super) fn query(
        &self,
        records: &RecordFlags,
        paths: &[PathBuf],
        is_pairs: bool,
    ) -> Result<Query> {
        let otherwise = self.written_otherwise(records);
        let form = [(self.log.is_some(), "--log"), (self.jsonl, "--jsonl")];
        let mut forms = form.iter().filter(|(is_set, _)| *is_set);
        let (form, other) = (forms.next(), forms.next());
        if let (Some((_, one)), Some(two)) = (form, other.map(|(_, flag)| *flag).or(otherwise)) {
            return Err(usage(format!(
                "{one} says how lines are written, and so does {two}: leave one of them out"
            )));
        }
        let query = match (&self.log, self.delimiter) {
            (Some(pattern), _) => Query::log(&log_pattern::resolved(pattern)?)?,
            (None, _) if self.jsonl => Query::json_lines(),
            (None, delimiter) if is_pairs => Query::pairs(delimiter.unwrap_or(DELIMITER)),
            (None, Some(delimiter)) => Query::new(delimiter),
            (None, None) => match otherwise.filter(|_| are_json(paths)) {
                Some(flag) => {
                    return Err(usage(format!(
                        "the files are JSON lines by their names, and {flag} says otherwise: leave it out, or name the \
                         byte between fields by -d"
                    )));
                }
                None => form_of(paths)?,
            },
        };
        let query = match self.quote {
            Some(Quote(quote)) => query.quote(quote),
            None => query,
        };
        let mut query = records.applied(query);
        if self.header || self.no_header {
            query = query.header(self.header);
        }
        for value in &self.null_value {
            query = query.null_value(value.as_str());
        }
        Ok(query)
    }

    /// # Errors
    /// A query calls a column by a name, and no line has one.
    pub(super) fn check_names(&self, query: &Query) -> Result<()> {
        match query.first_name().filter(|_| self.no_header) {
            None => Ok(()),
            Some(name) => Err(usage(format!(
                "--no-header says that no line names the columns, and `{}` is a name: leave one of them out",
                visible(&name)
            ))),
        }
    }
}

fn byte(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [b'\n' | b'\r'] => Err("a line's end can't be the delimiter".into()),
        [byte] => Ok(*byte),
        [b'\\', b'x', digits @ ..] if digits.len() == 2 => {
            match u8::from_str_radix(&text[2..], 16) {
                Ok(b'\n' | b'\r') => Err("a line's end can't be the delimiter".into()),
                Ok(byte) => Ok(byte),
                Err(_) => Err("two hexadecimal digits follow \\x".into()),
            }
        }
        b"" => Err("one byte, \\t or \\x1f".into()),
        _ => {
            let bracketed = |letter: char| match letter {
                '^' | '\\' => format!("\\{letter}"),
                '\'' => "['\\'']".into(),
                letter => format!("[{letter}]"),
            };
            let between: String = text.chars().map(bracketed).collect();
            Err(format!(
                "one byte, \\t or \\x1f; `sed 's/{between}/\\x1f/g' FILE` makes one byte of it, which -d '\\x1f' names"
            ))
        }
    }
}

/// The ending of a file's name, in small letters that are known, before that of a compressed file.
fn ending(path: &Path) -> Option<&'static str> {
    let of = |name: &Path| name.extension()?.to_str().map(str::to_ascii_lowercase);
    let ending = match of(path)? {
        compressed if is_compressed(&compressed) => of(Path::new(path.file_stem()?))?,
        plain => plain,
    };
    let mut known = ["csv", "tsv", "psv", "jsonl", "ndjson"].into_iter();
    known.find(|known| *known == ending)
}

/// Whether all files are JSON lines by their names.
fn are_json(paths: &[PathBuf]) -> bool {
    let is_json = |path: &PathBuf| matches!(ending(path), Some("jsonl" | "ndjson"));
    !paths.is_empty() && paths.iter().all(is_json)
}

/// How files are written by their names, or else by their first records.
pub(super) fn form_of(paths: &[PathBuf]) -> Result<Query> {
    Ok(match are_json(paths) {
        true => Query::json_lines(),
        false => delimiter_of(paths)?.map_or_else(Query::sniffed, Query::likely),
    })
}

/// The delimiter that the files' names tell, if they all do.
///
/// # Errors
/// They tell different ones.
fn delimiter_of(paths: &[PathBuf]) -> Result<Option<u8>> {
    let of = |path: &PathBuf| match ending(path)? {
        "csv" => Some(b','),
        "tsv" => Some(b'\t'),
        "psv" => Some(b'|'),
        _ => None,
    };
    let mut told = paths.iter().filter_map(of);
    let Some(first) = told.next() else {
        return Ok(None);
    };
    if told.any(|other| other != first) {
        return Err(usage(
            "the files' names tell different bytes between fields: name one by -d",
        ));
    }
    let all = paths.iter().all(|path| of(path).is_some());
    Ok(all.then_some(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_delimiter() {
        let of = |names: &[&str]| {
            let paths: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
            delimiter_of(&paths).map_err(|error| error.to_string())
        };
        assert_eq!(of(&["a.csv", "b/c.CSV"]), Ok(Some(b',')));
        assert_eq!(of(&["a.b.tsv"]), Ok(Some(b'\t')));
        assert_eq!(of(&["a.psv"]), Ok(Some(b'|')));
        assert_eq!(of(&["a.csv", "-"]), Ok(None));
        assert_eq!(of(&["csv"]), Ok(None));
        let error = of(&["a.csv", "b", "a.tsv"]).unwrap_err();
        assert!(error.contains("different bytes"), "{error}");
    }
}
