//! `ringfold tune`: searches block size and queue depth for a file's device, and keeps them as a profile.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use ringfold_bench::measure::answers::Answers;
use ringfold_bench::measure::cache::{CachedFile, State};
use ringfold_bench::measure::figures::digits;
use ringfold_bench::measure::halving::{Findings, Search};
use ringfold_bench::measure::heat::Heat;
use ringfold_bench::measure::machine::{Machine, place};
use ringfold_bench::measure::participant::{Kind, Participant, Prints};
use ringfold_bench::measure::statistics::median;
use ringfold_bench::measure::{html, process};
use ringfold_read::internals::{
    sizing,
    units::{self, GIB},
};

use crate::cli::bench::{now_unix_s, run_words, width};
use crate::cli::console::{about, open_output, print, say, usage, write_output};
use crate::cli::duration::duration;
use crate::cli::profile::{self, Profile};
use crate::cli::progress::{self, When};
use crate::{Error, Kind as ErrorKind, Result};

/// What is tried: bytes of a read, and reads in flight.
const BLOCKS: [u64; 7] = [
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
];
const DEPTHS: [usize; 5] = [4, 8, 16, 32, 64];
/// The most that all buffers of a setting may take: what is in flight is twice that with those of workers.
const MOST: u64 = 128 << 20;
/// A setting that takes so many times as long as the default is slow.
const SLOW: f64 = 1.8;
/// A search of fewer settings than this isn't one.
const ARMS_MIN: usize = 6;

/// Find the block size and queue depth that read fastest from a file's device
///
/// Runs a job with the engine auto from a cold page cache, with many settings in turns. The better half of them runs on,
/// until few are left (successive halving). The default runs in every round, and all times count over its own.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ringfold tune data.txt
      a minute; then the settings as a heat map, and a profile
  ringfold tune data.txt --budget 5m --report tune.html
      a longer search, and a page with pictures
  ringfold aggregate --profile auto data.txt
      uses the profile for the device that the file lies on

A profile holds only what a ring uses: cached files are read as without one. docs/measuring.md says more.")]
pub(super) struct Command {
    /// A file on the device; a larger one is better
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How long the search may take
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    budget: Duration,
    /// The job: count, aggregate, quote or read, with its flags in quotes
    #[arg(long, value_name = "JOB", default_value = "count")]
    job: String,
    /// The profile's name [default: the device and its file system]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write no profile
    #[arg(long)]
    dry_run: bool,
    /// Write a page with pictures: HTML that needs nothing else
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// When to draw progress on stderr (auto: on a terminal)
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    progress: When,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
}

/// A setting; `None` is the default.
type Setting = Option<(u64, usize)>;

/// A search under way.
struct Tuning<'a> {
    file: &'a CachedFile,
    settings: Vec<Setting>,
    lines: Vec<Participant>,
    search: Search,
    answers: Answers,
    started: Instant,
    budget: Duration,
    draws: bool,
    runs: usize,
    /// What the default took at first.
    default_s: f64,
    /// Slow settings that ask the device for less than the default does, and how many weren't run for that reason.
    slow: Vec<(u64, usize)>,
    skipped: usize,
}

impl Command {
    pub(super) fn run(&self) -> Result<()> {
        let file = CachedFile::open(&self.file).map_err(|error| about(&self.file, &error))?;
        // Before the runs, which take minutes.
        let report = self.report.as_ref().map(|path| open_output(Some(path)));
        let report = report.transpose()?;
        let mut tuning = self.begin(&file)?;
        tuning.search().map_err(|error| about(&self.file, &error))?;
        progress::clear();
        let machine = Machine::look(&self.file);
        let failed = tuning.search.arms[0].refused.clone();
        if let Some(why) = failed {
            let cause = format!("the default fails: {why}");
            return Err(Error::new(ErrorKind::Engine, cause));
        }
        let Some(findings) = tuning.search.findings() else {
            let cause = format!(
                "--budget: {} runs in {} s are too few to compare settings: allow more time, or take a smaller file",
                tuning.runs,
                self.budget.as_secs_f64()
            );
            return Err(usage(cause));
        };
        let heat = tuning.heat(&findings);
        let told = tuning.told(&findings);
        let head = format!(
            "{}: {} on {} ({}); {}, cold: {} settings, {} runs in {:.0} s",
            self.file.display(),
            units::size(file.len()),
            machine.device.as_deref().unwrap_or("an unknown device"),
            machine
                .file_system
                .as_deref()
                .unwrap_or("unknown file system"),
            self.job,
            tuning.settings.len(),
            tuning.runs,
            tuning.started.elapsed().as_secs_f64()
        );
        let mut text = format!(
            "{head}\n\n{}\n",
            heat.terminal(std::io::stdout().is_terminal(), width())
        );
        for line in &told {
            text += &format!("{line}\n");
        }
        print(text.as_bytes())?;
        if let Some(report) = report {
            let page = html::tuning(&head, &heat, &told, &machine);
            write_output(report, |out| out.write_all(page.as_bytes()))?;
        }
        match self.dry_run {
            true => Ok(()),
            false => self.keep(&tuning, &findings, &machine),
        }
    }

