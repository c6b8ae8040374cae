//! Stage 1, *index*: where the fields of a window end, and whether every record has two.
//!
//! A field's end is the position one past its delimiter or terminator. `ends[0]` is 0, so the key of
//! row `i` is `ends[2i]..ends[2i+1]` and its number `ends[2i+1]..ends[2i+2]`, delimiters included.
//! The window is *balanced* if delimiters and terminators strictly alternate, delimiter first: then,
//! and only then, every record has exactly two fields.
//!
//! Alternation is checked 64 bytes at a time. With `d` and `t` the masks of delimiters and terminators, `t -
//! d` sets exactly the bits of each number's span, delimiter included and terminator not, if they alternate.
//! Otherwise the first mismatch shows as a set terminator bit or a clear delimiter bit. The borrow carries an
//! open span into the next 64 bytes.
//!
//! Invariant of this module: a window's bytes are readable up to 64 past its end, and [`Ends`] can hold 64
//! more positions than a window has bytes.
#![allow(unsafe_code)]

use crate::level::Level;
use crate::record::masks::{Bytes64, Words};
use crate::scan::key_number::lookahead;
use crate::scan::key_number::window::{ScanWindow, WINDOW};

/// Positions of a window, the first 0, and 64 more for whole vectors.
const CAPACITY: usize = WINDOW + 1 + 64;
/// Zeros after the last whole record's ends: two for each row that is decoded at once.
const ZEROS: usize = 32;

/// The fields' ends of a window; 32 zeros follow those of its last whole record.
pub(crate) struct Ends {
    ends: Box<[u16; CAPACITY]>,
    /// Delimiters and terminators found.
    count: usize,
    balanced: bool,
}

impl Ends {
    pub(crate) fn new() -> Self {
        let ends = vec![0; CAPACITY]
            .into_boxed_slice()
            .try_into()
            .expect("as long as it was made");
        Ends {
            ends,
            count: 0,
            balanced: true,
        }
    }

    /// Whether every record has two fields.
    pub(crate) fn balanced(&self) -> bool {
        self.balanced
    }

    /// Writes the zeros after the last whole record.
    fn seal(&mut self) {
        let end = (self.count & !1) + 1;
        self.ends[end..end + ZEROS].fill(0);
    }

    /// Whole records, if balanced.
    pub(crate) fn rows(&self) -> usize {
        self.count / 2
    }

    /// `ends[0]` and the two ends of every whole record.
    pub(crate) fn ends(&self) -> &[u16] {
        &self.ends[..=self.count & !1]
    }

    /// The first end, for reading as far as the zeros after the last.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn pointer(&self) -> *const u16 {
        self.ends.as_ptr()
    }

    /// Whether the rows are long on average, for what is prefetched in the next window.
    pub(crate) fn rows_are_long(&self) -> bool {
        lookahead::are_long(self.rows(), self.end())
    }

    /// Past the last whole record, if balanced.
    pub(crate) fn end(&self) -> usize {
        usize::from(self.ends[self.count & !1])
    }
}

/// Finds the ends of `window`.
pub(crate) fn index(
    level: Level,
    window: ScanWindow<'_>,
    delimiter: u8,
    terminator: u8,
    to: &mut Ends,
) {
    match level {
        // The vector kernels would count each such byte twice.
        _ if delimiter == terminator => portable(window, delimiter, terminator, to),
        Level::Portable => portable(window, delimiter, terminator, to),
        // SAFETY: a level is only made where the processor has its features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { x86::avx2(window, delimiter, terminator, to) },
        // SAFETY: as above; they differ.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { x86::avx512(window, delimiter, terminator, to) },
    }
    to.seal();
}

/// Checks alternation 64 bytes at a time.
#[derive(Default)]
struct Balance {
    spans: u64,
    mismatches: u64,
}

impl Balance {
    #[inline(always)]
    fn take(&mut self, delimiters: u64, terminators: u64) {
        // As long as they alternate, a borrow is the same as a span that is open at the end. Taking it from the
        // span's top bit keeps the chain from chunk to chunk shorter than by the carry flag.
        let open = self.spans >> 63;
        self.spans = terminators.wrapping_sub(delimiters).wrapping_sub(open);
        self.mismatches |= (self.spans & terminators) | (!self.spans & delimiters);
    }
}

