//! Results as files for others: CSV with a line a run, and Markdown. JSON is what they are serialised to.

use std::fmt::Write;

use crate::measure::results::{Results, Row, Run};
use crate::measure::table;
use crate::units::GIB;

/// The columns of the CSV. Units are in the names.
const COLUMNS: [&str; 34] = [
    "job",
    "state",
    "name",
    "command",
    "round",
    "place",
    "time_s",
    "wall_s",
    "gib_per_s",
    "rows_per_s",
    "user_s",
    "system_s",
    "peak_anonymous_bytes",
    "peak_memory_bytes",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
    "device_read_bytes",
    "others_cpu_s",
    "stolen_cpu_s",
    "resident_share",
    "engine",
    "reads",
    "block_size",
    "max_in_flight",
    "starved_s",
    "workers_waited_s",
    "read_latency_p99_us",
    "cycles",
    "instructions",
    "llc_misses",
    "dtlb_misses",
    "ratio",
];

/// A line for each run, after a header.
pub fn csv(results: &Results) -> String {
    let mut text = COLUMNS.join(",") + "\n";
    for case in &results.cases {
        let baseline = results.settings.baseline.as_deref();
        let named = baseline.and_then(|name| case.shown().find(|row| row.name == name));
        let first = || case.shown().find(|row| row.summary.is_some());
        let baseline = named.or_else(first);
        for row in &case.rows {
            for run in &row.runs {
                let same = |other: &&Run| other.round == run.round;
                let other = baseline.and_then(|row| row.runs.iter().find(same));
                let ratio = other.map(|other| run.cost.time_s() / other.cost.time_s());
                let before = [case.job.clone(), case.state.name().into()];
                let cells = before
                    .into_iter()
                    .chain(cells(row, run, results.file.size_bytes))
                    .chain([or_empty(ratio)]);
                let cells: Vec<_> = cells.map(|cell| quoted(&cell)).collect();
                text += &(cells.join(",") + "\n");
            }
        }
    }
    text
}

fn cells(row: &Row, run: &Run, size_bytes: u64) -> [String; 31] {
    let (cost, own) = (&run.cost, run.own.as_ref());
    let (time, counted) = (cost.time_s(), cost.counted);
    let rows = own.and_then(|own| own.rows).map(|rows| rows as f64 / time);
    [
        row.name.clone(),
        row.command.join(" "),
        run.round.to_string(),
        run.place.to_string(),
        time.to_string(),
        cost.wall_s.to_string(),
        (size_bytes as f64 / time / GIB).to_string(),
        or_empty(rows),
        cost.user_s.to_string(),
        cost.system_s.to_string(),
        or_empty(
            own.and_then(|own| own.peak_anonymous_bytes)
                .or(cost.peak_anonymous_bytes),
        ),
        cost.peak_memory_bytes.to_string(),
        cost.minor_faults.to_string(),
        cost.major_faults.to_string(),
        cost.voluntary_switches.to_string(),
        cost.involuntary_switches.to_string(),
        cost.device_read_bytes.to_string(),
        cost.others_cpu_s.to_string(),
        cost.stolen_cpu_s.to_string(),
        run.resident_share.to_string(),
        own.map_or(String::new(), |own| own.engine.clone()),
        or_empty(own.map(|own| own.reads)),
        or_empty(own.map(|own| own.block_size)),
        or_empty(own.map(|own| own.max_in_flight)),
        or_empty(own.map(|own| own.starved_s)),
        or_empty(own.map(|own| own.workers_waited_s)),
        or_empty(own.and_then(|own| Some(own.seen.read_latency?.p99_us))),
        or_empty(counted.and_then(|counted| counted.cycles)),
        or_empty(counted.and_then(|counted| counted.instructions)),
        or_empty(counted.and_then(|counted| counted.llc_misses)),
        or_empty(counted.and_then(|counted| counted.dtlb_misses)),
    ]
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
