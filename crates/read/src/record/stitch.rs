//! Pure: pieces of a span, arriving in any order, become runs of whole records.
//!
//! A *piece* is what one read brought. Its *head* is everything up to and with its first record
//! end; the head completes the last record of the piece before it. So a piece's own records run
//! from behind its head to the end of the next piece's head, and
//!
//! - a piece may be released when its own head was handed to the piece before it and it has been
//!   completed by the head of the piece behind it; no other piece need have arrived;
//! - a piece without any record end is absorbed whole by the piece that opened the record;
//! - a completion is appended in place, in the spare bytes behind the piece. Where it doesn't fit,
//!   the record is gathered apart and the rest of the piece is released without it.
//!
//! A span that doesn't start at its file's start reads from one byte before it, and its first head
//! is foreign: whoever owns the span before delivers it. It ends behind the first record end at or
//! after the last byte before its end. Neighbouring spans agree, whoever serves them.
//!
//! With a stateful framing a piece waits, unframed, until the state before it is known: from the effects of the pieces
//! before it, and for a span's first piece from [`Stitcher::begin`].
//!
//! A piece that is known to end where a record ends ([`Stitcher::arrive_whole`]) waits for no piece behind it, and the
//! next piece has no head. So a stream is handed out as far as it has come.

use std::collections::VecDeque;
use std::ops::Range;

use crate::record::block::Gathered;
use crate::record::framing::{Effect, Framing, State};

/// A buffer with what one read brought, and some spare bytes behind it.
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
    /// The record behind them, where it didn't fit behind the piece.
    pub gathered: Option<Gathered>,
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
    /// Own records begin here: behind the head.
    start: usize,
    /// Own records end here once `completed`.
    end: usize,
    /// The state before the piece.
    state: State,
    head_taken: bool,
    completed: bool,
    /// The next piece that the open record wants to hear of.
    next: u64,
    gathered: Option<Gathered>,
}

