//! The flags of one query: what is asked of which columns, and what becomes of the answer.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::builder::PossibleValue;
use clap::error::{ContextKind, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use ringfold_bench::probe::quoted;
use ringfold_read::internals::visible;

use crate::cli::answer_flags::{self, AnswerFlags, Form};
use crate::cli::console::{about, usage};
use crate::cli::help::{line_of, with_negative_numbers};
use crate::cli::input::FilterFlag;
use crate::cli::partials::PartialFlags;
use crate::query::{Columns, Query};
use crate::report::grid::GridFormat;
use crate::{Result, report};

/// What is asked of which columns.
#[derive(Args)]
pub(super) struct Asked {
    /// Columns to group by: numbers from 1, ranges such as 2-4, or names in the first line
    ///
    /// `-k time@hour` cuts times down. Units are year, month, week, day, hour, minute, second, weekday, and minutes such as
    /// 10m. A date and a time of day in two columns are joined: date+time@hour. Values are computed: -k 'lower(city) as town'.
    /// docs/query.md lists the functions.
    #[arg(short, long = "key", value_name = "COLUMN,...")]
    pub(super) key: Vec<String>,
    /// What to compute of each group: count, sum:price, mean:3, ... [default: count]
    ///
    /// There are count, sum, min, max, mean, range, var, stddev, var_pop, stddev_pop, first, last, lexmin, lexmax, median,
    /// percentiles such as p99.9, distinct, mode, iqr, geometric_mean, and lists: top3, values, histogram(x, width). Of two
    /// columns there are arg_max(name, x), arg_min, weighted_mean(x, weight), covar_pop, covar_samp, corr(x, y), slope(y, x)
    /// and distinct(a, b). One column follows after a colon: `-a count,sum:price,mean:3`. A name with a comma or colon is
    /// quoted: `-a 'sum:"a,b"'`. Values are computed: `-a 'sum(price * qty) as revenue'`, `-a
    /// 'count_if(status >= 500) / count()'`. All numbers are exact. Estimates are asked for by name: approx_median,
    /// approx_p99.9, approx_distinct. Without -k the whole input is one group.
    #[arg(short = 'a', long = "aggregate", value_name = "WHAT[:COLUMN],...")]
    pub(super) aggregate: Vec<String>,
    #[command(flatten)]
    pub(super) filter: FilterFlag,
    #[command(flatten)]
    pub(super) shown: AnswerFlags,
    /// The format of the answer; 1brc, hovinen and lines are for one key and the min, mean and max of a column, in this order
    /// [default: 1brc; with -k or -a csv, or table on a terminal]
    #[arg(short, long, value_name = "FORMAT")]
    pub(super) format: Option<Format>,
    /// The file to write; it appears when the answer is complete [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) partials: PartialFlags,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Format {
    /// Of min, mean and max of one key.
    Lines(report::Format),
    /// Of rows and columns.
    Grid(GridFormat),
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Format] {
        static ALL: LazyLock<Vec<Format>> = LazyLock::new(|| {
            let lines = report::Format::value_variants().iter().copied();
            let grids = GridFormat::value_variants().iter().copied();
            let lines = lines.map(Format::Lines);
            lines.chain(grids.map(Format::Grid)).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Format::Lines(format) => format.to_possible_value(),
            Format::Grid(format) => format.to_possible_value(),
        }
    }
}

/// What a query asks, item by item.
#[derive(Clone)]
pub(super) struct Items<'a> {
    keys: Vec<&'a str>,
    aggregates: Vec<&'a str>,
    filter: Option<&'a FilterFlag>,
}

impl<'a> Items<'a> {
    /// The query that asks for them.
    pub(super) fn applied(&self, mut query: Query) -> Result<Query> {
        for item in &self.keys {
            query = query.key_text(item)?;
        }
        for item in &self.aggregates {
            query = query.aggregate_text(item)?;
        }
        match self.filter {
            Some(filter) => filter.applied(query),
            None => Ok(query),
        }
    }

    /// All but one, for each, and what that is called.
    pub(super) fn all_but_one(&self) -> Vec<(String, Items<'a>)> {
        let mut rest = Vec::new();
        for (at, item) in self.keys.iter().enumerate() {
            let mut items = self.clone();
            items.keys.remove(at);
            rest.push((format!("-k {}", quoted(item)), items));
        }
        for (at, item) in self.aggregates.iter().enumerate() {
            let mut items = self.clone();
            items.aggregates.remove(at);
            rest.push((format!("-a {}", quoted(item)), items));
        }
        if self.filter.is_some_and(FilterFlag::is_set) {
            let items = Items {
                filter: None,
                ..self.clone()
            };
            rest.push(("--where".into(), items));
        }
        rest
    }
}

