//! Group-by queries over delimited text, logs, JSON lines and compressed files: `ringfold aggregate` and the tools that
//! people use for that.
//!
//! `make bench-jobs`. docs/benchmarks.md tells the method.

mod answers;
#[path = "../canvas.rs"]
mod canvas;
#[path = "../data.rs"]
#[allow(dead_code, reason = "other benchmarks make other inputs")]
mod data;
mod files;
mod grid;
mod lines;
mod pair;
mod plot;
#[path = "../program.rs"]
mod program;
mod report;
mod tools;

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use ringfold::internals::cache::{CachedFile, State};
use ringfold::internals::machine::Machine;
use ringfold::internals::process::{self, Cost};

use answers::{Agreement, Shape};
use report::{Asked, Cell, Outcome, Report};
use tools::{Found, QUERIES, Query, Tool};

/// Compare group-by queries of ringfold with DuckDB, Polars, xan, Miller, datamash and mawk
#[derive(Parser)]
#[command(name = "jobs", max_term_width = 100)]
struct Options {
    /// Size of each file; they are generated in data/jobs unless they are there
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..))]
    mebibytes: u64,
    /// Rounds that count
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Numbers of the queries to ask, from 1 [default: all]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    queries: Vec<usize>,
    /// Tools to leave out, as the table calls them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    without: Vec<String>,
    /// Where results.md, results.json and results.svg go
    #[arg(long, value_name = "DIR", default_value = "docs/bench/jobs")]
    output: PathBuf,
    /// Run this build of ringfold and another one in turn instead, over more files
    #[arg(long, value_name = "OLD")]
    pair: Option<String>,
    /// The other build, or the one of --grid [default: that of this tree]
    #[arg(long, value_name = "PATH")]
    new: Option<String>,
    /// Measure what departures from the plainest query cost instead
    #[arg(long, conflicts_with = "pair")]
    grid: bool,
    /// Evict files from the page cache before each run
    #[arg(long, requires = "pair")]
    cold: bool,
    /// Compare an answer with ringfold's, both files, by the columns of the query with this number
    #[arg(long, hide = true, num_args = 4, value_names = ["QUERY", "TOOL", "REFERENCE", "ANSWER"])]
    compare: Vec<String>,
    /// Compare two answers by their first columns and kinds of the others
    #[arg(long, hide = true, num_args = 4, value_names = ["KEYS", "VALUES", "REFERENCE", "ANSWER"])]
    alike: Vec<String>,
    /// What cargo adds
    #[arg(long, hide = true)]
    bench: bool,
}

/// Where files and answers are.
const FOLDER: &str = "data/jobs";

