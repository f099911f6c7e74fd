//! Listing hashes, of trees that Python lends.

use huai_format::proof::listing_hash;
use huai_git::oid::OID_BYTES;
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
    #[pyo3(signature = (records, stated = b"".as_slice()))]
    fn new(records: &[u8], stated: &[u8]) -> Self {
        let hashes = listing_hash::ListingHashes::read(records).with_stated(stated);
        Self(Guarded::new(hashes))
    }

    /// Return the records of those of `trees`, ids one after the other, that are recorded.
    fn records<'py>(&self, py: Python<'py>, trees: &[u8]) -> Bound<'py, PyBytes> {
        let hashes = self.0.lock();
        let oids = trees.chunks(OID_BYTES).flat_map(parse_oid);
        let records: Vec<_> = oids.filter_map(|oid| hashes.record(&oid)).collect();
        PyBytes::new(py, &records.concat())
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
