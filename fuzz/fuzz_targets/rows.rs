//! An answer's rows as text.

use ringfold::query::Answer;
use ringfold::report::grid::{Cell, Rows};

/// Cells with blanks between.
pub fn rows_of(answer: &Answer) -> Vec<String> {
    let mut cells = Vec::new();
    let row = |at: usize| {
        answer.row(at, &mut cells);
        let text = |cell: &Cell<'_>| match cell {
            Cell::Null => "null".into(),
            Cell::Total => "total".into(),
            Cell::Text(text) | Cell::Json(text) => format!("{:?}", text.to_vec()),
            Cell::Number(number) => number.to_string(),
        };
        cells.iter().map(text).collect::<Vec<_>>().join(" ")
    };
    (0..answer.len()).map(row).collect()
}
