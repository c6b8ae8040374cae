//! A run in progress: the engine for each part of the input, and the one instead where it isn't available.

use std::sync::Arc;

use rayon::ThreadPool;

use crate::engine::cache::advice::{self, ReadAhead};
use crate::engine::cache::residency;
use crate::engine::config::{Config, Engine};
use crate::engine::deliver::delivery::Delivery;
use crate::engine::knobs::{CacheUse, HugePages};
use crate::engine::notice::Notice;
use crate::engine::plan::buffers::CachingPlan;
use crate::engine::plan::sizing::{self, MemoryLimit};
use crate::engine::ring::memory::{MemoryRing, Order};
use crate::engine::ring::read::ReadRing;
use crate::engine::ring::setup::Setup;
use crate::engine::ring::uring;
use crate::engine::stats::Stats;
use crate::error::refusal::Refusal;
use crate::error::setting::Setting;
use crate::error::{Error, Result};
use crate::input::caching::Caching;
use crate::input::source::Source;
use crate::input::spans::{Input, Span};

/// How far workers have the kernel read ahead of what they leave in the page cache: as much as a ring has in flight.
const CACHED_AHEAD: u64 = 32 << 20;

/// Whether it lies in memory, or is an object.
fn in_memory(source: &Source) -> bool {
    source.len().is_some() && !source.is_file()
}

fn streams(input: &Input, span: &Span) -> bool {
    input.source(span).len().is_none()
}

/// A run in progress.
pub(crate) struct Run<'a> {
    pub(crate) input: &'a Input,
    pub(crate) config: &'a Config,
    pub(crate) delivery: &'a Delivery<'a>,
    pub(crate) pool: &'a ThreadPool,
    pub(crate) memory: MemoryLimit,
    /// How far the run itself reads ahead, where the kernel's read-ahead was too much for the control group.
    pub(crate) read_ahead: Option<u64>,
    /// Whether workers read what isn't cached, to leave it in the page cache.
    pub(crate) keeps: bool,
    /// Bytes of a ring's read at most, unless the configuration names them.
    pub(crate) longest_block: usize,
    /// The number of the next block.
    pub(crate) sequence: u64,
    /// Whether the user knows that there is no ring.
    pub(crate) has_reported_fallback: bool,
    pub(crate) stats: Stats,
}

impl<'a> Run<'a> {
    /// Reads all spans. Streams and files with a size take different ways, in order, so that order can be kept.
    pub(crate) fn read_all(&mut self) -> Result<()> {
        let input = self.input;
        let kind = |span: &Span| (streams(input, span), in_memory(input.source(span)));
        let mut groups = input.spans().chunk_by(|a, b| kind(a) == kind(b));
        groups.try_for_each(|group| self.group(group))
    }

    /// Reads spans that are all streams or all not.
    fn group(&mut self, spans: &[Span]) -> Result<()> {
        let caching = self.config.caching();
        for source in spans.iter().map(|span| self.input.source(span)) {
            match caching {
                Caching::Direct => self.check_direct(source)?,
                Caching::Uncached if !in_memory(source) => {
                    advice::check_dontcache(source)?;
                    self.stats.dontcache = true;
                }
                Caching::Uncached | Caching::Cached => {}
            }
        }
        let named = CachingPlan::All(caching);
        let plain = CachingPlan::All(Caching::Cached);
        if in_memory(self.input.source(&spans[0])) {
            if self.config.engine != Engine::Memory {
                self.because("it is no file");
            }
            self.stats.bytes += residency::bytes(spans);
            return self.dispatch(spans, MemoryRing::new(Order::First), plain);
        }
        if streams(self.input, &spans[0]) {
            if self.config.engine != Engine::Read {
                self.because("streams are read by read()");
            }
            if self.config.knobs.readahead.is_some() {
                let setting = Setting::Readahead;
                let source = self.input.source(&spans[0]);
                return Err(source.error(Refusal::NotAFile { setting }));
            }
            let before = self.stats.dispatched_bytes;
            #[cfg(feature = "decompress")]
            self.compressed(spans)?;
            #[cfg(not(feature = "decompress"))]
            self.streams(spans)?;
            self.stats.bytes += self.stats.dispatched_bytes - before;
            return Ok(());
        }
        self.stats.bytes += residency::bytes(spans);
        match self.config.engine {
            Engine::Auto => self.auto(spans),
            Engine::Uring => self.uring(spans, named, &[]),
            Engine::UringRaw => self.uring_raw(spans, named),
            Engine::Read => {
                let ahead = self.read_ahead();
                self.dispatch(spans, ReadRing::new(ahead.as_ref()), named)?;
                self.count_read_ahead(ahead.as_ref());
                Ok(())
            }
            Engine::Pread | Engine::Mmap => self.local(spans),
            Engine::Memory => unreachable!("everything was loaded into memory"),
        }
    }

    pub(crate) fn read_ahead(&self) -> Option<ReadAhead> {
        let named = self.config.knobs.readahead;
        // Ahead of reads past the page cache, or that leave nothing there, it would bring all of it in.
        let stays = self.config.caching() == Caching::Cached;
        let of_kept = (self.keeps && !self.memory.is_limited()).then_some(CACHED_AHEAD);
        let own = self.read_ahead.or(of_kept).filter(|_| stays);
        let ahead = ReadAhead::new(self.input, named.or(own)?);
        Some(match self.keeps {
            true => ahead.over_files(self.input),
            false => ahead,
        })
    }

    pub(crate) fn count_read_ahead(&mut self, ahead: Option<&ReadAhead>) {
        self.stats.readahead_bytes += ahead.map_or(0, ReadAhead::bytes);
    }

