//! Rows of a table as a sequence of Python's values, made when they are asked for.

use std::sync::Arc;

use huai_tree::candidates::{Kind, Number, Row, Stated, parents};
use huai_tree::hashing::hash::Digest;
use huai_tree::publish::{Directory, File, Leaf, Remove};
use huai_tree::stage::arrived::Key;
use huai_tree::stage::verify::{Asked, Wanted};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList, PySequence, PySlice};

use super::entry::Shown;
use super::operations::Entries;
use crate::snapshots::columns::all_bytes;

/// What is seen of each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// The entry that is wanted.
    Entry,
    /// Its path.
    Path,
    /// A removal.
    Remove,
}

/// Some rows of a table, in an order of their own.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Rows {
    shown: Shown,
    what: What,
    numbers: Arc<[Number]>,
    begin: usize,
    end: usize,
}

#[pymethods]
impl Rows {
    fn __len__(&self) -> usize {
        self.end - self.begin
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        place: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let length = self.__len__();
        if let Ok(slice) = place.cast::<PySlice>() {
            let found = slice.indices(isize::try_from(length)?)?;
            return Ok(
                Bound::new(py, self.slice(found.start, found.step, found.slicelength))?.into_any(),
            );
        }
        let place: isize = place.extract()?;
        let place = if place < 0 {
            place.checked_add_unsigned(length)
        } else {
            Some(place)
        };
        let place = place.and_then(|place| usize::try_from(place).ok());
        let row = place
            .filter(|place| *place < length)
            .and_then(|place| self.row(place));
        self.value(py, row.ok_or_else(|| PyIndexError::new_err("no such row"))?)
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let length = self.__len__();
        let last = isize::try_from(length)? - 1;
        Bound::new(py, self.slice(last, -1, length))?.try_iter()
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<PySequence>() else {
            return Ok(false);
        };
        if other.len()? != self.__len__() {
            return Ok(false);
        }
        for (row, value) in self.rows().zip(other.try_iter()?) {
            if !self.value(py, row)?.eq(value?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let values = self.rows().map(|row| self.value(py, row));
        let values = PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?;
        Ok(values.repr()?.to_string())
    }

    /// The path of each.
    fn paths<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        all_bytes(py, self.each_path())
    }

    /// The size of each, of files.
    fn sizes(&self) -> Vec<u64> {
        let sizes = self.rows().filter_map(|row| row.wanted);
        sizes.map(|wanted| wanted.size).collect()
    }

    /// Those at some places.
    fn pick(&self, places: Vec<usize>) -> PyResult<Self> {
        let numbers = self.numbers();
        let number = |place: usize| {
            let number = numbers.get(place).copied();
            number.ok_or_else(|| PyIndexError::new_err("no such row"))
        };
        let found: PyResult<Vec<Number>> = places.into_iter().map(number).collect();
        Ok(Self::new(&self.shown, self.what, &found?))
    }

    /// The directories that their names are in, each once.
    fn parents<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let found = parents(&self.shown.table, self.rows());
        all_bytes(py, found)
    }

    /// Those whose mode is a safer one than what the metadata state.
    fn reduced<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let is_reduced = |row: &&Row| {
            row.wanted
                .is_some_and(|wanted| wanted.mode.stated != wanted.mode.bits)
        };
        let found = self.rows().filter(is_reduced);
        found.map(|row| self.value(py, row)).collect()
    }
}

impl Rows {
    pub(crate) fn new(shown: &Shown, what: What, numbers: &[Number]) -> Self {
        Self {
            shown: shown.clone(),
            what,
            numbers: numbers.into(),
            begin: 0,
            end: numbers.len(),
        }
    }

    fn slice(&self, start: isize, step: isize, length: usize) -> Self {
        let first = usize::try_from(start).unwrap_or_default();
        let (numbers, begin) = if step == 1 {
            (Arc::clone(&self.numbers), self.begin + first)
        } else {
            let mut place = start;
            let mut numbers = Vec::with_capacity(length);
            for _ in 0..length {
                let number = usize::try_from(place).ok();
                let number = number.and_then(|place| self.numbers.get(self.begin + place));
                numbers.extend(number);
                place = place.saturating_add(step);
            }
            (numbers.into(), 0)
        };
        Self {
            shown: self.shown.clone(),
            what: self.what,
            numbers,
            begin,
            end: begin + length,
        }
    }

