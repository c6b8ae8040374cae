//! Runs an input through an engine: checks the request, cuts the input into blocks, sets the threads
//! to work, and reports the lowest failure.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rayon::prelude::*;

use crate::engine::arena::{self, Arena, Layout, ReturnedSlots, Slot};
use crate::engine::cache::advice::{self, ReadAhead};
use crate::engine::cache::residency;
use crate::engine::config::{Config, Engine};
use crate::engine::deliver::delivery::{Delivery, Ready};
use crate::engine::deliver::queue::Queue;
use crate::engine::deliver::watch::{Watchdog, is_watched};
use crate::engine::knobs::{FileAdvice, HugePages};
use crate::engine::local::choice::FetchChoice;
use crate::engine::local::claims::Claims;
use crate::engine::local::mapping::Mapping;
use crate::engine::local::workers::{Hand, Local};
use crate::engine::notice::Notice;
use crate::engine::plan::settings::{self, MAX_BLOCK, MAX_DEPTH};
use crate::engine::plan::sizing::{self, MemoryLimit};
use crate::engine::pool;
use crate::engine::ring::dispatcher::{Counters, Direct, Dispatcher, Plan};
use crate::engine::ring::memory::{MemoryRing, Order};
use crate::engine::ring::read::ReadRing;
use crate::engine::ring::rings;
use crate::engine::ring::seam::Ring;
use crate::engine::ring::uring::{self, Setup};
use crate::engine::sink::{BlockError, Sink};
use crate::engine::stats::Stats;
use crate::error::refusal::Refusal;
use crate::error::setting::Setting;
use crate::error::{Error, Kind, Result};
use crate::input::load::load;
use crate::input::source::{Change, Source};
use crate::input::spans::{Input, Span};
use crate::linux::affinity::Pinned;
use crate::record::block::Block;
use crate::record::framing::{Delimited, Framing};

/// What a worker's buffer must hold beside its block: what lies before an aligned start, the bytes
/// read past the end, and what aligning that end adds.
const ROOM: usize = 3 * 65536;
/// What a read may bring of the bytes before its block, to be aligned.
const BEFORE: usize = 65536;
/// Bytes of a block that a worker fetches for a sink that wants order.
const ORDERED_BLOCK: u64 = 512 << 10;
/// Descriptors that a ring and its runtime take, and some to look into /proc by.
const RING_DESCRIPTORS: usize = 16;

/// Reads the input's spans and hands their records to the sink.
///
/// # Errors
/// The lowest of all failures: in the data, from the kernel, or of a worker. Or the engine or a
/// setting that was asked for can't be had.
pub fn run(input: &Input, config: &Config, sink: &dyn Sink) -> Result<Stats> {
    run_then(input, config, sink, || ()).map(|(stats, ())| stats)
}

