//! The first pass: where the fields of a window end.
//!
//! An end is the position one past the delimiter or newline after a field. `ends[0]` is 0, so field `i` is
//! `ends[i]..ends[i + 1] - 1`. Delimiters and newlines between quotes aren't ends. A window has an *offence* where a
//! quote stands neither at a field's start nor at its end nor doubled within: then its ends mean nothing.

use std::ops::Deref;

use ringfold_read::Block;
use ringfold_read::internals::{
    Level, Padded,
    isa::{Isa, dispatch},
};

use crate::format::dialect::Marks;

/// The most bytes of a window: few enough for 16-bit positions and the first-level cache.
pub(crate) const WINDOW: usize = 16 << 10;
/// Pieces of 64 bytes in the longest window.
pub(crate) const CHUNKS: usize = WINDOW / 64;
const _: () = assert!(WINDOW < 1 << 15 && WINDOW.is_multiple_of(64));

/// A part of a block that begins with a record.
#[derive(Clone, Copy)]
pub(crate) struct TextWindow<'a> {
    text: Padded<'a>,
}

impl<'a> TextWindow<'a> {
    /// The window of `block` from `start` on.
    pub(crate) fn at(block: &Block<'a>, start: usize) -> TextWindow<'a> {
        TextWindow::of(block, start, WINDOW)
    }

    /// The same of at most so many bytes.
    pub(crate) fn of(block: &Block<'a>, start: usize, length: usize) -> TextWindow<'a> {
        let text = block.part(start, length.min(WINDOW));
        TextWindow { text }
    }

    /// All of a text whose positions fit 16 bits.
    pub(crate) fn whole(block: &Block<'a>) -> TextWindow<'a> {
        let length = block.bytes().len();
        assert!(length < 1 << 16, "positions of 16 bits");
        TextWindow {
            text: block.part(0, length),
        }
    }

    /// The 16 bytes from `start` on, the first in the lowest place.
    #[inline(always)]
    pub(crate) fn words_at(self, start: usize) -> u128 {
        u128::from_le_bytes(*self.from(start))
    }
}

impl<'a> Deref for TextWindow<'a> {
    type Target = Padded<'a>;

    #[inline(always)]
    fn deref(&self) -> &Padded<'a> {
        &self.text
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
    /// Which are the second of two quotes that stand for one, where there are quotes.
    doubled: Box<[u64; CHUNKS]>,
    length: usize,
    pub(crate) has_offence: bool,
    /// Whether there is a quote at all, and the dialect has one.
    pub(crate) has_quotes: bool,
}

impl Index {
    pub(crate) fn new() -> Index {
        Index {
            ends: vec![0; WINDOW + 1 + 64].into(),
            count: 0,
            records: 0,
            chunks: Box::new([[0; 2]; CHUNKS]),
            doubled: Box::new([0; CHUNKS]),
            length: 0,
            has_offence: false,
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

    /// The second of each two quotes that stand for one.
    pub(crate) fn doubled(&self) -> impl Iterator<Item = u32> {
        let chunks = self.length.div_ceil(64) * usize::from(self.has_quotes);
        let masks = self.doubled[..chunks].iter().zip((0..).step_by(64));
        masks.flat_map(|(&doubled, at)| {
            let mut left = doubled;
            std::iter::from_fn(move || {
                let next = (left != 0).then(|| at + left.trailing_zeros())?;
                left &= left - 1;
                Some(next)
            })
        })
    }

    /// Lists where the records of `window` begin, which this is the index of, and returns where the last one ends, if
    /// each has `fields` fields.
    pub(crate) fn regular_starts(
        &self,
        window: TextWindow<'_>,
        fields: usize,
        to: &mut Vec<u32>,
    ) -> Option<usize> {
        if self.records * fields > self.count {
            return None;
        }
        // As many newlines as records, and one at each stride: so none stands elsewhere.
        to.clear();
        to.resize(1 + self.records, 0);
        let (mut differences, mut at) = (0, 0);
        // An iterator with a step takes three times as long.
        let ends = &self.ends[..=self.records * fields];
        for to in &mut to[1..] {
            at += fields;
            differences |= window.bytes()[usize::from(ends[at]) - 1] ^ b'\n';
            *to = ends[at].into();
        }
        let end = to.pop()?;
        (differences == 0).then_some(end as usize)
    }

    /// For each record the number of its last end, in `to`.
    pub(crate) fn last_ends(&self, level: Level, to: &mut Vec<u16>) {
        dispatch!(level, _isa => self.list_last_ends(to));
    }

    #[inline(always)]
    fn list_last_ends(&self, to: &mut Vec<u16>) {
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
    to.length = window.bytes().len();
    dispatch!(level, isa => by_quotes(isa, window, marks, to));
}

#[inline(always)]
fn by_quotes<I: Isa>(isa: I, window: TextWindow<'_>, marks: Marks, to: &mut Index) {
    // Most windows are like the one before.
    if !to.has_quotes {
        pass::<I, false>(isa, window, marks, to);
    }
    if to.has_quotes {
        pass::<I, true>(isa, window, marks, to);
    }
}

/// Only if `QUOTED` are quotes more than bytes like others; whether there is one is told in any case.
#[inline(always)]
fn pass<I: Isa, const QUOTED: bool>(isa: I, window: TextWindow<'_>, marks: Marks, to: &mut Index) {
    let length = window.bytes().len();
    let quote = marks.quote.unwrap_or_default();
    let mut seen = 0;
    let (mut count, mut records) = (1, 0);
    let (list, mut base) = (&mut *to.ends, isa.base(1));
    let (mut was_inside, mut may_open, mut was_closed) = (0_u64, 1_u64, 0_u64);
    let mut offence = 0_u64;
    for (chunk, masks) in to.chunks[..length.div_ceil(64)].iter_mut().enumerate() {
        let at = 64 * chunk;
        let left = length - at;
        let valid = if left < 64 { !(!0 << left) } else { !0 };
        let bytes = isa.load(window.from(at));
        let mut ends = isa.among(bytes, [marks.delimiter, b'\n']) & valid;
        let mut newlines = isa.equal(bytes, b'\n') & valid;
        if QUOTED {
            let quotes = isa.equal(bytes, quote) & valid;
            seen |= quotes;
            let inside = isa.between(quotes) ^ was_inside;
            was_inside = ((inside as i64) >> 63) as u64;
            (ends, newlines) = (ends & !inside, newlines & !inside);
            let (opens, closes) = (quotes & inside, quotes & !inside);
            let may = ends | closes;
            offence |= opens & !(may << 1 | may_open);
            let behind = closes << 1 | was_closed;
            let mut odd = behind & !(ends | opens) & valid;
            if odd != 0 {
                // Most lines have no return after a quote.
                let next = isa.load(window.from(at + 1));
                odd &= !(isa.equal(bytes, b'\r') & isa.equal(next, b'\n'));
            }
            offence |= odd;
            to.doubled[chunk] = behind & opens;
            (may_open, was_closed) = (may >> 63, closes >> 63);
        } else if marks.quote.is_some() {
            seen |= isa.equal(bytes, quote) & valid;
        }
        *masks = [ends, newlines];
        records += newlines.count_ones() as usize;
        // There is room for 64 more ends than a window has bytes.
        let out = list[count..].first_chunk_mut().expect("room for 64");
        base = isa.list(ends, ends.count_ones(), base, out);
        count += ends.count_ones() as usize;
    }
    to.count = count - 1;
    to.records = records;
    to.has_offence = offence != 0;
    to.has_quotes = seen != 0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::dialect::Dialect;
    use proptest::prelude::*;
    use ringfold_read::PaddedBuf;

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
        index.last_ends(level, &mut lasts);
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
            let mut listed = vec![];
            let end = index.regular_starts(window, fields, &mut listed);
            assert_eq!(end.is_some(), want, "{text:?}");
            if let Some(end) = end {
                assert_eq!(end, usize::from(index.ends()[before]));
                assert!(
                    listed
                        .iter()
                        .zip(&starts)
                        .all(|(&got, &want)| got as usize == want)
                );
                assert_eq!(listed.len(), starts.len());
            }
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
                assert!(!index.has_offence && index.doubled().count() >= 9 && index.has_quotes);
                assert_eq!(index.records(), 19);
                let window = TextWindow::at(&block, 0);
                assert!(index.regular_starts(window, 4, &mut vec![]).is_some());
            }
        }
    }
}
