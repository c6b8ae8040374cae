//! What the cells of each column have in common: a pass over all rows, before a format writes them.

use rayon::ThreadPool;
use ringfold_read::internals::visible;
use unicode_width::UnicodeWidthStr;

use crate::report::grid::cell::{Cell, Rows, TOTAL};
use crate::report::grid::parts::fold_columns;

/// A column's widths on a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Column {
    /// The name and all texts.
    text: usize,
    /// Numbers, up to the point.
    pub(super) whole: usize,
    /// Numbers, from the point on.
    pub(super) fraction: usize,
    /// It holds a number.
    pub(super) has_numbers: bool,
}

impl Column {
    /// The width of the widest cell, or of the name.
    pub(super) fn width(&self) -> usize {
        self.text.max(self.whole + self.fraction)
    }

    fn add(&mut self, cell: &Cell<'_>) {
        match cell {
            Cell::Null => self.whole = self.whole.max(NULL.len()),
            Cell::Total => self.text = self.text.max(TOTAL.len()),
            Cell::Text(text) | Cell::Json(text) => self.text = self.text.max(width(&visible(text))),
            Cell::Number(number) => {
                let (whole, fraction) = number.lengths();
                self.whole = self.whole.max(whole);
                self.fraction = self.fraction.max(fraction);
                self.has_numbers = true;
            }
        }
    }

    fn merge(&mut self, other: &Column) {
        self.text = self.text.max(other.text);
        self.whole = self.whole.max(other.whole);
        self.fraction = self.fraction.max(other.fraction);
        self.has_numbers |= other.has_numbers;
    }
}

/// A null, for people.
pub(super) const NULL: &str = "-";

/// The columns that `text` takes on a terminal.
pub(super) fn width(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => text.width(),
    }
}

/// The columns of all rows.
pub(super) fn measure(
    names: &[Vec<u8>],
    rows: &dyn Rows,
    pool: Option<&ThreadPool>,
) -> Vec<Column> {
    let named = |name: &Vec<u8>| Column {
        text: width(&visible(name)),
        ..Column::default()
    };
    let start: Vec<Column> = names.iter().map(named).collect();
    fold_columns(rows, pool, &start, Column::add, Column::merge)
}
