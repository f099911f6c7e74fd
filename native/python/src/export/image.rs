//! Building EROFS images.

use huai_export::erofs::{self, Owners};
use huai_git::error::{Error, Result};
use huai_tree::image::ImageFile;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::sys::errors::{raise, refuse};
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// Bytes of a listing that is placed in less time than the one door to long calls takes.
const SHORT: usize = 64 << 10;

/// A receiver of listings in tree order, the root first.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct ImageBuilder {
    /// None if it is closed.
    builder: Guarded<Option<erofs::ImageBuilder<ImageFile>>>,
    pair: Py<PyAny>,
}

#[pymethods]
impl ImageBuilder {
    #[new]
    fn new(py: Python<'_>, path: &[u8], pair: Py<PyAny>) -> PyResult<Self> {
        let file = ImageFile::open(path).map_err(|error| raise(py, &error))?;
        let builder = Guarded::new(Some(erofs::ImageBuilder::new(file)));
        Ok(Self { builder, pair })
    }

    #[getter]
    fn entries(&self) -> PyResult<u64> {
        self.with(|builder| Ok(builder.entries()))
    }

    fn count_links(&self, py: Python<'_>, path: &[u8], leaves: &[u8]) -> PyResult<()> {
        let count = || self.with(|builder| builder.count_links(path, leaves));
        if leaves.len() < SHORT {
            return py.detach(count);
        }
        wait(py, |_| count())?
    }

    fn add(&self, py: Python<'_>, path: &[u8], attributes: &[u8], leaves: &[u8]) -> PyResult<()> {
        let add = || {
            let mut owners = OwnerLookup(&self.pair);
            self.with(|builder| builder.add(path, attributes, leaves, &mut owners))
        };
        if leaves.len() < SHORT {
            return py.detach(add);
        }
        wait(py, |_| add())?
    }

    fn finish(&self, py: Python<'_>, uuid: &[u8]) -> PyResult<Option<u32>> {
        let uuid = uuid.try_into();
        let uuid = uuid.map_err(|_| PyValueError::new_err("a UUID has 16 bytes"))?;
        wait(py, |_| self.with(|builder| builder.finish(uuid)))?
    }

    fn close(&self) {
        *self.builder.lock() = None;
    }
}

impl ImageBuilder {
    fn with<T>(
        &self,
        work: impl FnOnce(&mut erofs::ImageBuilder<ImageFile>) -> Result<T>,
    ) -> PyResult<T> {
        let closed = || PyRuntimeError::new_err("the image is closed");
        work(self.builder.lock().as_mut().ok_or_else(closed)?).map_err(refuse)
    }
}

/// A Python function that looks up the numbers of owners.
struct OwnerLookup<'a>(&'a Py<PyAny>);

impl Owners for OwnerLookup<'_> {
    fn pair(&mut self, owner: &[u8], group: &[u8]) -> Result<(u32, u32)> {
        Python::attach(|py| {
            let names = (PyBytes::new(py, owner), PyBytes::new(py, group));
            self.0.call1(py, names)?.extract(py)
        })
        .map_err(|raised: PyErr| Error::Lent(Box::new(raised)))
    }
}
