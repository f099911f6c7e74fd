//! The objects that are missing of what a filter includes.

use huai_git::error::Result;
use huai_git::object::Object;
use huai_git::oid::Oid;
use huai_git::resolve::LocalObjects;
use huai_plan::missing;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::filter::Filter;
use crate::packs::read::{Packs, parse_oid, parse_oids};
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// A search for missing objects.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct MissingObjects {
    search: Guarded<missing::MissingObjects>,
    packs: Py<Packs>,
}

#[pymethods]
impl MissingObjects {
    #[new]
    fn new(
        packs: Py<Packs>,
        tree: &[u8],
        bases: Vec<PyBackedBytes>,
        filter: PyRef<'_, Filter>,
        most: u64,
    ) -> PyResult<Self> {
        let (tree, bases) = (parse_oid(tree)?, parse_oids(&bases)?);
        let search = missing::MissingObjects::new(tree, bases, filter.selector(), most);
        let search = Guarded::new(search);
        Ok(Self { search, packs })
    }

    /// Return the ids of the missing objects that are known so far.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let packs = self.packs.get();
        let missing = wait(py, |_| self.search.lock().next(&mut Fetched(packs)))?;
        let oids = missing.iter();
        Ok(oids.map(|oid| PyBytes::new(py, oid.as_bytes())).collect())
    }

    /// The trees of the excluded directories.
    #[getter]
    fn absent<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let search = self.search.lock();
        let absent = search.absent.iter();
        absent.map(|oid| PyBytes::new(py, oid.as_bytes())).collect()
    }
}

/// The objects that packs have, without what stands for others.
struct Fetched<'a>(&'a Packs);

impl LocalObjects for Fetched<'_> {
    fn find(&mut self, oid: &Oid) -> Result<Option<Object>> {
        let object = self.0.lock().fetched(oid)?;
        Ok(object.map(|object| Object::clone(&object)))
    }

    fn has(&mut self, oid: &Oid) -> Result<bool> {
        Ok(self.0.lock().locate(oid)?.is_some())
    }
}
