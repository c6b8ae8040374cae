//! Why a request is refused, as data: which setting, what refuses it, and why.
//!
//! A refusal becomes a line by a [`Speller`]: the library's own writes settings by the names of their
//! fields, a program's as its users write them.

use std::path::PathBuf;

use crate::error::setting::{Choice, Setting};
use crate::units;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// A number is too small or too large.
    OutOfRange {
        /// Which.
        setting: Setting,
        /// What it was set to.
        value: u64,
        /// The least value.
        min: u64,
        /// The greatest value.
        max: u64,
    },
    /// A duration of zero.
    Zero {
        /// Which.
        setting: Setting,
    },
    /// A number is too small for another one.
    TooFew {
        /// Which.
        setting: Setting,
        /// What it was set to.
        value: u64,
        /// The setting that needs more of them.
        other: Setting,
        /// What that was set to.
        other_value: u64,
        /// The least value.
        needed: u64,
    },
    /// A size isn't a multiple of what the file asks for.
    Misaligned {
        /// Which.
        setting: Setting,
        /// What it must be a multiple of.
        align: u64,
        /// The setting under which it must.
        other: Setting,
    },
    /// Two settings ask for opposite things.
    Contradiction {
        /// One of them.
        choice: Choice,
        /// What it asks for.
        asks: &'static str,
        /// The other.
        other: Choice,
        /// What that one does.
        but: &'static str,
    },
    /// Only another engine has it.
    NeedsEngine {
        /// What was asked for.
        choice: Choice,
        /// The name of the engine that was asked for.
        engine: &'static str,
        /// The name of one that has it.
        needs: &'static str,
    },
    /// It means nothing without another setting.
    NeedsSetting {
        /// What was asked for.
        setting: Setting,
        /// What has to be set too.
        other: Setting,
        /// Why.
        why: &'static str,
    },
    /// It is about files with a size, and the input is a pipe or another stream.
    NotAFile {
        /// What was asked for.
        setting: Setting,
    },
    /// Something outside the program doesn't grant it.
    NotGranted {
        /// What was asked for.
        choice: Choice,
        /// What refuses it.
        by: Refuser,
        /// Why.
        why: String,
    },
    /// It needs something that isn't available.
    Missing {
        /// What was asked for.
        setting: Setting,
        /// Why that isn't available.
        what: Box<Refusal>,
    },
    /// A way to read isn't available.
    Unavailable {
        /// Which.
        what: Facility,
        /// What refuses it.
        by: Refuser,
        /// Why.
        why: String,
    },
    /// There is no memory for the buffers.
    NoMemory {
        /// How many buffers.
        buffers: usize,
        /// Bytes of each.
        bytes: usize,
    },
    /// Threads can't be started.
    NoThreads {
        /// [`Setting::Threads`], or [`Setting::Rings`] for the threads of rings.
        setting: Setting,
        /// How many were wanted.
        threads: usize,
    },
    /// A record is longer than [`Config::max_record`](crate::Config::max_record).
    Exceeded {
        /// The limit in bytes.
        max_record: usize,
        /// It has a run of NUL bytes.
        has_nuls: bool,
    },
    /// A record isn't what the job expects.
    Malformed {
        /// Why.
        why: String,
        /// What the input may be instead.
        hint: Hint,
    },
    /// A line of a log isn't one of the pattern.
    OtherLog {
        /// Why.
        why: String,
        /// The name of a pattern that reads it, or the pattern.
        pattern: String,
    },
    /// The first records don't tell the [delimiter](Setting::Delimiter).
    Undelimited {
        /// Bytes that make as many fields of each, more than one, and how many.
        candidates: Vec<(u8, usize)>,
        /// There is none, but one would do that if fields could be [quoted](Hint::Quotes).
        is_even_quoted: bool,
        /// There is none, and one that splits the first record doesn't make as many fields of a later one.
        uneven: Option<Uneven>,
    },
    /// The [delimiter](Setting::Delimiter) isn't told, and the first record is an object of JSON.
    LooksLikeJson,
    /// The same, and the first line is one of a web server's log.
    LooksLikeLog {
        /// The name of a pattern that reads it.
        pattern: &'static str,
    },
    /// The [delimiter](Setting::Delimiter) isn't told, and lines that begin with `#` name the columns, as W3C has it.
    LooksLikeFields {
        /// What makes as many fields of each other line.
        delimiter: u8,
    },
    /// The first lines begin with this mark, and the others have as many fields as each other.
    LooksLikeComments {
        /// What comments begin with.
        mark: &'static str,
    },
    /// The [delimiter](Setting::Delimiter) that a file's name tells isn't the one of its first records.
    OtherDelimiter {
        /// What the name tells.
        delimiter: u8,
        /// What makes as many fields of each record.
        found: u8,
        /// How many.
        fields: usize,
    },
    /// Partials lack a part of what was read.
    Incomplete {
        /// What is missing.
        missing: String,
    },
    /// A condition that can't be understood.
    Condition {
        /// [`Setting::Filter`] or [`Setting::Having`].
        setting: Setting,
        /// The condition as it was given.
        text: String,
        /// The byte of it that is wrong, or its end where something is missing.
        at: usize,
        /// What is wrong there.
        why: String,
    },
    /// What compressed data makes its decoder keep is more than decoders may have.
    DecoderMemory {
        /// The bytes that are needed.
        needed: u64,
        /// The bytes that all decoders may have.
        limit: u64,
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

/// What refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refuser {
    /// The kernel: it is too old, or built without it.
    Kernel,
    /// The file's file system.
    FileSystem,
    /// The file's device.
    Device,
    /// The machine has too little memory, or none of that kind.
    Memory,
    /// The machine has no such processor, or this process may not use it.
    Processor,
    /// The control group's limits.
    ControlGroup,
    /// A sysctl, a security policy or a container.
    Administrator,
    /// The limit on open files.
    DescriptorLimit,
    /// The limit on locked memory.
    LockedMemoryLimit,
    /// The limit on processes and threads.
    ProcessLimit,
}

