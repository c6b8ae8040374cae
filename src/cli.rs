//! The command line: flags shared by all jobs, signals, exit codes. One file a subcommand.
//!
//! Exit codes: 0; 1 data, input or output; 2 usage; 130 and 143 on SIGINT and SIGTERM; 141 when
//! the reader of the output has gone.

mod aggregate;
mod count;
mod duration;
mod generate;
mod help;
mod inherited;
mod knobs;
mod man;
mod memory;
mod own_input;
mod probe;
mod process;
mod progress;
mod size;
mod spell;
mod stats;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::output::file::Output;
use crate::{Config, Engine, Error, Input, Kind, Result};
use clap::{Args, CommandFactory, Parser, Subcommand};

use duration::duration;
use progress::{Bar, When};
use size::size;

/// Group-by over text at the speed of the drive.
#[derive(Parser)]
#[command(
    version,
    arg_required_else_help = true,
    args_override_self = true,
    max_term_width = 100,
    after_help = "\
To begin with: ringfold aggregate FILE, where FILE has lines of `key;value`.
All flags of a command: ringfold COMMAND --help, or ringfold man COMMAND | man -l -"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Aggregate(aggregate::Command),
    Count(count::Command),
    Generate(generate::Command),
    Probe(probe::Command),
    Man(man::Command),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

/// What all jobs that read have in common.
#[derive(Args)]
struct Reading {
    /// Worker threads [default: one a core]
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<usize>,
    /// Print what the run did on stderr: rows, time and memory; all figures with =full, or with
    /// =json as JSON
    ///
    /// Memory is the process's own (anonymous pages), which --memory limits the tables of, and the
    /// mapped pages of files, which the kernel takes back when it needs them: the most of each that
    /// was seen at 50 looks a second.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "text", hide_possible_values = true)]
    stats: Option<stats::Format>,
    /// When to draw progress on stderr (auto: on a terminal)
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    progress: When,
    /// No progress and no notices. What an answer lacks is told all the same
    #[arg(short, long)]
    quiet: bool,
    /// Print the flags that say how files are read: engines, block sizes, io_uring, the page cache
    #[arg(long)]
    help_io: bool,
    #[command(flatten)]
    how: How,
}

/// How files are read: `--help-io`.
#[derive(Args)]
#[command(next_help_heading = "I/O")]
struct How {
    /// What reads the input: auto (cached parts by the workers, the rest through the ring), uring,
    /// uring-raw, read, pread, mmap or memory
    #[arg(long, value_name = "ENGINE", default_value = "auto", hide_possible_values = true,
          value_parser = Engine::ALL.map(Engine::name))]
    engine: String,
    /// Read past the page cache (O_DIRECT); fails where the file system refuses it. Helps cold
    /// files: nothing is copied, nothing evicted
    #[arg(long)]
    direct: bool,
    /// Bytes a read brings, as 256K or 1M. Large ones cost less of the processor, small ones less
    /// memory [default: 512K through the ring, 2M by pread, up to 16M by mmap]
    #[arg(short, long, value_name = "SIZE", value_parser = size)]
    block_size: Option<u64>,
    /// Reads in flight. More help until the device is busy [default: 32]
    #[arg(long, alias = "iodepth", value_name = "N")]
    queue_depth: Option<usize>,
    /// Buffers of the ring, more than the queue depth. More help where workers are slow now and
    /// then [default: depth + 2 x threads, 12 more below 1M]
    #[arg(long, value_name = "N")]
    buffers: Option<usize>,
    /// The longest record
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = size)]
    max_record: u64,
    /// End the run with an error when a read takes longer, as 500ms, 30s or 2m. It counts from the
    /// moment when the kernel gets the read. For files and block devices; pipes and terminals may
    /// take their time [default: none; after 30s there is a notice]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    io_timeout: Option<Duration>,
    #[command(flatten)]
    switches: knobs::Switches,
}

impl Reading {
    fn config(&self, progress: Arc<AtomicU64>) -> Result<Config> {
        let quiet = self.quiet;
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        Ok(Config {
            engine: self.how.engine.parse::<Engine>()?,
            direct: self.how.direct,
            block_size: self.how.block_size.map(bytes),
            queue_depth: self.how.queue_depth,
            buffers: self.how.buffers,
            threads: self.threads,
            max_record: bytes(self.how.max_record),
            knobs: self.how.switches.knobs(),
            progress: Some(progress),
            io_timeout: self.how.io_timeout,
            // Threads and rings that wait for the read may never come back, so nobody waits for them.
            overdue: Some(Arc::new(|error| give_up(error))),
            notice: Arc::new(move |notice| {
                if !quiet {
                    say(&format!("notice: {}", spell::notice(notice)));
                }
            }),
            ..Config::default()
        })
    }

