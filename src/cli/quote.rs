//! `ringfold quote`: records as words for a shell.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::Result;
use crate::quote::{Quote, Shell};
use clap::{Args, ValueEnum};

use crate::cli::console::open_output;
use crate::cli::own_input;
use crate::cli::reading::{Files, ReadFlags};

/// Quote records for a shell: one word a line, read back to the byte
///
/// Each line becomes 'line'. In it ' becomes '\'' and, for bash, a control byte becomes an escape: a
/// newline within a record is '$'\n''. The order is that of the input.
#[derive(Args)]
#[command(
    mut_arg("block_size", |arg| arg.short(None)),
    after_help = "\
Examples:
  ringfold quote names.txt
      each line as a word
  find . -type f -print0 | ringfold quote -z | sed 's/^/rm -- /' > clean.sh
      any file name, safely in a script
  ringfold quote -z --shell posix -o words.txt names.bin
      records that end with NUL, for any POSIX shell, into a file
  eval \"set -- $(ringfold quote -z names.bin | tr '\\n' ' ')\"
      records as the arguments of a script"
)]
pub(super) struct Command {
    #[command(flatten)]
    files: Files,
    /// Records end with NUL instead of newline, as `find -print0` writes them
    #[arg(short = 'z', long)]
    null: bool,
    /// The shell that reads the words. posix has no escapes, so other control bytes are kept as they
    /// are, and a newline within a record is an error unless words end with NUL
    #[arg(long, value_name = "SHELL", default_value = "bash")]
    shell: ShellName,
    /// Keep control bytes as they are, newlines too: a word may then take several lines
    #[arg(short, long)]
    no_escape: bool,
    /// Write words as soon as they are made, in any order
    #[arg(long)]
    unordered: bool,
    /// What ends a word in the output
    #[arg(
        long,
        value_name = "END",
        default_value = "lf",
        overrides_with = "out_delimiter"
    )]
    out_delimiter: End,
    /// The file to write; it appears when the output is complete [default: standard output]
    #[arg(long, value_name = "FILE", overrides_with = "output")]
    output: Option<PathBuf>,
    /// As --output; but null and lf are as with --out-delimiter
    #[arg(short = 'o', value_name = "FILE|END")]
    either: Vec<OsString>,
    /// As --threads
    #[arg(short, long, value_name = "N", overrides_with = "threads")]
    workers: Option<usize>,
    /// Does nothing: no work is done by the line. For scripts written for xquo
    #[arg(short, long, value_name = "N")]
    bulk_lines: Option<usize>,
    #[command(flatten)]
    pub(super) reading: ReadFlags,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShellName {
    Bash,
    Posix,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum End {
    Null,
    Lf,
}

impl Command {
    pub(super) fn run(&self) -> Result<()> {
        let (mut end, mut output) = (self.out_delimiter, self.output.clone());
        for word in &self.either {
            match word.to_str() {
                Some("null") => end = End::Null,
                Some("lf") => end = End::Lf,
                _ => output = Some(word.into()),
            }
        }
        let mut job = Quote::new()
            .shell(match self.shell {
                ShellName::Bash => Shell::Bash,
                ShellName::Posix => Shell::Posix,
            })
            .delimiter(if self.null { 0 } else { b'\n' })
            .out_delimiter(match end {
                End::Null => 0,
                End::Lf => b'\n',
            })
            .escapes(!self.no_escape);
        if self.unordered {
            job = job.unordered();
        }
        let paths = self.files.paths()?;
        own_input::refuse(output.as_ref(), &paths)?;
        let mut output = open_output(output.as_ref())?;
        let input = self.reading.open(&paths, None)?;
        let memory = self.reading.memory();
        let run = self
            .reading
            .transform(&input, self.workers, &job, &mut output)?;
        output
            .finish()
            .map_err(|error| crate::Error::output(&error))?;
        self.reading.print_stats(&run, &[], &[], memory);
        Ok(())
    }
}