/// The scalar counterpart of the vector kernels.
fn portable(window: ScanWindow<'_>, delimiter: u8, terminator: u8, to: &mut Ends) {
    let mut count = 0;
    let mut balance = Balance::default();
    let (chunks, rest) = window.bytes().as_chunks::<64>();
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    let last = (!rest.is_empty()).then_some((&last, u64::MAX >> (64 - rest.len().max(1))));
    let chunks = chunks.iter().map(|chunk| (chunk, u64::MAX)).chain(last);
    for (chunk_index, (chunk, valid)) in chunks.enumerate() {
        // SAFETY: 64 bytes of 64; needs no feature.
        let masks = unsafe {
            let bytes = Words::load(chunk.as_ptr());
            [delimiter, terminator].map(|byte| bytes.equal(byte) & valid)
        };
        let [delimiters, terminators] = masks;
        balance.take(delimiters, terminators);
        let mut all = delimiters | terminators;
        while all != 0 {
            count += 1;
            to.ends[count] = (64 * chunk_index + all.trailing_zeros() as usize + 1) as u16;
            all &= all - 1;
        }
    }
    to.count = count;
    to.balanced = balance.mismatches == 0;
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::record::places::list_avx2;
    use crate::scan::key_number::index::{Balance, Ends, ScanWindow};
    use crate::scan::key_number::lookahead;
    use std::arch::x86_64::*;

    /// # Safety
    /// The processor must have the features named.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(crate) unsafe fn avx2(
        window: ScanWindow<'_>,
        delimiter: u8,
        terminator: u8,
        to: &mut Ends,
    ) {
        let delimiter = _mm256_set1_epi8(delimiter as i8);
        let terminator = _mm256_set1_epi8(terminator as i8);
        let length = window.bytes().len();
        let out = to.ends.as_mut_ptr();
        let mut count = 1;
        let mut balance = Balance::default();
        let mut at = 0;
        while at < length {
            if at.is_multiple_of(lookahead::STEP) {
                if window.has_long_rows() {
                    lookahead::by_index::<true>(window, at);
                } else {
                    lookahead::by_index::<false>(window, at);
                }
            }
            // SAFETY: `at` is within the window, and 64 bytes past its end are readable.
            let (low, high) = unsafe {
                let from = window.pointer().add(at);
                (
                    _mm256_loadu_si256(from.cast()),
                    _mm256_loadu_si256(from.add(32).cast()),
                )
            };
            let hits = |byte| {
                let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, byte)) as u32;
                let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, byte)) as u32;
                u64::from(low) | u64::from(high) << 32
            };
            let valid = if length - at < 64 {
                _bzhi_u64(!0, (length - at) as u32)
            } else {
                !0
            };
            let (delimiters, terminators) = (hits(delimiter) & valid, hits(terminator) & valid);
            balance.take(delimiters, terminators);
            // SAFETY: at most `at` positions stand before these 64, and 64 more can be stored.
            count +=
                unsafe { list_avx2(delimiters | terminators, (at + 1) as u16, out.add(count)) };
            at += 64;
        }
        to.count = count - 1;
        to.balanced = balance.mismatches == 0;
    }

    /// # Safety
    /// The processor must have the features named; delimiter and terminator differ.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
    pub(crate) unsafe fn avx512(
        window: ScanWindow<'_>,
        delimiter: u8,
        terminator: u8,
        to: &mut Ends,
    ) {
        // A loop for each kind of rows is faster than one that checks.
        // SAFETY: as the caller's.
        unsafe {
            if window.has_long_rows() {
                avx512_steps::<true>(window, delimiter, terminator, to);
            } else {
                avx512_steps::<false>(window, delimiter, terminator, to);
            }
        }
    }

    /// # Safety
    /// As that of [`avx512`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
    unsafe fn avx512_steps<const LONG_ROWS: bool>(
        window: ScanWindow<'_>,
        delimiter: u8,
        terminator: u8,
        to: &mut Ends,
    ) {
        let delimiter = _mm512_set1_epi8(delimiter as i8);
        let terminator = _mm512_set1_epi8(terminator as i8);
        let iota: [u8; 64] = std::array::from_fn(|position| position as u8);
        // SAFETY: 64 bytes are read of 64.
        let iota = unsafe { _mm512_loadu_si512(iota.as_ptr().cast()) };
        let step = _mm512_set1_epi16(64);
        let mut base = _mm512_set1_epi16(1);
        let length = window.bytes().len();
        let out = to.ends.as_mut_ptr();
        let mut count = 1;
        let mut balance = Balance::default();
        let mut chunk = |at: usize, valid: u64| {
            // SAFETY: `at` is within the window, and 64 bytes past its end are readable.
            let bytes = unsafe { _mm512_loadu_si512(window.pointer().add(at).cast()) };
            let delimiters = _mm512_cmpeq_epi8_mask(bytes, delimiter) & valid;
            let terminators = _mm512_cmpeq_epi8_mask(bytes, terminator) & valid;
            balance.take(delimiters, terminators);
            let all = delimiters | terminators;
            // Two counts are faster than moving the combined mask.
            let found = delimiters.count_ones() as usize + terminators.count_ones() as usize;
            // In a register: compressing to memory is microcoded on some processors.
            let positions = _mm512_maskz_compress_epi8(all, iota);
            let first = _mm256_cvtepu8_epi16(_mm512_castsi512_si128(positions));
            // SAFETY: at most `at` positions stand before these 64, and 64 more can be stored.
            unsafe {
                // Most chunks have no more, and half a vector crosses a cache line half as often.
                let to = out.add(count);
                let first = _mm256_add_epi16(first, _mm512_castsi512_si256(base));
                _mm256_storeu_si256(to.cast(), first);
                if found > 16 {
                    let first = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(positions));
                    let rest = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(positions));
                    _mm512_storeu_si512(to.cast(), _mm512_add_epi16(first, base));
                    _mm512_storeu_si512(to.add(32).cast(), _mm512_add_epi16(rest, base));
                }
            }
            base = _mm512_add_epi16(base, step);
            count += found;
        };
        let whole = length & !63;
        let mut at = 0;
        while at < length & !(lookahead::STEP - 1) {
            lookahead::by_index::<LONG_ROWS>(window, at);
            for part in (0..lookahead::STEP).step_by(64) {
                chunk(at + part, !0);
            }
            at += lookahead::STEP;
        }
        while at < whole {
            chunk(at, !0);
            at += 64;
        }
        if whole < length {
            chunk(whole, _bzhi_u64(!0, (length - whole) as u32));
        }
        to.count = count - 1;
        to.balanced = balance.mismatches == 0;
    }
}

