//! A description as a table for people: a line for each column of the input, with as much of it as lines have room for.

use std::fmt;

use ringfold_read::internals::{units::counted, units::grouped, visible};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::query::describe::{ColumnDescription, Description, Owned, PARTS};
use crate::query::explain::Values;
use crate::query::overview::Column;
use crate::report::grid::{Cell, GridFormat, Rows, table_width, write_grid};

/// The width of a name and of a value at most, and in narrow tables.
const WIDE: usize = 20;
const NARROW: usize = 12;
/// The last column has this part of a line at least.
const LAST: usize = 3;
/// What isn't this part of all values isn't frequent among numbers.
const FREQUENT: u64 = 20;
/// Eighths of a letter's height, and signs in their place.
const EIGHTHS: [char; PARTS] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SIGNS: [char; PARTS] = ['.', ':', '-', '=', '+', 'x', '%', '#'];

/// A column of the table, and how early it is left out where there is no room for it: the greatest first.
type Field = (
    &'static str,
    u8,
    fn(&Column, &ColumnDescription, usize) -> Owned,
);

const FIELDS: [Field; 10] = [
    ("name", 0, |column, _, width| {
        let name = column.name.as_ref();
        let name = name.map_or(column.number.to_string(), |name| visible(name).into_owned());
        Owned::Text(cut(&name, width).into())
    }),
    ("type", 0, |_, of, _| {
        let name = of.type_name();
        Owned::Text(match of.others {
            0 => name.into(),
            others => format!("{name}, {} other", grouped(others)).into(),
        })
    }),
    ("nulls", 1, |_, of, _| number(grouped(of.nulls))),
    ("distinct", 2, |_, of, _| {
        number(estimate(of.is_distinct_estimated, &grouped(of.distinct)))
    }),
    ("least", 3, |_, of, width| value(&of.least, false, width)),
    ("p25", 6, |_, of, width| {
        value(&of.quartiles[0], of.has_estimated_quartiles(), width)
    }),
    ("median", 5, |_, of, width| {
        value(&of.quartiles[1], of.has_estimated_quartiles(), width)
    }),
    ("p75", 6, |_, of, width| {
        value(&of.quartiles[2], of.has_estimated_quartiles(), width)
    }),
    ("greatest", 3, |_, of, width| {
        value(&of.greatest, false, width)
    }),
    ("mean", 4, |_, of, width| value(&of.mean, false, width)),
];

/// A text that stands on the right, as numbers do.
fn number(text: String) -> Owned {
    Owned::Number(text.into())
}

fn estimate(is_one: bool, text: &str) -> String {
    format!("{}{text}", if is_one { "~" } else { "" })
}

fn value(value: &Owned, is_estimate: bool, width: usize) -> Owned {
    match value {
        Owned::Null => Owned::Text(Vec::new()),
        Owned::Text(text) => Owned::Text(cut(&visible(text), width).into()),
        Owned::Number(digits) => {
            Owned::Text(cut(&estimate(is_estimate, &digits.text()), width).into())
        }
    }
}

/// As much of a text as fits a width.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.into();
    }
    let mut left = width.saturating_sub(1);
    let fits = text.chars().take_while(|letter| {
        let width = letter.width().unwrap_or(0);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    });
    fits.chain(['…']).collect()
}

/// Rows of the table.
struct Table(Vec<Vec<Owned>>);

impl Rows for Table {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>) {
        cells.clear();
        cells.extend(self.0[at].iter().map(Owned::cell));
    }
}

impl Description {
    /// Writes it as tables of at most so many letters a line, if that is enough for them. `is_ascii` draws histograms in ASCII.
    ///
    /// # Errors
    /// `to` can't be written.
    pub fn write(&self, width: usize, is_ascii: bool, to: &mut dyn fmt::Write) -> fmt::Result {
        for (name, fact) in &self.overview.facts {
            match *name {
                "looked at" => {}
                name => writeln!(to, "{name:13} {fact}")?,
            }
        }
        let left_out = [
            (self.skipped, "malformed"),
            (self.filtered, "left out by the condition"),
        ];
        let left_out = left_out.iter().filter(|(count, _)| *count > 0);
        let left_out: String = left_out
            .map(|(count, why)| format!(", {} more {why}", grouped(*count)))
            .collect();
        let records = counted(self.overview.records as u64, "record");
        writeln!(to, "{:13} {records}{left_out}\n", "described")?;
        let plans = (0..=6)
            .rev()
            .flat_map(|most| [(most, WIDE), (most, NARROW)]);
        let mut tables = plans.map(|(most, limit)| self.fields(most, limit));
        let fits = |(names, table): &(Vec<Vec<u8>>, Table)| {
            table_width(names, table) + 2 + width / LAST <= width
        };
        let found = tables.find(fits);
        let (mut names, mut table) = found.unwrap_or_else(|| self.fields(0, NARROW));
        let left = width
            .saturating_sub(table_width(&names, &table) + 2)
            .max(PARTS);
        names.push(b"values".to_vec());
        for (row, of) in table.0.iter_mut().zip(&self.columns) {
            row.push(Owned::Text(of.seen(left, is_ascii).into()));
        }
        let mut text = Vec::new();
        write_grid(&names, &table, GridFormat::Table, None, &mut text).map_err(|_| fmt::Error)?;
        to.write_str(&String::from_utf8_lossy(&text))
    }

