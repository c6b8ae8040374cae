//! Records of fields that may be quoted: where they end, and what bytes do to the state.
//!
//! `Quoted::step` defines the framing, byte by byte. Long pieces are gone over 64 bytes at a time: in [`Pass`] every quote
//! changes between inside and outside, which is right unless one stands within an unquoted field. The 64 bytes around
//! such a quote are gone over byte by byte.

use std::ops::Range;

use memchr::{memchr, memchr2, memrchr};

use crate::isa::{Isa, dispatch};
use crate::level::Level;
use crate::record::bytes::contains;
use crate::record::framing::{Effect, Framing, STATES_MAX, State};

/// Lines of fields that may be quoted, as RFC 4180 has them: a field that begins with the quote goes on to the next
/// single quote, over delimiters and newlines; a doubled quote stands for one. A quote inside an unquoted field is a
/// byte like others. A byte order mark at the start of a file belongs to no field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoted {
    delimiter: u8,
    quote: u8,
    at_part: State,
}

/// The states of [`Quoted`].
mod states {
    use crate::record::framing::State;

    /// At the start of a field.
    pub(super) const FIELD: State = State::START;
    /// In a field without quotes, or after the closing quote of one.
    pub(super) const PLAIN: State = State::new(1);
    /// Between quotes.
    pub(super) const INSIDE: State = State::new(2);
    /// Behind a quote between quotes, which closes them unless another quote follows.
    pub(super) const CLOSING: State = State::new(3);
    /// At the start of a file, and after the first and the second byte of a byte order mark.
    pub(super) const FILE: State = State::new(4);
    pub(super) const MARK_1: State = State::new(5);
    pub(super) const MARK_2: State = State::new(6);
}

impl Quoted {
    /// Fields between `delimiter`s, quoted by `quote`, in lines.
    ///
    /// # Panics
    /// When two of the three bytes are the same.
    pub const fn new(delimiter: u8, quote: u8) -> Quoted {
        assert!(
            delimiter != quote && delimiter != b'\n' && quote != b'\n',
            "delimiter, quote and newline are three bytes"
        );
        Quoted {
            delimiter,
            quote,
            at_part: State::START,
        }
    }

    /// The same where a [part](crate::Input::part) that begins within a file is taken to begin within a quoted field, unless
    /// something else is said of it.
    pub const fn within_quotes_at_part(self) -> Quoted {
        Quoted {
            at_part: states::INSIDE,
            ..self
        }
    }

    /// RFC 4180: commas and double quotes.
    pub const CSV: Quoted = Quoted::new(b',', b'"');

    /// Whether a field begins after this byte, if it stands outside quotes.
    fn ends_field(&self, byte: u8) -> bool {
        byte == self.delimiter || byte == b'\n'
    }

    /// The state after one more byte: the definition of this framing.
    fn step(&self, state: State, byte: u8) -> State {
        match state {
            states::INSIDE if byte == self.quote => states::CLOSING,
            states::INSIDE => states::INSIDE,
            states::CLOSING if byte == self.quote => states::INSIDE,
            states::FILE if byte == 0xef => states::MARK_1,
            states::MARK_1 if byte == 0xbb => states::MARK_2,
            states::MARK_2 if byte == 0xbf => states::FIELD,
            states::FIELD | states::FILE if byte == self.quote => states::INSIDE,
            _ if self.ends_field(byte) => states::FIELD,
            _ => states::PLAIN,
        }
    }

    /// Goes over `bytes` in stretches: `outside` is called with each stretch that lies outside quotes, and may end the
    /// walk by `true`. Returns the state after the last byte.
    fn walk(
        &self,
        mut state: State,
        bytes: &[u8],
        mut outside: impl FnMut(Range<usize>) -> bool,
    ) -> State {
        let mut at = 0;
        while at < bytes.len() {
            match state {
                states::INSIDE => match memchr(self.quote, &bytes[at..]) {
                    Some(quote) => (at, state) = (at + quote + 1, states::CLOSING),
                    None => return state,
                },
                states::FIELD | states::PLAIN => {
                    let (start, mut from) = (at, at);
                    // The next quote that opens a field.
                    let opening = loop {
                        let Some(quote) = memchr(self.quote, &bytes[from..]) else {
                            break None;
                        };
                        let quote = from + quote;
                        let opens = match quote == start {
                            true => state == states::FIELD,
                            false => self.ends_field(bytes[quote - 1]),
                        };
                        if opens {
                            break Some(quote);
                        }
                        from = quote + 1;
                    };
                    let end = opening.unwrap_or(bytes.len());
                    if outside(start..end) {
                        return state;
                    }
                    let last = bytes[end - usize::from(end > start)];
                    (at, state) = match opening {
                        Some(quote) => (quote + 1, states::INSIDE),
                        None if self.ends_field(last) => (end, states::FIELD),
                        None => (end, states::PLAIN),
                    };
                }
                _ => {
                    let next = self.step(state, bytes[at]);
                    if next != states::INSIDE && outside(at..at + 1) {
                        return state;
                    }
                    (at, state) = (at + 1, next);
                }
            }
        }
        state
    }
}

