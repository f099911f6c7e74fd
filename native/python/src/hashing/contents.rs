//! The digests of files that a scan has seen.

use std::sync::Arc;

use huai_tree::hashing::contents::{self, Found, Wanted};
use huai_tree::sys::error::is_shortage;
use huai_tree::sys::pace;
use huai_tree::sys::stop::Stop;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::block_index::BlockIndex;
use crate::sys::errors::{lacking, raise};
use crate::sys::pace::Pace;
use crate::sys::wait::wait;

/// Reads files below one root.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Contents(contents::Contents, Option<Arc<pace::Pace>>);

/// Path, front of the record; time of birth and digest.
type File = (PyBackedBytes, PyBackedBytes, Option<(i64, PyBackedBytes)>);

#[pymethods]
impl Contents {
    #[new]
    #[pyo3(signature = (root, threads, pace = None, holes = None))]
    fn new(
        py: Python<'_>,
        root: &[u8],
        threads: usize,
        pace: Option<Py<Pace>>,
        holes: Option<u64>,
    ) -> PyResult<Self> {
        let holes = holes.unwrap_or(u64::MAX);
        let opened = wait(py, |_| contents::Contents::open(root, threads, holes))?;
        let opened = opened.map_err(|error| raise(py, &error))?;
        Ok(Self(opened, pace.map(|pace| Arc::clone(&pace.get().0))))
    }

    fn find_out<'py>(&self, py: Python<'py>, files: Vec<File>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = wait(py, move |stop| {
            let wanted: Vec<_> = files.iter().map(wanted).collect::<PyResult<_>>()?;
            self.hold(stop);
            Ok::<_, PyErr>(self.0.find_out(&wanted, stop))
        })??;
        found.iter().map(|each| answer(py, each)).collect()
    }

    fn find_out_large<'py>(
        &self,
        py: Python<'py>,
        file: File,
    ) -> PyResult<(Bound<'py, PyAny>, Option<BlockIndex>)> {
        let (found, index) = wait(py, move |stop| {
            let wanted = wanted(&file)?;
            self.hold(stop);
            Ok::<_, PyErr>(self.0.find_out_large(&wanted, stop))
        })??;
        Ok((answer(py, &found)?, index.map(BlockIndex)))
    }
}

impl Contents {
    fn hold(&self, stop: &Stop) {
        if let Some(pace) = &self.1 {
            stop.hold_to(pace);
        }
    }
}

fn wanted((path, identity, known): &File) -> PyResult<Wanted<'_>> {
    let known = known.as_ref().map(|(birth, digest)| {
        let digest = digest.as_ref().try_into();
        digest.map(|digest| (*birth, digest))
    });
    let if_born = known.transpose();
    Ok(Wanted {
        path,
        identity,
        if_born: if_born.map_err(|_| PyValueError::new_err("a digest has 32 bytes"))?,
    })
}

fn answer<'py>(py: Python<'py>, found: &Found) -> PyResult<Bound<'py, PyAny>> {
    let errno = match found {
        Found::Confirmed => return Ok(py.None().into_bound(py)),
        Found::Read(birth, digest) => {
            let digest = PyBytes::new(py, digest);
            return Ok((*birth, digest).into_pyobject(py)?.into_any());
        }
        Found::Changed => 0,
        Found::Failed(errno) if is_shortage(*errno) => {
            return Err(lacking(py, *errno));
        }
        Found::Failed(errno) => errno.raw_os_error(),
    };
    Ok(errno.into_pyobject(py)?.into_any())
}
