//! Making and changing attr trees.

use std::sync::{Mutex, MutexGuard, PoisonError};

use huai_tree::attr_tree;
use pyo3::prelude::*;

use crate::errors::raise;
use crate::wait::wait;

/// Does what records say, below one directory.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Maker(Mutex<attr_tree::Maker>);

#[pymethods]
impl Maker {
    #[new]
    #[pyo3(signature = (root, building, *, privileged))]
    fn new(
        py: Python<'_>,
        root: &[u8],
        building: Option<&[u8]>,
        privileged: bool,
    ) -> PyResult<Self> {
        wait(py, |_| attr_tree::Maker::open(root, building, privileged))?
            .map(|maker| Self(Mutex::new(maker)))
            .map_err(|error| raise(py, &error))
    }

    fn apply(&self, py: Python<'_>, records: &[u8]) -> PyResult<()> {
        wait(py, |stop| self.lock().apply(records, stop))?.map_err(|error| raise(py, &error))
    }

    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, |_| self.lock().leave())?.map_err(|error| raise(py, &error))
    }

    #[getter]
    fn unowned(&self) -> u64 {
        self.lock().unowned()
    }
}

impl Maker {
    fn lock(&self) -> MutexGuard<'_, attr_tree::Maker> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
