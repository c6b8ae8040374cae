//! ringfold for Python: the program's commands with flags in words, answers in memory.
//!
//! A run goes on without the interpreter's lock, on a thread of its own; the caller's thread waits for it and looks for
//! signals. What flags mean is the program's business (`ringfold::cli::hosted`): `ringfold/__init__.py` makes words of fields.

mod answer;
mod error;
mod files;
mod partial;
mod run;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _ringfold {
    #[pymodule_export]
    use crate::answer::{Answer, Doubles, RowIterator};
    #[pymodule_export]
    use crate::partial::{Partial, answer, merge, partial};
    #[pymodule_export]
    use crate::run::{
        aggregate, count, decline_sigbus_handler, describe, explain, flags, main, probe,
    };

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
