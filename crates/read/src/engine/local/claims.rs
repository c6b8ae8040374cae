//! For engines whose workers fetch their own blocks: which block is next, and which records of
//! what a worker sees are its own.

use std::ops::Range;
use std::sync::Mutex;

use crate::engine::deliver::delivery::Delivery;
use crate::input::spans::Span;
use crate::record::framing::{Framing, State};
use crate::sync::lock;

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
    delivery: &'a Delivery<'a>,
    spans: &'a [Span],
    block: u64,
    next: Mutex<Next>,
}

#[derive(Default)]
struct Next {
    span: usize,
    at: u64,
    /// Claims handed out so far.
    sequence: u64,
    /// Workers that take claims.
    workers: usize,
}

impl<'a> Claims<'a> {
    /// Blocks of `block` bytes; `sequence` is the number of the first.
    pub(crate) fn new(
        delivery: &'a Delivery<'a>,
        spans: &'a [Span],
        block: u64,
        sequence: u64,
    ) -> Self {
        let at = spans.first().map_or(0, |span| span.from);
        let next = Mutex::new(Next {
            at,
            sequence,
            ..Next::default()
        });
        Claims {
            delivery,
            spans,
            block,
            next,
        }
    }

    /// How many workers more than there are could find something to do; they are counted as being
    /// at it from now on.
    pub(crate) fn hire(&self, threads: usize) -> usize {
        let mut next = lock(&self.next);
        if self.span(&mut next).is_none() {
            return 0;
        }
        let window = self.delivery.window();
        let open = window.map_or(u64::MAX, |window| {
            window.end().saturating_sub(next.sequence)
        });
        let hired = threads
            .saturating_sub(next.workers)
            .min(open.min(1 << 16) as usize);
        next.workers += hired;
        hired
    }

    /// How many blocks were handed out, those before the first one included.
    pub(crate) fn sequence(&self) -> u64 {
        lock(&self.next).sequence
    }

    /// Whether no block is left to be handed out.
    pub(crate) fn are_exhausted(&self) -> bool {
        self.span(&mut lock(&self.next)).is_none()
    }

    /// A worker stops.
    pub(crate) fn leave(&self) {
        lock(&self.next).workers -= 1;
    }

    /// The next block. `None` ends the worker: all is handed out, or, for a sink that wants
    /// order, the window is full.
    pub(crate) fn next(&self) -> Option<Claim> {
        let mut next = lock(&self.next);
        let span = self.span(&mut next)?;
        if self.delivery.passed((span.source, next.at)) {
            next.span = self.spans.len();
            return None;
        }
        let window = self.delivery.window();
        if window.is_some_and(|window| next.sequence >= window.end()) {
            return None;
        }
        let end = ((next.at / self.block + 1) * self.block).min(span.to);
        let len = self.delivery.input.source(&span).len();
        let claim = Claim {
            source: span.source,
            start: next.at.checked_sub(1),
            end: (Some(end) != len).then(|| end - 1),
            sequence: next.sequence,
        };
        next.at = end;
        next.sequence += 1;
        Some(claim)
    }

    /// The span that the next block comes from.
    fn span(&self, next: &mut Next) -> Option<Span> {
        loop {
            let span = self.spans.get(next.span)?;
            if next.at < span.to {
                return Some(*span);
            }
            next.span += 1;
            next.at = self.spans.get(next.span)?.from;
        }
    }
}

/// What of a view of the source belongs to a claim.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Own {
    /// The whole records in the view.
    pub whole: Range<usize>,
    /// Whether the record after them is the claim's too, and goes on past the view.
    pub open: bool,
}

/// Finds a claim's own records in `view`, which begins at the claim's start and reaches past its end where it can;
/// `at_eof` says that the source ends with it. `cuts` are the states where the claim looks for its first record's
/// start and for its last record's end.
pub(crate) fn own(
    framing: &dyn Framing,
    view: &[u8],
    claim: &Claim,
    cuts: [State; 2],
    at_eof: bool,
) -> Own {
    let offset = claim.start.unwrap_or(0);
    let end_cut = claim.end.map_or(view.len(), |end| (end - offset) as usize);
    // Records begin in this state.
    let (start, state) = match claim.start {
        None => (0, framing.initial()),
        // A record end at or after the end's cut belongs to the next claim.
        Some(_) => match framing.first_end(cuts[0], view) {
            Some(end) if end <= end_cut => (end, State::START),
            _ => {
                return Own {
                    whole: 0..0,
                    open: false,
                };
            }
        },
    };
    let last = claim
        .end
        .and_then(|_| framing.first_end(cuts[1], &view[end_cut.min(view.len())..]));
    match last.map(|end| end_cut + end) {
        // Bytes that others change meanwhile can tell two stories.
        Some(end) => Own {
            whole: start.min(end)..end,
            open: false,
        },
        None if at_eof => Own {
            whole: start..view.len(),
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
    use super::*;
    use crate::record::framing::{Delimited, texts};
    use crate::record::quoted::Quoted;

    /// Where the record ends that holds byte `at`, by the framing from the file's start.
    fn end_of(framing: &dyn Framing, text: &[u8], at: usize) -> usize {
        let (mut end, mut state) = (0, framing.initial());
        while end <= at {
            match framing.first_end(state, &text[end..]) {
                Some(more) => end += more,
                None => return text.len(),
            }
            state = State::START;
        }
        end
    }

    fn share_out(framing: &dyn Framing, text: &[u8], block: usize, past: usize) {
        let mut all: Vec<u8> = Vec::new();
        for from in (0..text.len()).step_by(block) {
            let to = (from + block).min(text.len());
            let claim = Claim {
                source: 0,
                start: (from as u64).checked_sub(1),
                end: (to < text.len()).then(|| to as u64 - 1),
                sequence: 0,
            };
            let tile = claim.range(text.len() as u64);
            let state = |at: u64| {
                framing
                    .effect(&text[..at as usize])
                    .apply(framing.initial())
            };
            let cuts = [state(tile.start), state(tile.end)];
            let end = (to + past).min(text.len());
            let view = &text[tile.start as usize..end];
            let own = own(framing, view, &claim, cuts, end == text.len());
            all.extend(&view[own.whole.clone()]);
            if own.open {
                // What the worker reads on for.
                let tail = tile.start as usize + own.whole.end;
                all.extend(&text[tail..end_of(framing, text, tail)]);
            }
        }
        assert_eq!(all, text, "{framing:?} block {block} past {past}");
    }

    #[test]
    fn every_small_text_is_shared_out_exactly() {
        let lines = texts(b"a\n", 8);
        let quoted = texts(b"a,\"\n", 6);
        let lines = lines
            .iter()
            .map(|text| (&Delimited::NEWLINE as &dyn Framing, text));
        let quoted = quoted
            .iter()
            .map(|text| (&Quoted::CSV as &dyn Framing, text));
        let mut cases = 0;
        for (framing, text) in lines.chain(quoted) {
            for block in 1..=text.len() {
                for past in 0..4 {
                    share_out(framing, text, block, past);
                    cases += 1;
                }
            }
        }
        assert!(cases > 10_000);
    }
}
