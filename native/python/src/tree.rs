//! Working in one downstream tree.

use std::os::fd::RawFd;
use std::sync::MutexGuard;

use huai_tree::candidates::survey::Refused;
use huai_tree::candidates::unhashed::Hashing;
use huai_tree::publish::{self, Options, Row};
use huai_tree::sys::error::{Errno, Error};
use huai_tree::sys::stop::Stop;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList, PySequence, PyType};

use crate::candidates::operations::{Entries, Outcome, outcome};
use crate::candidates::rows::Rows;
use crate::candidates::table::{Candidates, Renames};
use crate::stage::copy::{Failure, Folders, Ways, opened, ways};
use crate::sys::errors::raise;
use crate::sys::guarded::Guarded;
use crate::sys::wait::{wait, wait_asking, wait_telling};

/// One tree, opened once.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Tree {
    /// None: closed.
    tree: Guarded<Option<publish::Tree>>,
    entries: Guarded<Entries>,
}

#[pymethods]
impl Tree {
    #[new]
    #[pyo3(signature = (root, *, loosens, umask, owners, kept))]
    fn new(
        py: Python<'_>,
        root: u32,
        loosens: Option<u32>,
        umask: u32,
        owners: Option<(Py<PyAny>, Py<PyAny>)>,
        kept: Py<PyType>,
    ) -> PyResult<Self> {
        let entries = Entries::new(owners, kept);
        let options = Options {
            loosens,
            umask,
            owners: entries.set_owners(),
        };
        py.detach(|| publish::Tree::new(root, options))
            .map(|tree| Self {
                tree: Guarded::new(Some(tree)),
                entries: Guarded::new(entries),
            })
            .map_err(|error| raise(py, &error))
    }

    fn open(&self, py: Python<'_>, path: &[u8]) -> PyResult<RawFd> {
        self.with(py, |tree| tree.open(path))
    }

    fn make_writable(&self, py: Python<'_>, path: &[u8]) -> PyResult<bool> {
        self.with(py, |tree| tree.make_writable(path))
    }

    fn stage_in(&self, py: Python<'_>, area: u32) -> PyResult<()> {
        self.with(py, |tree| tree.stage_in(area))
    }

    fn keep_below(&self, py: Python<'_>, top: Vec<u8>) -> PyResult<()> {
        self.with(py, |tree| {
            tree.keep_below(top);
            Ok(())
        })
    }

