//! Tables beside the input.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::console::usage;
use crate::cli::ending::is_compressed;
use crate::cli::input::form_of;
use crate::cli::own_input::is_standard;
use crate::cli::query::Run;
use crate::query::Query;
use crate::{Error, Result};

#[derive(Args)]
pub(super) struct LookupFlags {
    /// A small table, whose columns may be named as those of the input: a record has those of the row with its key (--on)
    ///
    /// `--lookup planes.csv --on tailnum -k manufacturer`. The table is kept in memory, and is CSV, TSV, JSON lines, or one of
    /// these compressed. Its columns are also called by its file's name and a dot, planes.year; NAME=FILE gives another
    /// name. Without a row of a record's key they are empty, and a line on stderr counts such records. Two rows of one key
    /// are an error. May be repeated, each with its --on.
    #[arg(
        long,
        value_name = "[NAME=]FILE",
        requires = "on",
        hide_short_help = true
    )]
    lookup: Vec<String>,
    /// The key of --lookup: the column that is equal in the input and the table, or that of the input, = and that of the
    /// table
    ///
    /// `--on tailnum`, `--on tail=tailnum`, several columns as `--on year,month`, and values of the input, as `--on
    /// 'lower(city)=town'`. Keys are compared as bytes.
    #[arg(
        long,
        value_name = "COLUMN[=COLUMN],...",
        requires = "lookup",
        hide_short_help = true
    )]
    on: Vec<String>,
}

impl LookupFlags {
    /// The first flag that is given.
    pub(super) fn flag(&self) -> Option<&'static str> {
        (!self.lookup.is_empty()).then_some("--lookup")
    }

    /// The tables' files.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.lookup.iter().map(|lookup| named(lookup).1.to_owned())
    }

    /// A query with the tables.
    pub(super) fn applied(&self, mut query: Query, run: &Run<'_>) -> Result<Query> {
        let (tables, keys) = (self.lookup.len(), self.on.len());
        if tables != keys {
            return Err(usage(format!(
                "--lookup is given {tables} times and --on {keys} times: each table has its key"
            )));
        }
        for (lookup, on) in self.lookup.iter().zip(&self.on) {
            let (name, path) = named(lookup);
            if is_standard(path) && run.paths.iter().any(|path| is_standard(path)) {
                let why = "standard input is the input, and can't be the table of --lookup, too";
                return Err(usage(why));
            }
            let (reading, memory) = (&run.command.reading, run.command.memory);
            // Advice for the input is none for the table.
            let of_table = |error: Error| match error.file() {
                Some(_) => Error::new(error.kind(), format!("--lookup: {error}")),
                None => error,
            };
            let table = reading.open(&[path], memory).map_err(of_table)?;
            let form = form_of(&[path.to_owned()])?;
            let found = query.lookup(&name, &table, &form, on);
            query = found.map_err(of_table)?;
        }
        Ok(query)
    }
}

/// What a table is called, and its file: `planes=/data/2013.csv`, or the file, which has a name without its endings.
fn named(lookup: &str) -> (String, &Path) {
    let is_word = |name: &str| {
        let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
        !name.is_empty() && name.chars().all(is_letter)
    };
    if let Some((name, path)) = lookup.split_once('=').filter(|(name, _)| is_word(name)) {
        return (name.into(), Path::new(path));
    }
    let path = Path::new(lookup);
    let mut name = PathBuf::from(path.file_name().unwrap_or_default());
    let ending = |name: &Path| Some(name.extension()?.to_str()?.to_ascii_lowercase());
    if ending(&name).is_some_and(|ending| is_compressed(&ending)) {
        name.set_extension("");
    }
    name.set_extension("");
    (name.to_string_lossy().into_owned(), path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_names() {
        for (lookup, name, path) in [
            ("planes.csv", "planes", "planes.csv"),
            ("a/b.c.csv.GZ", "b.c", "a/b.c.csv.GZ"),
            ("from=a=b.csv", "from", "a=b.csv"),
            ("./a=b.csv", "a=b", "./a=b.csv"),
            ("planes", "planes", "planes"),
            ("-", "-", "-"),
        ] {
            assert_eq!(named(lookup), (name.into(), Path::new(path)), "{lookup}");
        }
    }
}
