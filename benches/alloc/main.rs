//! What the allocator costs: `ringfold quote` and xquo, with several allocators and C libraries, by number of workers.
//!
//! `make bench-alloc`. docs/allocation.md tells what was learned.

#[path = "../canvas.rs"]
#[allow(dead_code, reason = "the other plots have a margin")]
mod canvas;
mod plot;

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;
use ringfold::internals::process;
use serde::Serialize;

/// Compare allocators, C libraries and numbers of workers over the records of xquo's article
#[derive(Parser)]
#[command(name = "alloc", max_term_width = 100)]
struct Options {
    /// Records of the file
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    records: u64,
    /// Rounds that count
    #[arg(long, value_name = "N", default_value_t = 7)]
    runs: usize,
    /// Numbers of workers
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "1,2"
    )]
    workers: Vec<usize>,
    /// Where results.md, results.json and results.svg go
    #[arg(long, value_name = "DIR", default_value = "docs/bench/allocation")]
    output: PathBuf,
    /// What cargo adds
    #[arg(long, hide = true)]
    bench: bool,
}

/// A program, built in one way.
struct Build {
    program: &'static str,
    allocator: &'static str,
    libc: &'static str,
    path: PathBuf,
}

/// A program with its flags, and its times.
#[derive(Serialize)]
struct Row {
    program: String,
    allocator: &'static str,
    libc: &'static str,
    workers: usize,
    seconds: Vec<f64>,
    median_s: f64,
    cpu_s: f64,
    peak_memory_bytes: u64,
    #[serde(skip)]
    line: Vec<OsString>,
}

/// What it was measured on.
#[derive(Serialize)]
struct Machine {
    cores: usize,
    cpu: String,
    kernel: String,
}

impl Machine {
    fn look() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find(|line| line.starts_with("model name"));
        let cpu = model.and_then(|line| line.split_once(": "));
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: cpu.map_or("an unknown processor", |cpu| cpu.1).to_string(),
            kernel: kernel.trim().to_string(),
        }
    }
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    records: u64,
    bytes: u64,
    runs: usize,
    rows: Vec<Row>,
    left_out: Vec<String>,
}

fn main() -> ExitCode {
    if std::env::args_os().len() == 1 {
        eprintln!("alloc: nothing to test; to measure: make bench-alloc");
        return ExitCode::SUCCESS;
    }
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .expect("the tree is there");
    match measure(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("alloc: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<(), Box<dyn Error>> {
    let path = records(options.records)?;
    let (builds, left_out) = builds();
    for reason in &left_out {
        println!("left out: {reason}");
    }
    let mut rows = rows(&builds, &options.workers, &path);
    check(&rows)?;
    for round in 0..=options.runs {
        // Every other round runs backwards, and the first one only warms up.
        let order: Vec<usize> = match round % 2 {
            0 => (0..rows.len()).collect(),
            _ => (0..rows.len()).rev().collect(),
        };
        for at in order {
            let row = &mut rows[at];
            let ended = process::run(&row.line)?;
            if !ended.status.success() {
                return Err(format!("{}: {}", row.program, ended.stderr).into());
            }
            if round > 0 {
                row.seconds.push(ended.cost.wall_s);
                row.cpu_s += ended.cost.cpu_s() / options.runs as f64;
                row.peak_memory_bytes = row.peak_memory_bytes.max(ended.cost.peak_memory_bytes);
            }
        }
        eprint!("\rround {round} of {}", options.runs);
    }
    eprintln!();
    for row in &mut rows {
        let mut sorted = row.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        row.median_s = sorted[sorted.len() / 2];
    }
    let report = Report {
        machine: Machine::look(),
        records: options.records,
        bytes: fs::metadata(&path)?.len(),
        runs: options.runs,
        rows,
        left_out,
    };
    fs::create_dir_all(&options.output)?;
    let text = table(&report);
    print!("{text}");
    fs::write(options.output.join("results.md"), text)?;
    let json = serde_json::to_string_pretty(&report)?;
    fs::write(options.output.join("results.json"), json + "\n")?;
    plot::draw(&report, &options.output.join("results.svg"))
}

/// The article's records, `test'N`, a backspace, `''N`, each with a NUL behind it.
fn records(count: u64) -> Result<PathBuf, Box<dyn Error>> {
    let path = PathBuf::from(format!("data/records-{count}.bin"));
    if !path.exists() {
        fs::create_dir_all("data")?;
        let part = path.with_extension("part");
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&part)?);
        for n in 1..=count {
            write!(file, "test'{n}\x08''{n}\0")?;
        }
        file.into_inner()?.sync_all()?;
        fs::rename(part, &path)?;
    }
    Ok(path)
}

