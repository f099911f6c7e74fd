//! The engine's errors as Python's and huai's own.

use huai_git::error::Error as FormatFailure;
use huai_sys::error::{Errno, Error};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

import_exception!(huai_schema.errors, FormatError);
import_exception!(huai_schema.errors, MissingObjectError);

/// A failure that becomes an exception.
pub(crate) trait Raise {
    /// Make the exception.
    fn raise(self, py: Python<'_>) -> PyErr;
}

impl Raise for Error {
    fn raise(self, py: Python<'_>) -> PyErr {
        raise(py, &self)
    }
}

impl Raise for FormatFailure {
    fn raise(self, _: Python<'_>) -> PyErr {
        refuse(self)
    }
}

impl Raise for PyErr {
    fn raise(self, _: Python<'_>) -> PyErr {
        self
    }
}

/// Make an `OSError` with the path, whose text is the meaning of the errno.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let errno = error.errno.raw_os_error();
    let text = py
        .import("os")
        .and_then(|os| os.call_method1("strerror", (errno,)))
        .and_then(|text| text.extract::<String>());
    match text {
        Ok(text) => PyOSError::new_err((errno, text, PyBytes::new(py, &error.path).unbind())),
        Err(error) => error,
    }
}

/// Make the `OSError` of a shortage that is the fault of no path.
pub(crate) fn lacking(py: Python<'_>, errno: Errno) -> PyErr {
    let error = Error {
        doing: "open",
        path: Vec::new(),
        errno,
    };
    raise(py, &error)
}

/// Make the exception for metadata that break a rule; an error of an object that was lent to the
/// parser is returned unchanged.
pub(crate) fn refuse(failure: FormatFailure) -> PyErr {
    match failure {
        FormatFailure::Malformed { rule, place } => {
            FormatError::new_err((rule.into_owned(), place))
        }
        FormatFailure::Missing { reason, place } => MissingObjectError::new_err((reason, place)),
        FormatFailure::SameKey => PyRuntimeError::new_err("two pieces of one key, read in part"),
        FormatFailure::Stopped => PyRuntimeError::new_err("stopped without an exception"),
        FormatFailure::Bug { .. } => PyRuntimeError::new_err(failure.to_string()),
        FormatFailure::Lent(error) => match error.downcast::<PyErr>() {
            Ok(raised) => *raised,
            Err(error) => match error.downcast::<Error>() {
                Ok(failed) => Python::attach(|py| raise(py, &failed)),
                Err(error) => PyRuntimeError::new_err(error.to_string()),
            },
        },
    }
}

/// Make the exception for an object that another call uses.
pub(crate) fn in_use() -> PyErr {
    PyRuntimeError::new_err("another call uses this object")
}
