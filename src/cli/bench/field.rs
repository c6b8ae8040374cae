//! Who takes part in a case: this program with each engine and each set of switches, its raw read as the ceiling, and
//! other programs.

use std::ffi::OsString;
use std::path::Path;

use crate::cli::bench::tools::{Depth, Tool, command};
use crate::cli::console::usage;
use crate::measure::cache::State;
use crate::measure::participant::{Kind, Participant, Prints};
use crate::measure::results::Row;
use crate::probe::quoted;
use crate::{Engine, Error, Kind as ErrorKind, Result};

/// Ways of reading that are compared unless others are named. What the machine refuses is left out.
const DEFAULT: [&str; 8] = [
    "auto",
    "uring --direct",
    "uring",
    "uring --dontcache",
    "read",
    "pread",
    "mmap",
    "mmap --readahead 8M",
];

/// What the flags ask for.
pub(super) struct FieldFlags<'a> {
    pub(super) file: &'a Path,
    pub(super) engines: &'a [String],
    pub(super) variants: &'a [String],
    pub(super) block_sizes: &'a [String],
    pub(super) queue_depths: &'a [String],
    pub(super) threads: &'a [String],
    pub(super) commands: &'a [String],
    pub(super) tools: &'a [Tool],
    pub(super) own_answers: bool,
    pub(super) depth: Depth,
    pub(super) ceilings: bool,
}

/// A job: how it was given, and the words of this program's command line for it.
pub(super) struct Job {
    pub(super) name: String,
    words: Vec<String>,
}

impl Job {
    /// # Errors
    /// It isn't one of this program's jobs.
    pub(super) fn parse(text: &str) -> Result<Job> {
        let words = words("--job", text)?;
        match words.first().map(String::as_str) {
            Some("count" | "aggregate" | "quote" | "read") => {}
            _ => {
                let job = quoted(text);
                return Err(usage(format!(
                    "--job {job}: a job begins with count, aggregate, quote or read"
                )));
            }
        }
        Ok(Job {
            name: words.join(" "),
            words,
        })
    }
}

/// A text in words, as a shell takes them.
fn words(flag: &str, text: &str) -> Result<Vec<String>> {
    shlex::split(text)
        .ok_or_else(|| usage(format!("{flag} {}: a quote isn't closed", quoted(text))))
}

/// The participants of a job from a state, and tools that can't take part.
pub(super) fn of_case(
    wanted: &FieldFlags<'_>,
    job: &Job,
    state: State,
) -> Result<(Vec<Participant>, Vec<Row>)> {
    let mut field: Vec<Participant> = Vec::new();
    let mut missing = Vec::new();
    let (variants, optional) = variants(wanted);
    for variant in variants {
        if !maps_and_looks_at_nothing(job, &variant) {
            field.push(ringfold(wanted.file, &job.words, &variant, optional)?);
        } else if optional {
            missing.push(left_out(&variant, Kind::Ringfold, NOTHING_READ.into()));
        } else {
            return Err(usage(format!("--job read with {variant}: {NOTHING_READ}")));
        }
    }
    for tool in wanted.tools {
        if !tool.fits(&job.words) {
            let why = format!("it has no query for `{}`: --command takes one", job.name);
            missing.push(left_out(tool.name(), Kind::Command, why));
            continue;
        }
        match tool.participant(wanted.file, wanted.depth) {
            Ok(participant) => field.push(participant),
            Err(why) => missing.push(left_out(tool.name(), Kind::Command, why)),
        }
    }
    for text in wanted.commands {
        field.push(other(wanted, job, text)?);
    }
    if wanted.ceilings {
        field.push(ceiling(wanted, state)?);
    }
    Ok((field, missing))
}

/// Why a mapping takes no part in the job `read`.
const NOTHING_READ: &str = "a mapping reads only what somebody looks at, which that job doesn't";

fn maps_and_looks_at_nothing(job: &Job, variant: &str) -> bool {
    let engine = variant.split_whitespace().next();
    job.words[0] == "read" && engine == Some(Engine::Mmap.name())
}

/// The row of one that can't take part.
fn left_out(name: &str, kind: Kind, why: String) -> Row {
    Row {
        name: name.into(),
        kind,
        command: Vec::new(),
        left_out: Some(why),
        failed: None,
        summary: None,
        runs: Vec::new(),
    }
}

