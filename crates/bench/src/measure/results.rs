//! What was measured, and the figures made of it. Serialised, this is the JSON of `ringfold bench`; names have units.

use ringfold_read::internals::units::{self, GIB};
use serde::{Deserialize, Serialize};

use crate::measure::cache::State;
use crate::measure::counters::Counts;
use crate::measure::limits::{Bound, Ceilings};
use crate::measure::machine::Machine;
use crate::measure::participant::Kind;
use crate::measure::process::Cost;
use crate::measure::reads::ReadFigures;
use crate::measure::statistics::{Interval, Phase, Spread, median, phases};

/// The version of the JSON's shape: it changes when a field goes or changes its meaning.
pub const SCHEMA_VERSION: u32 = 3;

/// Everything about one call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// See [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// When it began.
    pub started_unix_s: u64,
    /// What the user wants to be kept with it.
    pub note: Option<String>,
    /// Where it took place, in short.
    pub machine: Machine,
    /// What was read.
    pub file: FileFacts,
    /// How often, and with which rests.
    pub settings: Settings,
    /// What limits all results, from the same run.
    pub ceilings: Ceilings,
    /// A job from a state of the page cache each.
    pub cases: Vec<Case>,
    /// Where it took place, as `ringfold probe --json` has it.
    #[serde(default)]
    pub probe: serde_json::Value,
}

/// The input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileFacts {
    /// Its path as it was given.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// Lines, where somebody counted them.
    pub lines: Option<u64>,
}

/// How it was measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Settings {
    /// Runs of each participant that count.
    pub runs: usize,
    /// Runs before them that don't.
    pub warmup: usize,
    /// Rest before each run that isn't from the cache.
    pub pause_s: f64,
    /// Whose times the ratios divide by; the first one's of a case if that is `None`.
    pub baseline: Option<String>,
}

/// All runs of a job from one state of the page cache.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Case {
    /// The job as it was given.
    pub job: String,
    /// Where its runs start from.
    pub state: State,
    /// Why there are no runs.
    pub impossible: Option<String>,
    /// The share of the file that was resident before the runs.
    pub resident_share: Option<Spread>,
    /// Runs that weren't made, because the state wasn't proven before them.
    pub discarded_runs: usize,
    /// Who took part.
    pub rows: Vec<Row>,
    /// Times of all runs in their order, over the median of who ran: one phase means that nothing changed.
    #[serde(default)]
    pub phases: Vec<Phase>,
}

/// The runs of one participant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Of which kind it is.
    pub kind: Kind,
    /// Its command line.
    pub command: Vec<String>,
    /// Why it was left out, where the machine refuses what it needs.
    pub left_out: Option<String>,
    /// What went wrong; then none of its runs count.
    pub failed: Option<String>,
    /// Figures of its runs.
    pub summary: Option<Summary>,
    /// Its runs, in order.
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// In which round, from 1.
    pub round: usize,
    /// Its place among all runs of the case.
    pub place: usize,
    /// The share of the file that was resident before.
    pub resident_share: f64,
    /// What it cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// What ringfold tells of itself.
    pub own: Option<OwnStats>,
}

/// What ringfold tells of a run of its own: some of the figures of `--stats=json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnStats {
    /// What read the input, and why that.
    pub engine: String,
    /// See `engine`.
    pub engine_reason: String,
    /// Records or lines.
    pub rows: Option<u64>,
    /// From the start of the run to its end, without the process's start and end.
    pub elapsed_s: f64,
    /// Bytes that came through a ring, that workers copied, and that they mapped.
    pub dispatched_bytes: u64,
    /// See `dispatched_bytes`.
    pub copied_bytes: u64,
    /// See `dispatched_bytes`.
    pub mapped_bytes: u64,
    /// Reads, and how many there were in flight at most.
    pub reads: u64,
    /// See `reads`.
    pub max_in_flight: usize,
    /// Bytes of a read.
    pub block_size: u64,
    /// Time in which the ring could have read, but had no free buffer.
    pub starved_s: f64,
    /// Time in which workers waited for blocks, of all together.
    pub workers_waited_s: f64,
    /// Latencies, reads in flight, processor time by kind of thread.
    #[serde(flatten)]
    pub figures: ReadFigures,
    /// The most anonymous memory.
    pub peak_anonymous_bytes: Option<u64>,
    /// Switches that had no effect.
    pub without_effect: Vec<String>,
}

