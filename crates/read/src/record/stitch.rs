//! Pure: pieces of a span, arriving in any order, become runs of whole records.
//!
//! A *piece* is what one read brought. Its *head* is everything up to and with its first record
//! end; the head completes the last record of the piece before it. So a piece's own records run
//! from after its head to the end of the next piece's head, and
//!
//! - a piece may be released when its own head was handed to the piece before it and it has been
//!   completed by the head of the piece after it; no other piece need have arrived;
//! - a piece without any record end is absorbed whole by the piece that opened the record;
//! - a completion is appended in place, in the spare bytes after the piece. Where it doesn't fit,
//!   the record is gathered apart and the rest of the piece is released without it.
//!
//! A span that doesn't start at its file's start reads from one byte before it, and its first head
//! is foreign: whoever owns the span before delivers it. It ends after the first record end at or
//! after the last byte before its end. Neighbouring spans agree, whoever serves them.
//!
//! With a stateful framing a piece waits, unframed, until the state before it is known: from the effects of the pieces
//! before it, and for a span's first piece from [`Stitcher::begin`].
//!
//! A piece that is known to end where a record ends ([`Stitcher::arrive_whole`]) waits for no piece after it, and the
//! next piece has no head. So a stream is handed out as far as it has come.

use std::collections::VecDeque;
use std::ops::Range;

use crate::record::block::LongRecord;
use crate::record::framing::{Effect, Framing, State};

/// A buffer with what one read brought, and some spare bytes after it.
pub trait Piece {
    /// What was read, and what was appended.
    fn bytes(&self) -> &[u8];
    /// Forgets all bytes from `len` on.
    fn truncate(&mut self, len: usize);
    /// Adds bytes at the end; false, and nothing added, where they don't fit.
    fn append(&mut self, more: &[u8]) -> bool;
}

/// Whole records, ready for a worker.
#[derive(Debug)]
pub struct Release<P> {
    /// The buffer.
    pub piece: P,
    /// Where in `piece.bytes()` the records lie.
    pub range: Range<usize>,
    /// Where in the file the first of them begins.
    pub offset: u64,
    /// The record after them, where it didn't fit after the piece.
    pub gathered: Option<LongRecord>,
    /// The piece's number in its span.
    pub index: u64,
}

/// A record grew past the limit while it was gathered.
#[derive(Debug, PartialEq, Eq)]
pub struct Oversized {
    /// Where the record begins.
    pub offset: u64,
    /// It has a run of NUL bytes.
    pub has_nuls: bool,
}

/// What became of one piece.
enum Entry<P> {
    Missing,
    /// Arrived, but the state before it isn't known yet (stateful framings only).
    Unframed {
        piece: P,
        offset: u64,
        cut: Option<usize>,
        effect: Effect,
    },
    /// Arrived, without a record end, and nobody before it took it yet.
    Blank(P),
    /// Arrived; opens the record at its end.
    Open(Open<P>),
    /// Taken over, to the last byte, by the open piece with this number.
    Absorbed(u64),
    Released,
}

struct Open<P> {
    piece: P,
    offset: u64,
    /// Own records begin here: after the head.
    start: usize,
    /// Own records end here once `completed`.
    end: usize,
    /// The state before the piece.
    state: State,
    head_taken: bool,
    completed: bool,
    /// The next piece that the open record wants to hear of.
    next: u64,
    gathered: Option<LongRecord>,
}

/// The stitching of one span.
pub struct Stitcher<'a, P> {
    framing: &'a dyn Framing,
    stateful: bool,
    max_record: usize,
    /// Of a record that is no more than this over the limit the start is kept.
    reach: Option<u64>,
    /// A piece that begins where a record begins: the first one of a file, or the one after the last whole piece.
    begins: Option<u64>,
    /// Where the span doesn't start so: the next piece that may end the record of the span before.
    foreign: Option<u64>,
    /// The number of `entries[0]`.
    base: u64,
    entries: VecDeque<Entry<P>>,
    /// How many pieces there are, once that is known.
    end: Option<u64>,
    /// A piece past the span's end that may be wanted.
    past_end: Option<u64>,
    /// Pieces from here on are of no interest any more: a record before them was over the limit.
    given_up: u64,
    /// The next piece to frame, and the state before it once that is known (stateful framings only).
    unframed: u64,
    state: Option<State>,
}

