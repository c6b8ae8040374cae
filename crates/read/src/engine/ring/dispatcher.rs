//! The dispatcher: decides what is read next into which slot, takes completions in any order, and
//! releases each block once its neighbour's head has arrived. It does no I/O: a [`Ring`] does.
//!
//! Who owns a slot: `free` -> [`Ring::submit`] -> [`Completion`] -> the span's [`Stitcher`] ->
//! [`Release`] -> a worker -> (its `Drop`) its [`ReturnedSlots`] -> `free`.
//!
//! # Why it can't stall
//! Reads are chosen in the order of the input, and those that are chosen together are submitted
//! before anything else happens; at most `depth` are in flight, and there is at least one slot more
//! than that. A piece waits only for its neighbours: one that was chosen before it, or the next one.
//! If nothing is in flight and no worker holds a slot, every submitted piece has arrived, so all have
//! been released but the last one of each span that waits for a read past its end; those reads go
//! before all others, so there are never more than `depth` such pieces, and a slot is free.
//!
//! Of a stream one read is in flight. Its whole records are released when they have come, with the piece that they came
//! in: it ends there, and the rest begins the next one. A piece waits for its neighbours only where a record is longer
//! than it.
//!
//! While workers have many bytes of long records, nothing is submitted. They give these back without waiting for a read.
//!
//! With a window, what is released after its end waits here. The first piece in the window never does: it is with a
//! worker, or with the sink, which retires it, or waits for its neighbours as above, and then a read goes past the
//! window.
//!
//! With a stateful framing pieces may wait, unframed, for the state before them. It follows from blocks that are in
//! flight or that others fetch, none of which waits for these pieces. When it becomes known, many spans may want a read
//! past their end at once, so as long as pieces are unframed the last free slot is kept for such a read: it completes
//! its span, which gives back that slot and another.

mod next;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::arena::{ReturnedSlots, Slot};
use crate::engine::deliver::delivery::{Delivery, Ready};
use crate::engine::deliver::watch::Place;
use crate::engine::notice::Notice;
use crate::engine::plan::buffers::{CachingPlan, Plan};
use crate::engine::ring::seam::{Completion, Ring, Submission, failure};
use crate::engine::window::Window;
use crate::error::Error;
use crate::error::setting::Setting;
use crate::input::caching::Caching;
use crate::input::source::{Source, refused_late};
use crate::input::spans::Span;
use crate::linux::retry;
use crate::record::framing::{Effect, State};
use crate::record::stitch::{Oversized, Piece, Release, Stitcher};

/// Workers may have so much of long records in any case.
const GATHERED_MIN: usize = if cfg!(test) { 64 } else { 1 << 20 };

/// What the dispatcher did.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counters {
    pub reads: u64,
    pub read_bytes: u64,
    pub short_reads: u64,
    pub retries: u64,
    pub max_in_flight: usize,
    /// Blocks on the grid that the spans were cut into.
    pub pieces: u64,
    /// Time during which a read could have been submitted, but every slot was with a worker.
    pub starved: Duration,
}

/// A span that is being read.
struct Active<'a> {
    source: Arc<Source>,
    stitcher: Stitcher<'a, Slot>,
    caching: Caching,
    /// Where its first piece begins.
    start: u64,
    /// The first byte at which the span's last record end may stand; `None`: the file's end.
    cut: Option<u64>,
    /// Where the last piece ended that reached the cut.
    reached: u64,
    /// The number of its first piece in the run.
    sequence: u64,
}

/// A read past a span's end.
struct Extension {
    span: usize,
    /// The number of the piece.
    index: u64,
    at: u64,
    /// How far past the end that is already.
    so_far: u64,
}

/// What a slot in flight is to hold.
struct Read {
    span: usize,
    index: u64,
    /// The bytes of the file that are wanted.
    want: Range<u64>,
    /// Of a stream: the length of the part that holds no record end, and the state after it.
    searched: (usize, State),
}

/// Where the next read of the current span begins.
struct Cursor {
    span: usize,
    index: u64,
    at: u64,
    end: u64,
    /// What a stream has brought after its last record end: the next read goes on after it.
    rest: Vec<u8>,
}

