//! Pictures of a case: throughput with its spread and ceilings, processor time, latency of reads, reads in flight over
//! time, all runs in order; and of the machine: memory's rate by threads.

use std::fmt::Display;

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
/// A ceiling of more than this many times the fastest result isn't drawn: it doesn't matter.
const NEAR: f64 = 2.5;
/// Columns of a name that fit before its bar.
const NAME: usize = 32;

/// Rows with figures, ceilings left out.
fn measured(case: &Case) -> Vec<(&Row, &Summary)> {
    case.shown()
        .filter_map(|row| Some((row, row.summary.as_ref()?)))
        .collect()
}

impl Row {
    /// The run whose time is nearest to the median.
    fn typical(&self) -> Option<&Run> {
        let middle = self.summary.as_ref()?.time_s.median;
        let off = |run: &&Run| (run.cost.time_s() - middle).abs();
        self.runs.iter().min_by(|a, b| off(a).total_cmp(&off(b)))
    }
}

/// A picture with a row for each participant: its name, what is drawn, and a figure.
struct Rows {
    svg: Svg,
    head: f64,
    bottom: f64,
}

impl Rows {
    fn new(label: &str, rows: usize, head: f64) -> Rows {
        let bottom = head + ROW * rows as f64;
        let svg = Svg::new(WIDTH, bottom + AXIS, label);
        Rows { svg, head, bottom }
    }

    /// A value of the axis.
    fn tick(&mut self, x: f64, value: &dyn Display) {
        self.svg.line([x, self.head, x, self.bottom], "grid");
        self.svg.text(x, self.bottom + 16.0, "tick mid", value);
    }

    /// An axis from 0 to `max`.
    fn axis(&mut self, max: f64, unit: &str) {
        for value in ticks(max, 6) {
            self.tick(along(value / max), &trimmed(value));
        }
        self.svg
            .text(FROM - 10.0, self.bottom + 16.0, "tick end", &unit);
    }

    /// The middle of a row, which gets its name.
    fn row(&mut self, at: usize, name: &str) -> f64 {
        let middle = self.head + ROW * at as f64 + ROW / 2.0;
        let name = cut(name, NAME);
        self.svg.text(FROM - 10.0, middle + 4.0, "name end", &name);
        middle
    }

    fn bar(&mut self, middle: f64, [from, to]: [f64; 2], class: &str, title: &str) {
        let rect = [from, middle - BAR / 2.0, to - from, BAR];
        self.svg.rect(rect, class, title);
    }

    fn figure(&mut self, middle: f64, text: &str) {
        self.svg.text(TO + 12.0, middle + 4.0, "figure", &text);
    }
}

/// Where a share of the axis ends.
fn along(share: f64) -> f64 {
    FROM + (TO - FROM) * share
}

