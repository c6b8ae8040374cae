//! `ringfold aggregate`: min, mean and max of each key, or a query.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::budget::GROUP_MIN;
use crate::format::pairs::has_pairs;
use crate::query::Refusal;
use crate::{Config, Error, Input, Kind, Result, report};
use clap::Args;
use ringfold_read::internals::{cgroups, heap, units};

use crate::cli::answer_flags::{Form, first};
use crate::cli::asked::{self, Asked};
use crate::cli::console::usage;
use crate::cli::input::DELIMITER;
use crate::cli::query::{QueryFlags, Run};
use crate::cli::reading::{Files, ReadFlags};
use crate::cli::size::size;
use crate::cli::skipped::Policy;
use crate::cli::{ending, overview};

/// What is said of a flag without a question.
const NEEDS_COLUMNS: &str =
    "needs columns: name those to group by with -k, or what to compute with -a";

/// Group by columns, exactly; without -k and -a min, mean and max of `key;value` lines
///
/// With -k or -a lines are fields between delimiters, of which any columns are keys or are computed on. Without them
/// each line is a key, a delimiter and a decimal number: columns 1 and 2. Several files are one input.
#[derive(Args)]
#[command(
    after_help = "\
Examples:
  ringfold aggregate -H -k city -a count,sum:price,mean:qty orders.csv
  ringfold aggregate -H -k city -a sum:price --sort -sum_price --top 10 orders.csv
  ringfold aggregate -H -k city --where \"status = 'paid'\" -o paid.json orders.csv.gz
  ringfold aggregate --log combined -k status,time@hour -a sum:bytes access.log
All flags: --help. How files are read: --help-io",
    after_long_help = "\
Examples:
  ringfold aggregate -k country -a count,sum:price,mean:qty orders.csv
      a row for each country; the first line of the file names the columns
  ringfold aggregate -k 2-3 table.tsv
      how often each pair of the second and third column is there
  ringfold aggregate -a min:price,max:price,stddev:price orders.csv
      one row for the whole file
  ringfold aggregate -k city -a sum:price --sort sum_price:desc --top 10 orders.csv
      the ten cities with the largest sums
  ringfold aggregate -k city --where \"status = 'paid' and price > 100\" orders.csv
      how many such records each city has
  ringfold aggregate -k city -a mean:price --having \"mean_price >= 50\" orders.csv
      only cities with such a mean
  ringfold aggregate -k city -a sum:price --rejects bad.csv -f json -o sums.json orders.csv
      malformed records go to a file with their places and reasons; the answer as JSON
  curl -s example.org/orders.csv.gz | ringfold aggregate -d, --quote '\"' -k city
      from a pipe, whose name tells neither delimiter nor quote; compressed data is decompressed
  ringfold aggregate --log combined -k status,time@hour -a count,sum:bytes access.log.gz
      a web server's log, compressed or not
  ringfold aggregate --jsonl -k user.country -a count,p99:ms events.jsonl
      JSON lines: a column is called by its key, with dots into objects
  ringfold aggregate --explain -k city -a sum:price orders.csv
      how the file is understood, before a long run
  ringfold aggregate measurements.txt
      lines of `key;value`: min, mean and max of each key on one line"
)]
pub(super) struct Command {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    pub(super) asked: Asked,
    /// One more query of the same files, which are read once: its -k, -a, --where, --sort, -f, -o and others like these follow
    ///
    /// Flags that aren't about one query, such as -d and -j, stand before the first --next and hold for all queries. Without -o,
    /// answers follow each other, with an empty line between.
    #[arg(long = "next", help_heading = None)]
    _next: bool,
    /// More queries of the same files from a file: a line has the flags of one, as a shell takes them
    #[arg(long, help_heading = None, value_name = "FILE", hide_short_help = true)]
    queries: Option<PathBuf>,
    /// The queries after the first.
    #[arg(skip)]
    more: Vec<Asked>,
    #[command(flatten, next_help_heading = None)]
    pub(super) query: QueryFlags,
    /// What to do with a malformed record: fail, or skip it and print on stderr how many were skipped and which was the
    /// first; null also takes what isn't a number for no value [default: fail]
    #[arg(long, help_heading = None, value_name = "WHAT", hide_possible_values = true)]
    pub(super) on_error: Option<Policy>,
    /// Memory for the keys of all workers together, such as 512M or 8G [default: two fifths of the
    /// free memory, or of what a control group allows]
    ///
    /// When the keys need more, the workers share their groups first, and then these go to temporary files without
    /// names. A control group must allow at least 64M.
    #[arg(long, help_heading = None, value_name = "SIZE", value_parser = size)]
    pub(super) memory: Option<u64>,
    /// The directory for keys that don't fit into the memory [default: $TMPDIR, else /var/tmp]
    #[arg(long, help_heading = None, value_name = "DIR")]
    pub(super) spill_dir: Option<PathBuf>,
    #[command(flatten, next_help_heading = None)]
    pub(super) reading: ReadFlags,
}

