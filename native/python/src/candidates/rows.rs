//! Rows of a table as a sequence of Python's values, built when they are accessed.

use std::sync::Arc;

use huai_plan::candidates::{
    Candidates, EntryKind, LocalState, LocalStatus, Number, Row, Span, parents,
};
use huai_tree::hashing::hash::Blake3Digest;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySlice, PyTuple};

use super::entry::{RowConverter, full, stated};
use super::table_rows::TableRows;
use crate::snapshots::columns::all_bytes;

/// Fields of a removal: path, true for a directory.
const REMOVAL_FIELDS: usize = 2;

/// The kind of value that each row becomes in Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// The entry that is wanted.
    Entry,
    /// Its path.
    Path,
    /// A removal.
    Remove,
}

/// Some rows of a table, in any order.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Rows {
    converter: RowConverter,
    kind: RowKind,
    pub(crate) chosen: TableRows,
}

#[pymethods]
impl Rows {
    fn __len__(&self) -> usize {
        self.chosen.len()
    }

    /// Return the value at a place, from the end if it is negative, or the rows of a slice, whose
    /// step must be 1.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        place: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let length = self.chosen.len();
        if let Ok(slice) = place.cast::<PySlice>() {
            let indices = slice.indices(isize::try_from(length)?)?;
            if indices.step != 1 {
                return Err(PyValueError::new_err(
                    "a slice of rows must have the step 1",
                ));
            }
            let begin = usize::try_from(indices.start)?;
            let rows = self.chosen.slice(begin..begin + indices.slicelength);
            return Ok(Bound::new(py, self.with(rows))?.into_any());
        }
        let row = from_start(place.extract()?, length).and_then(|place| self.chosen.row(place));
        self.value(py, row.ok_or_else(no_such_row)?)
    }

    fn paths<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        all_bytes(py, self.chosen.paths())
    }

    /// Return the size of each wanted entry, 0 unless it is a file; rows without one are left out.
    fn sizes(&self) -> Vec<u64> {
        let sizes = self.chosen.iter().filter_map(|row| row.wanted);
        sizes.map(|wanted| wanted.size).collect()
    }

    /// Return the digest of each wanted entry, `None` without one; rows without a wanted entry are left out.
    fn digests<'py>(&self, py: Python<'py>) -> Vec<Option<Bound<'py, PyBytes>>> {
        let digests = self.chosen.digests();
        let digest = |digest: Option<Blake3Digest>| digest.map(|digest| PyBytes::new(py, &digest));
        digests.map(digest).collect()
    }

    /// Return the rows at `places`, in that order; `IndexError` beyond the last.
    fn pick(&self, places: Vec<usize>) -> PyResult<Self> {
        let numbers = self.chosen.numbers();
        let number = |place: usize| numbers.get(place).copied().ok_or_else(no_such_row);
        let numbers: PyResult<Vec<Number>> = places.into_iter().map(number).collect();
        Ok(self.with(TableRows::new(Arc::clone(&self.converter.table), numbers?)))
    }

    /// Return these rows followed by `others`; `None` if one of them is of another table.
    fn joined(&self, others: Vec<PyRef<'_, Self>>) -> Option<Self> {
        let mut numbers = self.chosen.numbers().to_vec();
        for other in others {
            if !Arc::ptr_eq(&other.chosen.table, &self.chosen.table) {
                return None;
            }
            numbers.extend_from_slice(other.chosen.numbers());
        }
        Some(self.with(TableRows::new(Arc::clone(&self.converter.table), numbers)))
    }

    /// Return the parent directories of all paths, each once.
    fn parents<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let directories = parents(&self.converter.table, self.chosen.iter());
        all_bytes(py, directories)
    }

    /// Return, in their order, the values of the rows whose wanted mode was reduced.
    fn reduced<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let is_reduced = |row: &&Row| {
            row.wanted
                .is_some_and(|wanted| wanted.mode.stated != wanted.mode.bits)
        };
        let reduced_rows = self.chosen.iter().filter(is_reduced);
        reduced_rows.map(|row| self.value(py, row)).collect()
    }
}

impl Rows {
    pub(crate) fn new(converter: &RowConverter, kind: RowKind, numbers: &[Number]) -> Self {
        Self {
            converter: converter.clone(),
            kind,
            chosen: TableRows::new(Arc::clone(&converter.table), numbers),
        }
    }

    fn with(&self, chosen: TableRows) -> Self {
        Self {
            converter: self.converter.clone(),
            kind: self.kind,
            chosen,
        }
    }

    /// Convert a row to the kind of value of this sequence.
    fn value<'py>(&self, py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyAny>> {
        let path = || PyBytes::new(py, self.converter.table.path(row));
        match self.kind {
            RowKind::Entry => self.converter.wanted_entry(py, row),
            RowKind::Path => Ok(path().into_any()),
            RowKind::Remove => {
                let remove = self.converter.types.remove.bind(py);
                remove.call1((path(), self.chosen.is_directory(row)))
            }
        }
    }
}

/// Return the place that Python means, which counts from the end if it is negative; `None` before the first.
pub(super) fn from_start(place: isize, length: usize) -> Option<usize> {
    let from_end = || length.checked_sub(place.unsigned_abs());
    usize::try_from(place).ok().or_else(from_end)
}

fn no_such_row() -> PyErr {
    PyIndexError::new_err("no such row")
}

/// Rows; or a new table with a row for each of an iterable's entries, removals and paths.
impl<'py> FromPyObject<'_, 'py> for TableRows {
    type Error = PyErr;

    fn extract(items: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(rows) = items.cast::<Rows>() {
            return Ok(rows.get().chosen.clone());
        }
        let mut table = Candidates::default();
        for item in items.try_iter()? {
            push_item(&mut table, &item?)?;
        }
        let numbers: Vec<Number> = (0..).take(table.rows().len()).collect();
        Ok(Self::new(Arc::new(table), numbers))
    }
}

/// Add a row for the tuple of an entry or a removal, or for the bytes of a path alone.
fn push_item(table: &mut Candidates, item: &Bound<'_, PyAny>) -> PyResult<()> {
    let mut path = item.clone();
    let (mut wanted, mut state) = (None, LocalState::Nothing);
    if let Ok(fields) = item.cast::<PyTuple>() {
        path = fields.get_item(0)?;
        if fields.len() > REMOVAL_FIELDS {
            wanted = Some(stated(table, fields, None)?);
        } else if fields.get_item(1)?.extract()? {
            state = LocalState::Something {
                seen: LocalStatus {
                    kind: Some(EntryKind::Directory),
                    links: 1,
                    ..LocalStatus::default()
                },
                target: Span::default(),
                named: true,
            };
        }
    }
    let path = table.add_text(path.cast::<PyBytes>()?.as_bytes());
    let path = path.map_err(full)?;
    table.push(path, wanted, &[], state);
    Ok(())
}
