//! Other programs that take part by name where they are installed: wc, fio, DuckDB and Polars.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::ValueEnum;
use ringfold_bench::measure::participant::{Kind, Participant, Prints};
use ringfold_read::internals::pages::HUGE_PAGE;

/// A program that takes part by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Tool {
    /// `wc -l`, which counts newlines on one thread
    Wc,
    /// A sequential read with io_uring and O_DIRECT, timed by fio's own clock
    Fio,
    /// The same into small pages, as fio takes them by default
    FioSmallPages,
    /// DuckDB from Python: min, mean and max by key of `key;value` lines
    Duckdb,
    /// Polars from Python: the same
    Polars,
}

/// What fio reads at once, and how much of it at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Depth {
    pub(super) block: u64,
    pub(super) reads: usize,
}

/// Python's libraries: their names, for import and for people, and their queries.
const DUCKDB: (&str, &str, &str) = ("duckdb", "DuckDB", include_str!("query_duckdb.py"));
const POLARS: (&str, &str, &str) = ("polars", "Polars", include_str!("query_polars.py"));

impl Tool {
    /// Its name as a flag has it.
    pub(super) fn name(self) -> String {
        let value = self.to_possible_value().expect("none is skipped");
        value.get_name().to_string()
    }

    /// Whether it answers what this job asks, or its time says something all the same.
    pub(super) fn fits(self, job: &[String]) -> bool {
        match self {
            Tool::Wc | Tool::Fio | Tool::FioSmallPages => true,
            Tool::Duckdb | Tool::Polars => job == ["aggregate"],
        }
    }

    /// Its command line for a file, or why it can't take part.
    pub(super) fn participant(self, file: &Path, depth: Depth) -> Result<Participant, String> {
        match self {
            Tool::Wc => {
                output_of("wc", &["--version"]).ok_or("it isn't there")?;
                let line = vec!["wc".into(), "-l".into(), file.into()];
                Ok(command("wc -l", line, Prints::Lines))
            }
            Tool::Fio => fio(file, depth, true),
            Tool::FioSmallPages => fio(file, depth, false),
            Tool::Duckdb => library(DUCKDB, file),
            Tool::Polars => library(POLARS, file),
        }
    }
}

/// Another program.
pub(super) fn command(name: &str, line: Vec<OsString>, prints: Prints) -> Participant {
    Participant {
        name: name.into(),
        line,
        kind: Kind::Command,
        prints,
        optional: false,
    }
}

/// A Python library, called through the interpreter itself and not through what may wrap it.
fn library(
    (import, known_as, query): (&str, &str, &str),
    file: &Path,
) -> Result<Participant, String> {
    let ask = format!("import sys, {import} as it; print(sys.executable); print(it.__version__)");
    let told = output_of("python3", &["-c", &ask]);
    let (python, version) = told
        .as_deref()
        .and_then(|told| told.split_once('\n'))
        .ok_or_else(|| format!("python3 can't import it: pip install {import}"))?;
    let mut line = [python, "-c", query].map(OsString::from).to_vec();
    line.push(file.into());
    Ok(command(
        &format!("{known_as} {version}"),
        line,
        Prints::Rows,
    ))
}

/// fio with the block, the depth and, if so wanted, the huge pages and registered buffers of our own raw read.
fn fio(file: &Path, depth: Depth, huge_pages: bool) -> Result<Participant, String> {
    let version =
        output_of("fio", &["--version"]).ok_or("it isn't there: install the package fio")?;
    let engines = output_of("fio", &["--enghelp"]).unwrap_or_default();
    if !engines.lines().any(|engine| engine.trim() == "io_uring") {
        return Err(format!("{version} was built without io_uring"));
    }
    // A colon parts names there.
    let path = file.to_str().ok_or("it takes only names that are UTF-8")?;
    let path = path.replace(':', "\\:");
    // Its own huge pages come from a pool that only root fills; from the C library they come as ours.
    let (memory, pages) = match huge_pages {
        true => ("1", ""),
        false => ("0", ", small pages"),
    };
    let Depth { block, reads } = depth;
    let line = [
        "env",
        &format!("GLIBC_TUNABLES=glibc.malloc.hugetlb={memory}"),
        "fio",
        "--name=read",
        "--readonly",
        "--rw=read",
        "--ioengine=io_uring",
        "--direct=1",
        &format!("--bs={block}"),
        &format!("--iodepth={reads}"),
        // The state of the page cache is our business.
        "--invalidate=0",
        "--output-format=json",
        &format!("--filename={path}"),
    ];
    let mut line = line.map(OsString::from).to_vec();
    if huge_pages {
        // Else the first and the last part of its memory are small pages.
        line.push(format!("--iomem_align={HUGE_PAGE}").into());
        // It fails where it may not lock so much, and we read without.
        if may_lock(block * reads as u64) {
            line.push("--fixedbufs=1".into());
        }
    }
    Ok(command(
        &format!("{version}{pages}"),
        line,
        Prints::Fio { block },
    ))
}

/// Whether this user may lock so many bytes, and some more.
fn may_lock(bytes: u64) -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    rustix::process::geteuid().is_root() || limit.is_none_or(|limit| limit / 2 >= bytes)
}

/// What a program prints when it succeeds.
fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_string())
}
