//! Texts with escapes, as they are meant.

use memchr::memchr;

/// How a text says that a byte isn't what it seems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    /// Two of these bytes stand for one.
    Doubled(u8),
    /// This byte before another stands for that one.
    Before(u8),
    /// A backslash as in JSON. Each was found to be followed by what may follow.
    Json,
}

impl Escape {
    /// Appends the text that `raw` means.
    pub(crate) fn undo(self, raw: &[u8], to: &mut Vec<u8>) {
        let mut rest = raw;
        match self {
            Escape::Doubled(quote) => {
                while let Some(at) = memchr(quote, rest) {
                    to.extend_from_slice(&rest[..=at]);
                    rest = &rest[at + 2..];
                }
            }
            Escape::Before(escape) => {
                while let Some(at) = memchr(escape, rest) {
                    to.extend_from_slice(&rest[..at]);
                    let meant = rest.get(at + 1..at + 2).unwrap_or_default();
                    to.extend_from_slice(meant);
                    rest = &rest[at + 1 + meant.len()..];
                }
            }
            Escape::Json => {
                while let Some(at) = memchr(b'\\', rest) {
                    to.extend_from_slice(&rest[..at]);
                    rest = &rest[at + 1..];
                    rest = &rest[json(rest, to)..];
                }
            }
        }
        to.extend_from_slice(rest);
    }
}

/// Appends what stands for the bytes after a backslash; returns how many these are.
fn json(text: &[u8], to: &mut Vec<u8>) -> usize {
    let byte = match text.first() {
        Some(b'b') => 8,
        Some(b'f') => 12,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'u') => return unicode(text, to),
        Some(&byte) => byte,
        None => return 0,
    };
    to.push(byte);
    1
}

/// The same of `uXXXX`, or of two of them that make one character. Half of such a pair is no character.
fn unicode(text: &[u8], to: &mut Vec<u8>) -> usize {
    let unit = |text: &[u8]| {
        let digits = text.get(1..5).filter(|_| text[0] == b'u')?;
        u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut code, mut len) = (unit(text), 5.min(text.len()));
    if let Some(high @ 0xd800..0xdc00) = code
        && text.get(5) == Some(&b'\\')
        && let Some(low @ 0xdc00..0xe000) = unit(&text[6..])
    {
        code = Some(0x10000 + (high - 0xd800) * 0x400 + (low - 0xdc00));
        len = 11;
    }
    let letter = code.and_then(char::from_u32);
    let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
    to.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone() {
        for (escape, raw, want) in [
            (Escape::Doubled(b'"'), r#"a""b"""#, r#"a"b""#),
            (Escape::Doubled(b'\\'), r"a\\n", r"a\n"),
            (Escape::Before(b'\\'), r#"a\"b\\\nc"#, r#"a"b\nc"#),
            (Escape::Json, r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
            (Escape::Json, r"a\u0041\u00e9\u20AC.", "aAé€."),
            (Escape::Json, r"\ud83d\ude00!", "😀!"),
            (Escape::Json, r"\ud83d", "\u{fffd}"),
            (Escape::Json, r"\ud83d\u0041\ude00\n", "\u{fffd}A\u{fffd}\n"),
        ] {
            let mut text = Vec::new();
            escape.undo(raw.as_bytes(), &mut text);
            assert_eq!(String::from_utf8_lossy(&text), want, "{raw}");
        }
    }
}