/// A way to read that may not be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Facility {
    /// io_uring.
    Ring,
    /// Reads past the page cache (O_DIRECT).
    DirectReads,
    /// Mappings of files in the page cache.
    Mapping,
}

/// What an input may be, or how it may be read, where a record is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hint {
    /// Another kind of file, which a program makes text of.
    Encoded {
        /// As `a gzip file`.
        kind: &'static str,
        /// The program and its arguments.
        program: &'static str,
    },
    /// What another program makes of the file comes through a pipe.
    Piped {
        /// As `a tar archive`.
        kind: &'static str,
        /// The program and its arguments before the file.
        program: &'static str,
    },
    /// Bytes of zero that stand before the text, as where a log was cut while a program went on writing to it.
    Nuls,
    /// Many bytes of zero in a record: they can be taken out before, or the record left out.
    NulRun,
    /// Lines that end with a carriage return alone.
    CarriageReturns,
    /// With this [delimiter](Setting::Delimiter) the record is well-formed.
    Delimiter(u8),
    /// The names of the columns, in the first record of a [`Query`](crate::query::Query) that reads no header.
    Names,
    /// The names of the columns, between these delimiters.
    HeaderAndDelimiter(u8),
    /// Records of more columns than a key and a value: a [`Query`](crate::query::Query) groups them.
    Columns,
    /// Fields without newlines, so that a quote that isn't closed ends with its line.
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
    /// Each record ends with a [delimiter](Setting::Delimiter) more than the header.
    LastDelimiter(u8),
    /// Each record begins with a name that the header has no column for.
    RowNames(u8),
    /// The byte stands twice between fields.
    DoubledDelimiter(u8),
    /// The header is a comment, behind so many lines.
    CommentedHeader(u64),
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

