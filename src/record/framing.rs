//! Where records end: pure code, without I/O or threads.
//!
//! An engine asks a [`Framing`] where in a piece of a file the first record ends, and where the last. With quotes the
//! answer depends on all bytes before the piece, since a newline inside quotes ends no record. Such a framing has a
//! [`State`]. Pieces arrive in any order, so each is first reduced to its [`Effect`]: the state behind it, for every
//! state before it. Effects are small, and combine in file order.

use std::fmt;
use std::ops::Range;

use memchr::{memchr, memchr2, memrchr};

/// How many states a framing can have.
pub const STATES_MAX: usize = 8;

/// What a framing knows of the bytes before a place: a number below [`STATES_MAX`], of the framing's own meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State(u8);

impl State {
    /// The state behind a record's end, and so at the start of every record but a file's first.
    pub const START: State = State(0);

    /// A state by its number.
    ///
    /// # Panics
    /// From [`STATES_MAX`] on.
    pub const fn new(number: u8) -> State {
        assert!((number as usize) < STATES_MAX, "a framing has few states");
        State(number)
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// What some bytes do to the state: the state behind them, for every state before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect([State; STATES_MAX]);

impl Effect {
    /// The effect of no bytes.
    pub const NONE: Effect = Effect([
        State(0),
        State(1),
        State(2),
        State(3),
        State(4),
        State(5),
        State(6),
        State(7),
    ]);

    /// The effect that leads from each state to `behind` it.
    pub fn of(mut behind: impl FnMut(State) -> State) -> Effect {
        Effect(Effect::NONE.0.map(&mut behind))
    }

    /// The state behind the bytes.
    pub fn apply(&self, before: State) -> State {
        self.0[usize::from(before.0)]
    }

    /// The effect of these bytes and then the `next` ones.
    #[must_use]
    pub fn then(&self, next: &Effect) -> Effect {
        Effect(self.0.map(|between| next.apply(between)))
    }
}

/// Where records end. A job names one, and everybody between the file and the job goes by it.
///
/// Behind a record's end the state is [`State::START`]. A framing without a state needs only [`Framing::first_end`]
/// and [`Framing::last_end`].
pub trait Framing: fmt::Debug + Send + Sync {
    /// Whether the state matters. Where it doesn't, it is always [`State::START`].
    fn is_stateful(&self) -> bool {
        false
    }

    /// The state at the start of a file.
    fn initial(&self) -> State {
        State::START
    }

    /// The state at the start of the record that begins at this byte of a file.
    fn at_record(&self, offset: u64) -> State {
        match offset {
            0 => self.initial(),
            _ => State::START,
        }
    }

    /// What `bytes` do to the state.
    fn effect(&self, bytes: &[u8]) -> Effect {
        let _ = bytes;
        Effect::NONE
    }

    /// One past the first record end in `bytes`, which begin in `state`.
    fn first_end(&self, state: State, bytes: &[u8]) -> Option<usize>;

    /// One past the last record end in `bytes`, which begin in `state`.
    fn last_end(&self, state: State, bytes: &[u8]) -> Option<usize>;

    /// The byte that ends a line, for the number of the line in an error; `None` where there are no lines.
    fn line_end(&self) -> Option<u8> {
        Some(b'\n')
    }

    /// The first record of `bytes` (whole records, the first of which begins in `state`) that is longer than `max`
    /// bytes, its end not counted.
    ///
    /// It looks at a few bytes in every `max`: a record end must follow a record's start within `max` bytes, and the
    /// last one there is the next start.
    fn oversized(&self, mut state: State, bytes: &[u8], max: usize) -> Option<Range<usize>> {
        let mut start = 0;
        while bytes.len() - start > max {
            let end = self.last_end(state, &bytes[start..=start + max]);
            let Some(end) = end else {
                return Some(start..start + max);
            };
            start += end;
            state = State::START;
        }
        None
    }
}

/// Records that end at a byte: newline, NUL, or any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delimited {
    /// `None`: at every byte.
    by: Option<u8>,
}

impl Delimited {
    /// Lines.
    pub const NEWLINE: Delimited = Delimited::by(b'\n');
    /// NUL-terminated records, as `find -print0` writes them.
    pub const NUL: Delimited = Delimited::by(0);
    /// Every byte is a record: for jobs that look at bytes, to which no limit on records applies.
    pub const EVERY_BYTE: Delimited = Delimited { by: None };

