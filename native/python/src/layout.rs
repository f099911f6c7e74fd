//! Listings to git objects.

use std::sync::{Mutex, PoisonError};

use huai_format::error::{Error, Result};
use huai_format::git::object::Kind;
use huai_format::git::oid::Oid;
use huai_format::layout::{self, Listing};
use huai_format::objects::ObjectWriter;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::refuse;
use crate::run::Run;

/// The trees and manifests of a module.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Layout {
    writer: Py<PyAny>,
    /// None: it is finished.
    open: Mutex<Option<layout::Layout>>,
}

#[pymethods]
impl Layout {
    #[new]
    fn new(writer: Py<PyAny>) -> Self {
        let open = Mutex::new(Some(layout::Layout::default()));
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
        let listing = Listing {
            path,
            attributes,
            leaves,
            digests,
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let layout = open.as_mut().ok_or_else(is_finished)?;
        let mut writer = Lent(py, &self.writer);
        layout.add(&listing, &mut writer).map_err(refuse)
    }

    fn add_run(&self, py: Python<'_>, run: &Run) -> PyResult<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let layout = open.as_mut().ok_or_else(is_finished)?;
        let mut writer = Lent(py, &self.writer);
        for listing in run.lock().listings() {
            layout.add(&listing, &mut writer).map_err(refuse)?;
        }
        Ok(())
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let open = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let mut writer = Lent(py, &self.writer);
        let root = open.ok_or_else(is_finished)?.finish(&mut writer);
        Ok(PyBytes::new(py, root.map_err(refuse)?.as_bytes()))
    }
}

fn is_finished() -> PyErr {
    PyRuntimeError::new_err("the layout is finished")
}

/// Whatever has `write(kind, data)`.  Its exceptions come through unchanged.
struct Lent<'a, 'py>(Python<'py>, &'a Py<PyAny>);

impl ObjectWriter for Lent<'_, '_> {
    fn write(&mut self, kind: Kind, content: &[u8]) -> Result<Oid> {
        let Self(py, writer) = *self;
        let arguments = (kind.name(), PyBytes::new(py, content));
        let write = || {
            let oid = writer
                .bind(py)
                .call_method1(intern!(py, "write"), arguments)?;
            crate::packs::parse_oid(oid.cast::<PyBytes>()?.as_bytes())
        };
        write().map_err(|error: PyErr| Error::Lent(Box::new(error)))
    }
}