/// The stitching of one span.
pub struct Stitcher<'a, P> {
    framing: &'a dyn Framing,
    stateful: bool,
    max_record: usize,
    /// Of a record that is no more than this over the limit the start is kept.
    reach: Option<u64>,
    /// A piece that begins where a record begins: the first one of a file, or the one behind the last whole piece.
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

    /// The same where a record that is so much over the limit is no error: it is released without what is behind its start.
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

    /// The state behind the last piece that was framed, if it is known.
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
    /// A record over the limit. All before it is still delivered, nothing behind it is.
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
        self.settle();
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
        self.settle();
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
        self.settle();
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
    fn settle(&mut self) {
        while let Some(Entry::Released | Entry::Absorbed(_)) = self.entries.front() {
            self.entries.pop_front();
            self.base += 1;
        }
    }

    /// Completes the open piece `opener` with the pieces behind it as far as they have arrived.
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
            let mut gathered = Gathered::new(offset, max_record, reach);
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
    let Open {
        piece,
        offset,
        start,
        end,
        gathered,
        ..
    } = open;
    if start < end || gathered.is_some() {
        let (range, offset) = (start..end, offset + start as u64);
        out.push(Release {
            piece,
            range,
            offset,
            gathered,
            index,
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::record::framing::{Delimited, texts};
    use crate::record::quoted::Quoted;
    use crate::record::stitch::*;

    /// A piece with `spare` bytes behind what was read.
    #[derive(Debug, Clone)]
    struct Buf {
        bytes: Vec<u8>,
        spare: usize,
    }

    impl Piece for Buf {
        fn bytes(&self) -> &[u8] {
            &self.bytes
        }
        fn truncate(&mut self, len: usize) {
            self.bytes.truncate(len);
        }
        fn append(&mut self, more: &[u8]) -> bool {
            let fits = more.len() <= self.spare;
            if fits {
                self.spare -= more.len();
                self.bytes.extend_from_slice(more);
            }
            fits
        }
    }

    /// The oracle: offsets and bytes of all records whose first byte lies in `from..to`.
    fn records(framing: &dyn Framing, text: &[u8], from: usize, to: usize) -> Vec<(u64, Vec<u8>)> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let state = framing.at_record(at as u64);
            let end = framing
                .first_end(state, &text[at..])
                .map_or(text.len(), |e| at + e);
            if (from..to).contains(&at) {
                found.push((at as u64, text[at..end].to_vec()));
            }
            at = end;
        }
        found
    }

    /// Feeds a span in blocks in the given order, as the dispatcher does.
    fn stitch(
        framing: &dyn Framing,
        text: &[u8],
        (from, to): (usize, usize),
        block: usize,
        spare: usize,
        order: &[usize],
    ) -> Vec<(u64, Vec<u8>)> {
        let start = from.saturating_sub(1);
        let cut = (to < text.len()).then(|| to - 1);
        let pieces = to.div_ceil(block).max(start / block + 1) - start / block;
        let mut stitcher = Stitcher::new(framing, 1000, from == 0);
        let mut out = Vec::new();
        let bounds = |index: usize| {
            let begin = (start / block + index) * block;
            (begin.max(start), (begin + block).min(text.len()))
        };
        if cut.is_none() {
            stitcher.finish(pieces as u64, &mut out).unwrap();
        }
        let arrive = |stitcher: &mut Stitcher<'_, Buf>, index: usize, out: &mut Vec<_>| {
            let (begin, end) = bounds(index);
            let cut = cut
                .filter(|&cut| cut < end)
                .map(|cut| cut.max(begin) - begin);
            let piece = Buf {
                bytes: text[begin..end].to_vec(),
                spare,
            };
            let effect = framing.effect(&piece.bytes);
            stitcher
                .arrive(index as u64, piece, begin as u64, cut, effect, out)
                .unwrap();
        };
        // The state at the span's start becomes known at any moment: here in the middle.
        let state = framing.effect(&text[..start]).apply(framing.initial());
        let known = order.len() / 2;
        for (n, &index) in order.iter().enumerate() {
            if n == known && from > 0 {
                stitcher.begin(state, &mut out).unwrap();
            }
            arrive(&mut stitcher, index, &mut out);
        }
        for index in pieces.. {
            if stitcher.end().is_some() {
                break;
            }
            if bounds(index).0 >= text.len() {
                stitcher.finish(index as u64, &mut out).unwrap();
                break;
            }
            arrive(&mut stitcher, index, &mut out);
        }
        assert!(stitcher.is_done(), "a piece was left behind");
        let mut blocks = blocks(out);
        blocks.sort();
        blocks
    }

    fn blocks(released: Vec<Release<Buf>>) -> Vec<(u64, Vec<u8>)> {
        let mut blocks = Vec::new();
        for Release {
            piece,
            range,
            offset,
            gathered,
            ..
        } in released
        {
            assert!(!range.is_empty() || gathered.is_some(), "nothing in it");
            blocks.push((offset, piece.bytes[range].to_vec()));
            blocks.extend(gathered.map(|record| (record.offset, record.bytes.bytes().to_vec())));
        }
        blocks.retain(|(_, bytes)| !bytes.is_empty());
        blocks
    }

    fn joined(blocks: &[(u64, Vec<u8>)]) -> (u64, Vec<u8>) {
        for pair in blocks.windows(2) {
            assert_eq!(
                pair[0].0 + pair[0].1.len() as u64,
                pair[1].0,
                "a gap or an overlap"
            );
        }
        let first = blocks.first().map_or(0, |(offset, _)| *offset);
        (
            first,
            blocks.iter().flat_map(|(_, bytes)| bytes.clone()).collect(),
        )
    }

    fn permutations(n: usize) -> Vec<Vec<usize>> {
        let mut all = vec![vec![]];
        for i in 0..n {
            all = all
                .into_iter()
                .flat_map(|p: Vec<usize>| {
                    (0..=p.len()).map(move |at| {
                        let mut q = p.clone();
                        q.insert(at, i);
                        q
                    })
                })
                .collect();
        }
        all
    }

    /// Every text x span x block size x spare bytes x order of arrival, for one framing.
    fn exhaust(framing: &dyn Framing, alphabet: &[u8], max: usize) {
        // Miri takes a thousand times as long.
        let (max, enough) = if cfg!(miri) { (2, 20) } else { (max, 1_000) };
        let mut cases = 0u64;
        let orders: Vec<_> = (0..=max).map(permutations).collect();
        for text in texts(alphabet, max) {
            for from in 0..text.len() {
                for to in from + 1..=text.len() {
                    let want = records(framing, &text, from, to);
                    let want_joined = joined(&want);
                    for block in 1..=text.len().min(4) {
                        let start = from.saturating_sub(1);
                        let pieces = to.div_ceil(block).max(start / block + 1) - start / block;
                        for spare in [0, 1, 100] {
                            for order in &orders[pieces] {
                                let got = stitch(framing, &text, (from, to), block, spare, order);
                                for (offset, bytes) in &got {
                                    let end = *offset + bytes.len() as u64;
                                    let starts = want.iter().any(|(o, _)| o == offset);
                                    let stops = want.iter().any(|(o, b)| o + b.len() as u64 == end);
                                    assert!(
                                        starts && stops,
                                        "not whole: {text:?} {from}..{to} {got:?}"
                                    );
                                }
                                assert_eq!(
                                    joined(&got),
                                    want_joined,
                                    "{text:?} {from}..{to} block {block} spare {spare} {order:?}"
                                );
                                cases += 1;
                            }
                        }
                    }
                }
            }
        }
        assert!(cases > enough, "only {cases} cases");
    }

    #[test]
    fn every_small_case_of_lines() {
        exhaust(&Delimited::NEWLINE, b"a\n", 6);
    }

    #[test]
    fn every_small_case_where_every_byte_is_a_record() {
        exhaust(&Delimited::EVERY_BYTE, b"a", 6);
    }

    #[test]
    fn every_small_case_of_a_framing_with_state() {
        exhaust(&Quoted::CSV, b",\"\n", 5);
        exhaust(&Quoted::CSV, b"a\"\n", 5);
    }

    /// Every text x cut into pieces x choice of which pieces that end a record are said to: as a stream brings them.
    fn flow(framing: &dyn Framing, alphabet: &[u8], max: usize) {
        let max = if cfg!(miri) { 3 } else { max };
        for text in texts(alphabet, max)
            .into_iter()
            .filter(|text| !text.is_empty())
        {
            let all = records(framing, &text, 0, text.len());
            let ends: Vec<_> = all
                .iter()
                .map(|(at, bytes)| *at as usize + bytes.len())
                .collect();
            let whole = |end| {
                let begun = framing.at_record(0);
                ends.contains(&end) && framing.last_end(begun, &text[..end]) == Some(end)
            };
            let most = 1u32 << (text.len() - 1);
            for (cuts, marks) in (0..most).flat_map(|cuts| (0..2 * most).map(move |m| (cuts, m))) {
                // A mark beside a cut that ends no record is the same case as without it.
                let is_cut = |end: usize| end == text.len() || cuts >> (end - 1) & 1 == 1;
                let is_marked = |end: usize| marks >> (end - 1) & 1 == 1;
                let mut all_ends = 1..=text.len();
                if !all_ends.all(|end| !is_marked(end) || is_cut(end) && whole(end)) {
                    continue;
                }
                for spare in [0, 100] {
                    let mut stitcher = Stitcher::new(framing, 1000, true);
                    let (mut out, mut index, mut from) = (Vec::new(), 0, 0);
                    for end in (1..=text.len()).filter(|&end| is_cut(end)) {
                        let bytes = text[from..end].to_vec();
                        let effect = framing.effect(&bytes);
                        let (piece, at) = (Buf { bytes, spare }, from as u64);
                        if is_marked(end) {
                            stitcher.arrive_whole(index, piece, at, &mut out).unwrap();
                            let came: usize = out.iter().map(length).sum();
                            assert_eq!(came, end, "{text:?} {cuts:b} {marks:b}: kept back");
                        } else {
                            stitcher
                                .arrive(index, piece, at, None, effect, &mut out)
                                .unwrap();
                        }
                        (index, from) = (index + 1, end);
                    }
                    stitcher.finish(index, &mut out).unwrap();
                    assert!(stitcher.is_done());
                    let got = blocks(out);
                    let starts = |(at, _): &(u64, _)| all.iter().any(|(start, _)| start == at);
                    assert!(
                        got.iter().all(starts),
                        "{text:?} {cuts:b} {marks:b}: {got:?}"
                    );
                    assert_eq!(joined(&got), (0, text.clone()), "{cuts:b} {marks:b}");
                }
            }
        }
    }

    fn length(release: &Release<Buf>) -> usize {
        let gathered = release
            .gathered
            .as_ref()
            .map_or(0, |record| record.bytes.len());
        release.range.len() + gathered
    }

    #[test]
    fn pieces_that_end_a_record_wait_for_nothing() {
        flow(&Delimited::NEWLINE, b"a\n", 6);
        flow(&Delimited::EVERY_BYTE, b"a", 6);
        flow(&Quoted::CSV, b"a\"\n", 5);
    }

    #[test]
    fn a_record_over_the_limit_is_told_and_what_stands_before_it_delivered() {
        let text = b"ok\nlooooooooooooooooong\nnever\n";
        for block in 1..8 {
            let mut stitcher = Stitcher::new(&Delimited::NEWLINE, 5, true);
            let mut out = Vec::new();
            let mut failed = None;
            for (index, bytes) in text.chunks(block).enumerate() {
                let piece = Buf {
                    bytes: bytes.to_vec(),
                    spare: 0,
                };
                let offset = (index * block) as u64;
                if let Err(over) =
                    stitcher.arrive(index as u64, piece, offset, None, Effect::NONE, &mut out)
                {
                    failed.get_or_insert(over.offset);
                }
            }
            assert_eq!(failed, Some(3), "block {block}");
            stitcher.abandon(&mut out);
            let before: Vec<u8> = blocks(out)
                .into_iter()
                .flat_map(|(_, bytes)| bytes)
                .collect();
            assert_eq!(before, b"ok\n", "block {block}");
        }
    }

    #[test]
    fn more_is_wanted_only_while_it_could_add_something() {
        let piece = |bytes: &str, spare| Buf {
            bytes: bytes.into(),
            spare,
        };
        let mut out = Vec::new();
        // A span of two bytes, whose record goes on behind it.
        let mut stitcher = Stitcher::new(&Delimited::NEWLINE, 3, true);
        let begin = stitcher.arrive(0, piece("ab", 9), 0, Some(1), Effect::NONE, &mut out);
        assert_eq!(
            (begin, stitcher.end(), stitcher.take_wanted()),
            (Ok(()), None, Some(1))
        );
        let end = stitcher.arrive(1, piece("c\nd", 9), 2, Some(0), Effect::NONE, &mut out);
        assert_eq!((end, stitcher.end()), (Ok(()), Some(2)));
        assert!(stitcher.take_wanted().is_none() && stitcher.is_done());
        assert_eq!(blocks(std::mem::take(&mut out)), [(0, b"abc\n".to_vec())]);

        let mut stitcher = Stitcher::new(&Delimited::NEWLINE, 3, true);
        let begin = stitcher.arrive(0, piece("ab", 0), 0, Some(1), Effect::NONE, &mut out);
        assert_eq!((begin, stitcher.take_wanted()), (Ok(()), Some(1)));
        let over = stitcher.arrive(1, piece("cd", 0), 2, Some(0), Effect::NONE, &mut out);
        let has_nuls = false;
        assert_eq!(
            over,
            Err(Oversized {
                offset: 0,
                has_nuls
            })
        );
        assert_eq!(stitcher.take_wanted(), None, "the record is over the limit");
        let behind = stitcher.arrive(2, piece("\ne\n", 9), 4, Some(0), Effect::NONE, &mut out);
        stitcher.abandon(&mut out);
        assert_eq!((behind, blocks(std::mem::take(&mut out))), (Ok(()), vec![]));

        // No record begins in a span that lies within one.
        let mut stitcher = Stitcher::new(&Delimited::NEWLINE, 3, false);
        let within = stitcher.arrive(0, piece("ab", 9), 5, Some(1), Effect::NONE, &mut out);
        assert_eq!(
            (within, stitcher.end(), stitcher.take_wanted()),
            (Ok(()), None, None)
        );
    }

    #[test]
    fn a_piece_that_never_comes_costs_only_its_neighbours() {
        let mut stitcher = Stitcher::new(&Delimited::NEWLINE, 100, true);
        let mut out = Vec::new();
        for (index, bytes) in [(0, "a\nb"), (2, "c\nd\ne"), (3, "f\n")] {
            let piece = Buf {
                bytes: bytes.into(),
                spare: 9,
            };
            stitcher
                .arrive(index, piece, index * 10, None, Effect::NONE, &mut out)
                .unwrap();
        }
        assert!(out.is_empty(), "piece 3 has no end yet, 0 and 2 wait for 1");
        stitcher.abandon(&mut out);
        let got = blocks(out);
        assert_eq!(got, [(0, b"a\n".to_vec()), (22, b"d\nef\n".to_vec())]);
    }

    #[test]
    fn a_record_gathered_apart_is_abandoned_unless_it_is_whole() {
        let stitched = |pieces: &[(u64, &str)]| {
            let mut stitcher = Stitcher::new(&Delimited::NEWLINE, 100, true);
            let mut out = Vec::new();
            for &(index, bytes) in pieces {
                let bytes = bytes.into();
                let piece = Buf { bytes, spare: 0 };
                stitcher
                    .arrive(index, piece, index * 10, None, Effect::NONE, &mut out)
                    .unwrap();
            }
            stitcher.abandon(&mut out);
            blocks(out)
        };
        let part = stitched(&[(0, "a\nbc"), (1, "de")]);
        assert_eq!(part, [(0, b"a\n".to_vec())], "its end never came");
        let whole = stitched(&[(1, "a\nbc"), (2, "de\nf")]);
        assert_eq!(whole, [(12, b"bcde\n".to_vec())]);
    }
}
