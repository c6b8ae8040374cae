//! A table whose last column of numbers is drawn: a bar a row, to the scale of all.

use std::ops::Range;

use rayon::ThreadPool;

use crate::report::grid::cell::{Cell, Rows};
use crate::report::grid::columns::Column;
use crate::report::grid::parts::fold_columns;
use crate::report::grid::table;

/// The width of the lines where the table leaves enough of it, and the narrowest bars.
const WIDTH: usize = 80;
const LEAST: usize = 10;
/// Parts of a letter's width.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
const FULL: &str = "█";

/// How numbers are drawn.
pub(super) struct Bars {
    /// The column that is drawn.
    column: usize,
    /// Letters before the line at zero and after it.
    before: usize,
    after: usize,
    /// Eighths of a letter for one.
    scale: f64,
    /// The width of the table.
    table: usize,
}

/// The least and the greatest number of a column, and zero.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Extremes {
    pub(super) least: f64,
    pub(super) greatest: f64,
}

impl Extremes {
    pub(super) fn add(&mut self, cell: &Cell<'_>) {
        if let Some(value) = value(cell) {
            self.least = self.least.min(value);
            self.greatest = self.greatest.max(value);
        }
    }

    pub(super) fn merge(&mut self, other: &Extremes) {
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
    }
}

/// A number as a double, unless that isn't finite.
pub(super) fn value(cell: &Cell<'_>) -> Option<f64> {
    match cell {
        Cell::Number(number) => Some(number.as_f64()).filter(|value| value.is_finite()),
        Cell::Null | Cell::Total | Cell::Text(_) | Cell::Json(_) => None,
    }
}

/// All rows but that over all records, beside which bars would be short.
pub(super) struct BeforeTotal<'a> {
    rows: &'a dyn Rows,
    len: usize,
}

impl BeforeTotal<'_> {
    pub(super) fn of(rows: &dyn Rows) -> BeforeTotal<'_> {
        let mut cells = Vec::new();
        if let Some(last) = rows.len().checked_sub(1) {
            rows.row(last, &mut cells);
        }
        let has_total = cells.first() == Some(&Cell::Total);
        BeforeTotal {
            rows,
            len: rows.len() - usize::from(has_total),
        }
    }
}

impl Rows for BeforeTotal<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn prefetch(&self, at: usize) {
        self.rows.prefetch(at);
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Rows + '_>> {
        self.rows.part(rows)
    }

    fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>) {
        self.rows.row(at, cells);
    }
}

impl Bars {
    /// Those of the last column that has numbers; `None` where no column has some.
    pub(super) fn new(
        columns: &[Column],
        rows: &dyn Rows,
        pool: Option<&ThreadPool>,
    ) -> Option<Bars> {
        let column = columns.iter().rposition(|column| column.has_numbers)?;
        let start = vec![Extremes::default(); columns.len()];
        let rows = BeforeTotal::of(rows);
        let all = fold_columns(&rows, pool, &start, Extremes::add, Extremes::merge);
        let Extremes { least, greatest } = all[column];
        let table = table::width(columns) + table::GAP;
        let width = WIDTH.saturating_sub(table).max(LEAST);
        let range = greatest - least;
        let has_sides = least < 0.0;
        // A side has its line, and rounds to whole letters.
        let before = match has_sides {
            true => (((width - 2) as f64 * -least / range).ceil() as usize).min(width - 2),
            false => 0,
        };
        let after = width - before - 1;
        let per = |letters: usize, size: f64| match size > 0.0 {
            true => letters as f64 / size,
            false => f64::INFINITY,
        };
        let scale = per(before, -least).min(per(after, greatest));
        Some(Bars {
            column,
            before,
            after,
            scale: if scale.is_finite() { 8.0 * scale } else { 0.0 },
            table,
        })
    }

    /// Appends a row with its bar.
    pub(super) fn row(&self, columns: &[Column], cells: &[Cell<'_>], out: &mut Vec<u8>) {
        let start = out.len();
        table::row(columns, cells, out);
        let is_total = cells[0] == Cell::Total;
        let Some(value) = value(&cells[self.column]).filter(|_| !is_total) else {
            return;
        };
        out.pop();
        let line = String::from_utf8_lossy(&out[start..]);
        let blanks = self.table.saturating_sub(super::columns::width(&line));
        let eighths = (value.abs() * self.scale).round() as usize;
        let (letters, rest) = (eighths / 8, eighths % 8);
        let bar = match value < 0.0 {
            // What grows to the left has whole letters only.
            true => {
                let letters = (letters + usize::from(rest >= 4)).min(self.before);
                format!(
                    "{}{}",
                    " ".repeat(self.before - letters),
                    FULL.repeat(letters)
                )
            }
            false => {
                let letters = letters.min(self.after);
                let rest = if letters == self.after {
                    ""
                } else {
                    EIGHTHS[rest]
                };
                format!("{}{}{rest}", " ".repeat(self.before), FULL.repeat(letters))
            }
        };
        let text = format!("{}{bar}", " ".repeat(blanks));
        out.extend_from_slice(text.trim_end().as_bytes());
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::grid::{GridFormat, write_grid};

    struct Table(Vec<(&'static str, &'static str)>);

    impl Rows for Table {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>) {
            let (key, number) = self.0[at];
            cells.clear();
            cells.push(Cell::Text(key.as_bytes()));
            cells.push(match number {
                "" => Cell::Null,
                number => Cell::Number(number.into()),
            });
        }
    }

    fn drawn(rows: &[(&'static str, &'static str)]) -> Vec<String> {
        let names = [b"key".to_vec(), b"n".to_vec()];
        let mut out = Vec::new();
        let table = Table(rows.to_vec());
        write_grid(&names, &table, GridFormat::Bars, None, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().skip(2).map(String::from).collect()
    }

    #[test]
    fn bars_are_to_scale() {
        let lines = drawn(&[
            ("a", "100"),
            ("Zürich", "50"),
            ("c", "1"),
            ("d", ""),
            ("e", "0"),
        ]);
        let bar = |line: &str| line.chars().filter(|letter| *letter == '█').count();
        assert_eq!(lines[0].chars().count(), 80 - 1);
        assert_eq!(bar(&lines[0]), 2 * bar(&lines[1]));
        assert!(
            lines[2].ends_with(['▏', '▎', '▍', '▌', '▋', '▊', '▉']),
            "{}",
            lines[2]
        );
        assert_eq!(lines[3], "d         -");
        assert_eq!(lines[4], "e         0");
    }

    #[test]
    fn numbers_below_zero_go_to_the_left() {
        let lines = drawn(&[("a", "-10"), ("b", "10"), ("c", "-5")]);
        let first = |line: &str| line.chars().position(|letter| letter == '█');
        let bars = |line: &str| line.chars().filter(|letter| *letter == '█').count();
        assert!(first(&lines[0]) < first(&lines[2]) && first(&lines[2]) < first(&lines[1]));
        assert_eq!(bars(&lines[0]), 2 * bars(&lines[2]));
        let none = drawn(&[("a", "-3"), ("b", "-1.5")]);
        assert!(bars(&none[0]) > bars(&none[1]));
    }
}
