//! Runs: on a thread of their own, while the caller's looks for signals and tells of progress.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use ringfold::cli::hosted::{self, Host};

use crate::answer::Answer;
use crate::error::raised;
use crate::files::Files;

/// How often signals are looked for, and progress is told.
const TICK: Duration = Duration::from_millis(50);
/// How long a run that is cancelled is waited for. A thread that sits in the kernel is left behind.
const PATIENCE: Duration = Duration::from_millis(100);

/// Does `work` on a thread of its own; returns also what the program would have said. `progress` is called with the bytes that were
/// read, and all of them if that is known.
pub fn watched<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Host) -> ringfold::Result<T> + Send + 'static,
) -> PyResult<(T, Vec<String>)> {
    let host = Host::default();
    let shared = host.clone();
    let (sender, mut receiver) = channel();
    let thread = std::thread::Builder::new().name("ringfold".into());
    let thread = thread.spawn(move || {
        // Nobody may wait for it any more.
        let _ = sender.send(work(&shared));
    })?;
    let tell = || match progress {
        Some(call) => call.call1(host.progress()).map(drop),
        None => Ok(()),
    };
    loop {
        // A receiver can be handed to another thread, but not shared.
        let (waited, back) = py.detach(move || (receiver.recv_timeout(TICK), receiver));
        receiver = back;
        match waited {
            Ok(done) => {
                tell()?;
                let done = done.map_err(|error| raised(py, &error))?;
                return Ok((done, host.take_lines()));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let panicked = py.detach(|| thread.join()).err();
                let why = panicked.and_then(|panic| panic.downcast::<String>().ok());
                let why = why.map_or("a worker panicked".into(), |why| *why);
                return Err(PyRuntimeError::new_err(why));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(raised) = py.check_signals().and_then(|()| tell()) {
            host.cancel();
            let _ = py.detach(move || receiver.recv_timeout(PATIENCE));
            return Err(raised);
        }
    }
}

#[pyfunction]
#[pyo3(signature = (flags, paths, progress=None))]
pub fn aggregate(
    py: Python<'_>,
    flags: Vec<OsString>,
    paths: Vec<Bound<'_, PyAny>>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Answer> {
    let files = Files::of(&paths)?;
    let run = move |host: &Host| hosted::aggregate(flags, files.of_host(host), host);
    let (found, lines) = watched(py, progress.as_ref(), run)?;
    Ok(Answer::new(found, lines))
}

#[pyfunction]
#[pyo3(signature = (flags, paths, progress=None))]
pub fn describe(
    py: Python<'_>,
    flags: Vec<OsString>,
    paths: Vec<Bound<'_, PyAny>>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Answer> {
    let files = Files::of(&paths)?;
    let run = move |host: &Host| hosted::describe(flags, files.of_host(host), host);
    let (found, lines) = watched(py, progress.as_ref(), run)?;
    Ok(Answer::new(found, lines))
}

#[pyfunction]
pub fn explain(
    py: Python<'_>,
    flags: Vec<OsString>,
    paths: Vec<Bound<'_, PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    let files = Files::of(&paths)?;
    watched(py, None, move |host| {
        hosted::explain(flags, files.of_host(host), host)
    })
}

/// The lines and bytes of each file.
#[pyfunction]
#[pyo3(signature = (flags, paths, progress=None))]
pub fn count(
    py: Python<'_>,
    flags: Vec<OsString>,
    paths: Vec<Bound<'_, PyAny>>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(Vec<(u64, u64)>, Vec<String>)> {
    let files = Files::of(&paths)?;
    let run = move |host: &Host| hosted::count(flags, files.of_host(host), host);
    let (counted, lines) = watched(py, progress.as_ref(), run)?;
    let each = counted.iter().map(|of| (of.records, of.bytes));
    Ok((each.collect(), lines))
}

/// JSON.
#[pyfunction]
pub fn probe(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<String> {
    let found = py.detach(|| hosted::probe(&paths));
    found.map_err(|error| raised(py, &error))
}

/// The flags of a command: their names, and whether they take a value.
#[pyfunction]
pub fn flags(command: &str) -> Vec<(String, bool)> {
    hosted::flags(command)
}

/// The program; returns its exit code. The first word names it.
#[pyfunction]
pub fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| {
        let code = ringfold::cli::main(words);
        let is_code = |known: &u8| std::process::ExitCode::from(*known) == code;
        (0..=u8::MAX).find(is_code).unwrap_or(1)
    })
}

/// Never sets a handler of SIGBUS in this process. To be called before the first run.
///
/// A run sets one when it first maps a file, so that a page that can't be read, because the file was cut or the disk failed, ends
/// the run with an error and not the process. It hands all other faults to the handler that was there. Without it no file of an
/// input is mapped.
#[pyfunction]
pub fn decline_sigbus_handler() {
    ringfold::decline_sigbus_handler();
}
