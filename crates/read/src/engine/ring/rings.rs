//! Several rings at once: each has a thread, an arena and a dispatcher for its share of the input, and all
//! feed one queue of workers.
//!
//! On a machine with several NUMA nodes the rings' threads are spread over them. With several rings, each
//! ring's thread touches its buffers first, so that they lie on its node. Any worker may take any buffer.

use std::sync::{Arc, mpsc};
use std::thread;

use tokio::runtime::{Builder, Runtime};

use crate::engine::arena::{self, Arena, Layout, ReturnedSlots, Slot};
use crate::engine::config::Config;
use crate::engine::deliver::delivery::{Delivery, Ready};
use crate::engine::plan::buffers::Plan;
use crate::engine::plan::settings::MAX_BLOCK;
use crate::engine::ring::dispatcher::{Counters, Dispatcher};
use crate::engine::ring::observed::ObservedRing;
use crate::engine::ring::raw::RawRing;
use crate::engine::ring::setup::Facts;
use crate::error::refusal::{Refusal, Refuser};
use crate::error::setting::Setting;
use crate::error::{Error, Kind, Result};
use crate::input::source::Source;
use crate::input::spans::{Input, Span};
use crate::linux::{affinity, block_device, numa};

/// A runtime that waits for no descriptors.
pub(crate) fn runtime() -> Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_time().build();
    runtime.map_err(|error| Error::new(Kind::Engine, "can't start a runtime").with_errno(&error))
}

/// What one ring reads, and how.
pub(crate) struct Share {
    pub spans: Vec<Span>,
    pub plan: Plan,
    pub layout: Layout,
    /// The number of its first block.
    pub sequence: u64,
}

/// The result of one ring.
pub(crate) struct Outcome {
    pub counters: Counters,
    pub facts: Facts,
    pub arena: Arc<Arena>,
    pub buffers: usize,
}

/// What all rings have in common.
pub(crate) struct Common<'a> {
    pub config: &'a Config,
    pub delivery: &'a Delivery<'a>,
    pub pool: &'a rayon::ThreadPool,
}

/// Cuts spans into at most `count` shares of about the same size, at multiples of `block`; none is cut within when
/// that is `u64::MAX`. Spans of no bytes are left out.
pub(crate) fn shares(spans: &[Span], block: u64, count: usize) -> Vec<Vec<Span>> {
    let total: u64 = spans.iter().map(|span| span.to - span.from).sum();
    let mut shares = vec![Vec::new(); count];
    let mut before = 0;
    for span in spans {
        let mut from = span.from;
        for (n, share) in (1..).zip(&mut shares) {
            // The end of the share, in bytes of the input.
            let end = (u128::from(total) * n).div_ceil(count as u128) as u64;
            let to = match end.checked_sub(before) {
                Some(end) => (span.from + end)
                    .checked_next_multiple_of(block)
                    .map_or(span.to, |to| to.min(span.to)),
                None => from,
            };
            if from < to {
                share.push(Span { from, to, ..*span });
                from = to;
            }
        }
        before += span.to - span.from;
    }
    shares.retain(|share| !share.is_empty());
    shares
}

