//! Reading snapshots.

use std::sync::Arc;

use huai_format::path::RelPath;
use huai_format::snapshots;
use huai_format::snapshots::{Snapshot, Step, Subtree};
use huai_git::oid::Oid;
use huai_plan::filter::Selector;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::filter::Filter;
use crate::packs::lent::{Reader, snapshot};
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;

/// A limit on the entries that are read of a snapshot.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct EntryLimit(Guarded<snapshots::EntryLimit>);

#[pymethods]
impl EntryLimit {
    #[new]
    fn new(limit: u64) -> Self {
        Self(Guarded::new(snapshots::EntryLimit::new(limit)))
    }
}

type Own<'py> = (Bound<'py, PyDict>, [Option<Bound<'py, PyBytes>>; 4]);

/// The subdirectories of a directory with trees of their own, and what else its git tree names:
/// manifest, its digests, other pieces, their digests.
#[pyfunction]
pub(crate) fn read_own_directory<'py>(
    py: Python<'py>,
    reader: Py<PyAny>,
    path: Vec<u8>,
    tree: &[u8],
) -> PyResult<Own<'py>> {
    let snapshot = snapshot(reader, tree)?;
    let own = snapshot.own_directory(RelPath::trusted(path), snapshot.tree);
    let own = own.map_err(refuse)?;
    let children = PyDict::new(py);
    for (name, oid) in &own.children {
        children.set_item(PyBytes::new(py, name), bytes(py, oid))?;
    }
    let piece = own.manifest;
    let ids = [
        Some(piece.manifest),
        piece.column,
        own.pieces,
        own.piece_digests,
    ];
    Ok((children, ids.map(|id| id.map(|id| bytes(py, &id)))))
}

/// A lookup of paths in a snapshot.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Lookup(Guarded<snapshots::Lookup<Reader>>);

#[pymethods]
impl Lookup {
    #[new]
    fn new(reader: Py<PyAny>, tree: &[u8], limit: u64) -> PyResult<Self> {
        let snapshot = snapshot(reader, tree)?;
        Ok(Self(Guarded::new(snapshots::Lookup::new(snapshot, limit))))
    }

    /// The id of the tree that a directory has for itself.
    fn own_tree(&self, path: Vec<u8>) -> PyResult<Option<Vec<u8>>> {
        let tree = self.0.lock().own_tree(&RelPath::trusted(path));
        Ok(tree.map_err(refuse)?.map(|tree| tree.as_bytes().to_vec()))
    }

    /// The line of the leaf at a path, and its digest.
    fn leaf(&self, path: Vec<u8>) -> PyResult<Option<(Vec<u8>, Vec<u8>)>> {
        let leaf = self
            .0
            .lock()
            .leaf(&RelPath::trusted(path))
            .map_err(refuse)?;
        Ok(leaf.map(|(line, digest)| (line.to_vec(), digest.to_vec())))
    }

    /// Return a directory and all below it, or of these what any of the filters mirrors.
    #[pyo3(signature = (path, filters=Vec::new()))]
    fn subtree(&self, path: Vec<u8>, filters: Vec<Py<Filter>>) -> PyResult<Walk> {
        let mut lookup = self.0.lock();
        let selectors = filters.into_iter().map(|filter| filter.get().selector());
        let mut selectors: Vec<_> = selectors.collect();
        let path = RelPath::trusted(path);
        let subtree = if is_mirrored(&mut selectors, &path) {
            lookup.subtree(&path).map_err(refuse)?
        } else {
            Subtree::empty()
        };
        Ok(Walk {
            snapshot: lookup.snapshot(),
            subtree: Guarded::new((subtree, selectors)),
        })
    }
}

/// One own directory, read from the front to the end.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Level {
    snapshot: Snapshot<Reader>,
    open: Guarded<snapshots::Level>,
    limit: Py<EntryLimit>,
}

#[pymethods]
impl Level {
    #[new]
    fn new(reader: Py<PyAny>, path: &[u8], tree: &[u8], limit: Py<EntryLimit>) -> PyResult<Self> {
        let snapshot = snapshot(reader, tree)?;
        let path = RelPath::trusted(path.to_vec());
        let open = {
            let mut left = limit.get().0.try_lock()?;
            snapshots::Level::open(&snapshot, path, snapshot.tree, &mut left).map_err(refuse)?
        };
        let open = Guarded::new(open);
        Ok(Self {
            snapshot,
            open,
            limit,
        })
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let mut level = self.open.try_lock()?;
        let mut limit = self.limit.get().0.try_lock()?;
        match level.next(&self.snapshot, &mut limit).map_err(refuse)? {
            None => Ok(None),
            Some(Step::Listing(found)) => listing(py, &found).map(Some),
            Some(Step::Own(path, oid)) => {
                let path = PyBytes::new(py, path.as_bytes());
                (path, bytes(py, &oid)).into_pyobject(py).map(Some)
            }
        }
    }
}

/// A directory and all below it as listings, in tree order.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Walk {
    snapshot: Arc<Snapshot<Reader>>,
    subtree: Guarded<(Subtree, Vec<Selector>)>,
}

#[pymethods]
impl Walk {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let (subtree, selectors) = &mut *self.subtree.try_lock()?;
        let reached = |path: &RelPath| is_mirrored(selectors, path);
        let next = subtree.next_of(&self.snapshot, reached).map_err(refuse)?;
        next.map(|next| listing(py, &next)).transpose()
    }
}

/// Return true if any of the filters mirrors the directory, or there are no filters.
fn is_mirrored(selectors: &mut [Selector], path: &RelPath) -> bool {
    selectors.is_empty()
        || selectors
            .iter_mut()
            .any(|selector| selector.reaches(path.as_bytes(), true))
}

fn listing<'py>(py: Python<'py>, found: &snapshots::Listing) -> PyResult<Bound<'py, PyTuple>> {
    let snapshots::Listing {
        path,
        attributes,
        leaves,
        digests,
    } = found;
    let parts = [path.as_bytes(), attributes, leaves, digests];
    PyTuple::new(py, parts.map(|part| PyBytes::new(py, part)))
}

fn bytes<'py>(py: Python<'py>, oid: &Oid) -> Bound<'py, PyBytes> {
    PyBytes::new(py, oid.as_bytes())
}
