//! What an observer sees of a run's reads: their latency, how many were in flight over time, and the processor time of
//! the threads by kind.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use ringfold_read::{Observer, internals::lock};
use serde::{Deserialize, Serialize};

/// The figures of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ReadFigures {
    /// How long reads took, from submission to completion; `None` where no read went through a ring or `read()`.
    pub read_latency: Option<Latency>,
    /// How many were in flight.
    pub in_flight: Option<InFlight>,
    /// Processor time by kind of thread.
    #[serde(default)]
    pub cpu_by_thread: CpuByThread,
}

/// How long reads took, to three digits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Reads.
    pub reads: u64,
    /// The mean.
    pub mean_us: f64,
    /// Percentiles.
    pub p50_us: f64,
    /// See `p50_us`.
    pub p90_us: f64,
    /// See `p50_us`.
    pub p99_us: f64,
    /// See `p50_us`.
    pub p99_9_us: f64,
    /// The longest.
    pub max_us: f64,
}

/// How many reads were in flight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InFlight {
    /// The mean over time, from the first submission to the last completion.
    pub mean: f64,
    /// The length of a piece of that time.
    pub bin_s: f64,
    /// The mean in each piece.
    pub means: Vec<f64>,
}

/// Processor time by kind of thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuByThread {
    /// Threads that submit reads.
    pub ring_s: f64,
    /// Workers.
    pub workers_s: f64,
    /// The kernel's threads for the ring: workers of io_uring and pollers.
    pub io_workers_s: f64,
}

/// Watches reads, from all threads.
#[derive(Default)]
pub struct ReadWatch(Mutex<WatchState>);

/// Pieces of time, at most. When there are more, two become one.
const BINS: usize = 256;
/// The length of a piece in nanoseconds, at first.
const BIN: u64 = 500_000;
/// Latencies of more than an hour count as one.
const LONGEST_NS: u64 = 3_600_000_000_000;

#[derive(Default)]
struct WatchState {
    /// Made for the first read: it takes 270 KB.
    latency: Option<Histogram<u64>>,
    depth: Depth,
    cpu: CpuByThread,
}

impl ReadWatch {
    /// What was seen so far.
    pub fn figures(&self) -> ReadFigures {
        let seen = lock(&self.0);
        let latency = seen.latency.as_ref();
        let us = |ns: u64| ns as f64 / 1e3;
        ReadFigures {
            read_latency: latency.map(|latency| Latency {
                reads: latency.len(),
                mean_us: latency.mean() / 1e3,
                p50_us: us(latency.value_at_quantile(0.5)),
                p90_us: us(latency.value_at_quantile(0.9)),
                p99_us: us(latency.value_at_quantile(0.99)),
                p99_9_us: us(latency.value_at_quantile(0.999)),
                max_us: us(latency.max()),
            }),
            in_flight: seen.depth.figures(),
            cpu_by_thread: seen.cpu,
        }
    }

    fn with(&self, change: impl FnOnce(&mut WatchState)) {
        change(&mut lock(&self.0));
    }
}

impl Observer for ReadWatch {
    fn submitted(&self, at: Instant) {
        self.with(|seen| seen.depth.change(at, 1));
    }

    fn completed(&self, at: Instant, latency: Duration) {
        self.with(|seen| {
            seen.depth.change(at, -1);
            let histogram = || Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("its bounds");
            let histogram = seen.latency.get_or_insert_with(histogram);
            histogram.saturating_record(latency.as_nanos() as u64);
        });
    }

    fn ring_ended(&self, cpu: Duration) {
        self.with(|seen| seen.cpu.ring_s += cpu.as_secs_f64());
    }

    fn io_workers(&self, cpu: Duration) {
        // Each ring tells the same at its end.
        self.with(|seen| seen.cpu.io_workers_s = seen.cpu.io_workers_s.max(cpu.as_secs_f64()));
    }

    fn workers_ended(&self, cpu: Duration) {
        self.with(|seen| seen.cpu.workers_s += cpu.as_secs_f64());
    }
}

/// How many reads are in flight, summed over time.
struct Depth {
    begun: Option<Instant>,
    /// Up to where it is summed, and how many there have been since.
    until_ns: u64,
    now: u64,
    bin_ns: u64,
    /// Reads times nanoseconds.
    bins: Vec<u64>,
}

