//! Who takes part: a command line each, and what its answer has to be.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::process::Ended;

/// The binary that this benchmark was built with.
const RINGFOLD: &str = env!("CARGO_BIN_EXE_ringfold");
const ANSWER: &str = include_str!("answer.py");
/// Python's libraries, as import and as people know them, with their queries.
const LIBRARIES: [(&str, &str, &str); 2] = [
    ("duckdb", "DuckDB", include_str!("query_duckdb.py")),
    ("polars", "Polars", include_str!("query_polars.py")),
];

/// Names by which `--only` chooses, in the order of the table.
pub const NAMES: [&str; 11] = [
    "auto",
    "uring",
    "uring-direct",
    "read",
    "pread",
    "mmap",
    "count",
    "count-direct",
    BASELINE,
    "duckdb",
    "polars",
];
/// What the others are compared with; it always takes part.
pub const BASELINE: &str = "wc";

/// What is asked for, and so who must agree with whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Min, mean and max by key.
    Groups,
    /// The number of lines.
    Lines,
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
        let found = match LIBRARIES.iter().find(|(import, ..)| *import == name) {
            Some((import, known_as, query)) => library(import, known_as, query),
            None => Some(program(name)),
        };
        match found {
            Some(mut competitor) => {
                competitor.line.push(file.into());
                field.competitors.push(competitor);
            }
            None => field.left_out.push(format!(
                "{name}: python3 can't import it; pip install {name}"
            )),
        }
    }
    field
}

fn program(name: &'static str) -> Competitor {
    let (label, line) = match name {
        BASELINE => ("wc -l".to_string(), vec!["wc", "-l"]),
        _ => {
            let (job, flags) = match name {
                "count" => ("count", vec!["auto"]),
                "count-direct" => ("count", vec!["uring", "--direct"]),
                "uring-direct" => ("aggregate", vec!["uring", "--direct"]),
                engine => ("aggregate", vec![engine]),
            };
            let label = match job {
                "count" => format!("ringfold count, {}", flags.join(" ")),
                _ => format!("ringfold {}", flags.join(" ")),
            };
            (
                label,
                [vec![RINGFOLD, job, "--quiet", "--engine"], flags].concat(),
            )
        }
    };
    Competitor {
        name,
        label,
        question: match name {
            BASELINE | "count" | "count-direct" => Question::Lines,
            _ => Question::Groups,
        },
        ours: name != BASELINE,
        line: line.into_iter().map(OsString::from).collect(),
    }
}

/// A Python library, called through the interpreter itself and not through what may wrap it.
fn library(import: &'static str, known_as: &str, query: &str) -> Option<Competitor> {
    let ask = format!("import sys, {import} as it; print(sys.executable); print(it.__version__)");
    let told = output_of("python3", &["-c", &ask])?;
    let (python, version) = told.split_once('\n')?;
    let script = format!("{ANSWER}\n\n{query}");
    Some(Competitor {
        name: import,
        label: format!("{known_as} {version}"),
        question: Question::Groups,
        ours: false,
        line: [python, "-c", &script].map(OsString::from).to_vec(),
    })
}

/// What a program prints when it succeeds.
pub fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_string())
}

/// Ringfold as it names itself.
pub fn ringfold_version() -> Option<String> {
    output_of(RINGFOLD, &["--version"])
}

/// Makes a file of measurements with ringfold.
pub fn generate(arguments: &[&str]) -> Result<(), String> {
    let status = Command::new(RINGFOLD)
        .arg("generate")
        .args(arguments)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("ringfold generate: {status}")),
        Err(error) => Err(format!("{RINGFOLD}: {error}")),
    }
}

/// The answers that all others must agree with: the first ones given.
#[derive(Default)]
pub struct Answers {
    groups: Option<(String, Vec<u8>)>,
    lines: Option<(String, Vec<u8>)>,
}

impl Answers {
    /// Whether nobody has answered anything so far.
    pub fn none_yet(&self) -> bool {
        self.groups.is_none() && self.lines.is_none()
    }

    /// The number of lines, once somebody has told it.
    pub fn lines(&self) -> Option<u64> {
        let (_, lines) = self.lines.as_ref()?;
        std::str::from_utf8(lines).ok()?.parse().ok()
    }

    /// Judges how a run ended; says what is wrong with it.
    pub fn check(&mut self, competitor: &Competitor, ended: &Ended) -> Result<(), String> {
        if !ended.status.success() {
            let last = ended.stderr.trim_end().lines().last().unwrap_or_default();
            return Err(format!("{}: {last}", ended.status));
        }
        let (known, answer) = match competitor.question {
            Question::Groups => (&mut self.groups, &ended.stdout[..]),
            // The file's name stands behind it.
            Question::Lines => {
                let number = ended
                    .stdout
                    .split(|&byte| byte == b' ')
                    .find(|part| !part.is_empty());
                (&mut self.lines, number.unwrap_or_default())
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

fn excerpt(answer: &[u8], at: usize) -> String {
    let around = &answer[at.saturating_sub(20)..(at + 20).min(answer.len())];
    format!("{:?}", String::from_utf8_lossy(around))
}
