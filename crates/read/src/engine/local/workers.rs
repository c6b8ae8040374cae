//! Engines whose workers fetch their own blocks, without a ring between: `pread` reads them into
//! a buffer of the worker's, `mmap` maps the page cache and copies them from there. Sinks that take shared
//! pages look at them where they lie.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::engine::arena::{Arena, Slot};
use crate::engine::cache::advice::ReadAhead;
use crate::engine::deliver::delivery::Delivery;
use crate::engine::deliver::queue::Queue;
use crate::engine::deliver::watch::Place;
use crate::engine::local::choice::FetchChoice;
use crate::engine::local::claims::{Claim, Claims, Own, own};
use crate::engine::local::mapping::Mapping;
use crate::engine::plan::buffers::Fetch;
use crate::error::setting::Setting;
use crate::error::{Error, Kind, Result};
use crate::input::caching::Caching;
use crate::input::source::{Source, refused_late};
use crate::linux::reads::read_at;
use crate::linux::retry;
use crate::record::block::{Block, LongRecord};
use crate::record::framing::State;
use crate::record::stitch::Piece;
use crate::sync::lock;

/// How much is read past a block's end at once to find the end of its last record.
const PAST: usize = 256;
/// How much is read at once of a record that goes on and on.
const LONG: usize = 64 << 10;
/// A block is copied from a line's start on, because it is copied to one. Some processors copy at a
/// fifth of their speed to an address a few bytes past the source's, modulo a page.
const LINE: u64 = 64;

/// All that the workers of such an engine share.
pub(crate) struct Local<'a> {
    pub claims: Claims<'a>,
    pub delivery: &'a Delivery<'a>,
    /// Released buffers of a ring that runs at the same time: they go first, because the device
    /// waits for them.
    pub queue: Option<&'a Queue>,
    pub threads: usize,
    pub fetch: Fetch,
    /// Bytes a read brings.
    pub block: u64,
    /// How reads use the page cache.
    pub caching: Caching,
    pub read_ahead: Option<ReadAhead>,
    /// What the fetchers' slots lie in.
    pub arena: Option<Arc<Arena>>,
    pub fetchers: Mutex<Vec<Fetcher>>,
    pub read_bytes: AtomicU64,
    pub mapped_bytes: AtomicU64,
    pub reads: AtomicU64,
}

/// What a worker fetches with. Lent for as long as it works.
pub(crate) struct Fetcher {
    /// To read into.
    pub slot: Option<Slot>,
    /// To map with.
    pub mapping: Option<Mapping>,
    /// With both: which to take.
    pub choice: FetchChoice,
    /// Where the watch sees what is read.
    pub place: Place,
}

impl<'a> Local<'a> {
    /// Sets the workers to work. For a sink that wants order it returns when all blocks are handed out, because
    /// workers stop where the window ends; otherwise at once.
    pub(crate) fn start<'s>(&'s self, scope: &rayon::Scope<'s>) {
        self.hire(scope);
        if let Some(window) = self.delivery.window() {
            window.wait_until(|| {
                self.hire(scope);
                self.claims.are_exhausted() || self.delivery.watch.overdue().is_some()
            });
        }
    }

    /// As many workers as can find something to do.
    fn hire<'s>(&'s self, scope: &rayon::Scope<'s>) {
        for _ in 0..self.claims.hire(self.threads) {
            scope.spawn(|_| self.work());
        }
    }

    fn work(&self) {
        let fetcher = lock(&self.fetchers).pop();
        let mut fetcher = fetcher.expect("as many fetchers as workers are hired");
        loop {
            while self.work_on_queue() {}
            let Some(claim) = self.claims.next() else {
                break;
            };
            let fetched = self.fetch(&mut fetcher, claim);
            fetcher.place.done();
            if let Err(error) = fetched {
                self.delivery.fail(error);
            }
            self.delivery.finish(claim.sequence);
        }
        lock(&self.fetchers).push(fetcher);
        self.claims.leave();
        if let Some(window) = self.delivery.window() {
            // It may have moved between the last look and now.
            window.wakes.wake();
        }
    }

    /// Works on a buffer that the ring has released, if there is one.
    fn work_on_queue(&self) -> bool {
        let ready = self.queue.and_then(Queue::pop);
        let found = ready.is_some();
        if let Some(ready) = ready {
            self.delivery.deliver_ready(ready);
        }
        found
    }

    /// Fetches a claim and hands it to the sink: all of it mapped, or part by part in a buffer.
    fn fetch(&self, fetcher: &mut Fetcher, claim: Claim) -> Result<()> {
        let source = &*self.delivery.input.sources()[claim.source as usize];
        let len = source.len().unwrap_or(0);
        let place = fetcher.place.clone();
        let task = |claim| Task {
            local: self,
            source,
            place: &place,
            claim,
        };
        let mut view = None;
        if self.fetch == Fetch::Copy {
            let mapping = (fetcher.mapping.as_mut()).expect("a fetcher has a window");
            view = Some(task(claim).view(mapping)?);
        }
        let mut rest = Some(claim);
        while let Some(claim) = rest {
            let started = Instant::now();
            let part;
            if self.is_mapped(fetcher, &task(claim))? {
                (part, rest) = (claim, None);
            } else {
                (part, rest) = claim.split(self.block, len);
                let slot = fetcher.slot.as_mut().expect("a fetcher has a buffer");
                match (&view, &fetcher.mapping) {
                    (Some(view), Some(mapping)) => task(part).copy(slot, mapping, view)?,
                    _ => task(part).read(slot)?,
                }
            }
            let range = part.range(len);
            fetcher
                .choice
                .learn(range.end - range.start, started.elapsed());
        }
        Ok(())
    }

    /// Maps a claim where that is the way to take; whether it was.
    fn is_mapped(&self, fetcher: &mut Fetcher, task: &Task<'_>) -> Result<bool> {
        let maps = match self.fetch {
            Fetch::Map => true,
            Fetch::MapOrRead => fetcher.choice.next() == Fetch::Map,
            Fetch::Read | Fetch::Copy => false,
        };
        let Some(mapping) = fetcher.mapping.as_mut().filter(|_| maps) else {
            return Ok(false);
        };
        match task.map(mapping) {
            // Some file systems can be read, but not mapped.
            Err(error) if self.fetch == Fetch::MapOrRead && error.kind() == Kind::Engine => {
                fetcher.mapping = None;
                Ok(false)
            }
            mapped => mapped.map(|()| true),
        }
    }
}

