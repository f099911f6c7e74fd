//! Batches of entries as bytes.

use huai_format::diff::Columns;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// Records, text and owners, as `huai_format::diff` says.
pub(crate) type Batch<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyTuple>,
);

/// Convert columns to Python's values; `None` if they are empty.
pub(crate) fn batch<'py>(py: Python<'py>, columns: &Columns) -> PyResult<Option<Batch<'py>>> {
    if columns.is_empty() {
        return Ok(None);
    }
    let owners = columns.owners.iter().map(|owner| PyBytes::new(py, owner));
    Ok(Some((
        PyBytes::new(py, &columns.records),
        PyBytes::new(py, &columns.text),
        PyTuple::new(py, owners.collect::<Vec<_>>())?,
    )))
}

/// Convert each item to Python's `bytes`.
pub(crate) fn all_bytes<'py, 'a>(
    py: Python<'py>,
    items: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Bound<'py, PyBytes>> {
    let items = items.into_iter();
    items.map(|bytes| PyBytes::new(py, bytes)).collect()
}
