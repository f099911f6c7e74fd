//! Comparing snapshots.

use huai_format::diff::Columns;
use huai_format::write::Counts;
use huai_format::{diff, walks};
use pyo3::prelude::*;

use super::columns::{Batch, batch};
use crate::packs::lent::{LentSnapshot, Reader, snapshot};
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// Entries added, removed, changed, moved; new bytes.
pub(crate) type Changes = (u64, u64, u64, u64, u64);

/// Two snapshots that are being compared.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Comparison(Guarded<diff::Comparison<Reader>>);

#[pymethods]
impl Comparison {
    #[new]
    fn new(old: LentSnapshot, new: LentSnapshot) -> Self {
        let (old, new) = ((old.snapshot, old.limit), (new.snapshot, new.limit));
        Self(Guarded::new(diff::Comparison::new(old, new)))
    }

    /// Return about `most` further differences; `None` if there are no more.
    fn batch<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Option<Batch<'py>>> {
        let mut comparison = self.0.try_lock()?;
        let mut columns = Columns::new(most);
        comparison.advance(&mut columns).map_err(refuse)?;
        batch(py, &columns)
    }
}

/// Return true if a file has several names; an exception for a hardlink that breaks a rule.
#[pyfunction]
pub(crate) fn check_hardlinks(reader: Py<PyAny>, tree: &[u8], limit: u64) -> PyResult<bool> {
    walks::check_hardlinks(&snapshot(reader, tree)?, limit).map_err(refuse)
}

/// Count the entries added, removed, changed, and moved with their directory.
#[pyfunction]
pub(crate) fn count_changes(
    py: Python<'_>,
    old: LentSnapshot,
    new: LentSnapshot,
) -> PyResult<Changes> {
    let (old, new) = ((old.snapshot, old.limit), (new.snapshot, new.limit));
    let counted = wait(py, |stop| diff::count(old, new, &|| stop.is_set()))?;
    Ok(changes_of(counted.unwrap_or_default()))
}

/// Convert the counts of changes to a tuple.
pub(crate) fn changes_of(counts: Counts) -> Changes {
    (
        counts.added,
        counts.removed,
        counts.changed,
        counts.moved,
        counts.new_bytes,
    )
}
