//! Making and changing attr trees.

use huai_tree::attr_tree;
use pyo3::prelude::*;

use crate::sys::errors::raise;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// A maker that carries out records below one directory.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Maker(Guarded<attr_tree::Maker>);

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
            .map(|maker| Self(Guarded::new(maker)))
            .map_err(|error| raise(py, &error))
    }

    fn apply(&self, py: Python<'_>, records: &[u8]) -> PyResult<()> {
        wait(py, |stop| self.0.lock().apply(records, stop))?.map_err(|error| raise(py, &error))
    }

    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, |_| self.0.lock().leave())?.map_err(|error| raise(py, &error))
    }

    #[getter]
    fn unowned(&self) -> u64 {
        self.0.lock().unowned()
    }
}