/// The figures of a row.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// The times that count.
    pub time_s: Spread,
    /// The file's bytes in the median time.
    pub gib_per_s: f64,
    /// Rows in the median time.
    pub rows_per_s: Option<f64>,
    /// Of the times of the same round.
    pub ratio: Option<Interval>,
    /// Processor time, the median.
    pub cpu_s: f64,
    /// Of it, in user space and in the kernel.
    pub user_s: f64,
    /// See `user_s`.
    pub system_s: f64,
    /// The most anonymous memory of all runs.
    pub peak_anonymous_bytes: Option<u64>,
    /// The most memory of all runs, mapped files included.
    pub peak_memory_bytes: u64,
    /// Bytes read from the device, the median.
    pub device_read_bytes: f64,
    /// What the processor counted, medians.
    pub counted: Option<Counts>,
    /// What limits it.
    pub bound: Option<Bound>,
}

impl Results {
    /// Whether somebody failed or answered wrongly, or no run was made at all.
    pub fn any_failed(&self) -> bool {
        let rows = || self.cases.iter().flat_map(|case| &case.rows);
        rows().any(|row| row.failed.is_some()) || rows().all(|row| row.summary.is_none())
    }

    /// The input and how it was gone over, in a line.
    pub fn headline(&self) -> String {
        let (file, settings) = (&self.file, &self.settings);
        let pause = match settings.pause_s {
            0.0 => String::new(),
            seconds => format!(", {seconds} s of rest before each run that isn't cached"),
        };
        let lines =
            (file.lines).map_or(String::new(), |n| format!(", {} lines", units::grouped(n)));
        let runs = units::counted(settings.runs as u64, "run");
        let (path, size) = (&file.path, units::size(file.size_bytes));
        format!("{path}: {size}{lines}; {runs} of each, in turns{pause}")
    }
}

impl Case {
    /// Its job and state, as a title.
    pub fn title(&self) -> String {
        format!("{}, {}", self.job, self.state.name())
    }

    /// The rows of participants, without ceilings.
    pub fn shown(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.kind != Kind::Ceiling)
    }

    /// The row of this name, or else the first with runs that count: ratios divide by its times.
    pub fn baseline(&self, name: Option<&str>) -> Option<&Row> {
        let named = name.and_then(|name| self.shown().find(|row| row.name == name));
        let counts = |row: &&Row| row.failed.is_none() && !row.runs.is_empty();
        named.or_else(|| self.shown().find(counts))
    }

    /// Makes the figures of all runs over a file of this size.
    pub fn summarise(&mut self, size_bytes: u64, baseline: Option<&str>) {
        let runs = || self.rows.iter().flat_map(|row| &row.runs);
        self.resident_share = Spread::of(runs().map(|run| run.resident_share));
        let baseline = self.baseline(baseline).map(|row| row.runs.clone());
        let baseline = baseline.unwrap_or_default();
        for row in &mut self.rows {
            row.summary = match row.failed {
                Some(_) => None,
                None => Summary::of(&row.runs, &baseline, size_bytes),
            };
        }
        let times = self.in_order().into_iter().map(|(_, time, _)| time);
        self.phases = phases(&times.collect::<Vec<_>>());
    }

    /// All runs as they followed each other: the place, the time over the participant's median, and the participant.
    pub fn in_order(&self) -> Vec<(usize, f64, &Row)> {
        let mut runs = Vec::new();
        for row in &self.rows {
            if let Some(summary) = &row.summary {
                let over = |run: &Run| (run.place, run.cost.time_s() / summary.time_s.median, row);
                runs.extend(row.runs.iter().map(over));
            }
        }
        runs.sort_by_key(|(place, ..)| *place);
        runs
    }

    /// Processor time of others and of the host, in shares of what the cores could do.
    pub fn noise(&self, cores: usize) -> [f64; 2] {
        let sum = |figure: fn(&Cost) -> f64| -> f64 {
            let runs = self.rows.iter().flat_map(|row| &row.runs);
            runs.map(|run| figure(&run.cost)).sum()
        };
        let all = sum(|cost| cost.wall_s) * cores as f64;
        let noise = [sum(|cost| cost.others_cpu_s), sum(|cost| cost.stolen_cpu_s)];
        noise.map(|time| time / all.max(f64::MIN_POSITIVE))
    }

    /// What a reader has to know beside the table, a sentence or two each.
    pub fn remarks(&self, cores: usize) -> Vec<String> {
        let percent = |share: f64| format!("{:.1}%", share * 100.0);
        let mut remarks = Vec::new();
        if let Some(why) = &self.impossible {
            remarks.push(format!("No runs: {why}."));
            return remarks;
        }
        if let Some(share) = self.resident_share {
            let range = match [share.min, share.max].map(percent) {
                [min, max] if min == max => min,
                [min, max] => format!("{min} to {max}"),
            };
            remarks.push(format!("Resident before each run: {range} of the file."));
        }
        if self.discarded_runs > 0 {
            let (runs, state) = (self.discarded_runs, self.state.name());
            remarks.push(format!(
                "Discarded: {runs} runs, because the file wasn't {state} before them."
            ));
        }
        if let [first, rest @ ..] = &self.phases[..]
            && !rest.is_empty()
        {
            let words = |phase: &Phase| {
                let (from, to) = (phase.from + 1, phase.to);
                format!("{:.2}x in runs {from}-{to}", phase.level / first.level)
            };
            let levels: Vec<_> = self.phases.iter().map(words).collect();
            remarks.push(format!(
                "The machine or its drive changed speed meanwhile: all times were {}. Compare ratios, not seconds.",
                levels.join(", ")
            ));
        }
        let [others, stolen] = self.noise(cores);
        if others > 0.02 || stolen > 0.02 {
            remarks.push(format!(
                "Of the processors' time others and the kernel's own threads used {}, and the host kept {}.{}",
                percent(others),
                percent(stolen),
                if others + stolen > 0.1 {
                    " That is a lot: run it again on a quiet machine."
                } else {
                    ""
                }
            ));
        }
        for row in &self.rows {
            if let Some(why) = &row.left_out {
                remarks.push(format!("{} is left out: {why}.", row.name));
            }
            if let Some(why) = &row.failed {
                remarks.push(format!("{} FAILED: {why}.", row.name));
            }
        }
        remarks
    }
}

