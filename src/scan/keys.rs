//! Keys of several columns that don't stand side by side: each part after a byte with its length, and a 1 at the end.

use crate::format::short_text::ShortText;
use crate::scan::index::TextWindow;

/// The most bytes of a key.
const KEY_MAX: usize = 256;
/// Keys of so few bytes lie closer together, so that those of a batch stay in the first-level cache.
const SHORT_MAX: usize = 32;
/// Parts are copied so many bytes at a time.
const COPIED: usize = 32;
/// The most bytes that a key has place in.
pub(crate) const COMPOSED_BYTES: usize = KEY_MAX + COPIED;

/// What some keys have in the same place.
#[derive(Clone, Copy)]
pub(crate) enum KeyPart<'a> {
    /// Spans of a window.
    Spans(TextWindow<'a>, &'a [u32]),
    Texts(&'a [ShortText]),
}

/// Composes the keys of `rows` rows of these parts in `to`, and replaces `keys` by where they stand. None is longer than
/// `longest`.
///
/// # Panics
/// If one is, or takes more than [`KEY_MAX`] bytes, or `to` is too short.
pub(crate) fn compose<'a>(
    rows: usize,
    longest: usize,
    parts: impl Iterator<Item = KeyPart<'a>>,
    to: &mut [u8],
    keys: &mut Vec<u32>,
) {
    keys.clear();
    let key_max = if longest <= SHORT_MAX {
        SHORT_MAX
    } else {
        KEY_MAX
    };
    let place = key_max + COPIED;
    let starts = (0..rows).map(|row| (place * row) as u32);
    keys.extend(starts.map(|start| start | start << 16));
    assert!(rows * place <= to.len());
    let ends = (0..rows).map(|row| place * row + key_max);
    for part in parts {
        match part {
            KeyPart::Spans(window, spans) => {
                for ((key, &span), end) in keys.iter_mut().zip(spans).zip(ends.clone()) {
                    let (start, stop) = ((span & 0xffff) as usize, (span >> 16) as usize);
                    assert!(stop <= window.bytes().len());
                    let length = stop - start - 1;
                    push(to, key, end, length, |at| window.from(start + at));
                }
            }
            KeyPart::Texts(texts) => {
                for ((key, text), end) in keys.iter_mut().zip(texts).zip(ends.clone()) {
                    push(to, key, end, text.len(), |_| &text.0);
                }
            }
        }
    }
    for key in keys {
        to[(*key >> 16) as usize] = 1;
        *key += 1 << 16;
    }
}

/// Appends a part of so many bytes to a key, which ends before `end`.
#[inline(always)]
fn push<'a>(
    to: &mut [u8],
    key: &mut u32,
    end: usize,
    length: usize,
    bytes: impl Fn(usize) -> &'a [u8; COPIED],
) {
    let at = (*key >> 16) as usize;
    assert!(at + 1 + length < end);
    to[at] = length as u8;
    to[at + 1..][..COPIED].copy_from_slice(bytes(0));
    for from in (COPIED..length).step_by(COPIED) {
        to[at + 1 + from..][..COPIED].copy_from_slice(bytes(from));
    }
    *key += ((1 + length) as u32) << 16;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::spans::value;
    use ringfold_read::PaddedBuf;

    #[test]
    fn keys_of_parts() {
        let text = format!(
            "ab,,0123456789012345678901234567,{};",
            "0123456789abcdef".repeat(8)
        );
        let padded = PaddedBuf::from(text.as_bytes());
        let block = padded.block(0, 0, 0);
        let window = TextWindow::at(&block, 0);
        let span = |start: u32, end: u32| start | (end + 1) << 16;
        let short = [span(0, 2), span(3, 3), span(4, 32)];
        // Of 32 bytes, of one more than are copied at once, and as long as a key can be.
        let long = [span(33, 65), span(34, 67), span(35, 35 + 97)];
        let two = [&b"0123456789012345678901234567"[..27], b"ab", b""];
        let texts = two.map(ShortText::from);
        for (one, longest) in [(short, SHORT_MAX), (short, KEY_MAX), (long, KEY_MAX)] {
            let (mut composed, mut keys) = ([7; 3 * COMPOSED_BYTES], vec![]);
            compose(
                3,
                longest,
                [KeyPart::Spans(window, &one), KeyPart::Texts(&texts)].into_iter(),
                &mut composed,
                &mut keys,
            );
            for (row, key) in keys.iter().enumerate() {
                assert_eq!(texts[row].bytes(), two[row]);
                let parts = [value(window, one[row]), two[row]];
                let lengths = parts.map(|part| [part.len() as u8]);
                let want = [&lengths[0], parts[0], &lengths[1], parts[1], &[1]].concat();
                let (start, end) = ((key & 0xffff) as usize, (key >> 16) as usize);
                assert_eq!(composed[start..end], want);
            }
        }
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn longer_keys_are_refused() {
        let padded = PaddedBuf::from(&[b'k'; 64][..]);
        let block = padded.block(0, 0, 0);
        let spans = [40 << 16];
        let spans = [KeyPart::Spans(TextWindow::at(&block, 0), &spans)].into_iter();
        compose(1, SHORT_MAX, spans, &mut [0; COMPOSED_BYTES], &mut vec![]);
    }
}
