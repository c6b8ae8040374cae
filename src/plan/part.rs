//! A part of an input in which newlines may stand in quoted fields: where its first record begins is known only by what comes
//! before it.
//!
//! It is taken to begin outside quotes, unless its first records can only be read as if it began within a quoted field. What was
//! taken is checked when partials are merged.

use ringfold_read::{Begin, Error, Framing, Input, Kind, Refusal, Result, Span, State};

use crate::format::dialect::Dialect;
use crate::plan::{Plan, hinted};
use crate::refusal::{self, Hint};

/// How many bytes from a part's start on are looked at.
const LOOKED_AT: usize = if cfg!(test) { 256 } else { 64 << 10 };
/// How many records of them.
const RECORDS: usize = 20;

/// Such a part.
#[derive(Debug)]
pub(crate) struct QuotedPart {
    /// The span that begins within a file.
    first: Option<Span>,
    /// How it is read.
    pub(crate) begin: Begin,
    /// Its records are others if it begins otherwise.
    is_guessed: bool,
    /// Its first records can't be read so.
    is_doubtful: bool,
    /// From this byte on records are the same in any case.
    settled: u64,
}

/// What the records of an input have to be.
pub(crate) struct Form<'a> {
    pub(crate) dialect: &'a Dialect,
    pub(crate) framing: &'a dyn Framing,
    /// How many fields, if all have the same number.
    pub(crate) width: Option<usize>,
}

impl Form<'_> {
    /// Whether the first records of a part can be read if it begins in this state; `None` where no whole one is seen. `bytes`
    /// begin with the one before the part.
    fn is_right(&self, state: State, bytes: &[u8]) -> Option<bool> {
        let mut at = self.framing.first_end(state, bytes)?;
        let (mut fields, mut found) = (Vec::new(), None);
        for _ in 0..RECORDS {
            if at >= bytes.len() {
                break;
            }
            if let Some(next) = self.dialect.after_comment(bytes, at) {
                at = next;
                continue;
            }
            match self.dialect.split(bytes, at, &mut fields) {
                // The bytes end within it.
                Err(bad) if bad.is_open => break,
                Err(_) => return Some(false),
                Ok(record) if !bytes[..record.next].ends_with(b"\n") => break,
                Ok(record) => {
                    let has_others = |width| !fields.is_empty() && fields.len() != width;
                    if self.width.is_some_and(has_others) {
                        return Some(false);
                    }
                    (at, found) = (record.next, Some(true));
                }
            }
        }
        found
    }

    /// The first record end at which records are the same in both ways.
    fn settled(&self, mut states: [State; 2], bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(end) = self.framing.first_end(states[0], &bytes[at..]) {
            let record = self.framing.effect(&bytes[at..at + end]);
            states = states.map(|state| record.apply(state));
            at += end;
            if states[0] == states[1] {
                return Some(at);
            }
        }
        None
    }
}

impl QuotedPart {
    /// The part that an input is; `None` where the bytes around it tell which records it has.
    ///
    /// # Errors
    /// The first record is said to begin where it can't, or the bytes can't be read.
    pub(crate) fn of(input: &Input, form: &Form<'_>) -> Result<Option<QuotedPart>> {
        let (first, begin) = input.begins().unzip();
        let begin = begin.unwrap_or_default();
        let Some(quoted) = form.framing.within_quotes() else {
            return match begin {
                Begin::Likely => Ok(None),
                _ => Err(Error::new(
                    Kind::Usage,
                    "no field of this input may hold a newline, so where a part's first record begins is known",
                )),
            };
        };
        if input.part_of().is_none_or(|(_, parts)| parts == 1) {
            return Ok(None);
        }
        let mut part = QuotedPart {
            first,
            begin,
            is_guessed: false,
            is_doubtful: false,
            settled: 0,
        };
        let Some(first) = first.filter(|_| !matches!(begin, Begin::At(_))) else {
            return Ok(Some(part));
        };
        let states = [State::START, quoted];
        let bytes = input.around_begin(LOOKED_AT)?;
        let own = &bytes[..bytes.len().min((first.to - first.from) as usize)];
        let [unquoted_end, quoted_end] = states.map(|state| form.framing.first_end(state, own));
        part.is_guessed =
            unquoted_end != quoted_end || own.len() == LOOKED_AT && unquoted_end.is_none();
        let [is_unquoted, is_quoted] = states.map(|state| form.is_right(state, &bytes));
        part.begin = match begin {
            Begin::Likely if is_unquoted == Some(false) && is_quoted == Some(true) => Begin::Quoted,
            Begin::Likely => Begin::Unquoted,
            said => said,
        };
        let is_right = match part.begin {
            Begin::Quoted => is_quoted,
            _ => is_unquoted,
        };
        part.is_doubtful = is_right == Some(false);
        let settled = form.settled(states, &bytes);
        part.settled = settled.map_or(u64::MAX, |at| first.from - 1 + at as u64);
        Ok(Some(part))
    }
}

impl Plan {
    /// The first span of a part that begins within a file.
    pub(crate) fn first_span(&self) -> Option<Span> {
        self.part.as_ref()?.first
    }

    /// How a part of the input is read if it has other records where it begins otherwise: within a quoted field, or outside.
    pub fn guessed(&self) -> Option<Begin> {
        let part = self.part.as_ref().filter(|part| part.is_guessed)?;
        Some(part.begin)
    }

    /// The error of a part, with what may be its cause if it was begun in the wrong place.
    pub(crate) fn doubted(&self, error: Error) -> Error {
        let Some(part) = &self.part else {
            return error;
        };
        let of_query = error.job::<refusal::Refusal>();
        let is_of_quotes = matches!(
            of_query,
            Some(refusal::Refusal::Malformed {
                hint: Hint::Quote | Hint::Escape | Hint::SingleLine,
                ..
            })
        );
        let is_long = matches!(error.refusal(), Some(Refusal::Exceeded { .. }));
        let is_doubtful = part.is_guessed && (part.is_doubtful || is_of_quotes || is_long);
        let is_first = part.first.is_some_and(|first| {
            let place = (error.file_index(), error.bytes().map(|bytes| bytes.start));
            place.0 == first.source && place.1.is_some_and(|byte| byte < part.settled)
        });
        let hint = match is_doubtful && is_first && error.kind() == Kind::Data {
            true => Hint::Begin(part.begin),
            // The lines of a quote that nobody closes are left out where all is read in order.
            false if is_long && self.rejecting.leaves_out() => Hint::SingleLine,
            false => return error,
        };
        let why = error.cause().to_string();
        error.because(hinted(why, hint))
    }
}
