//! What stands at the paths of a list, on its way into a commit.

use std::collections::HashSet;

use huai_format::amend::{self, Amended};
use huai_format::escape::escape;
use huai_format::path::RelPath;
use huai_format::totals::Totals;
use huai_tree::scan::touched;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::change_list::ChangeList;
use super::frame::{directory, number};
use super::hardlinks::HardlinkGroups;
use super::layout::Writer;
use super::run::Run;
use crate::packs::lent::snapshot;
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// Paths that are named of those at which nothing is and was.
const SHOWN: usize = 20;

/// Files, directories, symlinks, bytes.
type Counts = (u64, u64, u64, u64);
/// How many paths, and the first of them.
type Unknown<'py> = (usize, Vec<Bound<'py, PyBytes>>);
/// A path, and why it is named.
type Named<'py> = (Bound<'py, PyBytes>, i32);

/// What was found.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Looked {
    looked: Guarded<touched::Looked>,
    /// The directories, with their digests as soon as these are known.
    #[pyo3(get)]
    run: Py<Run>,
}

#[pymethods]
impl Looked {
    /// The directories about which there is something to say.
    fn remarkable<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let run = self.run.get().lock();
        let remarkable = run.directories.iter().filter(|each| !each.is_plain);
        remarkable.map(|each| directory(py, each)).collect()
    }

    /// Directories that cannot be read.
    fn unreadable<'py>(&self, py: Python<'py>) -> Vec<Named<'py>> {
        let looked = self.looked.lock();
        let named = looked.unreadable.iter();
        let named = named.map(|(path, reason)| (PyBytes::new(py, path), number(*reason)));
        named.collect()
    }

    /// The directories on another device than the root.
    fn foreign<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let run = self.run.get().lock();
        let Some(root) = run.directories.first().map(|root| root.device) else {
            return Vec::new();
        };
        let others = run.directories.iter().filter(|each| each.device != root);
        others.map(|each| PyBytes::new(py, &each.path)).collect()
    }

    /// The old entry of a name stays.
    fn keep(&self, directory: usize, name: Vec<u8>) -> PyResult<()> {
        let mut looked = self.looked.lock();
        let others = looked.others.get_mut(directory).ok_or_else(no_such)?;
        others.unsure.insert(name);
        Ok(())
    }

    fn resolve(&self, py: Python<'_>, groups: &Bound<'_, HardlinkGroups>) -> PyResult<()> {
        let groups = groups.get();
        wait(py, |_| {
            let looked = self.looked.lock();
            let unsure = |number: usize| {
                let names = looked.others.get(number).map(|others| &others.unsure);
                let names = names.into_iter().flatten();
                names.map(|name| escape(name).into_owned()).collect()
            };
            groups
                .lock()
                .resolve_all(&mut self.run.get().lock(), unsure);
        })
    }

    /// The tree with all of this; what is counted now, what is not any more, and at how many paths
    /// of the list nothing is and was, with the first of them.
    fn amend<'py>(
        &self,
        py: Python<'py>,
        past: (Py<PyAny>, Vec<u8>, u64),
        changes: &Bound<'_, ChangeList>,
        writer: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyBytes>, Counts, Counts, Unknown<'py>)> {
        let (reader, tree, limit) = past;
        let snapshot = snapshot(reader, &tree)?;
        let writer = Writer::new(py, writer);
        let list = changes.get();
        let (amended, unknown) = wait(py, |stop| {
            let amendments = self.looked.lock().amendments(&self.run.get().lock());
            let mut until = writer.until(stop);
            let amended = amend::amend(&snapshot, limit, &amendments, &mut until)?;
            let unknown = self.unknown(&amended, list);
            Ok((amended, unknown))
        })?
        .map_err(refuse)?;
        let shown = unknown.iter().take(SHOWN);
        let shown = shown.map(|path| PyBytes::new(py, path)).collect();
        Ok((
            PyBytes::new(py, amended.tree.as_bytes()),
            counts(amended.added, amended.added_directories),
            counts(amended.removed, amended.removed_directories),
            (unknown.len(), shown),
        ))
    }
}

impl Looked {
    pub(crate) fn new(py: Python<'_>, mut looked: touched::Looked) -> PyResult<Self> {
        let run = Run::new(std::mem::take(&mut looked.directories));
        Ok(Self {
            looked: Guarded::new(looked),
            run: Py::new(py, run)?,
        })
    }

    /// The paths of the list at which nothing is and was.
    fn unknown(&self, amended: &Amended, list: &ChangeList) -> Vec<Vec<u8>> {
        let run = self.run.get().lock();
        let seen: HashSet<&[u8]> = run.directories.iter().map(|each| &*each.path).collect();
        let touched = list.touched();
        let named = touched.iter().filter(|each| !each.perhaps);
        let is_unknown = |path: &RelPath| {
            let bytes = path.as_bytes();
            if amended.unknown.contains(bytes) {
                return true;
            }
            // What is to be below something else than a directory, where no directory was.
            let above = path.ancestors().next();
            above.is_some_and(|above| !seen.contains(above))
                && !path.ancestors().any(|above| amended.ended.contains(above))
        };
        let unknown = named.filter(|each| is_unknown(&each.path));
        unknown.map(|each| each.path.as_bytes().to_vec()).collect()
    }
}

fn counts(totals: Totals, directories: u64) -> Counts {
    (totals.files, directories, totals.symlinks, totals.bytes)
}

fn no_such() -> PyErr {
    PyIndexError::new_err("no such directory")
}