    /// Direct reads that were asked for are never given up: they are refused with the reason.
    fn check_direct(&self, source: &Source) -> Result<()> {
        let setting = Setting::Direct;
        if source.len().is_none() {
            return Err(source.error(Refusal::NotAFile { setting }));
        }
        let direct = source.direct();
        direct.map_err(|error| error.for_setting(setting))?;
        let align = source.direct_align();
        let block = self.config.block_size.unwrap_or(sizing::RING_BLOCK);
        if !(block as u64).is_multiple_of(align) {
            return Err(source.error(Refusal::Misaligned {
                setting: Setting::BlockSize,
                align,
                other: setting,
            }));
        }
        Ok(())
    }

    /// Cached parts go to the workers, the others through the ring, both at once.
    fn auto(&mut self, spans: &[Span]) -> Result<()> {
        let caching = match self.config.caching() {
            Caching::Cached => CachingPlan::DirectOr(Caching::Cached),
            named => CachingPlan::All(named),
        };
        if self.config.direct {
            self.because("O_DIRECT was asked for");
            return self.uring_or_pread(spans, caching, &[]);
        }
        if residency::is_small(spans) {
            self.because(residency::SMALL_WORDS);
            return self.local(spans);
        }
        let split = self.pool.install(|| residency::split(self.input, spans));
        let (resident, cold) = (
            residency::bytes(&split.resident),
            residency::bytes(&split.cold),
        );
        if cold > 0 && self.fits_page_cache(resident + cold) {
            self.because(residency::CACHING_WORDS);
            self.keeps = true;
            let done = self.local(spans);
            self.keeps = false;
            return done;
        }
        self.because(&split.words());
        if cold == 0 {
            return self.local(spans);
        }
        if self.delivery.window().is_some() && resident > 0 {
            // Order across two engines at once would need a window across both.
            self.because("one way for all of it, to keep the order");
            return match resident > cold {
                true => self.local(spans),
                false => self.uring_or_pread(spans, caching, &[]),
            };
        }
        self.uring_or_pread(&split.cold, caching, &split.resident)
    }

    /// Whether an input of this size stays in the page cache when `auto` has read it. What was named for rings or for the
    /// page cache is kept to.
    pub(crate) fn fits_page_cache(&self, bytes: u64) -> bool {
        let named = self.config.caching() != Caching::Cached || !self.is_left_to_auto();
        match self.config.knobs.cache {
            _ if named => false,
            CacheUse::None => false,
            CacheUse::Keep => true,
            CacheUse::Auto => residency::fits(&self.memory, bytes),
        }
    }

    /// Tells of files that the ring has to read through the page cache, in one line, however many there are. Returns
    /// how they are read: so that nothing stays there, where all of them can be.
    pub(crate) fn report_refusals(&mut self, spans: &[Span]) -> Caching {
        let sources = spans.iter().map(|span| self.input.source(span));
        let refused = sources.filter(|source| source.direct().is_err());
        let mut refused: Vec<_> = refused.collect();
        refused.dedup_by_key(|source| source.index());
        let Some(error) = refused.first().and_then(|first| first.direct().err()) else {
            return Caching::Cached;
        };
        let takes_dontcache = |source: &&Arc<Source>| advice::check_dontcache(source).is_ok();
        let dontcache = refused.iter().all(takes_dontcache);
        (self.config.notice)(&Notice::ThroughPageCache {
            error,
            others: refused.len() - 1,
            dontcache,
        });
        self.stats.dontcache |= dontcache;
        match dontcache {
            true => Caching::Uncached,
            false => Caching::Cached,
        }
    }

    fn uring_or_pread(
        &mut self,
        spans: &[Span],
        caching: CachingPlan,
        resident: &[Span],
    ) -> Result<()> {
        let setup = Setup::new(&self.config.knobs, 8);
        let can = uring::kernel_is_trusted().and_then(|()| uring::probe(&setup).map(drop));
        if let Err(error) = can {
            if let Some(knob) = self.config.knobs.needing_ring() {
                return Err(error.for_setting(knob));
            }
            let all = in_order(spans, resident);
            return self.without_ring(&error, "there is no io_uring", &all);
        }
        self.uring(spans, caching, resident)
    }

    /// Whether nothing was named that only a ring's buffers can be held to.
    pub(crate) fn is_left_to_auto(&self) -> bool {
        let config = self.config;
        let sizes = [config.block_size, config.queue_depth, config.buffers];
        config.engine == Engine::Auto
            && sizes == [None; 3]
            && config.knobs.needing_ring().is_none()
            && matches!(config.knobs.huge_pages, HugePages::Auto | HugePages::Off)
    }

    /// What `auto` does where there is no ring.
    pub(crate) fn without_ring(
        &mut self,
        error: &Error,
        reason: &str,
        spans: &[Span],
    ) -> Result<()> {
        if !std::mem::replace(&mut self.has_reported_fallback, true) {
            let error = error.clone();
            (self.config.notice)(&Notice::WithoutRing { error });
        }
        self.because(&format!("pread, because {reason}"));
        self.local(spans)
    }

    pub(crate) fn because(&mut self, reason: &str) {
        if !self.stats.engine_reason.contains(reason) {
            if !self.stats.engine_reason.is_empty() {
                self.stats.engine_reason.push_str("; ");
            }
            self.stats.engine_reason.push_str(reason);
        }
    }
}

/// All of them, in the order of the input.
pub(crate) fn in_order(some: &[Span], others: &[Span]) -> Vec<Span> {
    let mut all = [some, others].concat();
    all.sort_by_key(|span| (span.source, span.from));
    all
}