    /// Folds files while a bar shows how far it is. Whatever follows goes on with the threads of the run.
    fn fold<F: crate::Fold>(&self, input: &Input, job: &F) -> Result<Folded<F::Output>> {
        let done = Arc::new(AtomicU64::new(0));
        let mut config = self.config(Arc::clone(&done))?;
        let pool = crate::pool(input, &config)?;
        config.pool = Some(Arc::clone(&pool));
        let bar = Bar::start(self.progress, self.quiet, input.len(), done);
        let folded = crate::fold(input, &config, job);
        bar.finish();
        let (output, stats) = folded?;
        Ok(Folded {
            output,
            stats,
            pool,
        })
    }
}

/// What a job has come to, what the run did, and its threads.
struct Folded<T> {
    output: T,
    stats: crate::Stats,
    pool: Arc<rayon::ThreadPool>,
}

/// What to read.
#[derive(Args)]
struct Files {
    /// Files to read; - is standard input, which is also read when there is no FILE
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Files {
    /// The paths. Waiting for somebody to type is never what was meant.
    fn paths(&self) -> Result<Vec<PathBuf>> {
        let paths = match self.files.is_empty() {
            true if io::stdin().is_terminal() => {
                return Err(Error::new(
                    Kind::Usage,
                    "no FILE to read: name one, or pipe into ringfold",
                ));
            }
            true => vec!["-".into()],
            false => self.files.clone(),
        };
        if paths.iter().any(|path| path.as_os_str() == "-") {
            inherited::standard_input()?;
        }
        Ok(paths)
    }
}

/// Opens where a result goes; before the work, so that a wrong path doesn't cost it.
fn open_output(path: Option<&PathBuf>) -> Result<Output> {
    match path.filter(|path| path.as_os_str() != "-") {
        Some(path) => Output::open(path),
        None => {
            inherited::standard_output()?;
            Output::stdout()
        }
    }
    .map_err(|error| Error::output(&error))
}

/// Writes a result there.
fn write_output(
    mut output: Output,
    write: impl FnOnce(&mut Output) -> io::Result<()>,
) -> Result<()> {
    let written = write(&mut output).and_then(|()| output.finish());
    written.map_err(|error| Error::output(&error))
}

/// Writes a text to standard output.
fn print(text: &[u8]) -> Result<ExitCode> {
    write_output(open_output(None)?, |out| out.write_all(text))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the program.
pub fn main() -> ExitCode {
    process::hold_signals();
    tell_panics();
    let command = match help::parsed() {
        Ok(command) => command,
        Err(code) => return code,
    };
    let limited = match &command {
        Command::Aggregate(command) => command.is_limited(),
        Command::Count(command) => command.is_limited(),
        _ => false,
    };
    if limited {
        process::guard();
    }
    // No more files than words.
    crate::input::descriptors::make_room_for_files(std::env::args_os().len());
    process::take_signals();
    let done = match command {
        Command::Aggregate(command) => command.run().map(|()| ExitCode::SUCCESS),
        Command::Count(command) => command.run(),
        Command::Generate(command) => command.run().map(|()| ExitCode::SUCCESS),
        Command::Probe(command) => command.run().map(|()| ExitCode::SUCCESS),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "ringfold", &mut script);
            print(&script)
        }
        Command::Man(command) => command.run().map(|()| ExitCode::SUCCESS),
    };
    let ending = process::ending();
    std::mem::forget(ending);
    match done {
        Ok(code) => code,
        Err(error) => {
            if error.kind() != Kind::ClosedPipe {
                say(&spell::error(&error));
            }
            ExitCode::from(error.exit_code())
        }
    }
}

/// Has panics told as errors are, where they are nothing but that.
fn tell_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The language's word where a thread began and there was no memory for it. Nobody catches it.
        let text = panic.payload().downcast_ref::<String>();
        if text.is_some_and(|text| text.starts_with("failed to allocate an alternative stack")) {
            let cause = "no memory for one more thread: lower --threads";
            give_up(
                &Error::new(Kind::Engine, cause)
                    .with_errno(&io::Error::from_raw_os_error(libc::ENOMEM)),
            );
        }
        // A worker's is caught and told as an error with its place; once is enough.
        let worker = std::thread::current()
            .name()
            .is_some_and(|name| name.starts_with("worker-"));
        if !worker {
            report(panic);
        }
    }));
}

/// Ends the process with an error from wherever it is.
fn give_up(error: &Error) -> ! {
    process::give_up(error.exit_code(), || {
        progress::clear_for_good();
        tell(&spell::error(error));
    })
}

/// Says a line on stderr, where progress may stand.
fn say(line: &str) {
    progress::clear();
    tell(line);
}

/// Writes a line to stderr. Where that is closed there is nobody to tell.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "ringfold: {}", printable(line));
}

/// The text with control characters spelled out, as a file's name may hold them: what is one line
/// stays one, and nothing in it commands the terminal.
fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_control() {
            true => line.extend(letter.escape_default()),
            false => line.push(letter),
        }
    }
    line
}
