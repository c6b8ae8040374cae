//! The first pass: where the fields of a window end.
//!
//! An end is the position one past the delimiter or newline behind a field. `ends[0]` is 0, so field `i` is
//! `ends[i]..ends[i + 1] - 1`. Delimiters and newlines between quotes aren't ends. A window has an *offence* where a
//! quote stands neither at a field's start nor at its end nor doubled within: then its ends mean nothing.
//!
//! Invariant of this module: a window's bytes are readable up to 64 past its end, and [`Index`] can hold 64 more ends
//! than a window has bytes.
#![allow(unsafe_code)]

use crate::format::dialect::Marks;
use crate::level::Level;
use crate::record::block::{Block, PADDING};
#[cfg(target_arch = "x86_64")]
use crate::record::masks::{Avx2, Avx512};
use crate::record::masks::{Bytes64, Words};
#[cfg(target_arch = "x86_64")]
use crate::record::places::list_avx2;

/// The most bytes of a window: few enough for 16-bit positions and the first-level cache.
pub(crate) const WINDOW: usize = 16 << 10;
/// Pieces of 64 bytes in the longest window.
pub(crate) const CHUNKS: usize = WINDOW / 64;
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

    #[inline(always)]
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The 16 bytes from `start` on, the first in the lowest place.
    #[inline(always)]
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
    #[inline(always)]
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

    /// Lists where the records of `window` begin, which this is the index of, and returns where the last one ends, if
    /// each has `fields` fields.
    pub(crate) fn regular_starts(
        &self,
        level: Level,
        window: TextWindow<'_>,
        fields: usize,
        to: &mut Vec<u32>,
    ) -> Option<usize> {
        if self.records * fields > self.count {
            return None;
        }
        // As many newlines as records, and one at each stride: so none stands elsewhere.
        to.clear();
        to.push(0);
        let is_regular = match level {
            // SAFETY: a level is only made where the processor has its features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { self.strides_avx512(window, fields, to) },
            _ => true,
        };
        let mut differences = u8::from(!is_regular);
        for record in to.len()..=self.records {
            let end = self.ends[record * fields];
            differences |= window.bytes[usize::from(end) - 1] ^ b'\n';
            to.push(end.into());
        }
        let end = to.pop()?;
        (differences == 0).then_some(end as usize)
    }

    /// Appends the ends of most records, sixteen at a time, and returns whether newlines stand there.
    ///
    /// # Safety
    /// The processor has the features named.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn strides_avx512(
        &self,
        window: TextWindow<'_>,
        fields: usize,
        to: &mut Vec<u32>,
    ) -> bool {
        use std::arch::x86_64::*;
        let ends = &self.ends[..=self.records * fields];
        let sixteens = self.records / 16;
        to.resize(1 + 16 * sixteens, 0);
        let lanes = _mm512_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
        let mut places = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(fields as i32));
        let step = _mm512_set1_epi32(16 * fields as i32);
        let mut differences = _mm512_setzero_si512();
        for to in to[1..].chunks_exact_mut(16) {
            // SAFETY: the places are up to the last of `ends`, and behind it are more; the ends are in the window, before
            // which four bytes are readable; 16 places of 16.
            unsafe {
                let ends = _mm512_i32gather_epi32::<2>(places, ends.as_ptr().cast());
                let ends = _mm512_and_si512(ends, _mm512_set1_epi32(0xffff));
                let bytes = window.pointer().sub(4).cast();
                let last_bytes = _mm512_i32gather_epi32::<1>(ends, bytes);
                let newlines = _mm512_set1_epi32(i32::from(b'\n') << 24);
                let different = _mm512_xor_si512(last_bytes, newlines);
                differences = _mm512_or_si512(differences, different);
                _mm512_storeu_si512(to.as_mut_ptr().cast(), ends);
            }
            places = _mm512_add_epi32(places, step);
        }
        _mm512_test_epi32_mask(differences, _mm512_set1_epi32(0xff << 24)) == 0
    }

    /// For each record the number of its last end, in `to`.
    pub(crate) fn last_ends(&self, level: Level, to: &mut Vec<u16>) {
        match level {
            Level::Portable => self.list_last_ends(to),
            // SAFETY: a level is only made where the processor has its features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 | Level::Avx512 => unsafe { self.last_ends_avx2(to) },
        }
    }

    /// The same with an instruction that counts bits.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn last_ends_avx2(&self, to: &mut Vec<u16>) {
        self.list_last_ends(to);
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
    to.length = window.bytes.len();
    match level {
        // SAFETY: needs no feature.
        Level::Portable => unsafe { by_quotes::<Words>(window, marks, to) },
        // SAFETY: a level is only made where the processor has its features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2(window, marks, to) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512(window, marks, to) },
    }
}

/// 64 bytes, and how the places of some of them are listed.
trait Listed: Bytes64 {
    /// Writes `base` and the place of each bit of `ends`; returns how many there are. Up to 64 may be written.
    ///
    /// # Safety
    /// There is room for 64 at `out`; the processor has what the implementation needs.
    #[inline(always)]
    unsafe fn list(mut ends: u64, base: u16, out: *mut u16) -> usize {
        let found = ends.count_ones() as usize;
        let mut taken = 0;
        let mut take = |count: usize| {
            for end in taken..taken + count {
                // SAFETY: as the caller's: no more than 64 are taken.
                unsafe { *out.add(end) = base + ends.trailing_zeros() as u16 };
                ends &= ends.wrapping_sub(1);
            }
            taken += count;
            taken
        };
        // A mispredicted branch costs as much as several ends.
        let mut done = take(8);
        while done < found {
            done = take(4);
        }
        found
    }
}

