//! The flags of `aggregate` that keep what it has computed.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;
use rustix::fs::{FlockOperation, flock};

use crate::cli::answer_flags::first;
use crate::cli::console::{open_output, usage};
use crate::cli::own_input;
use crate::output::file::Output;
use crate::query::{Answer, Partial, Plan};
use crate::{Begin, Error, Input, Kind, Receipt, Result};

/// What is kept of the input.
#[derive(Args)]
#[command(next_help_heading = "Partials")]
pub(super) struct PartialFlags {
    /// The file to keep the groups in, instead of printing them; `ringfold merge` reads it
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    save_partial: Option<PathBuf>,
    /// Add the input to this partial, which is begun if it isn't there, and replace it when all is done; input that is in it
    /// is refused
    #[arg(
        long = "continue",
        hide_short_help = true,
        value_name = "FILE",
        conflicts_with = "save_partial"
    )]
    state: Option<PathBuf>,
    /// Print the answer as well
    #[arg(long, hide_short_help = true)]
    report_too: bool,
}

/// Reads `I/N`.
pub(super) fn range(text: &str) -> Result<(u32, u32), String> {
    let (part, parts) = text.split_once('/').ok_or("a part and how many, as 3/8")?;
    let number = |text: &str| {
        text.parse()
            .map_err(|_| format!("`{text}` is no number of parts"))
    };
    match (number(part)?, number(parts)?) {
        (part @ 1.., parts) if part <= parts => Ok((part, parts)),
        (part, parts) => Err(format!(
            "there is no part {part} of {parts}: parts are counted from 1"
        )),
    }
}

/// Reads where the first record of a part begins.
pub(super) fn begin(text: &str) -> Result<Begin, String> {
    match text {
        "unquoted" => Ok(Begin::Unquoted),
        "quoted" => Ok(Begin::Quoted),
        byte => byte.parse().map(Begin::At).map_err(|_| {
            "`quoted` or `unquoted`, or the byte of the file at which the first record begins"
                .into()
        }),
    }
}

/// Where groups are kept.
pub(super) struct PartialOutput {
    output: Output,
    path: PathBuf,
    /// The state that is continued.
    state: Option<State>,
    is_state: bool,
}

/// A state as it was opened.
struct State {
    partial: Partial,
    /// Locked as long as it is open.
    _file: File,
    meta: Metadata,
}