    fn begin<'a>(&self, file: &'a CachedFile) -> Result<Tuning<'a>> {
        let found = file
            .begin(State::Cold)
            .map_err(|error| about(&self.file, &error))?;
        let cause = if !file.is_visible() {
            Some("it belongs to somebody else: the kernel doesn't tell what of it is cached")
        } else if !found.proven {
            Some("it can't be made cold: it lies in memory, or others have it mapped")
        } else {
            None
        };
        if let Some(cause) = cause {
            let name = self.file.display().to_string();
            return Err(Error::new(ErrorKind::Io, cause).in_file(0, &name.into()));
        }
        // The first run fetches the program itself and tells what a run takes.
        let started = Instant::now();
        let ended = process::run(&self.line(None)?.line);
        let ended = ended.map_err(|error| about(&self.file, &error))?;
        if !ended.status.success() {
            return Err(Error::new(ErrorKind::Engine, ended.last_line().to_string()));
        }
        let cost = started.elapsed() + Duration::from_millis(60);
        let settings = settings(file.len(), affordable(self.budget, cost));
        if settings.len() < ARMS_MIN {
            let cause = format!(
                "--budget: a run takes {:.1} s, so there is time for {} settings only: allow more, or take a smaller file",
                cost.as_secs_f64(),
                settings.len()
            );
            return Err(usage(cause));
        }
        let lines = settings.iter().map(|setting| self.line(*setting));
        Ok(Tuning {
            file,
            lines: lines.collect::<Result<_>>()?,
            search: Search::new(settings.len()),
            settings,
            answers: Answers::new(file.len()),
            started,
            budget: self.budget,
            draws: progress::is_wanted(self.progress, self.quiet),
            runs: 0,
            default_s: ended.cost.time_s(),
            slow: Vec::new(),
            skipped: 0,
        })
    }

    fn line(&self, setting: Setting) -> Result<Participant> {
        let flags = setting.map_or(Vec::new(), |(block, depth)| {
            let (block, depth) = (block.to_string(), depth.to_string());
            ["--block-size".into(), block, "--queue-depth".into(), depth].to_vec()
        });
        let line: Vec<OsString> = run_words(&self.file, &self.job, &flags)?;
        Ok(Participant {
            name: named(setting),
            line,
            kind: Kind::Ringfold,
            prints: Prints::Answer,
            optional: true,
        })
    }

    /// Writes the profile, and says how it is used.
    fn keep(&self, tuning: &Tuning<'_>, findings: &Findings, machine: &Machine) -> Result<()> {
        let Some([file_system, device]) = place(&self.file) else {
            say("no profile: it can't be told which device the file lies on");
            return Ok(());
        };
        let (block, depth) = tuning.settings[findings.choice].unwrap_or(DEFAULT);
        let short = device.rsplit('/').next().unwrap_or(&device);
        let name = self
            .name
            .clone()
            .unwrap_or_else(|| format!("{short}-{file_system}"));
        let rate = tuning.default_rate();
        let profile = Profile {
            device,
            file_system,
            block_size_bytes: block,
            queue_depth: depth,
            job: self.job.clone(),
            kernel: machine.kernel.clone(),
            measured_unix_s: now_unix_s(),
            gib_per_s: rate / tuning.search.ratio(findings.choice).unwrap_or(1.0),
            default_gib_per_s: rate,
        };
        let path = profile::write(&name, profile)?;
        let text = format!(
            "\nwritten: profile {name} in {}\ntry: ringfold {} --profile {} {}\n",
            path.display(),
            self.job,
            profile::AUTO,
            ringfold_bench::probe::quoted(&self.file.display().to_string())
        );
        print(text.as_bytes()).map(drop)
    }
}