impl Listed for Words {}

#[cfg(target_arch = "x86_64")]
impl Listed for Avx2 {
    #[inline(always)]
    unsafe fn list(ends: u64, base: u16, out: *mut u16) -> usize {
        // SAFETY: as the caller's.
        unsafe { list_avx2(ends, base, out) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Listed for Avx512 {
    #[inline(always)]
    unsafe fn list(ends: u64, base: u16, out: *mut u16) -> usize {
        use std::arch::x86_64::*;
        static PLACES: [u8; 64] = {
            let mut places = [0; 64];
            let mut at = 0;
            while at < 64 {
                places[at] = at as u8;
                at += 1;
            }
            places
        };
        let found = ends.count_ones() as usize;
        // SAFETY: as the caller's; 32 places are written at a time.
        unsafe {
            let places = _mm512_loadu_si512(PLACES.as_ptr().cast());
            let places = _mm512_maskz_compress_epi8(ends, places);
            let base = _mm512_set1_epi16(base as i16);
            let low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(places));
            _mm512_storeu_si512(out.cast(), _mm512_add_epi16(low, base));
            if found > 32 {
                let high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(places));
                _mm512_storeu_si512(out.add(32).cast(), _mm512_add_epi16(high, base));
            }
        }
        found
    }
}

/// # Safety
/// The processor has what `B` needs.
#[inline(always)]
unsafe fn by_quotes<B: Listed>(window: TextWindow<'_>, marks: Marks, to: &mut Index) {
    // SAFETY: as the caller's.
    unsafe {
        // Most windows are like the one before.
        if !to.has_quotes {
            pass::<B, false>(window, marks, to);
        }
        if to.has_quotes {
            pass::<B, true>(window, marks, to);
        }
    }
}

/// Only if `QUOTED` are quotes more than bytes like others; whether there is one is told in any case.
///
/// # Safety
/// The processor has what `B` needs.
#[inline(always)]
unsafe fn pass<B: Listed, const QUOTED: bool>(
    window: TextWindow<'_>,
    marks: Marks,
    to: &mut Index,
) {
    let length = window.bytes.len();
    let quote = marks.quote.unwrap_or_default();
    let mut seen = 0;
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
        let (bytes, mut ends, mut newlines) = unsafe {
            let bytes = B::load(window.pointer().add(at));
            let ends = bytes.among([marks.delimiter, b'\n']);
            (bytes, ends & valid, bytes.equal(b'\n') & valid)
        };
        if QUOTED {
            // SAFETY: as the caller's.
            let quotes = unsafe { bytes.equal(quote) } & valid;
            seen |= quotes;
            // SAFETY: as the caller's.
            let inside = unsafe { B::between(quotes) } ^ was_inside;
            was_inside = ((inside as i64) >> 63) as u64;
            (ends, newlines) = (ends & !inside, newlines & !inside);
            let (opens, closes) = (quotes & inside, quotes & !inside);
            let may = ends | closes;
            offence |= opens & !(may << 1 | may_open);
            let behind = closes << 1 | was_closed;
            let mut odd = behind & !(ends | opens) & valid;
            if odd != 0 {
                // Most lines have no return behind a quote.
                // SAFETY: one byte further on there are 63.
                let next = unsafe { B::load(window.pointer().add(at + 1)) };
                // SAFETY: as the caller's.
                odd &= !unsafe { bytes.equal(b'\r') & next.equal(b'\n') };
            }
            offence |= odd;
            let mut doubled = behind & opens;
            while doubled != 0 {
                to.doubled.push(at as u16 + doubled.trailing_zeros() as u16);
                doubled &= doubled - 1;
            }
            (may_open, was_closed) = (may >> 63, closes >> 63);
        } else if marks.quote.is_some() {
            // SAFETY: as above.
            seen |= unsafe { bytes.equal(quote) } & valid;
        }
        *masks = [ends, newlines];
        records += newlines.count_ones() as usize;
        // SAFETY: at most `at` ends stand before these 64; the processor has what is needed.
        count += unsafe { B::list(ends, (at + 1) as u16, out.add(count)) };
    }
    to.count = count - 1;
    to.records = records;
    to.has_offence = offence != 0;
    to.has_quotes = seen != 0;
}

/// # Safety
/// The processor has the features named.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,pclmulqdq,popcnt")]
unsafe fn avx2(window: TextWindow<'_>, marks: Marks, to: &mut Index) {
    // SAFETY: as the caller's.
    unsafe { by_quotes::<Avx2>(window, marks, to) }
}

/// # Safety
/// The processor has the features named.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,pclmulqdq,popcnt")]
unsafe fn avx512(window: TextWindow<'_>, marks: Marks, to: &mut Index) {
    // SAFETY: as the caller's.
    unsafe { by_quotes::<Avx512>(window, marks, to) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::dialect::Dialect;
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
            let end = index.regular_starts(level, window, fields, &mut listed);
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
                assert!(!index.has_offence && index.doubled.len() >= 9 && index.has_quotes);
                assert_eq!(index.records(), 19);
                let window = TextWindow::at(&block, 0);
                assert!(
                    index
                        .regular_starts(level, window, 4, &mut vec![])
                        .is_some()
                );
            }
        }
    }
}