    fn restore_modes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let restored = wait(py, |stop| self.opened(|tree| Ok(tree.restore_modes(stop))))?;
        let failed = restored.map_err(|error| raise(py, &error))?;
        PyList::new(py, failed.iter().map(|path| PyBytes::new(py, path)))
    }

    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |tree| {
            tree.refresh();
            Ok(())
        })
    }

    /// Looks at all of `candidates` that nobody looked at yet, where they are before `renames`; the
    /// first that cannot be looked at, and why.
    fn survey<'py>(
        &self,
        py: Python<'py>,
        candidates: &Bound<'py, Candidates>,
        renames: &Bound<'py, Renames>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Option<i32>)>> {
        let renames = &renames.get().0;
        let refused = candidates.get().change(|table| {
            let numbers = self.entries()?.numbers(py, table.owners())?;
            wait(py, |stop| {
                self.opened(|tree| tree.survey(table, &numbers, renames, stop))
            })
        })?;
        let refused = refused.map_err(|error| raise(py, &error))?;
        let told = |Refused { path, errno }: Refused| {
            (PyBytes::new(py, &path), errno.map(Errno::raw_os_error))
        };
        Ok(refused.map(told))
    }

    /// Reads each file of `candidates` of which only the content can tell if it is the wanted one,
    /// where it is before `renames`; path and errno of what ended it.  `ask` is called now and then.
    fn hash<'py>(
        &self,
        py: Python<'py>,
        candidates: &Candidates,
        renames: &Renames,
        hashing: (PyBackedBytes, usize),
        ask: &Bound<'py, PyAny>,
    ) -> PyResult<Failure<'py>> {
        let (damaged, threads) = hashing;
        let hashing = Hashing {
            damaged: &damaged,
            threads,
        };
        let hashed = candidates.change(|table| {
            wait_asking(py, Some(ask.as_unbound()), |stop| {
                self.opened(|tree| tree.hash(table, &renames.0, hashing, stop))
            })
        })?;
        let failure = hashed.map_err(|error| raise(py, &error))?;
        let told =
            |Error { path, errno, .. }: Error| (PyBytes::new(py, &path), errno.raw_os_error());
        Ok(failure.map(told))
    }

    fn make_directories<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PySequence>,
    ) -> PyResult<Outcome<'py>> {
        self.row(py, items, Entries::made, publish::Tree::make_directories)
    }

    fn move_directories<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PySequence>,
    ) -> PyResult<Outcome<'py>> {
        self.row(py, items, Entries::moved, publish::Tree::move_directories)
    }

    fn prepare_files<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PySequence>,
    ) -> PyResult<Outcome<'py>> {
        self.row(py, items, Entries::staged, publish::Tree::prepare_files)
    }

    fn publish_files<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PySequence>,
    ) -> PyResult<Outcome<'py>> {
        self.row(py, items, Entries::prepared, publish::Tree::publish_files)
    }

    fn publish_directories<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PySequence>,
    ) -> PyResult<Outcome<'py>> {
        self.row(
            py,
            items,
            Entries::whole,
            publish::Tree::publish_directories,
        )
    }

    fn make_links<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PySequence>,
    ) -> PyResult<Outcome<'py>> {
        self.row(py, items, Entries::link, publish::Tree::make_links)
    }

    fn make_symlinks<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PySequence>,
    ) -> PyResult<Outcome<'py>> {
        self.row(py, items, Entries::symlink, publish::Tree::make_symlinks)
    }

    fn settle_leaves<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PySequence>,
    ) -> PyResult<Outcome<'py>> {
        let items = match items.cast::<Rows>() {
            Ok(rows) => rows.get().leaves(py, &mut *self.entries()?)?,
            Err(_) => self.converted(items, Entries::leaf)?,
        };
        self.done(py, &items, publish::Tree::settle_leaves)
    }

    fn remove_entries<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PySequence>,
    ) -> PyResult<Outcome<'py>> {
        let items = match items.cast::<Rows>() {
            Ok(rows) => rows.get().removals(),
            Err(_) => self.converted(items, Entries::removal)?,
        };
        self.done(py, &items, publish::Tree::remove_entries)
    }

    fn settle_directories<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PySequence>,
    ) -> PyResult<Outcome<'py>> {
        let items = match items.cast::<Rows>() {
            Ok(rows) => rows.get().directories(py, &mut *self.entries()?)?,
            Err(_) => self.converted(items, Entries::directory)?,
        };
        self.done(py, &items, publish::Tree::settle_directories)
    }

    fn stage_copies<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PySequence>,
        until: i64,
        area: Folders,
        hear: &Bound<'py, PyAny>,
    ) -> PyResult<Ways<'py>> {
        let items = self.converted(items, Entries::reuse)?;
        let staged = wait_telling(py, hear.as_unbound(), |done, stop| {
            self.opened(|tree| tree.stage_copies(&items, until, opened(area, done), stop))
        })?;
        ways(py, staged)
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, |_| self.opened(|tree| tree.sync()))?.map_err(|error| raise(py, &error))
    }

    fn sync_root(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, |_| self.opened(|tree| tree.sync_root()))?.map_err(|error| raise(py, &error))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.tree.lock().take());
    }
}

impl Tree {
    fn entries(&self) -> PyResult<MutexGuard<'_, Entries>> {
        self.entries.try_lock()
    }

    /// Does work with the open tree.
    fn opened<T>(
        &self,
        work: impl FnOnce(&mut publish::Tree) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match &mut *self.tree.lock() {
            Some(tree) => work(tree),
            None => Err(Error {
                doing: "use",
                path: Vec::new(),
                errno: Errno::BADF,
            }),
        }
    }

    /// For what takes microseconds.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut publish::Tree) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        py.detach(|| self.opened(work))
            .map_err(|error| raise(py, &error))
    }

    fn converted<'py, T>(
        &self,
        items: &Bound<'py, PySequence>,
        convert: impl Fn(&mut Entries, &Bound<'py, PyAny>) -> PyResult<T>,
    ) -> PyResult<Vec<T>> {
        let mut entries = self.entries()?;
        let items = items.try_iter()?;
        items.map(|item| convert(&mut entries, &item?)).collect()
    }

    fn row<'py, T: Sync>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PySequence>,
        convert: impl Fn(&mut Entries, &Bound<'py, PyAny>) -> PyResult<T>,
        work: impl FnOnce(&mut publish::Tree, &[T], &Stop) -> Row + Send,
    ) -> PyResult<Outcome<'py>> {
        let items = self.converted(items, convert)?;
        self.done(py, &items, work)
    }

    fn done<'py, T: Sync>(
        &self,
        py: Python<'py>,
        items: &[T],
        work: impl FnOnce(&mut publish::Tree, &[T], &Stop) -> Row + Send,
    ) -> PyResult<Outcome<'py>> {
        let row = wait(py, |stop| self.opened(|tree| Ok(work(tree, items, stop))))?;
        row.map(|row| outcome(py, row))
            .map_err(|error| raise(py, &error))
    }
}

/// Rename within an open directory, unless something has the new name.
#[pyfunction]
pub(crate) fn rename_noreplace(
    py: Python<'_>,
    folder: u32,
    old: &[u8],
    new: &[u8],
) -> PyResult<bool> {
    publish::rename_noreplace(folder, old, new).map_err(|error| raise(py, &error))
}