pub(crate) struct Dispatcher<'a> {
    spans: &'a [Span],
    delivery: &'a Delivery<'a>,
    plan: Plan,
    /// First in, first out: what a worker has just read lies in its core's cache, and the device would
    /// have to get it out of there.
    free: VecDeque<Slot>,
    /// By the slot's index.
    reads: Vec<Option<Read>>,
    /// By the slot's index: where the watch sees what is in flight.
    places: Vec<Place>,
    in_flight: usize,
    /// Slots with workers, by index: how many bytes of a record that was gathered go with each. And how many slots, and
    /// bytes.
    lent: Vec<Option<usize>>,
    lent_count: usize,
    lent_bytes: usize,
    next_span: usize,
    cursor: Option<Cursor>,
    active: BTreeMap<usize, Active<'a>>,
    extensions: VecDeque<Extension>,
    /// Sources that refuse O_DIRECT only when they are read.
    refused_late: HashSet<u32>,
    sequence: u64,
    window: Option<Arc<Window>>,
    released: Vec<Release<Slot>>,
    /// Released, with their places, and on their way to the workers.
    ready: Vec<Ready>,
    /// Released, but after the window's end.
    after_window: Vec<Ready>,
    counters: Counters,
    starved_since: Option<Instant>,
}

impl<'a> Dispatcher<'a> {
    /// A dispatcher over these spans of the delivery's input, that has all slots; `sequence` is the number
    /// of its first piece.
    pub(crate) fn new(
        spans: &'a [Span],
        delivery: &'a Delivery<'a>,
        plan: Plan,
        slots: Vec<Slot>,
        sequence: u64,
    ) -> Self {
        assert!(
            slots.len() > plan.depth && plan.depth > 0,
            "one slot more than reads in flight"
        );
        Dispatcher {
            spans,
            delivery,
            plan,
            reads: slots.iter().map(|_| None).collect(),
            places: slots.iter().map(|_| delivery.watch.place()).collect(),
            lent: vec![None; slots.len()],
            lent_count: 0,
            lent_bytes: 0,
            free: slots.into(),
            in_flight: 0,
            next_span: 0,
            cursor: None,
            active: BTreeMap::new(),
            extensions: VecDeque::new(),
            refused_late: HashSet::new(),
            sequence,
            window: delivery.window().cloned(),
            released: Vec::new(),
            ready: Vec::new(),
            after_window: Vec::new(),
            counters: Counters::default(),
            starved_since: None,
        }
    }

    /// Reads all spans through the ring; `release` takes the blocks, several at a time. Reads are
    /// still in flight at the end only when the watch gave the run up, or it was cancelled while a stream was waited for.
    pub(crate) async fn run<R: Ring>(
        mut self,
        ring: &mut R,
        returned: &mut ReturnedSlots,
        mut release: impl FnMut(&mut Vec<Ready>),
        notice: &dyn Fn(&Notice),
    ) -> Counters {
        let first = self.sequence;
        self.plan.depth = self.plan.depth.min(ring.max_depth());
        let mut given_up = std::pin::pin!(self.delivery.watch.given_up());
        let mut cancelled = std::pin::pin!(self.delivery.cancelled());
        let mut is_cancelled = false;
        loop {
            // Before the look at what is known and at the window, so that no wake after that is missed.
            let more_known = (self.delivery.states.as_ref()).map(|states| states.wakes.woken());
            let window = self.window.clone();
            let moved = window.as_ref().map(|window| window.wakes.woken());
            self.begin_spans();
            self.divide_by_window();
            // Before the workers are woken, so that nothing is left to do but to go to sleep, which is
            // when the kernel takes the reads: the device waits for them, and a worker may take this
            // thread's processor.
            while let Some(submission) = self.next_submission() {
                ring.submit(submission);
            }
            if !self.ready.is_empty() {
                release(&mut self.ready);
            }
            let reading = self.in_flight > 0;
            if !reading && !self.goes_on() {
                break;
            }
            let wants_slots = self.wants_slots();
            tokio::select! {
                biased;
                slot = returned.arrival(), if wants_slots => self.take_back(slot),
                completion = ring.completion(), if reading => {
                    self.complete(completion, ring, notice);
                    while let Some(completion) = ring.try_completion() {
                        self.complete(completion, ring, notice);
                    }
                }
                () = or_never(moved) => {}
                () = or_never(more_known), if self.awaits_state() => {}
                // What is in flight stays with the ring.
                () = &mut given_up => break,
                () = &mut cancelled, if !is_cancelled => {
                    is_cancelled = true;
                    // A stream may never bring more. Reads of files are on their way.
                    let mut sources = self.active.values().map(|active| &active.source);
                    if sources.any(|source| source.len().is_none()) {
                        break;
                    }
                }
            }
            while let Some(slot) = returned.try_arrival() {
                self.take_back(slot);
            }
        }
        self.end(returned, release).await;
        self.counters.pieces = self.sequence - first;
        self.counters
    }

