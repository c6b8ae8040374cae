//! `ringfold aggregate`: min, mean and max of each key.

use std::path::PathBuf;

use crate::group::aggregate::{Aggregate, OnError};
use crate::group::spill::budget::GROUP_MIN;
use crate::group::summary::Skipped;
use crate::linux::cgroups;
use crate::units;
use crate::{Error, Input, Kind, Result, report};
use clap::{Args, ValueEnum};

use crate::cli::console::{open_output, say, write_output};
use crate::cli::reading::{Files, Folded, Reading};
use crate::cli::size::size;
use crate::cli::{memory, own_input, spell, stats};

/// Min, mean and max of the values under each key, exactly
///
/// Each line is a key, a delimiter and a decimal number. Several files are one input.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ringfold aggregate measurements.txt
      lines of `key;value`; the answer on one line
  ringfold aggregate -d, -f lines --on-error skip data.csv
      lines of `key,value` after a header; a line for each key
  cut -f 2,5 table.tsv | ringfold aggregate -d '\\t' -o answer.txt
      two columns of many, into a file
  awk '{print $7 \";\" $10}' access.log | ringfold aggregate -f lines
      bytes sent for each page, from a web server's log
  ringfold aggregate --memory 1G --stats big.txt
      many keys in little memory; prints rows, time and memory at the end")]
pub(super) struct Command {
    #[command(flatten)]
    files: Files,
    /// The byte between key and value; \t is a tab
    #[arg(short, long, value_name = "BYTE", default_value = ";", value_parser = byte)]
    delimiter: u8,
    /// The format of the answer
    #[arg(short, long, value_name = "FORMAT", default_value = "1brc")]
    format: Format,
    /// The file to write; it appears when the answer is complete [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What to do with a malformed record: fail, or skip it and print on stderr how many were skipped
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "fail",
        hide_possible_values = true
    )]
    on_error: Policy,
    /// Memory for the keys of all workers together, such as 512M or 8G [default: two fifths of the
    /// free memory, or of what a control group allows]
    ///
    /// When the keys need more, the workers share their tables. When the shared tables need more too,
    /// keys go to temporary files without names. A control group must allow at least 64M.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// The directory for keys that don't fit into the memory [default: $TMPDIR, else /var/tmp]
    #[arg(long, value_name = "DIR")]
    spill_dir: Option<PathBuf>,
    #[command(flatten)]
    reading: Reading,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// {key=min/mean/max, ...} on one line, as the One Billion Row Challenge has it
    #[value(name = "1brc")]
    OneBrc,
    /// The same with a line for each key; its mean is computed in doubles
    Hovinen,
    /// City | key | min | mean | max
    Lines,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Policy {
    Fail,
    Skip,
}

impl Command {
    /// Whether reads have a limit.
    pub(super) fn is_limited(&self) -> bool {
        self.reading.how.io_timeout.is_some()
    }

    /// The job that the flags describe.
    fn job(&self) -> Aggregate {
        let on_error = match self.on_error {
            Policy::Fail => OnError::Fail,
            Policy::Skip => OnError::Skip,
        };
        let mut job = Aggregate::new()
            .delimiter(self.delimiter)
            .on_error(on_error);
        if let Some(bytes) = self.memory {
            job = job.memory(bytes);
        }
        if let Some(directory) = &self.spill_dir {
            job = job.spill_directory(directory);
        }
        job
    }

    pub(super) fn run(&self) -> Result<()> {
        let paths = self.files.paths()?;
        own_input::refuse(self.output.as_ref(), &paths)?;
        refuse_small_group(cgroups::memory_limit())?;
        let mut output = open_output(self.output.as_ref())?;
        let input = Input::open(&paths)?;
        let memory = memory::Watch::start(self.reading.stats.is_some());
        let Folded {
            output: summary,
            stats: run,
            pool,
        } = self.reading.fold(&input, &self.job())?;
        if let Some(first) = summary.first_skipped.as_ref().filter(|_| summary.rows == 0) {
            return Err(nothing_but_skipped(&input, first, summary.skipped));
        }
        let format = match self.format {
            Format::OneBrc => report::Format::OneBrc,
            Format::Hovinen => report::Format::Hovinen,
            Format::Lines => report::Format::Lines,
        };
        if summary.spilled_bytes > 0 {
            output
                .hold_back(summary.spill_directory())
                .map_err(|error| Error::output(&error))?;
        }
        write_output(output, |out| {
            report::write_with(&summary, format, format.decimals(), Some(&pool), out)
        })?;
        if summary.skipped > 0 {
            let plural = if summary.skipped == 1 { "" } else { "s" };
            let skipped = stats::grouped(summary.skipped);
            say(&format!("skipped {skipped} malformed record{plural}"));
        }
        if summary.spilled_bytes > 0 && !self.reading.quiet {
            let bytes = stats::grouped(summary.spilled_bytes);
            say(&format!(
                "notice: the keys outgrew the memory (--memory): {bytes} bytes went to temporary files"
            ));
        }
        if let Some(format) = self.reading.stats {
            let job = [
                ("rows", summary.rows),
                ("keys", summary.len() as u64),
                ("empty_lines", summary.empty_lines),
                ("skipped", summary.skipped),
                ("key_sharers", summary.key_sharers),
                ("spilled_bytes", summary.spilled_bytes),
            ];
            stats::print(format, &run, &job, memory.peak());
        }
        Ok(())
    }
}

/// What a run ends with that skipped every record: an empty answer would look like one.
fn nothing_but_skipped(input: &Input, first: &Skipped, skipped: u64) -> Error {
    let of = match skipped {
        1 => "the only record, skipped".to_string(),
        many => format!("the first of {} records, all skipped", stats::grouped(many)),
    };
    let name = input.sources()[first.file as usize].name();
    let error = Error::new(Kind::Data, format!("{} ({of})", spell::cause(&first.cause)))
        .in_file(first.file, name)
        .at_bytes(first.bytes.clone());
    match first.bytes.start {
        0 => error.at_line(1),
        _ => error,
    }
}

/// Refuses a control group in which the kernel might kill the process in the middle of its work.
fn refuse_small_group(limit: Option<u64>) -> Result<()> {
    match limit {
        Some(limit) if limit < GROUP_MIN => {
            let (limit, least) = (units::size(limit), units::size(GROUP_MIN));
            let cause = format!(
                "the control group allows {limit} of memory, and aggregate needs {least}: raise its limit"
            );
            Err(Error::new(Kind::Engine, cause))
        }
        _ => Ok(()),
    }
}

fn byte(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [b'\n' | b'\r'] => Err("a line's end can't be the delimiter".into()),
        [byte] => Ok(*byte),
        _ => Err("one byte, or \\t".into()),
    }
}
