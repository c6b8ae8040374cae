//! The first pass: where the fields of a window end.
//!
//! An end is the position one past the delimiter or newline behind a field. `ends[0]` is 0, so field `i` is
//! `ends[i]..ends[i + 1] - 1`. Delimiters and newlines between quotes aren't ends. A window has an *offence* where a
//! quote stands neither at a field's start nor at its end nor doubled within: then its ends mean nothing.
//!
//! Invariant of this module: a window's bytes are readable up to 64 past its end, and [`Index`] can hold 64 more ends
//! than a window has bytes.
#![allow(unsafe_code)]

use crate::level::Level;
use crate::query::dialect::Marks;
use crate::record::block::{Block, PADDING};
#[cfg(target_arch = "x86_64")]
use crate::record::masks::Avx2;
use crate::record::masks::{Bytes64, Words, between};

/// The most bytes of a window: few enough for 16-bit positions and the first-level cache.
pub(crate) const WINDOW: usize = 16 << 10;
const CHUNKS: usize = WINDOW / 64;
const _: () = assert!(WINDOW < 1 << 15 && WINDOW.is_multiple_of(64) && PADDING >= 64);

/// A part of a block that begins with a record. [`PADDING`] bytes before and after it are readable, because those of
/// its block are.
#[derive(Clone, Copy)]
pub(crate) struct TextWindow<'a> {
    bytes: &'a [u8],
}

