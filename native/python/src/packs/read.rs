//! Packs: resolving one that came in, and their indices.

use huai_format::budget::Budget;
use huai_format::error::{Error, Result};
use huai_format::git::index::{self, IndexEntry};
use huai_format::git::object::{Kind, Object};
use huai_format::git::oid::Oid;
use huai_format::git::resolve::{self, Bases, Resolution, Resolved, Room};
use huai_format::git::send::SendRequest;
use huai_tree::packs::read::{self, PackFile};
use huai_tree::packs::sending::send_from;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyBytes;

use crate::sys::errors::{raise, refuse};
use crate::sys::guarded::Guarded;
use crate::sys::wait::{wait, wait_asking};

/// An object for Python: its kind, its content.
type ObjectFields<'py> = (&'static str, Bound<'py, PyBytes>);
/// An id, and the record of its object.
type Record<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// A pack of which every object is known.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct ResolvedPack {
    pack: Resolved,
    #[pyo3(get)]
    spent: u64,
}

impl ResolvedPack {
    /// The content of a tree of the pack.
    pub(crate) fn tree(&self, oid: &Oid) -> Option<Vec<u8>> {
        let object = self.pack.find(oid)?;
        (object.kind == Kind::Tree).then(|| object.content.clone())
    }

    /// True if an object is in the pack.
    pub(crate) fn has(&self, oid: &Oid) -> bool {
        self.pack.contains(oid)
    }
}

#[pymethods]
impl ResolvedPack {
    fn __len__(&self) -> usize {
        self.pack.len()
    }

    fn __contains__(&self, oid: &[u8]) -> bool {
        Oid::parse(oid).is_some_and(|oid| self.has(&oid))
    }

    fn find<'py>(&self, py: Python<'py>, oid: &[u8]) -> Option<ObjectFields<'py>> {
        let object = self.pack.find(&Oid::parse(oid)?)?;
        Some((object.kind.name(), PyBytes::new(py, &object.content)))
    }

    /// The objects outside of it that its deltas are made from.
    #[getter]
    fn bases<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let bases = self.pack.bases().iter();
        bases.map(|oid| PyBytes::new(py, oid.as_bytes())).collect()
    }

    fn index<'py>(
        &self,
        py: Python<'py>,
        bases: Vec<(Vec<u8>, u64, u32)>,
        checksum: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let own = self.pack.places().map(Ok);
        encode(py, own.chain(bases.into_iter().map(place)), checksum)
    }
}

/// The packs of a repository.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Packs(Guarded<read::Packs>);

impl Packs {
    /// The content of an object that is here, can be read and is of this kind.
    pub(crate) fn content(&self, oid: &Oid, kind: Kind) -> Option<Vec<u8>> {
        let object = self.0.lock().find(oid).ok()??;
        (object.kind == kind).then(|| object.content.clone())
    }

    /// True if an object is here, and its pack can be read.
    pub(crate) fn has(&self, oid: &Oid) -> bool {
        self.0.lock().locate(oid).is_ok_and(|place| place.is_some())
    }
}

#[pymethods]
impl Packs {
    #[new]
    #[pyo3(signature = (keep, spare=u64::MAX))]
    fn new(keep: usize, spare: u64) -> Self {
        Self(Guarded::new(read::Packs::new(keep, spare)))
    }

    fn add(&self, folder: &[u8]) {
        self.0.lock().add(folder.to_vec());
    }

    fn forget(&self, py: Python<'_>) {
        py.detach(|| self.0.lock().forget());
    }

    fn find<'py>(&self, py: Python<'py>, oid: &[u8]) -> PyResult<Option<ObjectFields<'py>>> {
        let oid = parse_oid(oid)?;
        // A few microseconds: too short for the one door to long calls.
        let object = py.detach(|| self.0.lock().find(&oid));
        let object = object.map_err(refuse)?;
        Ok(object.map(|object| (object.kind.name(), PyBytes::new(py, &object.content))))
    }

    fn record<'py>(&self, py: Python<'py>, oid: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let oid = parse_oid(oid)?;
        let record = py.detach(|| self.0.lock().record(&oid)).map_err(refuse)?;
        Ok(record.map(|record| PyBytes::new(py, &record)))
    }

    fn chain<'py>(&self, py: Python<'py>, oid: &[u8]) -> PyResult<Option<Vec<Record<'py>>>> {
        let oid = parse_oid(oid)?;
        let records = py.detach(|| self.0.lock().chain(&oid)).map_err(refuse)?;
        let record = |(oid, record): (Oid, Vec<u8>)| {
            let record = PyBytes::new(py, &record);
            (PyBytes::new(py, oid.as_bytes()), record)
        };
        Ok(records.map(|chain| chain.into_iter().map(record).collect()))
    }

    fn __contains__(&self, py: Python<'_>, oid: &[u8]) -> PyResult<bool> {
        let oid = parse_oid(oid)?;
        let place = py.detach(|| self.0.lock().locate(&oid));
        Ok(place.map_err(refuse)?.is_some())
    }

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

    fn pack(
        &self,
        py: Python<'_>,
        commits: Vec<(PyBackedBytes, PyBackedBytes)>,
        put: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let parsed = commits
            .into_iter()
            .map(|(commit, tree)| Ok((commit, parse_oid(&tree)?)))
            .collect::<PyResult<Vec<_>>>()?;
        let commits: Vec<_> = parsed
            .iter()
            .map(|(commit, tree)| (&**commit, *tree))
            .collect();
        self.put_pack(py, &commits, None, put)
    }
}

