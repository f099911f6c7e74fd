//! A store of objects that Python lends (`huai_schema.git.objects.ObjectReader`).

use std::sync::atomic::{AtomicU32, Ordering};

use huai_format::objects::ObjectReader;
use huai_format::snapshot::Snapshot;
use huai_git::error::{Error, Result};
use huai_git::object::Kind;
use huai_git::oid::Oid;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::read::{Packs, parse_oid};

/// One object in so many is asked of Python, which looks for signals and at its deadline then.
const ASKED_EVERY: u32 = 64;

/// Whatever has `read(oid, kind)`.  Its exceptions come through unchanged.
///
/// What its `packs` hold, if it has any, is read from there without Python.
pub(crate) struct Reader {
    lent: Py<PyAny>,
    packs: Option<Py<Packs>>,
    reads: AtomicU32,
}

impl Reader {
    pub(crate) fn new(py: Python<'_>, lent: Py<PyAny>) -> PyResult<Self> {
        let packs = lent.bind(py).getattr_opt(intern!(py, "packs"))?;
        let packs = packs.and_then(|packs| packs.cast_into().ok());
        Ok(Self {
            lent,
            packs: packs.map(Bound::unbind),
            reads: AtomicU32::new(0),
        })
    }

    /// Without Python; `None` for all that it has to judge: what is not here, or not as it should.
    fn unasked(&self, oid: &Oid, kind: Kind) -> Option<Vec<u8>> {
        let packs = self.packs.as_ref()?.get();
        if self.reads.fetch_add(1, Ordering::Relaxed) % ASKED_EVERY == 0 {
            return None;
        }
        packs.content(oid, kind)
    }
}

impl ObjectReader for Reader {
    fn read(&self, oid: &Oid, kind: Kind) -> Result<Vec<u8>> {
        if let Some(content) = self.unasked(oid, kind) {
            return Ok(content);
        }
        let read = |py: Python<'_>| {
            let oid = PyBytes::new(py, oid.as_bytes());
            let lent = self.lent.bind(py);
            let data = lent.call_method1(intern!(py, "read"), (oid, kind.name()))?;
            Ok(data.cast::<PyBytes>()?.as_bytes().to_vec())
        };
        Python::attach(read).map_err(|error: PyErr| Error::Lent(Box::new(error)))
    }
}

/// A snapshot whose root has the tree `tree`.
pub(crate) fn snapshot(lent: Py<PyAny>, tree: &[u8]) -> PyResult<Snapshot<Reader>> {
    let tree = parse_oid(tree)?;
    let reader = Python::attach(|py| Reader::new(py, lent))?;
    Ok(Snapshot { reader, tree })
}