/// The same, and then does something with the run's own threads.
pub(crate) fn run_then<T: Send>(
    input: &Input,
    config: &Config,
    sink: &dyn Sink,
    then: impl FnOnce() -> T + Send,
) -> Result<(Stats, T)> {
    settings::check(config)?;
    let started = Instant::now();
    let (room, pin) = (MemoryLimit::of_this_process(), &config.knobs.pin);
    let pool = pool::of_run(input, config, &room)?;
    let threads = pool.current_num_threads();
    let _pinned = match pin.is_empty() {
        true => None,
        false => Some(Pinned::new(pin)?),
    };
    let calm = advice::limit_read_ahead(input, config, &room, threads);
    let fadvise = match config.knobs.fadvise {
        Some(advice) => advice::advise(input, advice)?.then(|| advice.to_string()),
        None => calm.map(|_| FileAdvice::Random.to_string()),
    };
    let watch = Watchdog::new(input, config)?;
    let watched = input.sources().iter().any(|source| is_watched(source));
    let opened = input;
    let loaded;
    let input = match config.engine {
        Engine::Memory => {
            room.check_loadable(input)?;
            let place = watch.place();
            let reads = |source: &Source, bytes| place.begin(source, bytes);
            let done = load(input, &reads);
            place.done();
            loaded = given_up(&watch).and(done)?;
            &loaded
        }
        _ => input,
    };
    let delivery = Delivery::new(input, sink, config, &watch);
    if delivery.framing.is_stateful() {
        check_cuts(input)?;
    }
    let mut session = Session {
        input,
        config,
        delivery: &delivery,
        pool: &pool,
        room,
        calm,
        threads,
        sequence: 0,
        told: false,
        without_trace: false,
        stats: Stats {
            threads,
            engine: config.engine.to_string(),
            fadvise,
            pinned_cpus: pin.clone(),
            io_timeout_s: config
                .io_timeout
                .filter(|_| watched)
                .map(|limit| limit.as_secs_f64()),
            ..Stats::default()
        },
    };
    // Streams and files with a size take different ways; in order, so that order can be kept.
    let kind = |span: &Span| (streams(input, span), in_memory(input, span));
    let mut groups = input.spans().chunk_by(|a, b| kind(a) == kind(b));
    let served = groups.try_for_each(|group| session.group(group));
    let Session { mut stats, .. } = session;
    stats.without_effect = settings::without_effect(config, &stats);
    stats.blocks = delivery.blocks();
    given_up(&watch)?;
    let changes = pool.install(|| changes(opened));
    let cut_off = cut_off(opened, &changes);
    // What was found in the data counts before what an engine couldn't do behind it.
    delivery
        .outcome()
        .map_err(|error| match &cut_off {
            Some(cut) if error.kind() == Kind::Data && cut.file_index() == error.file_index() => {
                cut.clone()
            }
            _ => with_line(input, config, &pool, delivery.framing, error),
        })
        .and(served)?;
    cut_off.map_or(Ok(()), Err)?;
    tell_of_changes(opened, &changes, config);
    let done = pool.install(then);
    stats.elapsed_s = started.elapsed().as_secs_f64();
    Ok((stats, done))
}

/// What the run ends with when a read took too long, whatever else there is to tell.
fn given_up(watch: &Watchdog) -> Result<()> {
    watch.overdue().cloned().map_or(Ok(()), Err)
}

fn in_memory(input: &Input, span: &Span) -> bool {
    input.source(span).bytes().is_some()
}

fn streams(input: &Input, span: &Span) -> bool {
    input.source(span).len().is_none()
}

/// A run in progress.
struct Session<'a> {
    input: &'a Input,
    config: &'a Config,
    delivery: &'a Delivery<'a>,
    pool: &'a rayon::ThreadPool,
    room: MemoryLimit,
    /// Where the kernel's read-ahead was too much for the control group: how far the run itself
    /// asks for.
    calm: Option<u64>,
    threads: usize,
    /// The number of the next block.
    sequence: u64,
    /// Whether the user knows that there is no ring.
    told: bool,
    /// Whether the ring's buffered reads leave nothing in the page cache, unasked.
    without_trace: bool,
    stats: Stats,
}

impl<'a> Session<'a> {
    /// Serves spans that are all streams or all not.
    fn group(&mut self, spans: &[Span]) -> Result<()> {
        if self.config.direct {
            for span in spans {
                self.check_direct(self.input.source(span))?;
            }
        }
        if self.config.knobs.dontcache && !in_memory(self.input, &spans[0]) {
            for span in spans {
                advice::check_dontcache(self.input.source(span))?;
            }
            self.stats.dontcache = true;
        }
        let direct = if self.config.direct {
            Direct::Yes
        } else {
            Direct::No
        };
        if in_memory(self.input, &spans[0]) {
            if self.config.engine != Engine::Memory {
                self.because("it lies in memory");
            }
            self.stats.bytes += residency::bytes(spans);
            return self.dispatch(spans, MemoryRing::new(Order::First), Direct::No);
        }
        if streams(self.input, &spans[0]) {
            if self.config.engine != Engine::Read {
                self.because("streams are read by read()");
            }
            if self.config.knobs.readahead.is_some() {
                let setting = Setting::Readahead;
                let source = self.input.source(&spans[0]);
                let error = Error::from(Refusal::NotAFile { setting });
                return Err(error.in_file(source.index(), source.name()));
            }
            let before = self.stats.dispatched_bytes;
            self.dispatch(spans, ReadRing::new(false, None), Direct::No)?;
            self.stats.bytes += self.stats.dispatched_bytes - before;
            return Ok(());
        }
        self.stats.bytes += residency::bytes(spans);
        match self.config.engine {
            Engine::Auto => self.auto(spans),
            Engine::Uring => self.uring(spans, direct, &[]),
            Engine::UringRaw => self.uring_raw(spans, direct),
            Engine::Read => {
                let ahead = self.ahead();
                let ring = ReadRing::new(self.config.knobs.dontcache, ahead.as_ref());
                self.dispatch(spans, ring, direct)?;
                self.count_ahead(ahead.as_ref());
                Ok(())
            }
            Engine::Pread | Engine::Mmap => self.local(spans),
            Engine::Memory => unreachable!("everything was loaded into memory"),
        }
    }

