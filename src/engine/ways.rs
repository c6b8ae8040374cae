//! Two ways to the same bytes, and which one to take next: mapping a window of the page cache wins
//! where the cache holds large folios, copying wins where pages are small or a fault is dear, and by
//! how much hangs on the processor and the job. Only a try tells, so both are tried, the cheaper one
//! is kept to, and the other is tried again ever more rarely.

use std::time::Duration;

/// How a worker fetches a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Looks at it where it lies in the page cache.
    Map,
    /// Copies it into a buffer.
    Read,
}

/// Claims of a try. The first of them isn't counted: it warms up what later ones use.
const TRY: u32 = 3;
/// Claims that the cheaper way is kept to after the first tries: twice as many each time that it
/// wins again.
const STAY: u32 = 16;
const STAY_MAX: u32 = 512;

/// Chooses between the ways by what a byte cost on each.
#[derive(Debug)]
pub(crate) struct Ways {
    way: Way,
    /// Claims left before this way's cost is weighed against the other's.
    left: u32,
    /// Whether this is a try of the way that was dearer.
    trying: bool,
    stay: u32,
    /// Bytes fetched since the way was taken, and how long they took.
    bytes: u64,
    spent: Duration,
    /// What a byte cost on the other way when it was left, in nanoseconds.
    other: Option<f64>,
}

impl Ways {
    pub(crate) fn new() -> Ways {
        Ways {
            way: Way::Map,
            left: TRY,
            trying: true,
            stay: STAY,
            bytes: 0,
            spent: Duration::ZERO,
            other: None,
        }
    }

    /// The way to take.
    pub(crate) fn next(&self) -> Way {
        self.way
    }

    /// Learns what the last claim took, job included: bytes that a copy has left in the cache make
    /// the job cheaper. Waiting counts too, because workers that map wait for each other.
    pub(crate) fn learn(&mut self, bytes: u64, spent: Duration) {
        let first_of_try = self.trying && self.left == TRY;
        if !first_of_try {
            self.bytes += bytes;
            self.spent += spent;
        }
        self.left -= 1;
        if self.left == 0 {
            self.weigh();
        }
    }

    /// Decides what comes after a try or a stay.
    fn weigh(&mut self) {
        let cost = (self.bytes > 0).then(|| self.spent.as_nanos() as f64 / self.bytes as f64);
        let first = self.other.is_none();
        if self.trying && !first {
            let cheaper = cost.is_some() && cost <= self.other;
            if cheaper {
                self.stay = STAY;
            } else {
                self.switch(cost);
                self.stay = (self.stay * 2).min(STAY_MAX);
            }
            (self.trying, self.left) = (false, self.stay);
        } else {
            self.switch(cost);
            (self.trying, self.left) = (true, TRY);
        }
        (self.bytes, self.spent) = (0, Duration::ZERO);
    }

    fn switch(&mut self, cost: Option<f64>) {
        self.way = match self.way {
            Way::Map => Way::Read,
            Way::Read => Way::Map,
        };
        self.other = cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `claims` claims where a byte costs as `cost` says; returns the ways taken.
    fn taken(ways: &mut Ways, claims: usize, cost: impl Fn(Way) -> u64) -> [usize; 2] {
        let mut taken = [0; 2];
        for _ in 0..claims {
            let way = ways.next();
            taken[way as usize] += 1;
            ways.learn(1000, Duration::from_nanos(cost(way)));
        }
        taken
    }

    fn dear(dear: Way) -> impl Fn(Way) -> u64 {
        move |way| if way == dear { 500 } else { 400 }
    }

    #[test]
    fn keeps_to_the_cheaper_way() {
        for (dearer, of_it) in [(Way::Map, 0), (Way::Read, 1)] {
            let [map, read] = taken(&mut Ways::new(), 4000, dear(dearer));
            let rare = [map, read][of_it];
            assert!((1..100).contains(&rare), "{dearer:?}: {map} {read}");
        }
    }

    #[test]
    fn finds_out_when_the_other_becomes_cheaper() {
        let mut ways = Ways::new();
        taken(&mut ways, 4000, dear(Way::Map));
        let [map, read] = taken(&mut ways, 4000, dear(Way::Read));
        assert!(map > 6 * read, "{map} {read}");
    }

    /// The first claim of a try may cost much more: tables grow, pages come in.
    #[test]
    fn a_first_claim_does_not_count() {
        let mut ways = Ways::new();
        ways.learn(1000, Duration::from_secs(1));
        let [map, read] = taken(&mut ways, 4000, dear(Way::Read));
        assert!(map > 20 * read, "{map} {read}");
    }

    #[test]
    fn empty_claims_are_no_try() {
        let mut ways = Ways::new();
        for _ in 0..1000 {
            ways.learn(0, Duration::ZERO);
        }
        let [map, read] = taken(&mut ways, 4000, dear(Way::Read));
        assert!(map > 6 * read, "{map} {read}");
    }
}
