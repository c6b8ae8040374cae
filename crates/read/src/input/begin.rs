//! Where the first record of a part begins, if newlines may stand in quoted fields: what the bytes before it would tell.

use crate::error::{Error, Kind, Result};
use crate::input::spans::{Input, Span};
use crate::record::framing::{Framing, State};

/// Where the first record of a [part](Input::part) begins that begins within a file, if newlines may stand in quoted fields.
/// Only the bytes before the part tell: this says it in their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Begin {
    /// As the [framing](Framing::at_part) has it: of a query as the part's first records look, otherwise outside quotes.
    #[default]
    Likely,
    /// After the next record's end, as if the part began outside quotes.
    Unquoted,
    /// After the next record's end, as if the part began within a quoted field.
    Quoted,
    /// At this byte of the file. Where it lies after the part, no record begins in the part.
    At(u64),
}

impl Input {
    /// The same where the first record of a part begins as `begin` says.
    ///
    /// # Errors
    /// It isn't a part that begins within a file, or the place lies before it or after the file's end.
    pub fn begin(mut self, begin: Begin) -> Result<Self> {
        let first = self.spans.first().filter(|span| span.from > 0);
        let Some(first) = first.filter(|_| self.part.is_some()) else {
            let cause = "this part begins with a file, or nothing is divided: where its first record begins is known";
            return Err(Error::new(Kind::Usage, cause));
        };
        let source = self.source(first);
        let len = source.len().unwrap_or(first.to);
        if let Begin::At(at) = begin
            && !(first.from..=len).contains(&at)
        {
            let from = first.from;
            let cause =
                format!("the part's first record begins at byte {from} to {len}, not at byte {at}");
            let error = Error::new(Kind::Usage, cause);
            return Err(error.in_file(source.index(), source.name()));
        }
        self.begin = begin;
        Ok(self)
    }

    /// Where the first record of a [part](Input::part) begins that begins within a file; `None` of any other input.
    pub fn begins(&self) -> Option<(Span, Begin)> {
        let first = self.spans.first().filter(|span| span.from > 0);
        let first = first.filter(|_| self.part.is_some())?;
        Some((*first, self.begin))
    }

    /// The same without what lies before the place where the first record was said to begin.
    pub(crate) fn begun(&self) -> Input {
        let mut input = self.clone();
        if let (Begin::At(at), Some(first)) = (self.begin, input.spans.first_mut()) {
            first.from = at.min(first.to);
            input.spans.retain(|span| span.from < span.to);
        }
        input
    }

    /// For each source the first byte of which the state is known, and the state.
    pub(crate) fn states(&self, framing: &dyn Framing) -> Vec<(u64, State)> {
        let mut states = vec![(0, framing.initial()); self.sources.len()];
        if let Some((first, begin)) = self.begins()
            && first.from > 1
        {
            // The byte before a span may end a record.
            let state = match begin {
                Begin::Likely => framing.at_part(),
                Begin::Quoted => framing.within_quotes().unwrap_or(State::START),
                Begin::Unquoted | Begin::At(_) => State::START,
            };
            states[first.source as usize] = (first.from - 1, state);
        }
        states
    }

    /// The bytes from the last one before a part that begins within a file on, at most so many.
    ///
    /// # Errors
    /// They can't be read.
    #[doc(hidden)]
    pub fn around_begin(&self, most: usize) -> Result<Vec<u8>> {
        let Some((first, _)) = self.begins() else {
            return Ok(Vec::new());
        };
        let source = self.source(&first);
        let at = first.from - 1;
        let len = source.len().unwrap_or(first.to) - at;
        let len = len.min(most as u64) as usize;
        let mut bytes = vec![0; len];
        let read = source.read_exact_at(&mut bytes, at);
        read.map_err(|error| Error::io(&error).in_file(source.index(), source.name()))?;
        Ok(bytes)
    }
}
