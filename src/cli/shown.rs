//! The flags that say how an answer is shown.

use std::io::{self, IsTerminal};
use std::path::Path;

use clap::Args;
use rayon::ThreadPool;

use crate::cli::console::write_output;
use crate::output::Output;
use crate::query::{Answer, Columns, Shown as Asked, Sort};
use crate::report::grid::{GridFormat, write_grid};
use crate::{Error, Kind, Result};

/// How an answer is shown.
#[derive(Args)]
pub(super) struct Shown {
    /// The order of the rows: key, none, or columns of the answer, such as count:desc,city [default: key]
    #[arg(long, value_name = "ORDER")]
    pub(super) sort: Option<String>,
    /// Print only the first rows
    #[arg(long, value_name = "ROWS")]
    pub(super) top: Option<usize>,
    /// Print only rows of which this is true: "count >= 10"; written as for --where, over columns of the answer
    #[arg(long, value_name = "CONDITION", hide_short_help = true)]
    pub(super) having: Vec<String>,
    /// Digits behind the point of all computed numbers, which are rounded once, half away from zero [default: what each
    /// number needs]
    #[arg(long, value_name = "DIGITS", hide_short_help = true)]
    pub(super) precision: Option<u32>,
    /// Other names for all columns of the answer
    #[arg(long = "as", value_name = "NAME,...", hide_short_help = true)]
    pub(super) names: Vec<String>,
}

impl Shown {
    /// Which of the flags are set.
    pub(super) fn flags(&self) -> [(bool, &'static str); 5] {
        [
            (!self.having.is_empty(), "--having"),
            (self.precision.is_some(), "--precision"),
            (!self.names.is_empty(), "--as"),
            (self.sort.is_some(), "--sort"),
            (self.top.is_some(), "--top"),
        ]
    }

    /// The order of the rows.
    pub(super) fn sort(&self) -> Result<Sort> {
        Sort::read(self.sort.as_deref().unwrap_or("key")).map_err(usage)
    }

    /// The other names of the columns.
    pub(super) fn names(&self) -> Result<Vec<Vec<u8>>> {
        let items = self.names.iter().flat_map(|list| Columns::items(list));
        let names = items.map(|item| Columns::read_name(item).map_err(usage));
        names.collect()
    }

    /// Prints an answer in its order. Where its groups outgrew the memory, all is held back in `directory` until it is
    /// known to be whole.
    pub(super) fn print(
        &self,
        answer: &mut Answer,
        sort: &Sort,
        format: GridFormat,
        mut output: Output,
        directory: &Path,
        pool: &ThreadPool,
    ) -> Result<()> {
        pool.install(|| answer.sort(sort, self.top))?;
        if let Some(rows) = self.top {
            answer.truncate(rows);
        }
        if answer.spilled_bytes > 0 {
            let held = output.hold_back(directory);
            held.map_err(|error| Error::output(&error))?;
        }
        write_output(output, |out| {
            write_grid(answer.names(), &*answer, format, Some(pool), out)?;
            answer.check().map_err(io::Error::other)
        })
    }

    /// What is asked of an answer of partials.
    pub(super) fn asked(&self) -> Result<Asked> {
        let mut asked = Asked::default().precision(self.precision);
        for condition in &self.having {
            asked = asked.having(condition)?;
        }
        for name in self.names()? {
            asked = asked.name(name);
        }
        Ok(asked)
    }
}

/// The format of an answer: the one that is asked for, or what suits its readers.
pub(super) fn format(asked: Option<GridFormat>, output: Option<&Path>) -> Result<GridFormat> {
    let is_looked_at = output.is_none() && io::stdout().is_terminal();
    match asked {
        Some(format) if is_looked_at && !format.is_text() => Err(usage(
            "this format is no text, and stdout is a terminal: name a file with --output".into(),
        )),
        Some(format) => Ok(format),
        None if is_looked_at => Ok(GridFormat::Table),
        None => Ok(GridFormat::Csv),
    }
}

fn usage(why: String) -> Error {
    Error::new(Kind::Usage, why)
}
