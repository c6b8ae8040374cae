//! Tab-separated values: a line a row, whatever the texts hold. A null and an empty text are both an empty field.

use crate::report::grid::cell::Cell;

/// Appends the header.
pub(super) fn header(names: &[Vec<u8>], out: &mut Vec<u8>) {
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            out.push(b'\t');
        }
        push_text(name, out);
    }
    out.push(b'\n');
}

/// Appends a row.
pub(super) fn row(cells: &[Cell<'_>], out: &mut Vec<u8>) {
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            out.push(b'\t');
        }
        match cell {
            Cell::Null => (),
            Cell::Text(text) => push_text(text, out),
            Cell::Number(number) => out.extend_from_slice(number.as_bytes()),
        }
    }
    out.push(b'\n');
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
