//! A run that a seed decides, for fuzzing: the dispatcher of every other run over a file in memory,
//! all in the calling thread.
//!
//! Reads complete in any order, some of them short, and any number of workers hold their blocks for
//! as long as the seed says. Whenever the dispatcher waits, the schedule lets either a read complete
//! or a worker finish; where neither is left to happen and it still waits, it would hang, and the
//! run panics. Threads add nothing that could be repeated; they are what the real runs are for.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Builder, Runtime};

use crate::engine::arena::{Arena, Layout};
use crate::engine::config::Config;
use crate::engine::deliver::delivery::{Delivery, Ready};
use crate::engine::deliver::watch::Watchdog;
use crate::engine::knobs::HugePages;
use crate::engine::plan::buffers::{CachingPlan, Plan};
use crate::engine::ring::dispatcher::Dispatcher;
use crate::engine::ring::memory::{MemoryRing, Order};
use crate::engine::ring::seam::{Completion, Ring, Submission};
use crate::engine::sink::{BlockError, Sink};
use crate::error::Result;
use crate::fold::Fold;
use crate::input::caching::Caching;
use crate::input::spans::Input;
use crate::record::block::Block;
use crate::record::framing::Framing;
use crate::sync::lock;

/// What decides a run.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// Bytes a read.
    pub block: usize,
    /// Reads in flight at most; at least 1.
    pub depth: usize,
    /// Buffers beside those in flight; at least 1.
    pub spare: usize,
    /// Partials that the blocks are shared out to; at least 1.
    pub workers: usize,
    /// What happens next, at every turn.
    pub seed: u64,
}

/// A generator whose high bits are good enough to choose by.
struct Choices(u64);

impl Choices {
    /// One of so many, `0` where there is nothing to choose.
    fn of(&mut self, many: usize) -> usize {
        let factor = 6_364_136_223_846_793_005;
        self.0 = self.0.wrapping_mul(factor).wrapping_add(1);
        (self.0 >> 33) as usize % many.max(1)
    }
}

/// A ring whose reads complete only as the schedule grants it.
struct Granting<'a> {
    ring: MemoryRing,
    submitted: &'a Cell<usize>,
    granted: &'a Cell<usize>,
    choices: Choices,
}

impl Ring for Granting<'_> {
    fn submit(&mut self, submission: Submission) {
        self.submitted.set(self.submitted.get() + 1);
        self.ring.submit(submission);
    }

    async fn completion(&mut self) -> Completion {
        std::future::poll_fn(|_| self.try_completion().map_or(Poll::Pending, Poll::Ready)).await
    }

    fn try_completion(&mut self) -> Option<Completion> {
        self.granted.set(self.granted.get().checked_sub(1)?);
        self.submitted.set(self.submitted.get() - 1);
        let mut completion = self.ring.try_completion()?;
        if let Ok(brought) = &mut completion.result
            && *brought > 1
            && self.choices.of(8) == 0
        {
            *brought -= self.choices.of(*brought);
        }
        Some(completion)
    }

    fn max_depth(&self) -> usize {
        usize::MAX
    }
}

/// The partials of a run; any of them may get the next block.
struct Workers<'a, F: Fold, P> {
    job: &'a F,
    partial: P,
    partials: Mutex<(Choices, Vec<Option<F::Partial>>)>,
}

impl<F: Fold, P: Fn() -> F::Partial + Sync> Sink for Workers<'_, F, P> {
    fn framing(&self) -> &dyn Framing {
        self.job.framing()
    }

    fn cut_reach(&self) -> Option<u64> {
        self.job.cut_reach()
    }

    fn block(&self, block: &Block<'_>) -> Result<(), BlockError> {
        let mut held = lock(&self.partials);
        let (choices, partials) = &mut *held;
        let worker = choices.of(partials.len());
        let partial = partials[worker].get_or_insert_with(&self.partial);
        self.job.block(partial, block)
    }
}

/// Folds an input in memory as the schedule has it.
///
/// # Errors
/// As [`fold`](crate::fold()), but without the number of a line.
///
/// # Panics
/// If the dispatcher hangs or a buffer doesn't come home.
pub fn fold<F: Fold>(
    input: &Input,
    config: &Config,
    schedule: &Schedule,
    job: &F,
) -> Result<F::Output> {
    let mut choices = Choices(schedule.seed);
    let workers = Workers {
        job,
        partial: job.partials(),
        partials: Mutex::new((
            Choices(schedule.seed.rotate_left(16)),
            (0..schedule.workers).map(|_| None).collect(),
        )),
    };
    dispatch(input, config, schedule, &workers, &mut choices)?;
    let partials = workers.partials.into_inner();
    let (_, partials) = partials.unwrap_or_else(|e| e.into_inner());
    let mut partials: Vec<_> = partials.into_iter().flatten().collect();
    while partials.len() > 1 {
        let from = partials.swap_remove(choices.of(partials.len()));
        let into = choices.of(partials.len());
        job.merge(&mut partials[into], from);
    }
    let total = partials.pop().unwrap_or_else(&workers.partial);
    Ok(job.finish(total))
}

fn dispatch(
    input: &Input,
    config: &Config,
    schedule: &Schedule,
    sink: &dyn Sink,
    choices: &mut Choices,
) -> Result<()> {
    thread_local! {
        // For the clock after the notice of a silent device; it never gets to tick.
        static RUNTIME: Runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    }
    // Nothing in memory is waited for: it starts no thread.
    let watch = Watchdog::new(input, config, &Arc::default())?;
    let delivery = Delivery::new(input, sink, config, &watch);
    let layout = Layout {
        // A span within a file is read from a byte before it.
        block: schedule.block + 1,
        slots: schedule.depth + schedule.spare,
    };
    let plan = Plan {
        block: schedule.block as u64,
        depth: schedule.depth,
        caching: CachingPlan::All(Caching::Cached),
    };
    let arena = Arena::new(layout, HugePages::Off)?;
    let (slots, mut home) = arena.slots();
    let dispatcher = Dispatcher::new(input.spans(), &delivery, plan, slots, 0);
    let (submitted, granted) = (Cell::new(0), Cell::new(0));
    let mut ring = Granting {
        ring: MemoryRing::new(Order::Shuffled(schedule.seed)),
        submitted: &submitted,
        granted: &granted,
        choices: Choices(schedule.seed.rotate_left(32)),
    };
    let held: RefCell<Vec<Ready>> = RefCell::default();
    RUNTIME.with(|runtime| {
        let _context = runtime.enter();
        let release = |ready: &mut Vec<Ready>| held.borrow_mut().append(ready);
        let mut run = pin!(dispatcher.run(&mut ring, &mut home, release, &|_| {}));
        let mut waker = Context::from_waker(Waker::noop());
        while run.as_mut().poll(&mut waker).is_pending() {
            let (reads, blocks) = (submitted.get(), held.borrow().len());
            assert!(reads + blocks > 0, "the dispatcher hangs");
            let next = choices.of(reads + blocks);
            if next < reads {
                granted.set(1 + choices.of(reads));
            } else {
                let ready = held.borrow_mut().swap_remove(next - reads);
                delivery.deliver_ready(ready);
            }
        }
    });
    let rest = held.into_inner();
    rest.into_iter()
        .for_each(|ready| delivery.deliver_ready(ready));
    drop((ring, home));
    let holders = std::sync::Arc::strong_count(&arena);
    assert_eq!(holders, 1, "a buffer didn't come home");
    delivery.outcome()
}
