//! A table of the paths that may have to change in a tree, for Python.

use std::collections::HashSet;
use std::sync::Arc;

use huai_format::diff::Comparison;
use huai_format::path::parent;
use huai_git::error::Result;
use huai_plan::candidates::{self, Attribute, Changes, EntryKind, LocalState, Row, Stated};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyTuple, PyType};

use super::entry::{PathFields, RowConverter, Types, full, push, push_path};
use super::plan::Plan;
use super::rows::from_start;
use crate::packs::lent::LentSnapshot;
use crate::snapshots::columns::all_bytes;
use crate::snapshots::filter::{Filter, ModeTable, modes_of};
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// From old to new path of a moved directory.
type Moved<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);
/// A candidate, the digest of what is there, true if that is the wanted content.
type Source<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyBytes>>, bool);

/// A table of candidates, which each change copies if rows of it are in use elsewhere.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Candidates {
    table: Guarded<Arc<candidates::Candidates>>,
    types: Arc<Types>,
}

#[pymethods]
impl Candidates {
    /// Make an empty table, whose rows become values of these classes; `names` look up the names of local owners.
    #[new]
    #[pyo3(signature = (candidate, entries, remove, modes, names))]
    fn new(
        candidate: Py<PyType>,
        entries: (Py<PyType>, Py<PyType>, Py<PyType>),
        remove: Py<PyType>,
        modes: (Py<PyType>, Py<PyType>),
        names: Option<(Py<PyAny>, Py<PyAny>)>,
    ) -> Self {
        let (file, directory, symlink) = entries;
        let (reduced, kept) = modes;
        let types = Types {
            candidate,
            file,
            directory,
            symlink,
            remove,
            reduced,
            kept,
            names,
        };
        Self {
            table: Guarded::default(),
            types: Arc::new(types),
        }
    }

    /// Add rows whose local entries are unknown.
    fn add(&self, places: Vec<PathFields<'_>>) -> PyResult<()> {
        let mut places = places.into_iter();
        self.change(|table| places.try_for_each(|each| push_path(table, each, LocalState::Unknown)))
    }

