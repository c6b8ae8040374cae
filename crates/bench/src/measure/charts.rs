//! Pictures of a case: throughput with its spread and ceilings, processor time, latency of reads, reads in flight over
//! time, all runs in order; and of the machine: memory's rate by threads.

use crate::measure::cache::State;
use crate::measure::figures::{digits, seconds};
use crate::measure::limits::{Ceilings, MemoryRate};
use crate::measure::participant::Kind;
use crate::measure::reads::{InFlight, Latency};
use crate::measure::results::{Case, Row, Run, Summary};
use crate::measure::statistics::median;
use crate::measure::svg::{Svg, ticks};
use crate::measure::table::cut;

/// Full width, where bars begin and end, and the height of a row with its bar.
const WIDTH: f64 = 900.0;
const FROM: f64 = 230.0;
const TO: f64 = 740.0;
const ROW: f64 = 28.0;
const BAR: f64 = 16.0;
/// Below the last row: the axis and its numbers.
const AXIS: f64 = 34.0;
/// A line of labels.
const LINE: f64 = 16.0;
/// A ceiling further away than so many times the fastest result isn't drawn: it doesn't matter.
const NEAR: f64 = 2.5;
/// Columns of a name that fit before its bar.
const NAME: usize = 32;

/// Rows with figures, ceilings left out.
fn measured(case: &Case) -> Vec<(&Row, &Summary)> {
    let with_summary = |row| Some((row, Row::summary(row)?));
    case.shown().filter_map(with_summary).collect()
}

impl Row {
    fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The run whose time is nearest to the median.
    fn typical(&self) -> Option<&Run> {
        let middle = self.summary.as_ref()?.time_s.median;
        let off = |run: &&Run| (run.cost.time_s() - middle).abs();
        self.runs.iter().min_by(|a, b| off(a).total_cmp(&off(b)))
    }
}

/// Bars of GiB/s with whiskers, and lines where no result can go beyond.
pub fn throughput(case: &Case, ceilings: &Ceilings) -> Option<String> {
    let rows = measured(case);
    let fastest = greatest(&rows, |(_, summary)| summary.gib_per_s)?;
    let lines: Vec<(f64, String)> = near(ceilings, case.state, fastest);
    let head = LINE * lines.len() as f64 + 10.0;
    let bottom = head + ROW * rows.len() as f64;
    let label = format!("GiB/s of {}", case.title());
    let mut svg = Svg::new(WIDTH, bottom + AXIS, &label);
    let gb = |summary: &Summary, time: f64| summary.gib_per_s * summary.time_s.median / time;
    let max = greatest(&rows, |(_, summary)| gb(summary, summary.time_s.p5))?;
    let max = greatest(&lines, |line| line.0).map_or(max, |line| line.max(max));
    let x = |value: f64| FROM + (TO - FROM) * value / max;
    axis(&mut svg, max, head, bottom, "GiB/s");
    for (at, (row, summary)) in rows.iter().enumerate() {
        let y = head + ROW * at as f64;
        name(&mut svg, y, &row.name);
        let class = match row.kind {
            Kind::Ringfold => "ours",
            _ => "other",
        };
        let [slow, fast] = [summary.time_s.p95, summary.time_s.p5].map(|time| gb(summary, time));
        let title = format!(
            "{}: {} GiB/s, {} to {}",
            row.name,
            digits(summary.gib_per_s),
            digits(slow),
            digits(fast)
        );
        let top = y + (ROW - BAR) / 2.0;
        svg.rect([FROM, top, x(summary.gib_per_s) - FROM, BAR], class, &title);
        let middle = y + ROW / 2.0;
        svg.line([x(slow), middle, x(fast), middle], "whisker");
        for end in [slow, fast] {
            svg.line([x(end), middle - 4.0, x(end), middle + 4.0], "whisker");
        }
        let mut text = digits(summary.gib_per_s);
        if let Some(ratio) = summary.ratio {
            text += &format!("  ({}x)", digits(ratio.median));
        }
        svg.text(TO + 12.0, middle + 4.0, "figure", &text);
    }
    for (at, (value, text)) in lines.iter().enumerate() {
        let y = LINE * at as f64 + 12.0;
        svg.line([x(*value), y + 3.0, x(*value), bottom], "ceiling");
        svg.text(x(*value) - 6.0, y, "note end", text);
    }
    Some(svg.finish())
}

