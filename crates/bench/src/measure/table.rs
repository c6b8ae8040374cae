//! A case as a table: on a terminal as wide as that is, with bars; or in Markdown.

use ringfold_read::internals::units::counted;
use unicode_width::UnicodeWidthStr;

use crate::measure::figures::{bare, digits, seconds};
use crate::measure::limits::Ceilings;
use crate::measure::results::{Case, Row, Summary};

/// Columns of a bar, at least and at most.
const BAR_MIN: usize = 8;
const BAR_MAX: usize = 30;
/// The narrowest name; longer ones are cut.
const NAME_MIN: usize = 8;
/// Between two columns.
const GAP: usize = 2;

/// A column: its cells, and how early it gives way where there is no room.
struct Column {
    header: &'static str,
    cells: Vec<String>,
    /// The highest gives way first; 0 never does.
    gives_way: u8,
}

impl Column {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.width());
        cells.chain([self.header.width()]).max().unwrap_or(0)
    }
}

/// The table of a case, in lines of at most `width` columns. Where no column can be spared, names are cut.
pub fn terminal(case: &Case, width: usize) -> String {
    let rows: Vec<&Row> = case.shown().filter(|row| row.left_out.is_none()).collect();
    let mut columns = columns(&rows);
    let names: Vec<&str> = rows.iter().map(|row| &*row.name).collect();
    let longest = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let taken =
        |columns: &[Column]| -> usize { columns.iter().map(|column| column.width() + GAP).sum() };
    let indent = 2;
    // A short bar counts for more than columns that the exports have.
    while indent + longest + GAP + BAR_MIN + taken(&columns) > width {
        let next = (0..columns.len()).max_by_key(|&at| columns[at].gives_way);
        match next.filter(|&at| columns[at].gives_way > 0) {
            Some(at) => drop(columns.remove(at)),
            None => break,
        }
    }
    let room = width.saturating_sub(indent + taken(&columns));
    let name_width = longest.min(room.max(NAME_MIN));
    let bar = room.saturating_sub(name_width + GAP).min(BAR_MAX);
    let bar = if bar < BAR_MIN { 0 } else { bar };
    let mut text = String::new();
    let mut line = |name: &str, drawn: &str, cell: &dyn Fn(&Column) -> String| {
        let name = padded(&cut(name, name_width), name_width);
        let mut line = format!("{:indent$}{name}", "");
        if bar > 0 {
            line += &format!("{:GAP$}{}", "", padded(drawn, bar));
        }
        for column in &columns {
            let cell = cell(column);
            let space = GAP + column.width() - cell.width();
            line += &format!("{:space$}{cell}", "");
        }
        text += line.trim_end();
        text.push('\n');
    };
    line("", "", &|column| column.header.to_string());
    let rate = |row: &Row| row.summary.as_ref().map_or(0.0, |own| own.gib_per_s);
    let rates = rows.iter().map(|row| rate(row));
    let fastest = rates.fold(f64::MIN_POSITIVE, f64::max);
    for (at, row) in rows.iter().enumerate() {
        let drawn = drawn(rate(row) / fastest, bar);
        line(&row.name, &drawn, &|column| column.cells[at].clone());
    }
    text
}

/// The table of a case in Markdown.
pub fn markdown(case: &Case) -> String {
    let rows: Vec<&Row> = case.shown().filter(|row| row.left_out.is_none()).collect();
    let columns = columns(&rows);
    let headers: Vec<_> = columns.iter().map(|column| column.header).collect();
    let mut text = format!("| | {} |\n|---|", headers.join(" | "));
    text += &"--:|".repeat(columns.len());
    text.push('\n');
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<_> = columns.iter().map(|column| &*column.cells[at]).collect();
        let name = row.name.replace('|', "\\|");
        text += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    text
}

/// The rates that limit all results, in a line.
pub fn ceilings(ceilings: &Ceilings) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(device) = ceilings.device_gib_per_s {
        parts.push(format!("device {} GiB/s", digits(device.median)));
    }
    if let Some(copy) = ceilings.page_cache_copy_gib_per_s {
        let rate = digits(copy.median);
        parts.push(format!("copying from the page cache {rate} GiB/s"));
    }
    let rates = ceilings.memory.iter().map(|rate| {
        let threads = counted(rate.threads as u64, "thread");
        format!("{} GiB/s with {threads}", digits(rate.gib_per_s))
    });
    let rates: Vec<String> = rates.collect();
    if !rates.is_empty() {
        parts.push(format!("memory {}", rates.join(", ")));
    }
    (!parts.is_empty()).then(|| format!("Ceilings: {}.", parts.join("; ")))
}

/// The same, and what wasn't measured: a line each.
pub fn all_ceilings(ceilings: &Ceilings) -> Vec<String> {
    let missing = ceilings.missing.iter();
    let missing = missing.map(|missing| format!("Not measured: {missing}."));
    self::ceilings(ceilings)
        .into_iter()
        .chain(missing)
        .collect()
}

