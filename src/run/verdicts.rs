//! What a test says of texts that it has met: where few are different, each is decided once.

use crate::expression::pattern::SearchCache;
use crate::expression::{Doubts, Reading};
use crate::scan::index::TextWindow;

/// How many texts are kept: each at the place that its hash names.
const PLACES: usize = 1 << 11;
/// Longer texts aren't kept.
const TEXT_MAX: usize = 32;
/// After so many texts it is clear whether they repeat.
pub(super) const TRIAL: u32 = 1 << 14;

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

/// The verdicts of one test.
pub(super) struct Verdicts {
    cache: Option<SearchCache>,
    places: Vec<Verdict>,
    asked: u32,
    known: u32,
}

#[derive(Clone, Copy)]
struct Verdict {
    text: Text,
    is_true: bool,
    doubts: Doubts,
}

impl Verdicts {
    pub(super) fn new() -> Verdicts {
        let none = Verdict {
            text: Text::NONE,
            is_true: false,
            doubts: Doubts::default(),
        };
        Verdicts {
            cache: None,
            places: vec![none; PLACES],
            asked: 0,
            known: 0,
        }
    }

    /// Whether `decide` is true of a text, and its doubts.
    #[inline]
    pub(super) fn of(
        &mut self,
        text: Option<Text>,
        doubts: &mut Doubts,
        decide: impl FnOnce(&mut Option<SearchCache>, &mut Doubts) -> bool,
    ) -> bool {
        let are_different = self.asked == TRIAL && self.known < TRIAL / 2;
        let Some(text) = text.filter(|_| !are_different && doubts.reading == Reading::Strict)
        else {
            return decide(&mut self.cache, doubts);
        };
        let verdict = &mut self.places[text.hash() % PLACES];
        let is_known = verdict.text == text;
        if self.asked < TRIAL {
            self.asked += 1;
            self.known += u32::from(is_known);
        }
        if !is_known {
            verdict.doubts = Doubts::default();
            verdict.is_true = decide(&mut self.cache, &mut verdict.doubts);
            verdict.text = text;
        }
        doubts.is_unread |= verdict.doubts.is_unread;
        doubts.is_bytewise |= verdict.doubts.is_bytewise;
        verdict.is_true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<Text> {
        let mut padded = [b'x'; TEXT_MAX];
        padded[..text.len()].copy_from_slice(text.as_bytes());
        Some(Text::new(&padded, text.len()))
    }

    #[test]
    fn texts_are_themselves() {
        let all = [
            "",
            "\0",
            "x",
            "xx",
            "0123456789abcdef",
            "0123456789abcdefx",
            "0123456789abcdefg",
            "0123456789abcdef0123456789abcdef",
        ];
        for one in all {
            for other in all {
                assert_eq!(text(one) == text(other), one == other, "{one} {other}");
            }
        }
        let places: std::collections::BTreeSet<usize> = (0..200)
            .map(|at| text(&format!("city {at}")).unwrap().hash() % PLACES)
            .collect();
        assert!(places.len() > 150, "{}", places.len());
    }

    #[test]
    fn texts_that_repeat_are_decided_once() {
        let mut verdicts = Verdicts::new();
        for at in 0..3 * TRIAL {
            // Many different texts after few.
            let different = if at < 2 * TRIAL { 5 } else { TRIAL };
            let mut doubts = Doubts::default();
            let is_odd = verdicts.of(
                text(&format!("text {}", at % different)),
                &mut doubts,
                |_, doubts| {
                    doubts.is_unread = at % different == 3;
                    at % different % 2 == 1
                },
            );
            assert_eq!(is_odd, at % different % 2 == 1);
            assert_eq!(doubts.is_unread, at % different == 3);
            assert!(!doubts.is_bytewise);
        }
        verdicts.of(text("0"), &mut Doubts::default(), |_, _| true);
        let mut decided = 0;
        for reading in [Reading::Strict, Reading::Hopeful, Reading::Strict] {
            for text in [text("0"), None] {
                verdicts.of(text, &mut Doubts::of(reading), |_, _| {
                    decided += 1;
                    true
                });
            }
        }
        // A hopeful reading and a long text have no verdicts.
        assert_eq!(decided, 4);
    }

    #[test]
    fn texts_that_do_not_repeat_are_not_kept() {
        let mut verdicts = Verdicts::new();
        let mut decided = 0;
        for at in (0..TRIAL).chain([0, 0, 0]) {
            verdicts.of(text(&at.to_string()), &mut Doubts::default(), |_, _| {
                decided += 1;
                true
            });
        }
        assert_eq!(decided, TRIAL + 3);
    }
}
