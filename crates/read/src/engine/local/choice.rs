//! Whether a worker maps cached bytes or copies them. Mapping wins where the page cache holds large folios,
//! copying where pages are small or page faults are slow. That depends on the processor and the job too, so
//! each worker measures both, uses the faster one, and tries the other again ever more rarely.

use std::time::Duration;

use crate::engine::plan::buffers::Fetch;

/// Bytes of a probe. What is fetched before is warm-up and isn't measured.
const PROBE: u64 = 8 << 20;
/// Bytes that aren't measured at the start, while the job's tables grow and caches fill.
const WARM_UP: u64 = 16 << 20;
/// A probe must cost less than this part of the other's cost to replace it, because probes are short and noisy.
const MARGIN: f64 = 0.95;
/// Bytes that the faster one is used for after the first probes: twice as many each time it wins again.
const PHASE: u64 = 64 << 20;
const PHASE_MAX: u64 = 8 << 30;

/// Chooses by what a byte cost each way.
#[derive(Debug)]
pub(crate) struct FetchChoice {
    fetch: Fetch,
    /// Whether the one that was slower is probed.
    probing: bool,
    /// Bytes of warm-up that are left.
    uncounted: u64,
    /// Bytes that the faster one is used for before the next probe.
    phase: u64,
    /// Bytes fetched since the last switch, and how long they took.
    bytes: u64,
    spent: Duration,
    /// What a byte cost by the other one when it was last measured, in nanoseconds.
    other: Option<f64>,
}

impl FetchChoice {
    pub(crate) fn new() -> FetchChoice {
        FetchChoice {
            fetch: Fetch::Map,
            probing: true,
            uncounted: WARM_UP,
            phase: PHASE,
            bytes: 0,
            spent: Duration::ZERO,
            other: None,
        }
    }

    /// How to fetch the next claim.
    pub(crate) fn next(&self) -> Fetch {
        self.fetch
    }

    /// Records what was fetched and how long it took. The time includes the job, because a copy leaves bytes in
    /// the cache, and waiting, because workers that map wait for each other.
    pub(crate) fn learn(&mut self, bytes: u64, spent: Duration) {
        if self.uncounted > 0 {
            self.uncounted = self.uncounted.saturating_sub(bytes);
            return;
        }
        self.bytes += bytes;
        self.spent += spent;
        let enough = if self.probing { PROBE } else { self.phase };
        if self.bytes >= enough {
            let cost = self.spent.as_nanos() as f64 / self.bytes as f64;
            self.weigh(cost);
            (self.bytes, self.spent) = (0, Duration::ZERO);
        }
    }

    /// Decides what comes after a probe or a phase, in which a byte cost so much.
    fn weigh(&mut self, cost: f64) {
        match self.other {
            Some(other) if self.probing => {
                if cost < MARGIN * other {
                    self.phase = PHASE;
                } else {
                    self.switch(cost);
                    self.phase = (self.phase * 2).min(PHASE_MAX);
                }
                self.probing = false;
            }
            _ => {
                self.switch(cost);
                (self.probing, self.uncounted) = (true, 1);
            }
        }
    }

    fn switch(&mut self, cost: f64) {
        self.fetch = match self.fetch {
            Fetch::Map => Fetch::Read,
            _ => Fetch::Map,
        };
        self.other = Some(cost);
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::local::choice::*;

    /// Fetches `mebibytes` as a worker does, sixteen mapped or two read at once, at the given costs. Returns how
    /// many were mapped and how many read.
    fn taken(choice: &mut FetchChoice, mebibytes: u64, cost: impl Fn(Fetch) -> u64) -> [u64; 2] {
        let mut taken = [0; 2];
        while taken[0] + taken[1] < mebibytes {
            let fetch = choice.next();
            let some = match fetch {
                Fetch::Map => 16,
                _ => 2,
            };
            taken[usize::from(fetch == Fetch::Read)] += some;
            choice.learn(some << 20, Duration::from_micros(some * cost(fetch)));
        }
        taken
    }

    fn costs(slower: Fetch) -> impl Fn(Fetch) -> u64 {
        move |fetch| if fetch == slower { 500 } else { 400 }
    }

    #[test]
    fn keeps_to_the_cheaper_way() {
        for (slower, of_it) in [(Fetch::Map, 0), (Fetch::Read, 1)] {
            let taken = taken(&mut FetchChoice::new(), 16 << 10, costs(slower));
            // One in fifty of 16 GiB.
            let rare = taken[of_it];
            assert!((1..330).contains(&rare), "{slower:?}: {taken:?}");
        }
    }

    #[test]
    fn finds_out_when_the_other_becomes_cheaper() {
        let mut choice = FetchChoice::new();
        taken(&mut choice, 16 << 10, costs(Fetch::Map));
        let [map, read] = taken(&mut choice, 64 << 10, costs(Fetch::Read));
        assert!(map > 6 * read, "{map} {read}");
    }

    /// The first fetches may cost much more, because tables grow and pages come in.
    #[test]
    fn the_first_of_a_try_does_not_count() {
        let mut choice = FetchChoice::new();
        for _ in 0..8 {
            choice.learn(2 << 20, Duration::from_secs(1));
        }
        let [map, read] = taken(&mut choice, 4 << 10, costs(Fetch::Read));
        assert!(map > 20 * read, "{map} {read}");
    }

    /// Probes of equal cost differ by chance.
    #[test]
    fn little_is_no_reason_to_change() {
        let little_less = |fetch| if fetch == Fetch::Map { 400 } else { 390 };
        let [map, read] = taken(&mut FetchChoice::new(), 4 << 10, little_less);
        assert!(map > 20 * read, "{map} {read}");
    }

    #[test]
    fn nothing_fetched_is_no_try() {
        let mut choice = FetchChoice::new();
        for _ in 0..1000 {
            choice.learn(0, Duration::ZERO);
        }
        let [map, read] = taken(&mut choice, 4 << 10, costs(Fetch::Read));
        assert!(map > 20 * read, "{map} {read}");
    }
}
