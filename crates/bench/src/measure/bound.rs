//! Finds what limits a result, by its shares of rates that were measured in the same run.

use ringfold_read::internals::units::GIB;

use crate::measure::limits::{Bound, Ceilings, Resource, Share};
use crate::measure::results::{Case, Row};
use crate::measure::statistics::median;

/// A program that takes more processor time than this share of its time has several threads.
const ONE: f64 = 1.03;
/// Below this share nothing is said to limit a result: it waits for something else.
const LIMITS: f64 = 0.5;

/// Finds what limits each row of a case over a file of this size.
pub fn find(case: &mut Case, ceilings: &Ceilings, size_bytes: u64, cores: usize) {
    for row in &mut case.rows {
        let bound = bound(row, ceilings, size_bytes, cores);
        if let Some(summary) = &mut row.summary {
            summary.bound = bound;
        }
    }
}

fn bound(row: &Row, ceilings: &Ceilings, size_bytes: u64, cores: usize) -> Option<Bound> {
    let summary = row.summary.as_ref()?;
    let time = summary.time_s.median;
    let rate = |bytes: f64| bytes / time / GIB;
    let mut shares = Vec::new();
    let mut add = |of, share: Option<f64>| {
        let share = share.filter(|share| *share > 0.0);
        shares.extend(share.map(|share| Share { of, share }));
    };
    let runs = || row.runs.iter();
    let device = ceilings.device_gib_per_s;
    let device = device.map(|ceiling| rate(summary.device_read_bytes) / ceiling.median);
    add(Resource::Device, device);
    let copied = median(runs().filter_map(|run| Some(run.own.as_ref()?.copied_bytes as f64)));
    let copy = ceilings.page_cache_copy_gib_per_s.zip(copied);
    let copy = copy.map(|(ceiling, bytes)| rate(bytes) / ceiling.median);
    add(Resource::PageCacheCopy, copy);
    let memory = ceilings.memory.iter().map(|rate| rate.gib_per_s);
    let memory = memory.reduce(f64::max);
    let memory = memory.map(|ceiling| rate(size_bytes as f64) / ceiling);
    add(Resource::Memory, memory);
    // A clock of a program's own leaves out its start and end, but its processor time doesn't.
    let busy = median(runs().map(|run| run.cost.cpu_s() / run.cost.wall_s))?;
    add(Resource::Processors, Some(busy / cores as f64));
    // A program of several threads may use each of them for a while.
    let is_one = cores > 1 && busy <= ONE && runs().all(|run| run.own.is_none());
    add(Resource::OneProcessor, is_one.then_some(busy));
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    let first = shares.first().filter(|share| share.share >= LIMITS)?;
    Some(Bound {
        by: first.of,
        shares,
    })
}
