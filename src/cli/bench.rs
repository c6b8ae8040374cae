//! `ringfold bench`: ways of reading a file compared with each other and with other programs.

mod field;
mod tools;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ringfold_bench::measure::answers::Answers;
use ringfold_bench::measure::bound;
use ringfold_bench::measure::cache::{CachedFile, State};
use ringfold_bench::measure::counters::{self, Counters};
use ringfold_bench::measure::limits::{Ceilings, MemoryRate};
use ringfold_bench::measure::machine::Machine;
use ringfold_bench::measure::participant::Kind;
use ringfold_bench::measure::results::{
    Case, FileFacts, Results, Row, Run, SCHEMA_VERSION, Settings,
};
use ringfold_bench::measure::rounds::Rounds;
use ringfold_bench::measure::statistics::Spread;
use ringfold_bench::measure::{compare, export, html, process, table};
use ringfold_bench::probe::probe;
use ringfold_read::internals::units::GIB;

use crate::budget::GROUP_MIN;
pub(super) use crate::cli::bench::field::run_words;
use crate::cli::bench::field::{FieldFlags, Job};
use crate::cli::console::{about, columns, notice, open_output, print, say, write_output};
use crate::cli::duration::duration;
use crate::cli::progress::{self, When};
use crate::output::file::Output;
use crate::{Error, Kind as ErrorKind, Result};

/// Columns of a table where there is no terminal.
const WIDTH: usize = 132;

/// Compare ways of reading a file with each other and with other programs
///
/// Each run is a process of its own. All take turns, every other round backwards, from a state of the page cache that is
/// made and proven before each run. All answers are compared. Root isn't needed, but the file must be yours, or you must
/// be allowed to write to it: the kernel tells nobody else what of it is cached.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ringfold bench data.txt
      eight ways of reading, cold and cached
  ringfold bench data.txt --with wc --command 'grep -c ^ {}'
      the same against other programs
  ringfold bench orders.csv --job 'aggregate -k country -a sum:price' --engine auto,mmap
      two engines with a query
  ringfold bench data.txt --state cold --pause 3s -b 256K,1M --engine 'uring --direct,pread'
      four ways on a disk that needs rest
  ringfold bench --compare before.json after.json
      two kernels, machines or settings side by side
  ringfold bench data.txt --export-json results.json --report report.html
      everything about all runs; and a page with pictures

docs/measuring.md says what each number means, how it is made, and what can fool it.")]
pub(super) struct Command {
    /// The file to read, or a block device
    #[arg(value_name = "FILE", required_unless_present = "compare")]
    file: Option<PathBuf>,
    /// The job: count, aggregate, quote or read (which looks at no byte), with its flags in quotes. As often as wanted
    #[arg(long, value_name = "JOB", default_value = "count")]
    job: Vec<String>,
    /// States of the page cache to run from: cold, half, cached
    #[arg(
        long,
        value_name = "STATES",
        value_delimiter = ',',
        default_value = "cold,cached",
        hide_possible_values = true,
        value_parser = state_parser()
    )]
    state: Vec<State>,
    #[command(flatten)]
    field: FieldFlags,
    /// Runs of each that count
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Runs of each before them that don't count
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    warmup: u16,
    /// Rest before each run that isn't from the cache, such as 3s. Many virtual disks save up what isn't used, and are
    /// fast for as long as that lasts
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pause: Option<Duration>,
    /// Don't measure what limits the results: raw reads, copies, memory
    #[arg(long)]
    no_ceilings: bool,
    /// A line that is kept with the results, such as a commit
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Write everything about all runs as JSON
    #[arg(long, value_name = "FILE")]
    export_json: Option<PathBuf>,
    /// Write a line for each run as CSV
    #[arg(long, value_name = "FILE")]
    export_csv: Option<PathBuf>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    export_markdown: Option<PathBuf>,
    /// Write a page with pictures: HTML that needs nothing else
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Read nothing, but show results of --export-json side by side: machines, kernels or settings
    #[arg(long, value_name = "JSON", num_args = 2.., conflicts_with = "file")]
    compare: Vec<PathBuf>,
    /// When to draw progress on stderr (auto: on a terminal)
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    progress: When,
    /// No progress and no notices
    #[arg(short, long)]
    quiet: bool,
}

fn state_parser() -> impl TypedValueParser<Value = State> {
    let names = PossibleValuesParser::new(State::ALL.map(State::name));
    names.map(|name| {
        let mut all = State::ALL.into_iter();
        all.find(|state| state.name() == name)
            .expect("a possible value")
    })
}

impl Command {
    pub(super) fn run(&self) -> Result<ExitCode> {
        match &self.file {
            Some(file) => self.bench(file),
            None => self.side_by_side(),
        }
    }