    fn ahead(&self) -> Option<ReadAhead> {
        let named = self.config.knobs.readahead;
        // Ahead of reads past the page cache, or that leave nothing there, it would bring all of it in.
        let past = self.config.direct || self.config.knobs.dontcache;
        let calm = self.calm.filter(|_| !past);
        Some(ReadAhead::new(self.input, named.or(calm)?))
    }

    fn count_ahead(&mut self, ahead: Option<&ReadAhead>) {
        self.stats.readahead_bytes += ahead.map_or(0, ReadAhead::bytes);
    }

    /// Direct reads that were asked for are never given up: they are refused with the reason.
    fn check_direct(&self, source: &Source) -> Result<()> {
        let setting = Setting::Direct;
        if source.len().is_none() {
            let refused = Error::from(Refusal::NotAFile { setting });
            return Err(refused.in_file(source.index(), source.name()));
        }
        source
            .direct()
            .map_err(|error| error.for_setting(setting))?;
        let (align, block) = (
            source.direct_align(),
            self.config.block_size.unwrap_or(sizing::RING_BLOCK),
        );
        if !(block as u64).is_multiple_of(align) {
            let refused = Error::from(Refusal::Misaligned {
                setting: Setting::BlockSize,
                align,
                other: setting,
            });
            return Err(refused.in_file(source.index(), source.name()));
        }
        Ok(())
    }

