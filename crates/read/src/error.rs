//! What can go wrong, and the one line that says so: `FILE: byte A-B (line N): cause [ERRNO]`.

pub(crate) mod refusal;
pub(crate) mod setting;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::error::refusal::{Fields, Refusal, Speller};
use crate::error::setting::Setting;
use crate::visible::visible;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The request itself is contradictory or can't be understood.
    Usage,
    /// A record is malformed or over the limit.
    Data,
    /// The kernel refused to open, read or write.
    Io,
    /// The engine or a knob that was asked for isn't available here.
    Engine,
    /// A worker panicked: a fault of the program.
    Panic,
    /// The reader of the output has gone away.
    ClosedPipe,
    /// The caller has ended the run.
    Cancelled,
}

/// What went wrong: words, or data that can be matched.
#[derive(Debug, Clone)]
pub enum Cause {
    /// In words.
    Words(String),
    /// What the reader refuses.
    Refused(Box<Refusal>),
    /// A job's own error.
    Job(Arc<dyn std::error::Error + Send + Sync>),
}

impl PartialEq for Cause {
    /// Errors of jobs are compared by their words.
    fn eq(&self, other: &Cause) -> bool {
        match (self, other) {
            (Cause::Words(a), Cause::Words(b)) => a == b,
            (Cause::Refused(a), Cause::Refused(b)) => a == b,
            (Cause::Job(a), Cause::Job(b)) => a.to_string() == b.to_string(),
            _ => false,
        }
    }
}

impl Eq for Cause {}

impl Cause {
    /// A job's own error.
    pub fn job(error: impl std::error::Error + Send + Sync + 'static) -> Cause {
        Cause::Job(Arc::new(error))
    }

    /// The cause with settings and advice as a program's users know them.
    pub fn spelled(&self, speller: &dyn Speller) -> String {
        match self {
            Cause::Words(words) => one_line(words.clone()),
            Cause::Refused(refusal) => one_line(refusal.spelled(speller)),
            Cause::Job(error) => one_line(speller.job(&**error)),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled(&Fields))
    }
}

impl From<String> for Cause {
    fn from(words: String) -> Cause {
        Cause::Words(words)
    }
}

impl From<&str> for Cause {
    fn from(words: &str) -> Cause {
        Cause::Words(words.into())
    }
}

impl From<Refusal> for Cause {
    fn from(refusal: Refusal) -> Cause {
        Cause::Refused(Box::new(refusal))
    }
}

/// A failure with the place it concerns.
///
/// What isn't available is a [`Refusal`], which a program can match:
///
/// ```
/// use ringfold_read::{Block, BlockError, Config, Input, Refusal, Setting, Sink, run};
///
/// struct Nothing;
/// # impl Sink for Nothing {
/// #     fn block(&self, _: &Block<'_>) -> Result<(), BlockError> { Ok(()) }
/// # }
///
/// let input = Input::memory([&b"a\nb\n"[..]]);
/// let mut config = Config { queue_depth: Some(1_000_000), ..Config::default() };
/// let error = run(&input, &config, &Nothing).unwrap_err();
/// assert_eq!(error.to_string(), "queue_depth 1000000 is out of range: 1 to 4096");
///
/// if let Some(&Refusal::OutOfRange { setting: Setting::QueueDepth, max, .. }) = error.refusal() {
///     config.queue_depth = Some(max as usize);
/// }
/// assert_eq!(run(&input, &config, &Nothing)?.bytes, 4);
/// # Ok::<(), ringfold_read::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    file: Option<Arc<str>>,
    file_index: u32,
    bytes: Option<Range<u64>>,
    line: Option<u64>,
    /// The bytes are those of the text in a compressed file.
    is_decompressed: bool,
    cause: Cause,
    errno: Option<i32>,
}

