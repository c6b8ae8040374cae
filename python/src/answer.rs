//! Answers and descriptions: rows as an Arrow stream, as the program's text, and as Python's own objects.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyFloat, PyInt, PyString, PyTuple};
use rayon::ThreadPool;
use ringfold::Stats;
use ringfold::cli::hosted::{self, Found};
use ringfold::output::Output;
use ringfold::query::Description;
use ringfold::report::grid::{Batches, Cell, Rows, for_rows, write_grid};

use crate::error::{raised, raised_output};

/// Rows that become objects at once.
const ROWS: usize = 1024;

/// What has rows and columns.
pub enum Grid {
    Answer(Box<ringfold::query::Answer>),
    Description(Box<Description>),
}

impl From<ringfold::query::Answer> for Grid {
    fn from(answer: ringfold::query::Answer) -> Grid {
        Grid::Answer(Box::new(answer))
    }
}

impl From<Description> for Grid {
    fn from(description: Description) -> Grid {
        Grid::Description(Box::new(description))
    }
}

impl Grid {
    fn names(&self) -> &[Vec<u8>] {
        match self {
            Grid::Answer(answer) => answer.names(),
            Grid::Description(description) => description.names(),
        }
    }

    /// An error where rows that were asked for couldn't be read back from a temporary file.
    fn check(&self) -> ringfold::Result<()> {
        match self {
            Grid::Answer(answer) => answer.check(),
            Grid::Description(_) => Ok(()),
        }
    }
}

impl std::ops::Deref for Grid {
    type Target = dyn Rows;

    fn deref(&self) -> &(dyn Rows + 'static) {
        match self {
            Grid::Answer(answer) => &**answer,
            Grid::Description(description) => &**description,
        }
    }
}

/// The first rows of others.
struct First<'a>(&'a dyn Rows, usize);

impl Rows for First<'_> {
    fn len(&self) -> usize {
        self.0.len().min(self.1)
    }

    fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>) {
        self.0.row(at, cells);
    }
}

/// Batches, each made when it is asked for.
struct Stream {
    grid: Arc<Grid>,
    batches: Batches<Arc<Grid>>,
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.next();
        match self.grid.check() {
            Ok(()) => batch,
            Err(error) => Some(Err(ArrowError::ExternalError(Box::new(error)))),
        }
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.batches.schema())
    }
}

/// Rows and columns. It speaks the Arrow PyCapsule interface: `polars.DataFrame(answer)`, `pyarrow.table(answer)`,
/// `duckdb.sql("from answer")`. Decimals are exact there; docs/formats.md says which types columns have.
#[pyclass(frozen, module = "ringfold")]
pub struct Answer {
    grid: Arc<Grid>,
    /// The threads of the run, which make text and types, and the process that has them.
    pool: (Arc<ThreadPool>, u32),
    schema: OnceLock<SchemaRef>,
    counts: Vec<(String, u64)>,
    stats: Option<Stats>,
    notices: Vec<String>,
}

impl Answer {
    pub fn new(found: Found<impl Into<Grid>>, notices: Vec<String>) -> Answer {
        Answer {
            grid: Arc::new(found.found.into()),
            pool: (found.pool, std::process::id()),
            schema: OnceLock::new(),
            counts: found.counted,
            stats: found.stats,
            notices,
        }
    }

    /// A process that was forked doesn't have the threads.
    fn pool(&self) -> Option<&ThreadPool> {
        let (pool, process) = &self.pool;
        (*process == std::process::id()).then_some(&**pool)
    }

    /// Its types take a look at all rows.
    fn schema(&self, py: Python<'_>) -> SchemaRef {
        let schema = || {
            let (names, rows) = (self.grid.names(), &*self.grid);
            Arc::clone(Batches::new(names, rows, self.pool()).schema())
        };
        py.detach(|| Arc::clone(self.schema.get_or_init(schema)))
    }

    fn stream<'py>(&self, py: Python<'py>, schema: SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
        let grid = Arc::clone(&self.grid);
        let batches = Batches::of_schema(schema, Arc::clone(&grid));
        let stream = FFI_ArrowArrayStream::new(Box::new(Stream { grid, batches }));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Its text in a format of the program, or that of the first rows.
    fn written(&self, py: Python<'_>, format: &str, first: Option<usize>) -> PyResult<Vec<u8>> {
        let format = hosted::format(Some(format), Path::new(""));
        let format = format.map_err(|error| raised(py, &error))?;
        let mut text = Vec::new();
        let written = py.detach(|| {
            let names = self.grid.names();
            match first {
                Some(first) => {
                    write_grid(names, &First(&**self.grid, first), format, None, &mut text)
                }
                None => write_grid(names, &**self.grid, format, self.pool(), &mut text),
            }
        });
        written.map_err(|error| raised_output(py, &error))?;
        self.grid.check().map_err(|error| raised(py, &error))?;
        Ok(text)
    }
}

fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema);
    let schema = schema.map_err(|error| PyValueError::new_err(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

#[pymethods]
impl Answer {
    // A producer may leave a wish unheeded that it can't fulfil.
    #[pyo3(signature = (requested_schema=None))]
    #[allow(unused_variables)]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.stream(py, self.schema(py))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema(py))
    }

    /// The same for whatever takes Arrow, but decimals are the nearest doubles.
    fn doubles(slf: Py<Answer>) -> Doubles {
        Doubles(slf)
    }

    fn __len__(&self) -> usize {
        self.grid.len()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let names = self.grid.names().iter();
        names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    }

    /// What the program would say on stderr.
    #[getter]
    fn notices(&self) -> Vec<String> {
        self.notices.clone()
    }

    /// What became of records: rows, keys, filtered, skipped, and others that `--stats=full` names.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        for (name, count) in &self.counts {
            counts.set_item(name, count)?;
        }
        Ok(counts)
    }

    /// What the run did: engine, bytes, seconds, threads.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = PyDict::new(py);
        if let Some(of) = &self.stats {
            stats.set_item("engine", &of.engine)?;
            stats.set_item("bytes", of.bytes)?;
            stats.set_item("seconds", of.elapsed_s)?;
            stats.set_item("threads", of.threads)?;
        }
        Ok(stats)
    }

    /// The bytes that the program prints: csv, tsv, json, ndjson, table, bars, markdown, html, arrow.
    ///
    /// Raises `UsageError` for another format.
    #[pyo3(signature = (format="csv"))]
    fn text<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.written(py, format, None)?))
    }

    /// The text of the first rows.
    #[pyo3(signature = (first, format))]
    fn head(&self, py: Python<'_>, first: usize, format: &str) -> PyResult<String> {
        let text = self.written(py, format, Some(first))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Writes that to a file, which appears when it is complete. Without a format the path's ending says it, or it is CSV.
    ///
    /// Raises `FileError` where the file can't be written, and `UsageError` for another format.
    #[pyo3(signature = (path, format=None))]
    fn write(&self, py: Python<'_>, path: PathBuf, format: Option<&str>) -> PyResult<()> {
        let format = hosted::format(format, &path).map_err(|error| raised(py, &error))?;
        let written = py.detach(|| {
            let mut output = Output::open(&path)?;
            let (names, pool) = (self.grid.names(), self.pool());
            write_grid(names, &**self.grid, format, pool, &mut output)?;
            self.grid.check().map_err(std::io::Error::other)?;
            output.finish()
        });
        written.map_err(|error| raised_output(py, &error))
    }

    /// Rows as tuples, all or the first so many: a text is `str` (`bytes` where it isn't UTF-8), a null `None`, a number an `int` or
    /// a `Decimal` with all its digits, or with `exact=False` an `int` or the nearest `float`. So are infinities and nan.
    #[pyo3(signature = (*, exact=true, first=None))]
    fn rows(slf: Bound<'_, Self>, exact: bool, first: Option<usize>) -> RowIterator {
        let end = slf.get().grid.len().min(first.unwrap_or(usize::MAX));
        RowIterator {
            answer: slf.unbind(),
            exact,
            next: Mutex::new(Next {
                made: Vec::new().into_iter(),
                left: 0..end,
            }),
        }
    }

    fn __iter__(slf: Bound<'_, Self>) -> RowIterator {
        Answer::rows(slf, true, None)
    }

    fn __str__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        of_python(&slf, "table", None)
    }

    fn _repr_html_(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        of_python(&slf, "page", None)
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.grid.len(), self.columns().join(", "));
        format!("<ringfold.Answer of {rows} rows: {columns}>")
    }

    /// A DataFrame of pandas. Decimals are the nearest doubles, or with `exact=True` objects of the class `Decimal`.
    ///
    /// Raises ImportError without pandas.
    #[pyo3(signature = (*, exact=false))]
    fn to_pandas(slf: Bound<'_, Self>, exact: bool) -> PyResult<Bound<'_, PyAny>> {
        of_python(&slf, "to_pandas", Some(exact))
    }

    /// A DataFrame of Polars. Decimals are the nearest doubles, or with `exact=True` Polars' decimals.
    ///
    /// Raises ImportError without Polars.
    #[pyo3(signature = (*, exact=false))]
    fn to_polars(slf: Bound<'_, Self>, exact: bool) -> PyResult<Bound<'_, PyAny>> {
        of_python(&slf, "to_polars", Some(exact))
    }
}

/// What a function of `ringfold._frames` makes of an answer.
fn of_python<'py>(
    answer: &Bound<'py, Answer>,
    name: &str,
    exact: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let function = answer.py().import("ringfold._frames")?.getattr(name)?;
    match exact {
        Some(exact) => function.call1((answer, exact)),
        None => function.call1((answer,)),
    }
}

