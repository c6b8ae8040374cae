//! Where records end: pure code, without I/O or threads.
//!
//! An engine asks a [`Framing`] where in a piece of a file the first record ends, and where the last. With quotes the
//! answer depends on all bytes before the piece, since a newline inside quotes ends no record. Such a framing has a
//! [`State`]. Pieces arrive in any order, so each is first reduced to its [`Effect`]: the state after it, for every
//! state before it. Effects are small, and combine in file order.

use std::fmt;
use std::ops::Range;

use memchr::{memchr, memrchr};

/// How many states a framing can have.
pub const STATES_MAX: usize = 8;

/// What a framing knows of the bytes before a place: a number below [`STATES_MAX`], of the framing's own meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State(u8);

impl State {
    /// The state after a record's end, and so at the start of every record but a file's first.
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

/// What some bytes do to the state: the state after them, for every state before them.
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

    /// The state after the bytes.
    pub fn apply(&self, before: State) -> State {
        self.0[usize::from(before.0)]
    }

    /// Whether the state after the bytes is the same whatever it was before.
    pub fn is_constant(&self) -> bool {
        self.0.iter().all(|state| *state == self.0[0])
    }

    /// The effect of these bytes and then the `next` ones.
    #[must_use]
    pub fn then(&self, next: &Effect) -> Effect {
        Effect(self.0.map(|between| next.apply(between)))
    }
}

/// Where records end. A job names one, and all code between the file and the job uses it.
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

    /// The state within a quoted field, in which a newline ends no record; `None` where there are no such fields.
    fn within_quotes(&self) -> Option<State> {
        None
    }

    /// The state in which a part is taken to begin that begins within a file, unless more is said of it.
    fn at_part(&self) -> State {
        State::START
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

/// All texts of up to `max` bytes of an alphabet, for tests of every small case.
pub fn texts(alphabet: &[u8], max: usize) -> Vec<Vec<u8>> {
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
                        let got = Delimited::EVERY_BYTE.oversized(State::START, &text, max);
                        assert_eq!(got, None);
                    }
                }
            }
        }
    }
}