    /// The table without its last column: fields up to a rank, with values of up to so many letters.
    fn fields(&self, most: u8, limit: usize) -> (Vec<Vec<u8>>, Table) {
        let fields = || FIELDS.iter().filter(|(_, rank, _)| *rank <= most);
        let rows = self.overview.columns.iter().zip(&self.columns);
        let rows =
            rows.map(|(column, of)| fields().map(|(.., cell)| cell(column, of, limit)).collect());
        let names = fields().map(|(name, ..)| name.as_bytes().to_vec());
        (names.collect(), Table(rows.collect()))
    }
}

impl ColumnDescription {
    fn is_frequent(&self, count: u64) -> bool {
        count > 1 && (self.values == Values::Texts || count >= self.count / FREQUENT)
    }

    /// What its values look like, in so many letters: a histogram, and the most frequent ones.
    fn seen(&self, width: usize, is_ascii: bool) -> String {
        let mut seen = match &self.parts {
            Some(parts) => drawn(parts, is_ascii),
            None => String::new(),
        };
        let gap = if seen.is_empty() { 0 } else { 2 };
        let most = match &self.top {
            Some(top)
                if top
                    .first()
                    .is_some_and(|(_, count)| self.is_frequent(*count)) =>
            {
                let mut listed = String::new();
                for (value, count) in top {
                    let value = cut(&visible(value), WIDE);
                    let next = format!(
                        "{}{value} ({})",
                        if listed.is_empty() { "" } else { ", " },
                        grouped(*count)
                    );
                    let left = width.saturating_sub(PARTS.min(seen.width()) + gap + listed.width());
                    if next.width() > left {
                        break;
                    }
                    listed += &next;
                }
                listed
            }
            _ if self.parts.is_none() && !self.first.is_empty() => {
                let left = width.saturating_sub(EXAMPLE.len());
                format!(
                    "{EXAMPLE}{}",
                    cut(&visible(&self.first), left.min(2 * WIDE))
                )
            }
            _ => String::new(),
        };
        if !most.is_empty() {
            seen += &" ".repeat(gap);
            seen += &most;
        }
        seen
    }
}

/// What stands before the first value, where no value is frequent.
const EXAMPLE: &str = "such as ";

/// Counts as columns to the scale of the greatest; what isn't zero has a mark.
pub(super) fn drawn(parts: &[u64; PARTS], is_ascii: bool) -> String {
    let marks = if is_ascii { SIGNS } else { EIGHTHS };
    let most = parts.iter().copied().max().unwrap_or(0).max(1);
    let mark = |count: &u64| match count {
        0 => ' ',
        count => {
            let part = (u128::from(*count) * PARTS as u128).div_ceil(u128::from(most));
            marks[part as usize - 1]
        }
    };
    parts.iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use ringfold_read::{Config, Input, fold};

    use super::*;
    use crate::query::ask::Query;

    fn written(text: &str, width: usize) -> String {
        let (input, config) = (Input::memory([text.as_bytes()]), Config::default());
        let describe = Query::likely(b',').describe(&input, &config).unwrap();
        let (answer, _) = fold(&input, &config, &describe.plan).unwrap();
        let description = describe.of(&answer).unwrap();
        let mut table = String::new();
        description.write(width, false, &mut table).unwrap();
        let (_, table) = table.split_once("\n\n").unwrap();
        table.into()
    }

    #[test]
    fn lines_are_no_longer_than_a_terminal() {
        let mut text = "name,price,a column whose name is longer than most,日本語\n".to_string();
        for at in 0..300 {
            let price = at as f64 * 1.25 - 7.0;
            text += &format!(
                "customer {at},{price},2026-03-12T06:25:{:02}Z,東京 {}\n",
                at % 60,
                at % 7
            );
        }
        let mut fields = 0;
        for width in [60, 72, 80, 100, 120, 160] {
            let table = written(&text, width);
            assert_eq!(table.lines().count(), 6, "{table}");
            let widest = table.lines().map(UnicodeWidthStr::width).max();
            assert!(widest <= Some(width), "{width}:\n{table}");
            let own = table
                .split_whitespace()
                .take_while(|word| *word != "values")
                .count();
            assert!(own >= fields, "{width}:\n{table}");
            fields = own;
        }
        assert_eq!(fields, FIELDS.len());
        assert!(written(&text, 80).contains("東京 0 (43)"));
    }

    #[test]
    fn texts_are_cut_by_their_width() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("東京東京", 6), "東京…");
        assert_eq!(drawn(&[0, 1, 2, 4, 8, 800, 799, 400], false), " ▁▁▁▁██▄");
        assert_eq!(drawn(&[0, 1, 2, 4, 8, 800, 799, 400], true), " ....##=");
    }
}