    /// Records that end with this byte.
    pub const fn by(delimiter: u8) -> Self {
        Delimited {
            by: Some(delimiter),
        }
    }
}

impl Framing for Delimited {
    fn first_end(&self, _: State, bytes: &[u8]) -> Option<usize> {
        match self.by {
            Some(delimiter) => memchr(delimiter, bytes).map(|at| at + 1),
            None => (!bytes.is_empty()).then_some(1),
        }
    }

    fn last_end(&self, _: State, bytes: &[u8]) -> Option<usize> {
        match self.by {
            Some(delimiter) => memrchr(delimiter, bytes).map(|at| at + 1),
            None => (!bytes.is_empty()).then_some(bytes.len()),
        }
    }

    fn line_end(&self) -> Option<u8> {
        self.by
    }
}

/// Lines of fields that may be quoted, as RFC 4180 has them: a field that begins with the quote goes on to the next
/// single quote, over delimiters and newlines; a doubled quote stands for one. A quote inside an unquoted field is a
/// byte like others. A byte order mark at the start of a file belongs to no field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoted {
    delimiter: u8,
    quote: u8,
}

/// The states of [`Quoted`].
mod quoted {
    use super::State;

    /// At the start of a field.
    pub(super) const FIELD: State = State::START;
    /// In a field without quotes, or behind the closing quote of one.
    pub(super) const PLAIN: State = State(1);
    /// Between quotes.
    pub(super) const INSIDE: State = State(2);
    /// Behind a quote between quotes, which closes them unless another quote follows.
    pub(super) const CLOSING: State = State(3);
    /// At the start of a file, and behind the first and the second byte of a byte order mark.
    pub(super) const FILE: State = State(4);
    pub(super) const MARK_1: State = State(5);
    pub(super) const MARK_2: State = State(6);
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
        Quoted { delimiter, quote }
    }

    /// RFC 4180: commas and double quotes.
    pub const CSV: Quoted = Quoted::new(b',', b'"');

    /// Whether a field begins behind this byte, if it stands outside quotes.
    fn ends_field(&self, byte: u8) -> bool {
        byte == self.delimiter || byte == b'\n'
    }

    /// The state behind one more byte: the definition of this framing.
    fn step(&self, state: State, byte: u8) -> State {
        match state {
            quoted::INSIDE if byte == self.quote => quoted::CLOSING,
            quoted::INSIDE => quoted::INSIDE,
            quoted::CLOSING if byte == self.quote => quoted::INSIDE,
            quoted::FILE if byte == 0xef => quoted::MARK_1,
            quoted::MARK_1 if byte == 0xbb => quoted::MARK_2,
            quoted::MARK_2 if byte == 0xbf => quoted::FIELD,
            quoted::FIELD | quoted::FILE if byte == self.quote => quoted::INSIDE,
            _ if self.ends_field(byte) => quoted::FIELD,
            _ => quoted::PLAIN,
        }
    }

    /// Goes over `bytes` in stretches: `outside` is called with each stretch that lies outside quotes, and may end the
    /// walk by `true`. Returns the state behind the last byte.
    fn walk(
        &self,
        mut state: State,
        bytes: &[u8],
        mut outside: impl FnMut(Range<usize>) -> bool,
    ) -> State {
        let mut at = 0;
        while at < bytes.len() {
            match state {
                quoted::INSIDE => match memchr(self.quote, &bytes[at..]) {
                    Some(quote) => (at, state) = (at + quote + 1, quoted::CLOSING),
                    None => return state,
                },
                quoted::FIELD | quoted::PLAIN => {
                    let (start, mut from) = (at, at);
                    // The next quote that opens a field.
                    let opening = loop {
                        let Some(quote) = memchr(self.quote, &bytes[from..]) else {
                            break None;
                        };
                        let quote = from + quote;
                        let opens = match quote == start {
                            true => state == quoted::FIELD,
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
                        Some(quote) => (quote + 1, quoted::INSIDE),
                        None if self.ends_field(last) => (end, quoted::FIELD),
                        None => (end, quoted::PLAIN),
                    };
                }
                _ => {
                    let next = self.step(state, bytes[at]);
                    if next != quoted::INSIDE && outside(at..at + 1) {
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
        quoted::FILE
    }

    fn effect(&self, bytes: &[u8]) -> Effect {
        // Most states meet within a few bytes: each of those that are left is followed once.
        let (head, rest) = bytes.split_at(bytes.len().min(4));
        let behind_head = Effect::of(|state| {
            let step = |state, &byte| self.step(state, byte);
            head.iter().fold(state, step)
        });
        let mut known = [None; STATES_MAX];
        let behind_rest = |state: State| {
            let known = &mut known[usize::from(state.0)];
            *known.get_or_insert_with(|| self.walk(state, rest, |_| false))
        };
        Effect(behind_head.0.map(behind_rest))
    }

    fn first_end(&self, state: State, bytes: &[u8]) -> Option<usize> {
        // Most lines hold no quote at all.
        if matches!(state, quoted::FIELD | quoted::PLAIN)
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
        let mut found = None;
        self.walk(state, bytes, |outside| {
            let start = outside.start;
            let end = memrchr(b'\n', &bytes[outside]).map(|at| start + at + 1);
            found = end.or(found);
            false
        });
        found
    }
}

/// All texts of up to `max` bytes of an alphabet, for tests of every small case.
#[cfg(test)]
pub(crate) fn texts(alphabet: &[u8], max: usize) -> Vec<Vec<u8>> {
    let mut all = vec![vec![]];
    let mut last = all.clone();
    for _ in 0..max {
        last = last
            .iter()
            .flat_map(|text| alphabet.iter().map(|&b| [text.as_slice(), &[b]].concat()))
            .collect();
        all.extend(last.clone());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends() {
        let (start, lines) = (State::START, Delimited::NEWLINE);
        assert_eq!(lines.first_end(start, b"a\nb\nc"), Some(2));
        assert_eq!(lines.last_end(start, b"a\nb\nc"), Some(4));
        assert_eq!(lines.first_end(start, b"abc"), None);
        assert_eq!(Delimited::NUL.first_end(start, b"a\n\0c"), Some(3));
    }

    #[test]
    fn oversized_is_found_wherever_it_stands() {
        for max in 1..6 {
            for before in 0..5 {
                for len in 0..9 {
                    for newline in [true, false] {
                        let mut text = b"x\n".repeat(before);
                        text.extend(vec![b'y'; len]);
                        if newline {
                            text.extend(b"\nz\n");
                        }
                        let start = before * 2;
                        let want = (len > max).then_some(start..start + max);
                        let got = Delimited::NEWLINE.oversized(State::START, &text, max);
                        assert_eq!(got, want, "max {max}, before {before}, len {len}");
                        let got = Quoted::CSV.oversized(State::START, &text, max);
                        assert_eq!(got, want, "max {max}, before {before}, len {len}");
                        let got = Delimited::EVERY_BYTE.oversized(State::START, &text, max);
                        assert_eq!(got, None);
                    }
                }
            }
        }
        let text = b"\"a\nb\nc\",d\ne\n";
        assert_eq!(Quoted::CSV.oversized(State::START, text, 8), Some(0..8));
        assert_eq!(Quoted::CSV.oversized(State::START, text, 9), None);
    }

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
                    let inside = state == quoted::INSIDE;
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
        for text in texts(b"a,\"\n", 5) {
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
        // Elsewhere it is text like any other, and a quote behind it opens nothing.
        assert_eq!(Quoted::CSV.first_end(State::START, text), Some(6));
    }
}
