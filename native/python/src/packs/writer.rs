//! Writing packs.

use std::sync::MutexGuard;

use huai_format::snapshots::{Ids, ObjectWriter};
use huai_git::error::{Error, Result};
use huai_git::object::Kind;
use huai_git::oid::Oid;
use huai_sys::stop::Stop;
use huai_tree::packs::writer;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::read::parse_oid;
use crate::sys::errors::raise;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// Collects objects that a folder of packs does not have yet.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct PackWriter(Guarded<writer::PackWriter>);

impl PackWriter {
    pub(crate) fn lock(&self) -> MutexGuard<'_, writer::PackWriter> {
        self.0.lock()
    }
}

#[pymethods]
impl PackWriter {
    #[new]
    #[pyo3(signature = (folder, name, *, threads, known = None))]
    fn new(
        py: Python<'_>,
        folder: &[u8],
        name: &[u8],
        threads: usize,
        known: Option<&[u8]>,
    ) -> PyResult<Self> {
        wait(py, |_| {
            writer::PackWriter::open(folder, known.unwrap_or(folder), name, threads)
        })
        .map(|writer| Self(Guarded::new(writer)))
    }

    fn __len__(&self) -> usize {
        self.lock().len()
    }

    /// Add an object unless the known packs have it; returns its id.
    fn write<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        data: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let kind =
            Kind::parse(kind).ok_or_else(|| PyValueError::new_err("not a kind of object"))?;
        let oid = wait(py, |_| self.lock().write(kind, data))?;
        Ok(PyBytes::new(py, oid.as_bytes()))
    }

    /// Make the pack durable and visible; returns its name, `None` if it has no objects.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let name = wait(py, |_| self.lock().finish())?;
        Ok(name.map(|name| PyBytes::new(py, &name)))
    }

    /// Discard the pack.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.lock().abort().map_err(|error| raise(py, &error))
    }
}

/// The destination of objects.
pub(crate) enum Writer {
    /// Nowhere: only ids are wanted.
    Nowhere,
    Pack(Py<PackWriter>),
    /// Whatever has `write(kind, data)`.
    Lent(Py<PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Writer {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(if given.is_none() {
            Self::Nowhere
        } else if let Ok(pack) = given.cast::<PackWriter>() {
            Self::Pack(pack.to_owned().unbind())
        } else {
            Self::Lent(given.to_owned().unbind())
        })
    }
}

impl Writer {
    /// Return the writer for one call, which refuses objects after a stop.
    pub(crate) fn until<'a>(&'a self, stop: &'a Stop) -> Until<'a> {
        Until { writer: self, stop }
    }
}

/// A writer for the duration of a call, which fails with `Error::Stopped` after a stop.
pub(crate) struct Until<'a> {
    writer: &'a Writer,
    stop: &'a Stop,
}

impl ObjectWriter for Until<'_> {
    /// Write an object to the pack or by Python, or only compute its id; fails with `Stopped` after a stop.
    fn write(&mut self, kind: Kind, content: &[u8]) -> Result<Oid> {
        if self.stop.is_set() {
            return Err(Error::Stopped);
        }
        match self.writer {
            Writer::Nowhere => Ids.write(kind, content),
            Writer::Pack(writer) => writer.get().lock().write(kind, content),
            Writer::Lent(writer) => Python::attach(|py| write_lent(writer.bind(py), kind, content)),
        }
    }
}

/// Write an object by Python's writer, whose exceptions become `Error::Lent`, unchanged.
fn write_lent(writer: &Bound<'_, PyAny>, kind: Kind, content: &[u8]) -> Result<Oid> {
    let py = writer.py();
    let arguments = (kind.name(), PyBytes::new(py, content));
    let write = || {
        let oid = writer.call_method1(intern!(py, "write"), arguments)?;
        parse_oid(oid.cast::<PyBytes>()?.as_bytes())
    };
    write().map_err(|error: PyErr| Error::Lent(Box::new(error)))
}
