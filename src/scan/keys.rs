//! Keys of several columns that don't stand side by side: each part behind a byte with its length, and a 1 at the end.

use crate::scan::index::TextWindow;

/// Bytes that each key has place in: a part may be copied 32 bytes at a time wherever it begins.
pub(crate) const COMPOSED_BYTES: usize = 64;
/// The most bytes of a key.
pub(crate) const COMPOSED_KEY_MAX: usize = 32;

/// Composes the keys of rows, whose parts are spans of `window`, in `to`, and replaces `keys` by where they stand.
///
/// # Panics
/// If a key takes more than 32 bytes, or `to` is too short.
pub(crate) fn compose<'a>(
    window: TextWindow<'_>,
    parts: impl Iterator<Item = &'a [u32]>,
    to: &mut [u8],
    keys: &mut Vec<u32>,
) {
    keys.clear();
    for spans in parts {
        if keys.is_empty() {
            let starts = (0..spans.len()).map(|row| (COMPOSED_BYTES * row) as u32);
            keys.extend(starts.map(|start| start | start << 16));
        }
        assert!(spans.len() * COMPOSED_BYTES <= to.len());
        for (row, (&span, key)) in spans.iter().zip(&mut *keys).enumerate() {
            let (start, end) = ((span & 0xffff) as usize, (span >> 16) as usize);
            let length = end - start - 1;
            let at = (*key >> 16) as usize;
            assert!(
                at + 1 + length < COMPOSED_BYTES * row + COMPOSED_KEY_MAX
                    && end <= window.bytes().len()
            );
            to[at] = length as u8;
            to[at + 1..][..32].copy_from_slice(window.from::<32>(start));
            *key += ((1 + length) as u32) << 16;
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
        let two = [span(4, 31), span(0, 2), span(3, 3)];
        let (mut composed, mut keys) = ([7; 3 * COMPOSED_BYTES], vec![]);
        compose(
            window,
            [&one[..], &two[..]].into_iter(),
            &mut composed,
            &mut keys,
        );
        for (row, key) in keys.iter().enumerate() {
            let parts = [one[row], two[row]].map(|span| value(window, span));
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
        let spans = [&spans[..]].into_iter();
        compose(
            TextWindow::at(&block, 0),
            spans,
            &mut [0; COMPOSED_BYTES],
            &mut vec![],
        );
    }
}
