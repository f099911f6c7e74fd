//! The packs of a repository, read and sent.

use std::sync::{Arc, MutexGuard};

use huai_git::budget::Budget;
use huai_git::error::Error;
use huai_git::object::{Kind, Object};
use huai_git::oid::Oid;
use huai_git::send::SendRequest;
use huai_tree::packs::read::{self, Chain};
use huai_tree::packs::sending::send_from;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// An object for Python: its kind, its content.
type ObjectFields<'py> = (&'static str, Bound<'py, PyBytes>);

/// The packs of a repository.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Packs(Guarded<read::Packs>);

impl Packs {
    /// Return the content of an object; `None` if it is not here, cannot be read, or is of another
    /// kind.
    pub(crate) fn content(&self, oid: &Oid, kind: Kind) -> Option<Vec<u8>> {
        let object = self.object(oid)?;
        (object.kind == kind).then(|| object.content.clone())
    }

    /// Return the content of an object, as `content` does, or only its first `size` bytes, unchecked.
    pub(crate) fn head(&self, oid: &Oid, kind: Kind, size: usize) -> Option<Vec<u8>> {
        let object = self.0.lock().head(oid, size).ok()??;
        (object.kind == kind).then(|| object.content.clone())
    }

    /// Return an object; `None` if it is not here or cannot be read.
    pub(crate) fn object(&self, oid: &Oid) -> Option<Arc<Object>> {
        self.0.lock().find(oid).ok()?
    }

    /// Return the records of an object, then of its bases, the whole one last; `None` if they are not here, or cannot
    /// be read or copied.
    pub(crate) fn chain(&self, oid: &Oid) -> Option<Chain> {
        self.0.lock().chain(oid).ok()?
    }

    /// Return true if an object is here and its pack can be read.
    pub(crate) fn has(&self, oid: &Oid) -> bool {
        self.0.lock().locate(oid).is_ok_and(|place| place.is_some())
    }

    /// Lock the packs.
    pub(crate) fn lock(&self) -> MutexGuard<'_, read::Packs> {
        self.0.lock()
    }
}

#[pymethods]
impl Packs {
    #[new]
    #[pyo3(signature = (keep, spare=u64::MAX))]
    fn new(keep: usize, spare: u64) -> Self {
        Self(Guarded::new(read::Packs::new(keep, spare)))
    }

    /// Also read the packs in `folder`.
    fn add(&self, folder: &[u8]) {
        self.0.lock().add(folder.to_vec());
    }

    /// Take directories with these trees for empty ones if they are in no pack.
    fn set_absent(&self, trees: Vec<PyBackedBytes>) -> PyResult<()> {
        let trees = parse_oids(&trees)?;
        self.0.lock().set_absent(trees.into_iter());
        Ok(())
    }

    /// The trees of absent directories that packs were made without.
    #[getter]
    fn left_out<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let packs = self.0.lock();
        let trees = packs.left_out.iter();
        trees.map(|oid| PyBytes::new(py, oid.as_bytes())).collect()
    }

    /// Close all packs, after one was removed or replaced, and drop cached objects.
    fn forget(&self, py: Python<'_>) {
        py.detach(|| self.0.lock().forget());
    }

    /// Return kind and content of an object, `None` if no pack has it; an exception if it cannot be read.
    fn find<'py>(&self, py: Python<'py>, oid: &[u8]) -> PyResult<Option<ObjectFields<'py>>> {
        let oid = parse_oid(oid)?;
        // A few microseconds: too short for the one door to long calls.
        let object = py.detach(|| self.0.lock().find(&oid));
        let object = object.map_err(refuse)?;
        Ok(object.map(|object| (object.kind.name(), PyBytes::new(py, &object.content))))
    }

    fn __contains__(&self, py: Python<'_>, oid: &[u8]) -> PyResult<bool> {
        let oid = parse_oid(oid)?;
        let place = py.detach(|| self.0.lock().locate(&oid));
        Ok(place.map_err(refuse)?.is_some())
    }

    /// Pass the pack of a commit to `put` in pieces, without what the tree `since` has.
    #[pyo3(signature = (commit, tree, put, *, since=None))]
    fn send(
        &self,
        py: Python<'_>,
        commit: &[u8],
        tree: &[u8],
        put: &Bound<'_, PyAny>,
        since: Option<&[u8]>,
    ) -> PyResult<()> {
        let since = since.map(parse_oid).transpose()?;
        self.put_pack(py, &[(commit, parse_oid(tree)?)], since, put)
    }

    /// Pass one pack of several commits, oldest first, to `put` in pieces.
    fn pack(
        &self,
        py: Python<'_>,
        commits: Vec<(PyBackedBytes, PyBackedBytes)>,
        put: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let parsed_commits = commits
            .into_iter()
            .map(|(commit, tree)| Ok((commit, parse_oid(&tree)?)))
            .collect::<PyResult<Vec<_>>>()?;
        let commits: Vec<_> = parsed_commits
            .iter()
            .map(|(commit, tree)| (&**commit, *tree))
            .collect();
        self.put_pack(py, &commits, None, put)
    }
}

impl Packs {
    /// Call `put` with each part of the pack of `commits`, without the objects that the tree
    /// `known` has; an exception of `put` is passed on.
    fn put_pack(
        &self,
        py: Python<'_>,
        commits: &[(&[u8], Oid)],
        known: Option<Oid>,
        put: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let request = SendRequest { commits, known };
        let put = put.as_unbound();
        wait(py, |stop| {
            let stopped = || stop.is_set();
            // What is read here is our own.
            let budget = Budget::new(u64::MAX, &stopped);
            let mut put = |piece: &[u8]| {
                let outcome = Python::attach(|py| put.call1(py, (PyBytes::new(py, piece),)));
                outcome.map_or_else(|raised| Err(Error::Lent(Box::new(raised))), |_| Ok(()))
            };
            send_from(&mut self.0.lock(), request, &budget, &mut put)
        })
    }
}

/// Parse ids; an exception unless each has 20 bytes.
pub(crate) fn parse_oids(oids: &[PyBackedBytes]) -> PyResult<Vec<Oid>> {
    oids.iter().map(|oid| parse_oid(oid)).collect()
}

/// Parse an id; an exception unless it has 20 bytes.
pub(crate) fn parse_oid(bytes: &[u8]) -> PyResult<Oid> {
    Oid::parse(bytes).ok_or_else(|| PyValueError::new_err("an id has 20 bytes"))
}
