//! Commands within another program, a host such as Python: flags in words, answers in memory.
//!
//! Nothing is printed, no signal, hook or limit of the process is changed, and no error ends it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use clap::{CommandFactory, ValueEnum};
use rayon::ThreadPool;

use crate::budget::GROUP_MIN;
use crate::cli::aggregate::check_group;
use crate::cli::answer_flags::{Form, odd_key};
use crate::cli::command::{Cli, Command};
use crate::cli::console::{Lines, notice, saying_to, usage};
use crate::cli::query::{self, Question, tell};
use crate::cli::reading::FoldOutput;
use crate::cli::{aggregate, ending, help, merge, pointer, spell};
use crate::job::count::Counted;
use crate::query::{Answer, Description, Partial, Plan};
use crate::report::grid::GridFormat;
use crate::{CancellationToken, Error, Input, Object, Progress, Receipt, Result, Stats};

/// What a run shares with its host, on any thread.
#[derive(Clone, Default)]
pub struct Host {
    progress: Arc<Mutex<(u64, Option<u64>)>>,
    cancellation: CancellationToken,
    pub(super) lines: Lines,
    objects: Arc<Mutex<HashMap<PathBuf, Arc<dyn Object>>>>,
}

impl Host {
    /// The bytes that were read, and all that there are, if it is known.
    pub fn progress(&self) -> (u64, Option<u64>) {
        *self.progress.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Ends the run with an error of [`Kind::Cancelled`](crate::Kind::Cancelled).
    pub fn cancel(&self) {
        self.cancellation.cancel();
    }

    /// What the program would have written to stderr since the last call, a line each.
    pub fn take_lines(&self) -> Vec<String> {
        self.lines.take()
    }

    /// What follows a run's progress.
    pub(super) fn follower(&self) -> Arc<Progress> {
        let progress = Arc::clone(&self.progress);
        Arc::new(move |done, total| {
            *progress.lock().unwrap_or_else(|e| e.into_inner()) = (done, total);
        })
    }

    /// Has an object in the place of a file of this name.
    pub fn add_object(&self, name: PathBuf, object: Arc<dyn Object>) {
        let mut objects = self.objects.lock().unwrap_or_else(|e| e.into_inner());
        objects.insert(name, object);
    }

    /// Opens files and objects.
    pub(super) fn open(&self, paths: &[impl AsRef<Path>]) -> Result<Input> {
        let objects = self.objects.lock().unwrap_or_else(|e| e.into_inner());
        let mut input = Input::default();
        for path in paths.iter().map(AsRef::as_ref) {
            match objects.get(path) {
                Some(object) => input.add_object(&path.to_string_lossy(), Arc::clone(object)),
                None => input.add(path)?,
            }
        }
        Ok(input)
    }

    pub(super) fn cancellation(&self) -> CancellationToken {
        self.cancellation.clone()
    }
}

/// What a run has found, and what became of the records.
pub struct Found<T> {
    /// An answer or a description.
    pub found: T,
    /// What was counted, by name.
    pub counted: Vec<(String, u64)>,
    /// What the run did, if something was read.
    pub stats: Option<Stats>,
    /// The run's threads.
    pub pool: Arc<ThreadPool>,
}

impl<T> Found<T> {
    /// The same of what is made of it.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Found<U> {
        Found {
            found: make(self.found),
            counted: self.counted,
            stats: self.stats,
            pool: self.pool,
        }
    }
}

/// The answer of `ringfold aggregate` with these flags.
///
/// # Errors
/// Those of the command.
pub fn aggregate(flags: Vec<OsString>, paths: &[PathBuf], host: &Host) -> Result<Found<Answer>> {
    run(flags, paths, host, false, |answer, question, _| {
        answer.lay_out(&question.layout)
    })
    .map(|(found, ())| found)
}

/// The groups of such an answer, as `--save-partial` keeps them.
///
/// # Errors
/// Those of the command.
pub fn partial(flags: Vec<OsString>, paths: &[PathBuf], host: &Host) -> Result<Found<Vec<u8>>> {
    let (found, bytes) = run(flags, paths, host, true, |answer, _, saved| {
        let mut bytes = Vec::new();
        if let Some((plan, receipt)) = saved {
            let saved = answer.save(plan, receipt, &mut bytes);
            saved.map_err(|error| Error::output(&error))?;
        }
        Ok(bytes)
    })?;
    Ok(found.map(|_| bytes))
}

