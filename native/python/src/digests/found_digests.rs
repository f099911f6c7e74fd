//! Digests that were found out after their files were committed.

use huai_format::snapshots::{EntryLimit, Listing, Walk};
use huai_format::{walks, write};
use pyo3::prelude::*;

use crate::packs::lent::snapshot;
use crate::packs::writer::Writer;
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// Files with their digests, by path.
#[pyclass(frozen, module = "huai_native._native")]
#[derive(Default)]
pub(crate) struct FoundDigests(pub(crate) Guarded<walks::FoundDigests>);

#[pymethods]
impl FoundDigests {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __len__(&self) -> usize {
        self.0.lock().len()
    }

    /// Write the objects of a snapshot with these digests; returns the id of its tree.
    fn write(
        &self,
        py: Python<'_>,
        past: (Py<PyAny>, Vec<u8>, u64),
        writer: Option<Py<PyAny>>,
    ) -> PyResult<Vec<u8>> {
        let (reader, tree, limit) = past;
        let (past, writer) = (snapshot(reader, &tree)?, Writer::new(py, writer));
        let tree = wait(py, |stop| {
            let found_digests = self.0.lock();
            let mut until = writer.until(stop);
            let mut layout = write::Layout::default();
            let mut walk = Walk::new(&past, EntryLimit::new(limit));
            while let Some(listing) = walk.next(&past)? {
                let Listing {
                    path,
                    attributes,
                    leaves,
                    digests,
                } = &listing;
                let column = found_digests.fill(path, leaves, digests)?;
                let path = path.as_bytes();
                let digests = column.as_deref().unwrap_or(digests);
                layout.add(
                    &write::ListingText {
                        path,
                        attributes,
                        leaves,
                        digests,
                    },
                    &mut until,
                )?;
            }
            layout.finish(&mut until)
        })?;
        Ok(tree.map_err(refuse)?.as_bytes().to_vec())
    }
}
