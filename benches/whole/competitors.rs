//! Who takes part: a command line each, and what its answer has to be.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use crate::process::Ended;

/// The release binary of this tree, as its source is now, beside what this benchmark was built into.
pub static RINGFOLD: LazyLock<String> = LazyLock::new(|| {
    let benchmark = std::env::current_exe().expect("a benchmark is a file");
    // target/release/deps/whole-0123
    let target = benchmark.ancestors().nth(3).expect("cargo's folders");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let mut build = Command::new(cargo);
    build.args([
        "build",
        "--quiet",
        "--locked",
        "--release",
        "--bin",
        "ringfold",
    ]);
    build
        .args(["--manifest-path", tree, "--target-dir"])
        .arg(target);
    let built = build.status().is_ok_and(|status| status.success());
    assert!(built, "ringfold can't be built: {build:?}");
    target
        .join("release/ringfold")
        .to_string_lossy()
        .into_owned()
});
/// Python's libraries, as import and as people know them, with their queries.
const LIBRARIES: [(&str, &str, &str); 2] = [
    ("duckdb", "DuckDB", include_str!("query_duckdb.py")),
    ("polars", "Polars", include_str!("query_polars.py")),
];

/// What fio reads at once and how often at once: ringfold's defaults for O_DIRECT.
const FIO_BLOCK: u64 = 512 << 10;
const FIO_DEPTH: u64 = 32;

/// Names by which `--only` chooses, in the order of the table.
pub const NAMES: [&str; 13] = [
    "auto",
    "uring",
    "uring-direct",
    "read",
    "pread",
    "mmap",
    "count",
    COUNT_DIRECT,
    FIO,
    "fio-small-pages",
    BASELINE,
    "duckdb",
    "polars",
];
/// What the others are compared with; it always takes part.
pub const BASELINE: &str = "wc";
/// Our raw read and the one that it is held against.
pub const COUNT_DIRECT: &str = "count-direct";
pub const FIO: &str = "fio";

/// What is asked for, and so who must agree with whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Min, mean and max by key.
    Groups,
    /// The number of lines.
    Lines,
    /// Nothing but to read: fio tells how much and how long it took, by its own clock.
    Bytes,
}

/// A program that takes part.
pub struct Competitor {
    pub name: &'static str,
    pub label: String,
    pub question: Question,
    /// Whether it is ringfold.
    pub ours: bool,
    pub line: Vec<OsString>,
}

/// Those who take part, and why others don't.
pub struct Field {
    pub competitors: Vec<Competitor>,
    pub left_out: Vec<String>,
}

/// Finds everybody among `names` who is there.
pub fn find(file: &Path, names: &[String]) -> Field {
    let mut field = Field {
        competitors: Vec::new(),
        left_out: Vec::new(),
    };
    for name in NAMES {
        if name != BASELINE && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        let library_of = |(import, ..): &&(&str, &str, &str)| *import == name;
        let found = match (name, LIBRARIES.iter().find(library_of)) {
            (_, Some((import, known_as, query))) => library(import, known_as, query, file),
            (FIO, _) => fio(name, true, file),
            ("fio-small-pages", _) => fio(name, false, file),
            _ => Ok(program(name, file)),
        };
        match found {
            Ok(competitor) => field.competitors.push(competitor),
            Err(why) => field.left_out.push(format!("{name}: {why}")),
        }
    }
    field
}

fn program(name: &'static str, file: &Path) -> Competitor {
    let (label, line) = match name {
        BASELINE => ("wc -l".to_string(), vec!["wc", "-l"]),
        _ => {
            let (job, flags) = match name {
                "count" => ("count", vec!["auto"]),
                COUNT_DIRECT => ("count", vec!["uring", "--direct"]),
                "uring-direct" => ("aggregate", vec!["uring", "--direct"]),
                engine => ("aggregate", vec![engine]),
            };
            let label = match job {
                "count" => format!("ringfold count, {}", flags.join(" ")),
                _ => format!("ringfold {}", flags.join(" ")),
            };
            (
                label,
                [vec![&*RINGFOLD, job, "--quiet", "--engine"], flags].concat(),
            )
        }
    };
    let mut line: Vec<OsString> = line.into_iter().map(OsString::from).collect();
    line.push(file.into());
    Competitor {
        name,
        label,
        question: match name {
            BASELINE | "count" | COUNT_DIRECT => Question::Lines,
            _ => Question::Groups,
        },
        ours: name != BASELINE,
        line,
    }
}

/// A Python library, called through the interpreter itself and not through what may wrap it.
fn library(
    import: &'static str,
    known_as: &str,
    query: &str,
    file: &Path,
) -> Result<Competitor, String> {
    let ask = format!("import sys, {import} as it; print(sys.executable); print(it.__version__)");
    let told = output_of("python3", &["-c", &ask]);
    let (python, version) = told
        .as_deref()
        .and_then(|told| told.split_once('\n'))
        .ok_or_else(|| format!("python3 can't import it; pip install {import}"))?;
    let mut line = [python, "-c", query].map(OsString::from).to_vec();
    line.push(file.into());
    Ok(Competitor {
        name: import,
        label: format!("{known_as} {version}"),
        question: Question::Groups,
        ours: false,
        line,
    })
}