type Saved<'a> = Option<(&'a Plan, &'a Receipt)>;

/// Reads the files, and ends with what `finish` makes of the answer, on the run's threads.
fn run<T: Send>(
    flags: Vec<OsString>,
    paths: &[PathBuf],
    host: &Host,
    is_saved: bool,
    finish: impl FnOnce(&mut Answer, &Question<'_>, Saved<'_>) -> Result<T> + Send,
) -> Result<(Found<Answer>, T)> {
    saying_to(Some(&host.lines), || {
        let command = asking(flags, host)?;
        let form = Form::Grid(GridFormat::Csv);
        let run = command.as_run(paths, vec![(&command.asked, form)], false);
        let (flags, reading) = (&command.query, &command.reading);
        let (_, queries) = flags.queries(&run)?;
        let questions = [Question::new(&command.asked, form)?];
        let rejects = flags.records.open(None, paths)?;
        let (input, plans) = flags.compile(&run, &queries, &questions, None)?;
        let before = flags.before(&run, &questions, (&input, &plans))?;
        before.iter().flatten().for_each(notice);
        let receipt = is_saved.then(|| Receipt::of(&input)).transpose()?;
        let FoldOutput {
            output: answers,
            stats,
            pool,
        } = flags.fold(&run, &input, &plans, rejects)?;
        let counted = query::counted(&answers);
        let mut answer = answers.into_iter().next().expect("one query");
        let saved = plans.all().first().zip(receipt.as_ref());
        let finished = pool.install(|| finish(&mut answer, &questions[0], saved))?;
        if !is_saved && !reading.quiet {
            odd_key(&answer, &pool)?.iter().for_each(notice);
        }
        tell(reading, &input, &pool, &answer);
        let found = Found {
            found: answer,
            counted,
            stats: Some(stats),
            pool,
        };
        Ok((found, finished))
    })
}

fn asking(flags: Vec<OsString>, host: &Host) -> Result<Box<aggregate::Command>> {
    check_group()?;
    match help::of_flags("aggregate", flags)? {
        Command::Aggregate(mut command) => {
            command.reading.host = Some(host.clone());
            Ok(command)
        }
        _ => unreachable!("it was named"),
    }
}

/// The answer of partials, as `ringfold merge` with these flags gives it.
///
/// # Errors
/// Those of the command.
pub fn answer(
    mut flags: Vec<OsString>,
    partials: &[Arc<Partial>],
    host: &Host,
) -> Result<Found<Answer>> {
    saying_to(Some(&host.lines), || {
        // The command wants files.
        flags.push("-".into());
        let Command::Merge(command) = help::of_flags("merge", flags)? else {
            unreachable!("it was named");
        };
        let (layout, shown) = command.shown(Form::Grid(GridFormat::Csv))?;
        let merged = Partial::merge(partials.iter().map(|partial| &**partial))?;
        let merged = command.narrowed(merged.cancellation(host.cancellation()))?;
        merged.check_layout(&layout, &shown)?;
        command.check_missing(&merged, true)?;
        let pool = merge::pool(command.threads)?;
        let mut answer = pool.install(|| merged.answer(&shown))?;
        pool.install(|| answer.lay_out(&layout))?;
        odd_key(&answer, &pool)?.iter().for_each(notice);
        merge::tell(&answer);
        Ok(Found {
            counted: query::counted(std::slice::from_ref(&answer)),
            found: answer,
            stats: None,
            pool: Arc::new(pool),
        })
    })
}

/// One partial of several, by these threads or one for each core.
///
/// # Errors
/// They can't be merged, or one is damaged.
pub fn merge(partials: &[Arc<Partial>], threads: Option<usize>, host: &Host) -> Result<Vec<u8>> {
    saying_to(Some(&host.lines), || {
        let merged = Partial::merge(partials.iter().map(|partial| &**partial))?;
        let merged = merged.cancellation(host.cancellation());
        let mut bytes = Vec::new();
        let saved = merge::pool(threads)?.install(|| merged.save(&mut bytes));
        saved.map_err(|error| Error::output(&error))?;
        Ok(bytes)
    })
}

