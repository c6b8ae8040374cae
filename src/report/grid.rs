//! Writes an answer with any columns, in one of eight formats, or with features in two more.
//!
//! `csv`, `tsv`, `json` and `ndjson` are for programs: what is printed can be read back. `table`, `bars`, `markdown` and
//! `html` are for people. `arrow` and `parquet` are files of typed columns. docs/formats.md says what each of them looks like.

mod bars;
mod cell;
mod columns;
mod csv;
mod digits;
mod html;
mod json;
mod markdown;
mod parts;
mod table;
mod tsv;
#[cfg(feature = "arrow")]
mod typed;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Mutex;

use rayon::ThreadPool;

use crate::output::ordered::make_in_order;
use crate::report::grid::bars::Bars;
use crate::report::grid::columns::measure;
use crate::report::grid::json::Labels;
use crate::report::grid::parts::{parts, range};

pub use crate::report::grid::cell::{Cell, Rows};
pub(crate) use crate::report::grid::csv::push_text as push_csv_text;
pub use crate::report::grid::digits::Digits;
pub(crate) use crate::report::grid::digits::with_point;
pub(crate) use crate::report::grid::json::push_text as push_json_text;
pub use crate::report::grid::parts::for_rows;
#[cfg(feature = "arrow")]
pub use crate::report::grid::typed::Batches;

/// A format of an answer with any columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum GridFormat {
    /// Comma-separated values by RFC 4180, with a header and LF at the lines' ends.
    #[cfg_attr(feature = "cli", value(help = "Comma-separated values with a header"))]
    Csv,
    /// Tab-separated values with a header; `\\`, `\t`, `\n` and `\r` are escapes.
    #[cfg_attr(feature = "cli", value(help = "Tab-separated values with a header"))]
    Tsv,
    /// An array of objects, one a line.
    #[cfg_attr(feature = "cli", value(help = "An array of objects"))]
    Json,
    /// An object a line.
    #[cfg_attr(feature = "cli", value(help = "An object a line"))]
    Ndjson,
    /// Columns aligned for a terminal.
    #[cfg_attr(feature = "cli", value(help = "Aligned columns"))]
    Table,
    /// The same, with a bar for the last number of each row.
    #[cfg_attr(
        feature = "cli",
        value(help = "Aligned columns, and a bar for the last number of each row")
    )]
    Bars,
    /// A table of GitHub's Markdown.
    #[cfg_attr(feature = "cli", value(help = "A table of Markdown"))]
    Markdown,
    /// A page of HTML by itself, whose table can be sorted, with a chart of the last numbers.
    #[cfg_attr(
        feature = "cli",
        value(help = "A page with a table that can be sorted, and a chart of the last numbers")
    )]
    Html,
    /// An Arrow IPC file, also called Feather: typed columns.
    #[cfg(feature = "arrow")]
    #[cfg_attr(feature = "cli", value(help = "An Arrow IPC file (Feather)"))]
    Arrow,
    /// A Parquet file: typed columns.
    #[cfg(feature = "parquet")]
    #[cfg_attr(feature = "cli", value(help = "A Parquet file"))]
    Parquet,
}

impl GridFormat {
    /// All of them.
    pub const ALL: &[GridFormat] = &[
        GridFormat::Csv,
        GridFormat::Tsv,
        GridFormat::Json,
        GridFormat::Ndjson,
        GridFormat::Table,
        GridFormat::Bars,
        GridFormat::Markdown,
        GridFormat::Html,
        #[cfg(feature = "arrow")]
        GridFormat::Arrow,
        #[cfg(feature = "parquet")]
        GridFormat::Parquet,
    ];

    /// Whether it is text, which a terminal can show.
    pub fn is_text(self) -> bool {
        match self {
            #[cfg(feature = "arrow")]
            GridFormat::Arrow => false,
            #[cfg(feature = "parquet")]
            GridFormat::Parquet => false,
            _ => true,
        }
    }
}

/// Parts of a large answer whose text may wait to be written, for each thread.
const AHEAD: usize = 2;
/// The most bytes of all such texts, and of one of them.
const TEXTS_BYTES: usize = 16 << 20;
const TEXT_BYTES: usize = if cfg!(test) { 256 } else { 1 << 20 };

