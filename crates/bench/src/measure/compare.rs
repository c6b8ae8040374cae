//! Results of several calls side by side: machines, kernels or settings.
//!
//! Nothing was run in turns here, so a ratio is that of two medians, and its interval comes from drawing both samples
//! again.

use unicode_width::UnicodeWidthStr;

use crate::measure::figures::{digits, seconds};
use crate::measure::results::{Case, Results, Row};
use crate::measure::statistics::Interval;

/// Between two columns.
const GAP: usize = 2;

/// The results side by side, each against the first, in tables of `width` columns if that can be had. `names` are those
/// of the files.
pub fn text(names: &[String], results: &[Results], width: usize) -> String {
    let mut text = String::new();
    for (letter, (name, results)) in ('A'..).zip(names.iter().zip(results)) {
        text += &format!("{letter}: {name}: {}\n", results.headline());
        if let Some(note) = &results.note {
            text += &format!("   {note}\n");
        }
    }
    text += &differences(results);
    let Some((first, others)) = results.split_first() else {
        return text;
    };
    for case in &first.cases {
        let same = |case: &Case, other: &Case| (&case.job, case.state) == (&other.job, other.state);
        let cases: Vec<Option<&Case>> = others
            .iter()
            .map(|results| results.cases.iter().find(|other| same(case, other)))
            .collect();
        if case.shown().any(|row| row.summary.is_some()) && cases.iter().any(Option::is_some) {
            text += &format!("\n{}\n{}", case.title(), table(case, &cases, width));
        }
    }
    text
}

/// What is different about the machines, a line each.
fn differences(results: &[Results]) -> String {
    let facts = results.iter().map(|results| results.machine.facts());
    let facts: Vec<_> = facts.collect();
    let Some(first) = facts.first() else {
        return String::new();
    };
    let mut text = String::new();
    for (at, (name, value)) in first.iter().enumerate() {
        let values = || facts.iter().filter_map(|facts| facts.get(at));
        if *name != "load before" && values().any(|(_, other)| other != value) {
            text += &format!("{name}:\n");
            for (letter, (_, value)) in ('A'..).zip(values()) {
                text += &format!("   {letter}: {value}\n");
            }
        }
    }
    text
}

/// How early each column gives way where there is no room, the highest first; 0 never does. First those of A, then those
/// of each other: ratio and verdict stay.
const GIVES_WAY: ([u8; 3], [u8; 5]) = ([0, 3, 2], [3, 2, 0, 1, 0]);

fn table(case: &Case, others: &[Option<&Case>], width: usize) -> String {
    let mut header = vec![String::new(), "A GiB/s".into(), "A median".into()];
    for letter in ('B'..).take(others.len()) {
        header.extend(
            ["GiB/s", "median", "time over A's", "95% interval", ""].map(|what| match what {
                "" | "95% interval" => what.to_string(),
                what => format!("{letter} {what}"),
            }),
        );
    }
    let mut rows = vec![header];
    for row in case.shown() {
        let Some(summary) = &row.summary else {
            continue;
        };
        let mut cells = vec![row.name.clone()];
        cells.extend([digits(summary.gib_per_s), seconds(summary.time_s.median)]);
        for other in others {
            let mut rows = other.iter().flat_map(|case| &case.rows);
            cells.extend(beside(row, rows.find(|other| other.name == row.name)));
        }
        rows.push(cells);
    }
    let of_others = std::iter::repeat_n(GIVES_WAY.1, others.len()).flatten();
    let ranks: Vec<u8> = GIVES_WAY.0.into_iter().chain(of_others).collect();
    let mut most = GIVES_WAY.0[1];
    loop {
        let kept = |row: &Vec<String>| -> Vec<String> {
            let cells = row.iter().zip(&ranks).filter(|(_, rank)| **rank <= most);
            cells.map(|(cell, _)| cell.clone()).collect()
        };
        let text = aligned(&rows.iter().map(kept).collect::<Vec<_>>());
        if most == 0 || text.lines().all(|line| line.width() <= width) {
            return text;
        }
        most -= 1;
    }
}

/// The cells of another file's row.
fn beside(row: &Row, other: Option<&Row>) -> [String; 5] {
    let times = |row: &Row| -> Vec<f64> { row.runs.iter().map(|run| run.cost.time_s()).collect() };
    let found = other.and_then(|other| {
        let summary = other.summary.as_ref()?;
        Some((summary, Interval::of_ratio(&times(other), &times(row))?))
    });
    match found {
        None => Default::default(),
        Some((summary, ratio)) => [
            digits(summary.gib_per_s),
            seconds(summary.time_s.median),
            format!("{}x", digits(ratio.median)),
            format!("{} - {}", digits(ratio.low), digits(ratio.high)),
            verdict(ratio).into(),
        ],
    }
}

/// What an interval of ratios says.
fn verdict(ratio: Interval) -> &'static str {
    match ratio {
        ratio if ratio.high < 1.0 => "faster",
        ratio if ratio.low > 1.0 => "slower",
        _ => "no difference shown",
    }
}

/// Columns aligned: the first and words to the left, figures to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.width()).max().unwrap_or(0)
    };
    let mut text = String::new();
    for row in rows {
        let mut line = String::from("  ");
        for (column, cell) in row.iter().enumerate().take(columns) {
            let space = width(column) - cell.width();
            let is_text = column == 0 || cell.starts_with(|c: char| c.is_ascii_lowercase());
            line += &match is_text {
                true => format!("{cell}{:space$}{:GAP$}", "", ""),
                false => format!("{:space$}{cell}{:GAP$}", "", ""),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::measure::cache::State;
    use crate::measure::compare::*;
    use crate::measure::participant::Kind;
    use crate::measure::results::Summary;

    /// A case of one row whose runs took a second.
    fn case() -> Case {
        let summary: Summary = serde_json::from_value(serde_json::json!({
            "time_s": {"median": 1.0, "p5": 1.0, "p95": 1.0, "min": 1.0, "max": 1.0},
            "gib_per_s": 1.0, "user_s": 0.0, "system_s": 0.0, "cpu_s": 0.0, "peak_memory_bytes": 0, "device_read_bytes": 0.0,
        }))
        .unwrap();
        Case {
            job: "count".into(),
            state: State::Cached,
            impossible: None,
            resident_share: None,
            discarded_runs: 0,
            rows: vec![Row {
                name: "uring buffered".into(),
                kind: Kind::Ringfold,
                command: Vec::new(),
                left_out: None,
                failed: None,
                summary: Some(summary),
                runs: Vec::new(),
            }],
            phases: Vec::new(),
        }
    }

    #[test]
    fn columns_give_way_where_there_is_no_room() {
        let case = case();
        let at = |width| table(&case, &[Some(&case)], width);
        let widest = |text: &str| text.lines().map(|line| line.width()).max().unwrap();
        let whole = at(200);
        assert!(
            whole.contains("A GiB/s") && whole.contains("95% interval"),
            "{whole}"
        );
        let full = widest(&whole);
        for width in [full, full - 1, 60, 50] {
            let text = at(width);
            assert!(widest(&text) <= width, "{width}: {text}");
            assert!(text.contains("B time over A's"), "{text}");
        }
        assert!(!at(full - 1).contains("GiB/s") && at(full - 1).contains("A median"));
        assert!(at(1).contains("B time over A's") && !at(1).contains("interval"));
    }
}