    /// Hands out what is left when nothing more is read.
    async fn end(
        &mut self,
        returned: &mut ReturnedSlots,
        mut release: impl FnMut(&mut Vec<Ready>),
    ) {
        // After a failure, pieces are left that wait for what was never read.
        for (span, mut active) in std::mem::take(&mut self.active) {
            active.stitcher.abandon(&mut self.released);
            self.place(span, active.sequence);
        }
        self.ready.append(&mut self.after_window);
        self.lend();
        release(&mut self.ready);
        if self.window.is_some() {
            // The sink is to learn of all that is finished.
            while self.lent_count > 0 {
                self.take_back(returned.arrival().await);
            }
            while let Some(slot) = returned.try_arrival() {
                self.take_back(slot);
            }
        }
    }

    /// Whether anything is left to do or to wait for while no read is in flight.
    fn goes_on(&mut self) -> bool {
        let window_moves = || {
            let with_sink = |window: &Arc<Window>| !window.waits_for_engine();
            self.lent_count > 0 || self.window.as_ref().is_some_and(with_sink)
        };
        !self.after_window.is_empty() && window_moves() || self.awaits_state() || self.wants_more()
    }

    /// Whether a slot that is returned is worth waking up for: a read waits for one, or the window's
    /// end does.
    fn wants_slots(&self) -> bool {
        let no_slot = self.free.len() <= self.kept_slots() && self.in_flight < self.plan.depth;
        no_slot || self.in_flight == 0 || self.window.is_some() || self.is_full()
    }

    /// Whether workers have so much of long records that nothing more is read. They give it back without a further read.
    fn is_full(&self) -> bool {
        self.lent_bytes > (self.lent.len() * self.plan.block as usize / 2).max(GATHERED_MIN)
    }

    /// Whether there is anything left to submit.
    fn wants_more(&mut self) -> bool {
        !self.extensions.is_empty() || self.current().is_some()
    }

    /// Whether a span's pieces wait for the state at its start, which others will find.
    fn awaits_state(&self) -> bool {
        self.delivery.states.is_some()
            && self.active.values().any(|active| {
                let place = (active.source.index(), active.start);
                active.stitcher.awaits_state() && !self.delivery.passed(place)
            })
    }

    /// Tells the spans whose pieces wait for it the state at their start, as far as it is known.
    fn begin_spans(&mut self) {
        let Some(states) = &self.delivery.states else {
            return;
        };
        let waiting = self
            .active
            .iter()
            .filter(|(_, active)| active.stitcher.awaits_state());
        let waiting: Vec<usize> = waiting.map(|(span, _)| *span).collect();
        for span in waiting {
            let active = self.active.get_mut(&span).expect("it was just found");
            let first_byte = active.start..active.start + 1;
            let state = match active.start {
                0 => Some(self.delivery.framing.initial()),
                _ => states.before(active.source.index(), &first_byte),
            };
            let Some(state) = state else {
                continue;
            };
            let begun = active.stitcher.begin(state, &mut self.released);
            self.follow_up(span, begun);
        }
    }

    fn take_back(&mut self, slot: Slot) {
        if let Some(since) = self.starved_since.take() {
            self.counters.starved += since.elapsed();
        }
        if let Some(bytes) = self.lent[slot.index() as usize].take() {
            self.lent_count -= 1;
            self.lent_bytes -= bytes;
        }
        if self.window.is_some() && slot.position != u64::MAX {
            self.delivery.finish(slot.position);
        }
        self.free.push_back(slot);
    }

