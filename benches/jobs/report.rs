//! What was measured, and its shapes: Markdown and JSON.

use std::fmt::Write;
use std::iter;

use serde::Serialize;

use ringfold::internals::figures::digits;
use ringfold::internals::machine::Machine;
use ringfold::internals::process::Cost;
use ringfold::internals::statistics::Spread;

use crate::answers::Agreement;
use crate::tools::{Found, Query, Tool};

/// Everything about one call of the benchmark.
#[derive(Serialize)]
pub struct Report {
    /// Of the sources.
    pub commit: String,
    pub machine: Machine,
    pub mebibytes: u64,
    pub rounds: usize,
    /// Peaks below this are the harness's own.
    pub memory_floor_bytes: u64,
    pub tools: Vec<Found>,
    pub left_out: Vec<String>,
    pub queries: Vec<Asked>,
}

/// A query with everybody's runs.
#[derive(Serialize)]
pub struct Asked {
    pub number: usize,
    pub name: &'static str,
    pub text: String,
    pub file: &'static str,
    pub file_bytes: u64,
    /// Whether the file was found in the page cache before each run.
    pub cached: bool,
    /// What the others are compared with.
    pub baseline: Cell,
    pub cells: Vec<Cell>,
}

/// Someone's runs of a query.
#[derive(Serialize)]
pub struct Cell {
    pub tool: &'static str,
    pub outcome: Outcome,
    pub agreement: Option<Agreement>,
    pub wall_s: Option<Spread>,
    /// To the baseline in the same round.
    pub ratio: Option<Spread>,
    pub runs: Vec<Cost>,
}

/// Whether the runs count.
#[derive(Serialize)]
pub enum Outcome {
    Runs,
    /// The tool has no such query.
    Cannot(String),
    /// It failed or answered wrongly.
    Void(String),
}

impl Cell {
    pub fn new(tool: &'static str) -> Cell {
        Cell {
            tool,
            outcome: Outcome::Runs,
            agreement: None,
            wall_s: None,
            ratio: None,
            runs: Vec::new(),
        }
    }

    fn times(&self) -> Vec<f64> {
        self.runs.iter().map(Cost::time_s).collect()
    }

    fn time(&self) -> String {
        match (&self.outcome, self.wall_s, self.ratio) {
            (Outcome::Cannot(why), ..) => why.clone(),
            (Outcome::Void(_), ..) => "VOID".into(),
            (Outcome::Runs, Some(wall), None) => format!("{}: {:.3} s", self.tool, wall.median),
            (Outcome::Runs, Some(wall), Some(ratio)) if self.tool == Tool::Ringfold.name() => {
                format!("{:.3} s, {}x", wall.median, digits(ratio.median))
            }
            (Outcome::Runs, _, Some(ratio)) => format!("{}x", digits(ratio.median)),
            _ => String::new(),
        }
    }

    fn memory(&self, floor_bytes: u64) -> String {
        match self.runs.iter().map(|run| run.peak_memory_bytes).max() {
            Some(peak) if peak <= floor_bytes => format!("< {} MiB", floor_bytes >> 20),
            Some(peak) => format!("{} MiB", peak >> 20),
            None => String::new(),
        }
    }

    fn inexact(&self) -> String {
        match self.agreement {
            Some(found) if matches!(self.outcome, Outcome::Runs) && found.sums > 0 => {
                format!("{} of {}", found.inexact, found.sums)
            }
            _ => String::new(),
        }
    }
}

impl Asked {
    /// Makes the figures of the runs.
    pub fn new(
        query: &Query,
        number: usize,
        file_bytes: u64,
        cached: bool,
        mut baseline: Cell,
        mut cells: Vec<Cell>,
    ) -> Asked {
        let of_baseline = baseline.times();
        baseline.wall_s = Spread::of(of_baseline.iter().copied());
        for cell in &mut cells {
            if matches!(cell.outcome, Outcome::Runs) {
                let times = cell.times();
                let ratios = times.iter().zip(&of_baseline);
                cell.ratio = Spread::of(ratios.map(|(time, baseline)| time / baseline));
                cell.wall_s = Spread::of(times);
            }
        }
        Asked {
            number,
            name: query.name,
            text: query.text(),
            file: query.file.name(),
            file_bytes,
            cached,
            baseline,
            cells,
        }
    }

    /// The baseline's and all others'.
    fn all_cells(&self) -> impl Iterator<Item = &Cell> {
        iter::once(&self.baseline).chain(&self.cells)
    }