/// An answer whose decimals are the nearest doubles.
#[pyclass(frozen, module = "ringfold")]
pub struct Doubles(Py<Answer>);

impl Doubles {
    fn schema(&self, py: Python<'_>) -> SchemaRef {
        let schema = self.0.get().schema(py);
        let fields = schema.fields().iter().map(|field| match field.data_type() {
            DataType::Decimal128(..) => Field::new(field.name(), DataType::Float64, true),
            _ => (**field).clone(),
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }
}

#[pymethods]
impl Doubles {
    #[pyo3(signature = (requested_schema=None))]
    #[allow(unused_variables)]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.0.get().stream(py, self.schema(py))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema(py))
    }
}

/// Rows as tuples of Python's own objects. Threads may share it: each row goes to one of them.
#[pyclass(frozen, module = "ringfold")]
pub struct RowIterator {
    answer: Py<Answer>,
    exact: bool,
    next: Mutex<Next>,
}

/// What an iterator goes on with.
struct Next {
    made: std::vec::IntoIter<Py<PyTuple>>,
    left: Range<usize>,
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        let next = self.next(py);
        next.made.len() + next.left.len()
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
        let mut next = self.next(py);
        if next.made.len() == 0 && !next.left.is_empty() {
            let start = next.left.start;
            let end = next.left.end.min(start + ROWS);
            next.made = self.make(py, start..end)?.into_iter();
            next.left.start = end;
        }
        Ok(next.made.next())
    }
}

impl RowIterator {
    /// Others wait for the thread that makes rows, without the interpreter's lock.
    fn next(&self, py: Python<'_>) -> MutexGuard<'_, Next> {
        let next = self.next.lock_py_attached(py);
        next.unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, py: Python<'_>, rows: Range<usize>) -> PyResult<Vec<Py<PyTuple>>> {
        let decimal = py.import("decimal")?.getattr("Decimal")?;
        let mut made = Vec::with_capacity(rows.len());
        let mut failed = None;
        let grid = &self.answer.get().grid;
        for_rows(&***grid, rows, grid.names().len(), |_, cells| {
            let cells = cells.iter().enumerate();
            let cells = cells.map(|(at, cell)| self.object(py, at, cell, &decimal));
            let row = cells.collect::<PyResult<Vec<_>>>();
            match row.and_then(|row| PyTuple::new(py, row)) {
                Ok(row) => made.push(row.unbind()),
                Err(error) => failed = Some(error),
            }
            failed.is_none()
        });
        match failed {
            Some(error) => return Err(error),
            None => grid.check().map_err(|error| raised(py, &error))?,
        }
        Ok(made)
    }

    fn object<'py>(
        &self,
        py: Python<'py>,
        column: usize,
        cell: &Cell<'_>,
        decimal: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(match cell {
            Cell::Null | Cell::Total => py.None().into_bound(py),
            // Where all others of the column are numbers or null it is one, too.
            Cell::Text(text @ (b"inf" | b"-inf" | b"nan"))
                if *self.answer.get().schema(py).field(column).data_type() == DataType::Float64 =>
            {
                let kind = match self.exact {
                    true => decimal.clone(),
                    false => py.get_type::<PyFloat>().into_any(),
                };
                kind.call1((String::from_utf8_lossy(text),))?
            }
            Cell::Text(text) | Cell::Json(text) => match std::str::from_utf8(text) {
                Ok(text) => PyString::new(py, text).into_any(),
                Err(_) => PyBytes::new(py, text).into_any(),
            },
            Cell::Number(number) => match number.as_decimal() {
                Some((whole, 0)) if self.exact || i64::try_from(whole).is_ok() => {
                    PyInt::new(py, whole).into_any()
                }
                _ if self.exact && !number.text().contains(['e', '.']) => {
                    let int = py.get_type::<PyInt>();
                    int.call1((number.text(),))?
                }
                _ if self.exact => decimal.call1((number.text(),))?,
                _ => number.as_f64().into_pyobject(py)?.into_any(),
            },
        })
    }
}
