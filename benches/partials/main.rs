//! Groups with count, sum, least and greatest as bytes and back: ringfold's partials and other formats, on one core.
//!
//! `make bench-partials`. docs/benchmarks.md tells the method.

#[path = "../canvas.rs"]
#[allow(dead_code, reason = "the other plots have a margin")]
mod canvas;
#[path = "../data.rs"]
#[allow(dead_code, reason = "other benchmarks make other inputs")]
mod data;
mod formats;
mod groups;
mod measure;
mod plot;
mod report;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use ringfold::internals::machine::Machine;
use ringfold::internals::statistics::Spread;

use formats::{Bitcode, ColumnarCrate, Format, Postcard, Rkyv};
use groups::Groups;
use measure::{Measured, STEPS};
use report::{Line, Report};

/// Compare partials with rkyv, columnar, bitcode and postcard
#[derive(Parser)]
#[command(name = "partials", max_term_width = 100)]
struct Options {
    /// Groups
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    groups: usize,
    /// Rounds that count
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// What all keys begin with
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,
    /// Only these formats
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Where results.md, results.json and results.svg go; nowhere without it
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What the results are of
    #[arg(long, value_name = "TEXT", default_value = "unknown")]
    commit: String,
    /// What cargo adds
    #[arg(long, hide = true)]
    bench: bool,
}

type Subject = (&'static str, fn(&Groups) -> Measured);

const SUBJECTS: [Subject; 5] = [
    ("ringfold", measure::measure_ringfold),
    (Rkyv::NAME, measure::measure::<Rkyv>),
    (ColumnarCrate::NAME, measure::measure::<ColumnarCrate>),
    (Bitcode::NAME, measure::measure::<Bitcode>),
    (Postcard::NAME, measure::measure::<Postcard>),
];

fn main() -> ExitCode {
    if std::env::args_os().len() == 1 {
        eprintln!("partials: nothing to test; to measure: make bench-partials");
        return ExitCode::SUCCESS;
    }
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .expect("the tree is there");
    match compare(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("partials: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options) -> Result<(), Box<dyn Error>> {
    let is_wanted =
        |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let subjects: Vec<Subject> = SUBJECTS
        .into_iter()
        .filter(|(name, _)| is_wanted(name))
        .collect();
    let groups = Groups::new(options.groups, &options.prefix);
    let mut seconds = vec![vec![Vec::new(); STEPS.len()]; subjects.len()];
    let mut safety: Vec<(&'static str, Vec<f64>)> = Vec::new();
    let (mut bytes, mut copies, mut known) = (vec![0; subjects.len()], Vec::new(), None);
    for round in 0..options.rounds {
        copies.push(measure::memcpy(groups.bytes));
        for (at, (name, seconds)) in measure::safety(&groups).into_iter().enumerate() {
            if safety.len() == at {
                safety.push((name, Vec::new()));
            }
            safety[at].1.push(seconds);
        }
        // Every other round runs backwards.
        let order: Vec<usize> = match round % 2 {
            0 => (0..subjects.len()).collect(),
            _ => (0..subjects.len()).rev().collect(),
        };
        for at in order {
            eprint!(
                "\rround {} of {}: {:12}",
                round + 1,
                options.rounds,
                subjects[at].0
            );
            let measured = subjects[at].1(&groups);
            if *known.get_or_insert(measured.digests) != measured.digests {
                return Err(format!("{} has other groups", subjects[at].0).into());
            }
            bytes[at] = measured.bytes;
            for (all, seconds) in seconds[at].iter_mut().zip(measured.seconds) {
                all.push(seconds);
            }
        }
    }
    eprintln!();
    let safety = safety.into_iter();
    let spread = |seconds: Vec<f64>| Spread::of(seconds).ok_or("there are no rounds");
    let mut lines = Vec::new();
    for (((name, _), seconds), bytes) in subjects.iter().zip(seconds).zip(bytes) {
        let seconds = seconds.into_iter().map(spread).collect::<Result<_, _>>()?;
        lines.push(Line {
            name,
            bytes,
            seconds,
        });
    }
    let report = Report {
        commit: options.commit.clone(),
        machine: Machine::look(Path::new(".")),
        groups: groups.all.len(),
        bytes: groups.bytes,
        rounds: options.rounds,
        steps: STEPS,
        memcpy: spread(copies)?,
        safety: safety
            .map(|(name, seconds)| Ok((name, spread(seconds)?)))
            .collect::<Result<_, Box<dyn Error>>>()?,
        lines,
    };
    let text = report.as_markdown();
    print!("{text}");
    if let Some(output) = &options.output {
        fs::create_dir_all(output)?;
        fs::write(output.join("results.md"), text)?;
        fs::write(
            output.join("results.json"),
            serde_json::to_string_pretty(&report)? + "\n",
        )?;
        plot::draw(&report, &output.join("results.svg"))?;
    }
    Ok(())
}