/// fio with the block, the depth and, if so wanted, the huge pages of our own raw read.
fn fio(name: &'static str, huge_pages: bool, file: &Path) -> Result<Competitor, String> {
    let version =
        output_of("fio", &["--version"]).ok_or("it isn't there; install the package fio")?;
    let engines = output_of("fio", &["--enghelp"]).unwrap_or_default();
    if !engines.lines().any(|engine| engine.trim() == "io_uring") {
        return Err(format!("{version} was built without io_uring"));
    }
    // A colon parts names there.
    let path = file
        .to_str()
        .ok_or("it takes only names that are UTF-8")?
        .replace(':', "\\:");
    // Its own huge pages come from a pool that only root fills; from the C library they come as ours.
    let (memory, pages) = match huge_pages {
        true => ("1", "huge pages"),
        false => ("0", "small pages"),
    };
    let line = [
        "env",
        &format!("GLIBC_TUNABLES=glibc.malloc.hugetlb={memory}"),
        "fio",
        "--name=read",
        "--readonly",
        "--rw=read",
        "--ioengine=io_uring",
        "--direct=1",
        &format!("--bs={FIO_BLOCK}"),
        &format!("--iodepth={FIO_DEPTH}"),
        // The state of the page cache is our business.
        "--invalidate=0",
        "--output-format=json",
        &format!("--filename={path}"),
    ];
    Ok(Competitor {
        name,
        label: format!("{version}, {pages}"),
        question: Question::Bytes,
        ours: false,
        line: line.map(OsString::from).to_vec(),
    })
}

/// How many bytes fio has read, and in how many seconds by its own clock.
fn told_by_fio(stdout: &[u8]) -> Option<(u64, f64)> {
    // What it has to remark stands before.
    let begin = stdout.iter().position(|&byte| byte == b'{')?;
    let told: serde_json::Value = serde_json::from_slice(&stdout[begin..]).ok()?;
    let read = told.pointer("/jobs/0/read")?;
    let seconds = read.get("runtime")?.as_f64()? / 1e3;
    Some((read.get("io_bytes")?.as_u64()?, seconds))
}

/// What a program prints when it succeeds.
pub fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_string())
}

/// Ringfold as it names itself.
pub fn ringfold_version() -> Option<String> {
    output_of(&RINGFOLD, &["--version"])
}

/// Makes a file of measurements with ringfold.
pub fn generate(arguments: &[&str]) -> Result<(), String> {
    let status = Command::new(&*RINGFOLD)
        .arg("generate")
        .args(arguments)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("ringfold generate: {status}")),
        Err(error) => Err(format!("{}: {error}", *RINGFOLD)),
    }
}

/// The answers that all others must agree with: the first ones given.
pub struct Answers {
    file_bytes: u64,
    groups: Option<(String, Vec<u8>)>,
    lines: Option<(String, Vec<u8>)>,
}

impl Answers {
    /// No answers yet about a file of so many bytes.
    pub fn new(file_bytes: u64) -> Answers {
        Answers {
            file_bytes,
            groups: None,
            lines: None,
        }
    }

    /// Whether nobody has answered anything so far.
    pub fn none_yet(&self) -> bool {
        self.groups.is_none() && self.lines.is_none()
    }

    /// The number of lines, once it is known.
    pub fn lines(&self) -> Option<u64> {
        let (_, lines) = self.lines.as_ref()?;
        std::str::from_utf8(lines).ok()?.parse().ok()
    }

    /// Judges how a run ended; says what is wrong with it. Who has a clock of its own is taken at
    /// its word.
    pub fn check(&mut self, competitor: &Competitor, ended: &mut Ended) -> Result<(), String> {
        if !ended.status.success() {
            let last = ended.stderr.trim_end().lines().last().unwrap_or_default();
            return Err(format!("{}: {last}", ended.status));
        }
        let in_our_style;
        let (known, answer) = match competitor.question {
            Question::Groups if competitor.ours => (&mut self.groups, &ended.stdout[..]),
            Question::Groups => {
                in_our_style = one_line(&ended.stdout);
                (&mut self.groups, &in_our_style[..])
            }
            // The file's name stands behind it.
            Question::Lines => {
                let number = ended
                    .stdout
                    .split(|&byte| byte == b' ')
                    .find(|part| !part.is_empty());
                (&mut self.lines, number.unwrap_or_default())
            }
            Question::Bytes => {
                let (bytes, seconds) = told_by_fio(&ended.stdout).ok_or("WRONG ANSWER: none")?;
                // It reads whole blocks only.
                if bytes != self.file_bytes / FIO_BLOCK * FIO_BLOCK || seconds == 0.0 {
                    return Err(format!("WRONG ANSWER: {bytes} bytes read in {seconds} s"));
                }
                ended.cost.own_clock_s = Some(seconds);
                return Ok(());
            }
        };
        match known {
            Some((_, right)) if right == answer => Ok(()),
            Some((who, right)) => {
                let at = right.iter().zip(answer).take_while(|(a, b)| a == b).count();
                Err(format!(
                    "WRONG ANSWER: not that of {who}, from byte {at} on: {} against {}",
                    excerpt(answer, at),
                    excerpt(right, at)
                ))
            }
            None if answer.is_empty() => Err("WRONG ANSWER: none at all".into()),
            None => {
                *known = Some((competitor.label.clone(), answer.to_vec()));
                Ok(())
            }
        }
    }
}

/// The lines `key;min;mean;max` of the libraries as ringfold's one line.
fn one_line(rows: &[u8]) -> Vec<u8> {
    let rows = String::from_utf8_lossy(rows);
    let entries: Vec<_> = rows
        .lines()
        .map(|row| match row.rsplitn(4, ';').collect::<Vec<_>>()[..] {
            [max, mean, min, key] => format!("{key}={min}/{mean}/{max}"),
            _ => row.to_string(),
        })
        .collect();
    format!("{{{}}}\n", entries.join(", ")).into_bytes()
}

fn excerpt(answer: &[u8], at: usize) -> String {
    let around = &answer[at.saturating_sub(20)..(at + 20).min(answer.len())];
    format!("{:?}", String::from_utf8_lossy(around))
}
