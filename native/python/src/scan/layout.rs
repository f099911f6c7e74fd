//! Listings to git objects.

use huai_format::snapshots::{Ids, ObjectWriter};
use huai_format::write;
use huai_format::write::ListingText;
use huai_git::error::{Error, Result};
use huai_git::object::Kind;
use huai_git::oid::Oid;
use huai_sys::stop::Stop;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::packs::read::parse_oid;
use crate::packs::writer::PackWriter;
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// Bytes of a listing that is laid out in less time than the one door to long calls takes.
const SHORT: usize = 64 << 10;

/// The trees and manifests of a module.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Layout {
    writer: Writer,
    /// None if it is finished.
    open: Guarded<Option<write::Layout>>,
}

/// The destination of objects.
pub(crate) enum Writer {
    /// Nowhere: only ids are wanted.
    Nowhere,
    Pack(Py<PackWriter>),
    /// Whatever has `write(kind, data)`.
    Lent(Py<PyAny>),
}

#[pymethods]
impl Layout {
    #[new]
    fn new(py: Python<'_>, writer: Option<Py<PyAny>>) -> Self {
        let writer = Writer::new(py, writer);
        let open = Guarded::new(Some(write::Layout::default()));
        Self { writer, open }
    }

    fn add(
        &self,
        py: Python<'_>,
        path: &[u8],
        attributes: &[u8],
        leaves: &[u8],
        digests: &[u8],
    ) -> PyResult<()> {
        let listing = ListingText {
            path,
            attributes,
            leaves,
            digests,
        };
        let add = |stop: &Stop| {
            let mut open = self.open.lock();
            let layout = open.as_mut().ok_or_else(is_finished)?;
            let done = layout.add(&listing, &mut self.writer.until(stop));
            done.map_err(refuse)
        };
        if leaves.len() < SHORT {
            return py.detach(|| add(&Stop::default()));
        }
        wait(py, add)?
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let layout = self.open.lock().take().ok_or_else(is_finished)?;
        let root = wait(py, |stop| layout.finish(&mut self.writer.until(stop)))?;
        Ok(PyBytes::new(py, root.map_err(refuse)?.as_bytes()))
    }
}

fn is_finished() -> PyErr {
    PyRuntimeError::new_err("the layout is finished")
}

impl Writer {
    pub(crate) fn new(py: Python<'_>, writer: Option<Py<PyAny>>) -> Self {
        match writer {
            None => Self::Nowhere,
            Some(given) => match given.bind(py).cast::<PackWriter>() {
                Ok(pack) => Self::Pack(pack.clone().unbind()),
                Err(_) => Self::Lent(given),
            },
        }
    }

    /// Return the writer for one call, which refuses objects after a stop.
    pub(crate) fn until<'a>(&'a self, stop: &'a Stop) -> Until<'a> {
        Until { writer: self, stop }
    }
}

/// A writer, for the duration of the call.
pub(crate) struct Until<'a> {
    writer: &'a Writer,
    stop: &'a Stop,
}

impl ObjectWriter for Until<'_> {
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

/// Write an object by Python's writer, whose exceptions come through unchanged.
fn write_lent(writer: &Bound<'_, PyAny>, kind: Kind, content: &[u8]) -> Result<Oid> {
    let py = writer.py();
    let arguments = (kind.name(), PyBytes::new(py, content));
    let write = || {
        let oid = writer.call_method1(intern!(py, "write"), arguments)?;
        parse_oid(oid.cast::<PyBytes>()?.as_bytes())
    };
    write().map_err(|error: PyErr| Error::Lent(Box::new(error)))
}
