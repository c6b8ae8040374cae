//! Rows in parts, for the threads of a pool.

use std::ops::Range;

use rayon::ThreadPool;
use rayon::prelude::*;

use crate::report::grid::cell::{Cell, Rows};

/// How many rows are made text at once: of an answer in so many parts, but no fewer and no more than these.
const PARTS: usize = 64;
pub(super) const ROWS: Range<usize> = 512..4096;

/// How many rows ahead of their turn rows are prefetched.
const AHEAD: usize = 16;

/// How many parts so many rows are.
pub(super) fn parts(rows: usize) -> usize {
    rows.div_ceil(rows_of_part(rows))
}

/// The rows of a part.
pub(super) fn range(part: usize, rows: usize) -> Range<usize> {
    let each = rows_of_part(rows);
    part * each..rows.min((part + 1) * each)
}

fn rows_of_part(rows: usize) -> usize {
    (rows / PARTS).clamp(ROWS.start, ROWS.end)
}

/// Gives some rows to `each`, with their numbers, until it doesn't take one. Returns the first that wasn't taken. Rows that
/// lie in a file are read in parts.
///
/// ```
/// use ringfold::query::Query;
/// use ringfold::report::grid::{Cell, for_rows};
/// use ringfold::{Config, Input, fold};
///
/// let input = Input::memory([&b"Bern;7.5\nOslo;-3.0\nBern;8.5\n"[..]]);
/// let config = Config::default();
/// let query = Query::new(b';').key(1).aggregate("sum", Some(2.into()))?;
/// let (answer, _) = fold(&input, &config, &query.plan(&input, &config)?)?;
/// let mut sums = Vec::new();
/// for_rows(&answer, 0..2, 2, |_, cells| {
///     let Cell::Number(sum) = &cells[1] else {
///         return false;
///     };
///     sums.push((sum.as_decimal(), sum.as_f64()));
///     true
/// });
/// assert_eq!(sums, [(Some((160, 1)), 16.0), (Some((-30, 1)), -3.0)]);
/// # Ok::<(), ringfold::Error>(())
/// ```
///
/// # Panics
/// A row hasn't `columns` cells.
pub fn for_rows(
    rows: &dyn Rows,
    Range { start, end }: Range<usize>,
    columns: usize,
    mut each: impl FnMut(usize, &[Cell<'_>]) -> bool,
) -> usize {
    let mut at = start;
    while at < end {
        let part = rows.part(at..end);
        let rows = part.as_deref().unwrap_or(rows);
        let part_end = end.min(rows.len());
        let mut cells = Vec::with_capacity(columns);
        while at < part_end {
            if at + AHEAD < part_end {
                rows.prefetch(at + AHEAD);
            }
            rows.row(at, &mut cells);
            assert_eq!(cells.len(), columns, "the cells of row {at}");
            if !each(at, &cells) {
                return at;
            }
            at += 1;
        }
    }
    end
}

/// What the cells of each column have in common, beginning with `start`, which has a value for each column.
pub(super) fn fold_columns<T: Clone + Send + Sync>(
    rows: &dyn Rows,
    pool: Option<&ThreadPool>,
    start: &[T],
    add: impl Fn(&mut T, &Cell<'_>) + Sync + Send,
    merge: impl Fn(&mut T, &T) + Sync + Send,
) -> Vec<T> {
    let part = |mut columns: Vec<T>, part| {
        for_rows(rows, range(part, rows.len()), start.len(), |_, cells| {
            let columns = columns.iter_mut().zip(cells);
            columns.for_each(|(column, cell)| add(column, cell));
            true
        });
        columns
    };
    let merge = |mut columns: Vec<T>, others: Vec<T>| {
        let both = columns.iter_mut().zip(&others);
        both.for_each(|(column, other)| merge(column, other));
        columns
    };
    fold(parts(rows.len()), pool, || start.to_vec(), part, merge)
}

/// What all parts together make.
fn fold<T: Send>(
    parts: usize,
    pool: Option<&ThreadPool>,
    start: impl Fn() -> T + Sync + Send,
    part: impl Fn(T, usize) -> T + Sync + Send,
    merge: impl Fn(T, T) -> T + Sync + Send,
) -> T {
    match pool {
        Some(pool) if parts > 1 => pool.install(|| {
            let folded = (0..parts).into_par_iter().fold(&start, part);
            folded.reduce(&start, merge)
        }),
        _ => (0..parts).fold(start(), part),
    }
}