impl Row {
    /// Of a participant that has not run.
    pub fn new(name: &str, kind: Kind) -> Row {
        Row {
            name: name.into(),
            kind,
            command: Vec::new(),
            left_out: None,
            failed: None,
            summary: None,
            runs: Vec::new(),
        }
    }
}

impl Run {
    /// Its time over that of the baseline's run in the same round.
    pub fn ratio(&self, baseline: &[Run]) -> Option<f64> {
        let other = baseline.iter().find(|other| other.round == self.round)?;
        Some(self.cost.time_s() / other.cost.time_s())
    }

    /// The most anonymous memory, by its own figures where it has some.
    pub fn peak_anonymous_bytes(&self) -> Option<u64> {
        let own = self.own.as_ref().and_then(|own| own.peak_anonymous_bytes);
        own.or(self.cost.peak_anonymous_bytes)
    }
}

impl Summary {
    /// Of these runs, if there are any.
    fn of(runs: &[Run], baseline: &[Run], size_bytes: u64) -> Option<Summary> {
        let time_s = Spread::of(runs.iter().map(|run| run.cost.time_s()))?;
        let ratios: Vec<f64> = runs.iter().filter_map(|run| run.ratio(baseline)).collect();
        let of = |figure: fn(&Run) -> f64| median(runs.iter().map(figure)).unwrap_or(0.0);
        let rows = runs.iter().find_map(|run| run.own.as_ref()?.rows);
        Some(Summary {
            time_s,
            gib_per_s: size_bytes as f64 / time_s.median / GIB,
            rows_per_s: rows.map(|rows| rows as f64 / time_s.median),
            ratio: Interval::of(&ratios),
            cpu_s: of(|run| run.cost.cpu_s()),
            user_s: of(|run| run.cost.user_s),
            system_s: of(|run| run.cost.system_s),
            peak_anonymous_bytes: runs.iter().filter_map(Run::peak_anonymous_bytes).max(),
            peak_memory_bytes: runs.iter().map(|run| run.cost.peak_memory_bytes).max()?,
            device_read_bytes: of(|run| run.cost.device_read_bytes as f64),
            counted: counted(runs),
            bound: None,
        })
    }
}

/// The medians of what the processor counted, where it did.
fn counted(runs: &[Run]) -> Option<Counts> {
    let all = || runs.iter().filter_map(|run| run.cost.counted);
    let first = all().next()?;
    let of = |figure: fn(Counts) -> Option<f64>| median(all().filter_map(figure));
    Some(Counts {
        cycles: of(|counted| counted.cycles),
        instructions: of(|counted| counted.instructions),
        llc_misses: of(|counted| counted.llc_misses),
        dtlb_misses: of(|counted| counted.dtlb_misses),
        with_kernel: first.with_kernel,
    })
}
