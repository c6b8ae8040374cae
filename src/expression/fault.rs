//! What is wrong with the text of a condition, and where.

use ringfold_read::{Error, Setting};

use crate::refusal::Refusal;

/// A place in the text and what is wrong there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) why: String,
}

impl Fault {
    pub(super) fn new(at: usize, why: impl Into<String>) -> Fault {
        let why = why.into();
        Fault { at, why }
    }

    pub(super) fn in_text(self, setting: Setting, text: &str) -> Error {
        Error::from(Refusal::Condition {
            setting,
            text: text.into(),
            at: self.at,
            why: self.why,
        })
    }
}
