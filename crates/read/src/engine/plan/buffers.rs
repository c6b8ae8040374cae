//! How large blocks and buffers are and how many there are, for a given input. Pure.

use crate::engine::arena::Layout;
use crate::engine::config::{Config, Engine};
use crate::engine::plan::settings::MAX_BLOCK;
use crate::engine::plan::sizing::{self, MemoryLimit};
use crate::input::caching::Caching;
use crate::input::source::Source;
use crate::input::spans::Span;

/// What a worker's buffer must hold beside its block: what lies before an aligned start, the bytes
/// read past the end, and what aligning that end adds.
const BESIDE: usize = 3 * 65536;
/// What a read may bring of the bytes before its block, to be aligned.
const BEFORE: usize = 65536;
/// Bytes of a block that a worker fetches for a sink that wants order. Results wait for their turn, so a window of them
/// takes little memory only if each is small.
const ORDERED_BLOCK: u64 = 1 << 20;

/// How the dispatcher reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// The grid on which a file is cut.
    pub block: u64,
    /// Reads in flight at most.
    pub depth: usize,
    /// How the reads use the page cache.
    pub caching: CachingPlan,
}

/// How the reads of a ring use the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CachingPlan {
    /// All of them in this way. Checked before the run: every source grants it.
    All(Caching),
    /// Past it where the file system grants O_DIRECT, and the other sources in this way.
    DirectOr(Caching),
}

impl Plan {
    /// How this source is read.
    pub(crate) fn caching_of(&self, source: &Source) -> Caching {
        match self.caching {
            CachingPlan::All(caching) => caching,
            CachingPlan::DirectOr(otherwise) => match source.takes_direct(self.block) {
                true => Caching::Direct,
                false => otherwise,
            },
        }
    }
}

/// What the plans of a run go by.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) config: &'a Config,
    pub(crate) memory: MemoryLimit,
    pub(crate) threads: usize,
    /// Whether workers read what isn't cached, to leave it in the page cache.
    pub(crate) keeps: bool,
    /// Bytes of a ring's read at most, unless the configuration names them.
    pub(crate) longest_block: usize,
}

impl Request<'_> {
    /// How each of some rings cuts these spans, and the buffers that it has; small inputs get few and small ones. The
    /// buffers for the workers are those of all rings together.
    pub(crate) fn ring(
        &self,
        spans: &[Span],
        max_depth: usize,
        caching: CachingPlan,
        rings: usize,
    ) -> (Plan, Layout) {
        let config = self.config;
        // No block is larger than the input, rounded so that any alignment divides it.
        let largest = longest(spans).min(MAX_BLOCK as u64 - 1) as usize;
        let all = (largest + 1).next_multiple_of(64 << 10);
        let defaults = config.ring_defaults;
        let depth = config.queue_depth.or(defaults.queue_depth);
        let named_depth = depth.is_some();
        let depth = depth.unwrap_or(sizing::DEPTH).clamp(1, max_depth);
        let of = |block| {
            let default = || sizing::buffers(block, depth, self.threads, rings);
            config.buffers.unwrap_or_else(default)
        };
        let block = config.block_size.unwrap_or_else(|| {
            let of_all = |block| of(block).saturating_mul(rings);
            let wanted = defaults.block_size.unwrap_or(sizing::RING_BLOCK);
            let block = self.memory.ring_block(wanted.clamp(1, MAX_BLOCK), of_all);
            block.min(self.longest_block)
        });
        let block = block.min(all);
        // A span that starts on the grid is read from a byte before it.
        let within = spans.iter().any(|span| span.from > 0);
        let bytes = if within { block + BEFORE } else { block };
        let reads = blocks(spans, block as u64);
        let buffers = match (config.buffers, named_depth) {
            (None, false) => of(block).min(sizing::buffers_at_most(reads)),
            _ => of(block),
        };
        let slots = buffers.min(reads.saturating_add(1).max(2) as usize).max(2);
        let plan = Plan {
            block: block as u64,
            depth: depth.min(slots - 1),
            caching,
        };
        let layout = Layout {
            block: bytes,
            slots,
        };
        (plan, layout)
    }

    /// How workers fetch these spans by themselves. `shared` says that blocks may lie in pages that other processes can
    /// write to.
    pub(crate) fn local(
        &self,
        spans: &[Span],
        stateful: bool,
        ordered: bool,
        shared: bool,
    ) -> LocalPlan {
        let config = self.config;
        // A mapping brings pages in to stay, but one by one.
        let stays = config.caching() == Caching::Cached;
        let maps_by_name = config.engine == Engine::Mmap || stays && config.knobs.of_mappings();
        let fetch = match (config.engine, shared) {
            (Engine::Pread, _) => Fetch::Read,
            (_, true) if maps_by_name => Fetch::Map,
            (_, false) if maps_by_name => Fetch::Copy,
            (_, true) if stays && !self.keeps => Fetch::MapOrRead,
            _ => Fetch::Read,
        };
        let (maps, reads) = (fetch != Fetch::Read, fetch != Fetch::Map);
        let (read_block, map_block) = self.memory.local_blocks(self.threads, stateful);
        let block = config.block_size.unwrap_or(match reads {
            true => read_block,
            false => map_block,
        }) as u64;
        // A claim to map is larger than a block to read, but small enough that all are done at about
        // the same time.
        let total: u64 = spans.iter().map(|span| span.to - span.from).sum();
        let share = (total / (16 * self.threads as u64))
            .next_multiple_of(block)
            .max(block);
        let claim = match config.block_size {
            None if ordered => block.min(ORDERED_BLOCK),
            // Others wait for a block's state, which isn't known before all of it was fetched.
            None if maps && !(reads && stateful) => share.min(map_block as u64).max(block),
            _ => block,
        };
        let claims = usize::try_from(blocks(spans, claim)).unwrap_or(usize::MAX);
        let longest = longest(spans);
        let buffer = |block: u64| longest.min(block) as usize + BESIDE;
        LocalPlan {
            fetch,
            block,
            claim,
            threads: self.threads.min(claims).max(1),
            buffer: reads.then(|| buffer(block).next_multiple_of(4096)),
            window: maps.then(|| buffer(claim)),
        }
    }
}