    fn complete<R: Ring>(
        &mut self,
        completion: Completion,
        ring: &mut R,
        notice: &dyn Fn(&Notice),
    ) {
        let Completion {
            mut submission,
            result,
        } = completion;
        let slot = submission.slot.index() as usize;
        self.places[slot].done();
        let read = self.reads[slot]
            .as_ref()
            .expect("a completion belongs to a read");
        let wanted = (read.want.end - submission.offset) as usize;
        match result {
            Ok(n) => {
                self.counters.read_bytes += n as u64;
                submission.filled += n;
                if submission.source.len().is_none() {
                    return self.flowed(submission, n == 0, ring);
                }
                let whole = submission.filled >= wanted;
                if !whole && n > 0 {
                    // A short read isn't the end of the file: go on where it stopped.
                    self.counters.short_reads += 1;
                    keep_aligned(&mut submission, n);
                    if submission.tries <= retry::MOST {
                        self.places[slot].begin(&submission.source, read.want.clone());
                        return ring.submit(submission);
                    }
                }
                self.arrived(submission, wanted, whole);
            }
            Err(error) if retry::again(&error, &mut submission.tries) => {
                self.counters.retries += 1;
                self.places[slot].begin(&submission.source, read.want.clone());
                ring.submit(submission);
            }
            Err(error) => {
                let late = match submission.caching {
                    Caching::Direct => refused_late(&error),
                    Caching::Cached | Caching::Uncached => None,
                };
                let error = match late {
                    Some(late) if matches!(self.plan.caching, CachingPlan::DirectOr(_)) => {
                        self.go_on_cached(&submission.source, &late, notice);
                        submission.caching = Caching::Cached;
                        return ring.submit(submission);
                    }
                    Some(late) => late.for_setting(Setting::Direct),
                    None => failure(&error),
                };
                let file = submission.source.index();
                self.delivery.fail_at(file, read.want.clone(), error);
                self.forget(submission.slot);
            }
        }
    }

    /// Reads a source through the page cache from now on, and says so the first time.
    fn go_on_cached(&mut self, source: &Source, why: &Error, notice: &dyn Fn(&Notice)) {
        if self.refused_late.insert(source.index()) {
            notice(&Notice::ThroughPageCache {
                error: source.error(why.clone()),
                others: 0,
                dontcache: false,
            });
        }
        let spans = self.active.values_mut();
        let of_source = spans.filter(|active| active.source.index() == source.index());
        of_source.for_each(|active| active.caching = Caching::Cached);
    }

    /// A read is done, as far as it will ever be.
    fn arrived(&mut self, submission: Submission, wanted: usize, whole: bool) {
        let Submission {
            source,
            offset,
            filled,
            mut slot,
            ..
        } = submission;
        let read = self.reads[slot.index() as usize]
            .as_ref()
            .expect("a read was in flight");
        let (span, index, want) = (read.span, read.index, read.want.clone());
        if !whole {
            let error = source.ended(offset + filled as u64);
            self.delivery.fail_at(source.index(), want, error);
            return self.forget(slot);
        }
        self.in_flight -= 1;
        self.reads[slot.index() as usize] = None;
        let active = self
            .active
            .get_mut(&span)
            .expect("a span with reads in flight is active");
        let filled = filled.min(wanted);
        slot.set_filled((want.start - offset) as usize, filled);
        let arrived_end = offset + filled as u64;
        let out = &mut self.released;
        let cut = active.cut.filter(|&cut| cut < arrived_end);
        let within = cut.map(|cut| (cut.max(want.start) - want.start) as usize);
        let mut result = Ok(());
        if want.start < arrived_end {
            let effect = effect_of(self.delivery, active, &slot, want.start, within);
            result = active
                .stitcher
                .arrive(index, slot, want.start, within, effect, out);
        } else {
            drop(slot);
        }
        if cut.is_some() {
            active.reached = arrived_end;
        }
        if source.len() == Some(arrived_end) && result.is_ok() && active.stitcher.end().is_none() {
            // The file's last piece: no completion follows it.
            result = active.stitcher.finish(index + 1, out);
        }
        self.follow_up(span, result);
    }

    /// A stream has brought more, or has ended. Its whole records are released, whatever comes next; the unfinished
    /// rest begins the next piece. As long as there is no record end, reading goes on into the same slot; one that is
    /// full without any is a piece of a long record.
    fn flowed<R: Ring>(&mut self, submission: Submission, ended: bool, ring: &mut R) {
        let (number, filled) = (submission.slot.index() as usize, submission.filled);
        let read = self.reads[number].as_mut().expect("a read was in flight");
        let (span, index, start) = (read.span, read.index, read.want.start);
        let active = self
            .active
            .get_mut(&span)
            .expect("a span with reads in flight is active");
        let framing = self.delivery.framing;
        let mut submission = submission;
        submission.slot.set_filled(0, filled);
        let (searched, state) = read.searched;
        let new = &submission.slot.bytes()[searched..];
        let end = framing.last_end(state, new).map(|end| searched + end);
        let mut after = state;
        if end.is_none() {
            after = framing.effect(new).apply(state);
            if !ended && filled < submission.len {
                read.searched = (filled, after);
                self.places[number].begin(&submission.source, read.want.clone());
                return ring.submit(submission);
            }
        }
        self.in_flight -= 1;
        self.reads[number] = None;
        let cursor = self
            .cursor
            .as_mut()
            .filter(|cursor| cursor.span == span)
            .expect("a stream's next read waits for this one");
        let out = &mut self.released;
        let mut slot = submission.slot;
        let (mut result, mut count) = (Ok(()), index);
        if let Some(end) = end {
            cursor.rest.extend_from_slice(&slot.bytes()[end..]);
            cursor.at = start + end as u64;
            slot.truncate(end);
            result = active.stitcher.arrive_whole(index, slot, start, out);
        } else if filled > 0 {
            let effect = Effect::of(|_| after);
            result = active
                .stitcher
                .arrive(index, slot, start, None, effect, out);
            count = index + 1;
        } else {
            drop(slot);
        }
        if ended {
            cursor.end = cursor.at;
            if result.is_ok() {
                result = active.stitcher.finish(count, out);
            }
        }
        self.follow_up(span, result);
    }

