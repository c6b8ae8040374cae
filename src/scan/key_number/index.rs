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

use ringfold_read::internals::{
    Level,
    isa::{Isa, dispatch},
};

use crate::scan::key_number::lookahead::{self, STEP};
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

    /// The ends from one of them on, with the zeros after the last.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn from(&self, end: usize) -> &[u16] {
        &self.ends[end..]
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
    if delimiter == terminator {
        // Each such byte would be counted twice.
        (to.count, to.balanced) = (0, false);
        return;
    }
    let marks = [delimiter, terminator];
    // A loop for each kind of rows is faster than one that checks.
    match window.has_long_rows() {
        true => dispatch!(level, isa => pass::<_, true>(isa, window, marks, to)),
        false => dispatch!(level, isa => pass::<_, false>(isa, window, marks, to)),
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

#[inline(always)]
fn pass<I: Isa, const LONG_ROWS: bool>(
    isa: I,
    window: ScanWindow<'_>,
    marks: [u8; 2],
    to: &mut Ends,
) {
    let length = window.bytes().len();
    let mut index = Pass {
        isa,
        marks,
        ends: &mut to.ends,
        count: 1,
        base: isa.base(1),
        balance: Balance::default(),
    };
    let (steps, rest) = window.bytes().as_chunks::<STEP>();
    for (step, bytes) in steps.iter().enumerate() {
        lookahead::by_index::<LONG_ROWS>(window, STEP * step);
        for chunk in bytes.as_chunks().0 {
            index.chunk(chunk, !0);
        }
    }
    if !rest.is_empty() {
        lookahead::by_index::<LONG_ROWS>(window, length - rest.len());
    }
    for at in (length - rest.len()..length).step_by(64) {
        let valid = !0 >> (64 - (length - at).min(64));
        index.chunk(window.from(at), valid);
    }
    to.count = index.count - 1;
    to.balanced = index.balance.mismatches == 0;
}

/// A pass over a window.
struct Pass<'a, I: Isa> {
    isa: I,
    marks: [u8; 2],
    ends: &'a mut [u16; CAPACITY],
    count: usize,
    base: I::Base,
    balance: Balance,
}

impl<I: Isa> Pass<'_, I> {
    /// Takes the `valid` ones of 64 bytes.
    #[inline(always)]
    fn chunk(&mut self, bytes: &[u8; 64], valid: u64) {
        // There is room for 64 more ends than a window has bytes. No branch is between the masks and their use, so that
        // they are combined where they are.
        assert!(self.count <= CAPACITY - 64);
        let out = self.ends[self.count..].first_chunk_mut();
        let out = out.expect("room for 64");
        let bytes = self.isa.load(bytes);
        let [delimiter, terminator] = self.marks;
        let delimiters = self.isa.equal(bytes, delimiter) & valid;
        let terminators = self.isa.equal(bytes, terminator) & valid;
        self.balance.take(delimiters, terminators);
        // Two counts are faster than moving the combined mask.
        let count = delimiters.count_ones() + terminators.count_ones();
        let ends = delimiters | terminators;
        self.base = self.isa.list(ends, count, self.base, out);
        self.count += count as usize;
    }
}

#[cfg(test)]
mod tests {
    use crate::scan::key_number::index::*;
    use proptest::prelude::*;
    use ringfold_read::PaddedBuf;

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
            assert!(!ends.balanced(), "{level:?}");
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
