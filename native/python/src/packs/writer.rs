//! Writing packs.

use std::sync::MutexGuard;

use huai_format::snapshots::ObjectWriter;
use huai_git::object::Kind;
use huai_tree::packs::writer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::sys::errors::{raise, refuse};
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// Collects objects that a folder of packs does not have yet.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct PackWriter(Guarded<writer::PackWriter>);

impl PackWriter {
    pub(crate) fn lock(&self) -> MutexGuard<'_, writer::PackWriter> {
        self.0.lock()
    }
}

#[pymethods]
impl PackWriter {
    #[new]
    #[pyo3(signature = (folder, name, *, threads))]
    fn new(py: Python<'_>, folder: &[u8], name: &[u8], threads: usize) -> PyResult<Self> {
        wait(py, |_| writer::PackWriter::open(folder, name, threads))?
            .map(|writer| Self(Guarded::new(writer)))
            .map_err(refuse)
    }

    fn __len__(&self) -> usize {
        self.lock().len()
    }

    fn write<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        data: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let kind = Kind::parse(kind).ok_or_else(|| PyValueError::new_err("no kind of object"))?;
        let oid = wait(py, |_| self.lock().write(kind, data))?.map_err(refuse)?;
        Ok(PyBytes::new(py, oid.as_bytes()))
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let name = wait(py, |_| self.lock().finish())?.map_err(refuse)?;
        Ok(name.map(|name| PyBytes::new(py, &name)))
    }

    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.lock().abort().map_err(|error| raise(py, &error))
    }
}
