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

/// The results side by side, each against the first. `names` are those of the files.
pub fn text(names: &[String], results: &[Results]) -> String {
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
            text += &format!("\n{}\n{}", case.title(), table(case, &cases));
        }
    }
    text
}

/// What is different about the machines, a line each.
fn differences(results: &[Results]) -> String {
    let facts: Vec<_> = results
        .iter()
        .map(|results| results.machine.facts())
        .collect();
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

fn table(case: &Case, others: &[Option<&Case>]) -> String {
    let mut header = vec![String::new(), "A GB/s".into(), "A median".into()];
    for letter in ('B'..).take(others.len()) {
        header.extend(["GB/s", "median", "time over A's", "95% interval", ""].map(
            |what| match what {
                "" | "95% interval" => what.to_string(),
                what => format!("{letter} {what}"),
            },
        ));
    }
    let mut rows = vec![header];
    for row in case.shown() {
        let Some(summary) = &row.summary else {
            continue;
        };
        let mut cells = vec![row.name.clone()];
        cells.extend([digits(summary.gb_per_s), seconds(summary.time_s.median)]);
        for other in others {
            let mut rows = other.iter().flat_map(|case| &case.rows);
            cells.extend(beside(row, rows.find(|other| other.name == row.name)));
        }
        rows.push(cells);
    }
    aligned(&rows)
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
            digits(summary.gb_per_s),
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