/// Runs a ring for each share. Nothing is read before all rings are set up.
///
/// # Errors
/// Of the rings that can't be set up, the first in the order of the input.
pub(crate) fn run(
    common: &Common<'_>,
    shares: &[Share],
    release: &(dyn Fn(&mut Vec<Ready>) + Sync),
) -> Result<Vec<Outcome>> {
    let nodes = match shares {
        [_] => Vec::new(),
        _ => numa::nodes(),
    };
    thread::scope(|scope| {
        let (ready, made) = mpsc::channel();
        let (mut threads, mut starts) = (Vec::new(), Vec::new());
        let mut failed = None;
        for (n, share) in shares.iter().enumerate() {
            let (start, started) = mpsc::channel();
            let ready = ready.clone();
            let node = nodes.get(n % nodes.len().max(1));
            let ring = move || {
                if let Some(cpus) = node {
                    affinity::prefer(cpus);
                }
                run_share(common, share, shares.len() == 1, ready, started, release)
            };
            let named = thread::Builder::new().name(format!("ring-{n}"));
            match named.spawn_scoped(scope, ring) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    failed = Some(no_threads(shares.len(), &error));
                    break;
                }
            }
            starts.push(start);
        }
        drop(ready);
        let failed = failed.or_else(|| first_refusal(&made));
        for start in starts {
            // After a failure the senders are dropped unused, which ends the other threads.
            if failed.is_none() {
                let _ = start.send(());
            }
        }
        let joined = threads.into_iter().map(|thread| thread.join());
        let ran: Vec<Option<Outcome>> = joined
            .map(|ran| ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        match failed {
            Some(error) => Err(error),
            None => Ok(ran.into_iter().flatten().collect()),
        }
    })
}

/// The first in the order of the input of the rings that couldn't be set up, whichever thread was faster. It waits
/// for all of them.
fn first_refusal(made: &mpsc::Receiver<(u64, Result<()>)>) -> Option<Error> {
    let mut results: Vec<(u64, Result<()>)> = made.iter().collect();
    results.sort_by_key(|(sequence, _)| *sequence);
    results.into_iter().find_map(|(_, made)| made.err())
}

fn no_threads(rings: usize, error: &std::io::Error) -> Error {
    let (setting, threads) = (Setting::Rings, rings);
    Error::from(Refusal::NoThreads { setting, threads }).with_errno(error)
}