/// Writes settings and advice as the users of a program know them.
pub trait Speller {
    /// A setting, with its value if it has one.
    fn choice(&self, choice: &Choice) -> String;

    /// What the user can do about a refusal, if there is something.
    fn advice(&self, refusal: &Refusal) -> Option<String> {
        let _ = refusal;
        None
    }
}

/// By the names of fields, without advice.
pub(crate) struct Fields;

impl Speller for Fields {
    fn choice(&self, choice: &Choice) -> String {
        choice.to_string()
    }
}

impl Refusal {
    /// The setting that is refused, where one is.
    pub fn setting(&self) -> Option<Setting> {
        match self {
            Refusal::OutOfRange { setting, .. }
            | Refusal::Zero { setting }
            | Refusal::TooFew { setting, .. }
            | Refusal::Misaligned { setting, .. }
            | Refusal::NeedsSetting { setting, .. }
            | Refusal::NotAFile { setting }
            | Refusal::Missing { setting, .. }
            | Refusal::Condition { setting, .. }
            | Refusal::NoThreads { setting, .. } => Some(*setting),
            Refusal::Contradiction { choice, .. }
            | Refusal::NeedsEngine { choice, .. }
            | Refusal::NotGranted { choice, .. } => Some(choice.setting),
            Refusal::Exceeded { .. } => Some(Setting::MaxRecord),
            Refusal::Undelimited { .. }
            | Refusal::LooksLikeJson
            | Refusal::LooksLikeLog { .. }
            | Refusal::LooksLikeFields { .. }
            | Refusal::LooksLikeComments { .. }
            | Refusal::OtherDelimiter { .. } => Some(Setting::Delimiter),
            Refusal::NotSpilled { .. } | Refusal::SpillLost { .. } => Some(Setting::SpillDirectory),
            Refusal::DecoderMemory { .. } => Some(Setting::DecoderMemory),
            Refusal::Unavailable { .. }
            | Refusal::OtherLog { .. }
            | Refusal::NoMemory { .. }
            | Refusal::Malformed { .. }
            | Refusal::Incomplete { .. } => None,
        }
    }

    /// The refusal in words, with the speller's advice.
    pub(crate) fn spelled(&self, speller: &dyn Speller) -> String {
        let fact = self.fact(speller);
        match speller.advice(self) {
            Some(advice) => format!("{fact}: {advice}"),
            None => fact,
        }
    }

