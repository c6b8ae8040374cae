//! For engines whose workers fetch their own blocks: which block is next, and which records of
//! what a worker sees are its own.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Mutex;

use crate::engine::deliver::delivery::Delivery;
use crate::input::spans::{Input, Span};
use crate::record::framing::Framing;

/// A block of a span that one worker fetches: the records between two cuts.
///
/// A cut is a byte from which on the first record end is looked for; the next record belongs to
/// what follows the cut. It is the same rule as the stitcher's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The source's number.
    pub source: u32,
    /// Where to look for the first record's start; `None`: it starts at byte 0.
    pub start: Option<u64>,
    /// Where to look for the last record's end; `None`: it ends with the source.
    pub end: Option<u64>,
    /// The claim's number in the run.
    pub sequence: u64,
}

impl Claim {
    /// The bytes between the cuts, in a source of `len` bytes.
    pub(crate) fn range(&self, len: u64) -> Range<u64> {
        self.start.unwrap_or(0)..self.end.unwrap_or(len)
    }

    /// Its first part, up to the grid of `block` bytes, and the rest of it, if any.
    pub(crate) fn split(self, block: u64, len: u64) -> (Claim, Option<Claim>) {
        // The cuts are one byte before the grid's lines.
        let at = self.start.map_or(0, |start| start + 1);
        let last = self.end.map_or(len, |end| end + 1);
        let to = (at / block + 1) * block;
        if to >= last {
            return (self, None);
        }
        let cut = Some(to - 1);
        (
            Claim { end: cut, ..self },
            Some(Claim { start: cut, ..self }),
        )
    }
}

/// Hands out the blocks of some spans, in order.
pub(crate) struct Claims<'a> {
    input: &'a Input,
    spans: &'a [Span],
    block: u64,
    state: Mutex<State>,
    window: Option<u64>,
}

#[derive(Default)]
struct State {
    span: usize,
    at: u64,
    /// Claims handed out so far.
    sequence: u64,
    /// For a window: the first unfinished claim, and which ones behind it are finished.
    unfinished: u64,
    finished: VecDeque<bool>,
    /// Workers that are at it.
    workers: usize,
}

impl<'a> Claims<'a> {
    pub(crate) fn new(
        input: &'a Input,
        spans: &'a [Span],
        block: u64,
        window: Option<u64>,
        sequence: u64,
    ) -> Self {
        let at = spans.first().map_or(0, |span| span.from);
        let state = Mutex::new(State {
            at,
            sequence,
            unfinished: sequence,
            ..State::default()
        });
        Claims {
            input,
            spans,
            block,
            state,
            window,
        }
    }

    /// How many workers more than there are could find something to do; they are counted as being
    /// at it from now on.
    pub(crate) fn hire(&self, threads: usize) -> usize {
        let mut state = self.lock();
        if self.span(&mut state).is_none() {
            return 0;
        }
        let open = self
            .window
            .map_or(u64::MAX, |window| window - state.pending());
        let hired = threads
            .saturating_sub(state.workers)
            .min(open.min(1 << 16) as usize);
        state.workers += hired;
        hired
    }

    /// How many blocks were handed out, those before the first one included.
    pub(crate) fn sequence(&self) -> u64 {
        self.lock().sequence
    }

    /// A worker goes home.
    pub(crate) fn leave(&self) {
        self.lock().workers -= 1;
    }

    /// The next block. `None` sends the worker home: all is handed out, or, for a sink that wants
    /// order, the window is full; finishing a claim then hires again.
    pub(crate) fn next(&self, delivery: &Delivery<'_>) -> Option<Claim> {
        let mut state = self.lock();
        if self.window.is_some_and(|window| state.pending() >= window) {
            return None;
        }
        let span = self.span(&mut state)?;
        if delivery.passed((span.source, state.at)) {
            state.span = self.spans.len();
            return None;
        }
        let end = ((state.at / self.block + 1) * self.block).min(span.to);
        let len = self.input.source(&span).len();
        let claim = Claim {
            source: span.source,
            start: state.at.checked_sub(1),
            end: (Some(end) != len).then(|| end - 1),
            sequence: state.sequence,
        };
        state.at = end;
        state.sequence += 1;
        if self.window.is_some() {
            state.finished.push_back(false);
        }
        Some(claim)
    }