    fn groups(&self) -> Option<usize> {
        let ours = self.cells.iter().find(|cell| cell.agreement.is_some())?;
        Some(ours.agreement?.groups)
    }

    /// CPU time of others and of the host, in shares of what the cores could do.
    fn noise(&self, cores: usize) -> [f64; 2] {
        let runs = || self.all_cells().flat_map(|cell| &cell.runs);
        let all = runs().map(|run| run.wall_s).sum::<f64>() * cores as f64;
        let others = runs().map(|run| run.others_cpu_s).sum::<f64>();
        let stolen = runs().map(|run| run.stolen_cpu_s).sum::<f64>();
        [others, stolen].map(|time| time / all.max(f64::MIN_POSITIVE))
    }
}

impl Report {
    /// Whether anybody failed or answered wrongly.
    pub fn any_void(&self) -> bool {
        let mut cells = self.queries.iter().flat_map(Asked::all_cells);
        cells.any(|cell| matches!(cell.outcome, Outcome::Void(_)))
    }

    pub fn as_markdown(&self) -> String {
        let mut text = format!(
            "# Group-by queries\n\nFiles of {} MiB of text each, cached. Medians of {} interleaved rounds; `x` is times as \
             long as the baseline took for the same file in the same round.\nHow it was measured: docs/benchmarks.md. All single runs: \
             [results.json](results.json).\n\n![Bars of the ratios](results.svg)\n",
            self.mebibytes, self.rounds
        );
        let floor = self.memory_floor_bytes;
        self.table("Time", true, &Cell::time, &mut text);
        let memory = |cell: &Cell| cell.memory(floor);
        self.table("Peak memory", true, &memory, &mut text);
        self.table("Sums that aren't exact", false, &Cell::inexact, &mut text);
        text += "\nAs printed: datamash prints 14 digits, and mawk is told to print two behind the point.\n";
        text += "\n## The queries\n\n";
        for asked in &self.queries {
            let groups = asked.groups().unwrap_or(0);
            let _ = writeln!(
                text,
                "{}. {} ({} MiB): {groups} groups",
                asked.number,
                asked.text,
                asked.file_bytes >> 20
            );
        }
        text += "\n## The runs\n\n";
        for asked in &self.queries {
            let [others, stolen] = asked.noise(self.machine.cores).map(|share| share * 100.0);
            let _ = writeln!(
                text,
                "- query {}: of the cores' time, others and the kernel's threads used {others:.1} %, the host took \
                 {stolen:.1} %",
                asked.number
            );
            if !asked.cached {
                let _ = writeln!(
                    text,
                    "- query {}: NOT PROVEN that the file was cached",
                    asked.number
                );
            }
            for cell in asked.all_cells() {
                if let Outcome::Void(why) = &cell.outcome {
                    let _ = writeln!(text, "- query {}: {}: VOID, {why}", asked.number, cell.tool);
                }
            }
        }
        text += "\n## The machine\n\n";
        let _ = writeln!(text, "- commit: {}", self.commit);
        for (name, value) in self.machine.facts() {
            let _ = writeln!(text, "- {name}: {value}");
        }
        for tool in self
            .tools
            .iter()
            .filter(|found| found.tool != Tool::Ringfold)
        {
            let _ = writeln!(text, "- {}: {}", tool.name, tool.version);
        }
        for left_out in &self.left_out {
            let _ = writeln!(text, "- left out: {left_out}");
        }
        text
    }

    /// A row a query, a column a tool, and one for the baselines where they are wanted.
    fn table(
        &self,
        heading: &str,
        baseline: bool,
        shown: &dyn Fn(&Cell) -> String,
        text: &mut String,
    ) {
        let Some(first) = self.queries.first() else {
            return;
        };
        let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let left_out = usize::from(!baseline);
        let tools = first.cells.iter().map(|cell| cell.tool);
        let names = iter::once("baseline").chain(tools).skip(left_out);
        let names: Vec<_> = names.map(String::from).collect();
        let _ = write!(text, "\n## {heading}\n\n");
        let rule = "--:|".repeat(names.len());
        *text += &row([vec!["query".into()], names].concat());
        *text += &format!("|---|{rule}\n");
        for asked in &self.queries {
            let cells = asked.all_cells().skip(left_out);
            let name = format!("{}. {}", asked.number, asked.name);
            *text += &row([vec![name], cells.map(shown).collect()].concat());
        }
    }
}
