//! Results as one page that needs nothing else: no script, no network. It is light, dark or on paper as its reader likes.

use std::fmt::Write;

use ringfold_read::internals::units;

use crate::measure::charts;
use crate::measure::figures::{digits, seconds};
use crate::measure::heat::Heat;
use crate::measure::machine::Machine;
use crate::measure::results::{Case, Results, Row, Run, Summary};
use crate::measure::statistics::{Interval, median};
use crate::measure::svg::escaped;
use crate::measure::table::all_ceilings;

/// How the page looks.
const STYLE: &str = include_str!("report.css");

/// The page.
pub fn page(results: &Results) -> String {
    let mut out = String::new();
    begin(&mut out, &format!("ringfold bench: {}", results.file.path));
    let _ = writeln!(out, "<p>{}.</p>", escaped(&results.headline()));
    if let Some(note) = &results.note {
        let _ = writeln!(out, "<p>{}</p>", escaped(note));
    }
    contents(&mut out, results);
    for (number, case) in results.cases.iter().enumerate() {
        of_case(&mut out, results, case, number);
    }
    machine(&mut out, results);
    out += "</main>\n</body>\n</html>\n";
    out
}

/// The page of a search: what it is, its heat map, what it shows, and where.
pub fn tuning(head: &str, heat: &Heat, told: &[String], facts: &Machine) -> String {
    let mut out = String::new();
    begin(&mut out, "ringfold tune");
    let _ = writeln!(out, "<p>{}.</p>", escaped(head));
    let caption = "The file's bytes over the default's median time, divided by the setting's time over the default's in the \
                   same round. Settings that were dropped early ran once or twice. * is the choice, = is as fast within \
                   noise.";
    let title = "Block size and reads in flight";
    figure(&mut out, &heat.picture(), title, caption);
    remarks(&mut out, told);
    out += "<section>\n<h2>The machine</h2>\n";
    list(&mut out, facts);
    out += "</section>\n</main>\n</body>\n</html>\n";
    out
}

/// A page up to its title.
fn begin(out: &mut String, title: &str) {
    let title = escaped(title);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n<h1>{title}</h1>\n"
    );
}

fn list(out: &mut String, machine: &Machine) {
    *out += "<dl>\n";
    for (name, value) in machine.facts() {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(&value));
    }
    *out += "</dl>\n";
}

fn contents(out: &mut String, results: &Results) {
    if results.cases.len() < 2 {
        return;
    }
    *out += "<ul class=\"contents\">\n";
    for (number, case) in results.cases.iter().enumerate() {
        let fastest = case
            .shown()
            .filter_map(|row| Some((row, row.summary.as_ref()?)));
        let fastest = fastest.max_by(|a, b| a.1.gib_per_s.total_cmp(&b.1.gib_per_s));
        let words = fastest.map_or(String::new(), |(row, summary)| {
            let rate = digits(summary.gib_per_s);
            format!(": {rate} GiB/s, the fastest is {}", escaped(&row.name))
        });
        let title = escaped(&case.title());
        let _ = writeln!(
            out,
            "<li><a href=\"#case-{number}\">{title}</a>{words}</li>"
        );
    }
    *out += "</ul>\n";
}

fn of_case(out: &mut String, results: &Results, case: &Case, number: usize) {
    let _ = writeln!(
        out,
        "<section>\n<h2 id=\"case-{number}\">{}</h2>\n<p>{}.</p>",
        escaped(&case.title()),
        sentence(case.state.meaning())
    );
    if let Some(picture) = charts::throughput(case, &results.ceilings) {
        let caption = "GiB/s at the median time; the thin line goes from the 95th percentile of the time to the 5th. In \
                       brackets the ratio of times. Dashed lines are ceilings from the same run.";
        figure(out, &picture, "Throughput", caption);
    }
    remarks(out, &case.remarks(results.machine.cores));
    numbers(out, case);
    counters(out, results, case);
    if let Some(picture) = charts::cpu(case) {
        let caption = "Processor time of the whole process, the median; in brackets its share of the time, 100% is one processor. Of \
                       ringfold by kind of thread.";
        figure(out, &picture, "Processor time", caption);
    }
    if let Some(picture) = charts::latency(case) {
        let caption = "From submission to completion, of reads through a ring or by read(), of the run nearest to the \
                       median: 50% (large), 90%, 99%, 99.9% and the longest. At the right 50% and 99%.";
        figure(out, &picture, "Latency of reads", caption);
    }
    let pictures = charts::depth(case);
    if !pictures.is_empty() {
        let grid = format!("<div class=\"grid-of-two\">\n{}</div>\n", pictures.concat());
        let caption =
            "Of the run nearest to the median, from its first submission to its last completion.";
        figure(out, &grid, "Reads in flight over time", caption);
    }
    if let Some(picture) = charts::order(case) {
        let caption = "Each run's time over its participant's median. Lines are levels that chance doesn't explain: more \
                       than one means that the machine or its drive changed meanwhile.";
        figure(out, &picture, "All runs in their order", caption);
    }
    *out += "</section>\n";
}

