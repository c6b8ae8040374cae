//! Which flags are shown where: the first ones by `-h`, most by `--help`, those of I/O by `--help-io`, all of them in manual
//! pages and completions.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Subcommand};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;

use ringfold_bench::probe::quoted;

use crate::cli::command::{Cli, Command};
use crate::cli::console::{exit_code, print, say, say_error, usage};
use crate::cli::{again, asked};

/// The command that words say, of which the first names the program, or the exit code if there is nothing left to do.
pub(super) fn parsed(words: Vec<OsString>) -> Result<Command, ExitCode> {
    let mut line = line(words);
    again::keep(&line);
    let next = asked::take_next(&mut line);
    let mut cli = showing(|arg| !is_io(arg));
    cli = cli.mut_subcommand("aggregate", |command| {
        command.mut_args(|arg| {
            let is_first = FIRST.split(' ').any(|first| first == arg.get_id().as_str());
            arg.hide_short_help(!is_first)
        })
    });
    let matches = cli.try_get_matches_from(line);
    let matches = matches.map_err(|error| refused(&error))?;
    if let Some((name, of_command)) = matches.subcommand()
        && asks_for_io(of_command)
    {
        return Err(of_io(name));
    }
    let mut command = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli.command,
        Err(error) => error.exit(),
    };
    if let Command::Aggregate(command) = &mut command {
        command.add(next).map_err(|error| {
            say_error(&error);
            ExitCode::from(exit_code(&error))
        })?;
    }
    Ok(command)
}

/// The flags of `aggregate` that `-h` shows: one screen.
const FIRST: &str = "files key aggregate header filter sort top help";

/// The words of the command line; one that begins with a file is of `aggregate`, and so is one without words beside data.
fn line(mut words: Vec<OsString>) -> Vec<OsString> {
    // Commands with all their flags are built once, after this.
    let is_command =
        |word: &OsStr| word == "help" || word.to_str().is_some_and(Command::has_subcommand);
    let is_file = |word: &OsString| !is_command(word) && (word == "-" || Path::new(word).exists());
    // Of `ringfold -d ';' FILE`.
    let own = ["-h", "--help", "-V", "--version"];
    let is_flag = |word: &OsString| {
        word.as_encoded_bytes().starts_with(b"-") && !own.iter().any(|own| word == own)
    };
    let is_aggregate = match words.get(1) {
        Some(word) => is_file(word) || is_flag(word) && words[2..].iter().any(is_file),
        None => has_data(),
    };
    if is_aggregate {
        words.insert(1, "aggregate".into());
    }
    words
}

/// How long help waits for data in a pipe. Some programs leave one open that nothing comes through.
const WAIT: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

/// Whether standard input is a file that isn't empty, or a pipe with data.
fn has_data() -> bool {
    let stdin = io::stdin();
    let Ok(stat) = rustix::fs::fstat(&stdin) else {
        return false;
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => stat.st_size > 0,
        FileType::Fifo | FileType::Socket => {
            let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
            let ready = poll(&mut polled, Some(&WAIT)).is_ok();
            ready && polled[0].revents().contains(PollFlags::IN)
        }
        _ => false,
    }
}

/// All commands, with those flags visible in their help that `is_shown`.
fn showing(is_shown: impl Fn(&Arg) -> bool) -> clap::Command {
    let mut cli = Cli::command();
    for command in cli.get_subcommands_mut() {
        let all = with_negative_numbers(std::mem::take(command));
        *command = all.mut_args(|arg| {
            let is_hidden = arg.is_hide_set() || !is_shown(&arg);
            arg.hide(is_hidden)
        });
    }
    cli
}

/// A command with its flags for a host.
pub(super) fn of_flags(name: &str, flags: Vec<OsString>) -> crate::Result<Command> {
    let words = ["ringfold", name].into_iter().map(OsString::from);
    let parsed = showing(|_| true).try_get_matches_from(words.chain(flags));
    let parsed = parsed.and_then(|matches| Cli::from_arg_matches(&matches));
    Ok(parsed.map_err(|error| usage(line_of(&error)))?.command)
}

/// The first line of an error.
pub(super) fn line_of(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.trim_start_matches("error: ");
    text.lines().next().unwrap_or_default().to_string()
}

/// `-1` is a value where one is wanted, and no flag.
pub(super) fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| {
        let takes_value = arg.get_long().is_some() && arg.get_action().takes_values();
        match takes_value {
            true => arg.allow_negative_numbers(true),
            false => arg,
        }
    })
}

fn is_io(arg: &Arg) -> bool {
    arg.get_help_heading()
        .is_some_and(|heading| heading.starts_with("I/O"))
}

fn asks_for_io(matches: &ArgMatches) -> bool {
    matches!(matches.try_get_one("help_io"), Ok(Some(true)))
}

/// Prints the flags of I/O of a command.
fn of_io(name: &str) -> ExitCode {
    let mut cli = showing(is_io);
    cli.build();
    let command = cli.find_subcommand_mut(name).expect("it was parsed");
    let mut command = std::mem::take(command)
        .mut_arg("help", |help| help.hide(true))
        .about("Flags that say how files are read. Defaults follow the machine and the file")
        .long_about(None)
        .after_help("docs/knobs.md and docs/tuning.md say when each flag helps. `ringfold probe FILE` shows what this machine allows.");
    written(command.render_help().to_string().as_bytes())
}

/// Prints help, the version or an error, as clap has it.
fn printed(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        error.exit();
    }
    let text = error.render();
    let text = match io::stdout().is_terminal() {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    written(text.as_bytes())
}

fn written(text: &[u8]) -> ExitCode {
    match print(text) {
        Ok(code) => code,
        Err(error) => {
            say(&error.to_string());
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Says what clap found, or that what looks like a file isn't there.
fn refused(error: &clap::Error) -> ExitCode {
    let word = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) if error.kind() == ErrorKind::InvalidSubcommand => word,
        _ => return printed(error),
    };
    if !word.contains(['/', '.']) {
        return printed(error);
    }
    say(&format!("{} is neither a command nor a file", quoted(word)));
    ExitCode::from(2)
}