impl<'a> TextWindow<'a> {
    /// The window of `block` from `start` on.
    pub(crate) fn at(block: &Block<'a>, start: usize) -> TextWindow<'a> {
        let bytes = &block.bytes()[start..];
        TextWindow {
            bytes: &bytes[..bytes.len().min(WINDOW)],
        }
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The 16 bytes from `start` on, the first in the lowest place.
    pub(crate) fn words_at(self, start: usize) -> u128 {
        assert!(start <= self.bytes.len());
        // SAFETY: behind the window 64 bytes are readable.
        let bytes = unsafe {
            self.pointer()
                .add(start)
                .cast::<[u8; 16]>()
                .read_unaligned()
        };
        u128::from_le_bytes(bytes)
    }

    /// The first byte.
    pub(crate) fn pointer(self) -> *const u8 {
        self.bytes.as_ptr()
    }
}

/// Where the fields of a window end.
pub(crate) struct Index {
    ends: Box<[u16]>,
    /// Ends found, the first 0 not counted.
    count: usize,
    /// Records found.
    records: usize,
    /// Of each 64 bytes, which are ends, and which end a record.
    chunks: Box<[[u64; 2]; CHUNKS]>,
    length: usize,
    pub(crate) has_offence: bool,
    /// The second of each two quotes that stand for one.
    pub(crate) doubled: Vec<u16>,
    /// Whether there is a quote at all.
    pub(crate) has_quotes: bool,
}

impl Index {
    pub(crate) fn new() -> Index {
        Index {
            ends: vec![0; WINDOW + 1 + 64].into(),
            count: 0,
            records: 0,
            chunks: Box::new([[0; 2]; CHUNKS]),
            length: 0,
            has_offence: false,
            doubled: Vec::new(),
            has_quotes: false,
        }
    }

    pub(crate) fn records(&self) -> usize {
        self.records
    }

    /// `ends[0]`, and all that were found.
    pub(crate) fn ends(&self) -> &[u16] {
        &self.ends[..=self.count]
    }

    /// Whether every whole record of `window`, which this is the index of, has `fields` fields.
    pub(crate) fn is_regular(&self, window: TextWindow<'_>, fields: usize) -> bool {
        if self.records * fields > self.count {
            return false;
        }
        // As many newlines as records, and one at each stride: so none stands elsewhere.
        let lasts = self.ends[..=self.records * fields].iter().step_by(fields);
        let mut differences = 0;
        for &end in lasts.skip(1) {
            differences |= window.bytes[usize::from(end) - 1] ^ b'\n';
        }
        differences == 0
    }

    /// For each record the number of its last end, in `to`.
    pub(crate) fn last_ends(&self, to: &mut Vec<u16>) {
        to.clear();
        let mut before = 0;
        for [ends, newlines] in &self.chunks[..self.length.div_ceil(64)] {
            let mut left = *newlines;
            while left != 0 {
                let up_to = left ^ (left - 1);
                to.push((before + (ends & up_to).count_ones()) as u16);
                left &= left - 1;
            }
            before += ends.count_ones();
        }
    }
}

/// Finds the ends of `window`.
pub(crate) fn index(level: Level, window: TextWindow<'_>, marks: Marks, to: &mut Index) {
    to.length = window.bytes.len();
    to.has_quotes = match marks.quote {
        Some(quote) => memchr::memchr(quote, window.bytes).is_some(),
        None => false,
    };
    match level {
        // SAFETY: needs no feature.
        Level::Portable => unsafe { by_quotes::<Words>(window, marks, to) },
        // SAFETY: a level is only made where the processor has its features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 => unsafe { avx2(window, marks, to) },
    }
}

/// # Safety
/// The processor has what `B` needs.
#[inline(always)]
unsafe fn by_quotes<B: Bytes64>(window: TextWindow<'_>, marks: Marks, to: &mut Index) {
    // As many at once as most chunks of the window before had, or a few more, because a mispredicted branch costs as
    // much as several ends.
    let each = to.count * 64 / WINDOW;
    // SAFETY: as the caller's.
    unsafe {
        match (to.has_quotes, each) {
            (false, 0..7) => pass::<B, false, 8>(window, marks, to),
            (false, 7..11) => pass::<B, false, 12>(window, marks, to),
            (false, _) => pass::<B, false, 16>(window, marks, to),
            (true, 0..7) => pass::<B, true, 8>(window, marks, to),
            (true, _) => pass::<B, true, 12>(window, marks, to),
        }
    }
}

/// Takes `FIRST` ends of each 64 bytes without a look at how many there are, and then four by four.
///
/// # Safety
/// The processor has what `B` needs.
#[inline(always)]
unsafe fn pass<B: Bytes64, const QUOTED: bool, const FIRST: usize>(
    window: TextWindow<'_>,
    marks: Marks,
    to: &mut Index,
) {
    let length = window.bytes.len();
    let quote = marks.quote.unwrap_or_default();
    let out = to.ends.as_mut_ptr();
    let (mut count, mut records) = (1, 0);
    let (mut was_inside, mut may_open, mut was_closed) = (0_u64, 1_u64, 0_u64);
    let mut offence = 0_u64;
    to.doubled.clear();
    for (chunk, masks) in to.chunks[..length.div_ceil(64)].iter_mut().enumerate() {
        let at = 64 * chunk;
        let left = length - at;
        let valid = if left < 64 { !(!0 << left) } else { !0 };
        // SAFETY: `at` is within the window, and 64 bytes past its end are readable.
        let (bytes, mut delimiters, mut newlines) = unsafe {
            let bytes = B::load(window.pointer().add(at));
            (bytes, bytes.equal(marks.delimiter), bytes.equal(b'\n'))
        };
        if QUOTED {
            // SAFETY: as above; one byte further on there are 63.
            let (quotes, returns) = unsafe {
                let next = B::load(window.pointer().add(at + 1));
                (
                    bytes.equal(quote) & valid,
                    bytes.equal(b'\r') & next.equal(b'\n'),
                )
            };
            let inside = between(quotes) ^ was_inside;
            was_inside = ((inside as i64) >> 63) as u64;
            (delimiters, newlines) = (delimiters & !inside, newlines & !inside);
            let ends = (delimiters | newlines) & valid;
            let (opens, closes) = (quotes & inside, quotes & !inside);
            let may = ends | closes;
            offence |= opens & !(may << 1 | may_open);
            let behind = closes << 1 | was_closed;
            offence |= behind & !(ends | opens | returns) & valid;
            let mut doubled = behind & opens;
            while doubled != 0 {
                to.doubled.push(at as u16 + doubled.trailing_zeros() as u16);
                doubled &= doubled - 1;
            }
            (may_open, was_closed) = (may >> 63, closes >> 63);
        }
        newlines &= valid;
        let mut all = delimiters & valid | newlines;
        *masks = [all, newlines];
        records += newlines.count_ones() as usize;
        let found = all.count_ones() as usize;
        let mut taken = 0;
        let mut take = |ends: usize| {
            for end in 0..ends {
                // SAFETY: at most `at` ends stand before these 64, and no more than 64 are taken.
                unsafe {
                    *out.add(count + taken + end) = (at + 1) as u16 + all.trailing_zeros() as u16;
                }
                all &= all.wrapping_sub(1);
            }
            taken += ends;
            taken
        };
        take(FIRST);
        while FIRST < found && take(4) < found {}
        count += found;
    }
    to.count = count - 1;
    to.records = records;
    to.has_offence = offence != 0;
}

/// # Safety
/// The processor has the features named.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
unsafe fn avx2(window: TextWindow<'_>, marks: Marks, to: &mut Index) {
    // SAFETY: as the caller's.
    unsafe { by_quotes::<Avx2>(window, marks, to) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::dialect::Dialect;
    use crate::record::block::PaddedBuf;
    use proptest::prelude::*;

    /// A window's index is what the dialect says of its records one by one.
    fn check(level: Level, text: &[u8], marks: Marks, index: &mut Index) {
        let padded = PaddedBuf::from(text);
        let block = padded.block(0, 0, 0);
        let window = TextWindow::at(&block, 0);
        super::index(level, window, marks, index);
        let dialect = Dialect::new(marks.delimiter, marks.quote).unwrap();
        let (mut at, mut widths, mut starts, mut fields) = (0, vec![], vec![], vec![]);
        let mut is_readable = true;
        while at < text.len() {
            match dialect.split(text, at, &mut fields) {
                Ok(record) if text[..record.next].ends_with(b"\n") => {
                    // An empty line has no field, but an end.
                    widths.push(fields.len().max(1));
                    starts.push(at);
                    at = record.next;
                }
                Ok(_) => break,
                Err(_) => {
                    is_readable = false;
                    break;
                }
            }
        }
        if index.has_offence {
            let quote = marks.quote.unwrap();
            assert!(text.contains(&quote));
            return;
        }
        let mut lasts = vec![];
        index.last_ends(&mut lasts);
        assert_eq!(lasts.len(), index.records());
        // A quote that nobody closes is no offence: its record isn't whole.
        assert!(is_readable || index.records() == widths.len(), "{text:?}");
        assert_eq!(index.records(), widths.len(), "{text:?}");
        let mut before = 0;
        for ((&last, &width), &start) in lasts.iter().zip(&widths).zip(&starts) {
            assert_eq!(usize::from(index.ends()[before]), start);
            assert_eq!(usize::from(last) - before, width, "{text:?}");
            before = usize::from(last);
        }
        let same = |&width: &usize| widths.iter().all(|&other| other == width);
        for fields in 1..4 {
            let want = widths.is_empty() || same(&fields);
            assert_eq!(index.is_regular(window, fields), want, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn as_the_dialect_says(
            parts in prop::collection::vec(
                prop::sample::select(&[
                    "a", ",", "\n", "\"", "\r\n", "bc", "\"\"", "\"x\"", ",\"y,\"", "\n\"p\n\"", "\r",
                    "0123456789012345678901234567890123456789", ",,,,,,,,,,,,,,,,,,,,", "1,2\n3,4\n5,6\n",
                ][..]), 0..60),
            fill in 0..130_usize,
        ) {
            let text = format!("{}{}", "z".repeat(fill), parts.concat());
            for level in Level::available() {
                let mut index = Index::new();
                for quote in [None, Some(b'"')] {
                    let marks = Marks { delimiter: b',', quote };
                    check(level, text.as_bytes(), marks, &mut index);
                }
            }
        }
    }

    /// Where each field is quoted or not, as RFC 4180 has it, nothing is an offence.
    #[test]
    fn well_quoted_text_has_no_offence() {
        let record = "a,\"b,\"\"c\"\"\nd\",\"\",\"e\"\r\n\"f\",g,,\n";
        for level in Level::available() {
            for fill in 0..200 {
                let text = format!("{},x,y,z\n{}", "z".repeat(fill), record.repeat(9));
                let padded = PaddedBuf::from(text.as_bytes());
                let block = padded.block(0, 0, 0);
                let mut index = Index::new();
                let marks = Marks {
                    delimiter: b',',
                    quote: Some(b'"'),
                };
                super::index(level, TextWindow::at(&block, 0), marks, &mut index);
                assert!(!index.has_offence && index.doubled.len() >= 9 && index.has_quotes);
                assert_eq!(index.records(), 19);
                assert!(index.is_regular(TextWindow::at(&block, 0), 4));
            }
        }
    }
}
