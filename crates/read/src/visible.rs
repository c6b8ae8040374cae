//! Text for people: one line, and nothing that a terminal obeys.

use std::borrow::Cow;
use std::fmt::Write;

/// `text` with an escape for each byte that is no part of UTF-8 (`\xff`) and for each character that would end the line, move
/// the cursor or turn the direction of writing (`\n`, `\x1b`, `\u{202e}`).
pub fn visible(text: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(text) {
        Ok(text) if text.bytes().all(|byte| matches!(byte, 0x20..0x7f)) => Cow::Borrowed(text),
        Ok(text) if !text.contains(is_obeyed) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(text)),
    }
}

fn is_obeyed(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
        || matches!(char, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &[u8]) -> String {
    let mut out = String::new();
    for chunk in text.utf8_chunks() {
        for char in chunk.valid().chars() {
            // Writing to a string can't fail.
            let _ = match char {
                '\n' => out.write_str("\\n"),
                '\r' => out.write_str("\\r"),
                '\t' => out.write_str("\\t"),
                _ if !is_obeyed(char) => out.write_char(char),
                _ if char.is_ascii() => write!(out, "\\x{:02x}", u32::from(char)),
                _ => write!(out, "\\u{{{:x}}}", u32::from(char)),
            };
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}
