//! Errors as Python's.

use pyo3::prelude::*;
use ringfold::cli::hosted::spelled;
use ringfold::query::Refusal;
use ringfold::{Begin, Error, Kind};

/// An exception of `ringfold._errors`. All that it knows stands in its arguments, so that it can be pickled.
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind() {
        Kind::Usage => "UsageError",
        Kind::Data => match error.job() {
            Some(Refusal::Incomplete { .. }) => "IncompleteError",
            Some(Refusal::WrongParts(_)) => "WrongPartsError",
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
            parts(py, error)?,
        ))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The parts that are to be read again, each with where it begins.
fn parts<'py>(py: Python<'py>, error: &Error) -> PyResult<Vec<(u32, u32, Bound<'py, PyAny>)>> {
    let wrong = match error.job() {
        Some(Refusal::WrongParts(wrong)) => &wrong[..],
        _ => &[],
    };
    let each = wrong.iter().map(|part| {
        let begin = match part.begin {
            Begin::At(byte) => byte.into_pyobject(py)?.into_any(),
            Begin::Quoted => "quoted".into_pyobject(py)?.into_any(),
            _ => "unquoted".into_pyobject(py)?.into_any(),
        };
        Ok((part.part, part.parts, begin))
    });
    each.collect()
}

/// The error of an output, or the library's in it.
pub fn raised_output(py: Python<'_>, error: &std::io::Error) -> PyErr {
    raised(py, &Error::output(error))
}