/// Ceilings of a state that are near enough to matter, the highest first.
fn near(ceilings: &Ceilings, state: State, fastest: f64) -> Vec<(f64, String)> {
    let device = ceilings.device_gib_per_s.map(|spread| spread.median);
    let device = device.and_then(|rate| match state {
        State::Cached => None,
        State::Cold => Some(("device", rate)),
        State::Half => Some(("twice the device, for half of the file", 2.0 * rate)),
    });
    let copy = ceilings.page_cache_copy_gib_per_s;
    let copy = copy.map(|spread| ("copying from the page cache", spread.median));
    let memory = greatest(&ceilings.memory, |rate| rate.gib_per_s);
    let memory = memory.map(|rate| ("memory", rate));
    let all = [device, copy, memory].into_iter().flatten();
    let near = all.filter(|(_, value)| *value < NEAR * fastest);
    let mut lines: Vec<(f64, String)> = near
        .map(|(name, value)| (value, format!("{name} {} GiB/s", digits(value))))
        .collect();
    lines.sort_by(|a, b| b.0.total_cmp(&a.0));
    lines
}

/// The parts of a run's processor time: seconds, a class and a name.
type Parts = Vec<(f64, &'static str, &'static str)>;

/// Stacked bars of processor time by kind of thread, where it is known, else by user and system.
pub fn cpu(case: &Case) -> Option<String> {
    let rows = measured(case);
    let head = LINE + 10.0;
    let bottom = head + ROW * rows.len() as f64;
    let label = format!("processor time of {}", case.title());
    let mut svg = Svg::new(WIDTH, bottom + AXIS, &label);
    let max = greatest(&rows, |(_, summary)| summary.cpu_s)?.max(1e-6);
    let x = |value: f64| FROM + (TO - FROM) * value / max;
    axis(&mut svg, max, head, bottom, "s");
    let mut legend: Vec<(&str, &str)> = Vec::new();
    for (at, (row, summary)) in rows.iter().enumerate() {
        let y = head + ROW * at as f64;
        name(&mut svg, y, &row.name);
        let mut from = 0.0;
        for (part, class, what) in parts(row, summary) {
            let title = format!("{}: {what} {}", row.name, seconds(part));
            let top = y + (ROW - BAR) / 2.0;
            svg.rect([x(from), top, x(from + part) - x(from), BAR], class, &title);
            from += part;
            if !legend.contains(&(class, what)) {
                legend.push((class, what));
            }
        }
        let share = 100.0 * summary.cpu_s / summary.time_s.median;
        let text = format!("{}  ({share:.0}%)", seconds(summary.cpu_s));
        svg.text(TO + 12.0, y + ROW / 2.0 + 4.0, "figure", &text);
    }
    let mut at = FROM;
    for (class, what) in legend {
        svg.rect([at, 3.0, 10.0, 10.0], class, what);
        svg.text(at + 15.0, 12.0, "note", &what);
        at += 30.0 + 6.5 * what.len() as f64;
    }
    Some(svg.finish())
}

fn parts(row: &Row, summary: &Summary) -> Parts {
    let of = |part: fn(&crate::measure::reads::CpuByThread) -> f64| {
        let parts = row.runs.iter().filter_map(|run| run.own.as_ref());
        median(parts.map(|own| part(&own.figures.cpu_by_thread))).unwrap_or(0.0)
    };
    let known = [
        of(|cpu| cpu.ring_s),
        of(|cpu| cpu.workers_s),
        of(|cpu| cpu.io_workers_s),
    ];
    let [ring, workers, kernel] = known;
    match known.iter().sum::<f64>() > 0.0 {
        true => vec![
            (ring, "ring", "ring's thread"),
            (workers, "workers", "workers"),
            (kernel, "kernel", "kernel's I/O threads"),
            (
                (summary.cpu_s - ring - workers - kernel).max(0.0),
                "rest",
                "start, end and the rest",
            ),
        ],
        false => vec![
            (summary.user_s, "user", "user"),
            (summary.system_s, "system", "system"),
        ],
    }
}

