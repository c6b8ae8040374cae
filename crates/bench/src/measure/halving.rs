//! Successive halving: many settings run a little, the better half of them runs on, until few are left. Pure.
//!
//! A round runs every setting that is left once. The first setting is the reference: it runs in every round and is never
//! dropped, and the others' times count over its time in the same round. So a drive whose speed changes by the minute
//! changes no order.

use crate::measure::statistics::{Interval, median};

/// A setting that is tried.
#[derive(Debug, Clone, Default)]
pub struct Arm {
    /// Its runs: the round, its time and its processor time.
    pub runs: Vec<(usize, f64, f64)>,
    /// Why it is out, if it can't be run at all.
    pub refused: Option<String>,
    dropped: bool,
}

/// All settings, and the rounds so far.
#[derive(Debug)]
pub struct Search {
    /// The reference first.
    pub arms: Vec<Arm>,
    round: usize,
    stage: usize,
}

/// So many settings, beside the reference, are compared to the end.
const FINALISTS: usize = 4;
/// The fewest rounds that an interval says anything about.
const ROUNDS_MIN: usize = 5;
/// More processor time than this, over that of the choice, is a cost.
const COSTLY: f64 = 1.1;

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// The fastest setting by its median.
    pub fastest: usize,
    /// What to take: of the settings that are as fast as the fastest within noise, the reference, or else the first.
    pub choice: usize,
    /// The choice's time over the reference's, unless it is that.
    pub against_reference: Option<Interval>,
    /// Finalists that are as fast as the fastest within noise.
    pub equal: Vec<usize>,
    /// Those of them that take more processor time than the choice, and how many times as much.
    pub costly: Vec<(usize, f64)>,
}

impl Search {
    /// Of this many settings, the reference among them.
    pub fn new(arms: usize) -> Search {
        Search {
            arms: vec![Arm::default(); arms],
            round: 0,
            stage: 0,
        }
    }

    /// Who runs in the next round; the first one and every other one go backwards.
    pub fn next_round(&mut self) -> Vec<usize> {
        self.round += 1;
        let mut left = self.left();
        if !self.round.is_multiple_of(2) {
            left.reverse();
        }
        left
    }

    /// Drops a setting without a run.
    pub fn skip(&mut self, arm: usize) {
        self.arms[arm].dropped = true;
    }

    /// Adds a run of the current round.
    pub fn add(&mut self, arm: usize, time_s: f64, cpu_s: f64) {
        self.arms[arm].runs.push((self.round, time_s, cpu_s));
    }

    /// Settings that are still run.
    pub fn left(&self) -> Vec<usize> {
        let is_left = |arm: &usize| {
            let arm = &self.arms[*arm];
            !arm.dropped && arm.refused.is_none()
        };
        (0..self.arms.len()).filter(is_left).collect()
    }

    /// Whether only finalists are left.
    pub fn is_final(&self) -> bool {
        self.left().len() <= FINALISTS + 1
    }

    /// Stages from here to the end, this one and the last among them: each gets about the same time.
    pub fn stages_left(&self) -> u32 {
        let mut others = self.left().len().saturating_sub(1);
        let mut stages = 1;
        while others > FINALISTS {
            others = others.div_ceil(2).max(FINALISTS);
            stages += 1;
        }
        stages
    }