/// Writes `rows`, whose columns have these `names`, in `format`; if they are many, the threads of a `pool` make the text.
///
/// # Errors
/// The errors of `out`; one of [`io::ErrorKind::InvalidInput`] if there is no column.
///
/// # Panics
/// A row has more or fewer cells than there are names.
pub fn write_grid(
    names: &[Vec<u8>],
    rows: &dyn Rows,
    format: GridFormat,
    pool: Option<&ThreadPool>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if names.is_empty() {
        let cause = "an answer without columns";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, cause));
    }
    let grid = Grid {
        columns: names.len(),
        rows,
        pool,
    };
    let mut head = Vec::new();
    let header: Vec<_> = names.iter().map(|name| Cell::Text(name)).collect();
    match format {
        GridFormat::Csv => {
            csv::row(&header, &mut head);
            out.write_all(&head)?;
            grid.write(|_, cells, text| csv::row(cells, text), out)
        }
        GridFormat::Tsv => {
            tsv::row(&header, &mut head);
            out.write_all(&head)?;
            grid.write(|_, cells, text| tsv::row(cells, text), out)
        }
        GridFormat::Json => {
            let labels = Labels::new(names);
            let row = |at: usize, cells: &[Cell<'_>], text: &mut Vec<u8>| {
                text.extend_from_slice(if at == 0 { b"\n" } else { b",\n" });
                labels.row(cells, text);
            };
            out.write_all(b"[")?;
            grid.write(row, out)?;
            out.write_all(b"\n]\n")
        }
        GridFormat::Ndjson => {
            let labels = Labels::new(names);
            let row = |_: usize, cells: &[Cell<'_>], text: &mut Vec<u8>| {
                labels.row(cells, text);
                text.push(b'\n');
            };
            grid.write(row, out)
        }
        GridFormat::Table => {
            let columns = measure(names, rows, pool);
            table::header(names, &columns, &mut head);
            out.write_all(&head)?;
            grid.write(|_, cells, text| table::row(&columns, cells, text), out)
        }
        GridFormat::Bars => {
            let columns = measure(names, rows, pool);
            let bars = Bars::new(&columns, rows, pool);
            table::header(names, &columns, &mut head);
            out.write_all(&head)?;
            let row = |_: usize, cells: &[Cell<'_>], text: &mut Vec<u8>| match &bars {
                Some(bars) => bars.row(&columns, cells, text),
                None => table::row(&columns, cells, text),
            };
            grid.write(row, out)
        }
        GridFormat::Markdown => {
            let columns = measure(names, rows, pool);
            markdown::header(&header, &columns, &mut head);
            out.write_all(&head)?;
            grid.write(|_, cells, text| markdown::row(cells, text), out)
        }
        GridFormat::Html => html::write(names, &grid, "ringfold", true, out),
        #[cfg(feature = "arrow")]
        GridFormat::Arrow => typed::write_arrow(Batches::new(names, rows, pool), out),
        #[cfg(feature = "parquet")]
        GridFormat::Parquet => typed::write_parquet(Batches::new(names, rows, pool), out),
    }
}

/// Writes a page of HTML with a title, and with a chart if `is_drawn`.
///
/// # Errors
/// The errors of `out`.
///
/// # Panics
/// A row has more or fewer cells than there are names.
pub fn write_page(
    names: &[Vec<u8>],
    rows: &dyn Rows,
    title: &str,
    is_drawn: bool,
    pool: Option<&ThreadPool>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let grid = Grid {
        columns: names.len(),
        rows,
        pool,
    };
    html::write(names, &grid, title, is_drawn, out)
}

/// The width of a table.
pub(crate) fn table_width(names: &[Vec<u8>], rows: &dyn Rows) -> usize {
    table::width(&measure(names, rows, None))
}

/// An answer of so few rows is upright where its table is wider than a terminal.
#[cfg(feature = "cli")]
const UPRIGHT_MAX: usize = 10;

/// Writes a table for a terminal of so many columns: a line a column, if it is wider and has few rows.
///
/// # Errors
/// See [`write_grid`].
#[cfg(feature = "cli")]
pub(crate) fn write_table_within(
    names: &[Vec<u8>],
    rows: &dyn Rows,
    terminal: usize,
    pool: Option<&ThreadPool>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let is_short = (1..=UPRIGHT_MAX).contains(&rows.len());
    if !is_short || table::width(&measure(names, rows, pool)) <= terminal {
        return write_grid(names, rows, GridFormat::Table, pool, out);
    }
    let mut text = Vec::new();
    let mut cells = Vec::new();
    for at in 0..rows.len() {
        rows.row(at, &mut cells);
        table::upright(names, &cells, at == 0, &mut text);
    }
    out.write_all(&text)
}

/// Rows on their way to a writer.
pub(crate) struct Grid<'a> {
    /// How many cells a row has.
    pub(crate) columns: usize,
    pub(crate) rows: &'a dyn Rows,
    /// Its threads make the text, if rows are many.
    pub(crate) pool: Option<&'a ThreadPool>,
}

impl Grid<'_> {
    /// Writes all rows in order; `row` appends a row's text.
    pub(crate) fn write(
        &self,
        row: impl Fn(usize, &[Cell<'_>], &mut Vec<u8>) + Sync,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        // Makes the text of rows up to the first one that isn't for it.
        let make = |rows: Range<usize>, text: &mut Vec<u8>, most: usize, row_most: usize| {
            text.clear();
            for_rows(self.rows, rows, self.columns, |at, cells| {
                let fits =
                    text.len() < most && cells.iter().map(Cell::len_max).sum::<usize>() <= row_most;
                if fits {
                    row(at, cells, text);
                }
                fits
            })
        };
        let mut text = Vec::new();
        let mut write = |rows: Range<usize>, out: &mut dyn Write| {
            let mut at = rows.start;
            while at < rows.end {
                at = make(at..rows.end, &mut text, TEXT_BYTES, usize::MAX);
                out.write_all(&text)?;
            }
            Ok(())
        };
        let rows = self.rows.len();
        let parts = parts(rows);
        let Some(pool) = self.pool.filter(|_| parts > 1) else {
            return write(0..rows, out);
        };
        let ahead = AHEAD * pool.current_num_threads();
        let most = (TEXTS_BYTES / ahead).min(TEXT_BYTES);
        // What is too long to wait is made when its turn has come: where each such rest begins.
        let rests = Mutex::new(BTreeMap::new());
        let rests = || rests.lock().unwrap_or_else(|e| e.into_inner());
        let make_part = |part: u64, text: &mut Vec<u8>| {
            let range = range(part as usize, rows);
            let end = range.end;
            let at = make(range, text, most, most);
            if at < end {
                rests().insert(part, at..end);
            }
        };
        let mut written = Ok(());
        make_in_order(pool, parts as u64, ahead as u64, make_part, |part, text| {
            let rest = rests().remove(&part).unwrap_or_default();
            written = out.write_all(text).and_then(|()| write(rest, out));
            written.is_ok()
        });
        written
    }
}

#[cfg(test)]
mod tests;
