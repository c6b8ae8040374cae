//! Runs everybody in turns, from one state of the page cache.
//!
//! Every other round goes backwards, so that nobody always runs after the same one and with what that one left: a
//! disk's allowance spent, a processor warm. A run is only made when the state was proven right before it.

use std::io;
use std::time::Duration;

use crate::measure::answers::Answers;
use crate::measure::cache::{CachedFile, Residency, State};
use crate::measure::participant::{Kind, Participant};
use crate::measure::process::{self, Output};
use crate::measure::results::{Case, OwnStats, Row, Run};

/// How a case is measured.
pub struct Rounds<'a> {
    /// What is read.
    pub file: &'a CachedFile,
    /// Runs of each participant that count, and before them those that don't.
    pub runs: usize,
    /// See `runs`.
    pub warmup: usize,
    /// Rest before each run that isn't from the cache.
    pub pause: Duration,
}

/// How far a case is.
pub struct Progress<'a> {
    /// The round, from 1; 0 is the warm-up.
    pub round: usize,
    /// Who runs next.
    pub name: &'a str,
    /// Runs of the case that are done.
    pub done: usize,
}

/// How often a state is made anew when it doesn't prove.
const TRIES: usize = 3;

impl Rounds<'_> {
    /// Runs all participants of a case. `tell` is called before each run.
    ///
    /// # Errors
    /// The file can't be read, or a program can't be waited for.
    pub fn run(
        &self,
        job: &str,
        state: State,
        participants: &[Participant],
        answers: &mut Answers,
        tell: &mut dyn FnMut(Progress<'_>),
    ) -> io::Result<Case> {
        let mut case = Case {
            job: job.into(),
            state,
            impossible: None,
            resident_share: None,
            discarded_runs: 0,
            rows: participants.iter().map(Row::of).collect(),
            phases: Vec::new(),
        };
        let found = self.file.begin(state)?;
        if let Some(why) = impossible(state, found, self.file.is_visible()) {
            case.impossible = Some(why);
            case.rows.clear();
            return Ok(case);
        }
        let pause = match state {
            State::Cached => Duration::ZERO,
            State::Cold | State::Half => self.pause,
        };
        let mut place = 0;
        for round in 0..self.warmup + self.runs {
            let mut order: Vec<usize> = (0..participants.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for (turn, index) in order.into_iter().enumerate() {
                if case.rows[index].is_out() {
                    continue;
                }
                let participant = &participants[index];
                let counted = (round + 1).saturating_sub(self.warmup);
                tell(Progress {
                    round: counted,
                    name: &participant.name,
                    done: round * participants.len() + turn,
                });
                std::thread::sleep(pause);
                let Some(found) = self.proven(state)? else {
                    case.discarded_runs += usize::from(counted > 0);
                    continue;
                };
                let row = &mut case.rows[index];
                let mut ended = match process::run(&participant.line) {
                    Ok(ended) => ended,
                    Err(error) => {
                        row.stop(participant, format!("it can't be started: {error}"), true);
                        continue;
                    }
                };
                if let Err(wrong) = answers.check(participant, &mut ended) {
                    row.stop(participant, wrong, !ended.status.success());
                    continue;
                }
                if counted > 0 {
                    row.runs.push(Run {
                        round: counted,
                        place,
                        resident_share: found.resident_share,
                        own: own(participant, &ended),
                        cost: ended.cost,
                    });
                    place += 1;
                }
            }
        }
        Ok(case)
    }

    /// Makes the state and proves it; `None` when it can't be proven.
    fn proven(&self, state: State) -> io::Result<Option<Residency>> {
        for _ in 0..TRIES {
            let found = self.file.prepare(state)?;
            if found.proven {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Why a state can't be made of this file, if it can't.
fn impossible(state: State, found: Residency, is_visible: bool) -> Option<String> {
    if !is_visible {
        let why = "the file belongs to somebody else, and the kernel tells only its owner, and who may write to it, what \
                   of it is in the page cache";
        return Some(why.into());
    }
    let percent = found.resident_share * 100.0;
    (!found.proven).then(|| match state {
        State::Cached => {
            format!("only {percent:.0}% of the file stays in the page cache: it may not fit into memory")
        }
        State::Cold | State::Half => format!(
            "{percent:.0}% of the file is in the page cache after it was dropped. It may lie in memory (tmpfs, ramfs), \
             or others may have it mapped"
        ),
    })
}

impl Row {
    fn of(participant: &Participant) -> Row {
        let words = participant.line.iter().map(|word| word.to_string_lossy());
        Row {
            command: words.map(|word| word.into_owned()).collect(),
            ..Row::new(&participant.name, participant.kind)
        }
    }

    fn is_out(&self) -> bool {
        self.left_out.is_some() || self.failed.is_some()
    }

    /// No more runs of it. What may be missing here and has not run yet is left out.
    fn stop(&mut self, participant: &Participant, why: String, refused: bool) {
        match participant.optional && refused && self.runs.is_empty() {
            true => self.left_out = Some(why),
            false => self.failed = Some(why),
        }
    }
}

/// What ringfold has told on stderr, in its last line of JSON.
fn own(participant: &Participant, ended: &Output) -> Option<OwnStats> {
    if participant.kind == Kind::Command {
        return None;
    }
    let line = ended.stderr.lines().rfind(|line| line.starts_with('{'))?;
    let told: serde_json::Value = serde_json::from_str(line).ok()?;
    let rows = ["records", "rows"]
        .iter()
        .find_map(|name| told["job"][name].as_u64());
    let own: OwnStats = serde_json::from_value(told).ok()?;
    Some(OwnStats { rows, ..own })
}
