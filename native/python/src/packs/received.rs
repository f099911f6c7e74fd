//! Packs that were received, and a check that all objects of a commit are present.

use huai_git::budget::Budget;
use huai_git::connected;
use huai_git::error::Result;
use huai_git::object::{Kind, Object};
use huai_git::oid::Oid;
use huai_git::resolve::{LocalObjects, Room};
use huai_tree::packs::read::Chain;
use huai_tree::packs::received::{self, PackedObjects, TargetCommit};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyBytes;

use super::lent::LentObjects;
use super::read::{parse_oid, parse_oids};
use crate::sys::wait::wait_checking;

/// The name of the pack if it added a file, the content of the commit, the work that was done.
type InstalledPack<'py> = (Option<Bound<'py, PyBytes>>, Bound<'py, PyBytes>, u64);

/// Check the pack that was received as `name` in `folder`, complete it with the bases of its deltas, and make it
/// visible.  Fails if it and `objects` lack an object of `target`, and if it needs more than `work` or `room`.
#[pyfunction]
#[pyo3(signature = (folder, name, objects, check, *, target, work, room))]
#[expect(clippy::too_many_arguments, reason = "named ones, of Python")]
pub(crate) fn install_pack<'py>(
    py: Python<'py>,
    folder: &[u8],
    name: &[u8],
    objects: &Bound<'py, PyAny>,
    check: &Bound<'py, PyAny>,
    target: Option<(PyBackedBytes, Vec<PyBackedBytes>)>,
    work: u64,
    room: (u64, u64),
) -> PyResult<InstalledPack<'py>> {
    let target = target.map(|(commit, complete)| {
        let commit = parse_oid(&commit)?;
        parse_oids(&complete).map(|complete| TargetCommit { commit, complete })
    });
    let target = target.transpose()?;
    let (held, naming) = room;
    let room = Room { held, naming };
    let mut objects = LentObjects::new(objects)?;
    let (installed, spent) = spending(py, check, work, |budget| {
        received::install(folder, name, target.as_ref(), &mut objects, room, budget)
    })?;
    let pack = installed.pack.map(|pack| PyBytes::new(py, &pack));
    Ok((pack, PyBytes::new(py, &installed.commit), spent))
}

/// Check that all objects of the tree `target` are here, those in the trees `complete` aside; returns how much of
/// `work` that took.
#[pyfunction]
#[pyo3(signature = (target, complete, objects, check, *, work))]
pub(crate) fn check_connected(
    py: Python<'_>,
    target: &[u8],
    complete: Vec<PyBackedBytes>,
    objects: &Bound<'_, PyAny>,
    check: &Bound<'_, PyAny>,
    work: u64,
) -> PyResult<u64> {
    let (tree, complete) = (parse_oid(target)?, parse_oids(&complete)?);
    let mut objects = LentObjects::new(objects)?;
    let ((), spent) = spending(py, check, work, |budget| {
        connected::check_connected(tree, &complete, &mut objects, budget)
    })?;
    Ok(spent)
}

/// Return the result of `call`, and how much of `work` it spent; `check` is called ten times a
/// second, and an exception of it ends the call.
fn spending<T: Send>(
    py: Python<'_>,
    check: &Bound<'_, PyAny>,
    work: u64,
    call: impl FnOnce(&mut Budget<'_>) -> Result<T> + Send,
) -> PyResult<(T, u64)> {
    wait_checking(py, Some(check.as_unbound()), |stop| {
        let stopped = || stop.is_set();
        let mut budget = Budget::new(work, &stopped);
        let outcome = call(&mut budget)?;
        Result::Ok((outcome, work.saturating_sub(budget.left())))
    })
}

/// Objects by a Python object with `find(oid)` and `in`.
impl LocalObjects for LentObjects {
    /// Return an object from the packs, or else from Python; `None` if neither has it, whatever stands for it.
    fn find(&mut self, oid: &Oid) -> Result<Option<Object>> {
        let absent = self.packs().map(|packs| packs.lock().is_absent(oid));
        if absent.transpose()? == Some(true) {
            return Ok(None);
        }
        let packed = self.packs().and_then(|packs| packs.object(oid));
        if let Some(object) = packed {
            return Ok(Some(Object::clone(&object)));
        }
        self.ask(|objects| {
            let oid = PyBytes::new(objects.py(), oid.as_bytes());
            let object = objects.call_method1(intern!(objects.py(), "find"), (oid,))?;
            let object: Option<(PyBackedStr, PyBackedBytes)> = object.extract()?;
            let object = object.map(|(kind, content)| {
                let unknown = || PyValueError::new_err("not a kind of object");
                let kind = Kind::parse(&kind).ok_or_else(unknown)?;
                let content = content.to_vec();
                Ok(Object { kind, content })
            });
            object.transpose()
        })
    }

    /// Return true if the packs have an object, or else Python's `contains` says so.
    fn has(&mut self, oid: &Oid) -> Result<bool> {
        if self.packs().is_some_and(|packs| packs.has(oid)) {
            return Ok(true);
        }
        self.ask(|objects| objects.contains(PyBytes::new(objects.py(), oid.as_bytes())))
    }
}

impl PackedObjects for LentObjects {
    fn chain(&mut self, oid: &Oid) -> Option<Chain> {
        self.packs()?.chain(oid)
    }
}
