//! Comma-separated values by RFC 4180, apart from the lines' ends, which are LF.
//!
//! A null is an empty field and an empty text is `""`, so that readers which tell the two apart (PostgreSQL and DuckDB
//! do) read back what was written. A row that is a single null is `""` too: many readers skip an empty line, and a lost row
//! is worse than a null that has become a text.

use crate::report::grid::cell::Cell;

/// Bytes that a field holds only between quotes.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    special[b',' as usize] = true;
    special[b'"' as usize] = true;
    special[b'\r' as usize] = true;
    special[b'\n' as usize] = true;
    special
};

/// A reader takes it off the start of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Appends a row.
pub(super) fn row(cells: &[Cell<'_>], out: &mut Vec<u8>) {
    match cells {
        [Cell::Null] => out.extend_from_slice(b"\"\"\n"),
        _ => push_line(cells, b',', push_text, out),
    }
}

/// Appends a line of cells between delimiters; `push_text` appends a text.
#[inline(always)]
pub(super) fn push_line(
    cells: &[Cell<'_>],
    delimiter: u8,
    push_text: impl Fn(&[u8], &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            out.push(delimiter);
        }
        cell.push(&push_text, out);
    }
    out.push(b'\n');
}

/// Appends a field.
pub(crate) fn push_text(text: &[u8], out: &mut Vec<u8>) {
    if !wants_quotes(text) {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for run in text.split_inclusive(|&byte| byte == b'"') {
        out.extend_from_slice(run);
        if run.ends_with(b"\"") {
            out.push(b'"');
        }
    }
    out.push(b'"');
}

fn wants_quotes(text: &[u8]) -> bool {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    text.is_empty()
        || text.first().is_some_and(is_blank)
        || text.last().is_some_and(is_blank)
        || text.starts_with(BYTE_ORDER_MARK)
        || text.iter().any(|&byte| SPECIAL[usize::from(byte)])
}
