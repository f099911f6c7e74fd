//! Directories of a scan as Python's tuples.

use huai_tree::scan::directory::{Directory, Frame, Problem, Reason};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

/// Convert the description of a directory.
pub(crate) fn tuple(py: Python<'_>, frame: Frame) -> PyResult<Bound<'_, PyTuple>> {
    match frame {
        Frame::Read(found) => directory(py, found),
        Frame::Unreadable { path, reason } => {
            (PyBytes::new(py, &path), number(reason)).into_pyobject(py)
        }
        // A scan without shards yields none.
        Frame::Shard { path, .. } => {
            (PyBytes::new(py, &path), number(Reason::NoResult)).into_pyobject(py)
        }
    }
}

fn directory(py: Python<'_>, mut found: Directory) -> PyResult<Bound<'_, PyTuple>> {
    // Each is freed right after the copy: there may be a million lines.
    let leaves = bytes(py, &std::mem::take(&mut found.leaves))?;
    let identities = bytes(py, &std::mem::take(&mut found.identities))?;
    let problem = |problem: &Problem| (PyBytes::new(py, &problem.name), number(problem.reason));
    (
        bytes(py, &found.path)?,
        bytes(py, &found.attributes)?,
        leaves,
        identities,
        found.hardlinks,
        found.skipped,
        PyList::new(py, found.problems.iter().map(problem))?,
        found.unreadable,
        found.device,
        found.inode,
        found.file_system,
    )
        .into_pyobject(py)
}

/// Copy bytes; lack of memory is an exception here, and a panic in `PyBytes::new`.
fn bytes<'py>(py: Python<'py>, from: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, from.len(), |to| {
        to.copy_from_slice(from);
        Ok(())
    })
}

/// Return the errno of a reason, or the negative number that `_native.pyi` lists for it.
pub(crate) fn number(reason: Reason) -> i32 {
    match reason {
        Reason::Errno(errno) => errno.raw_os_error(),
        Reason::KeepsChanging => -1,
        Reason::OutOfRange => -2,
        Reason::Time => -3,
        Reason::Reserved => -4,
        Reason::Temporary => -5,
        Reason::Changed => -6,
        Reason::Damaged => -7,
        Reason::NotEntered => -8,
        Reason::MountedOver => -9,
        Reason::NotMounted => -10,
        Reason::NoResult => -11,
        Reason::OtherView => -12,
    }
}