/// What a ring takes by default.
const DEFAULT: (u64, usize) = (sizing::RING_BLOCK as u64, sizing::DEPTH);

/// A setting as flags.
fn named(setting: Setting) -> String {
    match setting {
        None => "the default".into(),
        Some((block, depth)) => format!("-b {} --queue-depth {depth}", short(block)),
    }
}

/// A size as the flags take it.
fn short(bytes: u64) -> String {
    match bytes {
        ..0x10_0000 => format!("{}K", bytes >> 10),
        _ => format!("{}M", bytes >> 20),
    }
}

/// Whether a setting reads no more at once and no more at a time than another one.
fn asks_less(setting: (u64, usize), other: (u64, usize)) -> bool {
    setting.0 <= other.0 && setting.1 <= other.1
}

/// How many settings there is time for: each runs at least once, the finalists several times.
fn affordable(budget: Duration, cost: Duration) -> usize {
    let runs = budget.as_secs_f64() / cost.as_secs_f64();
    (runs / 2.0).max(0.0) as usize
}

/// The default, and then settings in the order of the memory that they take; a coarser grid when there is less time.
fn settings(len: u64, most: usize) -> Vec<Setting> {
    let bytes = |&(block, depth): &(u64, usize)| block * depth as u64;
    let grid = |step: usize| -> Vec<Setting> {
        let depths = DEPTHS.into_iter().step_by(step);
        let blocks = BLOCKS.into_iter().step_by(step);
        let all = blocks.flat_map(|block| depths.clone().map(move |depth| (block, depth)));
        let is_tried = |setting: &_| bytes(setting) <= MOST.min(len) && *setting != DEFAULT;
        let mut all: Vec<_> = all.filter(is_tried).collect();
        all.sort_by_key(bytes);
        let all = all.into_iter().map(Some);
        std::iter::once(None).chain(all).collect()
    };
    let fine = grid(1);
    match fine.len() <= most {
        true => fine,
        false => grid(2).into_iter().take(most).collect(),
    }
}

