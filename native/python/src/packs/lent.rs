//! A store of objects that Python lends (`huai_schema.git.objects.ObjectReader`).

use std::sync::atomic::{AtomicU32, Ordering};

use huai_format::snapshots::{EntryLimit, Lookup, ObjectReader, Snapshot, Walk};
use huai_git::error::{Error, Result};
use huai_git::object::Kind;
use huai_git::oid::Oid;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::read::{Packs, parse_oid};

/// One object in this many is read by Python, which then checks for signals and for its deadline.
const ASKED_EVERY: u32 = 64;

/// A store of objects in Python, and its `packs`, if any, which are read without Python.
pub(super) struct LentObjects {
    objects: Py<PyAny>,
    packs: Option<Py<Packs>>,
}

impl LentObjects {
    /// Lend a store of Python's, and its attribute `packs` if that is a `Packs`.
    pub(super) fn new(objects: &Bound<'_, PyAny>) -> PyResult<Self> {
        let packs = objects.getattr_opt(intern!(objects.py(), "packs"))?;
        Ok(Self {
            objects: objects.clone().unbind(),
            packs: packs.and_then(|it| it.cast_into().ok()).map(Bound::unbind),
        })
    }

    /// Return the packs that are read without Python, if any.
    pub(super) fn packs(&self) -> Option<&Packs> {
        self.packs.as_ref().map(Py::get)
    }

    /// Call `work` with the store, which judges missing and damaged objects; an exception of it
    /// becomes `Error::Lent`, unchanged.
    pub(super) fn ask<T>(&self, work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        let outcome = Python::attach(|py| work(self.objects.bind(py)));
        outcome.map_err(|raised| Error::Lent(Box::new(raised)))
    }
}

/// A reader by a Python object with `read(oid, kind)`.
pub(crate) struct Reader {
    lent: LentObjects,
    reads: AtomicU32,
}

impl Reader {
    pub(crate) fn new(py: Python<'_>, lent: Py<PyAny>) -> PyResult<Self> {
        Ok(Self {
            lent: LentObjects::new(lent.bind(py))?,
            reads: AtomicU32::new(0),
        })
    }

    /// Return the packs; `None` without any, or if it is Python's turn to read.
    fn packs(&self) -> Option<&Packs> {
        let is_asked = self.reads.fetch_add(1, Ordering::Relaxed) % ASKED_EVERY == 0;
        self.lent.packs().filter(|_| !is_asked)
    }
}

impl ObjectReader for Reader {
    /// Return an object from the packs, or else from Python.
    fn read(&self, oid: &Oid, kind: Kind) -> Result<Vec<u8>> {
        if let Some(content) = self.packs().and_then(|packs| packs.content(oid, kind)) {
            return Ok(content);
        }
        self.lent.ask(|objects| {
            let oid = PyBytes::new(objects.py(), oid.as_bytes());
            let data = objects.call_method1(intern!(objects.py(), "read"), (oid, kind.name()))?;
            Ok(data.cast::<PyBytes>()?.as_bytes().to_vec())
        })
    }

    /// Return the beginning of an object from the packs, or else all of it from Python.
    fn read_head(&self, oid: &Oid, kind: Kind, size: usize) -> Result<Vec<u8>> {
        let head = self.packs().and_then(|packs| packs.head(oid, kind, size));
        head.map_or_else(|| self.read(oid, kind), Ok)
    }
}

/// Return the snapshot whose root has the tree `tree`; an exception for an id of the wrong length.
pub(crate) fn snapshot(lent: Py<PyAny>, tree: &[u8]) -> PyResult<Snapshot<Reader>> {
    let tree = parse_oid(tree)?;
    let reader = Python::attach(|py| Reader::new(py, lent))?;
    Ok(Snapshot { reader, tree })
}

/// A snapshot that Python lends: a reader of its objects, the id of its root tree, and the most
/// entries that it may have.
pub(crate) struct LentSnapshot {
    pub(crate) snapshot: Snapshot<Reader>,
    pub(crate) limit: u64,
}

impl<'py> FromPyObject<'_, 'py> for LentSnapshot {
    type Error = PyErr;

    fn extract(lent: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (reader, tree, limit): (_, PyBackedBytes, _) = lent.extract()?;
        let snapshot = snapshot(reader, &tree)?;
        Ok(Self { snapshot, limit })
    }
}

impl LentSnapshot {
    /// Begin a walk through all of it.
    pub(crate) fn walk(&self) -> Walk {
        Walk::new(&self.snapshot, EntryLimit::new(self.limit))
    }

    /// Make it a lookup of paths.
    pub(crate) fn lookup(self) -> Lookup<Reader> {
        Lookup::new(self.snapshot, self.limit)
    }
}
