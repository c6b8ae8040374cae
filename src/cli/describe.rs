//! `ringfold describe`: what all records of a file hold, column by column, and what to ask next.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use rayon::ThreadPool;
use ringfold_read::internals::{units::counted, units::grouped, visible};

use crate::cli::aggregate::limit_memory;
use crate::cli::answer_flags::{self, Form};
use crate::cli::console::{self, notice, open_output, say, usage, write_output};
use crate::cli::input::{FilterFlag, InputFlags};
use crate::cli::query::{self, tell_spilled};
use crate::cli::reading::{Files, FoldOutput, ReadFlags, check_text};
use crate::cli::records::RecordFlags;
use crate::cli::size::size;
use crate::cli::skipped::{Policy, settle, tell_records, tell_unread};
use crate::cli::{again, overview, own_input, spell};
use crate::output::file::Output;
use crate::query::{Answer, Description, Query, Values};
use crate::report::grid::{GridFormat, write_grid, write_page};
use crate::{Config, Input, Result, Stats};

/// Letters of a line where the output isn't a terminal.
const WIDTH: usize = 100;
/// The most columns with values of several kinds that get a notice each.
const TOLD: usize = 10;
/// Bytes of a value that a flag may name.
const NAMED: usize = 20;

/// Show what is in a file: of each column its type, nulls, distinct values, quartiles, the most frequent values
///
/// All records are read once. A column has the type of most of its values; others are counted, and the first one is named. Up to
/// 2,048 different values of a column, and quartiles of up to 512 different numbers, are exact; beyond that they are estimates,
/// which are marked. docs/describe.md says what each part means.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ringfold describe orders.csv
      a line for each column, as wide as the terminal
  ringfold describe -f json access.log.gz
      all that is known of each column, for a program
  ringfold describe --where \"status >= 500\" -f html -o errors.html access.log
      what such records look like, as a page
  xz -dc table.tsv.xz | ringfold describe -H
      from a pipe, whose first line names the columns")]
pub(super) struct Command {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    input: InputFlags,
    #[command(flatten)]
    filter: FilterFlag,
    /// The format of the description [default: csv, or table on a terminal]
    #[arg(short, long, value_name = "FORMAT")]
    format: Option<GridFormat>,
    /// The file to write; it appears when the description is complete [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Draw histograms of a table in ASCII
    #[arg(long)]
    ascii: bool,
    /// What to do with a malformed record: fail, or skip it and print on stderr how many were skipped and which was the
    /// first [default: skip]
    #[arg(long, value_name = "WHAT", hide_possible_values = true)]
    on_error: Option<Policy>,
    /// Memory for what is known of columns, such as 512M; what exceeds it goes to temporary files without names [default: two
    /// fifths of the free memory, or of what a control group allows]
    #[arg(long, value_name = "SIZE", value_parser = size, hide_short_help = true)]
    memory: Option<u64>,
    /// The directory for such files [default: $TMPDIR, else /var/tmp]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    spill_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(super) reading: ReadFlags,
    #[command(flatten)]
    pub(super) records: RecordFlags,
}

/// What a run has found.
pub(super) struct Described {
    pub(super) description: Description,
    pub(super) answer: Answer,
    pub(super) stats: Stats,
    pub(super) pool: Arc<ThreadPool>,
    input: Input,
}

impl Command {
    pub(super) fn run(&self) -> Result<()> {
        limit_memory(self.memory)?;
        let paths = self.files.paths()?;
        let query = self.query(&paths)?;
        let (reading, target) = (&self.reading, self.output.as_ref());
        let form = answer_flags::form(self.format, self.output.as_deref())?;
        own_input::refuse(target, &paths)?;
        own_input::refuse_twice(&[Some(own_input::answer(target)), self.records.output()])?;
        let output = open_output(target)?;
        let rejects = self.records.open(target, &paths)?;
        let memory = reading.memory();
        let mut described = self.described(&paths, query, rejects)?;
        if let Form::Grid(GridFormat::Html) = form {
            described.description = described.description.drawn(self.ascii);
        }
        let (description, pool) = (&described.description, &described.pool);
        let width = match form {
            Form::Table(width) => Some(width),
            Form::Grid(GridFormat::Table | GridFormat::Bars) => {
                Some(console::columns().unwrap_or(WIDTH))
            }
            _ => None,
        };
        write_output(output, |out| match (width, form) {
            (Some(width), _) => {
                let mut text = overview::file(&paths);
                // Writing to a string can't fail.
                let _ = description.write(width, self.ascii, &mut text);
                out.write_all(text.as_bytes())
            }
            (None, Form::Grid(GridFormat::Html)) => {
                let title = again::of_pipe(None);
                write_page(
                    description.names(),
                    description,
                    &title,
                    false,
                    Some(pool),
                    out,
                )
            }
            (None, Form::Grid(format)) => {
                write_grid(description.names(), description, format, Some(pool), out)
            }
            (None, _) => unreachable!("a description has rows and columns"),
        })?;
        self.tell(&described, width.is_some());
        if let Some(next) = next(description, &paths).filter(|_| !reading.quiet) {
            say(&format!("go on with: {next}"));
        }
        let counted = query::counted(std::slice::from_ref(&described.answer));
        let counted: Vec<_> = counted.iter().map(|(name, n)| (&**name, *n)).collect();
        reading.print_stats(&described.stats, &counted, &[], memory);
        Ok(())
    }

