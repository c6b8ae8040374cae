//! What was measured, the figures made of it, and their shapes: a table for the terminal,
//! Markdown, JSON.

use std::fmt::Write;

use serde::Serialize;

use crate::cache::{Found, State};
use crate::competitors::{BASELINE, COUNT_DIRECT, Competitor, FIO};
use crate::machine::Machine;
use crate::process::Cost;

/// The version of the JSON's shape.
const SCHEMA: u32 = 1;

/// Everything about one call of the benchmark.
#[derive(Serialize)]
pub struct Report {
    schema: u32,
    pub machine: Machine,
    pub file: FileFacts,
    pub rounds: usize,
    /// Rest before each run from a cold or half cached file.
    pub pause_s: u16,
    pub left_out: Vec<String>,
    /// Peaks below this are the harness's own.
    pub memory_floor_bytes: u64,
    pub cases: Vec<Case>,
}

/// The input.
#[derive(Serialize)]
pub struct FileFacts {
    pub name: String,
    pub size_bytes: u64,
    /// Lines, as all who counted them agreed.
    pub rows: Option<u64>,
}

/// All runs from one state of the page cache.
#[derive(Serialize)]
pub struct Case {
    pub state: &'static str,
    pub meaning: &'static str,
    /// Whether the state was proven before every single run.
    pub proven: bool,
    /// The least and the largest share of the file that was resident before a run.
    pub resident_share: Option<Spread>,
    pub rows: Vec<Row>,
}

/// The runs of one competitor, round by round.
#[derive(Serialize)]
pub struct Row {
    pub name: &'static str,
    pub label: String,
    pub ours: bool,
    /// Why none of its times count.
    pub void: Option<String>,
    pub summary: Option<Summary>,
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Serialize)]
pub struct Run {
    pub resident_share: f64,
    pub state_proven: bool,
    #[serde(flatten)]
    pub cost: Cost,
}

/// A median with its extremes.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

/// The figures of a row.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The times that count: of the whole process, or by its own clock.
    pub wall_s: Spread,
    /// Of the times of the same round.
    pub ratio_to_baseline: Option<Spread>,
    pub cpu_s: Spread,
    pub gb_per_s: f64,
    pub peak_memory_bytes: u64,
}

impl Spread {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let middle = &values[(values.len() - 1) / 2..=values.len() / 2];
        Some(Spread {
            median: middle.iter().sum::<f64>() / middle.len() as f64,
            min,
            max,
        })
    }
}

impl Case {
    pub fn new(state: State, competitors: &[Competitor]) -> Case {
        let rows = competitors.iter().map(|competitor| Row {
            name: competitor.name,
            label: competitor.label.clone(),
            ours: competitor.ours,
            void: None,
            summary: None,
            runs: Vec::new(),
        });
        Case {
            state: state.name(),
            meaning: state.meaning(),
            proven: true,
            resident_share: None,
            rows: rows.collect(),
        }
    }

    /// Makes the figures of the runs of a file of so many bytes.
    pub fn summarise(&mut self, size_bytes: u64) {
        let runs = || self.rows.iter().flat_map(|row| &row.runs);
        self.proven = runs().all(|run| run.state_proven);
        self.resident_share = Spread::of(runs().map(|run| run.resident_share));
        let baseline = self
            .rows
            .iter()
            .find(|row| row.name == BASELINE && row.void.is_none());
        let baseline: Vec<f64> = baseline.map(Row::times).unwrap_or_default();
        for row in self.rows.iter_mut().filter(|row| row.void.is_none()) {
            let times = row.times();
            let ratios = times
                .iter()
                .zip(&baseline)
                .map(|(time, baseline)| time / baseline);
            let ratio_to_baseline = Spread::of(ratios);
            let cpu_s = Spread::of(row.runs.iter().map(|run| run.cost.cpu_s()));
            let peaks = row.runs.iter().map(|run| run.cost.peak_memory_bytes);
            row.summary = Spread::of(times).zip(cpu_s).map(|(wall_s, cpu_s)| Summary {
                wall_s,
                ratio_to_baseline,
                cpu_s,
                gb_per_s: size_bytes as f64 / wall_s.median / 1e9,
                peak_memory_bytes: peaks.max().unwrap_or(0),
            });
        }
    }

