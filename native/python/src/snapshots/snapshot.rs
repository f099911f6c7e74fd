//! Reading snapshots.

use std::sync::{Arc, MutexGuard};

use huai_format::diff::Columns;
use huai_format::path::RelPath;
use huai_format::snapshots::{self, EntryLimit, Level, Snapshot, Step, Subtree};
use huai_format::walks::{check_hardlinks_at, read_part};
use huai_git::oid::Oid;
use huai_plan::filter::Selector;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::columns::{Batch, batch};
use super::filter::Filter;
use crate::packs::lent::{Reader, snapshot};
use crate::packs::read::parse_oid;
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;

/// The children by name with their ids; the ids of the manifest, its digests, pieces, and theirs.
type Own<'py> = (Bound<'py, PyDict>, [Option<Bound<'py, PyBytes>>; 4]);

/// A directory, some of its entries, and the number of all.
type Part<'py> = (Bound<'py, PyTuple>, Option<Batch<'py>>, usize);

/// Decode the git tree of an own directory.  Returns the ids of its own subdirectories by name; then those of the
/// manifest, its digests, the tree of pieces, and that of their digests.
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

impl Lookup {
    pub(crate) fn lock(&self) -> MutexGuard<'_, snapshots::Lookup<Reader>> {
        self.0.lock()
    }
}

#[pymethods]
impl Lookup {
    #[new]
    fn new(reader: Py<PyAny>, tree: &[u8], limit: u64) -> PyResult<Self> {
        let snapshot = snapshot(reader, tree)?;
        Ok(Self(Guarded::new(snapshots::Lookup::new(snapshot, limit))))
    }

    /// Return the id of the tree of an own directory; `None` for any other path.
    fn own_tree(&self, path: Vec<u8>) -> PyResult<Option<Vec<u8>>> {
        let tree = self.0.lock().own_tree(&RelPath::trusted(path));
        Ok(tree.map_err(refuse)?.map(|tree| tree.as_bytes().to_vec()))
    }

    /// Return the line and the digest, perhaps empty, of a file or symlink; `None` if there is
    /// none.
    fn leaf(&self, path: Vec<u8>) -> PyResult<Option<(Vec<u8>, Vec<u8>)>> {
        let leaf = self
            .0
            .lock()
            .leaf(&RelPath::trusted(path))
            .map_err(refuse)?;
        Ok(leaf.map(|(line, digest)| (line.to_vec(), digest.to_vec())))
    }

    fn attributes(&self, path: Vec<u8>) -> PyResult<Option<Vec<u8>>> {
        let attributes = self.0.lock().attributes(&RelPath::trusted(path));
        Ok(attributes.map_err(refuse)?.map(|text| text.to_vec()))
    }

    fn part<'py>(
        &self,
        py: Python<'py>,
        path: Vec<u8>,
        start: usize,
        most: usize,
    ) -> PyResult<Option<Part<'py>>> {
        let (mut entries, rows) = (Columns::new(most), start..start.saturating_add(most));
        let part = py.detach(|| {
            let path = RelPath::trusted(path);
            read_part(&mut self.0.lock(), &path, &rows, &mut entries)
        });
        let Some((own, total)) = part.map_err(refuse)? else {
            return Ok(None);
        };
        Ok(Some((listing(py, &own)?, batch(py, &entries)?, total)))
    }

    /// Return the listings of a directory and all below it that any of the filters mirrors, all without filters; none
    /// if it is missing.
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
            open: Guarded::new(Open::Subtree(subtree, selectors)),
        })
    }

    fn check_hardlinks(&self, paths: Vec<Vec<u8>>) -> PyResult<()> {
        check_hardlinks_at(&mut self.0.lock(), &paths).map_err(refuse)
    }

    /// Return the listings of one own directory, whose own subdirectories are path and id.
    fn level(&self, path: Vec<u8>, tree: &[u8]) -> PyResult<Walk> {
        let lookup = self.0.lock();
        let (snapshot, tree) = (lookup.snapshot(), parse_oid(tree)?);
        let mut limit = EntryLimit::new(lookup.limit());
        let level = Level::open(&snapshot, RelPath::trusted(path), tree, &mut limit);
        let open = Guarded::new(Open::Level(Box::new(level.map_err(refuse)?), limit));
        Ok(Walk { snapshot, open })
    }
}

/// An iterator over the listings of a subtree, or of one own directory.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Walk {
    snapshot: Arc<Snapshot<Reader>>,
    open: Guarded<Open>,
}

/// The walk of a `Walk`: a subtree with its filters, or one own directory.
enum Open {
    Subtree(Subtree, Vec<Selector>),
    Level(Box<Level>, EntryLimit),
}

#[pymethods]
impl Walk {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Return the next listing, or the path and id of an own subdirectory; `None` at the end.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let next = match &mut *self.open.try_lock()? {
            Open::Subtree(subtree, selectors) => {
                let reached = |path: &RelPath| is_mirrored(selectors, path);
                let next = subtree.next_of(&self.snapshot, reached);
                next.map(|next| next.map(Step::Listing))
            }
            Open::Level(level, limit) => level.next(&self.snapshot, limit),
        };
        let step = |step| match step {
            Step::Listing(found) => listing(py, &found),
            Step::Own(path, oid) => {
                let path = PyBytes::new(py, path.as_bytes());
                (path, bytes(py, &oid)).into_pyobject(py)
            }
        };
        next.map_err(refuse)?.map(step).transpose()
    }
}

/// Return true if any of the filters mirrors the directory, or there are no filters.
fn is_mirrored(selectors: &mut [Selector], path: &RelPath) -> bool {
    selectors.is_empty()
        || selectors
            .iter_mut()
            .any(|selector| selector.reaches(path.as_bytes(), true))
}

/// Convert a listing to a tuple of path, attributes, leaves and digests.
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

/// Convert an id to Python's `bytes`.
fn bytes<'py>(py: Python<'py>, oid: &Oid) -> Bound<'py, PyBytes> {
    PyBytes::new(py, oid.as_bytes())
}
