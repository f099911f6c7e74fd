//! Directories about which nothing has to be decided, on their way through a commit.

use std::sync::MutexGuard;

use huai_format::escape::unescape;
use huai_format::path::RelPath;
use huai_tree::scan::directory::Directory;
use huai_tree::scan::run;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::frame::directory;
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;

/// Directories one after the other, with their digests as soon as these are known.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Run(Guarded<run::Run>);

impl Run {
    pub(crate) fn new(directories: Vec<Directory>) -> Self {
        Self(Guarded::new(run::Run::from(directories)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, run::Run> {
        self.0.lock()
    }
}

#[pymethods]
impl Run {
    /// Directories, files, symlinks, bytes, and what no snapshot holds.
    #[getter]
    fn totals(&self) -> [u64; 5] {
        let found = self.lock().totals();
        [
            found.directories,
            found.files,
            found.symlinks,
            found.bytes,
            found.skipped,
        ]
    }

    fn file<'py>(
        &self,
        py: Python<'py>,
        directory: usize,
        number: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let run = self.lock();
        let found = run.file(directory, number);
        let (path, name, identity) = found.ok_or_else(|| PyIndexError::new_err("no such file"))?;
        let name = unescape(name).map_err(refuse)?;
        let path = RelPath::trusted(path.to_vec()).join(&name);
        Ok((
            PyBytes::new(py, path.as_bytes()),
            PyBytes::new(py, identity),
        ))
    }

    fn directories<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<(Bound<'py, PyTuple>, Bound<'py, PyBytes>)>> {
        let run = self.lock();
        let pairs = run.directories.iter().zip(&run.columns);
        pairs
            .map(|(found, column)| Ok((directory(py, found)?, PyBytes::new(py, column))))
            .collect()
    }
}