impl<'a, P: Piece> Stitcher<'a, P> {
    /// The stitching of a span; `own_start` says that it begins at the start of its file.
    pub fn new(framing: &'a dyn Framing, max_record: usize, own_start: bool) -> Self {
        Stitcher {
            framing,
            stateful: framing.is_stateful(),
            max_record,
            reach: None,
            begins: own_start.then_some(0),
            foreign: (!own_start).then_some(0),
            base: 0,
            entries: VecDeque::new(),
            end: None,
            past_end: None,
            given_up: u64::MAX,
            unframed: 0,
            state: own_start.then(|| framing.initial()),
        }
    }

    /// The same where a record that is so much over the limit is no error: it is released without what is after its start.
    pub(crate) fn cutting(self, reach: Option<u64>) -> Self {
        Stitcher { reach, ..self }
    }

    /// The number of pieces, once the end was seen.
    pub fn end(&self) -> Option<u64> {
        self.end
    }

    /// The number of a piece past the end of the span that could add to it, returned once: the last piece was framed
    /// and the span's end wasn't seen in it, no record was over the limit, and some record may begin before it.
    pub fn take_wanted(&mut self) -> Option<u64> {
        let next = self.past_end.take()?;
        let wanted = self.end.is_none() && self.given_up == u64::MAX;
        (wanted && self.foreign != Some(next)).then_some(next)
    }

    /// Whether everything that can be released has been.
    pub fn is_done(&self) -> bool {
        self.end.is_some_and(|end| self.base >= end)
    }

    /// The state after the last piece that was framed, if it is known.
    pub fn state(&self) -> Option<State> {
        self.state
    }

    /// Whether pieces wait for the state at the span's start.
    pub fn awaits_state(&self) -> bool {
        self.stateful && self.state.is_none() && !self.entries.is_empty()
    }

    /// Whether pieces wait for the state before them.
    pub fn has_unframed(&self) -> bool {
        let is_unframed = |entry: &Entry<P>| matches!(entry, Entry::Unframed { .. });
        self.stateful && self.entries.iter().any(is_unframed)
    }

    /// Says in which state the span's first piece begins: for a span that doesn't begin at the start of its file.
    ///
    /// # Errors
    /// See [`Stitcher::arrive`].
    pub fn begin(&mut self, state: State, out: &mut Vec<Release<P>>) -> Result<(), Oversized> {
        self.state = Some(state);
        self.frame(out)
    }

    /// Takes piece number `index`, whose first byte stands at `offset` and whose bytes have this `effect` on the
    /// state, and adds to `out` what can be released by it. Where the span ends within the piece, `cut` is the first byte at which
    /// the last record end of the span may stand; further pieces with `cut: Some(0)` may be wanted after that, see
    /// [`Stitcher::take_wanted`].
    ///
    /// # Errors
    /// A record over the limit. All before it is still delivered, nothing after it is.
    pub fn arrive(
        &mut self,
        index: u64,
        piece: P,
        offset: u64,
        cut: Option<usize>,
        effect: Effect,
        out: &mut Vec<Release<P>>,
    ) -> Result<(), Oversized> {
        debug_assert!(index >= self.base, "a piece arrives once");
        if index >= self.given_up {
            return Ok(());
        }
        let place = (index - self.base) as usize;
        while self.entries.len() <= place {
            self.entries.push_back(Entry::Missing);
        }
        if !self.stateful {
            return self.admit(index, piece, offset, cut, State::START, out);
        }
        self.entries[place] = Entry::Unframed {
            piece,
            offset,
            cut,
            effect,
        };
        self.frame(out)
    }

    /// Takes piece number `index`, whose first byte stands at `offset` and whose last byte ends a record. All pieces
    /// before it have arrived, and the state before it is known. It is released at once, with the record that it ends.
    ///
    /// # Errors
    /// See [`Stitcher::arrive`].
    pub fn arrive_whole(
        &mut self,
        index: u64,
        piece: P,
        offset: u64,
        out: &mut Vec<Release<P>>,
    ) -> Result<(), Oversized> {
        let to_start = Effect::of(|_| State::START);
        self.arrive(index, piece, offset, None, to_start, out)?;
        self.begins = Some(index + 1);
        let result = self.complete(index, out);
        self.drop_done();
        result
    }

