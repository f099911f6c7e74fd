//! Listing hashes, of trees that Python lends.

use std::sync::{Mutex, MutexGuard, PoisonError};

use huai_format::listing_hash::Known;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::refuse;
use crate::packs::parse_oid;
use crate::reader::Reader;
use crate::wait::wait;

/// The hashes of objects that are here.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct ListingHashes(Mutex<Known>);

#[pymethods]
impl ListingHashes {
    #[new]
    fn new(records: &[u8]) -> Self {
        Self(Mutex::new(Known::read(records)))
    }

    /// Of a tree; what is not known of it is read from `objects`.
    fn of_tree<'py>(
        &self,
        py: Python<'py>,
        tree: &[u8],
        objects: Py<PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let tree = parse_oid(tree)?;
        let reader = Reader::new(py, objects)?;
        let found = wait(py, |stop| {
            self.lock().of_tree(tree, &reader, &|| stop.is_set())
        })?;
        Ok(PyBytes::new(py, &found.map_err(refuse)?))
    }

    #[getter]
    fn sound(&self) -> usize {
        self.lock().sound()
    }

    #[getter]
    fn added<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.lock().added())
    }
}

impl ListingHashes {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
