//! What was measured, and its shapes: Markdown and JSON.

use std::fmt::Write;

use ringfold::internals::machine::Machine;
use ringfold::internals::statistics::Spread;
use serde::Serialize;

use crate::measure::STEPS;

/// Everything about one call of the benchmark.
#[derive(Serialize)]
pub struct Report {
    /// Of the sources.
    pub commit: String,
    pub machine: Machine,
    pub groups: usize,
    /// Of the groups in memory: rates are of these.
    pub bytes: u64,
    pub rounds: usize,
    pub steps: [&'static str; STEPS.len()],
    pub memcpy: Spread,
    /// What of ringfold's step to be ready to read is due to what.
    pub safety: Vec<(&'static str, Spread)>,
    pub lines: Vec<Line>,
}

/// A format.
#[derive(Serialize)]
pub struct Line {
    pub name: &'static str,
    /// Of the encoding.
    pub bytes: usize,
    /// Of each step.
    pub seconds: Vec<Spread>,
}

impl Report {
    /// Bytes of the groups in memory in a second, in GiB.
    pub fn rate(&self, seconds: f64) -> f64 {
        self.bytes as f64 / seconds / (1u64 << 30) as f64
    }

    pub fn as_markdown(&self) -> String {
        let mut text = format!(
            "# Partials and other formats\n\n{} million groups: keys of 5 to 40 bytes with count, sum, least and greatest, {} MiB \
             in memory. One core, GiB/s of\nthese bytes, medians of {} interleaved rounds, slowest and fastest in brackets. \
             How it was measured: docs/benchmarks.md.\n\n![Bars of the rates](results.svg)\n\n",
            self.groups as f64 / 1e6,
            self.bytes >> 20,
            self.rounds
        );
        text += "| format | encoding |";
        for step in self.steps {
            let _ = write!(text, " {step} |");
        }
        text += "\n|---|--:|";
        text += &"--:|".repeat(self.steps.len());
        text.push('\n');
        for line in &self.lines {
            let _ = write!(text, "| {} | {} MiB |", line.name, line.bytes >> 20);
            for seconds in &line.seconds {
                let [median, slowest, fastest] =
                    [seconds.median, seconds.max, seconds.min].map(|seconds| self.rate(seconds));
                let _ = write!(text, " {median:.2} ({slowest:.2}-{fastest:.2}) |");
            }
            text.push('\n');
        }
        let copied = self.rate(self.memcpy.median);
        let _ = writeln!(text, "\n`memcpy` of as many bytes: {copied:.2} GiB/s.");
        text += "\n## What safety costs\n\n| ringfold, over all bytes of the encoding | GiB/s |\n|---|--:|\n";
        for (name, seconds) in &self.safety {
            let _ = writeln!(text, "| {name} | {:.2} |", self.rate(seconds.median));
        }
        text += "\n## The machine\n\n";
        let _ = writeln!(text, "- commit: {}", self.commit);
        for (name, value) in self.machine.facts() {
            let _ = writeln!(text, "- {name}: {value}");
        }
        text
    }
}
