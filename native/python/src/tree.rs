//! Working in one downstream tree.

use std::collections::HashMap;
use std::os::fd::RawFd;

use huai_plan::candidates as table;
use huai_sys::error::{Errno, Error};
use huai_sys::stop::Stop;
use huai_tree::publish::{
    self, DirectoryMove, FailureReason, OperationFailure, RowResult, Staged, StagedDirectory,
    TreeOptions, WholeDirectory,
};
use huai_tree::stage::copy::Reuse;
use huai_tree::survey::unhashed::Hashing;
use huai_tree::survey::{Numbers, Refused};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};

use crate::candidates::owners::Owners;
use crate::candidates::table::{Candidates, Renames};
use crate::candidates::table_rows::TableRows;
use crate::stage::arrived::Places;
use crate::stage::copy::{Failure, Folders, Ways, area_of, failure, ways};
use crate::sys::errors::raise;
use crate::sys::guarded::Guarded;
use crate::sys::wait::{wait, wait_checking, wait_reporting};

/// The number of operations done; path, reason, errno or 0, and another path, of the one that failed.
type Outcome<'py> = (
    usize,
    Option<(
        Bound<'py, PyBytes>,
        &'static str,
        i32,
        Option<Bound<'py, PyBytes>>,
    )>,
);

/// A source: path, time, how many names it may have, true if size and time are enough; a key.
type Source = (Vec<u8>, i64, u64, bool, Option<Vec<u8>>);

/// A prepared directory: a handle, its path below that, and its new path; it and the directories
/// below, each with its number of staged names, and true to set its time; files from elsewhere;
/// hardlinks and symlinks to make.
type WholeFields = (
    u32,
    Vec<u8>,
    Vec<u8>,
    (TableRows, Vec<(usize, bool)>),
    Vec<(u32, Vec<u8>, Vec<u8>)>,
    TableRows,
    TableRows,
);

/// One tree, opened once; a call of it waits for the one before.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Tree {
    /// None if it is closed.
    tree: Guarded<Option<publish::Tree>>,
    /// None if owners are not set.
    owners: Guarded<Option<Owners>>,
}

#[pymethods]
impl Tree {
    /// Open the tree below the open directory `root`; `owners` look up numbers of users and groups, `None` to set
    /// none.
    #[new]
    #[pyo3(signature = (root, *, loosens, umask, owners))]
    fn new(
        py: Python<'_>,
        root: u32,
        loosens: Option<u32>,
        umask: u32,
        owners: Option<(Py<PyAny>, Py<PyAny>)>,
    ) -> PyResult<Self> {
        let options = TreeOptions {
            loosens,
            umask,
            owners: owners.is_some(),
        };
        py.detach(|| publish::Tree::new(root, options))
            .map(|tree| Self {
                tree: Guarded::new(Some(tree)),
                owners: Guarded::new(owners.map(Owners::new)),
            })
            .map_err(|error| raise(py, &error))
    }

    /// Return a handle of the directory at `path`, which the tree closes after the next few calls.
    fn open(&self, py: Python<'_>, path: &[u8]) -> PyResult<RawFd> {
        self.with(py, |tree| tree.open(path))
    }

    /// Give a directory u+rwx until `restore_modes`; false if that is not allowed or needed.
    fn make_writable(&self, py: Python<'_>, path: &[u8]) -> PyResult<bool> {
        self.with(py, |tree| tree.make_writable(path))
    }

    /// Create temporary names in the open directory `area`.
    fn stage_in(&self, py: Python<'_>, area: u32) -> PyResult<()> {
        self.with(py, |tree| tree.stage_in(area))
    }

    /// Keep leaves that are removed or replaced from now on, at the same path below `top`.
    fn keep_below(&self, py: Python<'_>, top: Vec<u8>) -> PyResult<()> {
        self.with(py, |tree| {
            tree.keep_below(top);
            Ok(())
        })
    }