/// A claim, or a part of one, that a worker fetches.
struct Task<'a> {
    local: &'a Local<'a>,
    source: &'a Source,
    /// Where the watch sees what is read.
    place: &'a Place,
    claim: Claim,
}

impl Task<'_> {
    /// Shows the claim in the window; returns what is shown.
    fn view(&self, mapping: &mut Mapping) -> Result<Range<u64>> {
        let (range, _) = self.reach();
        // Until the job is done with it: pages may come in at the first look at each.
        self.place.begin_looking(self.source, range.clone());
        self.read_ahead();
        mapping.view(self.source, range.clone())?;
        let bytes = range.end - range.start;
        self.local.mapped_bytes.fetch_add(bytes, Relaxed);
        Ok(range)
    }

    /// Copies the claim from the window, which shows `view`, into a slot.
    fn copy(&self, slot: &mut Slot, mapping: &Mapping, view: &Range<u64>) -> Result<()> {
        let (range, _) = self.reach();
        self.place.begin_looking(self.source, range.clone());
        // As aligned in the slot as in the window.
        let before = (range.start % LINE) as usize;
        let len = (range.end - range.start) as usize;
        let from = (range.start - view.start) as usize;
        let target = &mut slot.target_bytes(0)[before..before + len];
        mapping.copy(from..from + len, target);
        if let Some(error) = mapping.broken(self.source, range) {
            return Err(error);
        }
        slot.set_filled(before, before + len);
        self.deliver_slot(slot)
    }

    /// Maps the claim.
    fn map(&self, mapping: &mut Mapping) -> Result<()> {
        let range = self.view(mapping)?;
        let broken = || mapping.broken(self.source, range);
        let Claim {
            source, sequence, ..
        } = self.claim;
        let block = |whole, offset| mapping.block(whole, source, offset, sequence);
        self.deliver_own(mapping.bytes(), block, broken)
    }

    /// Reads the claim into a slot.
    fn read(&self, slot: &mut Slot) -> Result<()> {
        let caching = self.local.caching;
        let (range, _) = self.reach();
        self.place.begin(self.source, range.clone());
        self.read_ahead();
        let align = self.source.align_for(caching).max(LINE);
        let begin = range.start / align * align;
        let wanted = (range.end - begin) as usize;
        let target = slot.target_bytes(0);
        let len = wanted.next_multiple_of(align as usize).min(target.len());
        self.read_at(caching, &mut target[..len], begin, wanted)?;
        slot.set_filled((range.start - begin) as usize, wanted);
        self.deliver_slot(slot)
    }

    /// Hands the claim's own records to the sink, of a slot that holds what it reaches.
    fn deliver_slot(&self, slot: &Slot) -> Result<()> {
        let Claim {
            source, sequence, ..
        } = self.claim;
        let block = |whole, offset| slot.block(whole, source, offset, sequence);
        self.deliver_own(slot.bytes(), block, || None)
    }

    /// Hands the claim's own records to the sink: of `view`, which shows what it reaches, and the one that goes on past
    /// it. `broken` tells afterwards whether the view was sound.
    fn deliver_own<'v>(
        &self,
        view: &[u8],
        block: impl FnOnce(Range<usize>, u64) -> Block<'v>,
        broken: impl FnOnce() -> Option<Error>,
    ) -> Result<()> {
        let delivery = self.local.delivery;
        let (range, at_eof) = self.reach();
        let Some(cuts) = self.states_at_cuts(view) else {
            // The run has failed before this claim.
            return broken().map_or(Ok(()), Err);
        };
        let Own { whole, open } = own(delivery.framing, view, &self.claim, cuts, at_eof);
        let tail = whole.end;
        if whole.is_empty() {
            broken().map_or(Ok(()), Err)?;
        } else {
            let offset = range.start + whole.start as u64;
            delivery.deliver_if(&block(whole, offset), broken);
        }
        if open {
            let mut record = delivery.gathered(range.start + tail as u64);
            record.extend(&view[tail..]);
            self.gather(record)?;
        }
        Ok(())
    }

    /// The states where the claim looks for its first record's start and for its last record's end. For a stateful
    /// framing it waits for what comes before the claim; `None` when the run has failed there.
    fn states_at_cuts(&self, view: &[u8]) -> Option<[State; 2]> {
        let delivery = self.local.delivery;
        let Some(states) = &delivery.states else {
            return Some([State::START; 2]);
        };
        let (source, tile) = (self.claim.source, self.range());
        let bytes = &view[..(tile.end - tile.start) as usize];
        let effect = delivery.framing.effect(bytes);
        let place = (source, tile.start);
        states.post(source, tile.clone(), effect, tile.start > 0);
        let before = match tile.start {
            0 => delivery.framing.initial(),
            // What the ring has released may be what the ring waits for.
            _ => states.wait_before(
                source,
                &tile,
                || delivery.passed(place),
                || self.local.work_on_queue(),
            )?,
        };
        Some([before, effect.apply(before)])
    }

    /// Lets the kernel read ahead of the claim.
    fn read_ahead(&self) {
        if let Some(ahead) = &self.local.read_ahead {
            ahead.of(self.source, self.range(), self.claim.start.is_none());
        }
    }

    /// The claim's bytes.
    fn range(&self) -> Range<u64> {
        let len = self.source.len();
        self.claim
            .range(len.expect("only sources with a size are served here"))
    }

    /// What to look at for the claim, and whether that reaches the source's end.
    fn reach(&self) -> (Range<u64>, bool) {
        let (range, len) = (self.range(), self.source.len().unwrap_or(0));
        let end = (range.end + PAST as u64).min(len);
        (range.start..end, end == len)
    }

    /// Reads on for the end of a record.
    fn gather(&self, mut record: LongRecord) -> Result<()> {
        let (delivery, file) = (self.local.delivery, self.claim.source);
        let (len, framing) = (self.source.len().unwrap_or(0), delivery.framing);
        let offset = record.offset;
        let mut state = framing
            .effect(record.bytes.bytes())
            .apply(framing.at_record(offset));
        let mut chunk = vec![0; LONG];
        loop {
            let at = offset + record.length();
            if record.is_beyond() {
                delivery.oversized(file, offset, record.has_nuls());
                return Ok(());
            }
            let want = chunk.len().min((len - at) as usize);
            if want == 0 {
                break;
            }
            let chunk = &mut chunk[..want];
            self.read_at(self.local.caching.unaligned(), chunk, at, want)?;
            if let Some(end) = framing.first_end(state, chunk) {
                record.extend(&chunk[..end]);
                break;
            }
            record.extend(chunk);
            state = framing.effect(chunk).apply(state);
        }
        delivery.deliver_gathered(file, self.claim.sequence, record);
        Ok(())
    }

    /// Fills a buffer from `offset` on, up to `wanted` bytes at least.
    fn read_at(
        &self,
        caching: Caching,
        target: &mut [u8],
        offset: u64,
        wanted: usize,
    ) -> Result<()> {
        let (local, source) = (self.local, self.source);
        let range = offset..offset + wanted as u64;
        let fail = |error: Error| source.error(error).at_bytes(range.clone());
        let file = source.file_for(caching);
        let file = file.map_err(|error| fail(Error::io(&error)))?;
        let align = source.align_for(caching) as usize;
        let (mut filled, mut tries) = (0, 0);
        while filled < wanted {
            let (target, at) = (&mut target[filled..], offset + filled as u64);
            self.place.begin(source, at..range.end);
            let read = read_at(&file, target, at, caching.flags());
            self.place.done();
            match read {
                Ok(n) => {
                    local.reads.fetch_add(1, Relaxed);
                    local.read_bytes.fetch_add(n as u64, Relaxed);
                    let now = filled + n;
                    // The next read must be aligned too, so a short one may have to be done again.
                    let kept = if now >= wanted {
                        now
                    } else {
                        now / align * align
                    };
                    tries = if kept > filled { 0 } else { tries + 1 };
                    if n == 0 || tries > retry::MOST {
                        return Err(fail(source.ended(offset + now as u64)));
                    }
                    filled = kept;
                }
                Err(errno) => {
                    let error = errno.into();
                    if !retry::again(&error, &mut tries) {
                        let late = match caching {
                            Caching::Direct => refused_late(&error),
                            Caching::Cached | Caching::Uncached => None,
                        };
                        let named = late.map(|late| late.for_setting(Setting::Direct));
                        return Err(fail(named.unwrap_or_else(|| Error::io(&error))));
                    }
                }
            }
        }
        Ok(())
    }
}
