//! What has to be done about candidates, for Python.

use huai_tree::candidates::{Operations, Planned};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::entry::Shown;
use super::rows::{Rows, What};

/// What has to be done; a sequence of what a stage is asked for: path, and whether it is a symlink.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Plan {
    shown: Shown,
    planned: Planned,
}

/// Fetches, hardlinks, symlinks, attributes.
type Stage = (Rows, Rows, Rows, Rows);

impl Plan {
    /// For the candidates that are shown.
    pub(crate) fn new(py: Python<'_>, shown: Shown) -> Self {
        let planned = py.detach(|| Planned::of(&shown.table));
        Self { shown, planned }
    }

    /// What a stage is asked for, as the engine takes it.
    pub(crate) fn asked(&self) -> impl Iterator<Item = (&[u8], bool)> {
        (0..self.planned.len())
            .filter_map(|place| self.planned.staged_path(&self.shown.table, place))
    }
}

#[pymethods]
impl Plan {
    fn __len__(&self) -> usize {
        self.planned.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        place: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, bool)> {
        let found = self.planned.staged_path(&self.shown.table, place);
        let (path, symlink) = found.ok_or_else(|| PyIndexError::new_err("no such leaf"))?;
        Ok((PyBytes::new(py, path), symlink))
    }

    /// What makes way, deepest first.
    #[getter]
    fn clear(&self) -> Rows {
        Rows::new(&self.shown, What::Remove, &self.planned.clear)
    }

    /// Directories to make, parents first.
    #[getter]
    fn make(&self) -> Rows {
        Rows::new(&self.shown, What::Path, &self.planned.make)
    }

    /// All else that goes, deepest first.
    #[getter]
    fn removals(&self) -> Rows {
        Rows::new(&self.shown, What::Remove, &self.planned.removals)
    }

    /// Final attributes, deepest first.
    #[getter]
    fn directories(&self) -> Rows {
        Rows::new(&self.shown, What::Entry, &self.planned.directories)
    }

    /// The leaves of each of `count` stages; `stages` are those of this sequence.
    fn in_stages(&self, count: usize, stages: &[u8]) -> Vec<Stage> {
        let found = self.planned.in_stages(&self.shown.table, count, stages);
        let rows = |numbers: &[_]| Rows::new(&self.shown, What::Entry, numbers);
        let stage = |each: Operations| {
            (
                rows(&each.fetches),
                rows(&each.links),
                rows(&each.symlinks),
                rows(&each.attributes),
            )
        };
        found.into_iter().map(stage).collect()
    }
}
