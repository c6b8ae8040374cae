//! A table of GitHub's Markdown that shows each text as it is: what Markdown, HTML or mathematics would take as a sign is
//! escaped. A null and an empty text are both an empty cell.

use ringfold_read::internals::visible;

use crate::report::grid::cell::Cell;
use crate::report::grid::columns::Column;

/// Appends the names and the line that says on which side each column's cells are.
pub(super) fn header(names: &[Cell<'_>], columns: &[Column], out: &mut Vec<u8>) {
    row(names, out);
    out.push(b'|');
    for column in columns {
        out.extend_from_slice(match column.has_numbers {
            true => b" ---: |",
            false => b" --- |",
        });
    }
    out.push(b'\n');
}

/// Appends a row.
pub(super) fn row(cells: &[Cell<'_>], out: &mut Vec<u8>) {
    out.push(b'|');
    for cell in cells {
        out.push(b' ');
        cell.push(push_text, out);
        out.extend_from_slice(b" |");
    }
    out.push(b'\n');
}

/// Lines become lines of the cell.
fn push_text(text: &[u8], out: &mut Vec<u8>) {
    let mut lines = text.split(|&byte| byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let is_last = lines.peek().is_none();
        match line.strip_suffix(b"\r") {
            Some(line) if !is_last => push_line(line, out),
            _ => push_line(line, out),
        }
        if !is_last {
            out.extend_from_slice(b"<br>");
        }
    }
}

fn push_line(line: &[u8], out: &mut Vec<u8>) {
    let line = visible(line);
    // Blanks around a cell's text aren't the text's.
    let inner = line.trim_matches(' ');
    let before = line.len() - line.trim_start_matches(' ').len();
    push_blanks(before, out);
    let bytes = inner.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        if is_sign(bytes, at) {
            out.push(b'\\');
        }
        out.push(byte);
    }
    push_blanks(line.len() - before - inner.len(), out);
}

fn push_blanks(blanks: usize, out: &mut Vec<u8>) {
    (0..blanks).for_each(|_| out.extend_from_slice(b"&#32;"));
}

/// Whether the byte at `at` is escaped. An underscore inside of a word is none of Markdown's.
fn is_sign(text: &[u8], at: usize) -> bool {
    let is_word = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphanumeric);
    match text[at] {
        b'_' => at == 0 || !is_word(at - 1) || !is_word(at + 1),
        byte => b"\\|`*[]<>&~$".contains(&byte),
    }
}