    /// Add the selected differences of two snapshots, and return old and new path of each moved directory; `None`,
    /// with the table as before, if the filter treats one differently at its new path.
    fn compare<'py>(
        &self,
        py: Python<'py>,
        old: LentSnapshot,
        new: LentSnapshot,
        selection: (Py<Filter>, ModeTable),
    ) -> PyResult<Option<Vec<Moved<'py>>>> {
        let mut comparison = Comparison::new((old.snapshot, old.limit), (new.snapshot, new.limit));
        let (filter, modes) = selection;
        let (selector, modes) = (filter.get().selector(), modes_of(modes));
        self.change(|table| {
            let before = table.rows().len();
            let mut changes = Changes::new(table, selector, modes);
            wait(py, |stop| {
                loop {
                    let ended = comparison.advance(&mut changes)?;
                    if ended || changes.is_over() || stop.is_set() {
                        return Result::Ok(());
                    }
                    changes.allow_more();
                }
            })?;
            if let Some(error) = changes.full {
                return Err(full(error));
            }
            let path = |path: &Vec<u8>| PyBytes::new(py, path);
            let moved = changes
                .moves
                .iter()
                .map(|(old, new)| (path(old), path(new)));
            let moved = moved.collect();
            if changes.moves_differ {
                table.truncate(before);
                return Ok(None);
            }
            Ok(Some(moved))
        })
    }

    /// Merge the rows of each path, in path order: the last wanted, the first local entry, all past ones.
    fn merge(&self) -> PyResult<()> {
        self.change(|table| {
            table.merge();
            Ok(())
        })
    }

    /// Return true if there is a row for `path`, and its wanted entry, if any.  Valid after `merge`.
    #[pyo3(name = "wanted")]
    fn wanted_entry<'py>(
        &self,
        py: Python<'py>,
        path: &[u8],
    ) -> PyResult<(bool, Option<Bound<'py, PyAny>>)> {
        let converter = self.converter()?;
        let Some(row) = converter.table.find(path) else {
            return Ok((false, None));
        };
        let entry = row.wanted.map(|_| converter.wanted_entry(py, row));
        Ok((true, entry.transpose()?))
    }

    /// Return true if there is a row below the directory `path`; valid after `merge`.
    fn has_below(&self, path: &[u8]) -> PyResult<bool> {
        Ok(self.shared_table()?.has_below(path))
    }

    /// Record that nothing is at these paths; those without a row are ignored.  Valid after `merge`.
    fn vacate(&self, paths: &Bound<'_, PyAny>) -> PyResult<()> {
        let paths: Vec<Vec<u8>> = paths.extract()?;
        self.change(|table| {
            table.vacate(&paths);
            Ok(())
        })
    }

    fn parents<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let table = self.shared_table()?;
        let directories = candidates::parents(&table, table.rows().iter());
        Ok(all_bytes(py, directories))
    }

    /// Add candidates whose local entries are known.
    fn extend(&self, candidates: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut candidates = candidates.try_iter()?;
        self.change(|table| candidates.try_for_each(|each| push(table, each?.cast::<PyTuple>()?)))
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.shared_table()?.rows().len())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, place: isize) -> PyResult<Bound<'py, PyAny>> {
        let converter = self.converter()?;
        let rows = converter.table.rows();
        let row = from_start(place, rows.len()).and_then(|place| rows.get(place));
        converter.candidate(
            py,
            row.ok_or_else(|| PyIndexError::new_err("no such candidate"))?,
        )
    }

    /// Return the number of files that only a digest can compare.
    fn unhashed(&self) -> PyResult<usize> {
        Ok(self.shared_table()?.unhashed().count())
    }

    /// Set the digest of the local content of a row; ignored if `place` is beyond the last.
    fn set_digest(&self, place: usize, digest: &[u8]) -> PyResult<()> {
        self.change(|table| {
            let digest = table.add_text(digest).map_err(full)?;
            if let Some(row) = table.rows_mut().get_mut(place) {
                row.digest = digest;
            }
            Ok(())
        })
    }

    /// Return those of `paths` that have a row, in any order.
    #[pyo3(name = "having")]
    fn filter_paths<'py>(
        &self,
        py: Python<'py>,
        paths: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let table = self.shared_table()?;
        let paths: HashSet<Vec<u8>> = paths.extract()?;
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let table_paths = table.rows().iter().map(|row| table.path(row));
        let common: HashSet<_> = table_paths.filter(|path| paths.contains(*path)).collect();
        Ok(all_bytes(py, common))
    }

    /// Return the former directories, each once and without the root, that seem to be missing.
    fn expected_directories<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let table = self.shared_table()?;
        let directories = table.rows().iter().filter_map(|row| expected(&table, row));
        let directories: HashSet<_> = directories.filter(|path| !path.is_empty()).collect();
        Ok(all_bytes(py, directories))
    }

    /// Return the leaders of all wanted hardlinks, each once, in any order.
    fn leaders<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let table = self.shared_table()?;
        let entries = table.rows().iter().filter_map(|row| row.wanted);
        let linked = entries.filter(Stated::is_linked);
        let leaders: HashSet<_> = linked.map(|wanted| table.bytes(wanted.other)).collect();
        Ok(all_bytes(py, leaders))
    }

    /// Return the paths whose wanted entry is a hardlink.
    fn linked<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let table = self.shared_table()?;
        let linked = |row: &&Row| row.wanted.as_ref().is_some_and(Stated::is_linked);
        Ok(all_bytes(
            py,
            table
                .rows()
                .iter()
                .filter(linked)
                .map(|row| table.path(row)),
        ))
    }

    /// Return the paths whose local file has several names and gets another inode.
    fn replaced<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let table = self.shared_table()?;
        let shared = table
            .rows()
            .iter()
            .filter(|row| links(&table, row) > 1 && table.replaces(row));
        Ok(all_bytes(py, shared.map(|row| table.path(row))))
    }

    /// Return the candidates whose local file has several names.
    fn shared<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let is_shared = |table: &candidates::Candidates, row: &Row| {
            links(table, row) > 1 && table.local(row).kind() == Some(EntryKind::File)
        };
        self.chosen(py, is_shared)
    }

    /// Mark the hardlinks of the rows at `paths` as differing, so that these get separate inodes.
    fn part(&self, paths: &Bound<'_, PyAny>) -> PyResult<()> {
        let paths: HashSet<Vec<u8>> = paths.extract()?;
        self.change(|table| {
            for position in positions(table, |row| paths.contains(table.path(row))) {
                if let Some(row) = table.rows_mut().get_mut(position) {
                    row.differing.add_if(Attribute::Link, true);
                }
            }
            Ok(())
        })
    }

    /// Return the candidates whose wanted entry is a symlink.
    fn symlinks<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let is_symlink = |_: &candidates::Candidates, row: &Row| {
            row.wanted
                .is_some_and(|wanted| wanted.kind == EntryKind::Symlink)
        };
        self.chosen(py, is_symlink)
    }

    /// Return, in row order, the candidates with a local file of one of `sizes`, each with its known digest, if any,
    /// and true if it has the wanted content.
    fn files<'py>(&self, py: Python<'py>, sizes: &Bound<'py, PyAny>) -> PyResult<Vec<Source<'py>>> {
        let sizes: HashSet<u64> = sizes.extract()?;
        let converter = self.converter()?;
        let table = &converter.table;
        let is_source = |row: &&Row| {
            table.local(row).kind() == Some(EntryKind::File)
                && table
                    .local(row)
                    .status()
                    .is_some_and(|seen| sizes.contains(&seen.size))
        };
        let sources = table.rows().iter().filter(is_source).map(|row| {
            let digest = table
                .known_digest(row)
                .map(|digest| PyBytes::new(py, digest));
            Ok((
                converter.candidate(py, row)?,
                digest,
                table.has_content(row),
            ))
        });
        sources.collect()
    }

    /// Count the rows without a local entry, and those without a wanted one.
    fn unequal(&self) -> PyResult<(usize, usize)> {
        let table = self.shared_table()?;
        let missing = table
            .rows()
            .iter()
            .filter(|row| matches!(table.local(row), LocalState::Nothing));
        let extra = table.rows().iter().filter(|row| row.wanted.is_none());
        Ok((missing.count(), extra.count()))
    }

    fn plan(&self, py: Python<'_>) -> PyResult<Plan> {
        Ok(Plan::new(py, self.converter()?))
    }
}

