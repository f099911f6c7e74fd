//! Removing what is ours alone.

use pyo3::prelude::*;

use super::wait::wait;

/// Remove a name in an open directory with everything below it; it may be missing.
#[pyfunction]
pub(crate) fn remove_all(py: Python<'_>, folder: u32, name: &[u8]) -> PyResult<()> {
    wait(py, |stop| huai_sys::remove::remove_all(folder, name, stop))
}
