//! How fast memory is read, by one thread and by more: a ceiling for everything that looks at all bytes.
//!
//! Each thread sums the words of a buffer of its own in huge pages, which is larger than its share of the caches.
//! That is the read part of STREAM.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use ringfold_read::internals::{Arena, Layout, Slot, sizing::MemoryLimit, units::GIB};
use ringfold_read::{HugePages, Result};

use crate::measure::limits::MemoryRate;

/// Bytes of a thread's buffer, and the fewest that say anything.
const BUFFER: u64 = 128 << 20;
const BUFFER_MIN: u64 = 4 << 20;
/// How much of the free memory all buffers may take.
const PART: u64 = 8;
/// How often it is read; the best pass counts.
const PASSES: usize = 5;

/// Measures with 1, 2, 4 and so on up to `threads` threads.
///
/// # Errors
/// There is no memory for the buffers.
pub fn memory(threads: usize) -> Result<Vec<MemoryRate>> {
    let meminfo = ringfold_read::internals::proc::text("/proc/meminfo").unwrap_or_default();
    let free =
        ringfold_read::internals::proc::kib_field(&meminfo, "MemAvailable").unwrap_or(1 << 30);
    let free = free.min(ringfold_read::internals::cgroups::memory_limit().unwrap_or(u64::MAX));
    let block = (free / PART / threads as u64).clamp(BUFFER_MIN, BUFFER) as usize;
    let layout = Layout {
        block: block / 4096 * 4096,
        slots: threads,
    };
    let arena = Arena::new(layout, HugePages::Auto)?;
    let (mut slots, _returned) = arena.slots();
    let counts = std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n < threads);
    let counts: Vec<usize> = counts.chain([threads]).collect();
    let rates = counts.into_iter().map(|threads| MemoryRate {
        threads,
        gib_per_s: rate(&mut slots[..threads]),
    });
    Ok(rates.collect())
}

/// The best rate at which a thread a slot reads all of them.
fn rate(slots: &mut [Slot]) -> f64 {
    let barrier = Barrier::new(slots.len());
    let lengths = slots.iter_mut().map(|slot| slot.target_bytes(0).len());
    let bytes: usize = lengths.sum();
    let passes: Vec<Vec<(Instant, Instant)>> = std::thread::scope(|scope| {
        let readers: Vec<_> = slots
            .iter_mut()
            .map(|slot| scope.spawn(|| read(slot.target_bytes(0), &barrier)))
            .collect();
        let joined = readers.into_iter().map(|reader| reader.join());
        joined.map(|passes| passes.unwrap_or_default()).collect()
    });
    let best = (0..PASSES).filter_map(|pass| {
        let times = || passes.iter().filter_map(|passes| passes.get(pass));
        let from = times().map(|(from, _)| *from).min()?;
        let to = times().map(|(_, to)| *to).max()?;
        Some(to - from)
    });
    let best = best.min().unwrap_or(Duration::MAX);
    bytes as f64 / best.as_secs_f64() / GIB
}

/// Reads a buffer in step with other threads, and tells from when to when each time.
fn read(bytes: &mut [u8], barrier: &Barrier) -> Vec<(Instant, Instant)> {
    // Written once, so that each page is memory of its own and not the kernel's page of zeros.
    bytes.fill(1);
    let passes = (0..PASSES).map(|_| {
        barrier.wait();
        let from = Instant::now();
        black_box(sum(black_box(bytes)));
        (from, Instant::now())
    });
    passes.collect()
}

/// The sum of all words, in as many chains as keep a processor's loads going.
fn sum(bytes: &[u8]) -> u64 {
    const CHAINS: usize = 32;
    let mut sums = [0_u64; CHAINS];
    let (rows, _) = bytes.as_chunks::<{ 8 * CHAINS }>();
    for row in rows {
        let (words, _) = row.as_chunks::<8>();
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    sums.iter().fold(0, |all, sum| all.wrapping_add(*sum))
}

/// The threads of a run that says nothing about them.
pub fn threads() -> usize {
    MemoryLimit::of_this_process().threads(&[])
}

#[cfg(test)]
mod tests {
    use crate::measure::ceilings::*;

    #[test]
    fn every_word_is_read() {
        let words = (1..=1024_u64).flat_map(u64::to_le_bytes);
        assert_eq!(sum(&words.collect::<Vec<u8>>()), 1024 * 1025 / 2);
    }

    #[test]
    fn there_is_a_rate_for_each_number_of_threads() {
        let rates = memory(3).unwrap();
        let threads: Vec<_> = rates.iter().map(|rate| rate.threads).collect();
        assert_eq!(threads, [1, 2, 3]);
        assert!(rates.iter().all(|rate| rate.gib_per_s > 0.0), "{rates:?}");
    }
}
