//! Why a query is refused, as data. What the reader refuses is [`ringfold_read::Refusal`].

use std::fmt;
use std::path::PathBuf;

use ringfold_read::internals::units;
use ringfold_read::{Begin, Cause, Error, Fields, Kind, Setting, Speller};

/// [`Query::filter`](crate::query::Query::filter).
pub const FILTER: Setting = Setting::Job("filter");
/// [`Query::having`](crate::query::Query::having).
pub const HAVING: Setting = Setting::Job("having");
/// [`Sort::read`](crate::query::Sort::read).
pub const SORT: Setting = Setting::Job("sort");
/// [`Query::key_text`](crate::query::Query::key_text).
pub const KEY: Setting = Setting::Job("key");
/// [`Query::aggregate_text`](crate::query::Query::aggregate_text).
pub const AGGREGATE: Setting = Setting::Job("aggregate");
/// What a value of [`Query::lookup`](crate::query::Query::lookup) is refused by.
pub const LOOKUP: Setting = Setting::Job("lookup");
/// [`Query::memory`](crate::query::Query::memory).
pub const MEMORY: Setting = Setting::Job("memory");
/// [`Query::precision`](crate::query::Query::precision).
pub const PRECISION: Setting = Setting::Job("precision");

/// Why a query is refused: [`Error::job`] finds it in an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// A record isn't what the job expects.
    Malformed {
        /// Why.
        why: String,
        /// How it may be read.
        hint: Hint,
    },
    /// A line of a log isn't one of the pattern.
    OtherLog {
        /// Why.
        why: String,
        /// The name of a pattern that reads it, or the pattern.
        pattern: String,
    },
    /// The first records don't tell the [delimiter](crate::query::Query::new).
    Undelimited {
        /// Bytes that make as many fields of each, more than one, and how many.
        candidates: Vec<(u8, usize)>,
        /// There is none, but one would do that if fields could be [quoted](Hint::Quotes).
        is_even_quoted: bool,
        /// There is none, and one that splits the first record doesn't make as many fields of a later one.
        uneven: Option<Uneven>,
    },
    /// The [delimiter](crate::query::Query::new) isn't told, and the first record is an object of JSON.
    LooksLikeJson,
    /// The same, and the first line is one of a web server's log.
    LooksLikeLog {
        /// The name of a pattern that reads it.
        pattern: &'static str,
    },
    /// The [delimiter](crate::query::Query::new) isn't told, and lines that begin with `#` name the columns, as W3C has it.
    LooksLikeFields {
        /// What makes as many fields of each other line.
        delimiter: u8,
    },
    /// The first lines begin with this mark, and the others have as many fields as each other.
    LooksLikeComments {
        /// What comments begin with.
        mark: &'static str,
    },
    /// The [delimiter](crate::query::Query::new) that a file's name tells isn't the one of its first records.
    OtherDelimiter {
        /// What the name tells.
        delimiter: u8,
        /// What makes as many fields of each record.
        found: u8,
        /// How many.
        fields: usize,
    },
    /// An input is a partial, which [`Partial`](crate::query::Partial) reads.
    Partial,
    /// Partials lack a part of what was read.
    Incomplete {
        /// What is missing.
        missing: String,
    },
    /// Parts of an input in which newlines may stand in quoted fields were read from the wrong places on. Read again as
    /// [`WrongPart::begin`] says they can be merged with the others.
    WrongParts(Vec<WrongPart>),
    /// A condition or another expression that can't be understood.
    Condition {
        /// [`FILTER`], [`HAVING`], [`SORT`], [`KEY`] or [`AGGREGATE`].
        setting: Setting,
        /// The expression as it was given.
        text: String,
        /// The byte of it that is wrong, or its end where something is missing.
        at: usize,
        /// What is wrong there.
        why: String,
    },
    /// Keys that outgrew the memory can't be written to a file.
    NotSpilled {
        /// What the tables may take, in bytes.
        memory: u64,
        /// Where the file was to be.
        directory: PathBuf,
        /// Why.
        why: String,
    },
    /// Keys that were written to a file can't be read back.
    SpillLost {
        /// Where the file was.
        directory: PathBuf,
    },
}

