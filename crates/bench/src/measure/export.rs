//! Results as files for others: CSV with a line a run, and Markdown. JSON is what they are serialised to.

use std::fmt::Write;

use ringfold_read::internals::units::GIB;
use serde_json::Value;

use self::Cell::{At, Computed};
use crate::measure::results::{Case, Results, Row, Run};
use crate::measure::table;

/// A run with what belongs to it.
struct Line<'a> {
    case: &'a Case,
    row: &'a Row,
    run: &'a Run,
    json: Value,
    /// Its time over the baseline's in the same round.
    ratio: Option<f64>,
    size_bytes: u64,
}

/// A cell of the CSV.
enum Cell {
    /// What the JSON of the run has at this place.
    At(&'static str),
    Computed(fn(&Line<'_>) -> String),
}

/// The names of the columns, with the unit, and their cells.
const COLUMNS: [(&str, Cell); 34] = [
    ("job", Computed(|line| line.case.job.clone())),
    ("state", Computed(|line| line.case.state.name().into())),
    ("name", Computed(|line| line.row.name.clone())),
    ("command", Computed(|line| line.row.command.join(" "))),
    ("round", At("/round")),
    ("place", At("/place")),
    ("time_s", Computed(|line| line.time_s().to_string())),
    ("wall_s", At("/wall_s")),
    (
        "gib_per_s",
        Computed(|line| (line.size_bytes as f64 / line.time_s() / GIB).to_string()),
    ),
    (
        "rows_per_s",
        Computed(|line| {
            let rows = line.run.own.as_ref().and_then(|own| own.rows);
            or_empty(rows.map(|rows| rows as f64 / line.time_s()))
        }),
    ),
    ("user_s", At("/user_s")),
    ("system_s", At("/system_s")),
    (
        "peak_anonymous_bytes",
        Computed(|line| or_empty(line.run.peak_anonymous_bytes())),
    ),
    ("peak_memory_bytes", At("/peak_memory_bytes")),
    ("minor_faults", At("/minor_faults")),
    ("major_faults", At("/major_faults")),
    ("voluntary_switches", At("/voluntary_switches")),
    ("involuntary_switches", At("/involuntary_switches")),
    ("device_read_bytes", At("/device_read_bytes")),
    ("others_cpu_s", At("/others_cpu_s")),
    ("stolen_cpu_s", At("/stolen_cpu_s")),
    ("resident_share", At("/resident_share")),
    ("engine", At("/own/engine")),
    ("reads", At("/own/reads")),
    ("block_size", At("/own/block_size")),
    ("max_in_flight", At("/own/max_in_flight")),
    ("starved_s", At("/own/starved_s")),
    ("workers_waited_s", At("/own/workers_waited_s")),
    ("read_latency_p99_us", At("/own/read_latency/p99_us")),
    ("cycles", At("/counted/cycles")),
    ("instructions", At("/counted/instructions")),
    ("llc_misses", At("/counted/llc_misses")),
    ("dtlb_misses", At("/counted/dtlb_misses")),
    ("ratio", Computed(|line| or_empty(line.ratio))),
];

impl Line<'_> {
    fn time_s(&self) -> f64 {
        self.run.cost.time_s()
    }

    fn cell(&self, cell: &Cell) -> String {
        let place = match cell {
            Computed(text) => return text(self),
            At(place) => place,
        };
        match self.json.pointer(place) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            // Without the `.0` of a whole number.
            Some(Value::Number(number)) if number.is_f64() => or_empty(number.as_f64()),
            Some(other) => other.to_string(),
        }
    }
}

/// A line for each run, after a header.
pub fn csv(results: &Results) -> String {
    let mut text = COLUMNS.each_ref().map(|(name, _)| *name).join(",") + "\n";
    for case in &results.cases {
        let baseline = case.baseline(results.settings.baseline.as_deref());
        for row in &case.rows {
            for run in &row.runs {
                let line = Line {
                    case,
                    row,
                    run,
                    json: serde_json::to_value(run).expect("plain values"),
                    ratio: baseline.and_then(|row| run.ratio(&row.runs)),
                    size_bytes: results.file.size_bytes,
                };
                let cells = COLUMNS.iter().map(|(_, cell)| quoted(&line.cell(cell)));
                text += &(cells.collect::<Vec<_>>().join(",") + "\n");
            }
        }
    }
    text
}

fn or_empty(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.into(),
    }
}

/// All tables with what has to be known beside them.
pub fn markdown(results: &Results) -> String {
    let mut text = format!("# Results\n\n{}.\n", results.headline());
    if let Some(note) = &results.note {
        let _ = writeln!(text, "\n{note}");
    }
    if let Some(ceilings) = table::ceilings(&results.ceilings) {
        let _ = writeln!(text, "\n{ceilings}");
    }
    for case in &results.cases {
        let _ = write!(text, "\n## {}\n\n", case.title());
        if case.impossible.is_none() {
            text += &table::markdown(case);
        }
        for remark in case.remarks(results.machine.cores) {
            let _ = write!(text, "\n{remark}\n");
        }
    }
    text += "\n## The machine\n\n";
    for (name, value) in results.machine.facts() {
        let _ = writeln!(text, "- {name}: {value}");
    }
    for missing in &results.ceilings.missing {
        let _ = writeln!(text, "- not measured: {missing}");
    }
    text
}
