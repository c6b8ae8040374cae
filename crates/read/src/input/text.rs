//! Whether an input is text in lines.

use memchr::{memchr, memchr_iter};

use crate::error::refusal::{Foreign, Refusal};
use crate::error::{Error, Result};
use crate::input::foreign::{has_carriage_returns, json, recognise};
use crate::input::head::{STEP, look_at_heads};
use crate::input::source::Source;
use crate::input::spans::Input;

const NO_TEXT: &str = "it isn't text in lines";

impl Input {
    /// Checks that the first file isn't one large JSON array or has objects over several lines. Waits for the second line of a
    /// pipe.
    ///
    /// # Errors
    /// It has, with a [`Foreign`], or it can't be read.
    pub fn check_json_lines(&self) -> Result<()> {
        let look = |source: &Source, bytes: &[u8], ended: bool| {
            let lines = memchr_iter(b'\n', bytes).take(2).count();
            let is_enough = ended || bytes.len() >= STEP || lines == 2;
            let checked = || match json(bytes) {
                Some(what) => Err(foreign(source, "it isn't JSON lines", what)),
                None => Ok(()),
            };
            is_enough.then(|| (!bytes.trim_ascii().is_empty()).then(checked))
        };
        look_at_heads(self.sources(), look)?.unwrap_or(Ok(()))
    }

    /// Checks that the first file is text in lines: it doesn't begin as a workbook, a Parquet file or UTF-16 do, and its lines
    /// end with newlines. Waits for the first line of a pipe.
    ///
    /// # Errors
    /// It isn't, with a [`Foreign`], or it can't be read.
    pub fn check_text(&self) -> Result<()> {
        for source in self.sources() {
            if let Some(what) = source.foreign() {
                return Err(foreign(source, NO_TEXT, what));
            }
        }
        let look = |source: &Source, bytes: &[u8], ended: bool| {
            let is_line = memchr(b'\n', bytes).is_some() && bytes.first() != Some(&0);
            let is_enough = ended || bytes.len() >= STEP || is_line;
            let checked = || match recognise(bytes) {
                Some(what) => Err(foreign(source, NO_TEXT, what)),
                None if has_carriage_returns(bytes) => {
                    let what = Foreign::CarriageReturns;
                    Err(foreign(source, "there is no newline", what))
                }
                None => Ok(()),
            };
            is_enough.then(|| (!bytes.is_empty()).then(checked))
        };
        look_at_heads(self.sources(), look)?.unwrap_or(Ok(()))
    }
}

fn foreign(source: &Source, why: &str, what: Foreign) -> Error {
    let why = why.into();
    let error = source.error(Refusal::NotText { why, what });
    error.decompressed(source.is_compressed())
}
