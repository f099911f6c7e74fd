//! Working in one downstream tree.

use std::os::fd::RawFd;
use std::sync::{Mutex, PoisonError};

use huai_tree::error::{Errno, Error};
use huai_tree::publish;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::errors::raise;

/// One tree, opened once; None: closed.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Tree(Mutex<Option<publish::Tree>>);

#[pymethods]
impl Tree {
    #[new]
    #[pyo3(signature = (root, *, loosens))]
    fn new(py: Python<'_>, root: RawFd, loosens: Option<u32>) -> PyResult<Self> {
        py.detach(|| publish::Tree::new(root, loosens))
            .map(|tree| Self(Mutex::new(Some(tree))))
            .map_err(|error| raise(py, &error))
    }

    fn open(&self, py: Python<'_>, path: &[u8]) -> PyResult<RawFd> {
        self.with(py, |tree| tree.open(path))
    }

    fn make_writable(&self, py: Python<'_>, path: &[u8]) -> PyResult<bool> {
        self.with(py, |tree| tree.make_writable(path))
    }

    fn settled(&self, py: Python<'_>, path: &[u8]) -> PyResult<()> {
        self.with(py, |tree| {
            tree.settled(path);
            Ok(())
        })
    }

    fn restore_modes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let failed = self.with(py, |tree| Ok(tree.restore_modes()))?;
        PyList::new(py, failed.iter().map(|path| PyBytes::new(py, path)))
    }

    #[pyo3(signature = (old, new = None))]
    fn forget(&self, py: Python<'_>, old: &[u8], new: Option<&[u8]>) -> PyResult<()> {
        self.with(py, |tree| {
            tree.forget(old, new);
            Ok(())
        })
    }

    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |tree| {
            tree.refresh();
            Ok(())
        })
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Tree {
    /// Waits for others detached: who works here may be waiting for Python.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut publish::Tree) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let outcome = py.detach(|| {
            let mut tree = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *tree {
                Some(tree) => work(tree),
                None => Err(Error {
                    doing: "use",
                    path: Vec::new(),
                    errno: Errno::BADF,
                }),
            }
        });
        outcome.map_err(|error| raise(py, &error))
    }
}
