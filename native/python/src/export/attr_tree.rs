//! Making and changing attr trees.

use huai_git::error::{Error, Result};
use huai_tree::attr_tree::{self, NewAttributes, NewEntry, NewKind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::sys::errors::raise;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// The mtime in nanoseconds, the mode, and the numbers of user and group.
type AttributeNumbers = (i64, u32, Option<(u32, u32)>);

/// A maker of entries below one directory.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Maker(Guarded<attr_tree::Maker>);

#[pymethods]
impl Maker {
    /// Open `root`, and the folder `building` on its file system, without which nothing is replaced or removed.
    /// `privileged` means that permissions do not matter.
    #[new]
    #[pyo3(signature = (root, building, *, privileged))]
    fn new(
        py: Python<'_>,
        root: &[u8],
        building: Option<&[u8]>,
        privileged: bool,
    ) -> PyResult<Self> {
        wait(py, |_| attr_tree::Maker::open(root, building, privileged))
            .map(|maker| Self(Guarded::new(maker)))
    }

    fn make_file(
        &self,
        py: Python<'_>,
        path: &[u8],
        attributes: AttributeNumbers,
        size: u64,
    ) -> PyResult<()> {
        self.make(py, path, attributes, NewKind::File(size))
    }

    fn make_symlink(
        &self,
        py: Python<'_>,
        path: &[u8],
        attributes: AttributeNumbers,
        target: &[u8],
    ) -> PyResult<()> {
        self.make(py, path, attributes, NewKind::Symlink(target))
    }

    fn make_link(&self, py: Python<'_>, path: &[u8], leader: &[u8]) -> PyResult<()> {
        self.make(py, path, (0, 0, None), NewKind::Link(leader))
    }

    fn make_directory(
        &self,
        py: Python<'_>,
        path: &[u8],
        attributes: AttributeNumbers,
    ) -> PyResult<()> {
        self.make(py, path, attributes, NewKind::Directory)
    }

    /// Make the leaves of the directory `path`; without `owners` these are the process's own.
    fn make_leaves(
        &self,
        py: Python<'_>,
        path: &[u8],
        lines: &[u8],
        owners: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        wait(py, |stop| {
            let mut maker = self.0.lock();
            let Some(owners) = &owners else {
                return maker.make_leaves(path, lines, None, stop);
            };
            let mut numbers = |user: &[u8], group: &[u8]| look_up(owners, user, group);
            maker.make_leaves(path, lines, Some(&mut numbers), stop)
        })
    }

    fn set_attributes(
        &self,
        py: Python<'_>,
        path: &[u8],
        attributes: AttributeNumbers,
    ) -> PyResult<()> {
        let attributes = attributes_of(attributes);
        self.change(py, |maker| maker.set_attributes(path, &attributes))
    }

    /// Rename a directory; what cannot be replaced at `new` moves to `building`.
    fn rename_directory(&self, py: Python<'_>, old: &[u8], new: &[u8]) -> PyResult<()> {
        self.change(py, |maker| maker.rename_directory(old, new))
    }

    /// Delete a leaf, or move a directory to the folder `building`.
    fn remove(&self, py: Python<'_>, path: &[u8]) -> PyResult<()> {
        self.change(py, |maker| maker.remove(path))
    }

    /// Restore mode and mtime of the last directory that was changed.
    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, attr_tree::Maker::leave)
    }

    /// The number of times that setting an owner was not permitted.
    #[getter]
    fn unowned(&self) -> u64 {
        self.0.lock().unowned()
    }
}

impl Maker {
    /// Make one entry; a directory without content, and a file as a hole.
    fn make(
        &self,
        py: Python<'_>,
        path: &[u8],
        attributes: AttributeNumbers,
        kind: NewKind<'_>,
    ) -> PyResult<()> {
        let attributes = attributes_of(attributes);
        self.change(py, |maker| maker.make(path, &NewEntry { kind, attributes }))
    }

    /// Make one change, which is short; its error is an `OSError`.
    fn change(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut attr_tree::Maker) -> huai_sys::error::Result<()> + Send,
    ) -> PyResult<()> {
        py.detach(|| work(&mut self.0.lock()))
            .map_err(|error| raise(py, &error))
    }
}

fn attributes_of((mtime, mode, owners): AttributeNumbers) -> NewAttributes {
    NewAttributes::new(mtime, mode, owners)
}

/// Call a Python function for the numbers of a user and a group; its exception is passed on.
pub(super) fn look_up(function: &Py<PyAny>, user: &[u8], group: &[u8]) -> Result<(u32, u32)> {
    Python::attach(|py| {
        let names = (PyBytes::new(py, user), PyBytes::new(py, group));
        function.call1(py, names)?.extract(py)
    })
    .map_err(|raised: PyErr| Error::Lent(Box::new(raised)))
}
