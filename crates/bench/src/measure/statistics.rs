//! Figures made of repeated runs: medians, percentiles, paired ratios with a confidence interval, changes of level.
//!
//! All of it is pure. What is drawn at random has a fixed seed, so the same runs give the same figures.

use serde::{Deserialize, Serialize};

use crate::noise::{STEP, mix};

/// Where some values lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The 5th percentile. Of few values it lies near the least.
    pub p5: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// A median with the interval in which it lies by 95%.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The median.
    pub median: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Runs in a row that took about as long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The first run.
    pub from: usize,
    /// The one after the last.
    pub to: usize,
    /// The median in it.
    pub level: f64,
}

/// How often values are drawn again for an interval, and shuffled to judge a change.
const RESAMPLES: usize = 2000;
const SHUFFLES: usize = 999;
/// A change is told if chance makes a larger one in fewer shuffles than this share.
const CHANCE: f64 = 0.01;
/// Smaller changes of level are of no interest.
const CHANGE: f64 = 1.2;
/// The fewest runs that make a phase.
const PHASE_RUNS: usize = 4;

/// The percentile of sorted values, between the two nearest ones.
pub fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let at = percent / 100.0 * (sorted.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

/// The median, if there is a value.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    Spread::of(values).map(|spread| spread.median)
}

impl Spread {
    /// Of these values, if there are any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        Some(Spread {
            median: percentile(&values, 50.0),
            p5: percentile(&values, 5.0),
            p95: percentile(&values, 95.0),
            min,
            max,
        })
    }
}

impl Interval {
    /// The median of these values, and the interval of medians of values drawn from them (percentile bootstrap).
    pub fn of(values: &[f64]) -> Option<Interval> {
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        let again = || random.median_again(values);
        Some(Interval::around(median(values.iter().copied())?, again))
    }

    /// The ratio of the medians of values that aren't pairs, and the interval of ratios of medians of values drawn from
    /// both.
    pub fn of_ratio(values: &[f64], over: &[f64]) -> Option<Interval> {
        let centre = median(values.iter().copied())? / median(over.iter().copied())?;
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        let again = || random.median_again(values) / random.median_again(over);
        Some(Interval::around(centre, again))
    }

    /// The interval in which 95% of figures made again lie.
    fn around(centre: f64, mut again: impl FnMut() -> f64) -> Interval {
        let mut figures: Vec<f64> = (0..RESAMPLES).map(|_| again()).collect();
        figures.sort_by(f64::total_cmp);
        Interval {
            median: centre,
            low: percentile(&figures, 2.5),
            high: percentile(&figures, 97.5),
        }
    }

