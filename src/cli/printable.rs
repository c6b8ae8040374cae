//! Text for a terminal.

/// The text with control characters escaped, which a file's name may hold: one line stays one line, and
/// nothing in it controls the terminal.
pub(super) fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_control() {
            true => line.extend(letter.escape_default()),
            false => line.push(letter),
        }
    }
    line
}