    fn fact(&self, speller: &dyn Speller) -> String {
        let spell = |choice: &Choice| speller.choice(choice);
        let name = |setting: Setting| speller.choice(&setting.into());
        // Beside the kernel's own name, where it has one.
        let named = |choice: &Choice| match choice.setting {
            Setting::Direct => format!("O_DIRECT ({})", spell(choice)),
            Setting::Dontcache => format!("RWF_DONTCACHE ({})", spell(choice)),
            _ => spell(choice),
        };
        match self {
            Refusal::OutOfRange {
                setting,
                value,
                min,
                max,
            } => format!("{} {value} is out of range: {min} to {max}", name(*setting)),
            Refusal::Zero { setting } => format!(
                "{} 0 is out of range: it must be more than 0",
                name(*setting)
            ),
            Refusal::TooFew {
                setting,
                value,
                other,
                other_value,
                needed,
            } => {
                let why = match setting {
                    Setting::Buffers => "a block waits for its neighbour",
                    _ => "a read in flight takes one",
                };
                let (setting, other) = (name(*setting), name(*other));
                format!(
                    "{setting} {value} is too few for {other} {other_value}: {why}, so at least \
                     {needed} are needed"
                )
            }
            Refusal::Misaligned {
                setting,
                align,
                other,
            } => {
                let (setting, other) = (name(*setting), name(*other));
                format!("{setting} must be a multiple of {align} with {other} on this file")
            }
            Refusal::Contradiction {
                choice,
                asks,
                other,
                but,
            } => format!("{} {asks}, {} {but}", spell(choice), spell(other)),
            Refusal::NeedsEngine {
                choice,
                engine,
                needs,
            } => {
                let choice = spell(choice);
                let [engine, needs] = [engine, needs].map(|name| spell(&Setting::Engine.of(name)));
                format!("{choice} isn't available with {engine}: it needs {needs}")
            }
            Refusal::NeedsSetting {
                setting,
                other,
                why,
            } => format!("{} {why}: it needs {}", name(*setting), name(*other)),
            Refusal::NotAFile { setting } => {
                let setting = named(&(*setting).into());
                format!("{setting} needs a file with a size, not a pipe or device")
            }
            Refusal::NotGranted { choice, why, .. } => format!("{}: {why}", named(choice)),
            Refusal::Missing { setting, what } => {
                format!("{}: {}", name(*setting), what.spelled(speller))
            }
            Refusal::Unavailable { what, why, .. } => match what {
                Facility::Ring => format!("no io_uring: {why}"),
                Facility::DirectReads | Facility::Mapping => why.clone(),
            },
            Refusal::NoMemory { buffers, bytes } => {
                format!("no memory for {buffers} buffers of {bytes} bytes")
            }
            Refusal::NoThreads { setting, threads } => match setting {
                Setting::Rings => format!("can't start a thread for each of {threads} rings"),
                _ => format!("can't start {threads} threads"),
            },
            Refusal::Exceeded { max_record, .. } => {
                format!("a record of more than {max_record} bytes")
            }
            Refusal::Malformed { why, hint } => match hint {
                Hint::Encoded { kind, .. } | Hint::Piped { kind, .. } => {
                    format!("{why}: this is how {kind} begins")
                }
                Hint::Nuls => format!("{why}: it begins with NUL bytes"),
                Hint::CarriageReturns => {
                    format!("{why}: the lines end with a carriage return alone")
                }
                Hint::NulRun
                | Hint::Delimiter(_)
                | Hint::Names
                | Hint::HeaderAndDelimiter(_)
                | Hint::Columns
                | Hint::SingleLine
                | Hint::NullValue(_)
                | Hint::Float
                | Hint::NotFinite(_)
                | Hint::DecimalComma
                | Hint::DecimalPoint
                | Hint::CommaOrGroups
                | Hint::Sign(_)
                | Hint::Amount
                | Hint::Quotes
                | Hint::Times
                | Hint::QuotedTime
                | Hint::Quote
                | Hint::Escape
                | Hint::Trim
                | Hint::MaxRecord(_)
                | Hint::LastDelimiter(_)
                | Hint::RowNames(_)
                | Hint::DoubledDelimiter(_)
                | Hint::CommentedHeader(_) => why.clone(),
                Hint::LoneReturn => format!("{why}: a carriage return stands in it"),
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
            Refusal::Incomplete { missing } => missing.clone(),
            Refusal::Condition {
                setting,
                text,
                at,
                why,
            } => {
                let column = 1 + text[..*at].chars().count();
                format!("{}: column {column}: {why}", name(*setting))
            }
            Refusal::DecoderMemory { needed, limit } => format!(
                "decompression needs {} of memory, and may have {} ({})",
                units::size(*needed),
                units::size(*limit),
                name(Setting::DecoderMemory)
            ),
            Refusal::NotSpilled {
                memory,
                directory,
                why,
            } => format!(
                "the keys take more than {} of memory ({}) and can't be written to {}: {why}",
                units::size(*memory),
                name(Setting::Memory),
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

/// A byte as an error shows it.
fn shown(byte: u8) -> String {
    match byte {
        b'\t' => "a tab".into(),
        b' ' => "a blank".into(),
        byte => format!("`{}`", byte.escape_ascii()),
    }
}
