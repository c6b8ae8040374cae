//! Partials: bytes that lie in a Python object, so that they are pickled out of band and read where they lie.

use std::ffi::OsString;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use ringfold::cli::hosted::{self, Host};
use ringfold::query::Partial as Groups;

use crate::answer::Answer;
use crate::error::raised;
use crate::files::Files;
use crate::run::watched;

/// What a query has computed of some records: the groups, and a receipt of what was read. Partials of one query merge in any
/// order.
///
/// It can be pickled; protocol 5 hands its bytes out of band.
#[pyclass(frozen, weakref, module = "ringfold")]
pub struct Partial {
    bytes: Py<PyBytes>,
    groups: Arc<Groups>,
}

impl Partial {
    fn new(name: &str, bytes: Bound<'_, PyBytes>) -> PyResult<Partial> {
        let py = bytes.py();
        let groups = Groups::read(name, PyBackedBytes::from(bytes.clone()));
        Ok(Partial {
            bytes: bytes.unbind(),
            groups: Arc::new(groups.map_err(|error| raised(py, &error))?),
        })
    }
}

#[pymethods]
impl Partial {
    /// Takes what `to_bytes` gave, or what a file of `ringfold aggregate --save-partial` holds; `bytes` aren't copied. `name`
    /// stands for it in errors. Head and index are checked now, blocks when they are read.
    ///
    /// Raises `DataError` where this is no partial, or is damaged.
    #[staticmethod]
    #[pyo3(signature = (data, name="a partial"))]
    fn from_bytes(data: &Bound<'_, PyAny>, name: &str) -> PyResult<Partial> {
        let bytes = match data.cast::<PyBytes>() {
            Ok(bytes) => bytes.clone(),
            Err(_) => data
                .py()
                .get_type::<PyBytes>()
                .call1((data,))?
                .cast_into()?,
        };
        Partial::new(name, bytes)
    }

    /// Its bytes, which aren't copied.
    fn to_bytes(&self, py: Python<'_>) -> Py<PyBytes> {
        self.bytes.clone_ref(py)
    }

    fn __reduce_ex__<'py>(&self, py: Python<'py>, protocol: i32) -> PyResult<Bound<'py, PyAny>> {
        let from = py.get_type::<Partial>().getattr("from_bytes")?;
        let data = match protocol {
            5.. => py
                .import("pickle")?
                .getattr("PickleBuffer")?
                .call1((&self.bytes,))?,
            _ => self.bytes.bind(py).clone().into_any(),
        };
        (from, (data,)).into_pyobject(py).map(Bound::into_any)
    }

    /// What asks for it moves or spills large objects.
    fn __sizeof__(&self) -> usize {
        self.nbytes() + std::mem::size_of::<Partial>()
    }

    /// Bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.groups.bytes() as usize
    }

    /// The names of the columns that its answer has.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let titles = self.groups.titles().into_iter();
        titles.map(lossy).collect()
    }

    /// What became of records.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        for (name, count) in self.groups.counts() {
            counts.set_item(name, count)?;
        }
        Ok(counts)
    }

    /// What was asked, as names and values.
    #[getter]
    fn query(&self) -> Vec<(String, String)> {
        let query = self.groups.query().iter();
        query
            .map(|(name, value)| (lossy(name), lossy(value)))
            .collect()
    }

    /// The same without groups: merged with others it tells whether they fit together, in little memory.
    fn receipt(&self, py: Python<'_>) -> PyResult<Partial> {
        let receipt = self.groups.without_groups();
        let bytes = receipt.and_then(|receipt| Ok(receipt.to_bytes()?.into_owned()));
        let bytes = bytes.map_err(|error| raised(py, &error))?;
        Partial::new(self.groups.name(), PyBytes::new(py, &bytes))
    }

    /// Partials of some of the keys each, by a hash of the key: the same keys are in the same place for every partial that is
    /// divided into as many. Merged shard by shard, anywhere, they are the rows of one answer.
    ///
    /// Raises `UsageError` for no shards, and `DataError` where this is a shard already, or damaged.
    fn split(&self, py: Python<'_>, shards: u32) -> PyResult<Vec<Partial>> {
        let split = || {
            let parts = self.groups.split(shards)?;
            let bytes = parts.iter().map(|part| Ok(part.to_bytes()?.into_owned()));
            bytes.collect::<ringfold::Result<Vec<_>>>()
        };
        let parts = py.detach(split).map_err(|error| raised(py, &error))?;
        let parts = parts.iter();
        parts
            .map(|bytes| Partial::new("a shard", PyBytes::new(py, bytes)))
            .collect()
    }

    /// Reads all of it, and looks whether it is sound.
    ///
    /// Raises `DataError` where it is damaged.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let checked = py.detach(|| self.groups.check());
        checked.map_err(|error| raised(py, &error))
    }

    /// The answer. What `query` says of an answer is done with the groups: sort, top, per, pivot, total, having, precision, names.
    ///
    /// Raises `IncompleteError` where parts of files are missing, unless `allow_gaps=True`, and `UsageError` where the answer can't
    /// be shown so.
    #[pyo3(signature = (query=None, *, allow_gaps=false))]
    fn result<'py>(
        slf: Bound<'py, Self>,
        query: Option<Bound<'py, PyAny>>,
        allow_gaps: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let function = slf.py().import("ringfold._query")?.getattr("result")?;
        function.call1(([&slf], query, allow_gaps))
    }

    fn __repr__(&self) -> String {
        let (bytes, columns) = (self.groups.bytes(), self.columns().join(", "));
        format!("<ringfold.Partial of {bytes} bytes: {columns}>")
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[pyfunction]
#[pyo3(signature = (flags, paths, progress=None))]
pub fn partial(
    py: Python<'_>,
    flags: Vec<OsString>,
    paths: Vec<Bound<'_, PyAny>>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(Partial, Vec<String>)> {
    let files = Files::of(&paths)?;
    let run = move |host: &Host| hosted::partial(flags, files.of_host(host), host);
    let (found, lines) = watched(py, progress.as_ref(), run)?;
    let bytes = PyBytes::new(py, &found.found);
    // Threads end, and memory is given back.
    py.detach(move || drop(found));
    Ok((Partial::new("a partial", bytes)?, lines))
}

fn groups(partials: &[Bound<'_, Partial>]) -> Vec<Arc<Groups>> {
    let groups = partials.iter().map(|partial| &partial.get().groups);
    groups.map(Arc::clone).collect()
}

/// The answer of partials.
#[pyfunction]
pub fn answer(
    py: Python<'_>,
    flags: Vec<OsString>,
    partials: Vec<Bound<'_, Partial>>,
) -> PyResult<Answer> {
    let partials = groups(&partials);
    let (found, lines) = watched(py, None, move |host| hosted::answer(flags, &partials, host))?;
    Ok(Answer::new(found, lines))
}

/// One partial of several.
#[pyfunction]
pub fn merge(
    py: Python<'_>,
    partials: Vec<Bound<'_, Partial>>,
    threads: Option<usize>,
) -> PyResult<(Partial, Vec<String>)> {
    let partials = groups(&partials);
    let (bytes, lines) = watched(py, None, move |host| {
        hosted::merge(&partials, threads, host)
    })?;
    Ok((Partial::new("a partial", PyBytes::new(py, &bytes))?, lines))
}
