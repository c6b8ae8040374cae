//! Each engine with its buffers, threads, and dispatcher or claims; and its figures.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use tokio::runtime::{Builder, Runtime};

use crate::engine::arena::{self, Arena, Layout, ReturnedSlots, Slot};
use crate::engine::config::Engine;
use crate::engine::deliver::delivery::{Delivery, Ready};
use crate::engine::deliver::queue::Queue;
use crate::engine::knobs::HugePages;
use crate::engine::local::choice::FetchChoice;
use crate::engine::local::claims::Claims;
use crate::engine::local::mapping::Mapping;
use crate::engine::local::workers::{Fetcher, Local};
use crate::engine::plan::buffers::{CachingPlan, Fetch, LocalPlan, Plan, Request, blocks};
use crate::engine::plan::settings::MAX_DEPTH;
use crate::engine::ring::dispatcher::{Counters, Dispatcher};
use crate::engine::ring::observed::ObservedRing;
use crate::engine::ring::read::ReadRing;
use crate::engine::ring::rings::{self, runtime};
use crate::engine::ring::seam::Ring;
use crate::engine::ring::setup::{Facts, Setup};
use crate::engine::ring::uring;
use crate::engine::strategy::{Run, in_order};
use crate::error::Result;
use crate::input::caching::Caching;
use crate::input::descriptors;
use crate::input::spans::{Input, Span};
use crate::sync::lock;

