//! Reading snapshots.

use huai_format::entry_limit;
use huai_format::escape::escape;
use huai_format::filter::Selector;
use huai_format::git::oid::Oid;
use huai_format::level::{self, Step};
use huai_format::manifest::{self, Block};
use huai_format::own_directory;
use huai_format::path::RelPath;
use huai_format::snapshot::{Located, Snapshot};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::filter::Filter;
use crate::packs::lent::{Reader, snapshot};
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;

/// What one look at a snapshot may cost.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct EntryLimit(Guarded<entry_limit::EntryLimit>);

#[pymethods]
impl EntryLimit {
    #[new]
    fn new(limit: u64) -> Self {
        Self(Guarded::new(entry_limit::EntryLimit::new(limit)))
    }
}

/// The git tree of one directory, taken apart.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct OwnDirectory {
    snapshot: Snapshot<Reader>,
    directory: own_directory::OwnDirectory,
    pieces: Guarded<Option<Vec<Located>>>,
    /// Raw names of subdirectories with trees of their own, to their ids; in byte order.
    #[pyo3(get)]
    children: Py<PyDict>,
}

#[pymethods]
impl OwnDirectory {
    #[new]
    fn new(py: Python<'_>, reader: Py<PyAny>, path: &[u8], tree: &[u8]) -> PyResult<Self> {
        let snapshot = snapshot(reader, tree)?;
        let directory = snapshot.own_directory(RelPath::trusted(path.to_vec()), snapshot.tree);
        let directory = directory.map_err(refuse)?;
        let children = PyDict::new(py);
        for (name, oid) in &directory.children {
            children.set_item(PyBytes::new(py, name), bytes(py, oid))?;
        }
        Ok(Self {
            snapshot,
            directory,
            pieces: Guarded::new(None),
            children: children.unbind(),
        })
    }

    /// What it names beside them: manifest, its digests, other pieces, their digests.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> [Option<Bound<'py, PyBytes>>; 4] {
        let own = &self.directory;
        let piece = own.manifest;
        let ids = [
            Some(piece.manifest),
            piece.column,
            own.pieces,
            own.piece_digests,
        ];
        ids.map(|id| id.map(|id| bytes(py, &id)))
    }

    /// The ids of all pieces of its manifest.
    fn manifests<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let ids = self.snapshot.manifests(&self.directory).map_err(refuse)?;
        Ok(ids.iter().map(|id| bytes(py, id)).collect())
    }

    /// The line of the leaf at `rest`, seen from this one, if it stands here, and its digest.
    fn leaf<'py>(
        &self,
        py: Python<'py>,
        rest: &[u8],
    ) -> PyResult<Option<[Bound<'py, PyBytes>; 2]>> {
        let path = &self.directory.path;
        let found = self.with_pieces(|pieces| {
            let found = self.snapshot.leaf(path, pieces, rest);
            found.map_err(refuse)
        })?;
        Ok(found.map(|(line, digest)| [line, digest].map(|part| PyBytes::new(py, &part))))
    }

    /// The directory at `rest`, seen from this one, and all below it, if it stands here.
    fn inlined<'py>(&self, py: Python<'py>, rest: &[u8]) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let path = &self.directory.path;
        let name = rest.split(|&byte| byte == b'/').next().unwrap_or_default();
        let inline = self.with_pieces(|pieces| {
            let found = self.snapshot.inline_directory(path, pieces, name);
            found.map_err(refuse)
        })?;
        let relative = escape(rest);
        let is_below = |block: &&Block| match block.relative.strip_prefix(&*relative) {
            Some(below) => below.is_empty() || below.starts_with(b"/"),
            None => false,
        };
        let blocks = inline.iter().flat_map(|each| &each.blocks).filter(is_below);
        blocks
            .map(|block| listing(py, &block.listing(path).map_err(refuse)?))
            .collect()
    }
}

impl OwnDirectory {
    /// Its pieces in order, which are read for that once.
    fn with_pieces<T>(&self, work: impl FnOnce(&[Located]) -> PyResult<T>) -> PyResult<T> {
        let mut known = self.pieces.try_lock()?;
        let pieces = match known.take() {
            Some(pieces) => pieces,
            None => self.snapshot.pieces(&self.directory).map_err(refuse)?,
        };
        work(known.insert(pieces))
    }
}

/// One own directory, read from the front to the end.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Level {
    snapshot: Snapshot<Reader>,
    open: Guarded<level::Level>,
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
            level::Level::open(&snapshot, path, snapshot.tree, &mut left).map_err(refuse)?
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

/// A whole tree as listings, in tree order.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Walk {
    snapshot: Snapshot<Reader>,
    walk: Guarded<(level::Walk, Vec<Selector>)>,
}

#[pymethods]
impl Walk {
    #[new]
    #[pyo3(signature = (reader, path, tree, limit, filters=Vec::new()))]
    fn new(
        reader: Py<PyAny>,
        path: &[u8],
        tree: &[u8],
        limit: u64,
        filters: Vec<Py<Filter>>,
    ) -> PyResult<Self> {
        let snapshot = snapshot(reader, tree)?;
        let path = RelPath::trusted(path.to_vec());
        let limit = entry_limit::EntryLimit::new(limit);
        let walk = level::Walk::below(path, snapshot.tree, limit);
        let selectors = filters.into_iter().map(|each| each.get().selector());
        let walk = Guarded::new((walk, selectors.collect()));
        Ok(Self { snapshot, walk })
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let (walk, selectors) = &mut *self.walk.try_lock()?;
        let reached = |path: &RelPath| {
            let mut open = selectors.iter_mut();
            open.len() == 0 || open.any(|each| each.reaches(path.as_bytes(), true))
        };
        let found = walk.next_of(&self.snapshot, reached).map_err(refuse)?;
        found.map(|found| listing(py, &found)).transpose()
    }
}

fn listing<'py>(py: Python<'py>, found: &manifest::Listing) -> PyResult<Bound<'py, PyTuple>> {
    let manifest::Listing {
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
