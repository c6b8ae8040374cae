//! The flags that say how an answer is shown.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use rayon::ThreadPool;
use ringfold_read::internals::visible;

use crate::cli::again;
use crate::cli::bench::width as terminal_width;
use crate::cli::console::{usage, write_output};
use crate::cli::ending;
use crate::cli::size::rows;
use crate::output::Output;
use crate::query::{Answer, Columns, Layout, Shown, Sort};
use crate::report::grid::{GridFormat, write_grid, write_page, write_table_within};
use crate::report::{self, Format};
use crate::{Error, Result};

/// Bytes of a key that are shown.
const KEY: usize = 40;

/// The first flag that is set.
pub(super) fn first<'a>(
    flags: impl IntoIterator<Item = &'a (bool, &'static str)>,
) -> Option<&'static str> {
    let set = flags.into_iter().find(|(is_set, _)| *is_set);
    set.map(|(_, flag)| *flag)
}

/// How an answer is shown.
#[derive(Args)]
pub(super) struct AnswerFlags {
    /// The order of the rows: columns of the answer, as count:desc,city [default: by key]
    ///
    /// `key` and `none` are orders, too. -count means count:desc, and an aggregate's name its only column. Values are computed:
    /// --sort 'sum_price / count:desc'.
    #[arg(long, value_name = "ORDER", allow_hyphen_values = true)]
    pub(super) sort: Option<String>,
    /// Print only the first rows
    #[arg(long, value_name = "ROWS", value_parser = rows)]
    pub(super) top: Option<usize>,
    /// Apply --top to each value of this column of the key, or to each combination of several columns
    #[arg(long, value_name = "KEY,...", requires = "top", hide_short_help = true)]
    per: Vec<String>,
    /// Turn the values of this column of the key into columns, at most 1,000; --having applies to the rows before that, --sort and
    /// --top to those after it
    #[arg(long, value_name = "KEY", hide_short_help = true)]
    pivot: Option<String>,
    /// Add a last row over all records, also those whose rows aren't printed
    #[arg(long, hide_short_help = true)]
    total: bool,
    /// Add a row, with counts of 0, for each value that this column of the key lacks between its first and its last one: times in
    /// t@hour, numbers in bin(x, 10) and the like
    #[arg(long, value_name = "KEY", hide_short_help = true)]
    fill: Option<String>,
    /// Print only rows of which this is true: "count >= 10"; written as for --where, over columns of the answer and its
    /// aggregates, as "sum(price) / count > 10"
    #[arg(
        long,
        value_name = "CONDITION",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    pub(super) having: Vec<String>,
    /// Digits after the point of all computed numbers, which are rounded once, half away from zero [default: what each
    /// number needs]
    #[arg(long, value_name = "DIGITS", hide_short_help = true)]
    pub(super) precision: Option<u32>,
    /// Other names for all columns of the answer
    #[arg(long = "as", value_name = "NAME,...", hide_short_help = true)]
    pub(super) names: Vec<String>,
}

impl AnswerFlags {
    /// Which of the flags are set.
    pub(super) fn flags(&self) -> [(bool, &'static str); 9] {
        [
            (!self.having.is_empty(), "--having"),
            (self.precision.is_some(), "--precision"),
            (!self.names.is_empty(), "--as"),
            (self.total, "--total"),
            (self.pivot.is_some(), "--pivot"),
            (self.fill.is_some(), "--fill"),
            (!self.per.is_empty(), "--per"),
            (self.sort.is_some(), "--sort"),
            (self.top.is_some(), "--top"),
        ]
    }

    /// The first flag that is about columns with names.
    pub(super) fn of_columns(&self) -> Option<&'static str> {
        first(&self.flags()[1..7])
    }

    /// Which rows there are, in which order.
    pub(super) fn layout(&self, form: Form) -> Result<Layout> {
        let sort = match (&self.sort, form) {
            (Some(sort), _) => Sort::read(sort)?,
            (None, Form::Lines(_)) => Sort::Bytes,
            (None, _) => Sort::Key,
        };
        let mut layout = Layout::default().sort(sort).total(self.total);
        if let Some(rows) = self.top {
            layout = layout.first(rows);
        }
        if let Some(key) = &self.pivot {
            layout = layout.pivot(Columns::read_name(key)?);
        }
        for item in self.per.iter().flat_map(|list| Columns::items(list)) {
            layout = layout.per(Columns::read_name(item)?);
        }
        Ok(layout)
    }

