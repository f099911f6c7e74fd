//! Regular files, opened to be read.

use std::os::fd::{IntoRawFd, RawFd};

use huai_sys::regular;
use pyo3::prelude::*;

use super::errors::raise;

/// Open a regular file, which the caller closes; `None` without one.
#[pyfunction]
pub(crate) fn open_regular(py: Python<'_>, root: &[u8], path: &[u8]) -> PyResult<Option<RawFd>> {
    // A few system calls: too short for the one door to long calls.
    let opened = py.detach(|| regular::open_regular(root, path));
    let opened = opened.map_err(|error| raise(py, &error))?;
    Ok(opened.map(IntoRawFd::into_raw_fd))
}