impl Asked {
    pub(super) fn items(&self) -> Items<'_> {
        fn split(lists: &[String]) -> Vec<&str> {
            let lists = lists.iter();
            lists.flat_map(|list| Columns::items(list)).collect()
        }
        Items {
            keys: split(&self.key),
            aggregates: split(&self.aggregate),
            filter: Some(&self.filter),
        }
    }

    /// Whether there is a query: keys or aggregates.
    pub(super) fn is_query(&self) -> bool {
        !self.key.is_empty() || !self.aggregate.is_empty()
    }

    /// Whether a flag asks something of the records or the answer.
    pub(super) fn flags(&self) -> Vec<(bool, &'static str)> {
        let own = [
            (self.filter.is_set(), "--where"),
            (self.format.is_some(), "--format"),
            (self.output.is_some(), "--output"),
        ];
        let (shown, partials) = (self.shown.flags(), self.partials.flags());
        [&own[..], &shown, &partials].concat()
    }

    /// The form of rows and columns, or that of lines which is asked for.
    pub(super) fn form(&self) -> Result<Form> {
        let format = match self.format {
            Some(Format::Lines(format)) => return Ok(Form::Lines(format)),
            Some(Format::Grid(format)) => Some(format),
            None => None,
        };
        answer_flags::form(format, self.output.as_deref())
    }
}

/// What stands between the queries of a command line.
const NEXT: &str = "--next";

/// One more query.
#[derive(Parser)]
#[command(
    name = "ringfold aggregate ... --next",
    no_binary_name = true,
    disable_help_flag = true
)]
struct Next {
    #[arg(value_name = "FILE")]
    files: Vec<OsString>,
    #[command(flatten)]
    asked: Asked,
}

/// The words of further queries of `aggregate`, which are taken out of those of a command line.
pub(super) fn take_next(words: &mut Vec<OsString>) -> Vec<Vec<OsString>> {
    let end = words.iter().position(|word| word == "--");
    let ends = words[..end.unwrap_or(words.len())].iter();
    let Some(first) = ends.clone().position(|word| word == NEXT) else {
        return Vec::new();
    };
    if words.get(1).is_none_or(|command| command != "aggregate") {
        return Vec::new();
    }
    let rest = words.split_off(first);
    let parts = rest[1..].split(|word| word == NEXT);
    parts.map(<[OsString]>::to_vec).collect()
}

/// Reads further queries; the files among their words go to `files`.
///
/// # Errors
/// There is none in the words, or they have other flags.
pub(super) fn further(parts: Vec<Vec<OsString>>, files: &mut Vec<PathBuf>) -> Result<Vec<Asked>> {
    let queries = parts.into_iter().map(|words| {
        let next = one(words)?;
        files.extend(next.files.into_iter().map(PathBuf::from));
        Ok(next.asked)
    });
    queries.collect()
}

fn one(words: Vec<OsString>) -> Result<Next> {
    let matches = with_negative_numbers(Next::command()).try_get_matches_from(words);
    let next = matches.and_then(|matches| Next::from_arg_matches(&matches));
    let next = next.map_err(|error| {
        let word = error.get(ContextKind::InvalidArg);
        let why = match (error.kind(), word) {
            (ErrorKind::UnknownArgument, Some(word)) => format!(
                "{word} isn't a flag of one query, as -k, -a, --where, --sort, -f and -o are: flags for all queries stand \
                 before the first --next"
            ),
            _ => line_of(&error),
        };
        usage(why)
    })?;
    match next.asked.is_query() {
        true => Ok(next),
        false => Err(usage(
            "each query names columns to group by with -k, or what to compute with -a",
        )),
    }
}

/// The queries in a file: a line has the flags of one, as for a shell. Empty lines, and those that begin with `#`, are left out.
///
/// # Errors
/// The file can't be read, or a line isn't a query.
pub(super) fn of_file(path: &Path) -> Result<Vec<Asked>> {
    let name = visible(path.as_os_str().as_bytes());
    let bytes = fs::read(path).map_err(|error| about(path, &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        usage(format!("{name}: byte {at} isn't UTF-8, and queries are"))
    })?;
    let mut queries = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let refused = |why: &str| usage(format!("{name} line {number}: {why}"));
        let words = shlex::split(line).ok_or_else(|| refused("a quote isn't closed"))?;
        let words = words.into_iter().map(OsString::from).collect();
        let next = one(words).map_err(|error| refused(&error.to_string()))?;
        if let Some(file) = next.files.first() {
            let file = visible(file.as_bytes());
            return Err(refused(&format!(
                "`{file}` is no flag, and files to read stand on the command line"
            )));
        }
        queries.push(next.asked);
    }
    Ok(queries)
}
