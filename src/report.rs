//! A summary as text, byte for byte as each style has it. Keys are written as they stood.
//!
//! An answer of which keys were spilled is known to be right when all of it is written, not before.

use crate::fold::aggregate::{Entry, Summary};
use std::io::{self, Write};

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
    /// Decimals unless told otherwise.
    pub fn decimals(self) -> u32 {
        match self {
            Format::OneBrc | Format::Hovinen => 1,
            Format::Lines => 2,
        }
    }
}

const BUFFER: usize = 1 << 16;

/// Writes `summary` in `format`, at the format's decimals.
///
/// # Errors
/// Whatever `out` fails with; at the end, [`Summary::check`]'s.
pub fn write(summary: &Summary, format: Format, out: &mut impl Write) -> io::Result<()> {
    write_with(summary, format, format.decimals(), out)
}

/// Writes `summary` in `format`, at `decimals`.
///
/// # Errors
/// Whatever `out` fails with; at the end, [`Summary::check`]'s.
pub fn write_with(
    summary: &Summary,
    format: Format,
    decimals: u32,
    out: &mut impl Write,
) -> io::Result<()> {
    let (open, between, close) = match format {
        Format::OneBrc => ("{", ", ", "}\n"),
        Format::Hovinen => ("{\n    ", ",\n    ", "\n}"),
        Format::Lines => ("", "", ""),
    };
    // An empty answer of this style is `{` newline `}`.
    let open = if format == Format::Hovinen && summary.is_empty() {
        "{"
    } else {
        open
    };
    let mut text = Vec::with_capacity(2 * BUFFER);
    text.extend_from_slice(open.as_bytes());
    let mut first = true;
    for entry in summary.entries() {
        if !std::mem::take(&mut first) {
            text.extend_from_slice(between.as_bytes());
        }
        match format {
            Format::OneBrc => {
                push(
                    &mut text,
                    &entry,
                    ["", "=", "/", "/", ""],
                    decimals,
                    |entry, text| {
                        entry.mean(decimals).push_to(text);
                    },
                );
            }
            Format::Hovinen => {
                push(
                    &mut text,
                    &entry,
                    ["", "=", "/", "/", ""],
                    decimals,
                    |entry, text| {
                        let mean = entry.sum().tenths_f64() / 10.0 / entry.count() as f64;
                        // Writing to a vector can't fail.
                        let _ = write!(text, "{mean:.0$}", decimals as usize);
                    },
                );
            }
            Format::Lines => {
                let around = ["City | ", " | ", " | ", " | ", "\n"];
                push(&mut text, &entry, around, decimals, |entry, text| {
                    entry.mean(decimals).push_to(text);
                });
            }
        }
        if text.len() >= BUFFER {
            out.write_all(&text)?;
            text.clear();
        }
    }
    text.extend_from_slice(close.as_bytes());
    out.write_all(&text)?;
    summary.check().map_err(io::Error::other)
}

#[inline(always)]
fn push(
    text: &mut Vec<u8>,
    entry: &Entry<'_>,
    around: [&str; 5],
    decimals: u32,
    mean: impl Fn(&Entry<'_>, &mut Vec<u8>),
) {
    let [before, after_key, after_min, after_mean, end] = around.map(str::as_bytes);
    text.extend_from_slice(before);
    text.extend_from_slice(entry.key());
    text.extend_from_slice(after_key);
    entry.min().round(decimals).push_to(text);
    text.extend_from_slice(after_min);
    mean(entry, text);
    text.extend_from_slice(after_mean);
    entry.max().round(decimals).push_to(text);
    text.extend_from_slice(end);
}