impl Default for Depth {
    fn default() -> Self {
        Depth {
            begun: None,
            until_ns: 0,
            now: 0,
            bin_ns: BIN,
            bins: Vec::with_capacity(BINS),
        }
    }
}

impl Depth {
    fn change(&mut self, at: Instant, by: i64) {
        let begun = *self.begun.get_or_insert(at);
        // Threads may come here in another order than they took the time.
        let at = at.saturating_duration_since(begun).as_nanos() as u64;
        self.sum_up_to(at.max(self.until_ns));
        self.now = self.now.saturating_add_signed(by);
    }

    fn sum_up_to(&mut self, at: u64) {
        while at / self.bin_ns >= BINS as u64 {
            let pairs = self.bins.chunks(2).map(|pair| pair.iter().sum());
            self.bins = pairs.collect();
            self.bin_ns *= 2;
        }
        while self.until_ns < at {
            let bin = (self.until_ns / self.bin_ns) as usize;
            let end = at.min((bin as u64 + 1) * self.bin_ns);
            if self.bins.len() <= bin {
                self.bins.resize(bin + 1, 0);
            }
            self.bins[bin] += self.now * (end - self.until_ns);
            self.until_ns = end;
        }
    }

    fn figures(&self) -> Option<InFlight> {
        let total: u64 = self.bins.iter().sum();
        let mean = |(bin, sum): (usize, &u64)| {
            // The last piece may have ended early.
            let from = bin as u64 * self.bin_ns;
            let len = self.until_ns.saturating_sub(from).clamp(1, self.bin_ns);
            *sum as f64 / len as f64
        };
        (self.until_ns > 0).then(|| InFlight {
            mean: total as f64 / self.until_ns as f64,
            bin_s: self.bin_ns as f64 / 1e9,
            means: self.bins.iter().enumerate().map(mean).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::reads::*;

    fn at(begun: Instant, ms: u64) -> Instant {
        begun + Duration::from_millis(ms)
    }

    #[test]
    fn reads_in_flight_are_summed_over_time() {
        let (watch, begun) = (ReadWatch::default(), Instant::now());
        watch.submitted(begun);
        watch.submitted(at(begun, 10));
        watch.completed(at(begun, 20), Duration::from_millis(20));
        watch.completed(at(begun, 40), Duration::from_millis(30));
        let figures = watch.figures();
        let depth = figures.in_flight.unwrap();
        // 1 for 10 ms, 2 for 10 ms, 1 for 20 ms.
        assert!((depth.mean - 1.25).abs() < 1e-9, "{depth:?}");
        assert_eq!(depth.bin_s, 0.0005);
        assert_eq!(depth.means.len(), 80);
        assert_eq!(
            (depth.means[0], depth.means[20], depth.means[79]),
            (1.0, 2.0, 1.0)
        );
        let latency = figures.read_latency.unwrap();
        assert_eq!(latency.reads, 2);
        assert!(
            (latency.p50_us / 20_000.0 - 1.0).abs() < 0.001,
            "{latency:?}"
        );
        assert!(
            (latency.max_us / 30_000.0 - 1.0).abs() < 0.001,
            "{latency:?}"
        );
    }

    /// However long it goes on, there are at most so many pieces, and the sum is the same.
    #[test]
    fn long_runs_have_longer_pieces() {
        let (watch, begun) = (ReadWatch::default(), Instant::now());
        for second in 0..1000 {
            watch.submitted(at(begun, second * 1000));
            watch.completed(at(begun, second * 1000 + 500), Duration::from_millis(500));
        }
        let depth = watch.figures().in_flight.unwrap();
        assert!(
            (100..=BINS).contains(&depth.means.len()),
            "{}",
            depth.means.len()
        );
        // The last piece has ended early.
        let whole = &depth.means[..depth.means.len() - 1];
        let mean = 500.0 / 999.5;
        assert!((depth.mean - mean).abs() < 1e-6, "{}", depth.mean);
        assert!(
            whole.iter().all(|mean| (0.3..=0.7).contains(mean)),
            "{depth:?}"
        );
    }

    #[test]
    fn nothing_was_read() {
        let figures = ReadWatch::default().figures();
        assert!(figures.read_latency.is_none() && figures.in_flight.is_none());
    }
}