fn main() -> ExitCode {
    if std::env::args_os().len() == 1 {
        eprintln!("jobs: nothing to test; to measure: make bench-jobs");
        return ExitCode::SUCCESS;
    }
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .expect("the tree is there");
    let options = Options::parse();
    let done = if let [query, tool, reference, answer] = &options.compare[..] {
        compare(query, tool, reference, answer).map(|()| true)
    } else if let [keys, values, reference, answer] = &options.alike[..] {
        alike(keys, values, reference, answer).map(|()| true)
    } else if let Some(old) = &options.pair {
        pair(&options, old)
    } else if options.grid {
        grid(&options)
    } else {
        measure(&options)
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("jobs: some runs failed or answered wrongly: see VOID or DIFFERENT above");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("jobs: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs two builds in turn; tells whether all their answers were the same.
fn pair(options: &Options, old: &str) -> Result<bool, Box<dyn Error>> {
    let pair = pair::Pair {
        old,
        new: options.new.as_ref().unwrap_or_else(|| &program::RINGFOLD),
        runs: options.runs.into(),
        state: [State::Cached, State::Cold][usize::from(options.cold)],
        bytes: options.mebibytes << 20,
        folder: Path::new(FOLDER),
    };
    pair.measure(|number| options.queries.is_empty() || options.queries.contains(&number))
}

fn grid(options: &Options) -> Result<bool, Box<dyn Error>> {
    let grid = grid::Grid {
        program: options.new.as_ref().unwrap_or_else(|| &program::RINGFOLD),
        runs: options.runs.into(),
        bytes: options.mebibytes << 20,
        folder: Path::new(FOLDER),
        output: &options.output,
    };
    grid.measure(|number| options.queries.is_empty() || options.queries.contains(&number))
}

fn alike(keys: &str, values: &str, reference: &str, answer: &str) -> Result<(), Box<dyn Error>> {
    let [reference, answer] = [reference, answer].map(Path::new);
    Ok(grid::alike(keys.parse()?, values, reference, answer)?)
}

/// Asks everything and writes all results; tells whether all answers were right.
fn measure(options: &Options) -> Result<bool, Box<dyn Error>> {
    let (mut tools, mut left_out) = (Vec::new(), Vec::new());
    for tool in Tool::ALL {
        let unwanted = |name: &String| name.eq_ignore_ascii_case(tool.name());
        if tool != Tool::Ringfold && options.without.iter().any(unwanted) {
            left_out.push(format!("{}: not wanted", tool.name()));
            continue;
        }
        match tool.find() {
            Ok(found) => tools.push(found),
            Err(_) if tool == Tool::Ringfold => return Err("ringfold can't be run".into()),
            Err(why) => left_out.push(why),
        }
    }
    let bytes = options.mebibytes << 20;
    let wanted = |number: usize| options.queries.is_empty() || options.queries.contains(&number);
    let asked = QUERIES
        .iter()
        .zip(1..)
        .filter(|(_, number)| wanted(*number));
    let mut asked: Vec<_> = asked.collect();
    if asked.is_empty() {
        return Err(format!("--queries: there are queries 1 to {}", QUERIES.len()).into());
    }
    asked.retain(|(query, number)| match query.file.compressor() {
        Some(needed) if program::output_of(needed, &["--version"]).is_none() => {
            left_out.push(format!("query {number}: {needed} isn't there"));
            false
        }
        _ => true,
    });
    for why in &left_out {
        println!("left out: {why}");
    }
    let Some((first, _)) = asked.first() else {
        return Err("no query is left".into());
    };
    // Before the machine is looked at: making files is load.
    for kind in files::Kind::ALL {
        if asked.iter().any(|(query, _)| query.file == kind) {
            files::file(kind, bytes, Path::new(FOLDER))?;
        }
    }
    let machine = Machine::look(&files::file(first.file, bytes, Path::new(FOLDER))?);
    for (name, value) in machine.facts() {
        println!("{name}: {value}");
    }
    println!();
    let mut report = Report {
        commit: program::commit(),
        machine,
        mebibytes: options.mebibytes,
        rounds: options.runs.into(),
        memory_floor_bytes: 0,
        tools,
        left_out,
        queries: Vec::new(),
    };
    fs::create_dir_all(&options.output)?;
    for (query, number) in asked {
        let path = files::file(query.file, bytes, Path::new(FOLDER))?;
        let asked = ask(query, number, &path, &report.tools, report.rounds)?;
        report.queries.push(asked);
        report.memory_floor_bytes = process::own_peak_bytes();
        // After each query: who stops a long run keeps what is done.
        fs::write(options.output.join("results.md"), report.as_markdown())?;
        let json = serde_json::to_string_pretty(&report)?;
        fs::write(options.output.join("results.json"), json + "\n")?;
    }
    plot::draw(&report, &options.output.join("results.svg"))?;
    print!("{}", report.as_markdown());
    Ok(!report.any_void())
}

/// What a file's queries are compared with, and its command line.
fn baseline(file: files::Kind, path: &Path) -> (&'static str, Vec<OsString>) {
    let (name, script) = match file {
        files::Kind::Gzip => ("gzip -dc", r#"exec gzip -dc "$1" > /dev/null"#),
        files::Kind::Zstd => ("zstd -dc", r#"exec zstd -dc "$1" > /dev/null"#),
        _ => ("wc -l", r#"exec wc -l "$1""#),
    };
    let mut line = ["sh", "-c", script, "sh"].map(OsString::from).to_vec();
    line.push(path.into());
    (name, line)
}

/// Someone's runs of a query.
struct Runner<'a> {
    /// `None` for the baseline.
    tool: Option<&'a Found>,
    line: Vec<OsString>,
    cell: Cell,
}

/// Runs everybody once a round, from the page cache. Every other round goes backwards, and the first one only
/// warms up.
fn ask(
    query: &Query,
    number: usize,
    path: &Path,
    tools: &[Found],
    rounds: usize,
) -> Result<Asked, Box<dyn Error>> {
    let answer = PathBuf::from(format!("{FOLDER}/answer"));
    let reference = PathBuf::from(format!("{FOLDER}/reference"));
    let (name, line) = baseline(query.file, path);
    let mut runners = vec![Runner {
        tool: None,
        line,
        cell: Cell::new(name),
    }];
    for tool in tools {
        let mut cell = Cell::new(tool.name);
        let line = match tool.line(query, path) {
            Ok(line) => redirected(line, path, &answer),
            Err(why) => {
                cell.outcome = Outcome::Cannot(why.to_string());
                Vec::new()
            }
        };
        runners.push(Runner {
            tool: Some(tool),
            line,
            cell,
        });
    }
    let file = CachedFile::open(path)?;
    file.begin(State::Cached)?;
    let mut proven = true;
    for round in 0..=rounds {
        let mut order: Vec<_> = runners.iter_mut().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for runner in order {
            if !matches!(runner.cell.outcome, Outcome::Runs) {
                continue;
            }
            proven &= file.prepare(State::Cached)?.proven;
            let ended = process::run(&runner.line)?;
            progress(&format!(
                "query {number}, round {round} of {rounds}: {}: {:.2} s",
                runner.cell.tool, ended.cost.wall_s
            ));
            let first = round == 0
                && runner
                    .tool
                    .is_some_and(|found| found.tool == Tool::Ringfold);
            if first && ended.status.success() {
                fs::rename(&answer, &reference)?;
                fs::copy(&reference, &answer)?;
            }
            match judge(number, runner.tool, &ended, &reference, &answer) {
                Ok(agreement) => runner.count(round, ended.cost, agreement),
                Err(why) => {
                    progress("");
                    eprintln!("jobs: query {number}: {}: {why}", runner.cell.tool);
                    runner.cell.outcome = Outcome::Void(why);
                }
            }
        }
    }
    progress("");
    for path in [&answer, &reference] {
        let _ = fs::remove_file(path);
    }
    let mut cells = runners.into_iter().map(|runner| runner.cell);
    let baseline = cells.next().ok_or("the baseline is always asked")?;
    Ok(Asked::new(
        query,
        number,
        file.len(),
        proven,
        baseline,
        cells.collect(),
    ))
}

impl Runner<'_> {
    fn count(&mut self, round: usize, cost: Cost, agreement: Option<Agreement>) {
        if round > 0 {
            self.cell.runs.push(cost);
        }
        if let Some(now) = agreement {
            let before = self.cell.agreement.map_or(0, |before| before.inexact);
            // Sums of several threads may differ from run to run.
            self.cell.agreement = Some(Agreement {
                inexact: now.inexact.max(before),
                ..now
            });
        }
    }
}

/// Says what is wrong with a run. The comparison is a process of its own: it takes memory, and a child inherits
/// the mark of its parent.
fn judge(
    number: usize,
    tool: Option<&Found>,
    ended: &process::Output,
    reference: &Path,
    answer: &Path,
) -> Result<Option<Agreement>, String> {
    if !ended.status.success() {
        let text = ended.stderr.trim();
        let shown = text.lines().next().unwrap_or_default();
        return Err(format!("{}: {shown}", ended.status));
    }
    let Some(found) = tool else {
        return Ok(None);
    };
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let number = number.to_string();
    let mut line: Vec<OsString> = vec![this.into(), "--compare".into(), number.into()];
    line.extend([found.name.into(), reference.into(), answer.into()]);
    let mut compared = process::run(&line).map_err(|error| error.to_string())?;
    if !compared.status.success() {
        let why = compared.stderr.trim();
        return Err(format!(
            "WRONG ANSWER: {}",
            why.trim_start_matches("jobs: ")
        ));
    }
    let told = compared.output().map_err(|error| error.to_string())?;
    let agreement: Agreement = serde_json::from_slice(&told).map_err(|error| error.to_string())?;
    if found.tool == Tool::Ringfold && !agreement.identical {
        return Err("WRONG ANSWER: not the same bytes as in the first run".into());
    }
    Ok(Some(agreement))
}

fn compare(query: &str, tool: &str, reference: &str, answer: &str) -> Result<(), Box<dyn Error>> {
    let query = &QUERIES[query.parse::<usize>()? - 1];
    let tool = Tool::ALL.into_iter().find(|known| known.name() == tool);
    let tool = tool.ok_or("no such tool")?;
    let shape = Shape {
        delimiter: tool.delimiter(query),
        header: tool.has_header(),
    };
    let paths = [reference, answer].map(Path::new);
    let agreement = answers::compare(paths[0], paths[1], &shape, &query.fields())?;
    println!("{}", serde_json::to_string(&agreement)?);
    Ok(())
}

/// The same command with the file as standard input, for who reads it there, and a file for the answer.
fn redirected(line: Vec<OsString>, path: &Path, answer: &Path) -> Vec<OsString> {
    let script = "file=$1 answer=$2; shift 2; exec \"$@\" < \"$file\" > \"$answer\"";
    let mut whole: Vec<OsString> = ["sh", "-c", script, "sh"].map(OsString::from).to_vec();
    whole.extend([path.into(), answer.into()]);
    whole.extend(line);
    whole
}

/// Shows on a terminal how far it is, on one line.
fn progress(text: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        // Who can't see it misses nothing that counts.
        let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
    }
}