    fn numbers(&self) -> &[Number] {
        self.numbers.get(self.begin..self.end).unwrap_or_default()
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        let rows = self.shown.table.rows();
        self.numbers()
            .iter()
            .filter_map(|number| rows.get(*number as usize))
    }

    fn row(&self, place: usize) -> Option<&Row> {
        let number = self.numbers().get(place)?;
        self.shown.table.rows().get(*number as usize)
    }

    fn value<'py>(&self, py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyAny>> {
        let path = || PyBytes::new(py, self.shown.table.path(row));
        match self.what {
            What::Entry => self.shown.wanted(py, row),
            What::Path => Ok(path().into_any()),
            What::Remove => {
                let remove = self.shown.types.remove.bind(py);
                remove.call1((path(), self.is_directory(row)))
            }
        }
    }

    /// What tells each file from any other.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let files = self.rows().filter_map(|row| Some((row, row.wanted?)));
        let key = |(row, wanted): (&Row, Stated)| {
            let path = self.shown.table.path(row);
            Key::of(
                path,
                wanted.size,
                wanted.mtime,
                self.digest(&wanted).as_ref(),
            )
        };
        files.map(key).collect()
    }

    /// The files that are asked for; without `entries` nothing is known of their owners.
    pub(crate) fn asked(
        &self,
        py: Python<'_>,
        entries: Option<&mut Entries>,
    ) -> PyResult<Vec<Asked>> {
        let table = &self.shown.table;
        let numbers = entries.map(|entries| entries.numbers(py, table.owners()));
        let numbers = numbers.transpose()?;
        let asked = |row: &Row| {
            let wanted = row.wanted?;
            let attributes = numbers.as_ref();
            Some(Asked {
                wanted: Wanted {
                    path: table.path(row).to_vec(),
                    size: wanted.size,
                    mtime: wanted.mtime,
                    mode: wanted.mode.bits.into(),
                    digest: self.digest(&wanted),
                },
                attributes: attributes.map(|numbers| table.attributes(&wanted, numbers)),
            })
        };
        Ok(self.rows().filter_map(asked).collect())
    }

    /// Digest and size of each file with a digest, and its place, counted from `before`.
    pub(crate) fn contents(&self, before: usize) -> impl Iterator<Item = (Digest, u64, usize)> {
        let rows = (before..).zip(self.rows());
        rows.filter_map(|(place, row)| {
            let wanted = row.wanted?;
            Some((self.digest(&wanted)?, wanted.size, place))
        })
    }

    fn digest(&self, wanted: &Stated) -> Option<Digest> {
        self.shown.table.bytes(wanted.digest).try_into().ok()
    }

    fn is_directory(&self, row: &Row) -> bool {
        self.shown.table.here(row).kind() == Some(Kind::Directory)
    }

    pub(crate) fn each_path(&self) -> impl Iterator<Item = &[u8]> {
        self.rows().map(|row| self.shown.table.path(row))
    }

    /// What the engine removes.
    pub(crate) fn removals(&self) -> Vec<Remove> {
        let removal = |row: &Row| Remove {
            path: self.shown.table.path(row).to_vec(),
            directory: self.is_directory(row),
        };
        self.rows().map(removal).collect()
    }

    /// The files and symlinks whose attributes it sets.
    pub(crate) fn leaves(&self, py: Python<'_>, entries: &mut Entries) -> PyResult<Vec<Leaf>> {
        let table = &self.shown.table;
        let numbers = entries.numbers(py, table.owners())?;
        let leaf = |row: &Row| {
            let wanted = row.wanted?;
            let file = File {
                path: table.path(row).to_vec(),
                attributes: table.attributes(&wanted, &numbers),
            };
            Some(match wanted.kind {
                Kind::Symlink => Leaf::Symlink(file),
                Kind::File | Kind::Directory => Leaf::File(file),
            })
        };
        Ok(self.rows().filter_map(leaf).collect())
    }

    /// The same of directories.
    pub(crate) fn directories(
        &self,
        py: Python<'_>,
        entries: &mut Entries,
    ) -> PyResult<Vec<Directory>> {
        let table = &self.shown.table;
        let numbers = entries.numbers(py, table.owners())?;
        let directory = |row: &Row| Directory {
            path: table.path(row).to_vec(),
            attributes: row.wanted.map(|wanted| table.attributes(&wanted, &numbers)),
        };
        Ok(self.rows().map(directory).collect())
    }
}