/// Where the bytes of workers' blocks lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// In a buffer, by a read.
    Read,
    /// In a buffer, copied from a mapping.
    Copy,
    /// In a mapping.
    Map,
    /// In a mapping or in a buffer, by a read: what is cheaper.
    MapOrRead,
}

/// How workers fetch blocks by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalPlan {
    pub(crate) fetch: Fetch,
    /// Bytes that one read brings.
    pub(crate) block: u64,
    /// Bytes that a worker takes at once: one block or several.
    pub(crate) claim: u64,
    /// How many workers find something to do.
    pub(crate) threads: usize,
    /// Bytes of a worker's buffer, if it may read.
    pub(crate) buffer: Option<usize>,
    /// Bytes of a worker's window, if it may map.
    pub(crate) window: Option<usize>,
}

/// The bytes of the longest of these spans.
fn longest(spans: &[Span]) -> u64 {
    let lengths = spans.iter().map(|span| span.to.saturating_sub(span.from));
    lengths.max().unwrap_or(0)
}

/// The most blocks of `block` bytes that are read for these spans, one past each end included.
pub(crate) fn blocks(spans: &[Span], block: u64) -> u64 {
    spans.iter().fold(0u64, |sum, span| {
        let len = span.to.saturating_sub(span.from);
        sum.saturating_add(len.div_ceil(block).saturating_add(2))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(len: u64) -> [Span; 1] {
        [Span {
            source: 0,
            from: 0,
            to: len,
        }]
    }

    /// Whatever is asked for, there is a buffer more than there are reads in flight.
    #[test]
    fn a_ring_has_a_buffer_to_spare() {
        for len in [0, 1, 100, 1 << 20, 1 << 40] {
            for (depth, buffers) in [
                (None, None),
                (Some(1), None),
                (Some(64), None),
                (Some(3), Some(4)),
            ] {
                for threads in [1, 64] {
                    let config = Config {
                        queue_depth: depth,
                        buffers,
                        ..Config::default()
                    };
                    let request = Request {
                        config: &config,
                        memory: MemoryLimit::UNLIMITED,
                        threads,
                        keeps: false,
                        longest_block: MAX_BLOCK,
                    };
                    let caching = CachingPlan::All(Caching::Cached);
                    let (plan, layout) = request.ring(&spans(len), 1000, caching, 1);
                    assert!(plan.depth >= 1 && layout.slots > plan.depth);
                    assert!(layout.block as u64 >= plan.block);
                }
            }
        }
    }

    #[test]
    fn a_window_of_ordered_results_is_small() {
        let config = Config::default();
        let request = Request {
            config: &config,
            memory: MemoryLimit::UNLIMITED,
            threads: 2,
            keeps: false,
            longest_block: MAX_BLOCK,
        };
        let free = request.local(&spans(1 << 40), false, false, true);
        let ordered = request.local(&spans(1 << 40), false, true, true);
        let stateful = request.local(&spans(1 << 40), true, false, true);
        let private = request.local(&spans(1 << 40), false, false, false);
        assert_eq!((private.fetch, private.window), (Fetch::Read, None));
        assert_eq!(ordered.claim, ORDERED_BLOCK);
        assert!(free.claim > free.block, "what is mapped at once");
        assert_eq!(
            stateful.claim, stateful.block,
            "nobody waits for a part of a claim"
        );
    }
}