/// Percentiles of the latency of reads, on a logarithmic scale.
pub fn latency(case: &Case) -> Option<String> {
    let of =
        |row: &'_ Row| -> Option<Latency> { row.typical()?.own.as_ref()?.figures.read_latency };
    let rows: Vec<(&Row, Latency)> = case
        .shown()
        .filter_map(|row| Some((row, of(row)?)))
        .collect();
    let least = rows
        .iter()
        .map(|(_, latency)| latency.p50_us)
        .reduce(f64::min)?;
    let most = greatest(&rows, |(_, latency)| latency.max_us)?;
    let (low, high) = (least.max(0.1).log10().floor(), most.max(1.0).log10().ceil());
    let head = 10.0;
    let bottom = head + ROW * rows.len() as f64;
    let label = format!("latency of reads of {}", case.title());
    let mut svg = Svg::new(WIDTH, bottom + AXIS, &label);
    let x = |us: f64| FROM + (TO - FROM) * (us.max(0.1).log10() - low) / (high - low).max(1.0);
    let mut power = low;
    while power <= high {
        let at = x(10_f64.powf(power));
        svg.line([at, head, at, bottom], "grid");
        svg.text(at, bottom + 16.0, "tick mid", &time_name(power));
        power += 1.0;
    }
    for (at, (row, latency)) in rows.iter().enumerate() {
        let middle = head + ROW * at as f64 + ROW / 2.0;
        name(&mut svg, middle - ROW / 2.0, &row.name);
        svg.line(
            [x(latency.p50_us), middle, x(latency.max_us), middle],
            "whisker",
        );
        svg.line(
            [x(latency.p50_us), middle, x(latency.p99_us), middle],
            "most",
        );
        let values = [
            ("50%", latency.p50_us),
            ("90%", latency.p90_us),
            ("99%", latency.p99_us),
            ("99.9%", latency.p99_9_us),
            ("longest", latency.max_us),
        ];
        for (what, value) in values {
            let title = format!("{}: {what} {:.3} ms", row.name, value / 1e3);
            let radius = if what == "50%" { 5.0 } else { 3.0 };
            svg.dot((x(value), middle), radius, "ours", &title);
        }
        let text = format!(
            "{:.2} / {:.2} ms",
            latency.p50_us / 1e3,
            latency.p99_us / 1e3
        );
        svg.text(TO + 12.0, middle + 4.0, "figure", &text);
    }
    Some(svg.finish())
}

/// `10 µs` for 1, `1 ms` for 3.
fn time_name(power: f64) -> String {
    match power as i32 {
        ..3 => format!("{} µs", 10_f64.powf(power)),
        3..6 => format!("{} ms", 10_f64.powf(power - 3.0)),
        _ => format!("{} s", 10_f64.powf(power - 6.0)),
    }
}

/// Reads in flight over the time of a typical run, a small picture a participant.
pub fn depth(case: &Case) -> Vec<String> {
    let of =
        |row: &Row| -> Option<InFlight> { row.typical()?.own.as_ref()?.figures.in_flight.clone() };
    let with = case.shown().filter_map(|row| Some((row, of(row)?)));
    with.map(|(row, in_flight)| depth_of(row, &in_flight))
        .collect()
}

fn depth_of(row: &Row, in_flight: &InFlight) -> String {
    const SIZE: (f64, f64) = (430.0, 150.0);
    let [left, top, right, bottom] = [40.0, 26.0, SIZE.0 - 12.0, SIZE.1 - 24.0];
    let label = format!("reads in flight over time: {}", row.name);
    let mut svg = Svg::new(SIZE.0, SIZE.1, &label);
    let max = in_flight.means.iter().copied().fold(1.0, f64::max).ceil();
    let end = in_flight.bin_s * in_flight.means.len() as f64;
    let x = |time: f64| left + (right - left) * time / end;
    let y = |depth: f64| bottom - (bottom - top) * depth / max;
    svg.text(
        left,
        16.0,
        "name",
        &format!("{}: {:.1} on average", cut(&row.name, NAME), in_flight.mean),
    );
    heights(&mut svg, &ticks(max, 4), [left, right], y, "");
    for value in ticks(end, 4) {
        svg.text(
            x(value),
            bottom + 16.0,
            "tick mid",
            &format!("{} s", trimmed(value)),
        );
    }
    let steps = in_flight.means.iter().enumerate().flat_map(|(at, depth)| {
        let from = at as f64 * in_flight.bin_s;
        [(x(from), y(*depth)), (x(from + in_flight.bin_s), y(*depth))]
    });
    svg.path(steps, "curve");
    svg.finish()
}

