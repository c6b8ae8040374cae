//! Two ways to the same bytes, and which one to take next: mapping a window of the page cache wins
//! where the cache holds large folios, copying wins where pages are small or a fault is dear, and by
//! how much hangs on the processor and the job. Only a try tells, so both are tried, the cheaper one
//! is kept to, and the other is tried again ever more rarely.

use std::time::Duration;

/// How a worker fetches a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// Looks at it where it lies in the page cache.
    Map,
    /// Copies it into a buffer.
    Read,
}

/// Bytes of a try. What is fetched first isn't counted: it warms up what comes later uses.
const TRY: u64 = 8 << 20;
/// Bytes that aren't counted at the beginning: the job's tables grow, and caches fill.
const WARM_UP: u64 = 16 << 20;
/// What the other way must cost less to be taken: tries are short, and a machine has other things to do.
const MARGIN: f64 = 0.95;
/// Bytes that the cheaper way is kept to after the first tries: twice as many each time that it wins
/// again.
const STAY: u64 = 64 << 20;
const STAY_MAX: u64 = 8 << 30;

/// Chooses between the ways by what a byte cost on each.
#[derive(Debug)]
pub(crate) struct FetchChoice {
    way: Fetch,
    /// Whether this is a try of the way that was dearer.
    trying: bool,
    /// Bytes that what is fetched next must have come to before anything counts.
    uncounted: u64,
    stay: u64,
    /// Bytes fetched since the way was taken, and how long they took.
    bytes: u64,
    spent: Duration,
    /// What a byte cost on the other way when it was left, in nanoseconds.
    other: Option<f64>,
}

impl FetchChoice {
    pub(crate) fn new() -> FetchChoice {
        FetchChoice {
            way: Fetch::Map,
            trying: true,
            uncounted: WARM_UP,
            stay: STAY,
            bytes: 0,
            spent: Duration::ZERO,
            other: None,
        }
    }

    /// The way to take.
    pub(crate) fn next(&self) -> Fetch {
        self.way
    }

    /// Learns what was fetched and how long it took, job included: bytes that a copy has left in the
    /// cache make the job cheaper. Waiting counts too, because workers that map wait for each other.
    pub(crate) fn learn(&mut self, bytes: u64, spent: Duration) {
        if self.uncounted > 0 {
            self.uncounted = self.uncounted.saturating_sub(bytes);
            return;
        }
        self.bytes += bytes;
        self.spent += spent;
        let enough = if self.trying { TRY } else { self.stay };
        if self.bytes >= enough {
            let cost = self.spent.as_nanos() as f64 / self.bytes as f64;
            self.weigh(cost);
            (self.bytes, self.spent) = (0, Duration::ZERO);
        }
    }

    /// Decides what comes after a try or a stay, in which a byte cost so much.
    fn weigh(&mut self, cost: f64) {
        match self.other {
            Some(other) if self.trying => {
                if cost < MARGIN * other {
                    self.stay = STAY;
                } else {
                    self.switch(cost);
                    self.stay = (self.stay * 2).min(STAY_MAX);
                }
                self.trying = false;
            }
            _ => {
                self.switch(cost);
                (self.trying, self.uncounted) = (true, 1);
            }
        }
    }

    fn switch(&mut self, cost: f64) {
        self.way = match self.way {
            Fetch::Map => Fetch::Read,
            Fetch::Read => Fetch::Map,
        };
        self.other = Some(cost);
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::local::choice::*;

    /// Fetches `mebibytes` of which a byte costs as `cost` says, as a worker does: sixteen mapped at
    /// once, two read. Returns how many went each way.
    fn taken(ways: &mut FetchChoice, mebibytes: u64, cost: impl Fn(Fetch) -> u64) -> [u64; 2] {
        let mut taken = [0; 2];
        while taken[0] + taken[1] < mebibytes {
            let way = ways.next();
            let some = match way {
                Fetch::Map => 16,
                Fetch::Read => 2,
            };
            taken[way as usize] += some;
            ways.learn(some << 20, Duration::from_micros(some * cost(way)));
        }
        taken
    }

    fn dear(dear: Fetch) -> impl Fn(Fetch) -> u64 {
        move |way| if way == dear { 500 } else { 400 }
    }

    #[test]
    fn keeps_to_the_cheaper_way() {
        for (dearer, of_it) in [(Fetch::Map, 0), (Fetch::Read, 1)] {
            let taken = taken(&mut FetchChoice::new(), 16 << 10, dear(dearer));
            // One in fifty of 16 GiB.
            let rare = taken[of_it];
            assert!((1..330).contains(&rare), "{dearer:?}: {taken:?}");
        }
    }

    #[test]
    fn finds_out_when_the_other_becomes_cheaper() {
        let mut ways = FetchChoice::new();
        taken(&mut ways, 16 << 10, dear(Fetch::Map));
        let [map, read] = taken(&mut ways, 64 << 10, dear(Fetch::Read));
        assert!(map > 6 * read, "{map} {read}");
    }

    /// What is fetched first may cost much more: tables grow, pages come in.
    #[test]
    fn the_first_of_a_try_does_not_count() {
        let mut ways = FetchChoice::new();
        for _ in 0..8 {
            ways.learn(2 << 20, Duration::from_secs(1));
        }
        let [map, read] = taken(&mut ways, 4 << 10, dear(Fetch::Read));
        assert!(map > 20 * read, "{map} {read}");
    }

    /// As tries of equal ways differ by chance.
    #[test]
    fn little_is_no_reason_to_change() {
        let little_less = |way| if way == Fetch::Map { 400 } else { 390 };
        let [map, read] = taken(&mut FetchChoice::new(), 4 << 10, little_less);
        assert!(map > 20 * read, "{map} {read}");
    }

    #[test]
    fn nothing_fetched_is_no_try() {
        let mut ways = FetchChoice::new();
        for _ in 0..1000 {
            ways.learn(0, Duration::ZERO);
        }
        let [map, read] = taken(&mut ways, 4 << 10, dear(Fetch::Read));
        assert!(map > 20 * read, "{map} {read}");
    }
}