impl Tuning<'_> {
    /// Runs rounds until the time is over.
    fn search(&mut self) -> std::io::Result<()> {
        let mut stage_ends = self.stage_end();
        loop {
            let before = Instant::now();
            self.round()?;
            if self.search.arms[0].refused.is_some() {
                return Ok(());
            }
            let left = self.budget.saturating_sub(self.started.elapsed());
            let took = before.elapsed();
            if self.search.is_final() {
                if left < took {
                    return Ok(());
                }
            } else if self.started.elapsed() + took > stage_ends {
                self.search.halve();
                stage_ends = self.stage_end();
            }
        }
    }

    /// When this stage ends. The last one gets a third of the time at least; the others share what is left.
    fn stage_end(&self) -> Duration {
        let stages = self.search.stages_left();
        match stages {
            1 => self.budget,
            _ => {
                let elapsed = self.started.elapsed();
                let before_last = (self.budget * 2 / 3).saturating_sub(elapsed);
                elapsed + before_last / (stages - 1)
            }
        }
    }

    /// Runs everybody who is left once.
    fn round(&mut self) -> std::io::Result<()> {
        for arm in self.search.next_round() {
            // The first round goes from large settings to small ones, because slow runs would take most of the time.
            let setting = self.settings[arm].unwrap_or(DEFAULT);
            let is_new = self.search.arms[arm].runs.is_empty();
            if is_new && self.slow.iter().any(|slow| asks_less(setting, *slow)) {
                self.search.skip(arm);
                self.skipped += 1;
                continue;
            }
            if self.draws {
                let share = self.started.elapsed().as_secs_f64() / self.budget.as_secs_f64();
                let done = (share.min(1.0) * 1000.0) as usize;
                let left = self.search.left().len();
                let text = format!("{left} settings left: {}", named(self.settings[arm]));
                progress::show(&text, done, 1000, self.started.elapsed());
            }
            if !self.file.prepare(State::Cold)?.proven {
                continue;
            }
            let participant = &self.lines[arm];
            let mut ended = process::run(&participant.line)?;
            self.runs += 1;
            match self.answers.check(participant, &mut ended) {
                Ok(()) => {
                    let time_s = ended.cost.time_s();
                    self.search.add(arm, time_s, ended.cost.cpu_s());
                    let is_slow = is_new && time_s > SLOW * self.default_s;
                    if is_slow && setting != DEFAULT && asks_less(setting, DEFAULT) {
                        self.slow.push(setting);
                    }
                }
                Err(why) => self.search.arms[arm].refused = Some(why),
            }
        }
        Ok(())
    }

    fn default_rate(&self) -> f64 {
        let times = self.search.arms[0].runs.iter().map(|run| run.1);
        self.file.len() as f64 / median(times).unwrap_or(f64::INFINITY) / GIB
    }

    fn heat(&self, findings: &Findings) -> Heat {
        let rate = self.default_rate();
        let cell = |block: u64, depth: usize| {
            let is_this = |setting: &Setting| setting.unwrap_or(DEFAULT) == (block, depth);
            let arm = self.settings.iter().position(is_this)?;
            let mark = match findings.equal.contains(&arm) {
                _ if arm == findings.choice => '*',
                true => '=',
                false => ' ',
            };
            Some((rate / self.search.ratio(arm)?, mark))
        };
        let settings = || {
            self.settings
                .iter()
                .map(|setting| setting.unwrap_or(DEFAULT))
        };
        let blocks: BTreeSet<u64> = settings().map(|(block, _)| block).collect();
        let depths: BTreeSet<usize> = settings().map(|(_, depth)| depth).collect();
        let row = |block: u64| {
            let cells = depths.iter().map(|&depth| cell(block, depth));
            (short(block), cells.collect())
        };
        Heat {
            corner: "GiB/s".into(),
            columns: depths
                .iter()
                .map(|depth| format!("depth {depth}"))
                .collect(),
            rows: blocks.into_iter().map(row).collect(),
        }
    }

    /// What the runs show, a sentence or two each.
    fn told(&self, findings: &Findings) -> Vec<String> {
        let name = |arm: usize| named(self.settings[arm]);
        let mut told = vec![format!("* is the choice: {}.", name(findings.choice))];
        match findings.against_reference {
            None => told.push("Nothing is faster than the default by more than noise.".into()),
            Some(ratio) => told.push(format!(
                "It takes {}x the time of the default (95% interval {} - {}).",
                digits(ratio.median),
                digits(ratio.low),
                digits(ratio.high)
            )),
        }
        let others: Vec<_> = (findings.equal.iter())
            .filter(|arm| **arm != findings.choice)
            .map(|arm| name(*arm))
            .collect();
        if !others.is_empty() {
            told.push(format!("= is as fast within noise: {}.", others.join("; ")));
        }
        for (arm, more) in &findings.costly {
            told.push(format!(
                "{} takes {}x the processor time of the choice, for nothing.",
                name(*arm),
                digits(*more)
            ));
        }
        if self.skipped > 0 {
            let left_out = match self.skipped {
                1 => "1 small setting wasn't run".to_string(),
                many => format!("{many} small settings weren't run"),
            };
            told.push(format!(
                "{left_out}: larger ones took more than {SLOW}x the time of the default."
            ));
        }
        for (arm, setting) in self.search.arms.iter().zip(&self.settings) {
            if let Some(why) = &arm.refused {
                told.push(format!("{} is left out: {why}.", named(*setting)));
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::tune::*;

    #[test]
    fn only_what_reads_less_than_a_slow_setting_is_skipped() {
        let slow = (128 << 10, 8);
        assert!(asks_less(slow, slow) && asks_less((64 << 10, 4), slow));
        assert!(!asks_less((64 << 10, 16), slow) && !asks_less((256 << 10, 4), slow));
        // The default itself always runs.
        let small = settings(1 << 40, 1000).into_iter().flatten();
        let small = small.filter(|setting| asks_less(*setting, DEFAULT));
        assert!(
            small.clone().count() > 5 && small.clone().all(|setting| !asks_less(DEFAULT, setting))
        );
    }

    #[test]
    fn settings_fit_the_file_and_the_time() {
        let all = settings(1 << 40, 1000);
        assert_eq!(all[0], None);
        assert!(all.len() > 25 && !all.contains(&Some(DEFAULT)));
        let bytes = |setting: &Setting| setting.map_or(0, |(block, depth)| block * depth as u64);
        assert!(all.iter().map(bytes).is_sorted());
        assert!(all.iter().all(|setting| bytes(setting) <= MOST));
        let few = settings(1 << 40, 10);
        assert_eq!(few.len(), 10);
        let small = settings(1 << 20, 1000);
        assert!(small.iter().all(|setting| bytes(setting) <= 1 << 20));
        assert_eq!(
            affordable(Duration::from_secs(60), Duration::from_secs(1)),
            30
        );
    }
}
