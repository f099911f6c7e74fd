//! Rows of a table as a sequence of Python's values, made when they are asked for.

use std::sync::Arc;

use huai_tree::candidates::{
    Candidates, EntryKind, LocalState, LocalStatus, Number, Row, Span, parents,
};
use huai_tree::hashing::hash::Blake3Digest;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySlice, PyTuple};

use super::entry::{Shown, full, stated};
use super::table_rows::TableRows;
use crate::snapshots::columns::all_bytes;

/// Fields of a removal: path, and whether it is a directory.
const REMOVAL_FIELDS: usize = 2;

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
    pub(crate) chosen: TableRows,
}

#[pymethods]
impl Rows {
    fn __len__(&self) -> usize {
        self.chosen.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        place: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let length = self.chosen.len();
        if let Ok(slice) = place.cast::<PySlice>() {
            let found = slice.indices(isize::try_from(length)?)?;
            if found.step != 1 {
                return Err(PyValueError::new_err("rows are taken one after the other"));
            }
            let begin = usize::try_from(found.start)?;
            let rows = self.chosen.slice(begin..begin + found.slicelength);
            return Ok(Bound::new(py, self.with(rows))?.into_any());
        }
        let place: isize = place.extract()?;
        let place = if place < 0 {
            place.checked_add_unsigned(length)
        } else {
            Some(place)
        };
        let row = place.and_then(|place| self.chosen.row(usize::try_from(place).ok()?));
        self.value(py, row.ok_or_else(no_such_row)?)
    }

    /// The path of each.
    fn paths<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        all_bytes(py, self.chosen.paths())
    }

    /// The size of each, of files.
    fn sizes(&self) -> Vec<u64> {
        let sizes = self.chosen.iter().filter_map(|row| row.wanted);
        sizes.map(|wanted| wanted.size).collect()
    }

    /// The digest of each, of files; None: it is not known.
    fn digests<'py>(&self, py: Python<'py>) -> Vec<Option<Bound<'py, PyBytes>>> {
        let digests = self.chosen.digests();
        let digest = |digest: Option<Blake3Digest>| digest.map(|digest| PyBytes::new(py, &digest));
        digests.map(digest).collect()
    }

    /// Those at some places.
    fn pick(&self, places: Vec<usize>) -> PyResult<Self> {
        let numbers = self.chosen.numbers();
        let number = |place: usize| numbers.get(place).copied().ok_or_else(no_such_row);
        let found: PyResult<Vec<Number>> = places.into_iter().map(number).collect();
        Ok(self.with(TableRows::new(Arc::clone(&self.shown.table), found?)))
    }

    /// These and the `others` behind them; None: they are not of one table.
    fn joined(&self, others: Vec<PyRef<'_, Self>>) -> Option<Self> {
        let mut numbers = self.chosen.numbers().to_vec();
        for other in others {
            if !Arc::ptr_eq(&other.chosen.table, &self.chosen.table) {
                return None;
            }
            numbers.extend_from_slice(other.chosen.numbers());
        }
        Some(self.with(TableRows::new(Arc::clone(&self.shown.table), numbers)))
    }

    /// The directories that their names are in, each once.
    fn parents<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let found = parents(&self.shown.table, self.chosen.iter());
        all_bytes(py, found)
    }

    /// Those whose mode is a safer one than what the metadata state.
    fn reduced<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let is_reduced = |row: &&Row| {
            row.wanted
                .is_some_and(|wanted| wanted.mode.stated != wanted.mode.bits)
        };
        let found = self.chosen.iter().filter(is_reduced);
        found.map(|row| self.value(py, row)).collect()
    }
}

impl Rows {
    pub(crate) fn new(shown: &Shown, what: What, numbers: &[Number]) -> Self {
        Self {
            shown: shown.clone(),
            what,
            chosen: TableRows::new(Arc::clone(&shown.table), numbers),
        }
    }

    fn with(&self, chosen: TableRows) -> Self {
        Self {
            shown: self.shown.clone(),
            what: self.what,
            chosen,
        }
    }

    fn value<'py>(&self, py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyAny>> {
        let path = || PyBytes::new(py, self.shown.table.path(row));
        match self.what {
            What::Entry => self.shown.wanted(py, row),
            What::Path => Ok(path().into_any()),
            What::Remove => {
                let remove = self.shown.types.remove.bind(py);
                remove.call1((path(), self.chosen.is_directory(row)))
            }
        }
    }
}

fn no_such_row() -> PyErr {
    PyIndexError::new_err("no such row")
}

/// Rows; or entries, removals and paths, which get a table here.
impl<'py> FromPyObject<'_, 'py> for TableRows {
    type Error = PyErr;

    fn extract(items: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(rows) = items.cast::<Rows>() {
            return Ok(rows.get().chosen.clone());
        }
        let mut table = Candidates::default();
        for item in items.try_iter()? {
            put(&mut table, &item?)?;
        }
        let numbers: Vec<Number> = (0..).take(table.rows().len()).collect();
        Ok(Self::new(Arc::new(table), numbers))
    }
}

/// Adds an entry, a removal, or a path of which no more is known.
fn put(table: &mut Candidates, item: &Bound<'_, PyAny>) -> PyResult<()> {
    let mut path = item.clone();
    let (mut wanted, mut here) = (None, LocalState::Nothing);
    if let Ok(fields) = item.cast::<PyTuple>() {
        path = fields.get_item(0)?;
        if fields.len() > REMOVAL_FIELDS {
            wanted = Some(stated(table, fields, None)?);
        } else if fields.get_item(1)?.extract()? {
            here = LocalState::Something {
                seen: LocalStatus::of(Some(EntryKind::Directory)),
                target: Span::default(),
                named: true,
            };
        }
    }
    let path = table.add_text(path.cast::<PyBytes>()?.as_bytes());
    let path = path.map_err(|errno| full(item.py(), errno))?;
    table.push(path, wanted, &[], here);
    Ok(())
}
