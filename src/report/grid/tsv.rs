//! Tab-separated values: a line a row, whatever the texts hold. A null and an empty text are both an empty field.

use crate::report::grid::cell::Cell;
use crate::report::grid::csv::push_line;

/// Appends a row.
pub(super) fn row(cells: &[Cell<'_>], out: &mut Vec<u8>) {
    push_line(cells, b'\t', push_text, out);
}

fn push_text(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            _ => out.push(byte),
        }
    }
}