#[cfg(test)]
mod tests {
    use crate::record::block::PaddedBuf;
    use crate::scan::key_number::index::*;
    use proptest::prelude::*;

    fn check(bytes: &[u8], delimiter: u8, terminator: u8) {
        let naive: Vec<u16> = std::iter::once(0)
            .chain((1..).zip(bytes).filter_map(|(end, &byte)| {
                (byte == delimiter || byte == terminator).then_some(end)
            }))
            .collect();
        let alternates = (naive[1..].iter().enumerate()).all(|(number, &end)| {
            bytes[usize::from(end) - 1]
                == if number % 2 == 0 {
                    delimiter
                } else {
                    terminator
                }
        });
        for fill in [delimiter, terminator] {
            let buffer = PaddedBuf::with_fill(bytes, fill);
            let window = ScanWindow::at(&buffer.block(0, 0, 0), 0, WINDOW);
            let mut ends = Ends::new();
            let levels = Level::available();
            // The count of the window before makes no difference.
            let before = [0, WINDOW / 16, WINDOW / 4, WINDOW];
            for (level, before) in levels
                .into_iter()
                .flat_map(|level| before.map(|before| (level, before)))
            {
                ends.count = before;
                index(level, window, delimiter, terminator, &mut ends);
                let whole = (naive.len() - 1) & !1;
                assert_eq!(ends.balanced(), alternates, "{level:?}");
                assert_eq!(ends.ends(), &naive[..=whole], "{level:?}");
                assert_eq!(ends.rows(), whole / 2);
                assert_eq!(ends.end(), usize::from(naive[whole]));
                assert!(
                    ends.ends[whole + 1..whole + 1 + ZEROS]
                        .iter()
                        .all(|&end| end == 0)
                );
            }
        }
    }

    proptest! {
        #[test]
        fn levels_agree_with_the_naive(
            bytes in prop::collection::vec(prop::sample::select(b"aaaaaa;\n\xbb\x3a".to_vec()), 0..400),
        ) {
            check(&bytes, b';', b'\n');
        }

        #[test]
        fn levels_prove_balance(pairs in prop::collection::vec((0..90_usize, 0..90_usize), 0..90)) {
            let text: String =
                pairs.iter().map(|&(a, b)| format!("{};{}\n", "a".repeat(a), "b".repeat(b))).collect();
            check(&text.as_bytes()[..text.len().min(WINDOW)], b';', b'\n');
        }
    }

    /// It makes no sense, but the library accepts it.
    #[test]
    fn one_byte_for_both() {
        let bytes = [b';'; WINDOW];
        let buffer = PaddedBuf::from(&bytes[..]);
        let window = ScanWindow::at(&buffer.block(0, 0, 0), 0, WINDOW);
        for level in Level::available() {
            let mut ends = Ends::new();
            index(level, window, b';', b';', &mut ends);
            assert_eq!(ends.count, WINDOW, "{level:?}");
        }
    }

    #[test]
    fn full_windows() {
        check(&b";\n".repeat(WINDOW / 2), b';', b'\n');
        check(&b"\n;".repeat(WINDOW / 2), b';', b'\n');
        check(&b";".repeat(WINDOW), b';', b'\n');
        check(&b"a".repeat(WINDOW), b';', b'\n');
    }
}
