//! What a test says of texts that it has met: where few are different, each is decided once.

use crate::expression::pattern::SearchCache;
use crate::expression::{Doubts, Reading};
use crate::scan::index::TextWindow;

/// Longer texts aren't kept.
const TEXT_MAX: usize = 32;
/// After so many texts it is clear whether they repeat.
const TRIAL: u32 = 1 << 14;

/// A text of up to [`TEXT_MAX`] bytes, and how many they are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Text {
    words: [u128; 2],
    len: u32,
}

impl Text {
    /// No value has it.
    pub(super) const NONE: Text = Text {
        words: [0; 2],
        len: u32::MAX,
    };

    /// That of a value, if it isn't longer.
    #[inline(always)]
    pub(super) fn at(window: TextWindow<'_>, span: u32) -> Option<Text> {
        let (start, end) = ((span & 0xffff) as usize, (span >> 16) as usize);
        let len = end - 1 - start;
        (len <= TEXT_MAX).then(|| Text::new(window.from(start), len))
    }

    /// The first bytes of `from`, so many.
    #[inline(always)]
    fn new(from: &[u8; TEXT_MAX], len: usize) -> Text {
        /// So many of them are ones as a text has bytes.
        const MASKS: [u8; 2 * TEXT_MAX] = {
            let mut masks = [0; 2 * TEXT_MAX];
            masks
                .split_at_mut(TEXT_MAX)
                .0
                .copy_from_slice(&[u8::MAX; TEXT_MAX]);
            masks
        };
        let word = |bytes: &[u8], at: usize| {
            let word = bytes[16 * at..].first_chunk().expect("of 32 bytes");
            u128::from_le_bytes(*word)
        };
        let mask = &MASKS[TEXT_MAX - len..][..TEXT_MAX];
        Text {
            words: [0, 1].map(|at| word(from, at) & word(mask, at)),
            len: len as u32,
        }
    }

    /// The same of bytes that stand in no window.
    pub(super) fn of(bytes: &[u8]) -> Option<Text> {
        let mut padded = [0; TEXT_MAX];
        padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Text::new(&padded, bytes.len()))
    }

    /// A number that differs from most others'.
    #[inline(always)]
    pub(super) fn hash(&self) -> usize {
        const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];
        let [low, high] = self
            .words
            .map(|word| (word ^ (word >> 64).wrapping_mul(3)) as u64);
        let mixed = (low ^ u64::from(self.len)).wrapping_mul(FACTORS[0]);
        let mixed = (mixed ^ mixed >> 32 ^ high).wrapping_mul(FACTORS[1]);
        (mixed >> 40) as usize
    }
}

/// What is known of texts: of up to `PLACES`, each at the place that its hash names.
pub(super) struct Known<T, const PLACES: usize> {
    places: Vec<(Text, T)>,
    asked: u32,
    found: u32,
}

impl<T: Copy + Default, const PLACES: usize> Known<T, PLACES> {
    /// Nothing, and no memory for it before [`Known::forget`].
    pub(super) fn new() -> Known<T, PLACES> {
        Known {
            places: Vec::new(),
            asked: 0,
            found: 0,
        }
    }

    pub(super) fn forget(&mut self) {
        self.places.clear();
        self.places.resize(PLACES, (Text::NONE, T::default()));
    }

    /// Whether texts repeat, as far as it is clear.
    #[inline(always)]
    pub(super) fn repeats(&self) -> bool {
        self.asked < TRIAL || self.found >= TRIAL / 2
    }

    /// The place of a text, which is looked up, and whether it is the text that is known there.
    #[inline(always)]
    pub(super) fn place(&mut self, text: &Text) -> (&mut (Text, T), bool) {
        let place = &mut self.places[text.hash() % PLACES];
        let is_known = place.0 == *text;
        if self.asked < TRIAL {
            self.asked += 1;
            self.found += u32::from(is_known);
        }
        (place, is_known)
    }
}

/// The verdicts of one test.
pub(super) struct Verdicts {
    cache: Option<SearchCache>,
    /// Whether it is true of a text, and its doubts.
    known: Known<(bool, Doubts), { 1 << 11 }>,
}

impl Verdicts {
    pub(super) fn new() -> Verdicts {
        let mut known = Known::new();
        known.forget();
        Verdicts { cache: None, known }
    }

    /// Whether `decide` is true of a text, and its doubts.
    #[inline]
    pub(super) fn of(
        &mut self,
        text: Option<Text>,
        doubts: &mut Doubts,
        decide: impl FnOnce(&mut Option<SearchCache>, &mut Doubts) -> bool,
    ) -> bool {
        let is_looked_up = self.known.repeats() && doubts.reading == Reading::Strict;
        let Some(text) = text.filter(|_| is_looked_up) else {
            return decide(&mut self.cache, doubts);
        };
        let (place, is_known) = self.known.place(&text);
        if !is_known {
            let mut own = Doubts::default();
            let is_true = decide(&mut self.cache, &mut own);
            *place = (text, (is_true, own));
        }
        let (is_true, own) = place.1;
        doubts.is_unread |= own.is_unread;
        doubts.is_bytewise |= own.is_bytewise;
        is_true
    }
}