fn figure(out: &mut String, picture: &str, title: &str, caption: &str) {
    let _ = writeln!(
        out,
        "<figure>\n<h3>{title}</h3>\n{picture}<figcaption>{caption}</figcaption>\n</figure>"
    );
}

fn remarks(out: &mut String, remarks: &[String]) {
    *out += "<ul class=\"remarks\">\n";
    for remark in remarks {
        let _ = writeln!(out, "<li>{}</li>", escaped(remark));
    }
    *out += "</ul>\n";
}

/// A column of the table: its header, and the cell of a row.
type Column = (&'static str, fn(&Row, &Summary) -> String);

/// All figures of a case.
const COLUMNS: [Column; 15] = [
    ("GiB/s", |_, summary| digits(summary.gib_per_s)),
    ("million rows/s", |_, summary| {
        summary
            .rows_per_s
            .map_or(String::new(), |rows| digits(rows / 1e6))
    }),
    ("median", |_, summary| seconds(summary.time_s.median)),
    ("p5", |_, summary| seconds(summary.time_s.p5)),
    ("p95", |_, summary| seconds(summary.time_s.p95)),
    ("ratio", |_, summary| {
        summary
            .ratio
            .map_or(String::new(), |ratio| digits(ratio.median))
    }),
    ("95% interval", |_, summary| {
        let text = |ratio: Interval| format!("{} – {}", digits(ratio.low), digits(ratio.high));
        summary.ratio.map_or(String::new(), text)
    }),
    ("limit", |_, summary| {
        let shares = summary.bound.iter().flat_map(|bound| &bound.shares).take(2);
        let share = shares.map(|share| format!("{} {:.0}%", share.of.name(), share.share * 100.0));
        share.collect::<Vec<_>>().join(", ")
    }),
    ("user", |_, summary| seconds(summary.user_s)),
    ("system", |_, summary| seconds(summary.system_s)),
    ("memory", |_, summary| {
        let bytes = summary.peak_anonymous_bytes;
        bytes.map_or(String::new(), |bytes| format!("{} MiB", bytes >> 20))
    }),
    ("from the device", |_, summary| {
        format!("{:.0} MiB", summary.device_read_bytes / (1 << 20) as f64)
    }),
    ("faults", |row, _| {
        middle(row, |run| run.cost.minor_faults + run.cost.major_faults)
    }),
    ("switches", |row, _| {
        middle(row, |run| {
            run.cost.voluntary_switches + run.cost.involuntary_switches
        })
    }),
    ("ring / workers waited", |row, _| {
        let own = |run: &Run| run.own.clone();
        let waits = row.runs.iter().filter_map(own);
        let (ring, workers): (Vec<f64>, Vec<f64>) = waits
            .map(|own| (own.starved_s, own.workers_waited_s))
            .unzip();
        match (median(ring), median(workers)) {
            (Some(ring), Some(workers)) => format!("{} / {}", seconds(ring), seconds(workers)),
            _ => String::new(),
        }
    }),
];

/// The median of a count, in groups of digits.
fn middle(row: &Row, count: fn(&Run) -> u64) -> String {
    let counts = row.runs.iter().map(|run| count(run) as f64);
    median(counts).map_or(String::new(), |count| units::grouped(count as u64))
}

/// A table of rows that have their cells as HTML, the name first.
fn table(out: &mut String, class: &str, headers: &[&str], rows: impl Iterator<Item = String>) {
    let headers: Vec<_> = (headers.iter())
        .map(|header| format!("<th>{header}</th>"))
        .collect();
    let rows: Vec<_> = rows.map(|row| format!("<tr>{row}</tr>\n")).collect();
    let _ = write!(
        out,
        "<div class=\"{class}\"><table>\n<thead><tr><th></th>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>\n",
        headers.concat(),
        rows.concat()
    );
}

fn numbers(out: &mut String, case: &Case) {
    if case.rows.iter().all(|row| row.summary.is_none()) {
        return;
    }
    let rows = case.rows.iter().filter(|row| row.left_out.is_none());
    let rows = rows.map(|row| {
        let (command, name) = (escaped(&row.command.join(" ")), words(&row.name));
        let cells = match &row.summary {
            Some(summary) => COLUMNS
                .map(|(_, cell)| escaped(&unbroken(&cell(row, summary))))
                .map(|cell| format!("<td>{cell}</td>"))
                .concat(),
            None => format!(
                "<td class=\"failed\" colspan=\"{}\">FAILED</td>",
                COLUMNS.len()
            ),
        };
        format!("<th title=\"{command}\">{name}</th>{cells}")
    });
    table(out, "table wide", &COLUMNS.map(|(header, _)| header), rows);
}

/// A name whose lines break only between its words: browsers also break them after a dash.
fn words(name: &str) -> String {
    let words = name.split(' ');
    let words = words.map(|word| format!("<span>{}</span>", escaped(word)));
    words.collect::<Vec<_>>().join(" ")
}

/// A cell whose lines break only after a comma or a slash, and not between a number and its unit.
fn unbroken(cell: &str) -> String {
    let kept = cell.replace(' ', "\u{a0}");
    kept.replace(",\u{a0}", ", ").replace("/\u{a0}", "/ ")
}

/// What the processor counted, a byte of the file.
fn counters(out: &mut String, results: &Results, case: &Case) {
    let counted = case.shown().filter_map(|row| {
        let counted = row.summary.as_ref()?.counted?;
        Some((row, counted))
    });
    let counted: Vec<_> = counted.collect();
    let Some((_, first)) = counted.first() else {
        return;
    };
    let of = match first.with_kernel {
        true => "of user space and the kernel",
        false => "of user space only",
    };
    let _ = writeln!(out, "<h3>The processor's counters, {of}</h3>");
    let bytes = results.file.size_bytes as f64;
    let headers = [
        "cycles a byte",
        "instructions a byte",
        "instructions a cycle",
        "last-cache misses a KiB",
        "data-TLB misses a KiB",
    ];
    let rows = counted.iter().map(|(row, counted)| {
        let over = |count: Option<f64>, by: f64| {
            count.map_or(String::new(), |count| format!("{:.3}", count / by))
        };
        let cells = [
            over(counted.cycles, bytes),
            over(counted.instructions, bytes),
            over(counted.instructions, counted.cycles.unwrap_or(f64::NAN)),
            over(counted.llc_misses, bytes / 1024.0),
            over(counted.dtlb_misses, bytes / 1024.0),
        ];
        let cells = cells.map(|cell| format!("<td>{cell}</td>")).concat();
        format!("<th>{}</th>{cells}", escaped(&row.name))
    });
    table(out, "table", &headers, rows);
}

fn machine(out: &mut String, results: &Results) {
    *out += "<section>\n<h2>The machine</h2>\n";
    list(out, &results.machine);
    remarks(out, &all_ceilings(&results.ceilings));
    if let Some(picture) = charts::memory(&results.ceilings.memory, &results.ceilings) {
        let caption = "Threads sum buffers of their own that are larger than the caches. What looks at all bytes can't be \
                       faster.";
        figure(out, &picture, "Memory", caption);
    }
    checks(out, &results.probe);
    *out += "</section>\n";
}

/// What the probe finds good and bad here.
fn checks(out: &mut String, probe: &serde_json::Value) {
    let Some(checks) = probe["checks"]
        .as_array()
        .filter(|checks| !checks.is_empty())
    else {
        return;
    };
    *out += "<h3>What ringfold probe finds</h3>\n<ul class=\"remarks\">\n";
    for check in checks {
        let text = |name: &str| escaped(check[name].as_str().unwrap_or_default());
        let [mark, what, advice] = ["mark", "what", "advice"].map(text);
        let _ = writeln!(out, "<li>{mark}: {what}. {advice}</li>");
    }
    *out += "</ul>\n";
}

/// A text with a capital at its beginning.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
