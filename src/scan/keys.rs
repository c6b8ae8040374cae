//! Keys of several columns that don't stand side by side: each part after a byte with its length, and a 1 at the end.

use crate::scan::index::TextWindow;

/// Bytes that each key has place in: a part may be copied 32 bytes at a time wherever it begins.
pub(crate) const COMPOSED_BYTES: usize = 64;
/// The most bytes of a key.
pub(crate) const COMPOSED_KEY_MAX: usize = 32;

/// A text that stands in no window: its bytes, zeros, and in the last byte how many it has.
pub(crate) type ShortText = [u8; 32];

/// The short text of these bytes.
///
/// # Panics
/// If they are more than 31.
pub(crate) fn short_text(bytes: &[u8]) -> ShortText {
    let mut text = [0; 32];
    text[..bytes.len()].copy_from_slice(bytes);
    text[31] = bytes.len() as u8;
    text
}

/// The bytes of a short text.
pub(crate) fn short_bytes(text: &ShortText) -> &[u8] {
    &text[..text[31].into()]
}

/// What some keys have in the same place.
#[derive(Clone, Copy)]
pub(crate) enum KeyPart<'a> {
    /// Spans of the window.
    Spans(&'a [u32]),
    Texts(&'a [ShortText]),
}

/// Composes the keys of `rows` rows of these parts in `to`, and replaces `keys` by where they stand.
///
/// # Panics
/// If a key takes more than 32 bytes, or `to` is too short.
pub(crate) fn compose<'a>(
    window: TextWindow<'_>,
    rows: usize,
    parts: impl Iterator<Item = KeyPart<'a>>,
    to: &mut [u8],
    keys: &mut Vec<u32>,
) {
    keys.clear();
    let starts = (0..rows).map(|row| (COMPOSED_BYTES * row) as u32);
    keys.extend(starts.map(|start| start | start << 16));
    assert!(rows * COMPOSED_BYTES <= to.len());
    for part in parts {
        let mut rows = 0;
        let mut push = |key: &mut u32, bytes: &[u8; 32], length: usize| {
            let at = (*key >> 16) as usize;
            assert!(at + 1 + length < COMPOSED_BYTES * rows + COMPOSED_KEY_MAX);
            to[at] = length as u8;
            to[at + 1..][..32].copy_from_slice(bytes);
            *key += ((1 + length) as u32) << 16;
            rows += 1;
        };
        match part {
            KeyPart::Spans(spans) => {
                for (key, &span) in keys.iter_mut().zip(spans) {
                    let (start, end) = ((span & 0xffff) as usize, (span >> 16) as usize);
                    assert!(end <= window.bytes().len());
                    push(key, window.from(start), end - start - 1);
                }
            }
            KeyPart::Texts(texts) => {
                for (key, text) in keys.iter_mut().zip(texts) {
                    push(key, text, text[31].into());
                }
            }
        }
    }
    for key in keys {
        to[(*key >> 16) as usize] = 1;
        *key += 1 << 16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::spans::value;
    use ringfold_read::PaddedBuf;

    #[test]
    fn keys_of_parts() {
        let text = b"ab,,0123456789012345678901234567;";
        let padded = PaddedBuf::from(&text[..]);
        let block = padded.block(0, 0, 0);
        let window = TextWindow::at(&block, 0);
        let span = |start: u32, end: u32| start | (end + 1) << 16;
        let one = [span(0, 2), span(3, 3), span(4, 32)];
        let two = [&b"0123456789012345678901234567"[..27], b"ab", b""];
        let texts = two.map(short_text);
        let (mut composed, mut keys) = ([7; 3 * COMPOSED_BYTES], vec![]);
        compose(
            window,
            3,
            [KeyPart::Spans(&one), KeyPart::Texts(&texts)].into_iter(),
            &mut composed,
            &mut keys,
        );
        for (row, key) in keys.iter().enumerate() {
            assert_eq!(short_bytes(&texts[row]), two[row]);
            let parts = [value(window, one[row]), two[row]];
            let lengths = parts.map(|part| [part.len() as u8]);
            let want = [&lengths[0], parts[0], &lengths[1], parts[1], &[1]].concat();
            let (start, end) = ((key & 0xffff) as usize, (key >> 16) as usize);
            assert_eq!(composed[start..end], want);
        }
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn longer_keys_are_refused() {
        let padded = PaddedBuf::from(&[b'k'; 64][..]);
        let block = padded.block(0, 0, 0);
        let spans = [40 << 16];
        let spans = [KeyPart::Spans(&spans)].into_iter();
        compose(
            TextWindow::at(&block, 0),
            1,
            spans,
            &mut [0; COMPOSED_BYTES],
            &mut vec![],
        );
    }
}
