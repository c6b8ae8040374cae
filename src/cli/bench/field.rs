//! Who takes part in a case: this program with each engine and each set of switches, its raw read as the ceiling, and
//! other programs.

use std::ffi::OsString;
use std::path::Path;

use clap::Args;
use ringfold_bench::measure::cache::State;
use ringfold_bench::measure::participant::{Kind, Participant, Prints};
use ringfold_bench::measure::results::Row;
use ringfold_bench::probe::quoted;
use ringfold_read::internals::sizing;

use crate::cli::bench::tools::{Depth, Tool, command};
use crate::cli::console::usage;
use crate::cli::size::size;
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

/// Who takes part.
#[derive(Args)]
pub(super) struct FieldFlags {
    /// Engines to compare, each with flags if wanted: auto,'uring --direct' [default: eight common ways]
    #[arg(long, value_name = "ENGINES", value_delimiter = ',')]
    engine: Vec<String>,
    /// One more way of reading: an engine and flags of --help-io. As often as wanted
    #[arg(long, value_name = "'ENGINE FLAGS'")]
    variant: Vec<String>,
    /// Each way of reading with each of these block sizes
    #[arg(short, long, value_name = "SIZES", value_delimiter = ',', value_parser = size_text)]
    block_size: Vec<String>,
    /// Each way of reading with each of these queue depths
    #[arg(long, alias = "iodepth", value_name = "NUMBERS", value_delimiter = ',', value_parser = number_text)]
    queue_depth: Vec<String>,
    /// Each way of reading with each of these numbers of threads
    #[arg(short = 'j', long, value_name = "NUMBERS", value_delimiter = ',', value_parser = number_text)]
    threads: Vec<String>,
    /// Another program, such as 'wc -l {}', where {} is the file. As often as wanted. A count must begin with the number
    /// of lines, and other answers must be the job's
    #[arg(long, value_name = "COMMAND")]
    command: Vec<String>,
    /// Other programs by name: wc, fio, fio-small-pages, duckdb, polars
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    with: Vec<Tool>,
    /// What the ratios divide by: the name of a participant [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(super) baseline: Option<String>,
    /// Compare the answers of each --command only with each other
    #[arg(long)]
    own_answers: bool,
}

/// A size as it was given.
fn size_text(text: &str) -> Result<String, String> {
    size(text).map(|_| text.to_string())
}

/// A number as it was given.
fn number_text(text: &str) -> Result<String, String> {
    let number = text.parse::<usize>();
    number
        .map(|_| text.to_string())
        .map_err(|error| error.to_string())
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

impl FieldFlags {
    /// The first word of each way of reading is an engine.
    pub(super) fn check_engines(&self) -> Result<()> {
        for variant in self.engine.iter().chain(&self.variant) {
            let first = variant.split_whitespace().next().unwrap_or_default();
            if !first.starts_with('-') {
                first.parse::<Engine>()?;
            }
        }
        Ok(())
    }

    pub(super) fn check_baseline(&self, field: &[Participant]) -> Result<()> {
        let Some(name) = &self.baseline else {
            return Ok(());
        };
        let shown = field
            .iter()
            .filter(|participant| participant.kind != Kind::Ceiling);
        let names: Vec<&str> = shown.map(|participant| &*participant.name).collect();
        match names.contains(&&**name) {
            true => Ok(()),
            false => {
                let names = names.join(", ");
                Err(usage(format!("--baseline {name}: there are {names}")))
            }
        }
    }

    /// What fio reads at once, and how much of it at a time.
    fn depth(&self) -> Depth {
        let one = |values: &[String]| match values {
            [value] => size(value).ok(),
            _ => None,
        };
        Depth {
            block: one(&self.block_size).unwrap_or(sizing::RING_BLOCK as u64),
            reads: one(&self.queue_depth).map_or(sizing::DEPTH, |depth| depth as usize),
        }
    }

    /// The participants of a job over a file from a state, with a raw read if ceilings are measured; and those that can't
    /// take part.
    pub(super) fn participants(
        &self,
        file: &Path,
        job: &Job,
        state: State,
        has_ceiling: bool,
    ) -> Result<(Vec<Participant>, Vec<Row>)> {
        let mut field: Vec<Participant> = Vec::new();
        let mut missing = Vec::new();
        let (variants, optional) = self.variants();
        for variant in variants {
            if !maps_and_looks_at_nothing(job, &variant) {
                field.push(ringfold(file, &job.words, &variant, optional)?);
            } else if optional {
                missing.push(left_out(&variant, Kind::Ringfold, NOTHING_READ.into()));
            } else {
                return Err(usage(format!("--job read with {variant}: {NOTHING_READ}")));
            }
        }
        for tool in &self.with {
            if !tool.fits(&job.words) {
                let why = format!("it has no query for `{}`: --command takes one", job.name);
                missing.push(left_out(&tool.name(), Kind::Command, why));
                continue;
            }
            match tool.participant(file, self.depth()) {
                Ok(participant) => field.push(participant),
                Err(why) => missing.push(left_out(&tool.name(), Kind::Command, why)),
            }
        }
        for text in &self.command {
            field.push(other(file, job, text, self.own_answers)?);
        }
        if has_ceiling {
            field.push(ceiling(file, state)?);
        }
        Ok((field, missing))
    }

    /// The flags of each way of reading, and whether what is refused is left out.
    fn variants(&self) -> (Vec<String>, bool) {
        let named = self.engine.iter().chain(&self.variant).cloned();
        let mut variants: Vec<String> = named.collect();
        let optional = variants.is_empty();
        if optional {
            variants = DEFAULT.map(String::from).to_vec();
        }
        for (flag, values) in [
            ("--block-size", &self.block_size),
            ("--queue-depth", &self.queue_depth),
            ("--threads", &self.threads),
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
        left_out: Some(why),
        ..Row::new(name, kind)
    }
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
fn ceiling(file: &Path, state: State) -> Result<Participant> {
    let (name, flags) = match state {
        State::Cached => ("raw read, pread", "pread"),
        State::Cold | State::Half => ("raw read, uring --direct", "uring --direct"),
    };
    let job = ["read".to_string()];
    Ok(Participant {
        name: name.into(),
        kind: Kind::Ceiling,
        prints: Prints::Anything,
        ..ringfold(file, &job, flags, true)?
    })
}

/// Another program by its command line, in which `{}` is the file.
fn other(file: &Path, job: &Job, text: &str, has_own_answer: bool) -> Result<Participant> {
    let file =
        (file.to_str()).ok_or_else(|| usage("--command takes only files whose names are UTF-8"))?;
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
        _ if has_own_answer => Prints::Anything,
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