/// A part that wasn't read from its first record on, or into whose records a quoted field goes on from the part before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongPart {
    /// The name of the partial that has it.
    pub partial: String,
    /// Whether that has other parts too, with which it was merged.
    pub has_others: bool,
    /// The file within which the part begins.
    pub file: String,
    /// Which part it is, from 1.
    pub part: u32,
    /// Of how many.
    pub parts: u32,
    /// Where its first record begins, for [`Input::begin`](crate::Input::begin).
    pub begin: Begin,
}

/// How an input may be read where a record is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hint {
    /// With this [delimiter](crate::query::Query::new) the record is well-formed.
    Delimiter(u8),
    /// The names of the columns, in the first record of a [`Query`](crate::query::Query) that reads no header.
    Names,
    /// The names of the columns, between these delimiters.
    HeaderAndDelimiter(u8),
    /// Records of more columns than a key and a value: a [`Query`](crate::query::Query) groups them.
    Columns,
    /// The whole input in place of a [part](crate::Input::part), or fields without newlines, so that a quote that isn't closed
    /// ends with its line.
    SingleLine,
    /// This value stands for none.
    NullValue(&'static str),
    /// Numbers may have larger exponents.
    Float,
    /// This value is an infinity or nan, which may be a number or stand for none.
    NotFinite(&'static str),
    /// A comma stands before the decimals.
    DecimalComma,
    /// A point stands before the decimals, and a comma is expected there.
    DecimalPoint,
    /// A comma stands before three digits: decimals, or thousands.
    CommaOrGroups,
    /// A number with this sign of money or per cent.
    Sign(&'static str),
    /// A number as people write amounts, with separators between thousands or in parentheses.
    Amount,
    /// Fields may stand in double quotes.
    Quotes,
    /// Values may be times, of which the first and last are wanted.
    Times,
    /// A value may be a time, if a condition compares it with one in quotes.
    QuotedTime,
    /// A quote that isn't one, or isn't closed: the record can be left out, or quotes taken for bytes like others.
    Quote,
    /// A backslash before a quote says that it closes nothing.
    Escape,
    /// Blanks around fields don't belong to them.
    Trim,
    /// Records may be of more than so many bytes, if no quote is missing.
    MaxRecord(usize),
    /// A carriage return alone ends a line.
    LoneReturn,
    /// Each record ends with a [delimiter](crate::query::Query::new) more than the header.
    LastDelimiter(u8),
    /// Each record begins with a name that the header has no column for.
    RowNames(u8),
    /// The byte stands twice between fields.
    DoubledDelimiter(u8),
    /// The header is a comment, behind so many lines.
    CommentedHeader(u64),
    /// A [part](crate::Input::part) that was read as if it began so may begin otherwise.
    Begin(Begin),
}

/// A delimiter that doesn't make the same number of fields of each of the first records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uneven {
    /// The byte.
    pub delimiter: u8,
    /// How many fields it makes of the first record.
    pub fields: usize,
    /// How many of the first one that has others.
    pub found: usize,
    /// The line where that one begins, from 1.
    pub line: u64,
}

impl Refusal {
    /// The kind of failure that it is.
    fn kind(&self) -> Kind {
        match self {
            Refusal::Condition { .. }
            | Refusal::Undelimited { .. }
            | Refusal::LooksLikeJson
            | Refusal::LooksLikeLog { .. }
            | Refusal::LooksLikeFields { .. }
            | Refusal::LooksLikeComments { .. }
            | Refusal::OtherDelimiter { .. } => Kind::Usage,
            Refusal::Malformed { .. }
            | Refusal::OtherLog { .. }
            | Refusal::Partial
            | Refusal::Incomplete { .. }
            | Refusal::WrongParts(_) => Kind::Data,
            Refusal::NotSpilled { .. } | Refusal::SpillLost { .. } => Kind::Io,
        }
    }

    /// The refusal in words, without advice.
    pub(crate) fn fact(&self, speller: &dyn Speller) -> String {
        let name = |setting: Setting| speller.choice(&setting.into());
        match self {
            Refusal::Malformed { why, hint } => match hint {
                Hint::LoneReturn => format!("{why}: a carriage return stands in it"),
                _ => why.clone(),
            },
            Refusal::OtherLog { why, .. } => why.clone(),
            Refusal::Undelimited {
                candidates,
                is_even_quoted,
                uneven,
            } => {
                let made: Vec<String> = (candidates.iter())
                    .map(|(byte, fields)| format!("{} makes {fields} of each", shown(*byte)))
                    .collect();
                let none = "can't tell the delimiter from the first records";
                match made.is_empty() {
                    true if *is_even_quoted => format!("{none}, unless they are quoted"),
                    true => match uneven {
                        Some(Uneven {
                            delimiter,
                            fields,
                            found,
                            line,
                        }) => format!(
                            "{none}: {} makes {fields} fields of the first one, and {found} of line {line}",
                            shown(*delimiter)
                        ),
                        None => none.into(),
                    },
                    false => format!(
                        "several bytes may stand between the fields of the first records: {}",
                        made.join(", ")
                    ),
                }
            }
            Refusal::LooksLikeJson => "the first record is a JSON object".into(),
            Refusal::LooksLikeLog { .. } => "the first line is one of a web server's log".into(),
            Refusal::LooksLikeFields { .. } => {
                "a line that begins with `#Fields:` names the columns".into()
            }
            Refusal::LooksLikeComments { mark } => {
                format!("the first lines begin with `{mark}`, as comments do")
            }
            Refusal::OtherDelimiter {
                delimiter,
                found,
                fields,
            } => format!(
                "its name says {}, but {} makes {fields} fields of each of the first records",
                shown(*delimiter),
                shown(*found)
            ),
            Refusal::Partial => "it isn't text in lines: this is how a partial begins".into(),
            Refusal::Incomplete { missing } => missing.clone(),
            Refusal::WrongParts(wrong) => {
                let told = wrong.iter().take(TOLD);
                let told = told.map(|wrong| {
                    let WrongPart {
                        partial,
                        file,
                        part,
                        parts,
                        ..
                    } = wrong;
                    format!(
                        "{partial}: part {part} of {parts} was read from the wrong byte of {file} on"
                    )
                });
                let mut told: Vec<String> = told.collect();
                if wrong.len() > TOLD {
                    told.push(format!("and {} more parts", wrong.len() - TOLD));
                }
                told.join("; ")
            }
            Refusal::Condition {
                setting,
                text,
                at,
                why,
            } => {
                let column = 1 + text[..*at].chars().count();
                format!("{}: column {column}: {why}", name(*setting))
            }
            Refusal::NotSpilled {
                memory,
                directory,
                why,
            } => format!(
                "the keys take more than {} of memory ({}) and can't be written to {}: {why}",
                units::size(*memory),
                name(MEMORY),
                directory.display()
            ),
            Refusal::SpillLost { directory } => format!(
                "keys that were written to {} can't be read back: the disk failed, or a temporary \
                 file was cut or changed",
                directory.display()
            ),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fact(&Fields))
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for Cause {
    fn from(refusal: Refusal) -> Cause {
        Cause::job(refusal)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::new(refusal.kind(), refusal)
    }
}

/// The same cause after these words.
pub(crate) fn after(words: &str, mut cause: Cause) -> Cause {
    match &mut cause {
        Cause::Words(why) => why.insert_str(0, words),
        Cause::Refused(refusal) => {
            if let ringfold_read::Refusal::NotText { why, .. } = &mut **refusal {
                why.insert_str(0, words);
            }
        }
        Cause::Job(error) => {
            let refusal = error.downcast_ref::<Refusal>().cloned();
            if let Some(mut refusal) = refusal
                && let Refusal::Malformed { why, .. } | Refusal::OtherLog { why, .. } = &mut refusal
            {
                why.insert_str(0, words);
                return refusal.into();
            }
        }
    }
    cause
}

/// How many parts an error lists.
const TOLD: usize = 4;

/// A byte as an error shows it.
fn shown(byte: u8) -> String {
    match byte {
        b'\t' => "a tab".into(),
        b' ' => "a blank".into(),
        byte => format!("`{}`", byte.escape_ascii()),
    }
}