    /// Cached parts go to the workers, the others through the ring, both at once.
    fn auto(&mut self, spans: &[Span]) -> Result<()> {
        let direct = match (self.config.direct, self.config.knobs.dontcache) {
            (true, _) => Direct::Yes,
            // Through the page cache, but without a trace there.
            (false, true) => Direct::No,
            (false, false) => Direct::IfGranted,
        };
        if self.config.direct {
            self.because("O_DIRECT was asked for");
            return self.uring_or_pread(spans, direct, &[]);
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
        self.because(&split.words());
        if cold == 0 {
            return self.local(spans);
        }
        if self.delivery.window().is_some() && resident > 0 {
            // Order across two engines at once would need a window across both.
            self.because("one way for all of it, to keep the order");
            return match resident > cold {
                true => self.local(spans),
                false => self.uring_or_pread(spans, direct, &[]),
            };
        }
        self.uring_or_pread(&split.cold, direct, &split.resident)
    }

    /// Tells of files that the ring has to read through the page cache; that leaves no trace there
    /// where all of them can be read so. One line, however many there are.
    fn tell_of_refusals(&mut self, spans: &[Span]) {
        // Every file is opened once more: what the ring needs must be left over.
        let reserve = || File::open("/dev/null").ok();
        let reserved: Vec<File> = (0..RING_DESCRIPTORS).map_while(|_| reserve()).collect();
        let mut refused: Vec<_> = spans
            .iter()
            .map(|span| self.input.source(span))
            .filter(|source| source.direct().is_err())
            .collect();
        drop(reserved);
        refused.dedup_by_key(|source| source.index());
        let Some(error) = refused.first().and_then(|first| first.direct().err()) else {
            return;
        };
        let dontcache = |source: &&Arc<Source>| advice::check_dontcache(source).is_ok();
        self.without_trace = refused.iter().all(dontcache);
        (self.config.notice)(&Notice::ThroughPageCache {
            error,
            others: refused.len() - 1,
            dontcache: self.without_trace,
        });
        self.stats.dontcache |= self.without_trace;
    }

    fn uring_or_pread(&mut self, spans: &[Span], direct: Direct, resident: &[Span]) -> Result<()> {
        let setup = Setup::new(&self.config.knobs, 8);
        let can = uring::kernel_is_trusted().and_then(|()| uring::probe(&setup).map(drop));
        if let Err(error) = can {
            if let Some(knob) = self.config.knobs.of_the_ring() {
                return Err(error.for_setting(knob));
            }
            let all = in_order(spans, resident);
            return self.without_ring(&error, "there is no io_uring", &all);
        }
        self.uring(spans, direct, resident)
    }

    /// Whether nothing was named that only a ring's buffers can be held to.
    fn is_left_to_auto(&self) -> bool {
        let config = self.config;
        let sizes = [config.block_size, config.queue_depth, config.buffers];
        config.engine == Engine::Auto
            && sizes == [None; 3]
            && config.knobs.of_the_ring().is_none()
            && matches!(config.knobs.huge_pages, HugePages::Auto | HugePages::Off)
    }

    /// What `auto` does where there is no ring.
    fn without_ring(&mut self, error: &Error, reason: &str, spans: &[Span]) -> Result<()> {
        if !std::mem::replace(&mut self.told, true) {
            let error = error.clone();
            (self.config.notice)(&Notice::WithoutRing { error });
        }
        self.because(&format!("pread, because {reason}"));
        self.local(spans)
    }

    fn because(&mut self, reason: &str) {
        if !self.stats.engine_reason.contains(reason) {
            if !self.stats.engine_reason.is_empty() {
                self.stats.engine_reason.push_str("; ");
            }
            self.stats.engine_reason.push_str(reason);
        }
    }

    /// How the dispatcher cuts and how many slots it has; small inputs get few and small ones.
    /// The buffers for the workers are those of all rings together.
    fn plan(
        &mut self,
        spans: &[Span],
        max_depth: usize,
        direct: Direct,
        rings: usize,
    ) -> (Plan, Layout) {
        let largest = spans
            .iter()
            .map(|span| span.to.saturating_sub(span.from))
            .max()
            .unwrap_or(0);
        // No block is larger than the input, rounded so that any alignment divides it.
        let all = (largest.min(MAX_BLOCK as u64 - 1) as usize + 1).next_multiple_of(64 << 10);
        let depth = self
            .config
            .queue_depth
            .unwrap_or(sizing::DEPTH)
            .min(max_depth);
        let named = self.config.buffers;
        let threads = self.threads;
        let of = |block| named.unwrap_or_else(|| sizing::buffers(block, depth, threads, rings));
        let block = self.config.block_size.unwrap_or_else(|| {
            let of_all = |block| of(block).saturating_mul(rings);
            self.room.ring_block(of_all)
        });
        let block = block.min(all);
        // A span that starts on the grid is read from a byte before it.
        let within = spans.iter().any(|span| span.from > 0);
        let room = if within { block + BEFORE } else { block };
        let reads = blocks(spans, block as u64);
        let buffers = match (named, self.config.queue_depth) {
            (None, None) => of(block).min(sizing::buffers_at_most(reads)),
            _ => of(block),
        };
        let slots = buffers.min(reads.saturating_add(1).max(2) as usize).max(2);
        let plan = Plan {
            block: block as u64,
            depth: depth.min(slots - 1),
            direct,
        };
        self.stats.block_size = block;
        self.stats.queue_depth = self.stats.queue_depth.max(plan.depth);
        (plan, Layout { block: room, slots })
    }

    /// What the kernel has put into huge pages by the end of the run.
    fn count_huge(&mut self, arena: &Arena) {
        let granted = arena.huge_bytes().unwrap_or(0);
        self.stats.huge_page_bytes += granted;
        if granted > 0 {
            let hugetlb = self.config.knobs.huge_pages == HugePages::Hugetlb;
            self.stats.huge_pages = if hugetlb { "hugetlb" } else { "thp" }.to_string();
        }
    }

    fn arena(
        &mut self,
        layout: Layout,
    ) -> Result<(std::sync::Arc<Arena>, Vec<Slot>, ReturnedSlots)> {
        let arena = Arena::new(layout, self.config.knobs.huge_pages)?;
        let (slots, home) = arena.slots();
        self.stats.buffers += layout.slots;
        self.stats.buffer_bytes += arena.bytes() as u64;
        Ok((arena, slots, home))
    }

    /// The ring over `spans`, and the workers over `resident` at the same time.
    fn uring(&mut self, spans: &[Span], direct: Direct, resident: &[Span]) -> Result<()> {
        let knobs = &self.config.knobs;
        let entries = knobs.entries.map_or(MAX_DEPTH, |entries| entries as usize);
        let (plan, layout) = self.plan(spans, entries.min(MAX_DEPTH), direct, 1);
        let (arena, mut slots, mut home) = match self.arena(layout) {
            // Buffers of the workers' own are fewer.
            Err(error) if self.is_left_to_auto() => {
                let all = in_order(spans, resident);
                return self.without_ring(&error, "there is no memory for a ring's buffers", &all);
            }
            arena => arena?,
        };
        self.pool.in_place_scope(|scope| {
            scope.spawn(|_| arena::touch(&mut slots, knobs.huge_pages));
            // Thousands of files take a while to be opened; the workers have nothing to read yet.
            if direct == Direct::IfGranted {
                self.tell_of_refusals(spans);
            }
        });
        let setup = match self.without_trace {
            true => Setup::new(knobs, plan.depth).dontcache(),
            false => Setup::new(knobs, plan.depth),
        };
        let queue = Queue::new(self.threads);
        let local = match resident {
            [] => None,
            _ => {
                let behind = self.sequence + blocks(spans, plan.block);
                Some(self.local_over(resident, Some(&queue), behind)?)
            }
        };
        let dispatcher =
            Dispatcher::new(self.input, spans, self.delivery, plan, slots, self.sequence);
        let (delivery, notice) = (self.delivery, &*self.config.notice);
        let ran = self.pool.in_place_scope(|scope| {
            if let Some(local) = &local {
                local.start(scope);
            }
            uring::run(&arena, &setup, async |ring| {
                let release = |ready: &mut _| hand_over(scope, &queue, delivery, ready);
                dispatcher.run(ring, &mut home, release, notice).await
            })
        });
        if let Some(local) = &local {
            self.count_local(local);
        }
        let (counters, facts) = match ran {
            // It was to be had a moment ago, and nothing was read yet.
            Err(error) if self.config.engine == Engine::Auto && knobs.of_the_ring().is_none() => {
                return self.without_ring(&error, "there is no io_uring", spans);
            }
            ran => ran?,
        };
        self.count(counters);
        let stats = &mut self.stats;
        stats.registered_buffers = facts.unregistered.is_none();
        stats.entries = facts.entries;
        stats.sqpoll = facts.sqpoll;
        stats.async_reads = knobs.punt.is_some();
        stats.async_workers_allowed = facts.workers_allowed;
        stats.async_workers = stats.async_workers.max(facts.workers);
        stats.task_run = knobs.task_run.map(|mode| mode.to_string());
        self.count_huge(&arena);
        Ok(())
    }

    /// Rings on the raw interface, each over its share of the spans.
    fn uring_raw(&mut self, spans: &[Span], direct: Direct) -> Result<()> {
        // What forbids io_uring altogether is told before what forbids a knob.
        uring::probe(&Setup::plain())?;
        let rings = match self.delivery.window() {
            // Order across rings would need a window across them.
            Some(_) => 1,
            None => self.config.knobs.rings.unwrap_or(1),
        };
        let (plan, _) = self.plan(spans, MAX_DEPTH, direct, rings);
        let mut shares = Vec::new();
        let mut sequence = self.sequence;
        // Within a file the ring behind a cut would wait until the one before it had read all.
        let cut = match self.delivery.framing.is_stateful() {
            true => u64::MAX,
            false => plan.block,
        };
        for spans in rings::shares(spans, cut, rings) {
            let (plan, layout) = self.plan(&spans, MAX_DEPTH, direct, rings);
            let first = sequence;
            sequence += blocks(&spans, plan.block);
            shares.push(rings::Share {
                spans,
                plan,
                layout,
                sequence: first,
            });
        }
        let common = rings::Common {
            input: self.input,
            config: self.config,
            delivery: self.delivery,
            pool: self.pool,
        };
        let (queue, delivery) = (Queue::new(self.threads), self.delivery);
        let ran = self.pool.in_place_scope(|scope| {
            rings::run(&common, &shares, &|ready| {
                hand_over(scope, &queue, delivery, ready);
            })
        })?;
        self.stats.rings = self.stats.rings.max(ran.len());
        self.stats.registered_buffers = ran.iter().all(|ran| ran.facts.registered);
        let knobs = &self.config.knobs;
        self.stats.task_run = knobs.task_run.map(|mode| mode.to_string());
        self.stats.async_reads = knobs.punt.is_some();
        self.stats.async_workers_allowed = knobs.punt.flatten();
        for ran in ran {
            self.count(ran.counters);
            self.count_huge(&ran.arena);
            self.stats.buffers += ran.buffers;
            self.stats.buffer_bytes += ran.arena.bytes() as u64;
            self.stats.entries = ran.facts.entries;
            self.stats.enters += ran.facts.enters;
            self.stats.ring_flags = ran.facts.flags;
        }
        if shares.len() > 1 {
            // Numbers of one ring are counted; those of several only keep their blocks apart.
            self.sequence = sequence;
        }
        Ok(())
    }

    /// A ring that needs no runtime of its own.
    fn dispatch(&mut self, spans: &[Span], mut ring: impl Ring, direct: Direct) -> Result<()> {
        let (plan, layout) = self.plan(spans, ring.max_depth(), direct, 1);
        let (arena, slots, mut home) = self.arena(layout)?;
        let queue = Queue::new(self.threads);
        let dispatcher =
            Dispatcher::new(self.input, spans, self.delivery, plan, slots, self.sequence);
        let (delivery, notice) = (self.delivery, &*self.config.notice);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| {
                Error::new(Kind::Engine, "can't start a runtime").with_errno(&error)
            })?;
        let counters = self.pool.in_place_scope(|scope| {
            let release = |ready: &mut _| hand_over(scope, &queue, delivery, ready);
            runtime.block_on(dispatcher.run(&mut ring, &mut home, release, notice))
        });
        self.count(counters);
        self.count_huge(&arena);
        Ok(())
    }