    /// Shows results of earlier calls.
    fn side_by_side(&self) -> Result<ExitCode> {
        let results: Vec<Results> = (self.compare.iter())
            .map(|path| read_results(path))
            .collect::<Result<_>>()?;
        let names = self.compare.iter().map(|path| path.display().to_string());
        let names: Vec<String> = names.collect();
        print(compare::text(&names, &results, width()).as_bytes())
    }

    fn bench(&self, path: &Path) -> Result<ExitCode> {
        let jobs = self.job.iter().map(|job| Job::parse(job));
        let jobs: Vec<Job> = jobs.collect::<Result<_>>()?;
        self.field.check_engines()?;
        // Before the runs, which take minutes.
        let outputs = self.outputs()?;
        let file = CachedFile::open(path).map_err(|error| about(path, &error))?;
        let probed = probe([path], GROUP_MIN)?;
        let mut results = Results {
            schema_version: SCHEMA_VERSION,
            started_unix_s: now_unix_s(),
            note: self.note.clone(),
            machine: Machine::look(path),
            file: FileFacts {
                path: path.display().to_string(),
                size_bytes: file.len(),
                lines: None,
            },
            settings: Settings {
                runs: self.runs.into(),
                warmup: self.warmup.into(),
                pause_s: self.pause.unwrap_or_default().as_secs_f64(),
                baseline: self.field.baseline.clone(),
            },
            ceilings: Ceilings::default(),
            cases: Vec::new(),
            probe: serde_json::to_value(&probed).expect("plain values"),
        };
        if file.len() > results.machine.memory_bytes / 10 * 8 && !self.quiet {
            notice("the file may not fit into memory: look at what was resident");
        }
        if !self.no_ceilings {
            match memory_rates() {
                Ok(rates) => results.ceilings.memory = rates,
                Err(why) => results.ceilings.missing.push(format!("memory: {why}")),
            }
        }
        if let Err(error) = Counters::begin() {
            let why = counters::why_none(&error);
            let missing = &mut results.ceilings.missing;
            missing.push(format!("the processor's counters: {why}"));
        }
        self.measure(path, &file, &jobs, &mut results)?;
        Command::export(&results, outputs)?;
        if results.any_failed() {
            progress::clear();
            say(
                "some of the runs failed or answered differently: see FAILED and the lines below the tables",
            );
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Runs all cases, and prints each when it is done.
    fn measure(
        &self,
        path: &Path,
        file: &CachedFile,
        jobs: &[Job],
        results: &mut Results,
    ) -> Result<()> {
        let rounds = Rounds {
            file,
            runs: self.runs.into(),
            warmup: self.warmup.into(),
            pause: self.pause.unwrap_or_default(),
        };
        let cases = jobs
            .iter()
            .flat_map(|job| self.state.iter().map(move |&state| (job, state)));
        let cases: Vec<_> = cases.collect();
        let draws = progress::is_wanted(self.progress, self.quiet);
        let (started, mut done_before) = (Instant::now(), 0);
        let mut answers = Answers::new(file.len());
        let mut job_before = "";
        for (number, &(job, state)) in cases.iter().enumerate() {
            if job.name != job_before {
                answers = Answers::new(file.len());
                job_before = &job.name;
            }
            let (field, missing) =
                (self.field).participants(path, job, state, !self.no_ceilings)?;
            self.field.check_baseline(&field)?;
            let each = field.len() * (rounds.runs + rounds.warmup);
            let mut tell = |now: ringfold_bench::measure::rounds::Progress<'_>| {
                if draws {
                    let round = match now.round {
                        0 => "warm-up".to_string(),
                        round => format!("round {round} of {}", rounds.runs),
                    };
                    let name = now.name;
                    let text = format!("{}, {}, {round}: {name}", job.name, state.name());
                    let all = each * (cases.len() - number) + done_before;
                    progress::show(&text, done_before + now.done, all, started.elapsed());
                }
            };
            let mut case = rounds
                .run(&job.name, state, &field, &mut answers, &mut tell)
                .map_err(|error| about(path, &error))?;
            progress::clear();
            done_before += each;
            case.rows.extend(missing);
            case.summarise(file.len(), self.field.baseline.as_deref());
            results.file.lines = results.file.lines.or(answers.lines());
            let lines = case.rows.iter().flat_map(|row| &row.runs);
            let counted = |run: &Run| run.own.as_ref()?.rows;
            results.file.lines = results.file.lines.or(lines.filter_map(counted).next());
            count_ceilings(&case, file.len(), &mut results.ceilings);
            let ceilings = &results.ceilings;
            bound::find(&mut case, ceilings, file.len(), results.machine.cores);
            results.cases.push(case);
            self.show(results)?;
        }
        // The last case may have measured a ceiling of the first.
        for case in &mut results.cases {
            bound::find(case, &results.ceilings, file.len(), results.machine.cores);
        }
        for line in table::all_ceilings(&results.ceilings) {
            print((line + "\n").as_bytes())?;
        }
        Ok(())
    }

    /// Prints the last case.
    fn show(&self, results: &Results) -> Result<()> {
        let Some(case) = results.cases.last() else {
            return Ok(());
        };
        let mut text = String::new();
        if results.cases.len() == 1 {
            text += &format!("{}\n\n", results.headline());
        }
        text += &format!("{}: {}\n", case.title(), case.state.meaning());
        if case.impossible.is_none() {
            text += &table::terminal(case, width());
        }
        for remark in case.remarks(results.machine.cores) {
            text += &format!("  {remark}\n");
        }
        print((text + "\n").as_bytes()).map(drop)
    }

    /// The files that results go to, as they are exported.
    fn outputs(&self) -> Result<Vec<Option<Output>>> {
        let (json, csv) = (&self.export_json, &self.export_csv);
        let paths = [json, csv, &self.export_markdown, &self.report].map(Option::as_ref);
        let open = |path: Option<&PathBuf>| path.map(|path| open_output(Some(path))).transpose();
        paths.into_iter().map(open).collect()
    }

    fn export(results: &Results, outputs: Vec<Option<Output>>) -> Result<()> {
        let json =
            |results: &Results| serde_json::to_string_pretty(results).expect("plain values") + "\n";
        let texts: [fn(&Results) -> String; 4] = [json, export::csv, export::markdown, html::page];
        for (output, text) in outputs.into_iter().zip(texts) {
            if let Some(output) = output {
                write_output(output, |out| out.write_all(text(results).as_bytes()))?;
            }
        }
        Ok(())
    }
}

/// Seconds since 1970.
pub(super) fn now_unix_s() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// What an earlier call has exported.
fn read_results(path: &Path) -> Result<Results> {
    let text = std::fs::read(path).map_err(|error| about(path, &error))?;
    let wrong = |cause: String| {
        Error::new(ErrorKind::Data, cause).in_file(0, &path.display().to_string().into())
    };
    let value: serde_json::Value = serde_json::from_slice(&text)
        .map_err(|error| wrong(format!("not results of ringfold bench: {error}")))?;
    match value["schema_version"].as_u64() {
        Some(version) if version == u64::from(SCHEMA_VERSION) => {}
        version => {
            let version = version.map_or("none".into(), |version| version.to_string());
            let cause = format!(
                "its schema_version is {version}, and this version of ringfold reads {SCHEMA_VERSION}"
            );
            return Err(wrong(cause));
        }
    }
    serde_json::from_value(value)
        .map_err(|error| wrong(format!("not results of ringfold bench: {error}")))
}

/// The rates of the case's ceiling, added to those of others.
fn count_ceilings(case: &Case, size_bytes: u64, ceilings: &mut Ceilings) {
    let rows = case.rows.iter().filter(|row| row.kind == Kind::Ceiling);
    for row in rows {
        if let Some(why) = row.left_out.as_ref().or(row.failed.as_ref()) {
            let missing = format!("{}: {why}", row.name);
            if !ceilings.missing.contains(&missing) {
                ceilings.missing.push(missing);
            }
        }
        let rate = rates(row, size_bytes);
        let of_state = match case.state {
            State::Cached => &mut ceilings.page_cache_copy_gib_per_s,
            State::Cold | State::Half => &mut ceilings.device_gib_per_s,
        };
        // Of several cases the fastest counts: a ceiling is what can be had.
        let faster = |old: &Spread| rate.is_none_or(|new| new.median <= old.median);
        if !of_state.as_ref().is_some_and(faster) {
            *of_state = rate;
        }
    }
}

/// The rates of a raw read by its own clock, which leaves out the start and the end of the process.
fn rates(row: &Row, size_bytes: u64) -> Option<Spread> {
    let rate = |run: &Run| {
        let elapsed = run.own.as_ref()?.elapsed_s;
        Some(size_bytes as f64 / elapsed / GIB)
    };
    Spread::of(row.runs.iter().filter_map(rate))
}

/// What memory can do, measured by a child.
fn memory_rates() -> Result<Vec<MemoryRate>, String> {
    let line = [
        field::this_program().map_err(|error| error.to_string())?,
        "ceiling".into(),
    ];
    let mut ended = process::run(&line).map_err(|error| error.to_string())?;
    if !ended.status.success() {
        return Err(ended.stderr.trim().to_string());
    }
    let text = ended.output().map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

/// Columns of standard output.
pub(super) fn width() -> usize {
    columns().unwrap_or(WIDTH)
}