fn columns(rows: &[&Row]) -> Vec<Column> {
    let cells = |cell: &dyn Fn(&Summary) -> String| -> Vec<String> {
        let cell = |row: &&Row| row.summary.as_ref().map_or(String::new(), cell);
        rows.iter().map(cell).collect()
    };
    let column = |header, gives_way, cell: &dyn Fn(&Summary) -> String| Column {
        header,
        cells: cells(cell),
        gives_way,
    };
    let mut time = column("median", 0, &|summary| seconds(summary.time_s.median));
    for (cell, row) in time.cells.iter_mut().zip(rows) {
        if row.failed.is_some() {
            *cell = "FAILED".into();
        }
    }
    vec![
        column("GiB/s", 0, &|summary| digits(summary.gib_per_s)),
        time,
        column("p5 - p95", 5, &|summary| {
            let spread = summary.time_s;
            format!("{} - {}", bare(spread.p5), seconds(spread.p95))
        }),
        column("ratio", 1, &|summary| {
            summary
                .ratio
                .map_or(String::new(), |ratio| format!("{}x", digits(ratio.median)))
        }),
        column("95% interval", 2, &|summary| {
            let ratio = summary
                .ratio
                .filter(|ratio| (ratio.low, ratio.high) != (1.0, 1.0));
            ratio.map_or(String::new(), |ratio| {
                format!("{} - {}", digits(ratio.low), digits(ratio.high))
            })
        }),
        column("CPU", 4, &|summary| seconds(summary.cpu_s)),
        column("memory", 6, &|summary| {
            let bytes = summary.peak_anonymous_bytes;
            bytes.map_or(String::new(), |bytes| format!("{} MiB", bytes >> 20))
        }),
        column("limit", 3, &|summary| {
            let bound = summary.bound.as_ref();
            bound.map_or(String::new(), |bound| {
                let share = bound.shares.first().map_or(0.0, |share| share.share);
                format!("{} {:.0}%", bound.by.name(), share * 100.0)
            })
        }),
    ]
}

/// A bar of at most `width` columns, to an eighth of one.
fn drawn(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

fn padded(text: &str, width: usize) -> String {
    let space = width.saturating_sub(text.width());
    format!("{text}{:space$}", "")
}

/// A text of at most `width` columns.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.into();
    }
    let mut cut = String::new();
    for letter in text.chars() {
        if cut.width() + 2 > width {
            break;
        }
        cut.push(letter);
    }
    cut + "…"
}

#[cfg(test)]
mod tests {
    use crate::measure::cache::State;
    use crate::measure::participant::Kind;
    use crate::measure::process::Cost;
    use crate::measure::results::Run;
    use crate::measure::table::*;

    fn case() -> Case {
        let run = |round, wall_s| Run {
            round,
            place: round,
            resident_share: 0.0,
            own: None,
            cost: Cost {
                wall_s,
                own_clock_s: None,
                user_s: wall_s / 2.0,
                system_s: 0.25,
                peak_memory_bytes: 3_000_000,
                peak_anonymous_bytes: Some(2_000_000),
                minor_faults: 1,
                major_faults: 0,
                voluntary_switches: 2,
                involuntary_switches: 0,
                device_read_bytes: 0,
                counted: None,
                others_cpu_s: 0.0,
                stolen_cpu_s: 0.0,
            },
        };
        let row = |name: &str, seconds: [f64; 3]| Row {
            name: name.into(),
            kind: Kind::Command,
            command: vec![name.into()],
            left_out: None,
            failed: None,
            summary: None,
            runs: (1..)
                .zip(seconds)
                .map(|(round, seconds)| run(round, seconds))
                .collect(),
        };
        let mut case = Case {
            job: "count".into(),
            state: State::Cold,
            impossible: None,
            resident_share: None,
            discarded_runs: 0,
            rows: vec![
                row("first", [1.0, 2.0, 3.0]),
                row("a name|that is long", [4.0, 4.0, 4.0]),
            ],
            phases: Vec::new(),
        };
        case.summarise(2_000_000_000, None);
        case
    }

    #[test]
    fn it_is_as_wide_as_the_terminal_allows() {
        let case = case();
        let wide = terminal(&case, 150);
        let first = wide.lines().nth(1).unwrap();
        assert!(first.contains("██████"), "{wide}");
        for cell in [
            "0.93",
            "2.000 s",
            "1.100 - 2.900 s",
            "1.00x",
            "1.250 s",
            "1 MiB",
        ] {
            assert!(first.contains(cell), "{cell}: {wide}");
        }
        let second = wide.lines().nth(2).unwrap();
        assert!(
            second.contains("2.00x") && second.contains("1.33 - 4.00"),
            "{wide}"
        );
        for width in 31..200 {
            let text = terminal(&case, width);
            assert!(
                text.lines().all(|line| line.width() <= width),
                "{width}:\n{text}"
            );
            assert!(text.contains("2.000 s"), "{text}");
        }
        assert!(terminal(&case, 31).contains("a name…") || terminal(&case, 31).contains('…'));
    }

    #[test]
    fn markdown_has_a_cell_for_each_column() {
        let text = markdown(&case());
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        let mut lines = text.lines();
        let header = cells(lines.next().unwrap());
        assert!(lines.all(|line| cells(line) == header), "{text}");
        assert!(text.contains("a name\\|that is long"), "{text}");
    }

    #[test]
    fn bars_end_at_an_eighth_of_a_column() {
        assert_eq!(drawn(0.5, 3), "█▌");
        assert_eq!(drawn(2.0, 2), "██");
        assert_eq!(drawn(0.0, 2), "");
    }
}
