//! Digests of content.

use huai_sys::stop::Stop;
use huai_tree::hashing::hash::{self, Content};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::sys::errors::raise;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait_checking;

/// Bytes that are hashed in less time than a thread takes to start.
const FEW: u64 = 256 << 10;

/// BLAKE3-256 of data that is passed in pieces.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Blake3(Guarded<hash::Blake3>);

#[pymethods]
impl Blake3 {
    #[new]
    #[pyo3(signature = (content = b"".as_slice()))]
    fn new(py: Python<'_>, content: &[u8]) -> Self {
        let hasher = Self(Guarded::default());
        hasher.update(py, content);
        hasher
    }

    fn update(&self, py: Python<'_>, content: &[u8]) {
        py.detach(|| self.0.lock().update(content));
    }

    fn digest<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.lock().digest())
    }
}

/// Return the BLAKE3-256 of an open file, which `threads` threads read if it is large; `check` is called meanwhile.
#[pyfunction]
#[pyo3(signature = (handle, threads, check = None))]
pub(crate) fn hash_file(
    py: Python<'_>,
    handle: u32,
    threads: usize,
    check: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyBytes>> {
    let content = Content::reopen(handle).map_err(|error| raise(py, &error))?;
    let digest = if content.size <= FEW {
        py.detach(|| content.hash(1, &Stop::default()))
            .map_err(|error| raise(py, &error))
    } else {
        wait_checking(py, check.as_ref(), |stop| content.hash(threads, stop))
    };
    Ok(PyBytes::new(py, &digest?))
}
