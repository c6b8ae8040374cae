//! Writes a summary as text, in one of several styles. Keys are written byte for byte as they were read.
//!
//! If keys were spilled, a failed read is only known when the whole answer has been written.

pub mod grid;

use std::io::{self, Write};

use rayon::ThreadPool;

use crate::group::summary::{Entry, Summary, SummaryPart};
use crate::output::ordered::make_in_order;

/// A style of report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `{key=min/mean/max, key=min/mean/max}` and a newline: the challenge's.
    OneBrc,
    /// The same over many lines, its mean computed in doubles, no newline at the end.
    Hovinen,
    /// `City | key | min | mean | max`, a line a key, two decimals.
    Lines,
}

impl Format {
    /// The default number of decimals.
    pub fn decimals(self) -> u32 {
        match self {
            Format::OneBrc | Format::Hovinen => 1,
            Format::Lines => 2,
        }
    }
}

/// The fewest bytes that are written at once.
const BUFFER: usize = 1 << 16;
/// Parts of a large answer whose text may wait to be written, for each thread.
const AHEAD: usize = 2;

/// Writes `summary` in `format`, at the format's decimals.
///
/// # Errors
/// The errors of `out`; at the end, that of [`Summary::check`].
pub fn write(summary: &Summary, format: Format, out: &mut impl Write) -> io::Result<()> {
    write_with(summary, format, format.decimals(), None, out)
}

/// Writes `summary` in `format`, at `decimals`; if it is large, the threads of a `pool` make the text.
///
/// # Errors
/// The errors of `out`; at the end, that of [`Summary::check`].
pub fn write_with(
    summary: &Summary,
    format: Format,
    decimals: u32,
    pool: Option<&ThreadPool>,
    out: &mut impl Write,
) -> io::Result<()> {
    let (open, close) = match format {
        Format::OneBrc => ("{", "}\n"),
        // An empty answer in this style is `{` newline `}`.
        Format::Hovinen if summary.is_empty() => ("{", "\n}"),
        Format::Hovinen => ("{\n    ", "\n}"),
        Format::Lines => ("", ""),
    };
    let style = Style { format, decimals };
    let parts = summary.parts();
    out.write_all(open.as_bytes())?;
    match pool {
        Some(pool) if parts.len() > 1 => write_parts(&parts, style, pool, out)?,
        _ => {
            let mut text = Vec::with_capacity(2 * BUFFER);
            for (number, entry) in summary.entries().enumerate() {
                style.push(&entry, number == 0, &mut text);
                if text.len() >= BUFFER {
                    out.write_all(&text)?;
                    text.clear();
                }
            }
            out.write_all(&text)?;
        }
    }
    out.write_all(close.as_bytes())?;
    summary.check().map_err(io::Error::other)
}

/// Writes the parts in order while the pool's threads make the text of those that follow.
fn write_parts(
    parts: &[SummaryPart<'_>],
    style: Style,
    pool: &ThreadPool,
    out: &mut impl Write,
) -> io::Result<()> {
    let ahead = AHEAD * pool.current_num_threads();
    let make = |number: u64, text: &mut Vec<u8>| {
        text.clear();
        for (at, entry) in parts[number as usize].entries().enumerate() {
            style.push(&entry, (number, at) == (0, 0), text);
        }
    };
    let mut written = Ok(());
    make_in_order(pool, parts.len() as u64, ahead as u64, make, |_, text| {
        written = out.write_all(text);
        written.is_ok()
    });
    written
}

/// How an entry is written.
#[derive(Clone, Copy)]
struct Style {
    format: Format,
    decimals: u32,
}

impl Style {
    /// Appends an entry, with the separator before all but the answer's first.
    fn push(self, entry: &Entry<'_>, first: bool, text: &mut Vec<u8>) {
        let Style { format, decimals } = self;
        let between = match format {
            _ if first => "",
            Format::OneBrc => ", ",
            Format::Hovinen => ",\n    ",
            Format::Lines => "",
        };
        text.extend_from_slice(between.as_bytes());
        let around = match format {
            Format::OneBrc | Format::Hovinen => ["", "=", "/", "/", ""],
            Format::Lines => ["City | ", " | ", " | ", " | ", "\n"],
        };
        let [before, after_key, after_min, after_mean, end] = around.map(str::as_bytes);
        text.extend_from_slice(before);
        text.extend_from_slice(entry.key());
        text.extend_from_slice(after_key);
        entry.min().round(decimals).push_to(text);
        text.extend_from_slice(after_min);
        if format == Format::Hovinen {
            let mean = entry.sum().tenths_f64() / 10.0 / entry.count() as f64;
            // Writing to a vector can't fail.
            let _ = write!(text, "{mean:.0$}", decimals as usize);
        } else {
            entry.mean(decimals).push_to(text);
        }
        text.extend_from_slice(after_mean);
        entry.max().round(decimals).push_to(text);
        text.extend_from_slice(end);
    }
}
