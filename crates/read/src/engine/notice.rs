//! What a program's user should know while a run goes on.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::error::refusal::{Fields, Speller};

/// What the user should know while a run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Files that were to be read past the page cache are read through it.
    ThroughPageCache {
        /// Why the first of them is.
        error: Error,
        /// How many more there are.
        others: usize,
        /// Whether the reads leave nothing in the page cache.
        dontcache: bool,
    },
    /// Workers read what a ring was to read.
    WithoutRing {
        /// Why there is no ring.
        error: Error,
    },
    /// A read has been without an answer for long.
    Silent {
        /// The file's name.
        file: Arc<str>,
        /// The bytes that are waited for.
        bytes: Range<u64>,
        /// For how long, in whole seconds.
        age: Duration,
    },
    /// A file has grown since it was opened; what was added wasn't read.
    Grown {
        /// The file's name.
        file: Arc<str>,
        /// Its bytes when it was opened.
        from: u64,
        /// Its bytes now.
        to: u64,
    },
    /// What follows the data of a compressed file isn't compressed, and was left out.
    LeftOut {
        /// The file's name.
        file: Arc<str>,
        /// How many bytes at its end.
        bytes: u64,
    },
    /// A file was written to since it was opened; the answer may mix old and new bytes.
    Written {
        /// The file's name.
        file: Arc<str>,
    },
}

impl Notice {
    /// The notice with settings and advice as a program's users know them.
    pub fn spelled(&self, speller: &dyn Speller) -> String {
        match self {
            Notice::ThroughPageCache {
                error,
                others,
                dontcache,
            } => {
                let error = error.spelled(speller);
                let others = match others {
                    0 => String::new(),
                    n => format!(", and {n} more"),
                };
                let how = match dontcache {
                    true => "reading through the page cache, leaving nothing there",
                    false => "reading through the page cache",
                };
                format!("{error}{others}; {how}")
            }
            Notice::WithoutRing { error } => {
                format!("{}; reading with pread instead", error.spelled(speller))
            }
            Notice::Silent { file, bytes, age } => {
                let (start, end, seconds) = (bytes.start, bytes.end, age.as_secs());
                format!("{file}: byte {start}-{end}: no answer for {seconds} s, still waiting")
            }
            Notice::Grown { file, from, to } => {
                format!("{file}: has grown from {from} to {to} bytes; what was added wasn't read")
            }
            Notice::LeftOut { file, bytes: 1 } => {
                format!("{file}: the last byte is no compressed data: it was left out")
            }
            Notice::LeftOut { file, bytes } => {
                format!("{file}: the last {bytes} bytes are no compressed data: they were left out")
            }
            Notice::Written { file } => format!(
                "{file}: was written to while it was read; the answer may mix old and new bytes"
            ),
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled(&Fields))
    }
}
