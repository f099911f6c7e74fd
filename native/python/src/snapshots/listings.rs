//! Listings that Python passes in tree order.

use huai_format::write::{Layout, ListingText};
use huai_git::error::{Error, Result};
use huai_sys::stop::Stop;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::packs::writer::Writer;
use crate::sys::wait::wait;

/// Call `work` for each of `listings`, an iterable of Python's, whose exceptions are passed on;
/// `Error::Stopped` after a stop.
pub(crate) fn for_each_listing(
    listings: &Py<PyAny>,
    stop: &Stop,
    mut work: impl FnMut(&ListingText<'_>) -> Result<()>,
) -> Result<()> {
    type Parts = (PyBackedBytes, PyBackedBytes, PyBackedBytes, PyBackedBytes);
    let lent = |raised: PyErr| Error::Lent(Box::new(raised));
    let iterator = Python::attach(|py| listings.bind(py).try_iter().map(Bound::unbind));
    let iterator = iterator.map_err(lent)?;
    loop {
        if stop.is_set() {
            return Err(Error::Stopped);
        }
        let next = Python::attach(|py| {
            let next = iterator.bind(py).clone().next().transpose()?;
            next.map(|next| next.extract::<Parts>()).transpose()
        });
        let Some((path, attributes, leaves, digests)) = next.map_err(lent)? else {
            return Ok(());
        };
        work(&ListingText {
            path: &path,
            attributes: &attributes,
            leaves: &leaves,
            digests: &digests,
        })?;
    }
}

/// Write the objects of a module from its listings in tree order; returns its root tree.
#[pyfunction]
pub(crate) fn write_tree(py: Python<'_>, listings: Py<PyAny>, writer: Writer) -> PyResult<Vec<u8>> {
    let tree = wait(py, |stop| {
        let mut layout = Layout::default();
        let add = |listing: &ListingText<'_>| layout.add(listing, &mut writer.until(stop));
        for_each_listing(&listings, stop, add)?;
        layout.finish(&mut writer.until(stop))
    })?;
    Ok(tree.as_bytes().to_vec())
}
