//! Staging content that is on this machine.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;

use huai_sys::error::Error;
use huai_tree::publish;
use huai_tree::stage::copy::{self, Area, CopyArrival, Limits, Origin, Twin, Way};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arrived::Places;
use super::verify::{Finish, build_requests};
use crate::candidates::table_rows::TableRows;
use crate::sys::wait::wait_reporting;

/// The folders of copies and of links, and the number of hashing threads.
pub(crate) type Folders = (u32, u32, usize);

/// Path and errno of what ended a row.
pub(crate) type Failure<'py> = Option<(Bound<'py, PyBytes>, i32)>;

/// How each file was staged, and what ended the row.
pub(crate) type Ways<'py> = (Bound<'py, PyBytes>, Failure<'py>);

/// Stage each of `files` with the content of the staged file at its place in `firsts`.  With a key it becomes a link
/// of this name in the ready folder, if possible.
#[pyfunction]
pub(crate) fn copy_twins<'py>(
    py: Python<'py>,
    files: TableRows,
    firsts: (TableRows, Places<'py>),
    keys: Vec<Option<Vec<u8>>>,
    area: Folders,
    hear: &Bound<'py, PyAny>,
) -> PyResult<Ways<'py>> {
    let (firsts, places) = firsts;
    let firsts = places.of(&firsts)?.into_iter().zip(keys);
    let item = |(wanted, (first, key)): (_, (publish::Staged, _))| Twin {
        wanted,
        folder: first.folder,
        name: first.name,
        key,
    };
    let items: Vec<Twin> = files.metadata().zip(firsts).map(item).collect();
    let staged = wait_reporting(py, hear.as_unbound(), |done, stop| {
        copy::copy_twins(&items, area_of(area, done), stop)
    })?;
    Ok(ways(py, staged))
}

/// Convert Python's folders and threads for staging; `done` counts the bytes that are read.
pub(crate) fn area_of((folder, ready, threads): Folders, done: &AtomicU64) -> Area<'_> {
    Area {
        folder,
        ready,
        threads,
        done,
    }
}

/// Convert the result of staging: a byte for each file, and the failure that ended the row.
pub(crate) fn ways(py: Python<'_>, staged: copy::Ways) -> Ways<'_> {
    let ways: Vec<u8> = staged.ways.into_iter().map(number).collect();
    (PyBytes::new(py, &ways), failure(py, staged.failure))
}

/// Return the number of a way, as `_native.pyi` lists them.
fn number(way: Option<Way>) -> u8 {
    match way {
        None => 0,
        Some(Way::Linked) => 1,
        Some(Way::Cloned) => 2,
        Some(Way::Copied) => 3,
    }
}

/// Convert a failure to path and errno.
pub(crate) fn failure(py: Python<'_>, error: Option<Error>) -> Failure<'_> {
    error.map(|error| (PyBytes::new(py, &error.path), error.errno.raw_os_error()))
}

/// Copy files from one open directory to the same paths below another.  Returns a verdict for each,
/// and the failure that ended the row, if any.
#[pyfunction]
#[pyo3(signature = (files, places, limits, finish, hear))]
pub(crate) fn copy_files<'py>(
    py: Python<'py>,
    files: TableRows,
    places: (u32, u32),
    limits: (u64, HashMap<usize, u64>),
    finish: Option<Finish>,
    hear: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyBytes>, Failure<'py>)> {
    let files = build_requests(py, &files, finish)?;
    let (source, folder) = places;
    let (rate, newer) = limits;
    let limits = Limits { rate, newer };
    let copies = wait_reporting(py, hear.as_unbound(), |done, stop| {
        Origin::reopen(source)?.copy(&files, folder, &limits, done, stop)
    })?;
    let arrivals: Vec<u8> = copies.arrivals.into_iter().map(verdict).collect();
    Ok((PyBytes::new(py, &arrivals), failure(py, copies.failure)))
}

/// Return the number of a verdict, as `_native.pyi` lists them.
fn verdict(arrival: CopyArrival) -> u8 {
    match arrival {
        CopyArrival::Arrived => 0,
        CopyArrival::Missing => 1,
        CopyArrival::Mismatch => 2,
        CopyArrival::Denied => 3,
        CopyArrival::Unreached => 4,
        CopyArrival::Finished => 5,
    }
}
