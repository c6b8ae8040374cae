//! What is read next, and into which slot.

use std::sync::Arc;
use std::time::Instant;

use crate::engine::ring::dispatcher::{Active, Cursor, Dispatcher, Extension, Read};
use crate::engine::ring::seam::Submission;
use crate::input::caching::Caching;
use crate::input::spans::Span;
use crate::record::stitch::Stitcher;

/// How far a read past a span's end looks for the end of the last record.
const EXTENSION: u64 = 16 << 10;

/// Reads of this size past the page cache gain nothing from being made part of larger ones, and lose
/// where none is answered before the end of all. Smaller ones gain more than they lose.
const LARGE: u64 = 512 << 10;

/// The next read.
struct Next {
    span: usize,
    index: u64,
    at: u64,
    /// It ends here at the latest.
    limit: u64,
    /// Whether it is one of the span's own, and not past its end.
    own: bool,
}

impl Dispatcher<'_> {
    /// The cursor, moved on to the next span where one is exhausted; `None` at the end of the
    /// input or after a failure.
    pub(super) fn current(&mut self) -> Option<&Cursor> {
        while self
            .cursor
            .as_ref()
            .is_none_or(|cursor| cursor.at >= cursor.end)
        {
            self.cursor = None;
            let span = *self.spans.get(self.next_span)?;
            self.open(self.next_span, span);
            self.next_span += 1;
        }
        let cursor = self.cursor.as_ref()?;
        if self
            .delivery
            .passed((self.spans[cursor.span].source, cursor.at))
        {
            return None;
        }
        Some(cursor)
    }

    fn open(&mut self, index: usize, span: Span) {
        let source = Arc::clone(self.delivery.input.source(&span));
        if span.from >= span.to {
            return;
        }
        let caching = match self.refused_late.contains(&source.index()) {
            true => Caching::Cached,
            false => self.plan.caching_of(&source),
        };
        let cut = source
            .len()
            .and_then(|len| (span.to < len).then(|| span.to - 1));
        let at = span.from.saturating_sub(1);
        self.cursor = Some(Cursor {
            span: index,
            index: 0,
            at,
            end: span.to,
            rest: Vec::new(),
        });
        self.active.insert(
            index,
            Active {
                source,
                stitcher: Stitcher::new(
                    self.delivery.framing,
                    self.delivery.max_record,
                    span.from == 0,
                )
                .cutting(self.delivery.reach),
                caching,
                start: at,
                cut,
                reached: 0,
                sequence: self.sequence,
            },
        );
    }

    /// The next read, if there is one, a slot is free and the depth allows it.
    pub(super) fn next_submission(&mut self) -> Option<Submission> {
        if self.in_flight >= self.plan.depth || self.is_full() {
            return None;
        }
        if self.free.is_empty() {
            if self.starved_since.is_none() && self.wants_more() {
                self.starved_since = Some(Instant::now());
            }
            return None;
        }
        let Next {
            span,
            index,
            at,
            limit,
            own,
        } = self.next_read()?;
        let block = self.plan.block;
        let active = self
            .active
            .get_mut(&span)
            .expect("a span with reads to do is active");
        let end = limit.min(active.source.len().unwrap_or(u64::MAX));
        let align = active.source.align_for(active.caching);
        let offset = at / align * align;
        let mut slot = self.free.pop_front()?;
        let (_, capacity) = slot.target(0);
        let end = end.min(offset + capacity as u64);
        let len = (end - offset).next_multiple_of(align);
        slot.position = u64::MAX;
        let mut filled = 0;
        if own {
            slot.position = self.sequence;
            self.sequence += 1;
            let cursor = self.cursor.as_mut().expect("the cursor was just looked at");
            cursor.index += 1;
            cursor.at = end;
            filled = cursor.rest.len();
            slot.target_bytes(0)[..filled].copy_from_slice(&cursor.rest);
            cursor.rest.clear();
        }
        self.reads[slot.index() as usize] = Some(Read {
            span,
            index,
            want: at..end,
            searched: (0, active.stitcher.state().unwrap_or_default()),
        });
        self.places[slot.index() as usize].begin(&active.source, at..end);
        self.in_flight += 1;
        self.counters.reads += 1;
        self.counters.max_in_flight = self.counters.max_in_flight.max(self.in_flight);
        let (source, caching) = (Arc::clone(&active.source), active.caching);
        Some(Submission {
            filled,
            unmerged: caching == Caching::Direct && block >= LARGE && index % 2 == 1,
            ..Submission::new(source, offset, len as usize, slot, caching)
        })
    }

    /// How many free slots are kept for reads past a span's end.
    pub(super) fn kept_slots(&self) -> usize {
        let mut stitchers = self.active.values().map(|active| &active.stitcher);
        usize::from(self.delivery.states.is_some() && stitchers.any(Stitcher::has_unframed))
    }

    /// What is to be read next; `None` also where the window ends, or where the free slots are kept.
    fn next_read(&mut self) -> Option<Next> {
        let block = self.plan.block;
        if let Some(Extension {
            span,
            index,
            at,
            so_far,
        }) = self.next_extension()
        {
            return Some(Next {
                span,
                index,
                at,
                limit: at + EXTENSION.max(so_far).min(block),
                own: false,
            });
        }
        let after_window = self.window.as_ref().is_some_and(|window| {
            // When nothing is in flight, with a worker or with the sink, what has arrived waits for the next read.
            let stuck = self.in_flight == 0 && self.lent_count == 0 && window.waits_for_engine();
            self.sequence >= window.end() && !stuck
        });
        let is_kept = self.free.len() <= self.kept_slots();
        let Cursor {
            span,
            index,
            at,
            end,
            ..
        } = *self.current()?;
        let is_stream = end == u64::MAX;
        // A span's first piece begins one byte before it.
        let begun = at + u64::from(index == 0 && at > 0);
        let next = Next {
            span,
            index,
            at,
            limit: match is_stream {
                true => at + block,
                false => (begun / block + 1) * block,
            },
            own: true,
        };
        // Where a stream goes on is known only when its last read is done.
        let is_unknown = is_stream && self.in_flight > 0;
        (!after_window && !is_kept && !is_unknown).then_some(next)
    }

    /// The next read past a span's end, unless something before it has failed.
    fn next_extension(&mut self) -> Option<Extension> {
        while let Some(extension) = self.extensions.pop_front() {
            let source = self.spans[extension.span].source;
            if !self.delivery.passed((source, extension.at)) {
                return Some(extension);
            }
        }
        None
    }
}
