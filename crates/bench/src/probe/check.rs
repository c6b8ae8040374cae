//! What is good, fair and bad for ringfold here, and what to change.

use serde::Serialize;

/// How good or bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// As it should be.
    Good,
    /// It works, but could be better, or can mislead.
    Fair,
    /// It keeps ringfold from its best way to read.
    Bad,
}

/// One thing that matters to how files are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// How good or bad it is.
    pub mark: Mark,
    /// What it is.
    pub what: String,
    /// What to change and how, or what to know.
    pub advice: Option<String>,
}

impl Check {
    /// Nothing is to be changed.
    pub fn good(what: impl Into<String>) -> Self {
        Check {
            mark: Mark::Good,
            what: what.into(),
            advice: None,
        }
    }

    /// It works, and could be better.
    pub fn fair(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Check {
            mark: Mark::Fair,
            what: what.into(),
            advice: Some(advice.into()),
        }
    }

    /// Something doesn't work or costs much.
    pub fn bad(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Check {
            mark: Mark::Bad,
            ..Check::fair(what, advice)
        }
    }
}