/// What `ringfold aggregate --explain` prints.
///
/// # Errors
/// Those of the command.
pub fn explain(flags: Vec<OsString>, paths: &[PathBuf], host: &Host) -> Result<String> {
    saying_to(Some(&host.lines), || {
        let command = asking(flags, host)?;
        let form = Form::Grid(GridFormat::Csv);
        let run = command.as_run(paths, vec![(&command.asked, form)], false);
        let (unasked, queries) = command.query.queries(&run)?;
        let questions = [Question::new(&command.asked, form)?];
        let (input, plans) = command.query.compile(&run, &queries, &questions, None)?;
        let parts = (&unasked, &queries[0], &plans.all()[0]);
        query::explained(parts, &command.asked, &input)
    })
}

/// What `ringfold describe` finds with these flags.
///
/// # Errors
/// Those of the command.
pub fn describe(
    flags: Vec<OsString>,
    paths: &[PathBuf],
    host: &Host,
) -> Result<Found<Description>> {
    saying_to(Some(&host.lines), || {
        check_group()?;
        let Command::Describe(mut command) = help::of_flags("describe", flags)? else {
            unreachable!("it was named");
        };
        command.reading.host = Some(host.clone());
        let query = command.query(paths)?;
        let rejects = command.records.open(None, paths)?;
        let described = command.described(paths, query, rejects)?;
        command.tell(&described, false);
        let answers = std::slice::from_ref(&described.answer);
        Ok(Found {
            counted: query::counted(answers),
            found: described.description,
            stats: Some(described.stats),
            pool: described.pool,
        })
    })
}

/// The lines and bytes of each file, as `ringfold count` counts them.
///
/// # Errors
/// Those of the command; a file can't be opened.
pub fn count(flags: Vec<OsString>, paths: &[PathBuf], host: &Host) -> Result<Vec<Counted>> {
    saying_to(Some(&host.lines), || {
        let Command::Count(mut command) = help::of_flags("count", flags)? else {
            unreachable!("it was named");
        };
        command.reading.host = Some(host.clone());
        Ok(command.counted(host.open(paths)?)?.0)
    })
}

/// What `ringfold probe --json` prints.
///
/// # Errors
/// A file can't be opened.
pub fn probe(paths: &[PathBuf]) -> Result<String> {
    let findings = ringfold_bench::probe::probe(paths, GROUP_MIN)?;
    Ok(serde_json::to_string(&findings).expect("plain values"))
}

/// The flags of a command: the long name, and whether it takes a value.
pub fn flags(command: &str) -> Vec<(String, bool)> {
    let cli = Cli::command();
    let command = cli.find_subcommand(command);
    let flags = command.into_iter().flat_map(clap::Command::get_arguments);
    let flags = flags.filter_map(|flag| Some((flag.get_long()?, flag.get_action().takes_values())));
    flags
        .map(|(name, is_valued)| (name.into(), is_valued))
        .collect()
}

/// The format of this name, or else the one that a path's ending says, or CSV.
///
/// # Errors
/// There is none of this name, or the path names one that isn't written.
pub fn format(name: Option<&str>, path: &Path) -> Result<GridFormat> {
    let Some(name) = name else {
        return Ok(ending::format(path)?.unwrap_or(GridFormat::Csv));
    };
    GridFormat::from_str(name, true).map_err(|_| {
        let formats = GridFormat::value_variants().iter();
        let names = formats.filter_map(|format| format.to_possible_value());
        let names: Vec<_> = names.map(|name| name.get_name().to_string()).collect();
        usage(format!(
            "there is no format `{name}`, but {}",
            names.join(", ")
        ))
    })
}

/// An error as the program writes it, with the lines that point into a condition.
pub fn spelled(error: &Error) -> String {
    let lines = std::iter::once(spell::error(error)).chain(pointer::lines(error));
    lines.collect::<Vec<_>>().join("\n")
}
