//! The command line: signals, exit codes, and a file for each subcommand.
//!
//! Exit codes: 0; 1 data, input or output; 2 usage; 130 and 143 on SIGINT and SIGTERM; 141 when
//! the reader of the output has gone.

mod again;
mod aggregate;
mod allocator;
mod answer_flags;
mod asked;
mod bench;
mod ceiling;
mod command;
mod console;
mod costs;
mod count;
mod describe;
mod discard;
mod duration;
mod ending;
mod generate;
mod help;
pub mod hosted;
mod inherited;
mod input;
mod inspect;
mod knobs;
mod log_pattern;
mod lookup;
mod man;
mod merge;
mod overview;
mod own_input;
mod partials;
mod pointer;
mod probe;
mod process;
mod profile;
mod progress;
mod query;
mod quote;
mod reading;
mod records;
mod size;
mod skipped;
mod spell;
mod stats;
mod tune;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::CommandFactory;
use ringfold_read::internals::OutOfMemory;

pub use crate::cli::allocator::Allocator;
use crate::cli::command::{Cli, Command};
use crate::cli::console::{exit_code, give_up, print, say_error};
use crate::{Error, Kind};

/// Runs the program with a command line, of which the first word names the program.
pub fn main(words: Vec<OsString>) -> ExitCode {
    let words_len = words.len();
    process::hold_signals();
    process::ignore_file_size_signal();
    tell_panics();
    let command = match help::parsed(words) {
        Ok(command) => command,
        Err(code) => return code,
    };
    let limited = match &command {
        Command::Aggregate(command) => command.reading.is_limited(),
        Command::Describe(command) => command.reading.is_limited(),
        Command::Count(command) => command.reading.is_limited(),
        Command::Quote(command) => command.reading.is_limited(),
        Command::Discard(command) => command.reading.is_limited(),
        _ => false,
    };
    if limited {
        process::guard();
    }
    // There are at most as many files as arguments.
    ringfold_read::internals::raise_descriptor_limit(words_len);
    process::take_signals();
    let done = match command {
        Command::Aggregate(command) => command.run().map(|()| ExitCode::SUCCESS),
        Command::Describe(command) => command.run().map(|()| ExitCode::SUCCESS),
        Command::Merge(command) => command.run().map(|()| ExitCode::SUCCESS),
        Command::Inspect(command) => command.run().map(|()| ExitCode::SUCCESS),
        Command::Count(command) => command.run(),
        Command::Quote(command) => command.run().map(|()| ExitCode::SUCCESS),
        Command::Generate(command) => command.run().map(|()| ExitCode::SUCCESS),
        Command::Probe(command) => command.run().map(|()| ExitCode::SUCCESS),
        Command::Bench(command) => command.run(),
        Command::Tune(command) => command.run().map(|()| ExitCode::SUCCESS),
        Command::Discard(command) => command.run().map(|()| ExitCode::SUCCESS),
        Command::Ceiling(command) => command.run().map(|()| ExitCode::SUCCESS),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "ringfold", &mut script);
            print(&script)
        }
        Command::Man(command) => command.run(Cli::command()).map(|()| ExitCode::SUCCESS),
    };
    let ending = process::ending();
    std::mem::forget(ending);
    match done {
        Ok(code) => code,
        Err(error) => {
            if error.kind() != Kind::ClosedPipe {
                say_error(&error);
            }
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Reports some panics as errors.
fn tell_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The standard library panics with this text when a thread's stack can't be allocated. Nothing can catch it.
        let text = panic.payload().downcast_ref::<String>();
        if text.is_some_and(|text| text.starts_with("failed to allocate an alternative stack")) {
            let cause = "no memory for one more thread: lower --threads";
            give_up(
                &Error::new(Kind::Engine, cause)
                    .with_errno(&io::Error::from_raw_os_error(libc::ENOMEM)),
            );
        }
        if let Some(OutOfMemory(bytes)) = panic.payload().downcast_ref() {
            allocator::end(*bytes);
        }
        // A worker's panic is caught and reported as an error with its place.
        let worker = std::thread::current()
            .name()
            .is_some_and(|name| name.starts_with("worker-"));
        if !worker {
            report(panic);
        }
    }));
}
