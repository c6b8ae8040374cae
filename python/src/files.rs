//! What is read: paths, and objects of stores whose bytes Python fetches (`ringfold/_objects.py`).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyEOFError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ringfold::Object;
use ringfold::cli::hosted::Host;

/// The files of a run.
pub struct Files {
    paths: Vec<PathBuf>,
    objects: Vec<(PathBuf, Arc<Fetched>)>,
}

impl Files {
    /// Of paths, and of objects with `name`, `size`, `written` and `read_at`.
    pub fn of(given: &[Bound<'_, PyAny>]) -> PyResult<Files> {
        let mut files = Files {
            paths: Vec::new(),
            objects: Vec::new(),
        };
        for one in given {
            if one.hasattr("read_at")? {
                let name: PathBuf = one.getattr("name")?.extract()?;
                let object = Fetched {
                    bytes: one.getattr("size")?.extract()?,
                    written: one.getattr("written")?.extract()?,
                    object: one.clone().unbind(),
                };
                files.objects.push((name.clone(), Arc::new(object)));
                files.paths.push(name);
            } else {
                files.paths.push(one.extract()?);
            }
        }
        Ok(files)
    }

    /// The paths. The host has the objects then.
    pub fn of_host(&self, host: &Host) -> &[PathBuf] {
        for (name, object) in &self.objects {
            host.add_object(name.clone(), Arc::clone(object) as Arc<dyn Object>);
        }
        &self.paths
    }
}

/// An object whose bytes Python fetches.
struct Fetched {
    object: Py<PyAny>,
    bytes: u64,
    written: Option<(i64, i64)>,
}

impl Object for Fetched {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn written(&self) -> Option<(i64, i64)> {
        self.written
    }

    fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize> {
        // A run that was left behind may ask for more when the interpreter is gone.
        let fetched = Python::try_attach(|py| {
            let fetched = self.fetch(py, to, at);
            fetched.map_err(|error| io::Error::other(error.value(py).to_string()))
        });
        fetched.unwrap_or_else(|| Err(io::Error::other("the interpreter has ended")))
    }
}

impl Fetched {
    fn fetch(&self, py: Python<'_>, to: &mut [u8], at: u64) -> PyResult<usize> {
        let object = self.object.bind(py);
        let fetched = object.call_method1("read_at", (at, to.len()))?;
        let bytes = fetched.cast::<PyBytes>()?.as_bytes();
        match to.get_mut(..bytes.len()) {
            Some(room) => room.copy_from_slice(bytes),
            None => return Err(PyEOFError::new_err("more bytes came than were asked for")),
        }
        Ok(bytes.len())
    }
}