impl<'a> Run<'a> {
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
        let (slots, returned) = arena.slots();
        self.stats.buffers += layout.slots;
        self.stats.buffer_bytes += arena.bytes() as u64;
        Ok((arena, slots, returned))
    }

    /// The ring over `spans`, and the workers over `resident` at the same time.
    pub(crate) fn uring(
        &mut self,
        spans: &[Span],
        caching: CachingPlan,
        resident: &[Span],
    ) -> Result<()> {
        let knobs = &self.config.knobs;
        let entries = knobs.entries.map_or(MAX_DEPTH, |entries| entries as usize);
        let (mut plan, layout) = self.plan(spans, entries.min(MAX_DEPTH), caching, 1);
        let (arena, mut slots, mut returned) = match self.arena(layout) {
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
            if let CachingPlan::DirectOr(otherwise) = &mut plan.caching {
                *otherwise = self.report_refusals(spans);
            }
        });
        let setup = Setup::new(knobs, plan.depth);
        let queue = Queue::new(self.stats.threads);
        let local = match resident {
            [] => None,
            _ => {
                let behind = self.sequence + blocks(spans, plan.block);
                Some(self.local_over(resident, Some(&queue), behind)?)
            }
        };
        let (delivery, notice) = (self.delivery, &*self.config.notice);
        let dispatcher = Dispatcher::new(spans, delivery, plan, slots, self.sequence);
        let observer = self.config.observer.as_ref();
        let ran = self.pool.in_place_scope(|scope| {
            if let Some(local) = &local {
                local.start(scope);
            }
            let _closing = queue.closing();
            uring::run(&arena, &setup, async |ring| {
                let release = |ready: &mut _| hand_over(scope, &queue, delivery, ready);
                let mut ring = ObservedRing::new(ring, observer);
                dispatcher
                    .run(&mut ring, &mut returned, release, notice)
                    .await
            })
        });
        if let Some(local) = &local {
            self.count_local(local);
        }
        let (counters, facts) = match ran {
            // The probe's ring was granted a moment ago, and nothing was read yet.
            Err(error) if self.config.engine == Engine::Auto && knobs.needing_ring().is_none() => {
                return self.without_ring(&error, "there is no io_uring", spans);
            }
            ran => ran?,
        };
        self.count(counters);
        self.stats.workers_waited_s += queue.waited().as_secs_f64();
        self.count_ring(facts);
        self.count_huge(&arena);
        Ok(())
    }

    /// What a ring was granted, and what it did.
    pub(crate) fn count_ring(&mut self, facts: Facts) {
        let (knobs, stats) = (&self.config.knobs, &mut self.stats);
        stats.registered_buffers = facts.registered;
        stats.entries = facts.entries;
        stats.sqpoll = facts.sqpoll;
        stats.ring_flags = facts.flags;
        stats.enters += facts.enters;
        stats.async_reads = knobs.punt.is_some();
        stats.async_workers_allowed = knobs.punt.flatten();
        stats.async_workers = stats.async_workers.max(facts.workers);
        stats.task_run = knobs.task_run.map(|mode| mode.to_string());
    }

    /// Rings on the raw interface, each over its share of the spans.
    pub(crate) fn uring_raw(&mut self, spans: &[Span], caching: CachingPlan) -> Result<()> {
        // What forbids io_uring altogether is reported before what forbids a knob.
        uring::probe(&Setup::plain())?;
        let rings = match self.delivery.window() {
            // Order across rings would need a window across them.
            Some(_) => 1,
            None => self.config.knobs.rings.unwrap_or(1),
        };
        self.longest_block = rings::longest_block(self.input, spans, self.config)?;
        let (plan, _) = self.plan(spans, MAX_DEPTH, caching, rings);
        let mut shares = Vec::new();
        let mut sequence = self.sequence;
        // Within a file the ring after a cut would wait until the one before it had read all.
        let cut = match self.delivery.framing.is_stateful() {
            true => u64::MAX,
            false => plan.block,
        };
        for spans in rings::shares(spans, cut, rings) {
            let (plan, layout) = self.plan(&spans, MAX_DEPTH, caching, rings);
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
            config: self.config,
            delivery: self.delivery,
            pool: self.pool,
        };
        let (queue, delivery) = (Queue::new(self.stats.threads), self.delivery);
        let ran = self.pool.in_place_scope(|scope| {
            let _closing = queue.closing();
            rings::run(&common, &shares, &|ready| {
                hand_over(scope, &queue, delivery, ready);
            })
        })?;
        self.stats.workers_waited_s += queue.waited().as_secs_f64();
        self.stats.rings = self.stats.rings.max(ran.len());
        let registered = ran.iter().all(|ran| ran.facts.registered);
        for ran in ran {
            self.count(ran.counters);
            self.count_huge(&ran.arena);
            self.stats.buffers += ran.buffers;
            self.stats.buffer_bytes += ran.arena.bytes() as u64;
            self.count_ring(ran.facts);
        }
        self.stats.registered_buffers = registered;
        if shares.len() > 1 {
            // Numbers of one ring are counted; those of several only keep their blocks apart.
            self.sequence = sequence;
        }
        Ok(())
    }

    /// Streams, by `read()`. The texts of compressed files are read side by side, unless order matters.
    pub(crate) fn streams(&mut self, spans: &[Span]) -> Result<()> {
        let is_text = |span: &Span| self.input.source(span).is_compressed();
        let readers = self.stats.threads.min(spans.len());
        if readers > 1 && self.delivery.window().is_none() && spans.iter().all(is_text) {
            return self.texts(spans, readers);
        }
        // Where the descriptors for it are missing, `read()` itself waits.
        let (runtime, watches) = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => (runtime, true),
            Err(_) => (runtime()?, false),
        };
        let ring = ReadRing::of_streams(watches);
        let ran = self.dispatch_in(&runtime, spans, ring, CachingPlan::All(Caching::Cached));
        spans.iter().for_each(|span| self.input.source(span).rest());
        ran
    }

    /// Texts of compressed files, each decoded by one of several threads.
    fn texts(&mut self, spans: &[Span], readers: usize) -> Result<()> {
        let caching = CachingPlan::All(Caching::Cached);
        let mut shares = Vec::new();
        for spans in text_shares(self.input, spans, readers) {
            let (plan, layout) = self.plan(&spans, 1, caching, readers);
            let (arena, slots, returned) = self.arena(layout)?;
            shares.push((spans, plan, arena, slots, returned));
        }
        let queue = Queue::new(self.stats.threads);
        let (input, delivery, sequence) = (self.input, self.delivery, self.sequence);
        let (notice, observer) = (&*self.config.notice, self.config.observer.as_ref());
        let arenas: Vec<_> = shares.iter().map(|share| Arc::clone(&share.2)).collect();
        let ran: Result<Vec<Counters>> = self.pool.in_place_scope(|scope| {
            let _closing = queue.closing();
            let release = |ready: &mut Vec<Ready>| hand_over(scope, &queue, delivery, ready);
            let read = |(spans, plan, _arena, slots, mut returned): TextShare| {
                let dispatcher = Dispatcher::new(&spans, delivery, plan, slots, sequence);
                let mut ring = ReadRing::of_streams(false);
                let mut ring = ObservedRing::new(&mut ring, observer);
                let reading = dispatcher.run(&mut ring, &mut returned, &release, notice);
                let ran = runtime().map(|runtime| runtime.block_on(reading));
                // Where the run has ended early, others wait for the memory all the same.
                spans.iter().for_each(|span| input.source(span).rest());
                ran
            };
            let shares = Mutex::new(shares.into_iter());
            let next = || lock(&shares).next();
            let work = || {
                std::iter::from_fn(next)
                    .map(read)
                    .collect::<Result<Vec<_>>>()
            };
            thread::scope(|threads| {
                // A thread that can't be started leaves its share to the others.
                let others: Vec<_> = (1..readers)
                    .map_while(|_| thread::Builder::new().spawn_scoped(threads, work).ok())
                    .collect();
                let mut ran = work()?;
                for thread in others {
                    let joined = thread.join();
                    ran.extend(joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
                }
                Ok(ran)
            })
        });
        for counters in ran? {
            self.count(counters);
        }
        self.stats.workers_waited_s += queue.waited().as_secs_f64();
        arenas.iter().for_each(|arena| self.count_huge(arena));
        Ok(())
    }

    /// A ring that needs no runtime of its own.
    pub(crate) fn dispatch(
        &mut self,
        spans: &[Span],
        ring: impl Ring,
        caching: CachingPlan,
    ) -> Result<()> {
        self.dispatch_in(&runtime()?, spans, ring, caching)
    }

    fn dispatch_in(
        &mut self,
        runtime: &Runtime,
        spans: &[Span],
        mut ring: impl Ring,
        caching: CachingPlan,
    ) -> Result<()> {
        let (plan, layout) = self.plan(spans, ring.max_depth(), caching, 1);
        let (arena, slots, mut returned) = self.arena(layout)?;
        let queue = Queue::new(self.stats.threads);
        let (delivery, notice) = (self.delivery, &*self.config.notice);
        let dispatcher = Dispatcher::new(spans, delivery, plan, slots, self.sequence);
        let mut ring = ObservedRing::new(&mut ring, self.config.observer.as_ref());
        let counters = self.pool.in_place_scope(|scope| {
            let _closing = queue.closing();
            let release = |ready: &mut _| hand_over(scope, &queue, delivery, ready);
            runtime.block_on(dispatcher.run(&mut ring, &mut returned, release, notice))
        });
        self.count(counters);
        self.stats.workers_waited_s += queue.waited().as_secs_f64();
        self.count_huge(&arena);
        Ok(())
    }

    /// Workers fetch all of the spans themselves.
    pub(crate) fn local(&mut self, spans: &[Span]) -> Result<()> {
        let local = self.local_over(spans, None, self.sequence)?;
        self.pool.in_place_scope(|scope| local.start(scope));
        self.count_local(&local);
        Ok(())
    }

    /// Workers over these spans; `queue` is that of a ring that runs at the same time.
    fn local_over<'x>(
        &mut self,
        spans: &'x [Span],
        queue: Option<&'x Queue>,
        sequence: u64,
    ) -> Result<Local<'x>>
    where
        'a: 'x,
    {
        let (config, delivery) = (self.config, self.delivery);
        let (stateful, ordered) = (delivery.framing.is_stateful(), delivery.window().is_some());
        let shared = delivery.shared_pages.is_some();
        let plan = self.request().local(spans, stateful, ordered, shared);
        let (arena, fetchers) = self.fetchers(&plan)?;
        if self.stats.block_size == 0 {
            self.stats.block_size = plan.claim as usize;
        }
        Ok(Local {
            claims: Claims::new(delivery, spans, plan.claim, sequence),
            delivery,
            queue,
            threads: plan.threads,
            fetch: plan.fetch,
            block: plan.block,
            caching: config.caching(),
            read_ahead: self.read_ahead(),
            arena,
            fetchers: Mutex::new(fetchers),
            read_bytes: AtomicU64::new(0),
            mapped_bytes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        })
    }

    /// What each worker fetches with, and the memory under their buffers.
    fn fetchers(&mut self, plan: &LocalPlan) -> Result<(Option<Arc<Arena>>, Vec<Fetcher>)> {
        let config = self.config;
        let (mut arena, mut slots) = (None, Vec::new());
        if let Some(block) = plan.buffer {
            let made = self.arena(Layout {
                block,
                slots: plan.threads,
            })?;
            (arena, slots) = (Some(made.0), made.1);
        }
        let mut fetchers = Vec::new();
        for _ in 0..plan.threads {
            let slot = slots.pop();
            let mapping = match plan.window {
                None => None,
                Some(window) => {
                    match Mapping::new(window, &config.knobs, self.read_ahead.is_some()) {
                        // Without addresses for it, auto reads instead.
                        Err(_) if plan.fetch == Fetch::MapOrRead => None,
                        made => Some(made?),
                    }
                }
            };
            fetchers.push(Fetcher {
                slot,
                mapping,
                place: self.delivery.watch.place(),
                choice: FetchChoice::new(),
            });
        }
        Ok((arena, fetchers))
    }

    fn request(&self) -> Request<'a> {
        Request {
            config: self.config,
            memory: self.memory,
            threads: self.stats.threads,
            keeps: self.keeps,
            longest_block: self.longest_block,
        }
    }

    /// How a ring reads, noted in the figures.
    fn plan(
        &mut self,
        spans: &[Span],
        max_depth: usize,
        caching: CachingPlan,
        rings: usize,
    ) -> (Plan, Layout) {
        let in_turn = |span: &Span| self.input.source(span).opens_in_turn();
        let max_depth = match spans.iter().any(in_turn) {
            true => max_depth.min((descriptors::in_turn_at_once() / rings).max(1)),
            false => max_depth,
        };
        let (plan, layout) = self.request().ring(spans, max_depth, caching, rings);
        self.stats.block_size = plan.block as usize;
        self.stats.queue_depth = self.stats.queue_depth.max(plan.depth);
        (plan, layout)
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
        self.count_read_ahead(local.read_ahead.as_ref());
        if let Some(arena) = &local.arena {
            self.count_huge(arena);
        }
        if self.stats.mapped_bytes > 0 {
            self.stats.map_advice = self.config.knobs.map_advice.map(|word| word.to_string());
        }
    }
}

/// What one of several threads reads, and how.
type TextShare = (Vec<Span>, Plan, Arc<Arena>, Vec<Slot>, ReturnedSlots);

/// Spans by the threads that read them: about as many compressed bytes each, the largest files first.
fn text_shares(input: &Input, spans: &[Span], count: usize) -> Vec<Vec<Span>> {
    let bytes = |span: &Span| {
        let origin = input.source(span).origin();
        origin.and_then(|origin| origin.len()).unwrap_or(0)
    };
    let mut largest: Vec<Span> = spans.to_vec();
    largest.sort_by_key(|span| Reverse(bytes(span)));
    let mut shares = vec![(0, Vec::new()); count];
    for span in largest {
        let least = shares.iter_mut().min_by_key(|(sum, _)| *sum);
        let (sum, share) = least.expect("there are threads");
        *sum += bytes(&span).max(1);
        share.push(span);
    }
    let in_order = |(_, mut share): (u64, Vec<Span>)| {
        share.sort_by_key(|span| span.source);
        share
    };
    shares.into_iter().map(in_order).collect()
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
        states.wakes.wake();
    }
}