/// Shorthand for results with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A failure that concerns no file.
    pub fn new(kind: Kind, cause: impl Into<Cause>) -> Self {
        Error {
            kind,
            file: None,
            file_index: 0,
            bytes: None,
            line: None,
            is_decompressed: false,
            cause: cause.into(),
            errno: None,
        }
    }

    /// A failure that the kernel reported, described by the errno alone.
    pub fn io(error: &io::Error) -> Self {
        if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
            return Error::clone(error);
        }
        let kind = match error.kind() {
            io::ErrorKind::BrokenPipe => Kind::ClosedPipe,
            _ => Kind::Io,
        };
        Error::new(kind, describe(error)).with_errno(error)
    }

    /// A failure to write the output. An [`Error`] within is returned.
    pub fn output(error: &io::Error) -> Self {
        let failure = Error::io(error);
        match error.raw_os_error() {
            Some(_) => Error::new(failure.kind, error.to_string()),
            None => failure,
        }
    }

    /// The same with the errno's name after it.
    pub fn with_errno(mut self, error: &io::Error) -> Self {
        self.errno = error.raw_os_error();
        self
    }

    /// The same for a setting that needs what isn't available, unless one is named already.
    pub(crate) fn for_setting(mut self, setting: Setting) -> Self {
        if let Cause::Refused(what) = self.cause {
            self.cause = match *what {
                what @ Refusal::Unavailable { .. } => {
                    let what = Box::new(what);
                    Refusal::Missing { setting, what }.into()
                }
                named => named.into(),
            };
        }
        self
    }

    /// The same place with another cause.
    #[doc(hidden)]
    pub fn because(mut self, cause: Cause) -> Self {
        self.cause = cause;
        self
    }

    /// The same for a file.
    pub fn in_file(mut self, index: u32, name: &Arc<str>) -> Self {
        self.file_index = index;
        self.file = Some(Arc::clone(name));
        self
    }

    /// The same for these bytes of the file.
    pub fn at_bytes(mut self, bytes: Range<u64>) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// The same with the number of the line, from 1.
    pub fn at_line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    /// The same where the bytes are those of the text in a compressed file.
    pub(crate) fn decompressed(mut self, is_decompressed: bool) -> Self {
        self.is_decompressed = is_decompressed;
        self
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The name of the file that it concerns.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// The bytes of the file that it concerns, zero-based and half-open. Of a compressed file they are those of the text.
    pub fn bytes(&self) -> Option<Range<u64>> {
        self.bytes.clone()
    }

    /// The number of the line, from 1.
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// The kernel's number of the error.
    pub fn errno(&self) -> Option<i32> {
        self.errno
    }

    /// The number of the file among the input's sources.
    pub fn file_index(&self) -> u32 {
        self.file_index
    }

    /// What went wrong.
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// What was refused and why, where the failure is a refusal.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.cause {
            Cause::Refused(refusal) => Some(refusal),
            Cause::Words(_) | Cause::Job(_) => None,
        }
    }

    /// The job's own error, where it is of this type.
    pub fn job<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match &self.cause {
            Cause::Job(error) => error.downcast_ref(),
            _ => None,
        }
    }

    /// Whether its [bytes](Error::bytes) are those of the text in a compressed file.
    pub fn is_decompressed(&self) -> bool {
        self.is_decompressed
    }

    /// The line with settings and advice as a program's users know them.
    pub fn spelled(&self, speller: &dyn Speller) -> String {
        let mut line = String::new();
        if let Some(file) = &self.file {
            line += &format!("{}: ", visible(file.as_bytes()));
        }
        if let Some(bytes) = &self.bytes {
            line += &format!("byte {}-{}", bytes.start, bytes.end);
            if let Some(number) = self.line {
                line += &format!(" (line {number})");
            }
            if self.is_decompressed {
                line += " of the decompressed text";
            }
            line += ": ";
        }
        line += &self.cause.spelled(speller);
        match (self.errno, self.errno.and_then(errno_name)) {
            (_, Some(name)) => line += &format!(" [{name}]"),
            (Some(errno), None) => line += &format!(" [errno {errno}]"),
            (None, None) => {}
        }
        line
    }

    /// Where it stands in the input: of several failures the lowest is reported.
    #[doc(hidden)]
    pub fn place(&self) -> (u32, u64) {
        (
            self.file_index,
            self.bytes.as_ref().map_or(0, |bytes| bytes.start),
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled(&Fields))
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        let kind = match &refusal {
            Refusal::OutOfRange { .. }
            | Refusal::Zero { .. }
            | Refusal::TooFew { .. }
            | Refusal::Misaligned { .. }
            | Refusal::Contradiction { .. }
            | Refusal::NeedsEngine { .. }
            | Refusal::NeedsSetting { .. } => Kind::Usage,
            Refusal::NotAFile { .. }
            | Refusal::NotGranted { .. }
            | Refusal::Missing { .. }
            | Refusal::Unavailable { .. }
            | Refusal::NoMemory { .. }
            | Refusal::NoThreads { .. } => Kind::Engine,
            Refusal::Exceeded { .. } | Refusal::NotText { .. } | Refusal::DecoderMemory { .. } => {
                Kind::Data
            }
        };
        Error::new(kind, refusal)
    }
}

impl From<&io::Error> for Error {
    fn from(error: &io::Error) -> Error {
        Error::io(error)
    }
}

impl std::error::Error for Error {}

/// What a thread panics with if there is no memory for a table of this size.
pub struct OutOfMemory(pub usize);

/// What data and names of files bring into a line must neither end it nor control a terminal.
fn one_line(text: String) -> String {
    match visible(text.as_bytes()) {
        Cow::Borrowed(_) => text,
        Cow::Owned(line) => line,
    }
}

/// The kernel's words for an error, without the number that std puts after them.
pub fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error") {
        Some(at) => text[..at].to_string(),
        None => text,
    }
}

macro_rules! names {
    ($($name:ident)*) => {
        /// The name of an errno, for those a reader or writer of files can meet.
        pub fn errno_name(errno: i32) -> Option<&'static str> {
            match errno {
                $(libc::$name => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

names! {
    EPERM ENOENT EINTR EIO ENXIO E2BIG EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV ENODEV
    ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM
    ERANGE ENAMETOOLONG ENOSYS ELOOP ENODATA ETIME EREMOTEIO EOVERFLOW EOPNOTSUPP ETIMEDOUT ESTALE
    EDQUOT ENOMEDIUM EMEDIUMTYPE ECANCELED EUCLEAN EILSEQ EBADMSG EPROTO ENOLINK EKEYEXPIRED
    ECONNRESET ENOTCONN
}

#[cfg(test)]
mod tests {
    use crate::error::*;

    #[test]
    fn the_line() {
        let error = Error::io(&io::Error::from_raw_os_error(libc::EIO))
            .in_file(0, &"data.txt".into())
            .at_bytes(4096..8192)
            .at_line(12);
        assert_eq!(
            error.to_string(),
            "data.txt: byte 4096-8192 (line 12): Input/output error [EIO]"
        );
        let error = Error::new(Kind::Data, "no value")
            .in_file(0, &"a".into())
            .at_bytes(0..1);
        assert_eq!(error.to_string(), "a: byte 0-1: no value");
        let error = Error::new(Kind::Data, "`1\n\x1b[2J` is no number").in_file(0, &"a\rb".into());
        assert_eq!(error.to_string(), r"a\rb: `1\n\x1b[2J` is no number");
    }
}
