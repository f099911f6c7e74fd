//! Naming files in requests to rsync.

use huai_plan::requests::RequestNames;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::candidates::table_rows::TableRows;
use crate::packs::lent::LentSnapshot;
use crate::sys::wait::wait;

/// Return the names of files, each after `start` and ended by NUL, and the number of directories that are requested
/// as a whole, none without `commit`.
#[pyfunction]
#[pyo3(signature = (files, start, commit))]
pub(crate) fn request_names<'py>(
    py: Python<'py>,
    files: TableRows,
    start: &[u8],
    commit: Option<LentSnapshot>,
) -> PyResult<(Bound<'py, PyBytes>, usize)> {
    let lookup = commit.map(LentSnapshot::lookup);
    let paths: Vec<&[u8]> = files.paths().collect();
    let request = wait(py, |_| RequestNames::of(&paths, start, lookup))?;
    Ok((PyBytes::new(py, &request.names), request.directories))
}