    /// Frames the pieces that wait for nothing but the state before them, as far as that is known.
    fn frame(&mut self, out: &mut Vec<Release<P>>) -> Result<(), Oversized> {
        while let Some(state) = self.state
            && let Some(entry @ Entry::Unframed { .. }) = self.get_mut(self.unframed)
        {
            let Entry::Unframed {
                piece,
                offset,
                cut,
                effect,
            } = std::mem::replace(entry, Entry::Missing)
            else {
                unreachable!("just matched")
            };
            let index = self.unframed;
            self.unframed += 1;
            self.state = Some(effect.apply(state));
            if index < self.given_up {
                self.admit(index, piece, offset, cut, state, out)?;
            }
        }
        Ok(())
    }

    /// There are `count` pieces and no more. Said at once where the size is known, at the end of
    /// the source where it isn't.
    pub fn finish(&mut self, count: u64, out: &mut Vec<Release<P>>) -> Result<(), Oversized> {
        self.end = Some(count);
        let result = self.complete_before(count, out);
        self.drop_done();
        result
    }

    /// Releases the whole records of every piece that waits for one that will never arrive.
    pub fn abandon(&mut self, out: &mut Vec<Release<P>>) {
        for (index, entry) in (self.base..).zip(self.entries.drain(..)) {
            let Entry::Open(mut open) = entry else {
                continue;
            };
            if !open.completed && open.gathered.take().is_none() {
                open.end = open.last_end(self.framing);
            }
            release(open, index, out);
        }
    }

    fn get_mut(&mut self, index: u64) -> Option<&mut Entry<P>> {
        self.entries.get_mut(index.checked_sub(self.base)? as usize)
    }

    fn admit(
        &mut self,
        index: u64,
        mut piece: P,
        offset: u64,
        cut: Option<usize>,
        state: State,
        out: &mut Vec<Release<P>>,
    ) -> Result<(), Oversized> {
        if let Some(cut) = cut {
            let at_cut = match self.stateful {
                true => self.framing.effect(&piece.bytes()[..cut]).apply(state),
                false => state,
            };
            if let Some(end) = self.framing.first_end(at_cut, &piece.bytes()[cut..]) {
                piece.truncate(cut + end);
                self.end = Some(index + 1);
            } else {
                self.past_end = Some(index + 1);
            }
        }
        let own = self.begins == Some(index);
        let head = if own {
            Some(0)
        } else {
            self.framing.first_end(state, piece.bytes())
        };
        let entry = match head {
            None => Entry::Blank(piece),
            Some(start) => Entry::Open(Open {
                end: piece.bytes().len(),
                piece,
                offset,
                start,
                state,
                head_taken: own,
                completed: false,
                next: index + 1,
                gathered: None,
            }),
        };
        *self.get_mut(index).expect("the place was made by arrive") = entry;
        self.drop_foreign(out);
        let result = self.complete_before(index, out);
        let result = result.and_then(|()| self.complete(index, out));
        self.drop_done();
        result
    }