    /// Workers fetch all of the spans themselves.
    fn local(&mut self, spans: &[Span]) -> Result<()> {
        let local = self.local_over(spans, None, self.sequence)?;
        self.pool.in_place_scope(|scope| local.start(scope));
        self.count_local(&local);
        Ok(())
    }

    fn local_over<'x>(
        &mut self,
        spans: &'x [Span],
        queue: Option<&'x Queue>,
        sequence: u64,
    ) -> Result<Local<'x>>
    where
        'a: 'x,
    {
        let config = self.config;
        let (maps, reads) = match config.engine {
            Engine::Mmap => (true, false),
            Engine::Pread => (false, true),
            // A mapping brings pages in to stay.
            _ => (!config.direct && !config.knobs.dontcache, true),
        };
        let total = residency::bytes(spans);
        let most = spans
            .iter()
            .map(|span| span.to - span.from)
            .max()
            .unwrap_or(0);
        let (read_block, map_block) = self.room.local_blocks(self.threads);
        let block = config.block_size.unwrap_or(match reads {
            true => read_block,
            false => map_block,
        }) as u64;
        // A claim to map is larger than a block to read, but small enough that all are done at about
        // the same time.
        let share = (total / (16 * self.threads as u64))
            .next_multiple_of(block)
            .max(block);
        let stateful = self.delivery.framing.is_stateful();
        let ordered = self.delivery.window().is_some();
        let claim = match config.block_size {
            // Results wait for their turn, so a window of them takes little memory only if each is small.
            None if ordered => block.min(ORDERED_BLOCK),
            // Others wait for a block's state, which isn't known before all of it was fetched.
            None if maps && !(reads && stateful) => share.min(map_block as u64).max(block),
            _ => block,
        };
        let claims = blocks(spans, claim);
        let threads = self
            .threads
            .min(usize::try_from(claims).unwrap_or(usize::MAX))
            .max(1);
        let (mut arena, mut slots) = (None, Vec::new());
        if reads {
            let room = (most.min(block) as usize + ROOM).next_multiple_of(4096);
            let made = self.arena(Layout {
                block: room,
                slots: threads,
            })?;
            (arena, slots) = (Some(made.0), made.1);
        }
        let mapping_named = config.knobs.of_mappings();
        let mut hands = Vec::new();
        for _ in 0..threads {
            let slot = slots.pop();
            let mapping = match maps {
                // Without addresses for it, auto reads instead.
                true => match Mapping::new(
                    most.min(claim) as usize + ROOM,
                    &config.knobs,
                    self.calm.is_some(),
                ) {
                    Err(_) if slot.is_some() && !mapping_named => None,
                    made => Some(made?),
                },
                false => None,
            };
            hands.push(Hand {
                slot,
                mapping,
                place: self.delivery.watch.place(),
                direct: config.direct,
                ways: FetchChoice::new(),
            });
        }
        if self.stats.block_size == 0 {
            self.stats.block_size = claim as usize;
        }
        Ok(Local {
            input: self.input,
            claims: Claims::new(self.input, spans, claim, sequence),
            delivery: self.delivery,
            queue,
            threads,
            block,
            dontcache: config.knobs.dontcache,
            ahead: self.ahead(),
            mapping_named,
            arena,
            hands: Mutex::new(hands),
            read_bytes: AtomicU64::new(0),
            mapped_bytes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        })
    }

    fn count(&mut self, counters: Counters) {
        self.sequence += counters.pieces;
        self.stats.reads += counters.reads;
        self.stats.dispatched_bytes += counters.read_bytes;
        self.stats.short_reads += counters.short_reads;
        self.stats.retries += counters.retries;
        self.stats.max_in_flight = self.stats.max_in_flight.max(counters.max_in_flight);
        self.stats.starved_s += counters.starved.as_secs_f64();
    }

    fn count_local(&mut self, local: &Local<'_>) {
        self.sequence = self.sequence.max(local.claims.sequence());
        self.stats.reads += local.reads.load(Relaxed);
        self.stats.copied_bytes += local.read_bytes.load(Relaxed);
        self.stats.mapped_bytes += local.mapped_bytes.load(Relaxed);
        self.count_ahead(local.ahead.as_ref());
        if let Some(arena) = &local.arena {
            self.count_huge(arena);
        }
        if self.stats.mapped_bytes > 0 {
            self.stats.map_advice = self.config.knobs.map_advice.map(|word| word.to_string());
        }
    }
}

