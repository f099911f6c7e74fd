//! Verifying what arrived.

use std::collections::HashMap;

use huai_tree::stage::verify::{self, Arrival, Asked, Run};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::candidates::operations::{Entries, wanted};
use crate::candidates::rows::Rows;
use crate::sys::errors::raise;
use crate::sys::wait::{wait, wait_asking};

/// Whether any file is there, and no symlink and no file where directories are expected.
#[pyfunction]
pub(crate) fn may_compare(py: Python<'_>, root: &[u8], files: &Bound<'_, PyAny>) -> PyResult<bool> {
    let may_compare = if let Ok(rows) = files.cast::<Rows>() {
        let rows = rows.get();
        wait(py, |stop| verify::may_compare(root, rows.each_path(), stop))
    } else {
        let files: Vec<Vec<u8>> = files.extract()?;
        let paths = || files.iter().map(Vec::as_slice);
        wait(py, |stop| verify::may_compare(root, paths(), stop))
    };
    may_compare?.map_err(|error| raise(py, &error))
}

/// Write the file system of an open directory to disk.
#[pyfunction]
pub(crate) fn write_back(py: Python<'_>, folder: u32) -> PyResult<()> {
    wait(py, |_| verify::write_back(folder))?.map_err(|error| raise(py, &error))
}

/// Whether each file arrived, as the metadata say.
#[pyfunction]
#[pyo3(signature = (folder, files, run, threads, check))]
pub(crate) fn verify_arrived<'py>(
    py: Python<'py>,
    folder: &[u8],
    files: &Bound<'py, PyAny>,
    run: (HashMap<Vec<u8>, u64>, bool, Option<Finish>),
    threads: usize,
    check: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (placed, cut, finish) = run;
    let files = all_asked(files, finish)?;
    let run = Run { cut, placed };
    let work = |stop: &_| verify::verify(folder, &files, &run, threads, stop);
    let arrivals = wait_asking(py, Some(check.as_unbound()), work)?;
    let arrivals = arrivals.map_err(|error| raise(py, &error))?;
    let verdicts: Vec<u8> = arrivals.into_iter().map(number).collect();
    Ok(PyBytes::new(py, &verdicts))
}

/// Callables for the numbers of users and of groups, or None where owners are not set; and the
/// class of modes that what is there already keeps.
pub(crate) type Finish = (Option<(Py<PyAny>, Py<PyAny>)>, Py<PyType>);

/// Of many; without `finish` nothing is known of their owners.
pub(crate) fn all_asked(files: &Bound<'_, PyAny>, finish: Option<Finish>) -> PyResult<Vec<Asked>> {
    let mut entries = finish.map(|(owners, kept)| Entries::new(owners, kept));
    if let Ok(rows) = files.cast::<Rows>() {
        return rows.get().asked(files.py(), entries.as_mut());
    }
    let asked = |file: PyResult<Bound<'_, PyAny>>| asked(&file?, entries.as_mut());
    files.try_iter()?.map(asked).collect()
}

/// A `huai_schema.entries.File`.
fn asked(file: &Bound<'_, PyAny>, entries: Option<&mut Entries>) -> PyResult<Asked> {
    let attributes = entries.map(|entries| entries.attributes_of_file(file));
    Ok(Asked {
        wanted: wanted(file)?,
        attributes: attributes.transpose()?,
    })
}

/// The verdict as `_native.pyi` lists them.
fn number(arrival: Arrival) -> u8 {
    match arrival {
        Arrival::Arrived => 0,
        Arrival::Missing => 1,
        Arrival::Mismatch => 2,
        Arrival::Finished => 3,
    }
}
