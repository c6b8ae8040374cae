//! The second pass: where a column's values stand.
//!
//! A span is a start in its low half, and in its high half one past the byte that follows the value, whatever byte that
//! is: a delimiter, a newline, a quote, a carriage return.

use memchr::memchr;

use crate::scan::index::TextWindow;

/// Where the records of a window begin.
#[derive(Clone, Copy)]
pub(crate) enum RecordStarts<'a> {
    /// One after the other, with so many fields each.
    Every(usize),
    /// Each after the end of this number.
    Listed(&'a [u16]),
}

/// Writes the spans of `column` in each record.
pub(crate) fn spans(ends: &[u16], records: RecordStarts<'_>, column: usize, to: &mut [u32]) {
    let span = |pair: &[u16]| u32::from(pair[0]) | u32::from(pair[1]) << 16;
    match records {
        // The usual loop has a step that isn't known when it is compiled.
        RecordStarts::Every(2) => {
            let (pairs, _) = ends[column..].as_chunks::<2>();
            to.iter_mut()
                .zip(pairs)
                .for_each(|(to, pair)| *to = span(pair));
        }
        RecordStarts::Every(fields) => {
            let mut at = column;
            for to in to {
                *to = span(&ends[at..at + 2]);
                at += fields;
            }
        }
        RecordStarts::Listed(firsts) => {
            for (to, &first) in to.iter_mut().zip(firsts) {
                let at = usize::from(first) + column;
                *to = span(&ends[at..at + 2]);
            }
        }
    }
}

/// The bytes of a value.
pub(crate) fn value<'a>(window: TextWindow<'a>, span: u32) -> &'a [u8] {
    let (start, end) = ((span & 0xffff) as usize, (span >> 16) as usize);
    &window.bytes()[start..end - 1]
}

/// Whether a value has no bytes.
pub(crate) fn is_empty(span: u32) -> bool {
    (span & 0xffff) + 1 == span >> 16
}

/// Takes a carriage return off the end of each value of the last column.
pub(crate) fn strip_returns(window: TextWindow<'_>, spans: &mut [u32]) {
    let bytes = window.bytes();
    // Where lines are short, a look at all bytes is less than one at each end.
    if bytes.len() < 32 * spans.len() && memchr(b'\r', bytes).is_none() {
        return;
    }
    for span in spans {
        let (start, end) = (*span & 0xffff, *span >> 16);
        // An empty value has the byte of another field there.
        let has_return = end > start + 1 && bytes[end as usize - 2] == b'\r';
        *span -= u32::from(has_return) << 16;
    }
}

/// Takes the quotes off values that begin with one, and says whether some do. The window has no offence.
pub(crate) fn strip_quotes(window: TextWindow<'_>, quote: u8, spans: &mut [u32]) -> bool {
    let bytes = window.bytes();
    let mut some = 0;
    for span in spans {
        let is_quoted = u32::from(bytes[(*span & 0xffff) as usize] == quote);
        *span = *span + is_quoted - (is_quoted << 16);
        some |= is_quoted;
    }
    some != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfold_read::PaddedBuf;

    #[test]
    fn spans_of_columns() {
        let text = b"a,\"b\",c\r\n,\"\",\r\nx,y,\"zz\"\r\n";
        let padded = PaddedBuf::from(&text[..]);
        let block = padded.block(0, 0, 0);
        let window = TextWindow::at(&block, 0);
        let ends = [0, 2, 6, 9, 10, 13, 15, 17, 19, 25];
        for records in [RecordStarts::Every(3), RecordStarts::Listed(&[0, 3, 6])] {
            let wanted: [[&[u8]; 3]; 3] =
                [[b"a", b"", b"x"], [b"b", b"", b"y"], [b"c", b"", b"zz"]];
            for (column, wanted) in wanted.into_iter().enumerate() {
                let mut got = [0; 3];
                spans(&ends, records, column, &mut got);
                if column == 2 {
                    strip_returns(window, &mut got);
                }
                assert_eq!(strip_quotes(window, b'"', &mut got), column > 0);
                assert_eq!(got.map(|span| value(window, span)), wanted);
            }
        }
        let mut one = [0; 3];
        spans(&[0, 3, 5, 9], RecordStarts::Every(1), 0, &mut one);
        assert_eq!(one, [3 << 16, 3 | 5 << 16, 5 | 9 << 16]);
    }
}
