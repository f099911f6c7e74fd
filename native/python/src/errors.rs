//! The engine's errors as Python's.

use huai_tree::error::Error;
use pyo3::exceptions::PyOSError;
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
