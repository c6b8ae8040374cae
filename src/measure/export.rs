//! Results as files for others: CSV with a line a run, and Markdown. JSON is what they are serialised to.

use std::fmt::Write;

use ringfold_read::internals::units::GIB;

use crate::measure::counters::Counts;
use crate::measure::results::{Case, OwnStats, Results, Row, Run};
use crate::measure::table;

/// A run with what belongs to it.
struct Line<'a> {
    case: &'a Case,
    row: &'a Row,
    run: &'a Run,
    /// Its time over the baseline's in the same round.
    ratio: Option<f64>,
    size_bytes: u64,
}

impl Line<'_> {
    fn own<T: ToString>(&self, figure: impl Fn(&OwnStats) -> T) -> String {
        or_empty(self.run.own.as_ref().map(figure))
    }

    fn counted(&self, count: fn(Counts) -> Option<f64>) -> String {
        or_empty(self.run.cost.counted.and_then(count))
    }
}

/// A column of the CSV: its name, with the unit, and the cell of a run.
type Column = (&'static str, fn(&Line<'_>) -> String);

const COLUMNS: [Column; 34] = [
    ("job", |line| line.case.job.clone()),
    ("state", |line| line.case.state.name().into()),
    ("name", |line| line.row.name.clone()),
    ("command", |line| line.row.command.join(" ")),
    ("round", |line| line.run.round.to_string()),
    ("place", |line| line.run.place.to_string()),
    ("time_s", |line| line.run.cost.time_s().to_string()),
    ("wall_s", |line| line.run.cost.wall_s.to_string()),
    ("gib_per_s", |line| {
        (line.size_bytes as f64 / line.run.cost.time_s() / GIB).to_string()
    }),
    ("rows_per_s", |line| {
        let rows = line.run.own.as_ref().and_then(|own| own.rows);
        or_empty(rows.map(|rows| rows as f64 / line.run.cost.time_s()))
    }),
    ("user_s", |line| line.run.cost.user_s.to_string()),
    ("system_s", |line| line.run.cost.system_s.to_string()),
    ("peak_anonymous_bytes", |line| {
        or_empty(line.run.peak_anonymous_bytes())
    }),
    ("peak_memory_bytes", |line| {
        line.run.cost.peak_memory_bytes.to_string()
    }),
    ("minor_faults", |line| {
        line.run.cost.minor_faults.to_string()
    }),
    ("major_faults", |line| {
        line.run.cost.major_faults.to_string()
    }),
    ("voluntary_switches", |line| {
        line.run.cost.voluntary_switches.to_string()
    }),
    ("involuntary_switches", |line| {
        line.run.cost.involuntary_switches.to_string()
    }),
    ("device_read_bytes", |line| {
        line.run.cost.device_read_bytes.to_string()
    }),
    ("others_cpu_s", |line| {
        line.run.cost.others_cpu_s.to_string()
    }),
    ("stolen_cpu_s", |line| {
        line.run.cost.stolen_cpu_s.to_string()
    }),
    ("resident_share", |line| line.run.resident_share.to_string()),
    ("engine", |line| line.own(|own| own.engine.clone())),
    ("reads", |line| line.own(|own| own.reads)),
    ("block_size", |line| line.own(|own| own.block_size)),
    ("max_in_flight", |line| line.own(|own| own.max_in_flight)),
    ("starved_s", |line| line.own(|own| own.starved_s)),
    ("workers_waited_s", |line| {
        line.own(|own| own.workers_waited_s)
    }),
    ("read_latency_p99_us", |line| {
        let latency = line
            .run
            .own
            .as_ref()
            .and_then(|own| own.figures.read_latency);
        or_empty(latency.map(|latency| latency.p99_us))
    }),
    ("cycles", |line| line.counted(|counted| counted.cycles)),
    ("instructions", |line| {
        line.counted(|counted| counted.instructions)
    }),
    ("llc_misses", |line| {
        line.counted(|counted| counted.llc_misses)
    }),
    ("dtlb_misses", |line| {
        line.counted(|counted| counted.dtlb_misses)
    }),
    ("ratio", |line| or_empty(line.ratio)),
];

/// A line for each run, after a header.
pub fn csv(results: &Results) -> String {
    let mut text = COLUMNS.map(|(name, _)| name).join(",") + "\n";
    for case in &results.cases {
        let baseline = case.baseline(results.settings.baseline.as_deref());
        for row in &case.rows {
            for run in &row.runs {
                let line = Line {
                    case,
                    row,
                    run,
                    ratio: baseline.and_then(|row| run.ratio(&row.runs)),
                    size_bytes: results.file.size_bytes,
                };
                let cells = COLUMNS.map(|(_, cell)| quoted(&cell(&line)));
                text += &(cells.join(",") + "\n");
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