/// Builds what can be built here; and why the others are left out.
fn builds() -> (Vec<Build>, Vec<String>) {
    let musl = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let (mut builds, mut left_out) = (Vec::new(), Vec::new());
    for (libc, target) in [("glibc", None), ("musl", Some(&*musl))] {
        for allocator in ["system", "jemalloc", "mimalloc"] {
            for program in ["ringfold", "xquo"] {
                // xquo has no such feature, and tokio-uring doesn't compile for musl.
                if matches!(
                    (program, allocator, libc),
                    ("xquo", "mimalloc", _) | ("ringfold", _, "musl")
                ) {
                    continue;
                }
                match build(program, allocator, target) {
                    Ok(path) => builds.push(Build {
                        program,
                        allocator,
                        libc,
                        path,
                    }),
                    Err(error) => {
                        left_out.push(format!("{program}, {allocator}, {libc}: {error}"));
                    }
                }
            }
        }
    }
    (builds, left_out)
}

fn build(program: &str, allocator: &str, target: Option<&str>) -> Result<PathBuf, Box<dyn Error>> {
    let root = std::env::current_dir()?.join("target/alloc");
    let place = root.join(format!("{allocator}-{}", target.unwrap_or("gnu")));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    let built = match program {
        "ringfold" => {
            cargo.args(["build", "--locked", "--release", "--target-dir"]);
            cargo.arg(&place);
            place.join(target.unwrap_or("")).join("release/ringfold")
        }
        _ => {
            let installed = place.join("installed");
            cargo.args(["install", "xquo", "--version", "0.2.3", "--quiet", "--root"]);
            cargo.arg(&installed);
            installed.join("bin/xquo")
        }
    };
    if let Some(target) = target {
        cargo.args(["--target", target]);
    }
    if allocator != "system" {
        cargo.args(["--features", allocator]);
    }
    if program != "ringfold" && built.exists() {
        return Ok(built);
    }
    eprintln!(
        "building {program}, {allocator}, {}",
        target.unwrap_or("glibc")
    );
    let output = cargo.output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let first = text.lines().find(|line| line.contains("error"));
        return Err(first.unwrap_or("cargo failed").trim().into());
    }
    Ok(built)
}

fn rows(builds: &[Build], workers: &[usize], path: &Path) -> Vec<Row> {
    let mut rows = Vec::new();
    for build in builds {
        for &workers in workers {
            let flag_sets: &[&[&str]] = match build.program {
                "ringfold" => &[&["quote", "-z"]],
                _ => &[&[], &["-b", "1000"]],
            };
            for &flags in flag_sets {
                // The file is standard input for both; ringfold can map it there too.
                let mut line: Vec<OsString> = vec![
                    "sh".into(),
                    "-c".into(),
                    "file=$1; shift; exec \"$@\" < \"$file\" > /dev/null".into(),
                    "sh".into(),
                    path.into(),
                    (&build.path).into(),
                ];
                line.extend(flags.iter().map(OsString::from));
                line.extend(["-w".into(), workers.to_string().into()]);
                rows.push(Row {
                    program: [&[build.program], flags].concat().join(" "),
                    allocator: build.allocator,
                    libc: build.libc,
                    workers,
                    seconds: Vec::new(),
                    median_s: 0.0,
                    cpu_s: 0.0,
                    peak_memory_bytes: 0,
                    line,
                });
            }
        }
    }
    rows
}

/// All of them write a line a record that bash reads back the same: checked on some records at both ends.
fn check(rows: &[Row]) -> Result<(), Box<dyn Error>> {
    let input: Vec<u8> = (1..=1000)
        .flat_map(|n| format!("test'{n}\x08''{n}\0").into_bytes())
        .collect();
    fs::write("data/records-check.bin", &input)?;
    for row in rows {
        let mut line = row.line.clone();
        line[2] = "file=$1; shift; \"$@\" < data/records-check.bin | sed \"s/^/printf '%s\\\\\\\\0' /\" | bash".into();
        let mut ended = process::run(&line)?;
        if ended.output()? != input {
            return Err(format!("{}: bash doesn't read back its words", row.program).into());
        }
    }
    Ok(())
}

fn table(report: &Report) -> String {
    let mut text = format!(
        "# Allocators\n\n{} records, {} MiB, cached, to /dev/null; medians of {} interleaved runs, fastest to slowest in \
         brackets.\n{} cores of {}, Linux {}.\n\n",
        report.records,
        report.bytes >> 20,
        report.runs,
        report.machine.cores,
        report.machine.cpu,
        report.machine.kernel,
    );
    text += "| program | C library | allocator | workers | seconds | GiB/s | CPU seconds | peak memory |\n";
    text += "|---|---|---|--:|--:|--:|--:|--:|\n";
    for row in &report.rows {
        let (low, high) = row
            .seconds
            .iter()
            .fold((f64::MAX, 0f64), |(low, high), &s| {
                (low.min(s), high.max(s))
            });
        text += &format!(
            "| {} | {} | {} | {} | {:.3} ({low:.3}-{high:.3}) | {:.2} | {:.2} | {} MiB |\n",
            row.program,
            row.libc,
            row.allocator,
            row.workers,
            row.median_s,
            report.bytes as f64 / row.median_s / (1u64 << 30) as f64,
            row.cpu_s,
            row.peak_memory_bytes >> 20,
        );
    }
    for reason in &report.left_out {
        text += &format!("\nLeft out: {reason}\n");
    }
    text
}