    /// What follows when a span's stitcher has gone on.
    fn follow_up(&mut self, span: usize, result: Result<(), Oversized>) {
        let active = self.active.get_mut(&span).expect("it has just gone on");
        let sequence = active.sequence;
        match result {
            Err(over) => {
                let file = active.source.index();
                self.delivery.oversized(file, over.offset, over.has_nuls);
            }
            Ok(()) => {
                if let (Some(index), Some(cut)) = (active.stitcher.take_wanted(), active.cut) {
                    // Each twice as long as the one before.
                    self.extensions.push_back(Extension {
                        span,
                        index,
                        at: active.reached,
                        so_far: active.reached - cut,
                    });
                }
            }
        }
        if active.stitcher.is_done() {
            self.active.remove(&span);
        }
        self.place(span, sequence);
    }

    /// A read has failed; what waits for it is released at the end of the run.
    fn forget(&mut self, mut slot: Slot) {
        self.reads[slot.index() as usize] = None;
        self.in_flight -= 1;
        // Its number never finishes: for a sink that wants order, the answer ends here.
        slot.position = u64::MAX;
    }

    /// Keeps what is after the window's end from the workers, and marks the rest as theirs. Only
    /// a read that went past the window, or two pieces that were released together, can be there.
    fn divide_by_window(&mut self) {
        if let Some(window) = &self.window {
            let end = window.end();
            self.ready.append(&mut self.after_window);
            let after = |ready: &mut Ready| ready.sequence >= end;
            self.after_window = self.ready.extract_if(.., after).collect();
        }
        self.lend();
    }

    fn lend(&mut self) {
        for Ready { release, .. } in &self.ready {
            let gathered = release.gathered.as_ref();
            let bytes = gathered.map_or(0, |record| record.bytes.len());
            self.lent[release.piece.index() as usize] = Some(bytes);
            self.lent_count += 1;
            self.lent_bytes += bytes;
        }
    }

    /// Gives what a span has released its place in the input.
    fn place(&mut self, span: usize, sequence: u64) {
        let file = self.spans[span].source;
        for release in self.released.drain(..) {
            let sequence = sequence + release.index;
            self.ready.push(Ready {
                file,
                sequence,
                release,
            });
        }
    }
}

/// Where a read goes on that has brought `n` bytes more: an aligned one may have to do some of them again.
fn keep_aligned(submission: &mut Submission, n: usize) {
    let align = submission.source.align_for(submission.caching) as usize;
    let kept = submission.filled / align * align;
    // What has to be done again isn't progress, all else is.
    submission.tries = match kept > submission.filled - n {
        true => 0,
        false => submission.tries + 1,
    };
    submission.filled = kept;
}

/// The effect of a piece that begins at `start`; what of it lies before the span's end at `cut` is posted for others.
fn effect_of(
    delivery: &Delivery<'_>,
    active: &Active<'_>,
    slot: &Slot,
    start: u64,
    cut: Option<usize>,
) -> Effect {
    let Some(states) = &delivery.states else {
        return Effect::NONE;
    };
    let bytes = slot.bytes();
    let own = cut.unwrap_or(bytes.len());
    let of_own = delivery.framing.effect(&bytes[..own]);
    // Only the state at the start of the span is asked for, and that of a file is known.
    let asked = start == active.start && start > 0;
    let tile = start..start + own as u64;
    states.post(active.source.index(), tile, of_own, asked);
    match cut {
        Some(_) => of_own.then(&delivery.framing.effect(&bytes[own..])),
        None => of_own,
    }
}

/// The next wake; where there is nothing to wait for, never.
async fn or_never(wake: Option<impl Future<Output = ()>>) {
    match wake {
        Some(wake) => wake.await,
        None => std::future::pending().await,
    }
}