/// Puts released buffers where the workers find them.
fn hand_over<'s>(
    scope: &rayon::Scope<'s>,
    queue: &'s Queue,
    delivery: &'s Delivery<'s>,
    ready: &mut Vec<Ready>,
) {
    for _ in 0..queue.push(ready) {
        scope.spawn(move |_| queue.work(delivery));
    }
    if let Some(states) = &delivery.states {
        // Workers that wait for a state have time for them.
        states.wake();
    }
}

/// All of them, in the order of the input.
fn in_order(some: &[Span], others: &[Span]) -> Vec<Span> {
    let mut all = [some, others].concat();
    all.sort_by_key(|span| (span.source, span.from));
    all
}

/// At most so many blocks of `block` bytes are read for these spans, one past each end included.
fn blocks(spans: &[Span], block: u64) -> u64 {
    spans.iter().fold(0u64, |sum, span| {
        let len = span.to.saturating_sub(span.from);
        sum.saturating_add(len.div_ceil(block).saturating_add(2))
    })
}

/// What became of each source since it was opened.
fn changes(input: &Input) -> Vec<Option<Change>> {
    let sources = input.sources().par_iter();
    sources.map(|source| source.change()).collect()
}

/// A file that has become shorter than what was wanted of it: reads that meet the cut may bring zeros
/// where bytes are missing, and nobody can tell.
fn cut_off(input: &Input, changes: &[Option<Change>]) -> Option<Error> {
    input.spans().iter().find_map(|span| {
        let source = input.source(span);
        let len = source.len()?;
        let now = match changes[span.source as usize] {
            Some(Change::Cut(now)) if now < span.to.min(len) => now,
            _ => return None,
        };
        let lost = now.max(span.from)..span.to.min(len);
        Some(source.ended(now).at_bytes(lost))
    })
}

