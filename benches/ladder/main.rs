//! The same group-by of `key;value` lines, and the same count, written in the ways that people write them, compared by
//! `ringfold bench`: what each step from `BufRead::lines` to ringfold gains.
//!
//! `make bench-ladder`. docs/measuring.md has the table of rungs. Each rung is this program under another name.

#[path = "../program.rs"]
#[allow(dead_code, reason = "other benchmarks run other programs")]
mod program;
mod rungs;

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;

use program::RINGFOLD;
use rungs::{RUNGS, count_by_byte, count_by_vector, text};

/// Climb the ladder: group-bys and counts of lines of key;value with one decimal, from BufRead::lines to ringfold
#[derive(Parser)]
#[command(name = "ladder", max_term_width = 100)]
struct Options {
    /// Lines of key;value with one decimal
    file: PathBuf,
    /// Flags of ringfold bench, such as -- --state cached --report ladder.html
    #[arg(last = true)]
    flags: Vec<OsString>,
    /// What cargo adds
    #[arg(long, hide = true)]
    bench: bool,
}

/// What counts lines, by name.
type Counter = (&'static str, fn(&Path) -> io::Result<u64>);

/// Rungs that only count.
const COUNTING: [Counter; 2] = [
    ("count-bytes", count_by_byte),
    ("count-vectors", count_by_vector),
];

/// How ringfold counts, from one thread that maps the file to what it does by default.
const COUNTS: &str = "mmap --threads 1,mmap --threads 1 --populate on,mmap,mmap --map-advice hugepage,\
                      uring --direct --huge-pages off,uring --direct,auto";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let name = Path::new(&name).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    if let Some(rung) = RUNGS.iter().find(|rung| rung.name == name) {
        let groups = (rung.run)(Path::new(&words.next().ok_or("which file?")?))?;
        io::stdout().write_all(&text(&groups))?;
    } else if let Some((_, count)) = COUNTING.iter().find(|(known, _)| *known == name) {
        println!("{}", count(Path::new(&words.next().ok_or("which file?")?))?);
    } else {
        return climb(&Options::parse());
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares all rungs.
fn climb(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let links = program.with_extension("rungs");
    std::fs::create_dir_all(&links)?;
    let counting = COUNTING.map(|(name, _)| name);
    for name in RUNGS.iter().map(|rung| rung.name).chain(counting) {
        match symlink(&program, links.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
    }
    for rung in &RUNGS {
        println!("{:20} {}", rung.name, rung.what);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([links].into_iter().chain(std::env::split_paths(&path)))?;
    let grouping: Vec<&str> = RUNGS.iter().map(|rung| rung.name).collect();
    for (job, engines, names) in [
        ("aggregate", "auto", &*grouping),
        ("count", COUNTS, &counting),
    ] {
        let mut bench = Command::new(&*RINGFOLD);
        bench.arg("bench").arg(&options.file).env("PATH", &path);
        bench.args(["--job", job, "--engine", engines]);
        for name in names {
            bench.args(["--command", &format!("{name} {{}}")]);
        }
        bench.args(["--baseline", &format!("{} {{}}", names[0])]);
        if !bench.args(&options.flags).status()?.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}