    /// Drops the slower half of all but the reference.
    pub fn halve(&mut self) {
        self.stage += 1;
        let mut others: Vec<(f64, usize)> = (self.left().into_iter())
            .filter(|arm| *arm != 0)
            .map(|arm| (self.ratio(arm).unwrap_or(f64::INFINITY), arm))
            .collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0));
        let kept = others.len().div_ceil(2).max(FINALISTS);
        for (_, arm) in others.into_iter().skip(kept) {
            self.arms[arm].dropped = true;
        }
    }

    /// A setting's time over the reference's, the median of the ratios of all its rounds.
    pub fn ratio(&self, arm: usize) -> Option<f64> {
        median(self.ratios(arm, 0))
    }

    /// The times of a setting over those of another in the same round.
    fn ratios(&self, arm: usize, over: usize) -> Vec<f64> {
        let time_in = |round: usize| {
            let mut runs = self.arms[over].runs.iter();
            runs.find(|run| run.0 == round).map(|run| run.1)
        };
        let runs = self.arms[arm].runs.iter();
        runs.filter_map(|run| Some(run.1 / time_in(run.0)?))
            .collect()
    }

    fn cpu(&self, arm: usize) -> Option<f64> {
        median(self.arms[arm].runs.iter().map(|run| run.2))
    }

    /// What the runs show; `None` when there were too few.
    pub fn findings(&self) -> Option<Findings> {
        let finalists: Vec<usize> = (self.left().into_iter())
            .filter(|arm| self.arms[*arm].runs.len() >= ROUNDS_MIN)
            .collect();
        let by_ratio = |a: &usize, b: &usize| {
            let ratio = |arm: usize| self.ratio(arm).unwrap_or(f64::INFINITY);
            ratio(*a).total_cmp(&ratio(*b))
        };
        let fastest = finalists.iter().copied().min_by(by_ratio)?;
        let is_equal = |arm: &usize| {
            let against = Interval::of(&self.ratios(*arm, fastest));
            *arm == fastest || against.is_some_and(|interval| interval.low <= 1.0)
        };
        let equal: Vec<usize> = finalists.into_iter().filter(is_equal).collect();
        let choice = match equal.contains(&0) {
            true => 0,
            // The least memory of those that are as fast: settings are in that order.
            false => *equal.first()?,
        };
        let cpu = self.cpu(choice)?;
        let costs =
            |arm: usize| Some((arm, self.cpu(arm)? / cpu)).filter(|(_, more)| *more > COSTLY);
        Some(Findings {
            fastest,
            choice,
            against_reference: match choice {
                0 => None,
                choice => Interval::of(&self.ratios(choice, 0)),
            },
            costly: equal.iter().filter_map(|arm| costs(*arm)).collect(),
            equal,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::halving::*;

    /// Runs a search in which setting N takes `time(N)`, over a drive that is slower in every third round, with noise.
    fn search(arms: usize, seed: u64, time: impl Fn(usize) -> f64) -> Search {
        let mut search = Search::new(arms);
        let mut state = seed;
        let mut noise = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            1.0 + (state >> 40) as f64 / (1 << 24) as f64 * 0.04
        };
        while !search.is_final() {
            for _ in 0..2 {
                for arm in search.next_round() {
                    let slow = if search.round.is_multiple_of(3) {
                        2.0
                    } else {
                        1.0
                    };
                    search.add(arm, slow * time(arm) * noise(), 0.1 * (arm + 1) as f64);
                }
            }
            search.halve();
        }
        for _ in 0..12 {
            for arm in search.next_round() {
                search.add(arm, time(arm) * noise(), 0.1 * (arm + 1) as f64);
            }
        }
        search
    }

    #[test]
    fn the_fastest_is_found_and_the_reference_runs_in_every_round() {
        for seed in 0..20 {
            let search = search(30, seed, |arm| {
                if arm == 17 {
                    0.7
                } else {
                    1.0 + arm as f64 / 100.0
                }
            });
            let findings = search.findings().unwrap();
            assert_eq!(
                (findings.fastest, findings.choice),
                (17, 17),
                "{findings:?}"
            );
            assert_eq!(findings.equal, [17]);
            let ratio = findings.against_reference.unwrap();
            assert!(
                (ratio.median - 0.7).abs() < 0.03 && ratio.high < 0.8,
                "{ratio:?}"
            );
            assert_eq!(search.arms[0].runs.len(), search.round);
            assert!(search.arms[29].runs.len() < search.round);
        }
    }

    /// Where nothing is faster than the default by more than noise, the default is the choice.
    #[test]
    fn what_is_equal_within_noise_changes_nothing() {
        for seed in 0..20 {
            let search = search(20, seed, |_| 1.0);
            let findings = search.findings().unwrap();
            assert!(
                findings.equal.contains(&0) || findings.against_reference.unwrap().median > 0.97
            );
            if findings.choice == 0 {
                let others = findings.equal.len() - 1;
                assert_eq!(findings.costly.len(), others, "{findings:?}");
            }
        }
    }

    #[test]
    fn too_few_rounds_show_nothing_and_what_is_refused_never_runs() {
        let mut search = Search::new(3);
        search.arms[2].refused = Some("no".into());
        assert_eq!(search.next_round(), [1, 0]);
        search.add(0, 1.0, 1.0);
        search.add(1, 1.0, 1.0);
        assert_eq!(search.findings(), None);
        assert_eq!(search.next_round(), [0, 1]);
        search.skip(1);
        assert_eq!(search.next_round(), [0]);
        assert_eq!(Search::new(36).stages_left(), 5);
    }
}
