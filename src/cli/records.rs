//! How a query reads records, and what it does with malformed ones.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::Result;
use crate::cli::answer_flags::first;
use crate::cli::console::{open_output, usage};
use crate::cli::ending;
use crate::cli::own_input;
use crate::cli::size::count;
use crate::cli::skipped::Policy;
use crate::output::file::Output;
use crate::query::{OnError, Query};
use crate::report::grid::GridFormat;

/// The flags that say what a record is.
#[derive(Args)]
#[command(next_help_heading = "Records")]
pub(super) struct RecordFlags {
    /// Quoted fields hold no newline: a quote that isn't closed ends with its line
    #[arg(long, hide_short_help = true)]
    single_line: bool,
    /// Records may have other numbers of fields than the first: missing ones are no value, further ones are ignored
    #[arg(long, hide_short_help = true)]
    ragged: bool,
    /// Delimiters side by side are one, and those at a line's start and end none; for columns aligned by blanks -d ' '
    #[arg(long, hide_short_help = true)]
    squeeze: bool,
    /// Leave out so many lines at the start of each file
    #[arg(
        long,
        hide_short_help = true,
        value_name = "N",
        value_parser = count,
        default_value_t = 0,
        hide_default_value = true
    )]
    skip_lines: u64,
    /// Leave out lines that begin with this text
    #[arg(long, hide_short_help = true, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    comment: Option<String>,
    /// Blanks around fields, and before their quotes, don't belong to them; quoted fields hold no newline
    #[arg(long, hide_short_help = true)]
    trim: bool,
    /// The byte that says in a quoted field that the quote after it doesn't close it, as \ does; quoted fields hold no newline
    #[arg(long, hide_short_help = true, value_name = "BYTE", value_parser = byte)]
    escape: Option<u8>,
    /// What to do with records that are the header again, as in files that were joined: skip, or keep them as records
    #[arg(
        long,
        hide_short_help = true,
        value_name = "WHAT",
        default_value = "skip",
        hide_default_value = true,
        hide_possible_values = true
    )]
    repeated_header: RepeatedHeader,
    /// A comma stands before the decimals of numbers, as in 3,50; the answer has a point all the same
    #[arg(long, hide_short_help = true)]
    decimal_comma: bool,
    /// Larger exponents, inf and nan are numbers too; results are printed as the nearest doubles
    #[arg(long, hide_short_help = true)]
    float: bool,
    /// End the run when more than so many records are skipped; means --on-error skip
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = count)]
    max_errors: Option<u64>,
    /// The file to write skipped records to, as CSV with file, byte, line, reason and record; means --on-error skip
    ///
    /// It appears when it is complete, also if it has no record. Records that exceed the memory are kept in a file without a
    /// name in $TMPDIR, or else /var/tmp.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    rejects: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RepeatedHeader {
    Skip,
    Keep,
}

fn byte(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err("one byte".into()),
    }
}

impl RecordFlags {
    /// The flags about records that are left out, and whether they are set.
    pub(super) fn of_rejects(&self) -> [(bool, &'static str); 2] {
        [
            (self.max_errors.is_some(), "--max-errors"),
            (self.rejects.is_some(), "--rejects"),
        ]
    }

    /// The flags that say how values are written, and where records begin.
    pub(super) fn of_values(&self) -> [(bool, &'static str); 3] {
        [
            (self.skip_lines > 0, "--skip-lines"),
            (self.decimal_comma, "--decimal-comma"),
            (self.float, "--float"),
        ]
    }

    /// The flags that say how fields are written.
    pub(super) fn of_fields(&self) -> [(bool, &'static str); 7] {
        [
            (self.single_line, "--single-line"),
            (self.ragged, "--ragged"),
            (self.squeeze, "--squeeze"),
            (self.comment.is_some(), "--comment"),
            (self.trim, "--trim"),
            (self.escape.is_some(), "--escape"),
            (self.keeps_headers(), "--repeated-header"),
        ]
    }

    fn keeps_headers(&self) -> bool {
        self.repeated_header == RepeatedHeader::Keep
    }

    pub(super) fn is_float(&self) -> bool {
        self.float
    }

    /// What is done about malformed records.
    pub(super) fn on_error(&self, policy: Option<Policy>) -> Result<OnError> {
        match (policy, first(&self.of_rejects())) {
            (Some(Policy::Fail), Some(flag)) => Err(usage(format!(
                "{flag} is for records that are skipped, and --on-error fail skips none: leave one of them out"
            ))),
            (None | Some(Policy::Fail), None) => Ok(OnError::Fail),
            (None, Some(_)) | (Some(Policy::Skip), _) => Ok(OnError::Skip),
            (Some(Policy::Null), _) => Ok(OnError::Null),
        }
    }

    pub(super) fn applied(&self, query: Query) -> Query {
        let query = query
            .single_line(self.single_line)
            .ragged(self.ragged)
            .squeeze(self.squeeze)
            .skip_lines(self.skip_lines)
            .comment(self.comment.as_deref().unwrap_or_default())
            .trim(self.trim)
            .escape(self.escape)
            .keep_repeated_headers(self.keeps_headers())
            .decimal_comma(self.decimal_comma)
            .float(self.float)
            .keep_rejects(self.rejects.is_some());
        match self.max_errors {
            Some(most) => query.max_errors(most),
            None => query,
        }
    }

    /// The file of skipped records, with its flag.
    pub(super) fn output(&self) -> Option<(&'static str, &Path)> {
        Some(("--rejects", self.rejects.as_deref()?))
    }

    /// Opens the file of skipped records.
    pub(super) fn open(
        &self,
        output: Option<&PathBuf>,
        paths: &[PathBuf],
    ) -> Result<Option<Output>> {
        let Some(path) = &self.rejects else {
            return Ok(None);
        };
        if own_input::is_standard(path) && own_input::is_standard_output(output) {
            return Err(usage(
                "the answer goes to standard output: name a file for --rejects",
            ));
        }
        if !matches!(ending::format(path), Ok(None | Some(GridFormat::Csv))) {
            return Err(usage(
                "--rejects writes CSV, and its file's name says another format",
            ));
        }
        own_input::refuse(Some(path), paths)?;
        open_output(Some(path)).map(Some)
    }
}
