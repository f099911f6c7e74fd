//! Verifying what arrived.

use std::collections::HashMap;

use huai_tree::stage::verify::{self, Arrival, Run, VerifyRequest};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::candidates::owners::Owners;
use crate::candidates::table_rows::TableRows;
use crate::sys::wait::{wait, wait_checking};

/// Return the places, in order, of the files of more than `least` bytes that exist below `root`; with any, also those
/// of the others if they are fewer than `few`.
#[pyfunction]
pub(crate) fn comparable(
    py: Python<'_>,
    root: &[u8],
    files: TableRows,
    least: u64,
    few: usize,
) -> PyResult<Vec<usize>> {
    let keys = files.keys().map(|key| (key.path, key.size));
    wait(py, |stop| verify::comparable(root, keys, least, few, stop))
}

/// Write all changes of the file system of an open directory to disk.
#[pyfunction]
pub(crate) fn write_back(py: Python<'_>, folder: u32) -> PyResult<()> {
    wait(py, |_| verify::write_back(folder))
}

/// Verify the files below `folder`, and set the attributes of the right ones with `finish`; returns a byte for each.
#[pyfunction]
#[pyo3(signature = (folder, files, run, threads, check))]
pub(crate) fn verify_arrived<'py>(
    py: Python<'py>,
    folder: &[u8],
    files: TableRows,
    run: (HashMap<Vec<u8>, u64>, bool, Option<Finish>),
    threads: usize,
    check: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (placed, cut, finish) = run;
    let files = build_requests(py, &files, finish)?;
    let run = Run { cut, placed };
    let work = |stop: &_| verify::verify(folder, &files, &run, threads, stop);
    let arrivals = wait_checking(py, Some(check.as_unbound()), work)?;
    let verdicts: Vec<u8> = arrivals.into_iter().map(number).collect();
    Ok(PyBytes::new(py, &verdicts))
}

/// Callables for the numbers of users and of groups.
pub(crate) type Finish = (Py<PyAny>, Py<PyAny>);

/// Build the requests to verify many files; without `finish`, their attributes are set later.  An
/// exception of the lent functions is raised.
pub(crate) fn build_requests(
    py: Python<'_>,
    files: &TableRows,
    finish: Option<Finish>,
) -> PyResult<Vec<VerifyRequest>> {
    let numbers = finish.map(|owners| Owners::new(owners).numbers(py, &files.table, files.iter()));
    let numbers = numbers.transpose()?;
    let mut attributes = numbers.iter().flat_map(|numbers| files.attributes(numbers));
    let request = |wanted| VerifyRequest {
        wanted,
        attributes: attributes.next(),
    };
    Ok(files.metadata().map(request).collect())
}

/// Return the number of a verdict, as `_native.pyi` lists them.
fn number(arrival: Arrival) -> u8 {
    match arrival {
        Arrival::Arrived => 0,
        Arrival::Missing => 1,
        Arrival::Mismatch => 2,
        Arrival::Finished => 3,
    }
}
