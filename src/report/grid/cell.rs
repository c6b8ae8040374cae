//! What an answer with any columns is made of.

use std::ops::{Deref, Range};

use crate::report::grid::digits::Digits;

/// What stands for [`Cell::Total`] in texts.
pub(super) const TOTAL: &str = "total";

/// A field of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// There is no value.
    Null,
    /// The first key of a row over all records: `total`, or null where a format tells one from texts.
    Total,
    /// Any bytes, UTF-8 or not.
    Text(&'a [u8]),
    /// A JSON value, which formats of JSON have as it is, and others as a text.
    Json(&'a [u8]),
    /// A decimal: `-?digits(.digits)?`, or a double's shortest form, which may have an exponent after it: `1e-7`.
    Number(Digits<'a>),
}

impl Cell<'_> {
    /// Appends a number's digits, what `push_text` makes of a text, and nothing for a null.
    #[inline(always)]
    pub(crate) fn push(&self, push_text: impl Fn(&[u8], &mut Vec<u8>), out: &mut Vec<u8>) {
        match self {
            Cell::Null => (),
            Cell::Total => push_text(TOTAL.as_bytes(), out),
            Cell::Text(text) | Cell::Json(text) => push_text(text, out),
            Cell::Number(number) => number.push(out),
        }
    }

    /// The most bytes of its text.
    pub(super) fn len_max(&self) -> usize {
        match self {
            Cell::Null => 0,
            Cell::Total => TOTAL.len(),
            Cell::Text(text) | Cell::Json(text) => text.len(),
            Cell::Number(number) => number.len_max(),
        }
    }
}

/// The rows of an answer. Some formats ask for each row twice.
pub trait Rows: Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Says that row `at` is asked for soon, so that what it needs can be fetched into the cache.
    fn prefetch(&self, at: usize) {
        let _ = at;
    }

    /// Some of the rows, with the same numbers, where these are faster to read: the first of them, and what is at hand of
    /// the others. They are asked for before [`Rows::row`].
    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Rows + '_>> {
        let _ = rows;
        None
    }

    /// Clears `cells` and fills them with row `at`, a cell for each column.
    fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>);
}

/// Rows that are borrowed or shared.
impl<P: Deref<Target: Rows> + Sync> Rows for P {
    fn len(&self) -> usize {
        (**self).len()
    }

    fn prefetch(&self, at: usize) {
        (**self).prefetch(at);
    }

    fn part(&self, rows: Range<usize>) -> Option<Box<dyn Rows + '_>> {
        (**self).part(rows)
    }

    fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>) {
        (**self).row(at, cells);
    }
}
