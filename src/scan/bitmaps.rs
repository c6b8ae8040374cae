//! Bitmaps of a window: for each of some sets of bytes a bit for each byte of the window that belongs to it.
//! Newlines belong to every set.

use ringfold_read::internals::{
    Level,
    isa::{Isa, dispatch},
};

use crate::scan::index::{CHUNKS, TextWindow, WINDOW};

/// The bytes of a set beside the newline, which is in each.
pub(crate) type Set = [u8; 2];

/// Where the bytes of some sets stand in a window.
pub(crate) struct Bitmaps {
    sets: Vec<Set>,
    /// Of each set, eight places a byte. Behind the window's bits all are set.
    bits: Vec<[[u8; 8]; CHUNKS + 2]>,
    /// Bytes of the window.
    length: usize,
}

impl Bitmaps {
    pub(crate) fn new(sets: Vec<Set>) -> Bitmaps {
        let bits = sets.iter().map(|_| [[0xff; 8]; CHUNKS + 2]);
        Bitmaps {
            bits: bits.collect(),
            length: 0,
            sets,
        }
    }

    /// Looks through a window.
    pub(crate) fn fill(&mut self, level: Level, window: TextWindow<'_>) {
        dispatch!(level, isa => self.fill_by(isa, window));
    }

    #[inline(always)]
    fn fill_by<I: Isa>(&mut self, isa: I, window: TextWindow<'_>) {
        let length = window.bytes().len();
        self.length = length;
        let chunks = length.div_ceil(64);
        let used = length % 64;
        for chunk in 0..chunks {
            let behind = match used > 0 && chunk == chunks - 1 {
                true => u64::MAX << used,
                false => 0,
            };
            let text = isa.load(window.from(64 * chunk));
            let newlines = isa.equal(text, b'\n') | behind;
            for (&set, bits) in self.sets.iter().zip(&mut self.bits) {
                bits[chunk] = (newlines | isa.among(text, set)).to_le_bytes();
            }
        }
        for bits in &mut self.bits {
            bits[chunks] = [0xff; 8];
        }
    }

    /// Lists the places of newlines in the window that was looked through, in order. `newlines` is the set that has no
    /// others.
    pub(crate) fn list_newlines(&self, newlines: usize, to: &mut Places) {
        assert!(self.sets[newlines] == [b'\n'; 2]);
        to.count = 0;
        for (chunk, bits) in (0..).zip(&self.bits[newlines][..self.length.div_ceil(64)]) {
            let mut left = u64::from_le_bytes(*bits);
            // Lines are rarely shorter than 64 bytes: so there is no branch but for those.
            loop {
                to.places[to.count] = 64 * chunk + left.trailing_zeros();
                to.count += usize::from(left != 0);
                left &= left.wrapping_sub(1);
                if left == 0 {
                    break;
                }
            }
        }
        // Behind the window's last byte bits are set.
        while to
            .all()
            .last()
            .is_some_and(|&at| at as usize >= self.length)
        {
            to.count -= 1;
        }
    }

    /// For each place in `at` the first of a set's from there on. Lists in `rest` those for which it isn't known, because
    /// it is far away, or where `literal` doesn't stand there.
    ///
    /// # Panics
    /// If a place is after the end of `window`, which was looked through.
    pub(crate) fn find(
        &self,
        level: Level,
        window: TextWindow<'_>,
        (set, literal): (usize, &Literal),
        at: &[u32],
        found: &mut [u32],
        rest: &mut Vec<u32>,
    ) {
        let bits = self.bits[set].as_flattened();
        rest.resize(at.len() + 1, 0);
        let search = Search {
            window,
            bits,
            literal,
            at,
        };
        let count = dispatch!(level, _isa => search.find(found, rest));
        rest.truncate(count);
    }

    /// The bitmap of a set.
    #[inline(always)]
    pub(crate) fn of(&self, set: usize) -> Bitmap<'_> {
        Bitmap {
            bytes: self.bits[set].as_flattened(),
        }
    }
}

/// Where the bytes of a set stand.
#[derive(Clone, Copy)]
pub(crate) struct Bitmap<'a> {
    bytes: &'a [u8],
}