/// All runs as they followed each other, each over its participant's median: a machine that changes shows.
pub fn order(case: &Case) -> Option<String> {
    const HEIGHT: f64 = 170.0;
    let [left, top, right, bottom] = [50.0, 12.0, WIDTH - 10.0, HEIGHT - 26.0];
    let mut runs: Vec<(usize, f64, &Row)> = Vec::new();
    for row in &case.rows {
        if let Some(summary) = &row.summary {
            let over = |run: &Run| (run.place, run.cost.time_s() / summary.time_s.median, row);
            runs.extend(row.runs.iter().map(over));
        }
    }
    let last = runs
        .iter()
        .map(|run| run.0)
        .max()
        .filter(|last| *last > 0)?;
    let max = runs.iter().map(|run| run.1).fold(1.2, f64::max);
    let mut svg = Svg::new(
        WIDTH,
        HEIGHT,
        &format!("all runs of {} in order", case.title()),
    );
    let x = |place: usize| left + (right - left) * place as f64 / last as f64;
    let y = |over: f64| bottom - (bottom - top) * over / max;
    heights(&mut svg, &ticks(max, 4), [left, right], y, "x");
    for phase in &case.phases {
        let level = y(phase.level);
        svg.line(
            [x(phase.from), level, x(phase.to.saturating_sub(1)), level],
            "level",
        );
    }
    for (place, over, row) in runs {
        let class = match row.kind {
            Kind::Ringfold => "ours",
            Kind::Ceiling => "rest",
            Kind::Command => "other",
        };
        let title = format!("run {}: {}, {over:.2}x its median", place + 1, row.name);
        svg.dot((x(place), y(over)), 3.0, class, &title);
    }
    svg.text(
        right,
        bottom + 18.0,
        "tick end",
        &format!("run {}", last + 1),
    );
    svg.text(left, bottom + 18.0, "tick", &"run 1");
    Some(svg.finish())
}

/// The rate of memory by threads.
pub fn memory(rates: &[MemoryRate], ceilings: &Ceilings) -> Option<String> {
    const SIZE: (f64, f64) = (WIDTH, 220.0);
    let [left, top, right, bottom] = [50.0, 14.0, TO, SIZE.1 - 40.0];
    let most = rates.iter().map(|rate| rate.threads).max()?;
    let max = rates.iter().map(|rate| rate.gib_per_s).fold(0.0, f64::max);
    let mut svg = Svg::new(SIZE.0, SIZE.1, "rate of memory by threads");
    let x = |threads: usize| match most {
        1 => left,
        _ => left + (right - left) * (threads as f64).log2() / (most as f64).log2(),
    };
    let y = |rate: f64| bottom - (bottom - top) * rate / max;
    heights(&mut svg, &ticks(max, 5), [left, right], y, "");
    let others = [
        ("device", ceilings.device_gib_per_s),
        ("copying", ceilings.page_cache_copy_gib_per_s),
    ];
    for (what, rate) in others {
        if let Some(rate) = rate.filter(|rate| rate.median <= max) {
            svg.line([left, y(rate.median), right, y(rate.median)], "ceiling");
            let text = format!("{what} {} GiB/s", digits(rate.median));
            svg.text(right + 8.0, y(rate.median) + 4.0, "note", &text);
        }
    }
    svg.path(
        rates
            .iter()
            .map(|rate| (x(rate.threads), y(rate.gib_per_s))),
        "curve",
    );
    for rate in rates {
        let at = (x(rate.threads), y(rate.gib_per_s));
        let title = format!("{} threads: {} GiB/s", rate.threads, digits(rate.gib_per_s));
        svg.dot(at, 4.0, "ours", &title);
        svg.text(at.0, bottom + 16.0, "tick mid", &rate.threads);
    }
    svg.text(
        (left + right) / 2.0,
        bottom + 34.0,
        "tick mid",
        &"threads that read memory; GiB/s",
    );
    Some(svg.finish())
}

/// The greatest figure of some things.
fn greatest<T>(of: &[T], figure: impl Fn(&T) -> f64) -> Option<f64> {
    of.iter().map(figure).reduce(f64::max)
}

/// Lines at some heights, from left to right, with their values and a unit.
fn heights(
    svg: &mut Svg,
    values: &[f64],
    [left, right]: [f64; 2],
    y: impl Fn(f64) -> f64,
    unit: &str,
) {
    for &value in values {
        svg.line([left, y(value), right, y(value)], "grid");
        let text = format!("{}{unit}", trimmed(value));
        svg.text(left - 6.0, y(value) + 4.0, "tick end", &text);
    }
}

fn axis(svg: &mut Svg, max: f64, top: f64, bottom: f64, unit: &str) {
    let x = |value: f64| FROM + (TO - FROM) * value / max;
    for value in ticks(max, 6) {
        svg.line([x(value), top, x(value), bottom], "grid");
        svg.text(x(value), bottom + 16.0, "tick mid", &trimmed(value));
    }
    svg.text(FROM - 10.0, bottom + 16.0, "tick end", &unit);
}

fn name(svg: &mut Svg, y: f64, name: &str) {
    svg.text(
        FROM - 10.0,
        y + ROW / 2.0 + 4.0,
        "name end",
        &cut(name, NAME),
    );
}

/// A round number without the noise of its last digits.
fn trimmed(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
