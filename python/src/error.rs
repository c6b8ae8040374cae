//! Errors as Python's.

use pyo3::prelude::*;
use ringfold::cli::hosted::spelled;
use ringfold::query::Refusal;
use ringfold::{Error, Kind};

/// An exception of `ringfold._errors`. All that it knows stands in its arguments, so that it can be pickled.
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind() {
        Kind::Usage => "UsageError",
        Kind::Data => match error.job() {
            Some(Refusal::Incomplete { .. }) => "IncompleteError",
            _ => "DataError",
        },
        Kind::Io | Kind::ClosedPipe => "FileError",
        Kind::Engine => "EngineError",
        _ => "InternalError",
    };
    let bytes = error.bytes();
    let made = py.import("ringfold._errors").and_then(|module| {
        module.getattr("raised")?.call1((
            class,
            spelled(error),
            error.file(),
            bytes.map(|bytes| (bytes.start, bytes.end)),
            error.line(),
            error.errno(),
        ))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The error of an output, or the library's in it.
pub fn raised_output(py: Python<'_>, error: &std::io::Error) -> PyErr {
    raised(py, &Error::output(error))
}