impl Framing for Quoted {
    fn is_stateful(&self) -> bool {
        true
    }

    fn initial(&self) -> State {
        states::FILE
    }

    fn at_part(&self) -> State {
        self.at_part
    }

    fn within_quotes(&self) -> Option<State> {
        Some(states::INSIDE)
    }

    fn effect(&self, bytes: &[u8]) -> Effect {
        // Most states meet within a few bytes: each of those that are left is followed once.
        let (head, mut rest) = bytes.split_at(bytes.len().min(4));
        let after_head = Effect::of(|state| {
            let step = |state, &byte| self.step(state, byte);
            head.iter().fold(state, step)
        });
        if !contains(Level::detect(), self.quote, rest) {
            let without = |state| self.after_unquoted(state, rest);
            return after_head.then(&Effect::of(without));
        }
        let mut all = after_head;
        while !rest.is_empty() {
            let (stretch, behind) = rest.split_at(rest.len().min(STRETCH));
            let stretch = match all.is_constant() {
                true => rest,
                false => stretch,
            };
            let mut known = [None; STATES_MAX];
            all = Effect::of(|state| {
                let before = all.apply(state);
                let known = &mut known[usize::from(before.number())];
                *known.get_or_insert_with(|| self.pass(before, stretch, |_, _| {}))
            });
            if stretch.len() == rest.len() {
                break;
            }
            rest = behind;
        }
        all
    }

    fn first_end(&self, state: State, bytes: &[u8]) -> Option<usize> {
        // Most lines hold no quote at all.
        if matches!(state, states::FIELD | states::PLAIN)
            && let Some(at) = memchr2(self.quote, b'\n', bytes)
            && bytes[at] == b'\n'
        {
            return Some(at + 1);
        }
        let mut found = None;
        self.walk(state, bytes, |outside| {
            let start = outside.start;
            found = memchr(b'\n', &bytes[outside]).map(|at| start + at + 1);
            found.is_some()
        });
        found
    }

    fn last_end(&self, state: State, bytes: &[u8]) -> Option<usize> {
        if memchr(self.quote, bytes).is_none() {
            let is_outside = state != states::INSIDE;
            return memrchr(b'\n', bytes)
                .filter(|_| is_outside)
                .map(|at| at + 1);
        }
        self.last_end_of_tail(bytes)
            .or_else(|| self.last_end_from(state, bytes))
    }
}

/// Bytes that several states are followed over at once, until only one is left.
const STRETCH: usize = 1024;

impl Quoted {
    /// The state after bytes without a quote.
    fn after_unquoted(&self, state: State, bytes: &[u8]) -> State {
        match (state, bytes.last()) {
            (_, None) | (states::INSIDE, _) => state,
            (_, Some(_)) if is_at_file_start(state) => {
                // At the latest after a whole byte order mark it is another.
                let (first, rest) = bytes.split_at(1);
                self.after_unquoted(self.step(state, first[0]), rest)
            }
            (_, Some(&last)) if self.ends_field(last) => states::FIELD,
            _ => states::PLAIN,
        }
    }

    /// One past the last record end in `bytes`, where they have one and their last few bytes tell it.
    fn last_end_of_tail(&self, bytes: &[u8]) -> Option<usize> {
        let start = bytes.len().checked_sub(8 * STRETCH)?;
        let (head, tail) = bytes[start..].split_at(4 * STRETCH);
        // Whatever the state was before, it is the same after the head.
        let mut states = [
            states::FIELD,
            states::PLAIN,
            states::INSIDE,
            states::CLOSING,
        ];
        for stretch in head.chunks(STRETCH) {
            states = states.map(|state| self.pass(state, stretch, |_, _| {}));
            if states.iter().all(|state| *state == states[0]) {
                break;
            }
        }
        let [state, others @ ..] = states;
        if others.iter().any(|other| *other != state) {
            return None;
        }
        // The head may have been left early.
        let state = self.pass(states::FIELD, head, |_, _| {});
        let end = self.last_end_from(state, tail)?;
        Some(bytes.len() - tail.len() + end)
    }

