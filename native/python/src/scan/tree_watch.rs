//! Watching a tree for changes.

use std::os::fd::AsRawFd;

use huai_export::change_list::Touched;
use huai_format::path::RelPath;
use huai_tree::watch::tree_watch::{self, WatchOptions};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::calls::parse_patterns;
use super::change_list::ChangeList;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// A tree that is watched; its handle is readable when something happened.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct TreeWatch(Guarded<tree_watch::TreeWatch>);

#[pymethods]
impl TreeWatch {
    #[new]
    #[pyo3(signature = (root, patterns, *, one_file_system, most, is_noted=false))]
    fn new(
        py: Python<'_>,
        root: &[u8],
        patterns: Vec<Vec<u8>>,
        one_file_system: bool,
        most: usize,
        is_noted: bool,
    ) -> PyResult<Self> {
        let options = WatchOptions {
            patterns: parse_patterns(patterns),
            one_file_system,
            is_noted,
            most,
        };
        let opened = wait(py, |stop| tree_watch::TreeWatch::open(root, options, stop))?;
        Ok(Self(Guarded::new(opened)))
    }

    fn fileno(&self) -> i32 {
        self.0.lock().queue().as_raw_fd()
    }

    /// Process all present events; returns their number, true if some were lost, and true if the
    /// root was moved.
    fn read(&self, py: Python<'_>) -> PyResult<(u64, bool, bool)> {
        let changes = wait(py, |stop| self.0.lock().read(stop))?;
        Ok((changes.events, changes.lost, changes.gone))
    }

    /// Let the next `take` return a path; returns false if it is left out.
    #[pyo3(signature = (path, *, is_directory, all_below))]
    fn note(&self, path: &[u8], is_directory: bool, all_below: bool) -> bool {
        self.0.lock().note(path, is_directory, all_below)
    }

    /// Return the paths changed since the last call, and their number; `None` if the tree has to be
    /// scanned.
    #[pyo3(name = "take")]
    fn take_changes(&self) -> Option<(ChangeList, usize)> {
        let touched = self.0.lock().take_paths()?;
        let count = touched.len();
        Some((ChangeList::of(touched), count))
    }

    /// Let the next `take` return these paths again; `None` stands for the whole tree.
    #[pyo3(signature = (changes))]
    fn give_back(&self, changes: Option<&Bound<'_, ChangeList>>) {
        let touched = changes.map(|changes| changes.get().touched());
        self.0
            .lock()
            .give_back(touched.as_ref().map(|each| &***each));
    }

    /// Let the next `take` return these paths too, with everything below them.
    fn add(&self, paths: Vec<Vec<u8>>) {
        let touched = |path| Touched {
            path: RelPath::trusted(path),
            all_below: true,
            perhaps: true,
        };
        let touched: Vec<_> = paths.into_iter().map(touched).collect();
        self.0.lock().give_back(Some(&touched));
    }

    #[getter]
    fn directories(&self) -> usize {
        self.0.lock().directories()
    }

    /// The number of unwatched directories, with path and errno of the first; `None` without one.
    #[getter]
    fn unwatched<'py>(&self, py: Python<'py>) -> Option<(usize, Bound<'py, PyBytes>, i32)> {
        let watch = self.0.lock();
        let first = watch.first_unwatched()?;
        let path = PyBytes::new(py, &first.path);
        Some((watch.unwatched(), path, first.errno.raw_os_error()))
    }
}