    /// The other names of the columns.
    pub(super) fn names(&self) -> Result<Vec<Vec<u8>>> {
        let items = self.names.iter().flat_map(|list| Columns::items(list));
        items.map(Columns::read_name).collect()
    }

    /// Prints an answer in its order. Where its groups outgrew the memory, all is held back in `directory` until it is
    /// known to be whole. Returns what is to be said of its keys.
    pub(super) fn print(
        &self,
        answer: &mut Answer,
        layout: &Layout,
        form: Form,
        mut output: Output,
        directory: &Path,
        pool: &ThreadPool,
    ) -> Result<Option<String>> {
        pool.install(|| answer.lay_out(layout))?;
        if let Form::Lines(format) = form {
            answer.set_lines(format)?;
        }
        if answer.spilled_bytes > 0 {
            let held = output.hold_back(directory);
            held.map_err(|error| Error::output(&error))?;
        }
        write_output(output, |out| {
            let (names, rows) = (answer.names(), &*answer);
            match form {
                Form::Table(columns) => write_table_within(names, rows, columns, Some(pool), out)?,
                Form::Grid(GridFormat::Html) => {
                    write_page(names, rows, &again::of_pipe(None), true, Some(pool), out)?;
                }
                Form::Grid(format) => write_grid(names, rows, format, Some(pool), out)?,
                Form::Lines(format) => report::write(rows, format, Some(pool), out)?,
            }
            answer.check().map_err(io::Error::other)
        })?;
        odd_key(answer, pool)
    }

    /// What is done with groups, within a memory.
    pub(super) fn settings(
        &self,
        memory: Option<u64>,
        spill_dir: Option<&PathBuf>,
    ) -> Result<Shown> {
        let mut shown = Shown::default().precision(self.precision);
        if let Some(bytes) = memory {
            shown = shown.memory(bytes);
        }
        if let Some(directory) = spill_dir {
            shown = shown.spill_directory(directory);
        }
        if let Some(key) = &self.fill {
            shown = shown.fill(Columns::read_name(key)?);
        }
        for condition in &self.having {
            shown = shown.having(condition)?;
        }
        for name in self.names()? {
            shown = shown.name(name);
        }
        Ok(shown)
    }
}

/// What is to be said of a key with bytes that text hasn't.
pub(super) fn odd_key(answer: &Answer, pool: &ThreadPool) -> Result<Option<String>> {
    let Some(key) = pool.install(|| answer.odd_key())? else {
        return Ok(None);
    };
    let (what, byte) = match key.contains(&0) {
        true => ("NUL bytes stand", "\\0"),
        false => ("a carriage return stands", "\\r"),
    };
    let key = visible(&key[..key.len().min(KEY)]);
    Ok(Some(format!(
        "{what} in a key, the first in `{key}`: `tr -d '{byte}' <FILE` takes such bytes out"
    )))
}

/// The form of an answer.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// Min, mean and max of one key.
    Lines(Format),
    /// Rows and columns.
    Grid(GridFormat),
    /// Rows and columns for a terminal of so many characters a line.
    Table(usize),
}

/// The form of an answer: the one that is asked for, or that of the file's name, or what suits its readers.
pub(super) fn form(asked: Option<GridFormat>, output: Option<&Path>) -> Result<Form> {
    let is_looked_at = output.is_none() && io::stdout().is_terminal();
    let format = match asked {
        Some(format) if is_looked_at && !format.is_text() => {
            return Err(usage(
                "this format is no text, and stdout is a terminal: name a file with --output",
            ));
        }
        Some(format) => format,
        None if is_looked_at => GridFormat::Table,
        None => {
            let named = output.map(ending::format).transpose()?.flatten();
            named.unwrap_or(GridFormat::Csv)
        }
    };
    match is_looked_at && asked.is_none() {
        true => Ok(Form::Table(terminal_width())),
        false => Ok(Form::Grid(format)),
    }
}