    /// CPU time of others and of the host, in shares of what the cores could do.
    fn noise(&self, cores: usize) -> [f64; 2] {
        let costs = || {
            self.rows
                .iter()
                .flat_map(|row| &row.runs)
                .map(|run| &run.cost)
        };
        let all = costs().map(|cost| cost.wall_s).sum::<f64>() * cores as f64;
        let others = costs().map(|cost| cost.others_cpu_s).sum::<f64>();
        let stolen = costs().map(|cost| cost.stolen_cpu_s).sum::<f64>();
        [others, stolen].map(|time| time / all.max(f64::MIN_POSITIVE))
    }

    fn table(&self, memory_floor_bytes: u64) -> Table {
        let header = [
            "",
            "median",
            "min - max",
            "x wc -l",
            "spread",
            "GB/s",
            "CPU",
            "memory",
        ];
        let mut table = Table {
            rows: vec![header.map(str::to_string)],
        };
        for row in &self.rows {
            let cells = match &row.summary {
                Some(summary) => summary.cells(memory_floor_bytes),
                None => ["VOID", "", "", "", "", "", ""].map(str::to_string),
            };
            let [a, b, c, d, e, f, g] = cells;
            table.rows.push([row.label.clone(), a, b, c, d, e, f, g]);
        }
        table
    }

    /// Our raw read against fio's, round by round.
    fn beside_fio(&self) -> Option<String> {
        let good = |row: &&Row| row.void.is_none();
        let row = |name| self.rows.iter().find(|row| row.name == name).filter(good);
        let (ours, fio) = (row(COUNT_DIRECT)?, row(FIO)?);
        let shares = ours
            .times()
            .into_iter()
            .zip(fio.times())
            .map(|(ours, fio)| fio / ours);
        let share = Spread::of(shares)?;
        Some(format!(
            "{}: {:.2} ({:.2} - {:.2}) of the bytes a second of {}. fio's times are its own, without \
             start and end.",
            ours.label, share.median, share.min, share.max, fio.label
        ))
    }

    /// What a reader of the table has to know beside it.
    fn remarks(&self, cores: usize) -> Vec<String> {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let mut remarks = Vec::new();
        if let Some(share) = self.resident_share {
            let proof = if self.proven {
                ""
            } else {
                " NOT PROVEN: these are not the times of this case."
            };
            let (min, max) = (percent(share.min), percent(share.max));
            let range = if min == max {
                min
            } else {
                format!("{min} to {max}")
            };
            remarks.push(format!(
                "Resident before each run: {range} of the file.{proof}"
            ));
        }
        let [others, stolen] = self.noise(cores).map(percent);
        remarks.push(format!(
            "Of the cores' time, others and the kernel's threads used {others}, the host took \
             {stolen}."
        ));
        remarks.extend(self.beside_fio());
        for row in &self.rows {
            if let Some(why) = &row.void {
                remarks.push(format!("{}: VOID, {why}", row.label));
            }
        }
        remarks
    }
}

impl Row {
    fn times(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.cost.time_s()).collect()
    }
}

impl Run {
    pub fn new(found: Found, cost: Cost) -> Run {
        Run {
            resident_share: found.resident_share,
            state_proven: found.proven,
            cost,
        }
    }
}

