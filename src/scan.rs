//! From the bytes of a window to columns, in passes: where fields end, where a column's values stand, what their
//! numbers are.
//!
//! Passes know plain records: as many fields as expected, quotes as RFC 4180 has them. They tell which records aren't
//! plain, and which values they can't read; those are left to the [dialect](crate::format::dialect) and to
//! [`Number::read`](crate::decimal::number::Number::read), which are also what tests hold the passes against.

pub(crate) mod bitmaps;
pub(crate) mod decimal;
pub(crate) mod index;
pub(crate) mod key_number;
pub(crate) mod keys;
pub(crate) mod lines;
pub(crate) mod log_lines;
mod long_decimal;
pub(crate) mod numbers;
pub(crate) mod spans;

/// What fuzzing looks at: single passes over a text as one window.
#[cfg(fuzzing)]
pub mod fuzzed {
    use crate::format::dialect::Marks;
    use crate::scan::decimal::decode;
    use crate::scan::index::{Index, TextWindow, WINDOW, index};
    use crate::scan::numbers::Numbers;
    use ringfold_read::PaddedBuf;
    use ringfold_read::internals::Level;

    /// The most decimals.
    pub const SCALE_MAX: u32 = crate::scan::numbers::SCALE_MAX;

    /// The most bytes of a window.
    pub const WINDOW_BYTES: usize = WINDOW;

    /// What the first pass finds in a text.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Indexed {
        /// Where fields end, 0 before them.
        pub ends: Vec<u16>,
        /// For each record the number of its last end.
        pub last_ends: Vec<u16>,
        /// The second of each two quotes that stand for one.
        pub doubled: Vec<u16>,
        /// Whether there is a quote.
        pub has_quotes: bool,
    }

    /// The ends of fields of a text that is no longer than a window, or nothing where a quote stands elsewhere than
    /// fields begin and end. The pass takes `passes` turns, because what one found decides how the next one goes.
    pub fn indexed(
        level: Level,
        text: &[u8],
        delimiter: u8,
        quote: Option<u8>,
        passes: usize,
    ) -> Option<Indexed> {
        let padded = PaddedBuf::from(text);
        let block = padded.block(0, 0, 0);
        let mut found = Index::new();
        for _ in 0..passes {
            let marks = Marks { delimiter, quote };
            index(level, TextWindow::at(&block, 0), marks, &mut found);
        }
        let mut last_ends = Vec::new();
        found.last_ends(level, &mut last_ends);
        (!found.has_offence).then(|| Indexed {
            ends: found.ends().to_vec(),
            last_ends,
            doubled: found.doubled().map(|at| at as u16).collect(),
            has_quotes: found.has_quotes,
        })
    }

    /// The numbers of the lines of a text, in units of `10^-scale`: `None` for an empty line, `Some(None)` for what the
    /// pass leaves to others.
    pub fn decoded(level: Level, text: &[u8], scale: u32) -> Vec<Option<Option<i64>>> {
        let padded = PaddedBuf::from(text);
        let block = padded.block(0, 0, 0);
        let (mut spans, mut at) = (Vec::new(), 0);
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let end = at + line.len() as u32 + u32::from(!line.ends_with(b"\n"));
            spans.push(at | end << 16);
            at = end;
        }
        let rows = spans.len();
        spans.extend([0; 8]);
        let mut numbers = Numbers::new();
        decode(
            level,
            TextWindow::at(&block, 0),
            &spans,
            rows,
            (scale, b'.'),
            &mut numbers,
        );
        let row = |row: usize| match numbers.is_null(row) {
            true => None,
            false if numbers.unread.contains(&(row as u32)) => Some(None),
            false => Some(Some(numbers.values[row])),
        };
        (0..rows).map(row).collect()
    }
}
