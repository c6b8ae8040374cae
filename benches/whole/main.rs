//! Whole processes compared over one file: the engines of ringfold, `wc -l`, fio, DuckDB and Polars.
//!
//! `make bench`, or `cargo bench -p ringfold-benches --bench whole -- --help`. docs/benchmarks.md tells the method.

mod cache;
#[path = "../canvas.rs"]
mod canvas;
mod competitors;
mod machine;
mod plot;
mod process;
mod results;

use std::error::Error;
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use cache::{CachedFile, State};
use competitors::{Answers, Competitor};
use machine::Machine;
use results::{Case, FileFacts, Report, Run};

/// Compare ringfold's engines with wc -l, fio, DuckDB and Polars, as whole processes over one file
#[derive(Parser)]
#[command(name = "whole", max_term_width = 100)]
struct Options {
    /// Rows of the file, as 1e9 or 10M; it is generated in data/ unless it is there
    /// [default: 100M, with --quick 10M]
    #[arg(long, value_name = "N", conflicts_with = "file")]
    rows: Option<String>,
    /// Distinct keys of the file [default: the 413 stations of the challenge]
    #[arg(long, value_name = "N", conflicts_with = "file")]
    keys: Option<String>,
    /// A file of your own: key;value lines, values with one decimal
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Rounds that count [default: 5, with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    runs: Option<u16>,
    /// States of the page cache to run from
    #[arg(
        long,
        value_name = "CASES",
        value_delimiter = ',',
        default_value = "cached,cold,half"
    )]
    cases: Vec<State>,
    /// Who takes part; wc always does
    #[arg(long, value_name = "NAMES", value_delimiter = ',',
          default_values = competitors::NAMES, hide_default_value = true,
          value_parser = PossibleValuesParser::new(competitors::NAMES))]
    only: Vec<String>,
    /// Seconds of rest before each run of cold and half: many a virtual disk saves up what isn't used
    /// and is fast only for as long as that lasts
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pause: u16,
    /// Where results.md, results.json and results.svg go
    #[arg(long, value_name = "DIR", default_value = "docs/bench")]
    output: PathBuf,
    /// A first impression: a small file, few rounds
    #[arg(long)]
    quick: bool,
    /// What cargo adds
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    if std::env::args_os().len() == 1 {
        // `cargo test --benches` calls without any argument.
        eprintln!(
            "whole: nothing to test; to measure: cargo bench -p ringfold-benches --bench whole -- --help"
        );
        return ExitCode::SUCCESS;
    }
    let options = Options::parse();
    // Cargo starts it in the package's folder: files are named from the tree's.
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .expect("the tree is there");
    match measure(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("whole: some runs failed or answered wrongly: see VOID above");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("whole: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all cases and writes all results; tells whether all answers were right.
fn measure(options: &Options) -> Result<bool, Box<dyn Error>> {
    let path = input(options)?;
    let file = CachedFile::open(&path).map_err(|error| naming(&path, &error))?;
    let field = competitors::find(&path, &options.only);
    for left_out in &field.left_out {
        println!("left out: {left_out}");
    }
    let rounds = options
        .runs
        .unwrap_or(if options.quick { 3 } else { 5 })
        .into();
    let facts = FileFacts {
        name: path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        size_bytes: file.len(),
        rows: None,
    };
    let mut report = Report::new(
        Machine::look(&path),
        facts,
        rounds,
        options.pause,
        field.left_out,
    );
    for (name, value) in report.machine.facts() {
        println!("{name}: {value}");
    }
    println!("{}\n", report.file_line());
    if file.len() > report.machine.memory_bytes / 10 * 8 {
        println!("The file may not fit into memory: look at what was resident.\n");
    }
    fs::create_dir_all(&options.output).map_err(|error| naming(&options.output, &error))?;
    let mut answers = Answers::new(file.len());
    for &state in &options.cases {
        let pause = match state {
            State::Cached => Duration::ZERO,
            State::Cold | State::Half => Duration::from_secs(options.pause.into()),
        };
        let field = &field.competitors;
        let case = run_case(state, &file, rounds, pause, field, &mut answers)
            .map_err(|error| naming(&path, &*error))?;
        report.file.rows = answers.lines();
        report.memory_floor_bytes = process::own_peak_bytes();
        println!("{}", report.case_as_text(&case));
        report.cases.push(case);
        // After each case: who stops a long run keeps what is done.
        let json = serde_json::to_string_pretty(&report)? + "\n";
        for (name, text) in [("results.json", json), ("results.md", report.as_markdown())] {
            let path = options.output.join(name);
            fs::write(&path, text).map_err(|error| naming(&path, &error))?;
        }
    }
    let plot = options.output.join("results.svg");
    plot::draw(&report, &plot).map_err(|error| naming(&plot, &*error))?;
    println!(
        "written: results.md, results.json, results.svg in {}",
        options.output.display()
    );
    Ok(!report.any_void())
}

/// What went wrong, and with which file.
fn naming(path: &Path, error: &dyn Error) -> String {
    format!("{}: {error}", path.display())
}

/// The file to read, generated where it is one of ours and missing.
fn input(options: &Options) -> Result<PathBuf, String> {
    if let Some(path) = &options.file {
        return Ok(path.clone());
    }
    let rows = options
        .rows
        .as_deref()
        .unwrap_or(if options.quick { "10M" } else { "100M" });
    let keys = options
        .keys
        .as_ref()
        .map_or(String::new(), |keys| format!("-{keys}-keys"));
    let path = format!("data/measurements-{rows}{keys}.txt");
    if !Path::new(&path).exists() {
        fs::create_dir_all("data").map_err(|error| format!("data: {error}"))?;
        let mut arguments = vec!["--rows", rows, "--output", &path];
        arguments.extend(options.keys.iter().flat_map(|keys| ["--keys", keys]));
        competitors::generate(&arguments)?;
    }
    Ok(path.into())
}

/// Runs everybody once a round, from the same state of the page cache. Every other round goes
/// backwards, so that nobody always runs after the same one, and with what that one left: a disk's
/// allowance spent, a processor warm.
fn run_case(
    state: State,
    file: &CachedFile,
    rounds: usize,
    pause: Duration,
    competitors: &[Competitor],
    answers: &mut Answers,
) -> Result<Case, Box<dyn Error>> {
    let mut case = Case::new(state, competitors);
    file.begin(state)?;
    // Programs and libraries come from the drive too: the first round of all fetches them and
    // doesn't count. From a warm cache a round costs little, so there it is done in any case.
    let warm_ups = usize::from(state == State::Cached || answers.none_yet());
    for round in 0..warm_ups + rounds {
        let mut order: Vec<_> = case.rows.iter_mut().zip(competitors).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for (row, competitor) in order {
            if row.void.is_some() {
                continue;
            }
            std::thread::sleep(pause);
            let found = file.prepare(state)?;
            let mut ended = process::run(&competitor.line)
                .map_err(|error| format!("{}: {error}", competitor.label))?;
            let checked = answers.check(competitor, &mut ended);
            let shown = match round.checked_sub(warm_ups) {
                None => "warm-up".to_string(),
                Some(round) => format!("round {} of {rounds}", round + 1),
            };
            progress(&format!(
                "{}, {shown}: {}: {:.2} s",
                state.name(),
                row.label,
                ended.cost.time_s()
            ));
            if let Err(wrong) = checked {
                progress("");
                eprintln!("whole: {}: {wrong}", competitor.label);
                row.void = Some(wrong);
            } else if round >= warm_ups {
                row.runs.push(Run::new(found, ended.cost));
            }
        }
    }
    progress("");
    case.summarise(file.len());
    Ok(case)
}

/// Shows on a terminal how far it is, on one line.
fn progress(text: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        // Who can't see it misses nothing that counts.
        let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
    }
}