    /// One past the last record end in `bytes`, which begin in `state`.
    fn last_end_from(&self, state: State, bytes: &[u8]) -> Option<usize> {
        let mut found = None;
        self.pass(state, bytes, |at, ends| {
            found = Some(at + 64 - ends.leading_zeros() as usize);
        });
        found
    }

    /// Goes over `bytes`, which begin in `state`, and calls `each` with the places that have record ends: a bit for each
    /// byte from there on. Returns the state after them.
    fn pass(&self, state: State, bytes: &[u8], each: impl FnMut(usize, u64)) -> State {
        self.pass_of(Level::detect(), state, bytes, each)
    }

    fn pass_of(
        &self,
        level: Level,
        state: State,
        bytes: &[u8],
        each: impl FnMut(usize, u64),
    ) -> State {
        dispatch!(level, isa => self.pass_by(isa, state, bytes, each))
    }

    #[inline(always)]
    fn pass_by<I: Isa>(
        &self,
        isa: I,
        mut state: State,
        bytes: &[u8],
        mut each: impl FnMut(usize, u64),
    ) -> State {
        let mut at = 0;
        while at < bytes.len() && is_at_file_start(state) {
            state = self.step(state, bytes[at]);
            if bytes[at] == b'\n' {
                each(at, 1);
            }
            at += 1;
        }
        if at == bytes.len() {
            return state;
        }
        let (chunks, rest) = bytes[at..].as_chunks::<64>();
        let mut pass = Pass::new(state);
        for chunk in chunks {
            let bytes = isa.load(chunk);
            let [quotes, newlines, delimiters] = [
                isa.equal(bytes, self.quote),
                isa.equal(bytes, b'\n'),
                isa.equal(bytes, self.delimiter),
            ];
            let ends = pass.take(isa, quotes, newlines, delimiters);
            let ends = ends.unwrap_or_else(|| {
                let (state, ends) = self.slowly(pass.state(), chunk);
                pass = Pass::new(state);
                ends
            });
            if ends != 0 {
                each(at, ends);
            }
            at += 64;
        }
        let (state, ends) = self.slowly(pass.state(), rest);
        if ends != 0 {
            each(at, ends);
        }
        state
    }

    /// The same for up to 64 bytes, one after the other.
    fn slowly(&self, mut state: State, bytes: &[u8]) -> (State, u64) {
        let mut ends = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            ends |= u64::from(byte == b'\n' && state != states::INSIDE) << at;
            state = self.step(state, byte);
        }
        (state, ends)
    }
}

/// Whether bytes of a byte order mark would belong to it.
fn is_at_file_start(state: State) -> bool {
    matches!(state, states::FILE | states::MARK_1 | states::MARK_2)
}

/// What is known of the byte before the next 64.
struct Pass {
    /// All ones between quotes.
    inside: u64,
    /// 1 if it ended a field, or a record.
    was_end: u64,
    /// 1 if it was a quote that closes.
    was_closing: u64,
}

impl Pass {
    fn new(state: State) -> Pass {
        Pass {
            inside: if state == states::INSIDE { !0 } else { 0 },
            was_end: u64::from(state == states::FIELD),
            was_closing: u64::from(state == states::CLOSING),
        }
    }

    fn state(&self) -> State {
        match (self.inside, self.was_closing, self.was_end) {
            (0, 0, 0) => states::PLAIN,
            (0, 0, _) => states::FIELD,
            (0, ..) => states::CLOSING,
            _ => states::INSIDE,
        }
    }