impl PartialFlags {
    /// Which of the flags are set.
    pub(super) fn flags(&self) -> [(bool, &'static str); 3] {
        [
            (self.save_partial.is_some(), "--save-partial"),
            (self.state.is_some(), "--continue"),
            (self.report_too, "--report-too"),
        ]
    }

    /// Whether an answer is printed. `shown` are the flags that mean nothing otherwise.
    ///
    /// # Errors
    /// One of these is set and no answer is printed, or there is nothing to print it besides.
    pub(super) fn reports(&self, shown: &[(bool, &'static str)]) -> Result<bool> {
        let keeps = self.save_partial.is_some() || self.state.is_some();
        match (keeps, self.report_too, first(shown)) {
            (false, true, _) => Err(usage(
                "--report-too needs --save-partial or --continue: without them the answer is printed",
            )),
            (true, false, Some(flag)) => Err(usage(format!(
                "{flag} is about the answer, which isn't printed: add --report-too, or give it to `ringfold merge`"
            ))),
            (keeps, report_too, _) => Ok(!keeps || report_too),
        }
    }

    /// The file that groups are kept in, with its flag.
    pub(super) fn output(&self) -> Option<(&'static str, &PathBuf)> {
        match &self.state {
            Some(path) => Some(("--continue", path)),
            None => Some(("--save-partial", self.save_partial.as_ref()?)),
        }
    }

    /// Opens what groups are kept in, if they are.
    pub(super) fn open(
        &self,
        output: Option<&PathBuf>,
        inputs: &[PathBuf],
    ) -> Result<Option<PartialOutput>> {
        let Some((flag, path)) = self.output() else {
            return Ok(None);
        };
        let prints_there = self.report_too && own_input::is_standard_output(output);
        if own_input::is_standard(path) && (self.state.is_some() || prints_there) {
            return Err(usage(format!("name a file for {flag}")));
        }
        own_input::refuse(Some(path), inputs)?;
        let state = self.state.as_deref().map(open_state).transpose()?.flatten();
        let mut output = open_output(Some(path))?;
        if self.state.is_some() && state.is_none() && !output.reserve() {
            return Err(changed(path));
        }
        Ok(Some(PartialOutput {
            output,
            path: path.clone(),
            state,
            is_state: self.state.is_some(),
        }))
    }
}

/// Opens a state that is there, and locks it.
fn open_state(path: &Path) -> Result<Option<State>> {
    let wrong = |kind: Kind, why: &str| Error::new(kind, format!("{}: {why}", path.display()));
    let failed = |error: io::Error| wrong(Kind::Io, &Error::io(&error).to_string());
    let taken = |_| wrong(Kind::Io, "another run continues it at this moment");
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(taken)?;
    let meta = file.metadata().map_err(failed)?;
    if meta.is_file() && meta.len() == 0 {
        // As `mktemp` and `touch` make it.
        let why = "it is empty, and no partial: remove it to begin one";
        return Err(wrong(Kind::Data, why));
    }
    if !is_same(&meta, path) {
        return Err(taken(rustix::io::Errno::AGAIN));
    }
    Ok(Some(State {
        partial: Partial::open(path)?,
        _file: file,
        meta,
    }))
}

/// Whether a path still leads to a file.
fn is_same(meta: &Metadata, path: &Path) -> bool {
    let now = std::fs::metadata(path);
    now.is_ok_and(|now| (now.dev(), now.ino()) == (meta.dev(), meta.ino()))
}

impl PartialOutput {
    /// Looks whether the input can be added to the state, before it is read.
    ///
    /// # Errors
    /// The state is of another query, or some of the input is in it.
    pub(super) fn check(&self, plan: &Plan, input: &Input, receipt: &Receipt) -> Result<()> {
        let Some(state) = &self.state else {
            return Ok(());
        };
        let known = state.partial.receipt();
        receipt.refuse_grown(&known, input)?;
        receipt.refuse_copies(&known, input)?;
        let nothing = plan.nothing(receipt)?;
        Partial::merge([&state.partial, &nothing]).map(drop)
    }

    /// Keeps the groups of an answer; returns the answer of all that is kept now, if it is to be printed and isn't the same.
    pub(super) fn keep(
        mut self,
        answer: &Answer,
        plan: &Plan,
        receipt: &Receipt,
        shown: Option<&crate::query::Shown>,
    ) -> Result<Option<Answer>> {
        let failed = |error| Error::output(&error);
        let Some(state) = self.state.take() else {
            answer
                .save(plan, receipt, &mut self.output)
                .map_err(failed)?;
            return match self.output.finish() {
                Err(error) if self.is_state && error.kind() == io::ErrorKind::AlreadyExists => {
                    Err(changed(&self.path))
                }
                outcome => outcome.map_err(failed).map(|()| None),
            };
        };
        let new = match answer.spilled_bytes {
            0 => {
                let mut bytes = Vec::new();
                answer.save(plan, receipt, &mut bytes).map_err(failed)?;
                Partial::read("the input", bytes)?
            }
            // They didn't fit into the memory.
            _ => {
                let directory = plan.spill_directory();
                let mut file = tempfile::tempfile_in(directory).map_err(failed)?;
                answer.save(plan, receipt, &mut file).map_err(failed)?;
                Partial::of_file("the input", file)?
            }
        };
        let merged = Partial::merge([&state.partial, &new])?;
        merged.save(&mut self.output).map_err(failed)?;
        self.output.flush().map_err(failed)?;
        let answer = shown.map(|shown| merged.answer(shown)).transpose()?;
        if !is_same(&state.meta, &self.path) {
            return Err(changed(&self.path));
        }
        self.output.finish().map_err(failed)?;
        Ok(answer)
    }
}

fn changed(path: &Path) -> Error {
    let path = path.display();
    let cause = format!("{path}: another run has written it meanwhile: nothing was added");
    Error::new(Kind::Io, cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        assert_eq!(range("3/8"), Ok((3, 8)));
        assert_eq!(range("1/1"), Ok((1, 1)));
        for text in [
            "",
            "3",
            "/",
            "0/3",
            "4/3",
            "a/3",
            "3/",
            "-1/3",
            "1/99999999999",
        ] {
            assert!(range(text).is_err(), "{text}");
        }
    }
}
