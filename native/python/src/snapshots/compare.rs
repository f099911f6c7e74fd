//! Comparing snapshots.

use huai_format::diff::Columns;
use huai_format::snapshots::Snapshot;
use huai_format::{diff, walks};
use pyo3::prelude::*;

use super::columns::{Batch, batch};
use crate::packs::lent::{Reader, snapshot};
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// A snapshot that is read through a reader, and how many entries it may have.
pub(crate) type Side<'a> = (Py<PyAny>, &'a [u8], u64);

pub(crate) fn side((reader, tree, limit): Side<'_>) -> PyResult<(Snapshot<Reader>, u64)> {
    Ok((snapshot(reader, tree)?, limit))
}

/// Two snapshots that are being compared.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Comparison(Guarded<diff::Comparison<Reader>>);

#[pymethods]
impl Comparison {
    #[new]
    fn new(old: Side<'_>, new: Side<'_>) -> PyResult<Self> {
        let comparison = diff::Comparison::new(side(old)?, side(new)?);
        Ok(Self(Guarded::new(comparison)))
    }

    /// The next differences, about so many; None if there are no more.
    fn batch<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Option<Batch<'py>>> {
        let mut comparison = self.0.try_lock()?;
        let mut columns = Columns::new(most);
        comparison.advance(&mut columns).map_err(refuse)?;
        batch(py, &columns)
    }
}

/// Refuse a snapshot with a hardlink group that is not whole.
#[pyfunction]
pub(crate) fn check_hardlinks(reader: Py<PyAny>, tree: &[u8], limit: u64) -> PyResult<()> {
    let (snapshot, limit) = side((reader, tree, limit))?;
    walks::check_hardlinks(&snapshot, limit).map_err(refuse)
}

/// How many entries were added, removed, changed, and came along below a directory that moved.
#[pyfunction]
pub(crate) fn count_changes(
    py: Python<'_>,
    old: Side<'_>,
    new: Side<'_>,
) -> PyResult<(u64, u64, u64, u64)> {
    let (old, new) = (side(old)?, side(new)?);
    let counted = wait(py, |stop| diff::count(old, new, &|| stop.is_set()))?;
    let counts = counted.map_err(refuse)?.unwrap_or_default();
    Ok((counts.added, counts.removed, counts.changed, counts.moved))
}