    /// Restore the modes of directories that were made writable; returns the paths where this
    /// failed.
    fn restore_modes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let failed = wait(py, |stop| self.opened(|tree| Ok(tree.restore_modes(stop))))?;
        PyList::new(py, failed.iter().map(|path| PyBytes::new(py, path)))
    }

    /// Close the cached handles of directories.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |tree| {
            tree.refresh();
            Ok(())
        })
    }

    /// Read the local entries of candidates that have none yet; returns the path of the first
    /// failure with its errno, `None` if it is going to be moved.
    fn survey<'py>(
        &self,
        py: Python<'py>,
        candidates: &Bound<'py, Candidates>,
        renames: &Bound<'py, Renames>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Option<i32>)>> {
        let renames = &renames.get().0;
        let refused = candidates.get().change(|table| {
            let numbers = self.numbers_of(py, table, table.rows().iter())?;
            wait(py, |stop| {
                self.opened(|tree| tree.survey(table, &numbers, renames, stop))
            })
        })?;
        let problem = |Refused { path, errno }: Refused| {
            (PyBytes::new(py, &path), errno.map(Errno::raw_os_error))
        };
        Ok(refused.map(problem))
    }

    /// Hash each file that only a digest can compare, an unreadable one to `damaged`; returns path and errno of the
    /// failure that ended the call, if any.
    fn hash<'py>(
        &self,
        py: Python<'py>,
        candidates: &Candidates,
        renames: &Renames,
        hashing: (PyBackedBytes, usize),
        check: &Bound<'py, PyAny>,
    ) -> PyResult<Failure<'py>> {
        let (damaged, threads) = hashing;
        let hashing = Hashing {
            damaged: &damaged,
            threads,
        };
        let problem = candidates.change(|table| {
            wait_checking(py, Some(check.as_unbound()), |stop| {
                self.opened(|tree| tree.hash(table, &renames.0, hashing, stop))
            })
        })?;
        Ok(failure(py, problem))
    }

    /// Carry out one kind of step for `items`, in order until the first failure; returns the number done, and that
    /// failure.  A `ValueError` if the word is unknown.
    #[pyo3(signature = (step, items, places = None))]
    fn carry_out<'py>(
        &self,
        py: Python<'py>,
        step: &str,
        items: TableRows,
        places: Option<Places<'py>>,
    ) -> PyResult<Outcome<'py>> {
        use publish::Tree as Steps;

        let numbers = self.numbers(py, &items)?;
        let staged = places.map(|places| places.of(&items)).transpose()?;
        let staged = staged.into_iter().flatten();
        match step {
            "make" => self.row(py, &items.directories(&numbers), Steps::make_directories),
            "prepare" => {
                let items: Vec<_> = staged.zip(items.files(&numbers)).collect();
                self.row(py, &items, Steps::prepare_files)
            }
            "publish" => {
                let paths = items.paths().map(<[u8]>::to_vec);
                let items: Vec<_> = staged.zip(paths).collect();
                self.row(py, &items, Steps::publish_files)
            }
            "attributes" => self.row(py, &items.leaves(&numbers), Steps::settle_leaves),
            "link" => self.row(py, &items.links(&numbers), Steps::make_links),
            "symlink" => self.row(py, &items.symlinks(&numbers), Steps::make_symlinks),
            "remove" => self.row(py, &items.removals(), Steps::remove_entries),
            "directory" => self.row(py, &items.directories(&numbers), Steps::settle_directories),
            _ => Err(PyValueError::new_err(step.to_owned())),
        }
    }

    /// Rename directories, each of which a symlink of `forwards` at its old path may replace.  Returns as `carry_out`.
    fn move_directories<'py>(
        &self,
        py: Python<'py>,
        moves: Vec<(Vec<u8>, Vec<u8>)>,
        forwards: TableRows,
    ) -> PyResult<Outcome<'py>> {
        let forwards = forwards.symlinks(&self.numbers(py, &forwards)?);
        let forwards = forwards.into_iter().map(|link| (link.path.clone(), link));
        let mut forwards: HashMap<_, _> = forwards.collect();
        let operation = |(old, new)| DirectoryMove {
            forward: forwards.remove(&old),
            old,
            new,
        };
        let items: Vec<DirectoryMove> = moves.into_iter().map(operation).collect();
        self.row(py, &items, publish::Tree::move_directories)
    }

    /// Rename prepared directories to their paths, which must be free, with everything below them.
    fn publish_directories<'py>(
        &self,
        py: Python<'py>,
        items: Vec<WholeFields>,
    ) -> PyResult<Outcome<'py>> {
        let items = items.into_iter().map(|item| self.whole_directory(py, item));
        let items = items.collect::<PyResult<Vec<_>>>()?;
        self.row(py, &items, publish::Tree::publish_directories)
    }

    /// Stage files whose content other files of the tree have; returns a byte for each, and the
    /// failure that ended the row, if any.
    fn stage_copies<'py>(
        &self,
        py: Python<'py>,
        files: (TableRows, Vec<Source>),
        until: i64,
        area: Folders,
        hear: &Bound<'py, PyAny>,
    ) -> PyResult<Ways<'py>> {
        let (files, sources) = files;
        let numbers = self.numbers(py, &files)?;
        let files = files
            .metadata()
            .zip(files.attributes(&numbers))
            .zip(sources);
        let reuse = |((wanted, attributes), (source, mtime, names, sure, key))| Reuse {
            wanted,
            attributes,
            source,
            mtime,
            names,
            sure,
            key,
        };
        let items: Vec<Reuse> = files.map(reuse).collect();
        let staged = wait_reporting(py, hear.as_unbound(), |done, stop| {
            self.opened(|tree| tree.stage_copies(&items, until, area_of(area, done), stop))
        })?;
        Ok(ways(py, staged))
    }

    /// Write all changes of the file system to disk.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, |_| self.opened(|tree| tree.sync()))
    }

    /// Write staged files to disk.
    fn sync_staged(&self, py: Python<'_>, items: TableRows, places: Places<'_>) -> PyResult<bool> {
        let staged = places.of(&items)?;
        wait(py, |_| self.opened(|tree| tree.sync_staged(&staged)))
    }

    /// Write files and directories with their attributes to disk.
    fn sync_paths(&self, py: Python<'_>, paths: Vec<Vec<u8>>) -> PyResult<bool> {
        wait(py, |_| self.opened(|tree| tree.sync_paths(&paths)))
    }

    /// Write the names in the root and its attributes to disk.
    fn sync_root(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, |_| self.opened(|tree| tree.sync_root()))
    }

    /// Close all handles; other calls fail with `BADF` then.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.tree.lock().take());
    }
}

