//! A store of objects that is written in Python (`huai_schema.git.objects.ObjectReader`).

use huai_format::error::{Error, Result};
use huai_format::git::object::Kind;
use huai_format::git::oid::Oid;
use huai_format::objects::ObjectReader;
use huai_format::snapshot::Snapshot;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Whatever has `read(oid, kind)`.  Its exceptions come through unchanged.
pub(crate) struct Reader(pub(crate) Py<PyAny>);

impl ObjectReader for Reader {
    fn read(&self, oid: &Oid, kind: Kind) -> Result<Vec<u8>> {
        let read = |py: Python<'_>| {
            let oid = PyBytes::new(py, oid.as_bytes());
            let data = self
                .0
                .bind(py)
                .call_method1(intern!(py, "read"), (oid, kind.name()))?;
            Ok(data.cast::<PyBytes>()?.as_bytes().to_vec())
        };
        Python::attach(read).map_err(|error: PyErr| Error::Lent(Box::new(error)))
    }
}

/// A snapshot whose root has the tree `tree`.
pub(crate) fn snapshot(reader: Py<PyAny>, tree: &[u8]) -> PyResult<Snapshot<Reader>> {
    let tree = Oid::parse(tree).ok_or_else(|| PyValueError::new_err("an id has 20 bytes"))?;
    let reader = Reader(reader);
    Ok(Snapshot { reader, tree })
}