impl Command {
    pub(super) fn run(&self) -> Result<()> {
        limit_memory(self.memory)?;
        let paths = self.files.paths()?;
        let from_file = self.queries.as_deref().map(asked::of_file).transpose()?;
        let from_file = from_file.unwrap_or_default();
        let more = self.more.iter().chain(&from_file);
        let wants_more = !self.more.is_empty() || self.queries.is_some();
        if self.asked.is_query() || wants_more {
            if let Some(flag) = first(&self.asked.flags()).filter(|_| !self.asked.is_query()) {
                return Err(usage(format!("{flag} {NEEDS_COLUMNS}")));
            }
            if !self.more.is_empty() && !self.asked.is_query() {
                return Err(usage(format!("the query before --next {NEEDS_COLUMNS}")));
            }
            let own = Some(&self.asked).filter(|asked| asked.is_query());
            let asked = own.into_iter().chain(more);
            let asked: Vec<_> = asked
                .map(|asked| Ok((asked, asked.form()?)))
                .collect::<Result<_>>()?;
            if asked.is_empty() {
                return Err(usage("the file of --queries has no query"));
            }
            return self.query.run(&self.as_run(&paths, asked, false), None);
        }
        let asked = self.asked.flags();
        let wants_answer =
            self.on_error.is_some() || self.query.wants_answer() || first(&asked).is_some();
        let form = self.query.other_records().filter(|_| wants_answer);
        if let Some(flag) = self.query.lookups.flag().or(form) {
            return Err(usage(format!("{flag} {NEEDS_COLUMNS}")));
        }
        let form = match self.asked.format {
            None => {
                refuse_grid(self.asked.output.as_deref())?;
                Form::Lines(report::Format::OneBrc)
            }
            Some(_) => self.asked.form()?,
        };
        let run = self.as_run(&paths, vec![(&self.asked, form)], true);
        // A read that may be given up is left to the run.
        if wants_answer || self.reading.how.direct || self.reading.is_limited() {
            return self.query.run(&run, None);
        }
        let input = self.reading.open(&paths, self.memory)?;
        if self.is_of_pairs(&input, &run) {
            return self.query.run(&run, Some(input));
        }
        let overview = self.as_run(&paths, vec![(&self.asked, form)], false);
        // A delimiter that was named and splits nothing is told as an error.
        let columns = match self.query.has_form() {
            false if self.query.delimiter().is_some() => 2,
            _ => 0,
        };
        let query = self.query.query(&overview, &self.asked)?;
        match overview::print(&query, &input, &overview, columns) {
            Ok(true) => Ok(()),
            Ok(false) => self.query.run(&run, Some(input)),
            // Lines of `key;value` are to be told apart, with the place of the first that isn't one.
            Err(error) if !self.query.has_form() && is_undelimited(&error) => {
                self.query.run(&run, Some(input))
            }
            Err(error) => Err(error),
        }
    }

    /// Adds the queries after the first, of which these are the words.
    pub(super) fn add(&mut self, words: Vec<Vec<OsString>>) -> Result<()> {
        self.more = asked::further(words, &mut self.files.files)?;
        Ok(())
    }

    pub(super) fn as_run<'a>(
        &'a self,
        paths: &'a [PathBuf],
        asked: Vec<(&'a Asked, Form)>,
        is_pairs: bool,
    ) -> Run<'a> {
        Run {
            command: self,
            paths,
            asked,
            is_pairs,
        }
    }

    /// Whether an input has no other lines than a key and a value. Where it can't be read, the run says so.
    fn is_of_pairs(&self, input: &Input, run: &Run<'_>) -> bool {
        if self.query.other_records().is_some() {
            return false;
        }
        let config = Config::default();
        match self.query.has_form() {
            true => (self.query.query(run, &self.asked))
                .is_ok_and(|query| query.is_of_pairs(input, &config).unwrap_or(true)),
            false => has_pairs(input, self.query.delimiter().unwrap_or(DELIMITER)).unwrap_or(true),
        }
    }
}

fn is_undelimited(error: &Error) -> bool {
    matches!(error.job(), Some(Refusal::Undelimited { .. }))
}

/// Refuses a file whose name says a format of rows and columns.
fn refuse_grid(output: Option<&Path>) -> Result<()> {
    match output
        .map(ending::format)
        .transpose()?
        .flatten()
        .zip(output)
    {
        None => Ok(()),
        Some((_, path)) => Err(usage(format!(
            "{} names a format of answers to -k and -a: ask for columns, or name the format by -f, as -f 1brc",
            path.display()
        ))),
    }
}

/// Gives freed memory back at once where `memory` or a control group limits it.
///
/// # Errors
/// See [`check_group`].
pub(super) fn limit_memory(memory: Option<u64>) -> Result<()> {
    check_group()?;
    if memory.or(cgroups::memory_limit()).is_some() {
        heap::return_large();
    }
    Ok(())
}

/// # Errors
/// The control group is so small that the kernel might kill the process in the middle of its work.
pub(super) fn check_group() -> Result<()> {
    let limit = cgroups::memory_limit();
    if let Some(limit) = limit.filter(|limit| *limit < GROUP_MIN) {
        let (limit, least) = (units::size(limit), units::size(GROUP_MIN));
        let cause = format!(
            "the control group allows {limit} of memory, and aggregate needs {least}: raise its limit"
        );
        return Err(Error::new(Kind::Engine, cause));
    }
    Ok(())
}
