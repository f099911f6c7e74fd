//! The engine's errors as Python's.

use huai_format::error::Error as FormatError;
use huai_tree::error::Error;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// An `OSError` with the path: what it means, and what to do about it, is said in Python.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let errno = error.errno.raw_os_error();
    let said = py
        .import("os")
        .and_then(|os| os.call_method1("strerror", (errno,)))
        .and_then(|said| said.extract::<String>());
    match said {
        Ok(said) => PyOSError::new_err((errno, said, PyBytes::new(py, &error.path).unbind())),
        Err(error) => error,
    }
}

mod huai {
    pyo3::import_exception!(huai_schema.errors, FormatError);
}

/// Huai's `FormatError`, or the error of what was lent to the parser.
pub(crate) fn refuse(py: Python<'_>, error: FormatError) -> PyErr {
    match error {
        FormatError::Malformed { rule, place } => {
            huai::FormatError::new_err((rule.into_owned(), place))
        }
        FormatError::Stopped => PyRuntimeError::new_err("stopped without an exception"),
        FormatError::Lent(error) => match error.downcast::<PyErr>() {
            Ok(raised) => *raised,
            Err(error) => match error.downcast::<Error>() {
                Ok(failed) => raise(py, &failed),
                Err(error) => PyRuntimeError::new_err(error.to_string()),
            },
        },
    }
}