impl Packs {
    fn put_pack(
        &self,
        py: Python<'_>,
        commits: &[(&[u8], Oid)],
        known: Option<Oid>,
        put: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let request = SendRequest { commits, known };
        let put = put.as_unbound();
        let outcome = wait(py, |stop| {
            let stopped = || stop.is_set();
            // What is read here is our own.
            let budget = Budget::new(u64::MAX, &stopped);
            let mut put = |piece: &[u8]| {
                let outcome = Python::attach(|py| put.call1(py, (PyBytes::new(py, piece),)));
                outcome.map_or_else(|raised| Err(Error::Lent(Box::new(raised))), |_| Ok(()))
            };
            send_from(&mut self.0.lock(), request, &budget, &mut put)
        })?;
        outcome.map_err(refuse)
    }
}

/// Resolve the pack at `path`; or the offset of a record whose base is not here.
#[pyfunction]
#[pyo3(signature = (path, find, check, *, work, room, packs=None))]
#[expect(clippy::too_many_arguments, reason = "named ones, of Python")]
pub(crate) fn resolve_pack(
    py: Python<'_>,
    path: &[u8],
    find: Py<PyAny>,
    check: &Bound<'_, PyAny>,
    work: u64,
    room: (u64, u64),
    packs: Option<Py<Packs>>,
) -> PyResult<Py<PyAny>> {
    let file = PackFile::open(path).map_err(|error| raise(py, &error))?;
    let (held, naming) = room;
    let room = Room { held, naming };
    let (outcome, left) = wait_asking(py, Some(check.as_unbound()), |stop| {
        let stopped = || stop.is_set();
        let mut budget = Budget::new(work, &stopped);
        let outcome = resolve::resolve(&file, &mut ObjectLookup { packs, find }, room, &mut budget);
        (outcome, budget.left())
    })?;
    match outcome.map_err(refuse)? {
        Resolution::Whole(pack) => {
            let spent = work.saturating_sub(left);
            Ok(Py::new(py, ResolvedPack { pack, spent })?.into_any())
        }
        Resolution::Missing(offset) => Ok(offset.into_pyobject(py)?.into_any().unbind()),
    }
}

/// The index of the pack that ends with `checksum`.
#[pyfunction]
pub(crate) fn pack_index<'py>(
    py: Python<'py>,
    places: Vec<(Vec<u8>, u64, u32)>,
    checksum: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    encode(py, places.into_iter().map(place), checksum)
}

fn encode<'py>(
    py: Python<'py>,
    places: impl Iterator<Item = PyResult<IndexEntry>>,
    checksum: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let places = places.collect::<PyResult<Vec<_>>>()?;
    let index = index::encode(places, parse_oid(checksum)?.as_bytes()).map_err(refuse)?;
    Ok(PyBytes::new(py, &index))
}

fn place((oid, offset, crc): (Vec<u8>, u64, u32)) -> PyResult<IndexEntry> {
    let oid = parse_oid(&oid)?;
    Ok(IndexEntry { oid, offset, crc })
}

/// Parse an id of 20 bytes.
pub(crate) fn parse_oid(bytes: &[u8]) -> PyResult<Oid> {
    Oid::parse(bytes).ok_or_else(|| PyValueError::new_err("an id has 20 bytes"))
}

/// The objects in packs, or from a Python function, which judges objects that are missing or
/// damaged.
struct ObjectLookup {
    packs: Option<Py<Packs>>,
    find: Py<PyAny>,
}

impl Bases for ObjectLookup {
    fn find(&mut self, oid: &Oid) -> Result<Option<Object>> {
        let packed = self
            .packs
            .as_ref()
            .map(|packs| packs.get().0.lock().find(oid));
        if let Some(Ok(Some(object))) = packed {
            return Ok(Some(Object::clone(&object)));
        }
        Python::attach(|py| {
            let object = self.find.call1(py, (PyBytes::new(py, oid.as_bytes()),))?;
            let object: Option<(PyBackedStr, PyBackedBytes)> = object.extract(py)?;
            object
                .map(|(kind, content)| {
                    let kind = Kind::parse(&kind)
                        .ok_or_else(|| PyValueError::new_err("no kind of object"))?;
                    let content = content.to_vec();
                    Ok(Object { kind, content })
                })
                .transpose()
        })
        .map_err(|raised: PyErr| Error::Lent(Box::new(raised)))
    }
}
