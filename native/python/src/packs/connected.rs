//! A check that all objects of a commit are present.

use huai_format::budget::Budget;
use huai_format::error::{Error, Result};
use huai_format::git::connected::{self, LocalObjects, Missing};
use huai_format::git::object::Kind;
use huai_format::git::oid::Oid;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyBytes;

use super::read::{Packs, ResolvedPack, parse_oid};
use crate::sys::errors::refuse;
use crate::sys::wait::wait_asking;

/// An id, true if it is a tree's.
type Absent<'py> = (Bound<'py, PyBytes>, bool);

/// Find an object of a tree that is missing; return it, if any, and how much of `work` was done.
#[pyfunction]
#[pyo3(signature = (wanted, complete, objects, check, *, work))]
pub(crate) fn find_missing<'py>(
    py: Python<'py>,
    wanted: &[u8],
    complete: Vec<Vec<u8>>,
    objects: &Bound<'py, PyAny>,
    check: &Bound<'py, PyAny>,
    work: u64,
) -> PyResult<(Option<Absent<'py>>, u64)> {
    let tree = parse_oid(wanted)?;
    let complete = complete.into_iter().map(|oid| parse_oid(&oid));
    let complete = complete.collect::<PyResult<Vec<_>>>()?;
    let mut objects = Lent::new(objects)?;
    let (outcome, left) = wait_asking(py, Some(check.as_unbound()), |stop| {
        let stopped = || stop.is_set();
        let mut budget = Budget::new(work, &stopped);
        let outcome = connected::find_missing(tree, &complete, &mut objects, &mut budget);
        (outcome, budget.left())
    })?;
    let missing = outcome.map_err(refuse)?.map(|missing| match missing {
        Missing::Tree(oid) => (PyBytes::new(py, oid.as_bytes()), true),
        Missing::Object(oid) => (PyBytes::new(py, oid.as_bytes()), false),
    });
    Ok((missing, work.saturating_sub(left)))
}

/// Whatever has `find(oid)` and `in`.  Its exceptions come through unchanged.
///
/// What is in its `received` or its `packs`, if it has any, is found there without Python.
struct Lent {
    received: Option<Py<ResolvedPack>>,
    packs: Option<Py<Packs>>,
    objects: Py<PyAny>,
}

impl Lent {
    fn new(objects: &Bound<'_, PyAny>) -> PyResult<Self> {
        let received = objects.getattr_opt(intern!(objects.py(), "received"))?;
        let packs = objects.getattr_opt(intern!(objects.py(), "packs"))?;
        Ok(Self {
            received: received
                .and_then(|it| it.cast_into().ok())
                .map(Bound::unbind),
            packs: packs.and_then(|it| it.cast_into().ok()).map(Bound::unbind),
            objects: objects.clone().unbind(),
        })
    }

    /// Call Python, which judges objects that are missing or damaged.
    fn ask<T>(&self, question: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        let outcome = Python::attach(|py| question(self.objects.bind(py)));
        outcome.map_err(|raised| Error::Lent(Box::new(raised)))
    }
}

impl LocalObjects for Lent {
    fn tree(&mut self, oid: &Oid) -> Result<Option<Vec<u8>>> {
        let received = self.received.as_ref().and_then(|it| it.get().tree(oid));
        let packed = || self.packs.as_ref()?.get().content(oid, Kind::Tree);
        if let Some(content) = received.or_else(packed) {
            return Ok(Some(content));
        }
        self.ask(|objects| {
            let oid = PyBytes::new(objects.py(), oid.as_bytes());
            let object = objects.call_method1(intern!(objects.py(), "find"), (oid,))?;
            let object: Option<(PyBackedStr, PyBackedBytes)> = object.extract()?;
            let tree = object.filter(|(kind, _)| Kind::parse(kind) == Some(Kind::Tree));
            Ok(tree.map(|(_, content)| content.to_vec()))
        })
    }

    fn has(&mut self, oid: &Oid) -> Result<bool> {
        let is_received = self.received.as_ref().is_some_and(|it| it.get().has(oid));
        if is_received
            || self
                .packs
                .as_ref()
                .is_some_and(|packs| packs.get().has(oid))
        {
            return Ok(true);
        }
        self.ask(|objects| objects.contains(PyBytes::new(objects.py(), oid.as_bytes())))
    }
}
