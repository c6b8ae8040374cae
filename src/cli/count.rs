//! `ringfold count`: lines and bytes, like `wc -l` and `wc -c`.

use std::borrow::Cow;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::job::count::{Count, Counted};
use crate::{Input, Result, Stats};
use clap::Args;
use ringfold_read::internals::visible;

use crate::cli::console::{exit_code, open_output, say, write_output};
use crate::cli::reading::{Files, FoldOutput, ReadFlags};
use crate::cli::{own_input, spell};

/// A file's name as it was given. A newline in it is escaped, so that it doesn't look like two rows.
fn written(path: &Path) -> Cow<'_, [u8]> {
    let name = path.as_os_str().as_bytes();
    match name.contains(&b'\n') {
        true => visible(name).into_owned().into_bytes().into(),
        false => name.into(),
    }
}

/// Opens what can be opened, prints an error for each other file, and returns the exit code.
fn open(paths: Vec<PathBuf>) -> Result<(Input, Vec<PathBuf>, ExitCode)> {
    let (mut input, mut opened) = (Input::default(), Vec::new());
    let mut code = ExitCode::SUCCESS;
    for path in paths {
        match input.add(&path) {
            Ok(()) => opened.push(path),
            // No other file could be opened either.
            Err(error) if matches!(error.errno(), Some(libc::EMFILE | libc::ENFILE)) => {
                return Err(error);
            }
            Err(error) => {
                say(&spell::error(&error));
                code = ExitCode::from(exit_code(&error));
            }
        }
    }
    Ok((input, opened, code))
}

/// Count lines and bytes, as wc -l and wc -c do
#[derive(Args)]
pub(super) struct Command {
    #[command(flatten)]
    files: Files,
    /// Records end with NUL instead of newline
    #[arg(short = 'z', long)]
    null: bool,
    /// Print lines only
    #[arg(short, long)]
    lines: bool,
    /// Print bytes only
    #[arg(short = 'c', long)]
    bytes: bool,
    #[command(flatten)]
    pub(super) reading: ReadFlags,
}

impl Command {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let output = open_output(None)?;
        let paths = self.files.paths()?;
        own_input::refuse(None, &paths)?;
        let (input, paths, missing) = open(paths)?;
        let memory = self.reading.memory();
        let (counted, run) = self.counted(input)?;
        let mut total = Counted::default();
        for counted in &counted {
            total.records += counted.records;
            total.bytes += counted.bytes;
        }
        write_output(output, |out| {
            let several = self.files.files.len() > 1;
            let rows = counted.iter().zip(paths.iter().map(|path| written(path)));
            // All figures are as wide as the widest, as in wc.
            let widest = if several {
                total.bytes.max(total.records)
            } else {
                0
            };
            let width = widest.to_string().len();
            let total = several.then_some((&total, b"total".into()));
            for (counted, name) in rows.chain(total) {
                let (lines, bytes) = (counted.records, counted.bytes);
                match (self.lines, self.bytes) {
                    (true, false) => write!(out, "{lines:>width$}")?,
                    (false, true) => write!(out, "{bytes:>width$}")?,
                    _ => write!(out, "{lines:>width$} {bytes:>width$}")?,
                }
                // Standard input that isn't named has no name in the output.
                if !self.files.files.is_empty() {
                    out.write_all(b" ")?;
                    out.write_all(&name)?;
                }
                out.write_all(b"\n")?;
            }
            Ok(())
        })?;
        let records = [("records", total.records)];
        self.reading.print_stats(&run, &records, &[], memory);
        Ok(missing)
    }

    /// The lines and bytes of each file.
    pub(super) fn counted(&self, input: Input) -> Result<(Vec<Counted>, Stats)> {
        let delimiter = if self.null { 0 } else { b'\n' };
        let input = self.reading.text_of(input, None)?.without_holes();
        let FoldOutput {
            output: mut counted,
            stats,
            ..
        } = self.reading.fold(&input, &Count { delimiter })?;
        counted.resize(input.sources().len(), Counted::default());
        // A hole is as many zeros.
        for (counted, hole) in counted.iter_mut().zip(input.left_out()) {
            counted.bytes += hole;
            counted.records += if self.null { hole } else { 0 };
        }
        Ok((counted, stats))
    }
}
