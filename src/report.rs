//! Writes an answer of a key, its least, mean and greatest number as text, in one of several styles. Keys are written byte
//! for byte as they were read.

pub mod grid;

use std::io::{self, Write};

use rayon::ThreadPool;

use crate::report::grid::{Cell, Grid, Rows};

/// A style of report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Format {
    /// `{key=min/mean/max, key=min/mean/max}` and a newline: the challenge's.
    #[cfg_attr(
        feature = "cli",
        value(
            name = "1brc",
            help = "{key=min/mean/max, ...} on one line, as the One Billion Row Challenge has it"
        )
    )]
    OneBrc,
    /// The same over many lines, its mean computed in doubles, no newline at the end.
    #[cfg_attr(
        feature = "cli",
        value(help = "The same with a line for each key; its mean is computed in doubles")
    )]
    Hovinen,
    /// `City | key | min | mean | max`, a line a key, two decimals.
    #[cfg_attr(feature = "cli", value(help = "City | key | min | mean | max"))]
    Lines,
}

impl Format {
    /// How many decimals its numbers have.
    pub fn decimals(self) -> u32 {
        match self {
            Format::OneBrc | Format::Hovinen => 1,
            Format::Lines => 2,
        }
    }

    /// What stands between two entries.
    fn between(self) -> &'static [u8] {
        match self {
            Format::OneBrc => b", ",
            Format::Hovinen => b",\n    ",
            Format::Lines => b"",
        }
    }

    /// What stands around the four cells of an entry.
    fn around(self) -> [&'static [u8]; 5] {
        match self {
            Format::OneBrc | Format::Hovinen => [b"", b"=", b"/", b"/", b""],
            Format::Lines => [b"City | ", b" | ", b" | ", b" | ", b"\n"],
        }
    }

    /// Appends an entry, with the separator before all but the answer's first.
    fn push(self, at: usize, cells: &[Cell<'_>], text: &mut Vec<u8>) {
        if at > 0 {
            text.extend_from_slice(self.between());
        }
        let [first, around @ ..] = self.around();
        text.extend_from_slice(first);
        for (cell, after) in cells.iter().zip(around) {
            cell.push(|key, text| text.extend_from_slice(key), text);
            text.extend_from_slice(after);
        }
    }
}

/// Writes rows of a key and three numbers in `format`; if they are many, the threads of a `pool` make the text.
/// [`Answer::set_lines`](crate::query::Answer::set_lines) makes such rows.
///
/// # Errors
/// The errors of `out`.
pub fn write(
    rows: &dyn Rows,
    format: Format,
    pool: Option<&ThreadPool>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (open, close) = match format {
        Format::OneBrc => ("{", "}\n"),
        // An empty answer in this style is `{` newline `}`.
        Format::Hovinen if rows.is_empty() => ("{", "\n}"),
        Format::Hovinen => ("{\n    ", "\n}"),
        Format::Lines => ("", ""),
    };
    out.write_all(open.as_bytes())?;
    let push = |at: usize, cells: &[Cell<'_>], text: &mut Vec<u8>| format.push(at, cells, text);
    let grid = Grid {
        columns: 4,
        rows,
        pool,
    };
    grid.write(push, out)?;
    out.write_all(close.as_bytes())
}