impl Tree {
    /// Look up the numbers of the owners that `rows` name; none if owners are not set.
    fn numbers(&self, py: Python<'_>, rows: &TableRows) -> PyResult<Numbers> {
        self.numbers_of(py, &rows.table, rows.iter())
    }

    /// Look up the numbers of owners by position in `table`; an exception while another call does.
    fn numbers_of<'a>(
        &self,
        py: Python<'_>,
        table: &table::Candidates,
        rows: impl Iterator<Item = &'a table::Row>,
    ) -> PyResult<Numbers> {
        match &mut *self.owners.try_lock()? {
            Some(owners) => owners.numbers(py, table, rows),
            None => Ok(vec![(None, None); table.owners().len()]),
        }
    }

    /// Convert a prepared directory, and look up the numbers of its owners.
    fn whole_directory(&self, py: Python<'_>, fields: WholeFields) -> PyResult<WholeDirectory> {
        let (folder, name, path, (directories, held), others, links, symlinks) = fields;
        let directories = directories.directories(&self.numbers(py, &directories)?);
        let directories = directories.into_iter().zip(held);
        let other = |(folder, name, path)| (Staged { folder, name }, path);
        Ok(WholeDirectory {
            staged: Staged { folder, name },
            path,
            directories: directories
                .map(|(directory, (names, settled))| StagedDirectory {
                    directory,
                    names,
                    settled,
                })
                .collect(),
            others: others.into_iter().map(other).collect(),
            links: links.links(&self.numbers(py, &links)?),
            symlinks: symlinks.symlinks(&self.numbers(py, &symlinks)?),
        })
    }

    /// Call `work` with the open tree; `BADF` after `close`.
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

    /// Call `work` with the open tree, detached from Python: for what takes microseconds.  Its
    /// error is an `OSError`, `EBADF` after `close`.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut publish::Tree) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        py.detach(|| self.opened(work))
            .map_err(|error| raise(py, &error))
    }

    /// Carry out a row of operations as a long call; returns how many were done, and the failure of
    /// the next.
    fn row<'py, T: Sync>(
        &self,
        py: Python<'py>,
        items: &[T],
        work: impl FnOnce(&mut publish::Tree, &[T], &Stop) -> RowResult + Send,
    ) -> PyResult<Outcome<'py>> {
        let row = wait(py, |stop| self.opened(|tree| Ok(work(tree, items, stop))))?;
        Ok(outcome(py, row))
    }
}

/// Rename within an open directory; an `OSError` (`EEXIST`) if something has the new name.  Returns
/// false, and does nothing, if kernel or file system do not support such a rename.
#[pyfunction]
pub(crate) fn rename_noreplace(
    py: Python<'_>,
    folder: u32,
    old: &[u8],
    new: &[u8],
) -> PyResult<bool> {
    publish::rename_noreplace(folder, old, new).map_err(|error| raise(py, &error))
}

/// Convert the result of a row to the number of operations done, and the fields of a failure.
fn outcome(py: Python<'_>, row: RowResult) -> Outcome<'_> {
    let failure = row.failure.map(|OperationFailure { path, reason }| {
        let (word, errno, other) = reason_fields(&reason);
        let other = other.map(|path| PyBytes::new(py, path));
        (PyBytes::new(py, &path), word, errno, other)
    });
    (row.done, failure)
}

/// Return the word of a reason, as `_native.pyi` lists them, its errno or 0, and the other path that it names, if
/// any.
fn reason_fields(reason: &FailureReason) -> (&'static str, i32, Option<&[u8]>) {
    match reason {
        FailureReason::Errno(errno) => ("errno", errno.raw_os_error(), None),
        FailureReason::Reserved => ("reserved", 0, None),
        FailureReason::NotEmpty => ("not empty", 0, None),
        FailureReason::NotRegular => ("not a file", 0, None),
        FailureReason::NotSymlink => ("not a symlink", 0, None),
        FailureReason::NoDirectory => ("no directory", 0, None),
        FailureReason::Occupied => ("occupied", 0, None),
        FailureReason::NoLeader => ("no leader", 0, None),
        FailureReason::LeaderMissing(leader) => ("leader missing", 0, Some(leader)),
        FailureReason::LeaderDiffers(leader) => ("leader differs", 0, Some(leader)),
        FailureReason::NotWhole => ("not whole", 0, None),
        FailureReason::NotKept(errno) => ("not kept", errno.raw_os_error(), None),
    }
}
