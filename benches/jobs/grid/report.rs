//! The rows of the grid in Markdown and JSON.

use std::fmt::Write;

use ringfold::internals::figures::{bare, digits};
use ringfold::internals::machine::Machine;
use ringfold::internals::statistics::Interval;
use serde::{Serialize, Serializer};

/// All that was measured, and of what.
#[derive(Serialize)]
pub struct Report {
    pub commit: String,
    pub machine: Machine,
    pub mebibytes: u64,
    pub rounds: usize,
    pub peers: Vec<String>,
    pub rows: Vec<Row>,
}

/// A departure.
#[derive(Serialize)]
pub struct Row {
    pub number: usize,
    pub part: &'static str,
    pub name: &'static str,
    pub flags: String,
    /// The most that it may cost; infinite where its answer is larger than the plainest query's.
    #[serde(serialize_with = "finite")]
    pub limit: f64,
    pub measured: Result<Measured, String>,
}

/// What a departure costs.
#[derive(Serialize)]
pub struct Measured {
    /// Processor time over that of the plainest query, in pairs.
    pub ratio: Interval,
    pub wall_s: f64,
    pub processor_s: f64,
    pub peak_memory_bytes: u64,
    pub peers: Vec<Beside>,
}

/// Another program, asked the same.
#[derive(Serialize)]
pub struct Beside {
    pub name: &'static str,
    /// Without the interpreter's start.
    pub wall_s: f64,
    /// Our wall time over its.
    pub ratio: f64,
}

fn finite<S: Serializer>(limit: &f64, to: S) -> Result<S::Ok, S::Error> {
    limit.is_finite().then_some(*limit).serialize(to)
}

impl Measured {
    /// The fastest of the others.
    pub fn better(&self) -> Option<&Beside> {
        self.peers
            .iter()
            .max_by(|one, other| one.ratio.total_cmp(&other.ratio))
    }
}

impl Row {
    /// Whether it costs more than it may.
    pub fn is_over(&self) -> bool {
        matches!(&self.measured, Ok(measured) if measured.ratio.median > self.limit)
    }

    /// Its row of the table.
    pub fn line(&self) -> String {
        let Row { number, part, .. } = self;
        // A pattern has the byte that ends a cell.
        let name = self.name.replace('|', "\\|");
        let measured = match &self.measured {
            Ok(measured) => measured,
            Err(why) => return format!("| {number} | {part} | {name} | VOID: {why} | | | | | |"),
        };
        let limit = match self.limit.is_finite() {
            true => digits(self.limit),
            false => String::new(),
        };
        let over = if self.is_over() { " **over**" } else { "" };
        let peers = |name| match measured.peers.iter().find(|peer| peer.name == name) {
            Some(peer) => format!("{} ({} s)", digits(peer.ratio), bare(peer.wall_s)),
            None => String::new(),
        };
        format!(
            "| {number} | {part} | {name} | {} ({} - {}){over} | {limit} | {} | {} | {} | {} |",
            digits(measured.ratio.median),
            digits(measured.ratio.low),
            digits(measured.ratio.high),
            bare(measured.wall_s),
            measured.peak_memory_bytes >> 20,
            peers("DuckDB"),
            peers("Polars"),
        )
    }
}

impl Report {
    pub fn as_markdown(&self) -> String {
        let mut text = format!(
            "Departures from the plainest query of each format: processor time as a multiple of it (interval of 95%), the most \
             that it may be, wall time, peak memory, and wall time over that of others without their start.\n\n\
             Files of {} MiB, cached; {} interleaved rounds after one that warms up; answers compared; {}; commit {}.\n\n",
            self.mebibytes,
            self.rounds,
            match &self.peers[..] {
                [] => "no peers".into(),
                peers => peers.join(", "),
            },
            self.commit
        );
        for (name, value) in self.machine.facts() {
            // A string takes any text.
            let _ = writeln!(text, "- {name}: {value}");
        }
        text += "\n| | part | departure | times the plainest | limit | wall s | MiB | over DuckDB | over Polars |\n\
                 |--:|---|---|--:|--:|--:|--:|--:|--:|\n";
        for row in &self.rows {
            text += &(row.line() + "\n");
        }
        text
    }

    pub fn as_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}