/// Tells of files that have grown, for what was added isn't in the answer, and of those that were
/// written to, for what was rewritten may be.
fn tell_of_changes(input: &Input, changes: &[Option<Change>], config: &Config) {
    for (source, change) in input.sources().iter().zip(changes) {
        let file = Arc::clone(source.name());
        match change {
            Some(Change::Grown(now)) => (config.notice)(&Notice::Grown {
                file,
                from: source.len().unwrap_or(0),
                to: *now,
            }),
            // What was cut off isn't wanted.
            Some(Change::Written | Change::Cut(_)) => (config.notice)(&Notice::Written { file }),
            None => {}
        }
    }
}

/// Refuses spans that begin within a file at a place before which not all bytes are read: where records end there isn't
/// known with a stateful framing.
fn check_cuts(input: &Input) -> Result<()> {
    let mut before = (0, 0);
    for span in input.spans() {
        let known = span.from == 0 || (span.source, span.from) == before;
        if !known {
            let source = input.source(span);
            let cause = "where records end at a span's start is only known when all bytes before it are read";
            let error = Error::new(Kind::Usage, cause);
            return Err(error
                .in_file(source.index(), source.name())
                .at_bytes(span.from..span.to));
        }
        before = (span.source, span.to);
    }
    Ok(())
}