/// One ring on its thread: sets it up, reports the result, and reads its share once all rings are ready.
fn run_share(
    common: &Common<'_>,
    share: &Share,
    alone: bool,
    ready: mpsc::Sender<(u64, Result<()>)>,
    started: mpsc::Receiver<()>,
    release: &(dyn Fn(&mut Vec<Ready>) + Sync),
) -> Option<Outcome> {
    let made = Rig::new(common, share, alone);
    let (rig, result) = match made {
        Ok(rig) => (Some(rig), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let _ = ready.send((share.sequence, result));
    drop(ready);
    let rig = rig?;
    started.recv().ok()?;
    Some(rig.run(common, share, release))
}

/// What a ring's thread needs before it can begin.
struct Rig {
    ring: RawRing,
    arena: Arc<Arena>,
    slots: Vec<Slot>,
    returned: ReturnedSlots,
    runtime: Runtime,
}

impl Rig {
    fn new(common: &Common<'_>, share: &Share, alone: bool) -> Result<Rig> {
        let knobs = &common.config.knobs;
        let source = |span| Arc::clone(common.delivery.input.source(span));
        let mut sources: Vec<_> = share.spans.iter().map(source).collect();
        sources.dedup_by_key(|source| source.index());
        let arena = Arena::new(share.layout, knobs.huge_pages)?;
        let (mut slots, returned) = arena.slots();
        if alone {
            common
                .pool
                .install(|| arena::touch(&mut slots, knobs.huge_pages));
        }
        let mut ring = RawRing::new(knobs, &share.plan, &arena, share.layout.slots, &sources)?;
        if knobs.iopoll {
            for source in &sources {
                can_be_polled(source)?;
                let slot = slots.pop().expect("there are at least two");
                let place = common.delivery.watch.place();
                place.begin(source, 0..source.direct_align());
                slots.push(ring.try_polling(source, slot)?);
            }
        }
        let runtime = runtime()?;
        Ok(Rig {
            ring,
            arena,
            slots,
            returned,
            runtime,
        })
    }

    /// Reads the share.
    fn run(
        mut self,
        common: &Common<'_>,
        share: &Share,
        release: &(dyn Fn(&mut Vec<Ready>) + Sync),
    ) -> Outcome {
        let (config, plan, first) = (common.config, share.plan, share.sequence);
        let dispatcher = Dispatcher::new(&share.spans, common.delivery, plan, self.slots, first);
        let wakeup = self.ring.wakeup();
        let mut observed = ObservedRing::new(&mut self.ring, config.observer.as_ref());
        let reading = dispatcher.run(&mut observed, &mut self.returned, release, &*config.notice);
        let counters = self.runtime.block_on(wakeup.drive(reading));
        drop(observed);
        Outcome {
            counters,
            facts: self.ring.facts.clone(),
            arena: self.arena,
            buffers: share.layout.slots,
        }
    }
}

/// The largest block whose reads can be polled for. No kernel polls for a read that takes the device several
/// requests, and some submit it again and again for ever.
///
/// # Errors
/// The block size that was asked for is larger.
pub(crate) fn longest_block(input: &Input, spans: &[Span], config: &Config) -> Result<usize> {
    let mut longest = MAX_BLOCK;
    if !config.knobs.iopoll {
        return Ok(longest);
    }
    for source in spans.iter().map(|span| input.source(span)) {
        let Some(request) = source.device().and_then(block_device::largest_request) else {
            continue;
        };
        // A read may begin that much before its block.
        let fits = request.saturating_sub(source.direct_align());
        if let Some(block) = config.block_size.filter(|&block| block as u64 > fits) {
            let why = format!(
                "one request of the device reads {fits} bytes at most, and only such reads can be polled for"
            );
            let choice = Setting::BlockSize.of(block);
            return Err(source.error(Refusal::not_granted(choice, Refuser::Device, why)));
        }
        longest = longest.min(1 << fits.checked_ilog2().unwrap_or(0));
    }
    Ok(longest)
}

/// Whether the device under a file has poll queues. Without them a kernel may read all the same and not poll; where
/// the device isn't known, the kernel has the last word.
fn can_be_polled(source: &Source) -> Result<()> {
    let without = source.device().and_then(block_device::without_poll_queues);
    without.map_or(Ok(()), |path| {
        let why = format!("the device has no poll queues ({path} is 0)");
        Err(source.error(Refusal::not_granted(Setting::Iopoll, Refuser::Device, why)))
    })
}

#[cfg(test)]
mod tests {
    use crate::engine::ring::rings::*;

    #[test]
    fn shares_are_the_spans_cut_on_the_grid() {
        let span = |source, from, to| Span { source, from, to };
        let inputs = [
            vec![span(0, 0, 100)],
            vec![
                span(0, 0, 5),
                span(1, 0, 0),
                span(2, 0, 1000),
                span(3, 7, 64),
            ],
            vec![span(0, 3, 4)],
            vec![span(0, 0, 0)],
        ];
        for spans in inputs {
            let filled: Vec<Span> = spans.iter().copied().filter(|s| s.from < s.to).collect();
            for block in [1, 8, 64, 4096] {
                for count in 1..10 {
                    let shares = shares(&spans, block, count);
                    assert!(shares.len() <= count, "{spans:?} {block} {count}");
                    let mut joined: Vec<Span> = Vec::new();
                    for cut in shares.into_iter().flatten() {
                        match joined.last_mut() {
                            Some(last) if last.source == cut.source => {
                                assert_eq!(last.to, cut.from);
                                assert_eq!(cut.from % block, 0, "{spans:?} {block} {count}");
                                last.to = cut.to;
                            }
                            _ => joined.push(cut),
                        }
                    }
                    assert_eq!(joined, filled, "{block} {count}");
                }
            }
        }
    }

    #[test]
    fn shares_are_even() {
        let span = |source, to| Span {
            source,
            from: 0,
            to,
        };
        for spans in [
            vec![span(0, 1 << 20)],
            vec![span(0, 1 << 19), span(1, 1 << 19)],
        ] {
            let shares = shares(&spans, 4096, 3);
            let bytes = |share: &Vec<Span>| share.iter().map(|s| s.to - s.from).sum::<u64>();
            let bytes: Vec<u64> = shares.iter().map(bytes).collect();
            let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
            assert!(bytes.len() == 3 && most - least <= 3 * 4096, "{bytes:?}");
        }
    }
}
