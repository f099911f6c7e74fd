//! Reading the files of a bundle.

use huai_tree::bundle;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::packs::lent::{LentSnapshot, Reader};
use crate::sys::errors::raise;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// Reads small files of a commit for one response.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct BundleReader(Guarded<bundle::BundleReader<Reader>>);

#[pymethods]
impl BundleReader {
    #[new]
    fn new(
        py: Python<'_>,
        lent: LentSnapshot,
        root: &[u8],
        paths: Vec<u8>,
        most: usize,
    ) -> PyResult<Self> {
        let reader = bundle::BundleReader::new(lent.lookup(), root, paths, most);
        Ok(Self(Guarded::new(
            reader.map_err(|error| raise(py, &error))?,
        )))
    }

    /// Return the next bytes, at least `enough` unless they are the last; empty at the end.
    fn read<'py>(&self, py: Python<'py>, enough: usize) -> PyResult<Bound<'py, PyBytes>> {
        let reader = &mut *self.0.try_lock()?;
        let part = wait(py, |stop| reader.read(enough, stop))?;
        Ok(PyBytes::new(py, &part))
    }
}