/// Adds the number of the line to a failure in the data. It is counted only now, because blocks come in any order.
fn with_line(
    input: &Input,
    config: &Config,
    pool: &Arc<rayon::ThreadPool>,
    framing: &dyn Framing,
    error: Error,
) -> Error {
    let (Kind::Data, Some(bytes), Some(line_end)) =
        (error.kind(), error.bytes(), framing.line_end())
    else {
        return error;
    };
    match lines_before(
        input,
        config,
        pool,
        error.file_index(),
        bytes.start,
        line_end,
    ) {
        Some(lines) => error.at_line(lines + 1),
        None => error,
    }
}

/// Counts the lines before a byte of a file by a run of its own, with the same engine and threads.
fn lines_before(
    input: &Input,
    config: &Config,
    pool: &Arc<rayon::ThreadPool>,
    source: u32,
    end: u64,
    line_end: u8,
) -> Option<u64> {
    input.sources().get(source as usize)?.len()?;
    let before = Span {
        source,
        from: 0,
        to: end,
    };
    let before = input.clone().with_spans(vec![before]).ok()?.without_holes();
    let holes = end - before.len()?;
    let config = Config {
        pool: Some(Arc::clone(pool)),
        progress: None,
        notice: Arc::new(|_| {}),
        ..config.clone()
    };
    let lines = LineEnds {
        byte: line_end,
        count: AtomicU64::new(if line_end == 0 { holes } else { 0 }),
    };
    run(&before, &config, &lines).ok()?;
    Some(lines.count.into_inner())
}

/// Counts the bytes that end lines.
struct LineEnds {
    byte: u8,
    count: AtomicU64,
}

impl Sink for LineEnds {
    fn framing(&self) -> &dyn Framing {
        &Delimited::EVERY_BYTE
    }

    fn block(&self, block: &Block<'_>) -> Result<(), BlockError> {
        let ends = bytecount::count(block.bytes(), self.byte);
        self.count.fetch_add(ends as u64, Relaxed);
        Ok(())
    }
}
