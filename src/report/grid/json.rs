//! An object a row, by RFC 8259. A number keeps all its digits.
//!
//! JSON has no bytes. One that is no part of UTF-8 becomes the escape of a lone surrogate, `\udc80` to `\udcff`: its value
//! and 0xdc00. No UTF-8 holds a surrogate, so this can be undone; Python's `surrogateescape` is the same.

use std::collections::HashSet;
use std::io::Write;

use crate::report::grid::cell::Cell;

/// What stands before each value: `{` or `,`, the name, a colon.
#[derive(Debug)]
pub(super) struct Labels(Vec<Vec<u8>>);

impl Labels {
    /// A name that came before gets the suffix `_2`, `_3` and so on, the first that makes it another name than all others.
    pub(super) fn new(names: &[Vec<u8>]) -> Self {
        let open = [b'{'].into_iter().chain(std::iter::repeat(b','));
        let label = |(open, name): (u8, Vec<u8>)| {
            let mut label = vec![open];
            push_text(&name, &mut label);
            label.push(b':');
            label
        };
        Labels(open.zip(unique(names)).map(label).collect())
    }

    /// Appends an object.
    pub(super) fn row(&self, cells: &[Cell<'_>], out: &mut Vec<u8>) {
        for (label, cell) in self.0.iter().zip(cells) {
            out.extend_from_slice(label);
            match cell {
                Cell::Null | Cell::Total => out.extend_from_slice(b"null"),
                Cell::Text(text) => push_text(text, out),
                Cell::Json(json) => out.extend_from_slice(json),
                Cell::Number(number) => match number.given() {
                    Some(text) => push_number(text, out),
                    None => number.push(out),
                },
            }
        }
        out.push(b'}');
    }
}

/// Names that differ: one that came before gets a suffix.
pub(super) fn unique(names: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut taken: HashSet<Vec<u8>> = names.iter().cloned().collect();
    let mut seen = HashSet::new();
    let unique = names.iter().map(|name| {
        if seen.insert(name) {
            return name.clone();
        }
        let suffixed = |n| [name, format!("_{n}").as_bytes()].concat();
        let free = (2u64..).map(suffixed).find(|name| !taken.contains(name));
        let free = free.expect("one more than there are names");
        taken.insert(free.clone());
        free
    });
    unique.collect()
}

/// JSON has no zeros before another digit.
fn push_number(number: &str, out: &mut Vec<u8>) {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number),
    };
    let is_extra = |pair: &[u8]| pair[0] == b'0' && pair[1].is_ascii_digit();
    let extra = digits
        .as_bytes()
        .windows(2)
        .take_while(|pair| is_extra(pair));
    let extra = extra.count();
    out.extend_from_slice(sign.as_bytes());
    out.extend_from_slice(&digits.as_bytes()[extra..]);
}

pub(crate) fn push_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let is_plain = |byte: &u8| matches!(byte, 0x20..0x7f) && !matches!(byte, b'"' | b'\\');
    if text.iter().all(is_plain) {
        out.extend_from_slice(text);
    } else {
        for chunk in text.utf8_chunks() {
            chunk.valid().bytes().for_each(|byte| push_byte(byte, out));
            for byte in chunk.invalid() {
                // Writing to a vector can't fail.
                let _ = write!(out, "\\udc{byte:02x}");
            }
        }
    }
    out.push(b'"');
}

/// Appends a byte of UTF-8.
fn push_byte(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0..0x20 => {
            let _ = write!(out, "\\u00{byte:02x}");
        }
        _ => out.push(byte),
    }
}
