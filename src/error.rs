//! What can go wrong, and the one line that says so: `FILE: byte A-B (line N): cause [ERRNO]`.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// What kind of failure it was; the exit code follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The request itself is contradictory or can't be understood.
    Usage,
    /// A record is malformed or over the limit.
    Data,
    /// The kernel refused to open, read or write.
    Io,
    /// The engine or a knob that was asked for can't be had here.
    Engine,
    /// A worker panicked: a fault of the program.
    Panic,
    /// The reader of the output has gone away.
    ClosedPipe,
}

/// A failure with the place it concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    file: Option<Arc<str>>,
    file_index: u32,
    bytes: Option<Range<u64>>,
    line: Option<u64>,
    cause: String,
    errno: Option<i32>,
}

/// Shorthand for results with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A failure that concerns no file.
    pub fn new(kind: Kind, cause: impl Into<String>) -> Self {
        Error {
            kind,
            file: None,
            file_index: 0,
            bytes: None,
            line: None,
            cause: cause.into(),
            errno: None,
        }
    }

    /// A failure that the kernel reported, described by the errno alone.
    pub fn io(error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::BrokenPipe => Kind::ClosedPipe,
            _ => Kind::Io,
        };
        Error::new(kind, describe(error)).with_errno(error)
    }

    /// A failure to write the output.
    pub fn output(error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::BrokenPipe => Kind::ClosedPipe,
            _ => Kind::Io,
        };
        Error::new(kind, error.to_string())
    }

    /// The same with the errno's name behind it.
    pub fn with_errno(mut self, error: &io::Error) -> Self {
        self.errno = error.raw_os_error();
        self
    }

    /// The same for a flag that can't be had without what has failed, unless one is named already.
    pub(crate) fn naming(mut self, flag: &str) -> Self {
        if !self.cause.starts_with("--") {
            self.cause = format!("{flag}: {}: leave it out", self.cause);
        }
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

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The bytes of the file that it concerns, zero-based and half-open.
    pub fn bytes(&self) -> Option<Range<u64>> {
        self.bytes.clone()
    }

    /// The number of the file among the input's sources.
    pub fn file_index(&self) -> u32 {
        self.file_index
    }

    /// Where it stands in the input: of several failures the lowest is reported.
    pub(crate) fn place(&self) -> (u32, u64) {
        (
            self.file_index,
            self.bytes.as_ref().map_or(0, |bytes| bytes.start),
        )
    }

    /// What the program should exit with.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Usage => 2,
            Kind::ClosedPipe => 141,
            _ => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        if let Some(bytes) = &self.bytes {
            write!(f, "byte {}-{}", bytes.start, bytes.end)?;
            if let Some(line) = self.line {
                write!(f, " (line {line})")?;
            }
            write!(f, ": ")?;
        }
        write!(f, "{}", self.cause)?;
        match self.errno.map(errno_name) {
            Some(Some(name)) => write!(f, " [{name}]"),
            Some(None) => write!(f, " [errno {}]", self.errno.unwrap_or(0)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// The kernel's words for an error, without the number that std puts behind them.
pub(crate) fn describe(error: &io::Error) -> String {
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
        assert_eq!(error.exit_code(), 1);
        let error = Error::new(Kind::Data, "no value")
            .in_file(0, &"a".into())
            .at_bytes(0..1);
        assert_eq!(error.to_string(), "a: byte 0-1: no value");
    }
}
