//! A plan of operations on candidates, for Python.

use huai_plan::candidates::{Operations, Planned};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::entry::RowConverter;
use super::rows::{RowKind, Rows};

/// Planned operations; a sequence of the paths in the tree that need a stage of publishing, with
/// true for a symlink.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Plan {
    converter: RowConverter,
    planned: Planned,
}

/// The rows of one stage: fetches, hardlinks, symlinks, attribute changes.
type Stage = (Rows, Rows, Rows, Rows);

impl Plan {
    /// Plan the operations on all candidates.
    pub(crate) fn new(py: Python<'_>, converter: RowConverter) -> Self {
        let planned = py.detach(|| Planned::of(&converter.table));
        Self { converter, planned }
    }

    /// Return, in the order of this sequence, the paths that need a stage of publishing, with true for a symlink.
    pub(crate) fn paths_for_stages(&self) -> impl Iterator<Item = (&[u8], bool)> {
        (0..self.planned.len())
            .filter_map(|place| self.planned.path_for_stage(&self.converter.table, place))
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
        let leaf = self.planned.path_for_stage(&self.converter.table, place);
        let (path, symlink) = leaf.ok_or_else(|| PyIndexError::new_err("no such path"))?;
        Ok((PyBytes::new(py, path), symlink))
    }

    /// The removals that make way for an entry of another type, deepest first.
    #[getter]
    fn clear(&self) -> Rows {
        Rows::new(&self.converter, RowKind::Remove, &self.planned.clear)
    }

    /// The paths of new directories, parents first.
    #[getter]
    fn make(&self) -> Rows {
        Rows::new(&self.converter, RowKind::Path, &self.planned.make)
    }

    /// All other removals, deepest first.
    #[getter]
    fn removals(&self) -> Rows {
        Rows::new(&self.converter, RowKind::Remove, &self.planned.removals)
    }

    /// The directories that get their final attributes, deepest first.
    #[getter]
    fn directories(&self) -> Rows {
        Rows::new(&self.converter, RowKind::Entry, &self.planned.directories)
    }

    /// Return the operations of each of `count` stages: fetches, hardlinks, symlinks, changes of attributes; `stages`
    /// has a byte for each path.
    fn in_stages(&self, count: usize, stages: &[u8]) -> Vec<Stage> {
        let operations = self.planned.in_stages(&self.converter.table, count, stages);
        let rows = |numbers: &[_]| Rows::new(&self.converter, RowKind::Entry, numbers);
        let stage = |each: Operations| {
            (
                rows(&each.fetches),
                rows(&each.links),
                rows(&each.symlinks),
                rows(&each.attributes),
            )
        };
        operations.into_iter().map(stage).collect()
    }
}
