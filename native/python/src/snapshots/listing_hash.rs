//! Listing hashes, of trees that Python lends.

use huai_format::proof::listing_hash;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::packs::lent::Reader;
use crate::packs::read::parse_oid;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// The hashes of objects that are here.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct ListingHashes(Guarded<listing_hash::ListingHashes>);

#[pymethods]
impl ListingHashes {
    #[new]
    fn new(records: &[u8]) -> Self {
        Self(Guarded::new(listing_hash::ListingHashes::read(records)))
    }

    /// Return the listing hash of a tree; unknown parts are read from `objects`, and recorded.
    fn of_tree<'py>(
        &self,
        py: Python<'py>,
        tree: &[u8],
        objects: Py<PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let tree = parse_oid(tree)?;
        let reader = Reader::new(py, objects)?;
        let hash = wait(py, |stop| {
            self.0.lock().of_tree(tree, &reader, &|| stop.is_set())
        })?;
        Ok(PyBytes::new(py, &hash))
    }

    /// The number of bytes at the start of the records that are whole records.
    #[getter]
    fn sound(&self) -> usize {
        self.0.lock().sound()
    }

    /// The records of the objects hashed since.
    #[getter]
    fn added<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.lock().added())
    }
}