    /// Goes on with the record that was open before piece `index`, if all between has arrived.
    fn complete_before(&mut self, index: u64, out: &mut Vec<Release<P>>) -> Result<(), Oversized> {
        let mut at = index;
        while at > self.base {
            at -= 1;
            match self.get_mut(at) {
                Some(Entry::Blank(_)) => {}
                Some(Entry::Open(_)) => return self.complete(at, out),
                Some(Entry::Absorbed(opener)) => {
                    let opener = *opener;
                    return self.complete(opener, out);
                }
                Some(Entry::Missing | Entry::Unframed { .. } | Entry::Released) | None => {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Drops what lies before the first record end of a span that starts within a record.
    fn drop_foreign(&mut self, out: &mut Vec<Release<P>>) {
        while let Some(at) = self.foreign {
            match self.get_mut(at) {
                Some(entry @ Entry::Blank(_)) => {
                    *entry = Entry::Released;
                    self.foreign = Some(at + 1);
                }
                Some(Entry::Open(open)) => {
                    open.head_taken = true;
                    self.foreign = None;
                    self.try_release(at, out);
                }
                _ => return,
            }
        }
    }

    /// Forgets the entries at the front that are done with.
    fn drop_done(&mut self) {
        while let Some(Entry::Released | Entry::Absorbed(_)) = self.entries.front() {
            self.entries.pop_front();
            self.base += 1;
        }
    }

    /// Completes the open piece `opener` with the pieces after it as far as they have arrived.
    fn complete(&mut self, opener: u64, out: &mut Vec<Release<P>>) -> Result<(), Oversized> {
        loop {
            let (end, begins) = (self.end, self.begins);
            let Some(Entry::Open(open)) = self.get_mut(opener) else {
                return Ok(());
            };
            if open.completed {
                return Ok(());
            }
            let next = open.next;
            if end == Some(next) || begins == Some(next) {
                open.completed = true;
                self.try_release(opener, out);
                return Ok(());
            }
            // Both entries at once: take the open one out and put it back.
            let place = (opener - self.base) as usize;
            let Entry::Open(mut open) = std::mem::replace(&mut self.entries[place], Entry::Missing)
            else {
                unreachable!("just matched")
            };
            let mut over = false;
            let mut last = true;
            let limit = (self.max_record, self.reach);
            let framing = self.framing;
            match self.get_mut(next) {
                Some(entry @ Entry::Blank(_)) => {
                    let Entry::Blank(piece) = std::mem::replace(entry, Entry::Absorbed(opener))
                    else {
                        unreachable!("just matched")
                    };
                    over = !open.extend(framing, piece.bytes(), limit);
                    open.next += 1;
                    last = over;
                }
                Some(Entry::Open(head)) => {
                    // If that makes it too long, the block is found to be.
                    open.extend(framing, &head.piece.bytes()[..head.start], limit);
                    open.completed = true;
                    head.head_taken = true;
                }
                _ => {}
            }
            let offset = open
                .gathered
                .as_ref()
                .map_or(open.offset, |gathered| gathered.offset);
            let mut has_nuls = false;
            if over {
                has_nuls = open
                    .gathered
                    .take()
                    .is_some_and(|gathered| gathered.has_nuls());
                open.completed = true;
            }
            let completed = open.completed;
            self.entries[place] = Entry::Open(open);
            if completed {
                self.try_release(opener, out);
                self.try_release(next, out);
            }
            if over {
                self.given_up = opener;
                return Err(Oversized { offset, has_nuls });
            }
            if last {
                return Ok(());
            }
        }
    }

    fn try_release(&mut self, index: u64, out: &mut Vec<Release<P>>) {
        if let Some(
            entry @ Entry::Open(Open {
                head_taken: true,
                completed: true,
                ..
            }),
        ) = self.get_mut(index)
        {
            let Entry::Open(open) = std::mem::replace(entry, Entry::Released) else {
                unreachable!("just matched")
            };
            release(open, index, out);
        }
    }
}

impl<P: Piece> Open<P> {
    /// Where the last whole record of the piece itself ends. The first piece of a file is open
    /// even without a record end in it.
    fn last_end(&self, framing: &dyn Framing) -> usize {
        framing
            .last_end(self.state, self.piece.bytes())
            .unwrap_or(self.start)
            .max(self.start)
    }

    /// Adds bytes to the open record; false when that makes it further over the limit than may be.
    fn extend(
        &mut self,
        framing: &dyn Framing,
        more: &[u8],
        (max_record, reach): (usize, Option<u64>),
    ) -> bool {
        if self.gathered.is_none() {
            if self.piece.append(more) {
                self.end += more.len();
                return true;
            }
            let end = self.last_end(framing);
            let offset = self.offset + end as u64;
            let mut gathered = LongRecord::new(offset, max_record, reach);
            gathered.extend(&self.piece.bytes()[end..]);
            self.end = end;
            self.gathered = Some(gathered);
        }
        let gathered = self.gathered.as_mut().expect("just set");
        gathered.extend(more);
        !gathered.is_beyond()
    }
}

fn release<P: Piece>(open: Open<P>, index: u64, out: &mut Vec<Release<P>>) {
    if open.start < open.end || open.gathered.is_some() {
        out.push(Release {
            piece: open.piece,
            range: open.start..open.end,
            offset: open.offset + open.start as u64,
            gathered: open.gathered,
            index,
        });
    }
}

#[cfg(test)]
mod tests;