impl Candidates {
    /// Call `work` with the table, or with a copy that replaces it if it is shared; every other
    /// call is refused meanwhile.
    pub(crate) fn change<T>(
        &self,
        work: impl FnOnce(&mut candidates::Candidates) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut table = self.table.try_lock()?;
        work(Arc::make_mut(&mut table))
    }

    /// Return the present table; an exception while another call uses it.
    fn shared_table(&self) -> PyResult<Arc<candidates::Candidates>> {
        Ok(Arc::clone(&*self.table.try_lock()?))
    }

    /// Return a converter of the present rows; an exception while another call uses the table.
    fn converter(&self) -> PyResult<RowConverter> {
        Ok(RowConverter {
            table: self.shared_table()?,
            types: Arc::clone(&self.types),
        })
    }

    /// Convert the rows for which `is_chosen` is true to candidates.
    fn chosen<'py>(
        &self,
        py: Python<'py>,
        is_chosen: impl Fn(&candidates::Candidates, &Row) -> bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let converter = self.converter()?;
        let rows = converter.table.rows().iter();
        let rows = rows.filter(|row| is_chosen(&converter.table, row));
        rows.map(|row| converter.candidate(py, row)).collect()
    }
}

/// Return the positions of the rows for which `is_meant` is true.
fn positions(table: &candidates::Candidates, is_meant: impl Fn(&Row) -> bool) -> Vec<usize> {
    let rows = table.rows().iter().enumerate();
    let meant = rows.filter(|(_, row)| is_meant(row));
    meant.map(|(position, _)| position).collect()
}

/// Return the number of names of a row's local file; 1 if it is unknown or missing.
fn links(table: &candidates::Candidates, row: &Row) -> u32 {
    table.local(row).status().map_or(1, |seen| seen.links)
}

/// Return the directory that a row with past entries shows to be missing, or perhaps missing: its
/// own path, or its parent; `None` without one.
fn expected<'a>(table: &'a candidates::Candidates, row: &'a Row) -> Option<&'a [u8]> {
    let wanted_entry = row.wanted?;
    let past = table.past(row);
    if past.is_empty() {
        return None;
    }
    let path = table.path(row);
    let local_kind = table.local(row).kind();
    let is_directory = |kind| kind == EntryKind::Directory;
    if local_kind.is_some_and(is_directory) {
        return None;
    }
    if is_directory(wanted_entry.kind) && past.iter().any(|each| is_directory(each.kind)) {
        return Some(path);
    }
    local_kind.is_none().then(|| parent(path))
}

/// The paths before directories are moved, by those after.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Renames(pub(crate) candidates::Renames);

#[pymethods]
impl Renames {
    #[new]
    fn new(moves: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        Self(candidates::Renames::new(moves))
    }

    /// Return the present path of the entry that will be at `path`; `None` if it will be free.
    fn before<'py>(&self, py: Python<'py>, path: &[u8]) -> Option<Bound<'py, PyBytes>> {
        self.0.before(path).map(|path| PyBytes::new(py, &path))
    }

    /// Return true if `path` will be in a moved directory, which itself does not count.
    fn arrives(&self, path: &[u8]) -> bool {
        self.0.arrives(path)
    }
}