impl Summary {
    fn cells(&self, memory_floor_bytes: u64) -> [String; 7] {
        let megabytes = |bytes: u64| format!("{:.0} MB", bytes as f64 / 1e6);
        let memory = match self.peak_memory_bytes {
            peak if peak <= memory_floor_bytes => format!("< {}", megabytes(memory_floor_bytes)),
            peak => megabytes(peak),
        };
        let ratio = self.ratio_to_baseline;
        [
            format!("{:.3} s", self.wall_s.median),
            format!("{:.3} - {:.3} s", self.wall_s.min, self.wall_s.max),
            ratio.map_or(String::new(), |ratio| format!("{:.2}", ratio.median)),
            ratio.map_or(String::new(), |ratio| {
                format!("{:.2} - {:.2}", ratio.min, ratio.max)
            }),
            format!("{:.2}", self.gb_per_s),
            format!("{:.3} s", self.cpu_s.median),
            memory,
        ]
    }
}

impl Report {
    pub fn new(
        machine: Machine,
        file: FileFacts,
        rounds: usize,
        pause_s: u16,
        left_out: Vec<String>,
    ) -> Report {
        Report {
            schema: SCHEMA,
            machine,
            file,
            rounds,
            pause_s,
            left_out,
            memory_floor_bytes: 0,
            cases: Vec::new(),
        }
    }

    /// Whether anybody failed or answered wrongly.
    pub fn any_void(&self) -> bool {
        self.cases
            .iter()
            .flat_map(|case| &case.rows)
            .any(|row| row.void.is_some())
    }

    /// The input and how it was gone over, in a line.
    pub fn file_line(&self) -> String {
        let file = &self.file;
        let pauses = match self.pause_s {
            0 => String::new(),
            seconds => format!(", {seconds} s of rest before each cold or half cached run"),
        };
        let rows = file.rows.map_or(String::new(), |rows| {
            format!(", {} million rows", (rows as f64 / 1e3).round() / 1e3)
        });
        format!(
            "{}, {:.0} MB{rows}, {} rounds{pauses}",
            file.name,
            file.size_bytes as f64 / 1e6,
            self.rounds
        )
    }

    /// A case for the terminal.
    pub fn case_as_text(&self, case: &Case) -> String {
        let mut text = format!("{}: {}\n\n", case.state, case.meaning);
        text += &case.table(self.memory_floor_bytes).as_text();
        for remark in case.remarks(self.machine.cores) {
            text += &format!("  {remark}\n");
        }
        text
    }

    pub fn as_markdown(&self) -> String {
        let mut text = format!("# Results\n\n{}.\n", self.file_line());
        text += "How it was measured and how to read it: docs/benchmarks.md. \
                 All single runs: [results.json](results.json).\n\n![Bars of the median times](results.svg)\n";
        for case in &self.cases {
            let _ = write!(text, "\n## {}: {}\n\n", case.state, case.meaning);
            text += &case.table(self.memory_floor_bytes).as_markdown();
            for remark in case.remarks(self.machine.cores) {
                let _ = write!(text, "\n{remark}\n");
            }
        }
        text += "\n## The machine\n\n";
        for (name, value) in self.machine.facts() {
            let _ = writeln!(text, "- {name}: {value}");
        }
        for left_out in &self.left_out {
            let _ = writeln!(text, "- left out: {left_out}");
        }
        text
    }
}

/// Cells; the first row is the header, the first column is text and the others are figures.
struct Table {
    rows: Vec<[String; 8]>,
}

impl Table {
    fn as_text(&self) -> String {
        let widths: [usize; 8] = std::array::from_fn(|column| {
            self.rows
                .iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        });
        let mut text = String::new();
        for row in &self.rows {
            let mut line = format!("  {:1$}", row[0], widths[0]);
            for (cell, width) in row.iter().zip(widths).skip(1) {
                let _ = write!(line, "  {cell:>width$}");
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }

    fn as_markdown(&self) -> String {
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let _ = writeln!(text, "| {} |", row.join(" | "));
            if number == 0 {
                text += &format!("|---|{}\n", "--:|".repeat(row.len() - 1));
            }
        }
        text
    }
}

/// Three digits, or more where there are more before the point.
pub fn digits(ratio: f64) -> String {
    let places = match ratio {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{ratio:.places$}")
}