    /// The span that the next block comes from.
    fn span(&self, state: &mut State) -> Option<Span> {
        loop {
            let span = self.spans.get(state.span)?;
            if state.at < span.to {
                return Some(*span);
            }
            state.span += 1;
            state.at = self.spans.get(state.span)?.from;
        }
    }

    /// A claim is done with; whether that may let another worker in.
    pub(crate) fn finish(&self, claim: &Claim) -> bool {
        if self.window.is_none() {
            return false;
        }
        let mut state = self.lock();
        let place = (claim.sequence - state.unfinished) as usize;
        state.finished[place] = true;
        while state.finished.front() == Some(&true) {
            state.finished.pop_front();
            state.unfinished += 1;
        }
        true
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl State {
    /// Claims from the first unfinished one on.
    fn pending(&self) -> u64 {
        self.sequence - self.unfinished
    }
}

/// What of a view of the source belongs to a claim.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Own {
    /// The whole records in the view.
    pub whole: Range<usize>,
    /// Whether the record behind them is the claim's too, and goes on past the view.
    pub open: bool,
}

/// Finds a claim's own records in `view`, which begins at `offset` at or before the claim's start
/// and reaches past its end where it can; `at_eof` says that the source ends with it.
pub(crate) fn own<F: Framing>(
    framing: &F,
    view: &[u8],
    offset: u64,
    claim: &Claim,
    at_eof: bool,
) -> Own {
    let state = F::State::default();
    let nothing = Own {
        whole: 0..0,
        open: false,
    };
    let end_cut = claim.end.map_or(view.len(), |end| (end - offset) as usize);
    let start = match claim.start {
        None => 0,
        Some(start) => {
            let from = (start - offset) as usize;
            // A record end at or behind the end's cut belongs to the next claim.
            match framing.first_end(state, &view[from..]) {
                Some(end) if from + end <= end_cut => from + end,
                _ => return nothing,
            }
        }
    };
    let end = match claim.end {
        None => at_eof.then_some(view.len()),
        Some(_) => match framing.first_end(state, &view[end_cut.min(view.len())..]) {
            Some(end) => Some(end_cut + end),
            None => at_eof.then_some(view.len()),
        },
    };
    match end {
        Some(end) => Own {
            whole: start..end,
            open: false,
        },
        None => {
            let whole = framing
                .last_end(state, &view[start..])
                .map_or(start, |end| start + end);
            Own {
                whole: start..whole,
                open: true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::local::claims::*;
    use crate::record::framing::Delimited;

    #[test]
    fn every_small_text_is_shared_out_exactly() {
        let mut texts = vec![vec![]];
        for _ in 0..8 {
            let longer: Vec<Vec<u8>> = texts
                .iter()
                .flat_map(|t: &Vec<u8>| [b'a', b'\n'].map(|b| [t.as_slice(), &[b]].concat()))
                .collect();
            texts.extend(longer);
            texts.sort();
            texts.dedup();
        }
        let mut cases = 0;
        for text in texts {
            for block in 1..=text.len() {
                for past in 0..4 {
                    let mut all: Vec<u8> = Vec::new();
                    for from in (0..text.len()).step_by(block) {
                        let to = (from + block).min(text.len());
                        let claim = Claim {
                            source: 0,
                            start: (from as u64).checked_sub(1),
                            end: (to < text.len()).then(|| to as u64 - 1),
                            sequence: 0,
                        };
                        let begin = from.saturating_sub(1);
                        let end = (to + past).min(text.len());
                        let view = &text[begin..end];
                        let at_eof = end == text.len();
                        let own = own(&Delimited::NEWLINE, view, begin as u64, &claim, at_eof);
                        all.extend(&view[own.whole.clone()]);
                        if own.open {
                            // What the worker reads on for.
                            let tail = begin + own.whole.end;
                            let cut = (to - 1).max(tail);
                            let rest = text[cut..].iter().position(|&b| b == b'\n');
                            let stop = rest.map_or(text.len(), |at| cut + at + 1);
                            all.extend(&text[tail..stop]);
                        }
                        cases += 1;
                    }
                    assert_eq!(all, text, "block {block} past {past}");
                }
            }
        }
        assert!(cases > 10_000);
    }
}