    /// Goes over 64 bytes and returns which are record ends; `None`, and nothing is done, if a quote stands within an
    /// unquoted field.
    #[inline(always)]
    fn take<I: Isa>(&mut self, isa: I, quotes: u64, newlines: u64, delimiters: u64) -> Option<u64> {
        let inside = isa.between(quotes) ^ self.inside;
        let ends = (newlines | delimiters) & !inside;
        let (opening, closing) = (quotes & inside, quotes & !inside);
        let may_open = (ends | closing) << 1 | self.was_end | self.was_closing;
        if opening & !may_open != 0 {
            return None;
        }
        self.inside = ((inside as i64) >> 63) as u64;
        self.was_end = ends >> 63;
        self.was_closing = closing >> 63;
        Some(newlines & !inside)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::framing::{Delimited, texts};

    /// The fast ways against the definition, byte by byte, from every state.
    #[test]
    fn quoted_goes_by_its_definition() {
        let max = if cfg!(miri) { 3 } else { 6 };
        let csv = Quoted::CSV;
        for text in texts(b"a,\"\n\xef", max)
            .into_iter()
            .chain(texts(b"\xef\xbb\xbf\"\n", max))
        {
            let effect = csv.effect(&text);
            for number in 0..7 {
                let before = State::new(number);
                let mut state = before;
                let mut ends = Vec::new();
                for (at, &byte) in text.iter().enumerate() {
                    let inside = state == states::INSIDE;
                    state = csv.step(state, byte);
                    if byte == b'\n' && !inside {
                        assert_eq!(state, State::START, "{text:?}");
                        ends.push(at + 1);
                    }
                }
                assert_eq!(effect.apply(before), state, "{text:?} from {before:?}");
                assert_eq!(
                    csv.first_end(before, &text),
                    ends.first().copied(),
                    "{text:?} from {before:?}"
                );
                assert_eq!(
                    csv.last_end(before, &text),
                    ends.last().copied(),
                    "{text:?} from {before:?}"
                );
            }
        }
    }

    #[test]
    fn effects_combine() {
        let csv = Quoted::CSV;
        let longest = if cfg!(miri) { 3 } else { 5 };
        for text in texts(b"a,\"\n", longest) {
            for at in 0..=text.len() {
                let (head, tail) = text.split_at(at);
                let both = csv.effect(head).then(&csv.effect(tail));
                assert_eq!(both, csv.effect(&text), "{text:?} cut at {at}");
            }
        }
    }

    #[test]
    fn a_byte_order_mark_belongs_to_no_field() {
        let text = b"\xef\xbb\xbf\"a\nb\"\nc\n";
        assert_eq!(Quoted::CSV.first_end(Quoted::CSV.initial(), text), Some(9));
        // Elsewhere it is text like any other, and a quote after it opens nothing.
        assert_eq!(Quoted::CSV.first_end(State::START, text), Some(6));
    }

    proptest! {
        /// Longer pieces, from every state.
        #[test]
        fn long_pieces_go_by_the_definition(
            parts in prop::collection::vec(
                prop::sample::select(&[
                    "a", ",", "\n", "\"", "\"\"", "\"x,\ny\",", "plain text of some length, and more\n", "5\" x",
                    "\"quoted text, of some length\"\n",
                ][..]), 0..30),
            repeat in 1..60_usize,
            head in "[a,\"\n]{0,5}",
        ) {
            let text = head + &parts.concat().repeat(repeat);
            let (csv, text) = (Quoted::CSV, text.as_bytes());
            let effect = csv.effect(text);
            for number in 0..7 {
                let before = State::new(number);
                let (mut state, mut last) = (before, None);
                for (at, &byte) in text.iter().enumerate() {
                    if byte == b'\n' && state != states::INSIDE {
                        last = Some(at + 1);
                    }
                    state = csv.step(state, byte);
                }
                prop_assert_eq!(effect.apply(before), state);
                prop_assert_eq!(csv.last_end(before, text), last);
                for level in Level::available() {
                    let mut found = None;
                    let behind = csv.pass_of(level, before, text, |at, ends| {
                        found = Some(at + 64 - ends.leading_zeros() as usize);
                    });
                    prop_assert_eq!((behind, found), (state, last));
                }
            }
        }
    }

    #[test]
    fn long_records_are_found() {
        for max in 1..6 {
            for text in texts(b"a\"\n", 6) {
                // Of text without quotes lines are records.
                if !text.contains(&b'"') {
                    let want = Delimited::NEWLINE.oversized(State::START, &text, max);
                    assert_eq!(Quoted::CSV.oversized(State::START, &text, max), want);
                }
            }
        }
        let text = b"\"a\nb\nc\",d\ne\n";
        assert_eq!(Quoted::CSV.oversized(State::START, text, 8), Some(0..8));
        assert_eq!(Quoted::CSV.oversized(State::START, text, 9), None);
    }
}
