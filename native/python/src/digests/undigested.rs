//! Files that have no digest.

use huai_format::path::RelPath;
use huai_format::snapshots::{EntryLimit, Walk};
use huai_format::walks;
use huai_format::walks::UndigestedFile;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::packs::lent::snapshot;
use crate::sys::errors::refuse;
use crate::sys::wait::wait;

/// How many they are, and the newest of them.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Undigested {
    newest: Vec<UndigestedFile>,
    #[pyo3(get)]
    files: u64,
    #[pyo3(get)]
    size: u64,
}

#[pymethods]
impl Undigested {
    #[new]
    fn new(
        py: Python<'_>,
        lent: (Py<PyAny>, Bound<'_, PyBytes>, u64),
        most: usize,
        before: Option<(i64, Vec<u8>)>,
    ) -> PyResult<Self> {
        let (reader, tree, limit) = lent;
        let snapshot = snapshot(reader, tree.as_bytes())?;
        let before = before.map(|(mtime, path)| (mtime, RelPath::trusted(path)));
        let gathered = wait(py, move |_| {
            let mut walk = Walk::new(&snapshot, EntryLimit::new(limit));
            let mut gathered = walks::Undigested::new(most, before);
            while let Some(listing) = walk.next(&snapshot)? {
                gathered.gather(&listing)?;
            }
            Ok(gathered)
        })?;
        let gathered = gathered.map_err(refuse)?;
        Ok(Self {
            files: gathered.files,
            size: gathered.bytes,
            newest: gathered.newest(),
        })
    }

    /// The last of those that were kept: its time and its path.
    #[getter]
    fn last<'py>(&self, py: Python<'py>) -> Option<(i64, Bound<'py, PyBytes>)> {
        let last = self.newest.last()?;
        Some((last.mtime, PyBytes::new(py, last.path.as_bytes())))
    }

    /// The kept files, in lists of at most so many files, and so many bytes of content: the
    /// paths, each ended by a NUL.
    fn lists<'py>(&self, py: Python<'py>, files: usize, size: u64) -> Vec<Bound<'py, PyBytes>> {
        let mut lists = Vec::new();
        let (mut list, mut count, mut held) = (Vec::new(), 0, 0_u64);
        for file in &self.newest {
            if count > 0 && (count == files || held.saturating_add(file.size) > size) {
                lists.push(PyBytes::new(py, &list));
                (count, held) = (0, 0);
                list.clear();
            }
            list.extend_from_slice(file.path.as_bytes());
            list.push(0);
            count += 1;
            held = held.saturating_add(file.size);
        }
        if count > 0 {
            lists.push(PyBytes::new(py, &list));
        }
        lists
    }
}