    /// Reads the records that `query` asks for, and says what is to be known before.
    pub(super) fn described(
        &self,
        paths: &[PathBuf],
        query: Query,
        rejects: Option<Output>,
    ) -> Result<Described> {
        let reading = &self.reading;
        let input = reading.open(paths, self.memory)?;
        let config = Config {
            max_record: reading.max_record(),
            ..Config::default()
        };
        check_text(&input)?;
        let query = match reading.memory_of_keys(self.memory, &input) {
            Some(bytes) => query.memory(bytes),
            None => query,
        };
        let describe = query.describe(&input, &config)?;
        if !reading.quiet {
            let doubts = describe.overview.doubts.iter();
            doubts.for_each(|doubt| notice(spell::doubt(doubt)));
        }
        let FoldOutput {
            output: mut answer,
            stats,
            pool,
        } = reading.fold(&input, &describe.plan)?;
        settle(&mut answer, rejects, &input, reading, &pool)?;
        let description = describe.of(&answer)?;
        Ok(Described {
            description,
            answer,
            input,
            stats,
            pool,
        })
    }

    /// The records that are described.
    pub(super) fn query(&self, paths: &[PathBuf]) -> Result<Query> {
        let query = self.input.query(&self.records, paths, false)?;
        let query = self.filter.applied(query)?;
        self.input.check_names(&query)?;
        let policy = self.on_error.unwrap_or(Policy::Skip);
        if policy == Policy::Null {
            return Err(usage(
                "--on-error null is for what is computed of numbers, and a description tells numbers from others by itself",
            ));
        }
        let query = query.on_error(self.records.on_error(Some(policy))?);
        Ok(match &self.spill_dir {
            Some(directory) => query.spill_directory(directory),
            None => query,
        })
    }

    /// Says what isn't as it seems.
    pub(super) fn tell(&self, described: &Described, is_table: bool) {
        let Described {
            description,
            answer,
            input,
            pool,
            ..
        } = described;
        tell_records(answer, input, &self.reading, pool);
        tell_unread(answer, input, &self.reading, pool);
        if self.reading.quiet {
            return;
        }
        let columns = description.columns.iter().enumerate();
        let mixed: Vec<_> = columns.filter(|(_, of)| of.others > 0).collect();
        for (at, of) in mixed.iter().take(TOLD) {
            let Some((place, value)) = &of.first_other else {
                continue;
            };
            let what = match (of.values, of.others) {
                (Values::Times, 1) => "isn't a time",
                (Values::Times, _) => "aren't times",
                (_, 1) => "isn't a number",
                _ => "aren't numbers",
            };
            let (value, place) = (
                visible(value),
                self.reading.place(input, pool, *place, None),
            );
            let flag = match value.len() <= NAMED {
                true => format!(
                    ": {} takes it for no value",
                    again::flag("--null-value", &value)
                ),
                false => String::new(),
            };
            notice(format!(
                "column {}: {} {what}, the first at {place}: `{value}`{flag}",
                description.called(*at),
                counted(of.others, "value"),
            ));
        }
        if let Some(more) = mixed.len().checked_sub(TOLD).filter(|more| *more > 0) {
            notice(format!(
                "{} more have values of several kinds",
                counted(more as u64, "column")
            ));
        }
        if description.has_more_keys() {
            let columns = grouped(description.columns.len() as u64);
            notice(format!(
                "the {columns} columns are keys of the first 1,000 records: others that later records have aren't described"
            ));
        }
        let columns = || description.columns.iter();
        let bounds = [
            (
                columns().any(|of| of.is_distinct_estimated),
                "distinct values within 2% in 95 of 100 cases",
            ),
            (
                columns().any(|of| of.is_histogram_estimated),
                "quartiles and histograms within 0.8% of the numbers next to them",
            ),
        ];
        let bounds: Vec<_> = bounds.iter().filter(|(is_one, _)| *is_one).collect();
        if !bounds.is_empty() {
            let bounds: Vec<&str> = bounds.iter().map(|(_, bound)| *bound).collect();
            let marked = match is_table {
                true => "`~` marks estimates",
                false => "the column `estimates` names estimates",
            };
            notice(format!("{marked}: {}", bounds.join(", ")));
        }
        if answer.spilled_bytes > 0 {
            tell_spilled(answer.spilled_bytes);
        }
    }
}

/// A command that asks more of the same records.
fn next(description: &Description, paths: &[PathBuf]) -> Option<String> {
    let overview = &description.overview;
    let question = overview::questions(overview)
        .into_iter()
        .take(2)
        .next_back()?;
    let is_mixed = description.columns.iter().any(|of| of.others > 0);
    let policy = match (is_mixed, description.skipped) {
        (true, _) => Some("null"),
        (false, 1..) => Some("skip"),
        (false, 0) => None,
    };
    let policy = policy
        .into_iter()
        .flat_map(|policy| ["--on-error".into(), policy.into()]);
    let more = overview::flags(overview)
        .into_iter()
        .chain(policy)
        .chain(question);
    Some(again::with_flags(&more.collect::<Vec<_>>(), paths))
}
