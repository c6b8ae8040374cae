//! A table for people: texts on the left of their column, numbers with their points below each other.

use ringfold_read::internals::visible;

use crate::report::grid::cell::{Cell, TOTAL};
use crate::report::grid::columns::{Column, NULL, width as text_width};

/// Blanks between two columns.
pub(super) const GAP: usize = 2;

/// Appends the names and the rule below them. A name stands where the column's cells do.
pub(super) fn header(names: &[Vec<u8>], columns: &[Column], out: &mut Vec<u8>) {
    let mut line = Line::new(out);
    for (name, column) in names.iter().zip(columns) {
        let name = visible(name);
        let rest = column.width() - text_width(&name);
        let (before, after) = match column.has_numbers {
            true => (rest, 0),
            false => (0, rest),
        };
        line.put(before, &name, after + GAP);
    }
    line.end();
    let mut line = Line::new(out);
    for column in columns {
        line.put(0, &"-".repeat(column.width()), GAP);
    }
    line.end();
}

/// Appends a row.
pub(super) fn row(columns: &[Column], cells: &[Cell<'_>], out: &mut Vec<u8>) {
    let mut line = Line::new(out);
    for (cell, column) in cells.iter().zip(columns) {
        let mut number = |text: &str, (whole, fraction): (usize, usize)| {
            let after = column.fraction - fraction;
            let before = column.width() - column.fraction - whole;
            line.put(before, text, after + GAP);
        };
        match cell {
            Cell::Number(digits) => number(&digits.text(), digits.lengths()),
            Cell::Null if column.has_numbers => number(NULL, (NULL.len(), 0)),
            Cell::Null => line.put(0, NULL, column.width() - NULL.len() + GAP),
            Cell::Total => line.put(0, TOTAL, column.width() - TOTAL.len() + GAP),
            Cell::Text(text) | Cell::Json(text) => {
                let text = visible(text);
                line.put(0, &text, column.width() - text_width(&text) + GAP);
            }
        }
    }
    line.end();
}

/// The width of all columns.
pub(super) fn width(columns: &[Column]) -> usize {
    let widths = columns.iter().map(Column::width).sum::<usize>();
    widths + GAP * columns.len().saturating_sub(1)
}

/// Appends a row as a line for each column, after an empty line if it isn't the first.
#[cfg(feature = "cli")]
pub(super) fn upright(names: &[Vec<u8>], cells: &[Cell<'_>], is_first: bool, out: &mut Vec<u8>) {
    let names: Vec<_> = names.iter().map(|name| visible(name)).collect();
    let widest = names.iter().map(|name| text_width(name)).max().unwrap_or(0);
    if !is_first {
        out.push(b'\n');
    }
    for (name, cell) in names.iter().zip(cells) {
        let mut line = Line::new(out);
        line.put(0, name, widest - text_width(name) + GAP);
        match cell {
            Cell::Null => line.put(0, NULL, 0),
            Cell::Total => line.put(0, TOTAL, 0),
            Cell::Number(number) => line.put(0, &number.text(), 0),
            Cell::Text(text) | Cell::Json(text) => line.put(0, &visible(text), 0),
        }
        line.end();
    }
}

/// A line in the making, without blanks at its end.
struct Line<'a> {
    out: &'a mut Vec<u8>,
    /// Blanks before whatever comes next.
    blanks: usize,
}

impl<'a> Line<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        Line { out, blanks: 0 }
    }

    fn put(&mut self, before: usize, text: &str, after: usize) {
        self.blanks += before;
        if !text.is_empty() {
            self.out.resize(self.out.len() + self.blanks, b' ');
            self.out.extend_from_slice(text.as_bytes());
            self.blanks = 0;
        }
        self.blanks += after;
    }

    fn end(self) {
        self.out.push(b'\n');
    }
}