    /// Whether `value` lies in it.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Cuts values in the order of time where their level changes by more than chance explains. One phase: no change.
pub fn phases(values: &[f64]) -> Vec<Phase> {
    let mut phases = Vec::new();
    cut(values, 0, &mut phases);
    phases
}

fn cut(values: &[f64], from: usize, phases: &mut Vec<Phase>) {
    match change(values) {
        Some(at) => {
            cut(&values[..at], from, phases);
            cut(&values[at..], from + at, phases);
        }
        None => {
            let level = median(values.iter().copied());
            phases.extend(level.map(|level| Phase {
                from,
                to: from + values.len(),
                level,
            }));
        }
    }
}

/// Where the level of some values changes most, if that is no chance: a permutation test.
fn change(values: &[f64]) -> Option<usize> {
    let mut logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let (at, strength) = strongest(&logs)?;
    let level = |values: &[f64]| median(values.iter().copied()).unwrap_or(1.0);
    let ratio = level(&values[at..]) / level(&values[..at]);
    if ratio.max(1.0 / ratio) < CHANGE {
        return None;
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut as_strong = 0;
    for _ in 0..SHUFFLES {
        for last in (1..logs.len()).rev() {
            logs.swap(last, random.below(last + 1));
        }
        as_strong += usize::from(strongest(&logs).is_some_and(|(_, other)| other >= strength));
    }
    (((as_strong + 1) as f64) <= CHANCE * (SHUFFLES + 1) as f64).then_some(at)
}

/// The cut with the largest difference of means on both sides, in terms of what chance makes likely.
fn strongest(values: &[f64]) -> Option<(usize, f64)> {
    let (len, total) = (values.len(), values.iter().sum::<f64>());
    let mut before = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (at, value) in (1..).zip(values) {
        before += value;
        if at < PHASE_RUNS || len < at + PHASE_RUNS {
            continue;
        }
        let (left, right) = (at as f64, (len - at) as f64);
        let difference = (before / left - (total - before) / right).abs();
        let strength = difference * (left * right / len as f64).sqrt();
        if best.is_none_or(|(_, strongest)| strength > strongest) {
            best = Some((at, strength));
        }
    }
    best
}

/// A small generator of random numbers (splitmix64).
struct Random(u64);

impl Random {
    /// The median of as many values drawn from these.
    fn median_again(&mut self, values: &[f64]) -> f64 {
        let mut drawn: Vec<f64> = (0..values.len())
            .map(|_| values[self.below(values.len())])
            .collect();
        drawn.sort_by(f64::total_cmp);
        percentile(&drawn, 50.0)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(STEP);
        ((u128::from(mix(self.0)) * limit as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::statistics::*;

    #[test]
    fn percentiles_lie_between_values() {
        let spread = Spread::of((0..=100).rev().map(f64::from)).unwrap();
        assert_eq!((spread.p5, spread.median, spread.p95), (5.0, 50.0, 95.0));
        assert_eq!((spread.min, spread.max), (0.0, 100.0));
        assert_eq!(median([1.0, 4.0]), Some(2.5));
        assert_eq!(median([]), None);
        assert_eq!(Spread::of([3.0]).unwrap().p95, 3.0);
    }

    /// Of samples from a known distribution about 95 of 100 intervals hold its median.
    #[test]
    fn intervals_hold_the_median() {
        let mut random = Random(7);
        let held = (0..200).filter(|_| {
            let values: Vec<f64> = (0..21).map(|_| random.below(10_001) as f64).collect();
            Interval::of(&values).unwrap().holds(5000.0)
        });
        let held = held.count();
        assert!((180..=199).contains(&held), "{held} of 200");
        assert_eq!(Interval::of(&[]), None);
        let sure = Interval::of(&[2.0; 5]).unwrap();
        assert_eq!((sure.low, sure.median, sure.high), (2.0, 2.0, 2.0));
    }

    #[test]
    fn ratios_of_samples_that_are_no_pairs() {
        let ratio = Interval::of_ratio(&[2.0, 2.2, 1.8], &[1.0, 1.1, 0.9, 1.0]).unwrap();
        assert_eq!(ratio.median, 2.0);
        assert!(
            ratio.low < 2.0 && ratio.high > 2.0 && ratio.low > 1.5,
            "{ratio:?}"
        );
        assert_eq!(Interval::of_ratio(&[], &[1.0]), None);
    }

    #[test]
    fn a_change_of_level_is_found_where_it_is_and_noise_is_none() {
        let mut random = Random(3);
        let mut noisy = |level: f64| level * (1.0 + random.below(1000) as f64 / 10_000.0);
        let steady: Vec<f64> = (0..40).map(|_| noisy(1.0)).collect();
        assert_eq!(phases(&steady).len(), 1);
        let levels = [(0, 15, 1.0), (15, 30, 1.8), (30, 40, 1.1)];
        let changing: Vec<f64> = levels
            .iter()
            .flat_map(|&(from, to, level)| (from..to).map(move |_| level))
            .map(&mut noisy)
            .collect();
        let found = phases(&changing);
        let places: Vec<_> = found.iter().map(|phase| (phase.from, phase.to)).collect();
        assert_eq!(places, [(0, 15), (15, 30), (30, 40)]);
        assert!(found[1].level > 1.7, "{found:?}");
        assert!(phases(&[]).is_empty());
        assert_eq!(phases(&[1.0, 5.0]).len(), 1);
    }
}
