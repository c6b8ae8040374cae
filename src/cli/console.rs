//! What the program writes: its results, and lines on stderr.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard};

use ringfold_read::internals::visible;

use crate::cli::{inherited, pointer, process, progress, spell};
use crate::output::file::Output;
use crate::{Cause, Error, Kind, Result};

/// Opens the output. Called before the work, so that a wrong path is reported first.
pub(super) fn open_output(path: Option<&PathBuf>) -> Result<Output> {
    match path.filter(|path| path.as_os_str() != "-") {
        Some(path) => Output::open(path),
        None => {
            inherited::standard_output()?;
            Output::stdout()
        }
    }
    .map_err(|error| Error::output(&error))
}

/// Writes a result to it.
pub(super) fn write_output(
    mut output: Output,
    write: impl FnOnce(&mut Output) -> io::Result<()>,
) -> Result<()> {
    let written = write(&mut output).and_then(|()| output.finish());
    written.map_err(|error| Error::output(&error))
}

/// Writes a text to a file.
pub(super) fn write_file(path: &Path, text: &str) -> Result<()> {
    let output = open_output(Some(&path.to_path_buf()))?;
    write_output(output, |out| out.write_all(text.as_bytes()))
}

/// Columns of standard output where it is a terminal that says so.
pub(super) fn columns() -> Option<usize> {
    let stdout = io::stdout();
    let is_terminal = stdout.is_terminal();
    let size = is_terminal.then(|| rustix::termios::tcgetwinsize(&stdout).ok());
    let columns = size.flatten().map(|size| usize::from(size.ws_col));
    columns.filter(|columns| *columns > 0)
}

/// An error of the command line.
pub(super) fn usage(why: impl Into<Cause>) -> Error {
    Error::new(Kind::Usage, why)
}

/// A failure with a file that isn't an input: advice for inputs is none for it.
pub(super) fn about(path: &Path, error: &io::Error) -> Error {
    let error = Error::io(error);
    let name = visible(path.as_os_str().as_bytes());
    Error::new(error.kind(), format!("{name}: {error}"))
}

/// Writes a text to standard output.
pub(super) fn print(text: &[u8]) -> Result<ExitCode> {
    write_output(open_output(None)?, |out| out.write_all(text))?;
    Ok(ExitCode::SUCCESS)
}

/// What the program exits with.
pub(super) fn exit_code(error: &Error) -> u8 {
    match error.kind() {
        Kind::Usage => 2,
        Kind::ClosedPipe => 141,
        _ => 1,
    }
}

/// Ends the process with an error, from any thread.
pub(super) fn give_up(error: &Error) -> ! {
    process::give_up(exit_code(error), || {
        progress::clear_for_good();
        tell_error(error);
    })
}

/// Lines for a host, in place of stderr.
#[derive(Clone, Default)]
pub(super) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(|e| e.into_inner());
        lines.push(line.into());
    }

    /// Takes out all of them.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(|e| e.into_inner()))
    }
}

thread_local! {
    static LINES: RefCell<Option<Lines>> = const { RefCell::new(None) };
}

/// What this thread says meanwhile goes to `lines`, if there are some.
pub(super) fn saying_to<T>(lines: Option<&Lines>, work: impl FnOnce() -> T) -> T {
    let before = LINES.replace(lines.cloned());
    let done = work();
    LINES.set(before);
    done
}

/// Writes a line to stderr, in place of progress, or gathers it, or leaves it to a host.
pub(super) fn say(line: &str) {
    if let Some(lines) = LINES.with_borrow(Option::clone) {
        return lines.push(line);
    }
    if let Some(lines) = gathered().as_mut().and_then(|each| each.last_mut()) {
        return lines.push(line.to_string());
    }
    progress::clear();
    tell(line);
}

/// Lines that are gathered, for each query of a run.
static GATHERED: Mutex<Option<Vec<Vec<String>>>> = Mutex::new(None);

fn gathered() -> MutexGuard<'static, Option<Vec<Vec<String>>>> {
    GATHERED.lock().unwrap_or_else(|e| e.into_inner())
}

/// Gathers what is said of the next query.
pub(super) fn gather(say: impl FnOnce()) {
    gathered().get_or_insert_default().push(Vec::new());
    say();
}

/// Writes what was gathered: a line once, and with the number of its query where it isn't about all.
pub(super) fn say_gathered() {
    let each = gathered().take().unwrap_or_default();
    for (at, lines) in each.iter().enumerate() {
        for line in lines {
            let is_in = |lines: &Vec<String>| lines.contains(line);
            match each.iter().all(is_in) {
                true if at == 0 => say(line),
                true => {}
                false => say(&format!("query {}: {line}", at + 1)),
            }
        }
    }
}

/// Writes a notice to stderr, in place of progress.
pub(super) fn notice(text: impl std::fmt::Display) {
    say(&format!("notice: {text}"));
}

/// Writes an error to stderr, in place of progress.
pub(super) fn say_error(error: &Error) {
    say_gathered();
    progress::clear();
    tell_error(error);
}

fn tell_error(error: &Error) {
    tell(&spell::error(error));
    for line in pointer::lines(error) {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// Writes a line to stderr, if that isn't closed.
pub(super) fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "ringfold: {}", visible(line.as_bytes()));
}
