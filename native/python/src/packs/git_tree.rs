//! Git's trees, and the ids of objects.

use huai_git::object::Kind;
use huai_git::oid::Oid;
use huai_git::tree::{self, TreeItem};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::read::parse_oid;
use crate::sys::errors::refuse;

/// Name, id, true if that is a tree's.
type Item<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, bool);

/// Encode items, in any order, as a git tree: the name, the id, and true for a tree.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "what Python gives is converted"
)]
pub(crate) fn encode_tree(
    py: Python<'_>,
    items: Vec<(PyBackedBytes, PyBackedBytes, bool)>,
) -> PyResult<Bound<'_, PyBytes>> {
    let items = items.iter().map(|(name, oid, is_tree)| {
        let (oid, is_tree) = (parse_oid(oid)?, *is_tree);
        Ok(TreeItem { name, oid, is_tree })
    });
    let items = items.collect::<PyResult<_>>()?;
    Ok(PyBytes::new(py, &tree::encode_tree(items)))
}

/// Decode the items of a git tree at `place`, which is for errors; a `FormatError` unless they are well-formed and in
/// order.
#[pyfunction]
pub(crate) fn decode_tree<'py>(
    py: Python<'py>,
    data: &[u8],
    place: &str,
) -> PyResult<Vec<Item<'py>>> {
    let items = tree::decode_tree(data).map_err(|error| refuse(error.within(place)))?;
    let items = items.into_iter().map(|item| {
        let oid = PyBytes::new(py, item.oid.as_bytes());
        (PyBytes::new(py, item.name), oid, item.is_tree)
    });
    Ok(items.collect())
}

/// Return the id of an object without a check for collisions; a `ValueError` for an unknown kind.
#[pyfunction]
pub(crate) fn object_id<'py>(
    py: Python<'py>,
    kind: &str,
    data: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let kind = Kind::parse(kind).ok_or_else(|| PyValueError::new_err("not a kind of object"))?;
    Ok(PyBytes::new(py, Oid::of_own(kind, data).as_bytes()))
}