/// Bars of GiB/s with whiskers, and lines where no result can go beyond.
pub fn throughput(case: &Case, ceilings: &Ceilings) -> Option<String> {
    let rows = measured(case);
    let fastest = greatest(&rows, |(_, summary)| summary.gib_per_s)?;
    let lines: Vec<(f64, String)> = near(ceilings, case.state, fastest);
    let head = LINE * lines.len() as f64 + 10.0;
    let label = format!("GiB/s of {}", case.title());
    let mut chart = Rows::new(&label, rows.len(), head);
    let gb = |summary: &Summary, time: f64| summary.gib_per_s * summary.time_s.median / time;
    let max = greatest(&rows, |(_, summary)| gb(summary, summary.time_s.p5))?;
    let max = greatest(&lines, |line| line.0).map_or(max, |line| line.max(max));
    let x = |value: f64| along(value / max);
    chart.axis(max, "GiB/s");
    for (at, (row, summary)) in rows.iter().enumerate() {
        let middle = chart.row(at, &row.name);
        let class = match row.kind {
            Kind::Ringfold => "ours",
            _ => "other",
        };
        let [slow, fast] = [summary.time_s.p95, summary.time_s.p5].map(|time| gb(summary, time));
        let [rate, low, high] = [summary.gib_per_s, slow, fast].map(digits);
        let title = format!("{}: {rate} GiB/s, {low} to {high}", row.name);
        chart.bar(middle, [FROM, x(summary.gib_per_s)], class, &title);
        let whisker = [x(slow), middle, x(fast), middle];
        chart.svg.line(whisker, "whisker");
        for end in [x(slow), x(fast)] {
            let end = [end, middle - 4.0, end, middle + 4.0];
            chart.svg.line(end, "whisker");
        }
        let ratio = summary.ratio;
        let ratio = ratio.map_or(String::new(), |it| format!("  ({}x)", digits(it.median)));
        chart.figure(middle, &(rate + &ratio));
    }
    for (at, (value, text)) in lines.iter().enumerate() {
        let y = LINE * at as f64 + 12.0;
        let line = [x(*value), y + 3.0, x(*value), chart.bottom];
        chart.svg.line(line, "ceiling");
        chart.svg.text(x(*value) - 6.0, y, "note end", text);
    }
    Some(chart.svg.finish())
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
    let label = format!("processor time of {}", case.title());
    let mut chart = Rows::new(&label, rows.len(), LINE + 10.0);
    let max = greatest(&rows, |(_, summary)| summary.cpu_s)?.max(1e-6);
    chart.axis(max, "s");
    let mut legend: Vec<(&str, &str)> = Vec::new();
    for (at, (row, summary)) in rows.iter().enumerate() {
        let middle = chart.row(at, &row.name);
        let mut from = 0.0;
        for (part, class, what) in parts(row, summary) {
            let title = format!("{}: {what} {}", row.name, seconds(part));
            let ends = [from, from + part].map(|value| along(value / max));
            chart.bar(middle, ends, class, &title);
            from += part;
            if !legend.contains(&(class, what)) {
                legend.push((class, what));
            }
        }
        let share = 100.0 * summary.cpu_s / summary.time_s.median;
        let time = seconds(summary.cpu_s);
        chart.figure(middle, &format!("{time}  ({share:.0}%)"));
    }
    let mut at = FROM;
    for (class, what) in legend {
        chart.svg.rect([at, 3.0, 10.0, 10.0], class, what);
        chart.svg.text(at + 15.0, 12.0, "note", &what);
        at += 30.0 + 6.5 * what.len() as f64;
    }
    Some(chart.svg.finish())
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
    let of = |row: &Row| row.typical()?.own.as_ref()?.figures.read_latency;
    let with = case.shown().filter_map(|row| Some((row, of(row)?)));
    let rows: Vec<(&Row, Latency)> = with.collect();
    let least = rows.iter().map(|(_, latency)| latency.p50_us);
    let least = least.reduce(f64::min)?;
    let most = greatest(&rows, |(_, latency)| latency.max_us)?;
    let (low, high) = (least.max(0.1).log10().floor(), most.max(1.0).log10().ceil());
    let label = format!("latency of reads of {}", case.title());
    let mut chart = Rows::new(&label, rows.len(), 10.0);
    let x = |us: f64| along((us.max(0.1).log10() - low) / (high - low).max(1.0));
    let mut power = low;
    while power <= high {
        chart.tick(x(10_f64.powf(power)), &time_name(power));
        power += 1.0;
    }
    for (at, (row, latency)) in rows.iter().enumerate() {
        let middle = chart.row(at, &row.name);
        for (until, class) in [(latency.max_us, "whisker"), (latency.p99_us, "most")] {
            let line = [x(latency.p50_us), middle, x(until), middle];
            chart.svg.line(line, class);
        }
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
            chart.svg.dot((x(value), middle), radius, "ours", &title);
        }
        let [half, most] = [latency.p50_us, latency.p99_us].map(|us| us / 1e3);
        chart.figure(middle, &format!("{half:.2} / {most:.2} ms"));
    }
    Some(chart.svg.finish())
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
    let of = |row: &Row| row.typical()?.own.as_ref()?.figures.in_flight.clone();
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
    let (name, mean) = (cut(&row.name, NAME), in_flight.mean);
    svg.text(left, 16.0, "name", &format!("{name}: {mean:.1} on average"));
    heights(&mut svg, &ticks(max, 4), [left, right], y, "");
    for value in ticks(end, 4) {
        let text = format!("{} s", trimmed(value));
        svg.text(x(value), bottom + 16.0, "tick mid", &text);
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
    let runs = case.in_order();
    let (last, ..) = runs.last().filter(|(last, ..)| *last > 0)?;
    let max = runs.iter().map(|run| run.1).fold(1.2, f64::max);
    let label = format!("all runs of {} in order", case.title());
    let mut svg = Svg::new(WIDTH, HEIGHT, &label);
    let x = |place: usize| left + (right - left) * place as f64 / *last as f64;
    let y = |over: f64| bottom - (bottom - top) * over / max;
    heights(&mut svg, &ticks(max, 4), [left, right], y, "x");
    for phase in &case.phases {
        let (level, to) = (y(phase.level), phase.to.saturating_sub(1));
        svg.line([x(phase.from), level, x(to), level], "level");
    }
    for &(place, over, row) in &runs {
        let class = match row.kind {
            Kind::Ringfold => "ours",
            Kind::Ceiling => "rest",
            Kind::Command => "other",
        };
        let title = format!("run {}: {}, {over:.2}x its median", place + 1, row.name);
        svg.dot((x(place), y(over)), 3.0, class, &title);
    }
    let text = format!("run {}", last + 1);
    svg.text(right, bottom + 18.0, "tick end", &text);
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
    let place = |rate: &MemoryRate| (x(rate.threads), y(rate.gib_per_s));
    svg.path(rates.iter().map(place), "curve");
    for rate in rates {
        let at = place(rate);
        let title = format!("{} threads: {} GiB/s", rate.threads, digits(rate.gib_per_s));
        svg.dot(at, 4.0, "ours", &title);
        svg.text(at.0, bottom + 16.0, "tick mid", &rate.threads);
    }
    let (middle, text) = ((left + right) / 2.0, "threads that read memory; GiB/s");
    svg.text(middle, bottom + 34.0, "tick mid", &text);
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

/// A round number without the noise of its last digits.
fn trimmed(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
