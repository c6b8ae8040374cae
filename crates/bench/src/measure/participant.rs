//! Who takes part: a name, a command line, and what its answer is.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// A program that takes part.
#[derive(Debug, Clone)]
pub struct Participant {
    /// Its name in all tables.
    pub name: String,
    /// Its command line.
    pub line: Vec<OsString>,
    /// What it is.
    pub kind: Kind,
    /// What it prints.
    pub prints: Prints,
    /// Whether it is left out, with a notice, when it fails in the warm-up.
    pub optional: bool,
}

/// What a participant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// This program, which tells figures of its own.
    Ringfold,
    /// This program without a job: its rate is the limit for others.
    Ceiling,
    /// Another program.
    Command,
}

/// What a participant prints, and so who must agree with whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prints {
    /// The job's answer, byte by byte.
    Answer,
    /// Groups as lines of `key;min;mean;max`: the challenge's answer in another style.
    Rows,
    /// The job's answer, which begins with the number of lines.
    Count,
    /// The number of lines, with more after it.
    Lines,
    /// fio's JSON: how much it has read, in blocks of this many bytes, and how long that took.
    Fio {
        /// Bytes of a block.
        block: u64,
    },
    /// Something that only its own runs can be compared with.
    Anything,
}
