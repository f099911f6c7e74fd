//! The digests of files that were read before.

use huai_tree::digests::{self, Files, Found};
use huai_tree::scan::directory::Directory;
use huai_tree::sys::error::Result;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::scan::run::Run;
use crate::sys::errors::raise;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// The digests of one commit, in the order of its scan.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Digests(Guarded<digests::Digests>);

/// What a file was read for: birth and digest; none: it gets no digest.
type Read = Option<(Option<i64>, PyBackedBytes)>;

/// A directory: leaves, records, inode, device and file system.
type Looked = (PyBackedBytes, PyBackedBytes, u64, u64, u64);

/// A directory's number and a file's; birth and digest.
type Doubt<'py> = (usize, usize, Option<(i64, Bound<'py, PyBytes>)>);

#[pymethods]
impl Digests {
    #[new]
    fn new(py: Python<'_>, folder: &[u8]) -> PyResult<Self> {
        let opened = wait(py, |_| digests::Digests::open(folder))?;
        let opened = opened.map_err(|error| raise(py, &error))?;
        Ok(Self(Guarded::new(opened)))
    }

    fn look_up<'py>(&self, py: Python<'py>, directories: Vec<Looked>) -> PyResult<Vec<Doubt<'py>>> {
        let doubts = call(&self.0, py, move |digests| {
            let files: Vec<_> = directories.iter().map(files).collect();
            digests.look_up(&files)
        })?;
        Ok(doubts_of(py, &doubts))
    }

    fn settle<'py>(&self, py: Python<'py>, found: Vec<Read>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let found = parsed(found)?;
        let columns = call(&self.0, py, |digests| digests.settle(&found))?;
        Ok(columns
            .iter()
            .map(|column| PyBytes::new(py, column))
            .collect())
    }

    fn look_up_run<'py>(&self, py: Python<'py>, run: Py<Run>) -> PyResult<Vec<Doubt<'py>>> {
        let doubts = call(&self.0, py, move |digests| {
            digests.look_up(&files_of_run(&run.get().lock().directories))
        })?;
        Ok(doubts_of(py, &doubts))
    }

    fn settle_run(&self, py: Python<'_>, run: Py<Run>, found: Vec<Read>) -> PyResult<()> {
        let found = parsed(found)?;
        call(&self.0, py, move |digests| {
            run.get().lock().columns = digests.settle(&found)?;
            Ok(())
        })
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        call(&self.0, py, digests::Digests::flush)
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        call(&self.0, py, digests::Digests::finish)
    }
}

/// Those of the files that a list names.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct ListedDigests(Guarded<digests::ListedDigests>);

#[pymethods]
impl ListedDigests {
    #[new]
    fn new(py: Python<'_>, folder: &[u8]) -> PyResult<Self> {
        let opened = wait(py, |_| digests::ListedDigests::open(folder))?;
        let opened = opened.map_err(|error| raise(py, &error))?;
        Ok(Self(Guarded::new(opened)))
    }

    fn look_up_run<'py>(&self, py: Python<'py>, run: Py<Run>) -> PyResult<Vec<Doubt<'py>>> {
        let doubts = call(&self.0, py, move |digests| {
            digests.look_up(&files_of_run(&run.get().lock().directories))
        })?;
        Ok(doubts_of(py, &doubts))
    }

    fn settle_run(&self, py: Python<'_>, run: Py<Run>, found: Vec<Read>) -> PyResult<()> {
        let found = parsed(found)?;
        call(&self.0, py, move |digests| {
            run.get().lock().columns = digests.settle(&found);
            Ok(())
        })
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        call(&self.0, py, digests::ListedDigests::finish)
    }
}

/// Works on digests that no other call has in work.
fn call<D: Send, T: Send>(
    digests: &Guarded<D>,
    py: Python<'_>,
    work: impl FnOnce(&mut D) -> Result<T> + Send,
) -> PyResult<T> {
    let done = wait(py, |_| work(&mut digests.lock()))?;
    done.map_err(|error| raise(py, &error))
}

/// The files of a scan's directories.
fn files_of_run(run: &[Directory]) -> Vec<Files<'_>> {
    run.iter().map(files_of).collect()
}

fn doubts_of<'py>(py: Python<'py>, doubts: &[digests::Doubt]) -> Vec<Doubt<'py>> {
    doubts.iter().map(|each| doubt(py, each)).collect()
}

fn doubt<'py>(py: Python<'py>, doubt: &digests::Doubt) -> Doubt<'py> {
    let if_born = doubt.if_born;
    let if_born = if_born.map(|(birth, digest)| (birth, PyBytes::new(py, &digest)));
    (doubt.place.0, doubt.place.1, if_born)
}

fn files_of(directory: &Directory) -> Files<'_> {
    Files {
        leaves: &directory.leaves,
        records: &directory.identities,
        folder: directory.inode,
        device: directory.device,
        file_system: directory.file_system,
    }
}

fn parsed(found: Vec<Read>) -> PyResult<Vec<Option<Found>>> {
    let found = found.into_iter().map(|each| each.map(parse).transpose());
    found.collect()
}

fn parse((birth, digest): (Option<i64>, PyBackedBytes)) -> PyResult<Found> {
    let digest = digest.as_ref().try_into();
    let digest = digest.map_err(|_| PyValueError::new_err("a digest has 32 bytes"))?;
    Ok((birth, digest))
}

fn files((leaves, records, folder, device, file_system): &Looked) -> Files<'_> {
    Files {
        leaves,
        records,
        folder: *folder,
        device: *device,
        file_system: *file_system,
    }
}