/// The flags of each way of reading, and whether what is refused is left out.
fn variants(wanted: &FieldFlags<'_>) -> (Vec<String>, bool) {
    let named = wanted.engines.iter().chain(wanted.variants).cloned();
    let mut variants: Vec<String> = named.collect();
    let optional = variants.is_empty();
    if optional {
        variants = DEFAULT.map(String::from).to_vec();
    }
    for (flag, values) in [
        ("--block-size", wanted.block_sizes),
        ("--queue-depth", wanted.queue_depths),
        ("--threads", wanted.threads),
    ] {
        if !values.is_empty() {
            let with = |variant: String| {
                let with = values
                    .iter()
                    .map(move |value| format!("{variant} {flag} {value}"));
                with.collect::<Vec<_>>()
            };
            variants = variants.into_iter().flat_map(with).collect();
        }
    }
    (variants, optional)
}

/// This program's command line for a job over a file with the engine auto, and more flags.
pub(in crate::cli) fn run_words(file: &Path, job: &str, flags: &[String]) -> Result<Vec<OsString>> {
    let job = Job::parse(job)?;
    let variant = ["auto"].into_iter().chain(flags.iter().map(String::as_str));
    let variant: Vec<_> = variant.collect();
    Ok(ringfold(file, &job.words, &variant.join(" "), true)?.line)
}

/// This program with a job and the flags of a variant, whose first word is the engine.
fn ringfold(file: &Path, job: &[String], variant: &str, optional: bool) -> Result<Participant> {
    let kind = match job.first().map(String::as_str) {
        Some("read") => "discard",
        Some(job) => job,
        None => "count",
    };
    let mut line: Vec<OsString> = vec![this_program()?, kind.into()];
    line.extend(job.iter().skip(1).map(OsString::from));
    let flags = words("--variant", variant)?;
    let engine = flags.first().filter(|word| !word.starts_with('-'));
    if engine.is_some() {
        line.push("--engine".into());
    }
    line.extend(flags.iter().map(OsString::from));
    line.extend(["--quiet", "--stats=json"].map(OsString::from));
    // A name that begins with a dash is no flag.
    line.extend(["--".into(), file.into()]);
    Ok(Participant {
        name: variant.trim().into(),
        line,
        kind: Kind::Ringfold,
        prints: match kind {
            // -l and -c print other columns, -z counts something else than lines.
            "count" if job.len() == 1 => Prints::Count,
            _ => Prints::Answer,
        },
        optional,
    })
}

/// The raw read that the others are held against: past the page cache where something isn't cached, else out of it.
fn ceiling(wanted: &FieldFlags<'_>, state: State) -> Result<Participant> {
    let (name, flags) = match state {
        State::Cached => ("raw read, pread", "pread"),
        State::Cold | State::Half => ("raw read, uring --direct", "uring --direct"),
    };
    let job = ["read".to_string()];
    Ok(Participant {
        name: name.into(),
        kind: Kind::Ceiling,
        prints: Prints::Anything,
        ..ringfold(wanted.file, &job, flags, true)?
    })
}

/// Another program by its command line, in which `{}` is the file.
fn other(wanted: &FieldFlags<'_>, job: &Job, text: &str) -> Result<Participant> {
    let file = (wanted.file.to_str())
        .ok_or_else(|| usage("--command takes only files whose names are UTF-8"))?;
    // A shell is only started where it is needed: it takes a millisecond.
    let line: Vec<OsString> = match text.contains([
        '|', '<', '>', '&', ';', '$', '`', '*', '?', '~', '#', '(', '\n',
    ]) {
        true => {
            let script = text.replace("{}", &quoted(file));
            ["sh", "-c", &script].map(OsString::from).to_vec()
        }
        false => {
            let words = words("--command", text)?.into_iter();
            words.map(|word| word.replace("{}", file).into()).collect()
        }
    };
    if line.is_empty() {
        return Err(usage("--command is empty"));
    }
    let prints = match job.words.first().map(String::as_str) {
        _ if wanted.own_answers => Prints::Anything,
        Some("count") if job.words.len() == 1 => Prints::Lines,
        Some("read") => Prints::Anything,
        _ => Prints::Answer,
    };
    Ok(command(text.trim(), line, prints))
}

/// The path of this program.
pub(super) fn this_program() -> Result<OsString> {
    let path = std::env::current_exe();
    path.map(OsString::from).map_err(|error| {
        let cause = format!("this program's own path can't be told: {error}");
        Error::new(ErrorKind::Io, cause)
    })
}