impl Bitmap<'_> {
    /// The first place from `at` on, which is in the window or at its end. It is the window's end if there is none in it.
    #[inline(always)]
    pub(crate) fn next(self, mut at: usize) -> usize {
        loop {
            let bytes: [u8; 8] = self.bytes[at / 8..][..8].try_into().expect("eight bytes");
            let bits = u64::from_le_bytes(bytes) >> (at % 8);
            if bits != 0 {
                return at + bits.trailing_zeros() as usize;
            }
            at += 64 - at % 8;
        }
    }
}

/// Places in a window, in order.
pub(crate) struct Places {
    places: Box<[u32]>,
    count: usize,
}

impl Places {
    pub(crate) fn new() -> Places {
        Places {
            places: vec![0; WINDOW + 64].into(),
            count: 0,
        }
    }

    pub(crate) fn all(&self) -> &[u32] {
        &self.places[..self.count]
    }
}

/// Bytes that stand somewhere, at most eight.
pub(crate) struct Literal {
    bytes: u64,
    mask: u64,
    pub(crate) len: usize,
}

impl Literal {
    /// There is none if they are too many.
    pub(crate) fn new(bytes: &[u8]) -> Option<Literal> {
        let mut padded = [0; 8];
        padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let unused = 8 * (8 - bytes.len()) as u32;
        Some(Literal {
            bytes: u64::from_le_bytes(padded),
            mask: u64::MAX.checked_shr(unused).unwrap_or(0),
            len: bytes.len(),
        })
    }

    /// Whether they stand at a place of `window`.
    #[inline(always)]
    pub(crate) fn is_at(&self, window: TextWindow<'_>, at: usize) -> bool {
        self.is(window.words_at(at) as u64)
    }

    #[inline(always)]
    fn is(&self, text: u64) -> bool {
        (text ^ self.bytes) & self.mask == 0
    }
}

/// A look for a literal from each of some places on.
struct Search<'a> {
    window: TextWindow<'a>,
    /// The bitmap of the window.
    bits: &'a [u8],
    literal: &'a Literal,
    /// None is behind the window.
    at: &'a [u32],
}

impl Search<'_> {
    /// Returns how many are in `rest`. It has no branch on the data.
    #[inline(always)]
    fn find(&self, found: &mut [u32], rest: &mut [u32]) -> usize {
        let mut count = 0;
        for (line, (&at, found)) in self.at.iter().zip(found).enumerate() {
            let bits = self.bits[at as usize / 8..].first_chunk();
            // Bits after the window are set: so a place with none among the 57 or more that are looked at is further
            // before the window's end, and `stop` at most 7 bytes after it.
            let seen = u64::from_le_bytes(*bits.expect("bits after the window")) >> (at % 8);
            let stop = at + (seen | 1 << 63).trailing_zeros();
            let text = u64::from_le_bytes(*self.window.from(stop as usize));
            *found = stop;
            rest[count] = line as u32;
            count += usize::from(seen == 0) | usize::from(!self.literal.is(text));
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfold_read::PaddedBuf;

    #[test]
    fn bits_are_those_of_the_bytes() {
        let mut random = 1_u64;
        let mut byte = move || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // Few of most, and long stretches of none.
            match random >> 60 {
                few @ 0..2 => 1 + few as u8,
                2 => b'\n',
                _ => 0,
            }
        };
        for level in Level::available() {
            let mut bitmaps = Bitmaps::new(vec![[1, 2], [b'\n'; 2]]);
            for length in [0, 1, 63, 64, 65, 1000, WINDOW - 1, WINDOW, 130] {
                let text: Vec<u8> = (0..length).map(|_| byte()).collect();
                let padded = PaddedBuf::from(&text[..]);
                let block = padded.block(0, 0, 0);
                bitmaps.fill(level, TextWindow::at(&block, 0));
                let newlines = (0..).zip(&text).filter(|(_, byte)| **byte == b'\n');
                let mut listed = Places::new();
                bitmaps.list_newlines(1, &mut listed);
                let newlines: Vec<u32> = newlines.map(|(at, _)| at).collect();
                assert_eq!(listed.all(), newlines, "{level:?} {length}");
                for (set, bytes) in bitmaps.sets.iter().enumerate() {
                    let mut want = length;
                    for at in (0..=length).rev() {
                        if text
                            .get(at)
                            .is_some_and(|byte| *byte == b'\n' || bytes.contains(byte))
                        {
                            want = at;
                        }
                        assert_eq!(bitmaps.of(set).next(at), want, "{level:?} {length} {at}");
                    }
                }
            }
        }
    }
}
